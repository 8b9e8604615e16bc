//! Written words are parsed unchanged, and parsing agrees with systemd.

use std::ffi::OsStr;

use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

use super::*;

fn words(line: &str) -> Result<Vec<Vec<u8>>, Unbalanced> {
    let mut words = Vec::new();
    let mut rest = line;
    while let Some((word, behind)) = first(rest)? {
        words.push(word.bytes);
        rest = behind;
    }
    Ok(words)
}

/// The results of `extract_first_word` in systemd 252.
#[test]
fn quotes_and_escapes_of_c_are_read() {
    for (line, expected) in [
        (" a\tb ", &[&b"a"[..], b"b"][..]),
        ("a\"b c\"'d e'f", &[b"ab cd ef"]),
        ("'' \"\"", &[b"", b""]),
        (r"\a\b\f\n\r\t\v\s\\\'", &[b"\x07\x08\x0c\n\r\t\x0b \\'"]),
        (
            r"'\x41\101\u00e9\U0001f600'",
            &["AA\u{e9}\u{1f600}".as_bytes()],
        ),
        (r"\xff \377", &[b"\xff", b"\xff"]),
        // An unknown escape is kept, and known ones beside it are parsed.
        (
            r"\q\x41 \x0 \x00 \400 \u0000 \ud800",
            &[
                br"\qA",
                br"\x0",
                br"\x00",
                br"\400",
                br"\u0000",
                b"\xed\xa0\x80",
            ],
        ),
        (
            r"\Ud8000000 \U0000fdd0 \U0001ffff",
            &[br"\Ud8000000", br"\U0000fdd0", br"\U0001ffff"],
        ),
        ("a\\ b \\\u{e9}", &[b"a\\ b", "\\\u{e9}".as_bytes()]),
        ("a\\", &[b"a\\"]),
    ] {
        let expected: Vec<Vec<u8>> = expected.iter().map(|word| word.to_vec()).collect();
        assert_eq!(words(line), Ok(expected), "{line}");
    }
    for line in ["\"a", "'a\"", "'a\\'", "\"a\\"] {
        assert_eq!(words(line), Err(Unbalanced), "{line}");
    }
}

/// Random bytes, most of them with a meaning in the syntax.
fn bytes(rng: &mut Rng) -> Vec<u8> {
    let length = rng.range(0..=12);
    let byte = |_| match rng.chance(1, 3) {
        true => rng.range(1..=255) as u8,
        false => *rng.choose(b"\\\"'$%{}; \t\n\r\x7fa;\xc3\xa9\x01"),
    };
    (0..length).map(byte).collect()
}

#[test]
fn what_is_written_is_read_again() {
    for seed in seeds::selected(0..40_000) {
        let mut rng = Rng::new(seed);
        let originals: Vec<Vec<u8>> = (0..rng.range(1..=4)).map(|_| bytes(&mut rng)).collect();
        let writer = Writer {
            has_plain_percent: false,
            has_plain_dollar: false,
        };
        let texts: Vec<String> = originals.iter().map(|own| writer.word(own)).collect();
        let line = texts.join(" ");
        assert_eq!(words(&line), Ok(originals.clone()), "{line:?}");
        assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
        // An odd number of backslashes at the end would continue the line.
        assert!(!line.ends_with('\\'), "{line:?}");
        let doubled = |sign: u8| {
            let own = originals[0].iter().flat_map(|byte| match *byte == sign {
                true => vec![sign, sign],
                false => vec![*byte],
            });
            own.collect::<Vec<u8>>()
        };
        let percent = Writer {
            has_plain_percent: true,
            ..writer
        }
        .word(&originals[0]);
        assert_eq!(words(&percent), Ok(vec![doubled(b'%')]));
        let dollar = Writer {
            has_plain_dollar: true,
            ..writer
        }
        .word(&originals[0]);
        assert_eq!(words(&dollar), Ok(vec![doubled(b'$')]));
    }
}

#[test]
fn paths_of_lists_are_read_again_or_have_no_word() {
    for seed in seeds::selected(0..40_000) {
        let mut rng = Rng::new(seed);
        let own = [b"/".to_vec(), bytes(&mut rng)].concat();
        let path = Path::new(OsStr::from_bytes(&own));
        if let Some(word) = listed(path) {
            let expected = path.to_str().unwrap().replace('%', "%%");
            assert_eq!(tamis_policy::systemd::words(&word), [expected]);
        }
    }
    for path in ["/a/../b", "a", "/a//b", "/a/", "/a\nb", "/a\\b", "/a\"b"] {
        assert_eq!(listed(Path::new(path)), None, "{path}");
    }
    assert_eq!(
        listed(Path::new("/a b/100%")).as_deref(),
        Some("\"/a b/100%%\"")
    );
}

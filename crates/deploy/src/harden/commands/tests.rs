//! A converted line executes the same file with the same arguments as the original.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

use super::*;

const UNIT: &str = "a-b@c.service";
/// A path with every character that can begin an expansion.
const INSTALLER: &str = "/opt/$x %n ${C}/tamis-exec";
const FILTER: &str = "/etc/a\nb\"c\\d$${C}%i/tamis.bpf";

fn find(name: &str) -> Option<String> {
    (name != "y").then(|| format!("/usr/bin/{name}"))
}

fn installer() -> Installer<'static> {
    Installer {
        program: Path::new(INSTALLER),
        subcommand: None,
        filter: Path::new(FILTER),
    }
}

fn line(value: &str) -> Result<CommandLine, String> {
    parse("ExecStart", value, UNIT, &find)
}

/// A file and its arguments.
type Call = (Vec<u8>, Vec<Vec<u8>>);

/// The call that systemd executes for a line.
fn by_systemd(value: &str) -> Call {
    let (first, mut rest) = words::first(value).unwrap().unwrap();
    let (prefixes, program) = Prefixes::split(&first.bytes);
    let file = with_specifiers(program);
    let mut argv = Vec::new();
    if !prefixes.has_name {
        argv.push(file.clone());
    }
    while let Some((word, behind)) = words::first(rest).unwrap() {
        argv.push(match word.written {
            "\\;" => b";".to_vec(),
            _ => with_specifiers(&word.bytes),
        });
        rest = behind;
    }
    if !prefixes.is_literal {
        argv = argv.iter().flat_map(|word| with_variables(word)).collect();
    }
    let name = str::from_utf8(&file)
        .ok()
        .filter(|name| !name.contains('/'));
    let file = name.and_then(find).map_or(file.clone(), String::into_bytes);
    (file, argv)
}

/// The call that the installer executes.
fn by_installer((file, argv): Call) -> Call {
    assert_eq!(file, INSTALLER.as_bytes());
    let mut words = argv.into_iter().skip(1);
    let mut name = None;
    loop {
        let word = words.next().expect("the options end");
        match word.as_slice() {
            b"--" => break,
            b"--keep-privs" => {}
            b"-p" => assert_eq!(words.next().unwrap(), FILTER.as_bytes()),
            own => name = Some(own.strip_prefix(b"--argv0=").expect("an option").to_vec()),
        }
    }
    let file = words.next().expect("a program");
    let mut argv = vec![name.unwrap_or_else(|| file.clone())];
    argv.extend(words);
    (file, argv)
}

/// `specifier_printf`, for the specifiers of these tests.
fn with_specifiers(word: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut bytes = word.iter().copied();
    while let Some(byte) = bytes.next() {
        let specifier = if byte == b'%' { bytes.next() } else { None };
        match specifier {
            _ if byte != b'%' => text.push(byte),
            Some(b'%') => text.push(b'%'),
            Some(b'i') => text.push(b'c'),
            Some(b'n') => text.extend(UNIT.bytes()),
            Some(b'I') => text.extend(b"${C} '\"\\$D"),
            other => {
                text.push(b'%');
                text.extend(other);
            }
        }
    }
    text
}

/// `replace_env_argv`
fn with_variables(word: &[u8]) -> Vec<Vec<u8>> {
    let values: BTreeMap<&[u8], &[u8]> = [
        (&b"C"[..], &b"cval"[..]),
        (b"D", b"two words"),
        (b"E", b""),
        (b"F", b"-p /evil"),
    ]
    .into();
    if word.first() == Some(&b'$') && !matches!(word.get(1), Some(b'{' | b'$')) {
        let value = values.get(&word[1..]).copied().unwrap_or_default();
        let words = value
            .split(|byte| *byte == b' ')
            .filter(|word| !word.is_empty());
        return words.map(<[u8]>::to_vec).collect();
    }
    let mut text = Vec::new();
    let mut copied = 0;
    let mut state = State::Word;
    for (at, byte) in word.iter().enumerate() {
        state = match (state, byte) {
            (State::Word, b'$') => State::Dollar,
            (State::Dollar, b'{') => {
                text.extend(&word[copied..at - 1]);
                copied = at - 1;
                State::Variable
            }
            (State::Dollar, b'$') => {
                text.extend(&word[copied..at]);
                copied = at + 1;
                State::Word
            }
            (State::Variable, b'}') => {
                text.extend(
                    values
                        .get(&word[copied + 2..at])
                        .copied()
                        .unwrap_or_default(),
                );
                copied = at + 1;
                State::Word
            }
            (State::Variable, b':') | (State::Dollar, _) => State::Word,
            (state, _) => state,
        };
    }
    text.extend(&word[copied..]);
    vec![text]
}

#[derive(Clone, Copy)]
enum State {
    Word,
    Dollar,
    Variable,
}

/// Executes a line and its conversion.
fn compare(value: &str) {
    let own = line(value).unwrap_or_else(|why| panic!("{value:?}: {why}"));
    for keeps_privs in [true, false] {
        let text = own.under(&installer(), keeps_privs);
        assert!(!text.contains(['\n', '\r', '\0']), "{text:?}");
        let hardened = text.strip_prefix("ExecStart=").unwrap();
        assert_eq!(
            by_installer(by_systemd(hardened)),
            by_systemd(value),
            "{value:?}: {text}"
        );
    }
}

#[test]
fn hostile_lines_execute_what_they_executed() {
    for value in [
        "/opt/\\x24{C} a",
        "/opt/$${C}$x$ ${C} $D $E $F",
        ":/opt/${C} ${C} $D",
        "@/opt/\\x24{C} ${C}$$ a",
        "@/bin/sh -sh -c 'a; b'",
        "@/bin/sh --argv0=x",
        "@/bin/sh \"\" a",
        "@/bin/sh \\; a",
        "-!@:\"/bin/a x\" 'n m' \\x3b",
        "\"-/bin/x\" %I %% \\x25i",
        "\\x2d/bin/%i%%n a",
        "x -1 $D",
        "-@x n \\; a",
        "/bin/\u{e9}\\xff '\\u20ac' \\q\\d",
        "/bin/x \\; \"\\;\" \\x3b",
    ] {
        compare(value);
    }
}

#[test]
fn random_lines_execute_what_they_executed() {
    const PIECES: &[&str] = &[
        "/",
        "/bin/x",
        "x",
        "@",
        "-",
        ":",
        "!",
        "!!",
        "+",
        " ",
        " ",
        " ",
        "\t",
        "\"",
        "'",
        "\\",
        "$",
        "$$",
        "${C}",
        "$D",
        "${",
        "}",
        "%%",
        "%i",
        "%n",
        "%I",
        "%",
        ";",
        "\\;",
        "\\x24",
        "\\x25",
        "\\x22",
        "\\x20",
        "\\n",
        "\\044",
        "\\u00e9",
        "\\U0001f600",
        "\\q",
        "--argv0=y",
        "--",
        "-p",
        "\u{e9}",
        "a",
        "=",
    ];
    let mut carried = 0;
    for seed in seeds::selected(0..80_000) {
        let mut rng = Rng::new(seed);
        let start = *rng.choose(&["/bin/x", "@/bin/x n", "x", "/opt/", "-:/a", ""]);
        let pieces = rng.range(0..=9);
        let value: String =
            (0..pieces).fold(start.to_owned(), |text, _| text + *rng.choose(PIECES));
        let value = value.trim();
        if line(value).is_ok_and(|own| !own.is_free) {
            compare(value);
            carried += 1;
        }
    }
    assert!(carried > seeds::least(10_000), "{carried}");
}

#[test]
fn what_systemd_refuses_or_runs_differently_is_refused() {
    for (value, why) in [
        ("y", "absolute path"),
        ("$X", "absolute path"),
        ("bin/x", "neither a name nor an absolute path"),
        ("!!!/bin/x", "neither a name nor an absolute path"),
        ("--/bin/x", "neither a name nor an absolute path"),
        ("|/bin/x", "neither a name nor an absolute path"),
        ("/bin/", "a folder"),
        ("-", "no program"),
        ("@", "no program"),
        ("/bin/a\\x22b", "a quote"),
        ("/bin/a\\\\b", "a quote"),
        ("/bin/a\\q", "a quote"),
        ("/bin/a\\nb", "a control character"),
        ("/bin/x \"a", "quotes don't end"),
        ("\"/bin/x", "quotes don't end"),
        ("/bin/x %z", "no specifier %z"),
        ("/bin/%z", "no specifier %z"),
        ("/bin/%I", "%I stands for"),
        ("%h/x", "%h stands for"),
        ("@/bin/x", "needs a second word"),
        ("@/bin/x ; a", "needs a second word"),
        ("@/bin/x $N a", "write it as `${NAME}`"),
        ("@/bin/x '$N' a", "write it as `${NAME}`"),
        ("/bin/x a ; /bin/y b", "several commands"),
        ("; /bin/x", "several commands"),
        ("';' /bin/x", "several commands"),
    ] {
        let refusal = line(value).expect_err(value);
        assert!(refusal.contains(why), "{value}: {refusal}");
    }
}

#[test]
fn ordinary_lines_change_as_little_as_possible() {
    let plain = Installer {
        program: Path::new("/bin/e"),
        subcommand: Some("exec"),
        filter: Path::new("/f"),
    };
    for (value, expected) in [
        (
            "/bin/x -g 'a b; c' $D ${E}",
            "/bin/e exec --keep-privs -p /f -- /bin/x -g 'a b; c' $D ${E}",
        ),
        ("!-/bin/x", "!-/bin/e exec --keep-privs -p /f -- /bin/x"),
        (
            "-@/bin/x name a",
            "-/bin/e exec --keep-privs -p /f --argv0=name -- /bin/x a",
        ),
        (
            "x -1 $P",
            "/bin/e exec --keep-privs -p /f --argv0=x -- /usr/bin/x -1 $P",
        ),
        ("+/bin/x a", "+/bin/x a"),
    ] {
        let own = line(value).unwrap();
        assert_eq!(own.under(&plain, true), format!("ExecStart={expected}"));
    }
}

#[test]
fn an_empty_assignment_forgets_those_before_it() {
    let assignment = |key: &str, value: &str| Assignment {
        section: "Service".to_owned(),
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let of_unit = |assignments: &[Assignment]| of_unit(assignments, UNIT, &|_| None);
    let mut assignments = vec![
        assignment("ExecStart", "/bin/a"),
        assignment("ExecStartPre", "/bin/b"),
        assignment("ExecStart", ""),
        assignment("ExecStart", "/bin/c"),
    ];
    let lines = of_unit(&assignments).unwrap();
    let texts: Vec<String> = lines.iter().map(CommandLine::as_it_is).collect();
    assert_eq!(texts, ["ExecStartPre=/bin/b", "ExecStart=/bin/c"]);
    assignments.push(assignment("PermissionsStartOnly", "yes"));
    let free: Vec<bool> = of_unit(&assignments)
        .unwrap()
        .iter()
        .map(|line| line.is_free)
        .collect();
    assert_eq!(free, [true, false]);
    assert!(of_unit(&[assignment("ExecPaths", "/bin")]).is_ok());
    let refusal = of_unit(&[assignment("ExecReloadPost", "/bin/d")]).unwrap_err();
    assert!(refusal.starts_with("ExecReloadPost=: "), "{refusal}");
}

#[test]
fn paths_of_the_installer_are_words_whatever_they_contain() {
    let word = |path: &[u8]| Writer::PLAIN.path(Path::new(OsStr::from_bytes(path)));
    use std::os::unix::ffi::OsStrExt as _;
    assert_eq!(word(b"/etc/a@b.service.d/x"), "/etc/a@b.service.d/x");
    assert_eq!(word(b"/etc/a\\x2db"), "\"/etc/a\\\\x2db\"");
    assert_eq!(word(b"/a b/100%"), "\"/a b/100%%\"");
    assert_eq!(word(b"/k\xfcrzer"), "\"/k\\xfcrzer\"");
    assert_eq!(word(b"/a\nb"), "\"/a\\x0ab\"");
}

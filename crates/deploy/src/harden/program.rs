//! systemd's checks of a program, and the specifiers of command lines.
//!
//! systemd rejects a unit whose program contains a quote, a backslash or a control character, is a folder or is too
//! long, but checks only the first word of a line. The drop-in makes the program an argument of the installer, so it is
//! checked here. Specifiers in it must have a known value, or a kind of value that always passes.

/// The limits of a path, with its terminating zero, and of a file name.
const MAX_PATH_BYTES: usize = 4096;
const MAX_NAME_BYTES: usize = 255;

/// The specifiers of units, of systemd 252 and newer.
const SPECIFIERS: &str = "aAbBcCdDEfgGhHiIjJlLmMnNopPqrRsStTuUvVwWyY";
/// The specifiers for letters and digits alone, and those for systemd's own folders.
const PLAIN: &str = "abmUG";
const FOLDERS: &str = "tSCLEd";

/// A program with resolved specifiers, for the checks; those of the machine have example values.
///
/// # Errors
/// If the value of a specifier may fail the checks or be expanded.
pub(super) fn resolved(program: &[u8], unit: &str) -> Result<Vec<u8>, String> {
    let stem = unit.rsplit_once('.').map_or(unit, |(stem, _)| stem);
    let (prefix, instance) = match stem.split_once('@') {
        Some((prefix, instance)) => (prefix, Some(instance)),
        None => (stem, None),
    };
    // A template has no instance yet.
    let instance = match instance {
        Some("") => "x",
        Some(instance) => instance,
        None => "",
    };
    let mut bytes = Vec::new();
    for part in parts(program) {
        let specifier = match part {
            Part::Bytes(own) => {
                bytes.extend(own);
                continue;
            }
            Part::Specifier(specifier) => specifier,
        };
        let value = match specifier {
            'n' => unit,
            'N' => stem,
            'p' => prefix,
            'i' => instance,
            'j' => prefix.rsplit_once('-').map_or(prefix, |(_, last)| last),
            _ if PLAIN.contains(specifier) => "x",
            _ if FOLDERS.contains(specifier) => "/x",
            _ if SPECIFIERS.contains(specifier) => {
                return Err(format!(
                    "what %{specifier} stands for isn't known here: write the path of the program"
                ));
            }
            _ => return Err(unknown(specifier)),
        };
        bytes.extend(value.as_bytes());
    }
    Ok(bytes)
}

/// Checks the specifiers of an argument.
///
/// # Errors
/// If systemd doesn't define one.
pub(super) fn check_specifiers(word: &[u8]) -> Result<(), String> {
    let unknown = parts(word).into_iter().find_map(|part| match part {
        Part::Specifier(specifier) if !SPECIFIERS.contains(specifier) => Some(unknown(specifier)),
        _ => None,
    });
    unknown.map_or(Ok(()), Err)
}

fn unknown(specifier: char) -> String {
    format!("systemd refuses it: there is no specifier %{specifier}")
}

enum Part<'w> {
    Bytes(&'w [u8]),
    Specifier(char),
}

/// Splits a word at specifiers: `%%` is a percent sign, and `%` without a letter or digit after it is itself.
fn parts(word: &[u8]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        let (before, behind) = rest.split_at(at);
        parts.push(Part::Bytes(before));
        let length = match behind.get(1) {
            Some(b'%') => {
                parts.push(Part::Bytes(&behind[..1]));
                2
            }
            Some(next) if next.is_ascii_alphanumeric() => {
                parts.push(Part::Specifier(char::from(*next)));
                2
            }
            next => {
                let length = 1 + usize::from(next.is_some());
                parts.push(Part::Bytes(&behind[..length]));
                length
            }
        };
        rest = &behind[length..];
    }
    parts.push(Part::Bytes(rest));
    parts
}

/// Checks a program as systemd does.
///
/// # Errors
/// systemd's reason.
pub(super) fn check(program: &[u8]) -> Result<(), &'static str> {
    let is_special = |byte: &u8| byte.is_ascii_control() || b"\"'\\".contains(byte);
    let is_file_name =
        |name: &[u8]| !matches!(name, b"" | b"." | b"..") && name.len() <= MAX_NAME_BYTES;
    if program.is_empty() {
        return Err("systemd refuses it: it has no program");
    }
    if program.iter().any(is_special) {
        return Err(
            "systemd refuses it: the path of the program has a quote, a backslash or a control character",
        );
    }
    if program.ends_with(b"/") {
        return Err("systemd refuses it: the program is a folder");
    }
    let is_valid = match program.starts_with(b"/") {
        true => {
            let mut names = program.split(|byte| *byte == b'/');
            program.len() < MAX_PATH_BYTES && names.all(|name| name.len() <= MAX_NAME_BYTES)
        }
        false => !program.contains(&b'/') && is_file_name(program),
    };
    match is_valid {
        true => Ok(()),
        false => Err("systemd refuses it: the program is neither a name nor an absolute path"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systemd_refuses_has_a_reason() {
        let long = format!("/{}", "a".repeat(256));
        let deep = "/a".repeat(2048);
        let bad = [
            "", "/a\"b", "/a'", "/a\\b", "/a\nb", "/a\x7f", "/a/", "a/b", "..", &long, &deep,
        ];
        for program in bad {
            assert!(check(program.as_bytes()).is_err(), "{program:?}");
        }
        for program in [
            "/a b",
            "/a$b",
            "/a;b",
            "//a/../b",
            "a.b",
            "/\u{e9}",
            &long[..256],
        ] {
            assert_eq!(check(program.as_bytes()), Ok(()), "{program:?}");
        }
    }

    #[test]
    fn specifiers_are_resolved_as_far_as_the_unit_is_known() {
        let of = |program: &str, unit| {
            resolved(program.as_bytes(), unit).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let unit = "a-b@c\\x2dd.service";
        assert_eq!(of("/%p/%i/%j%%%-%", unit).unwrap(), "/a-b/c\\x2dd/b%%-%");
        assert_eq!(of("/%n", "a.service").unwrap(), "/a.service");
        assert_eq!(of("/%N-%i", "a.service").unwrap(), "/a-");
        assert_eq!(of("%t/x", "a.service").unwrap(), "/x/x");
        for program in ["/%I", "/%h/x", "/%z", "/%9"] {
            assert!(of(program, unit).is_err(), "{program}");
        }
        assert_eq!(check_specifiers(b"%I %h %% %"), Ok(()));
        assert!(check_specifiers(b"a%zb").is_err());
    }
}

//! A parser without clap for the usual form of `tamis exec` in units and entrypoints: `-p FILE… -- COMMAND`.
//!
//! Clap describes every option before it parses the first word. That touches 70 pages of the program that are otherwise
//! unused before `execve`, and took a quarter of the time. All other forms, and errors, are left to clap.

use std::ffi::OsString;

use tamis_session::path_text::PathText;

use super::Args;

/// Parses the arguments after `tamis exec`; `None` unless they are policies, `--` and a command.
pub(super) fn parse(mut words: impl Iterator<Item = OsString>) -> Option<Args> {
    let mut policies = Vec::new();
    loop {
        match words.next()?.to_str()? {
            "-p" | "--policy" | "--filter" => policies.push(value(&words.next()?)?),
            "--" => break,
            _ => return None,
        }
    }
    let command: Vec<OsString> = words.collect();
    let is_plain = !policies.is_empty() && command.first().is_some_and(|name| name != "--");
    is_plain.then(|| Args {
        policies,
        argv0: None,
        keep_privs: false,
        flags: Default::default(),
        load: Default::default(),
        target: Default::default(),
        command,
    })
}

/// A word that clap can't take for an option.
fn value(word: &OsString) -> Option<String> {
    let bytes = word.as_encoded_bytes();
    (!bytes.is_empty() && !bytes.starts_with(b"-")).then(|| word.text())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::super::{ExecCommandLine, Global};
    use super::*;
    use clap::Parser;

    /// The results of both parsers.
    fn read(words: &[&[u8]]) -> [Option<String>; 2] {
        let words = words.iter().map(|word| OsString::from_vec(word.to_vec()));
        let words: Vec<OsString> = words.collect();
        let by_clap = ExecCommandLine::try_parse_from(["tamis".into()].iter().chain(&words));
        let by_clap = by_clap.ok().map(|all| (all.global, all.args));
        let plain = parse(words.into_iter()).map(|args| (Global::default(), args));
        [plain, by_clap].map(|read| read.map(|read| format!("{read:?}")))
    }

    #[test]
    fn a_plain_line_means_what_clap_makes_of_it() {
        for line in [
            &[&b"-p"[..], b"a.bpf", b"--", b"true"][..],
            &[
                b"--policy",
                b"a",
                b"--filter",
                b"b",
                b"--",
                b"sh",
                b"-c",
                b"--",
                b"-p",
            ],
            &[b"-p", b"k\xfcrz.bpf", b"--", b"w\xff", b"\xff", b""],
        ] {
            let [plain, by_clap] = read(line);
            assert!(plain.is_some() && plain == by_clap, "{plain:?} {by_clap:?}");
        }
    }

    #[test]
    fn everything_else_is_left_to_clap() {
        for line in [
            &[&b"-p"[..], b"a", b"true"][..],
            &[b"-pa", b"--", b"true"],
            &[b"--policy=a", b"--", b"true"],
            &[b"-p", b"a", b"--log", b"--", b"true"],
            &[b"-p", b"-", b"--", b"true"],
            &[b"-p", b"", b"--", b"true"],
            &[b"-p", b"--", b"--", b"true"],
            &[b"-p", b"a", b"--", b"--", b"true"],
            &[b"-p", b"a", b"--"],
            &[b"-p", b"a"],
            &[b"-p"],
            &[b"--", b"true"],
            &[],
        ] {
            assert_eq!(read(line)[0], None, "{line:?}");
        }
    }
}

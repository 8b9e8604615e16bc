//! Bytes and results as text, in the form of strace.

use std::fmt::Write;

use tamis_abi::{Arch, restart};

use super::errors;
use super::follow::Outcome;
use super::symbols::error_name;

/// Bytes between quotes, escaped as in C without trigraphs; octal escapes are short if no digit follows.
pub(super) fn quoted(bytes: &[u8], is_cut: bool) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            0x0b => text.push_str("\\v"),
            0x0c => text.push_str("\\f"),
            b'\r' => text.push_str("\\r"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => {
                let digit_follows = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
                let _ = match digit_follows {
                    true => write!(text, "\\{byte:03o}"),
                    false => write!(text, "\\{byte:o}"),
                };
            }
        }
    }
    text.push('"');
    if is_cut {
        text.push_str("...");
    }
    text
}

/// Calls whose result is an address.
const GIVE_ADDRESSES: [&str; 6] = ["brk", "mmap", "mmap2", "mremap", "shmat", "sbrk"];

/// The kernel-internal error of a call interrupted by a signal, and whether the kernel restarts the call.
pub(super) const fn interruption(code: i64) -> (&'static str, &'static str) {
    match code {
        restart::SYS => ("ERESTARTSYS", "To be restarted if SA_RESTART is set"),
        restart::NO_INTR => ("ERESTARTNOINTR", "To be restarted"),
        restart::NO_HAND => ("ERESTARTNOHAND", "To be restarted if no handler"),
        _ => ("ERESTART_RESTARTBLOCK", "Interrupted by signal"),
    }
}

/// The outcome of a call.
pub(super) fn outcome(arch: Option<Arch>, call: &str, outcome: Outcome) -> String {
    match outcome {
        Outcome::Never => "?".to_owned(),
        Outcome::Interrupted(code) => {
            let (name, meaning) = interruption(code);
            format!("? {name} ({meaning})")
        }
        Outcome::Returned(result) => match outcome.errno() {
            Some(errno) => failure(errno),
            None if result != 0 && GIVE_ADDRESSES.contains(&call) => match arch {
                Some(Arch::X86) => format!("{:#x}", result as u32),
                _ => format!("{result:#x}"),
            },
            None if call == "umask" => format!("0{result:02o}"),
            None => result.to_string(),
        },
    }
}

fn failure(errno: u16) -> String {
    match error_name(errno) {
        Some(name) => format!("-1 {name} ({})", errors::text(errno)),
        None => format!("-1 (errno {errno})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_escaped_as_in_c() {
        assert_eq!(quoted(b"a\"b\\c\n", false), "\"a\\\"b\\\\c\\n\"");
        assert_eq!(
            quoted(b"\x7fELF\x02\x01\x010", true),
            "\"\\177ELF\\2\\1\\0010\"..."
        );
        assert_eq!(quoted("é".as_bytes(), false), "\"\\303\\251\"");
    }

    #[test]
    fn outcomes_are_those_of_strace() {
        let of = |call, result| outcome(Some(Arch::X86_64), call, Outcome::Returned(result));
        assert_eq!(of("openat", 3), "3");
        assert_eq!(of("openat", -2), "-1 ENOENT (No such file or directory)");
        assert_eq!(of("mmap", 0x7f00_0000), "0x7f000000");
        assert_eq!(of("lseek", -4096), "-4096");
        assert_eq!(of("umask", 0o22), "022");
        assert_eq!(of("umask", 0), "000");
        assert_eq!(
            outcome(None, "read", Outcome::Interrupted(-512)),
            "? ERESTARTSYS (To be restarted if SA_RESTART is set)"
        );
        assert_eq!(outcome(None, "exit_group", Outcome::Never), "?");
    }
}

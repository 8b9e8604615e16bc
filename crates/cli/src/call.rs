//! System calls on the command line.

use tamis_abi::call::{self, Unknown};
use tamis_abi::{Arch, SeccompData, consts, entry_point, syscall};
use tamis_diag::code;
use tamis_diag::{Diagnostic, Sources, Span, suggest};
use tamis_session::Input;
use tamis_session::path_text::path_of;

use super::Failure;

/// Parses a call; errors have a label in its text.
pub fn parse(text: &str, default_arch: Arch) -> Result<SeccompData, Failure> {
    call::parse(text, default_arch).map_err(|error| {
        let mut sources = Sources::new();
        let source = sources.add("<call>", text);
        let (span, near) = match &error.unknown {
            None => (whole(source, text), None),
            Some(Unknown::Syscall(arch, name)) => {
                let known = || syscall::all(*arch).map(|(_, name)| name);
                let near = entry_point::call_of(name);
                let near = near.or_else(|| suggest::nearest(name, known()));
                (place(source, text, name), near)
            }
            Some(Unknown::Constant(arch, name)) => (
                place(source, text, name),
                suggest::nearest(name, consts::names(*arch)),
            ),
        };
        let mut diagnostic = Diagnostic::error(code::NOT_A_CALL, &error.message).label(span, "");
        diagnostic.help = near.map(|name| format!("did you mean `{name}`?"));
        Failure::Diagnostics(vec![diagnostic], sources)
    })
}

/// Rejects a call as the first argument if a later argument is the policy.
pub fn refuse_before_policy(input: &str, calls: &[String]) -> Result<(), Failure> {
    let is_file = |text: &str| path_of(text).is_file();
    let policy = calls.iter().find(|text| is_file(text));
    match policy.filter(|_| Input::embedded(input).is_none() && !path_of(input).exists()) {
        Some(policy) if input != "-" => Err(Failure::usage(
            format!("{input}: no such file"),
            format!("the policy comes before the calls: `{policy} '{input}'`"),
        )),
        _ => Ok(()),
    }
}

fn whole(source: tamis_diag::SourceId, text: &str) -> Span {
    let end = text.len() as u32;
    Span {
        source,
        start: 0,
        end,
    }
}

/// The position of a name in the text.
fn place(source: tamis_diag::SourceId, text: &str, name: &str) -> Span {
    let start = text.find(name).unwrap_or(0) as u32;
    let end = start + name.len() as u32;
    Span { source, start, end }
}

/// Splits a list at the commas that aren't between parentheses.
pub fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match (c, parts.last_mut()) {
            (',', _) if depth == 0 => parts.push(String::new()),
            (c, Some(part)) => part.push(c),
            _ => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_between_parentheses_belong_to_a_call() {
        let parts = split("getpid,socket(AF_INET, SOCK_STREAM),ioctl(3,4)");
        assert_eq!(
            parts,
            ["getpid", "socket(AF_INET, SOCK_STREAM)", "ioctl(3,4)"]
        );
    }
}

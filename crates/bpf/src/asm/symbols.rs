//! Names for constants: fields, actions, architectures, system call numbers.

use tamis_abi::{Action, ActionKind, Arch, Endian, Nr, Word, syscall};
use tamis_diag::{Diagnostic, Span, suggest};

use super::Step;
use crate::code;
use crate::packet::Ancillary;

/// The error for an unknown name.
fn unknown<'a>(
    what: &str,
    name: &str,
    span: Span,
    known: impl IntoIterator<Item = &'a str>,
) -> Diagnostic {
    let diagnostic =
        Diagnostic::error(code::UNKNOWN_NAME, format!("unknown {what} `{name}`")).label(span, "");
    match suggest::nearest(name, known) {
        Some(nearest) => diagnostic.help(format!("did you mean `{nearest}`?")),
        None => diagnostic,
    }
}

/// The byte offset of a field.
pub(super) fn field(name: &str, span: Span, endian: Endian) -> Step<u32> {
    let word = Word::all().find(|word| word.name() == name);
    word.map(|word| word.offset(endian)).ok_or_else(|| {
        let diagnostic = unknown("field", name, span, Word::all().map(Word::name)).note(
            "the fields are `nr`, `arch`, `ip.low`, `ip.high` and `argN.low`, `argN.high` for N \
             from 0 to 5",
        );
        Box::new(diagnostic)
    })
}

/// The value beside a packet with this name.
pub(super) fn ancillary(name: &str, span: Span) -> Step<Ancillary> {
    Ancillary::from_name(name).ok_or_else(|| {
        let names = Ancillary::ALL.into_iter().map(Ancillary::name);
        Box::new(unknown("value", name, span, names))
    })
}

/// The kind of an action by its name.
pub(super) fn action(name: &str, span: Span) -> Step<ActionKind> {
    ActionKind::from_name(name).ok_or_else(|| {
        let names = ActionKind::ALL.into_iter().map(ActionKind::name);
        let mut diagnostic = unknown("constant", name, span, names.chain(["arch", "nr"]));
        if syscall::is_known(name) {
            diagnostic = diagnostic.help(format!(
                "write `#nr(x86_64, {name})`, or another architecture"
            ));
        } else if let Some(arch) = Arch::from_name(name) {
            diagnostic = diagnostic.help(format!("write `#arch({arch})`"));
        } else if name.starts_with("AUDIT_ARCH_") {
            diagnostic = diagnostic.help("write `#arch(x86_64)` for an architecture");
        }
        Box::new(diagnostic)
    })
}

/// The return value of an action with data.
pub(super) fn action_ret(kind: ActionKind, data: u32, span: Span) -> Step<u32> {
    let data = u16::try_from(data).map_err(|_| {
        let message = format!("`{data}` does not fit 16 bits");
        let diagnostic = Diagnostic::error(code::NUMBER_TOO_LARGE, message)
            .label(span, "")
            .note("the data of an action has 16 bits");
        Box::new(diagnostic)
    })?;
    Ok(Action::new(kind, data).ret())
}

/// An architecture by its name.
pub(super) fn arch(name: &str, span: Span) -> Step<Arch> {
    let found = Arch::from_name(name);
    found.ok_or_else(|| {
        Box::new(unknown(
            "architecture",
            name,
            span,
            Arch::all().map(Arch::name),
        ))
    })
}

/// A system call number by its name.
pub(super) fn nr(arch: Arch, name: &str, span: Span) -> Step<Nr> {
    syscall::number(arch, name).ok_or_else(|| {
        let known = syscall::all(arch).map(|(_, known)| known);
        let diagnostic = unknown("system call", name, span, known)
            .note(format!("{arch} has no system call of this name"));
        Box::new(diagnostic)
    })
}

//! Rules that libseccomp refuses and names that it doesn't have, for the languages that hand each of their lines to it.

use tamis_diag::{Code, Diagnostic, Span};
use tamis_scmp::{AddError, Refusal};

use crate::near::nearest_call;

/// The warning for a name that libseccomp doesn't have, so that a program ignores the line.
pub(crate) fn unknown(code: Code, program: &str, name: &str, place: Span) -> Diagnostic {
    let message = format!("unknown system call `{name}`");
    let diagnostic =
        Diagnostic::warning(code, message).label(place, format!("{program} ignores the line"));
    match nearest_call(name) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    }
}

/// The error for a rule at a place; the tag of a rule is its place.
pub(crate) fn refused(code: Code, error: &AddError<Span>, place: Span) -> Box<Diagnostic> {
    let of = |message: String| Diagnostic::error(code, message).label(place, "");
    Box::new(match error {
        AddError::DefaultAction => {
            of("the rule has the action of calls without a rule".to_owned()).help("remove the line")
        }
        AddError::RepeatedArgument(argument) => {
            of(format!("two conditions test argument {}", argument.index()))
                .help("write one condition, or a line for each")
        }
        AddError::Refused {
            refusal: Refusal::Conflict(earlier),
            ..
        } => of("another rule has the same call and conditions, and another action".to_owned())
            .label(*earlier, "the other rule"),
        AddError::ReservedNumber => of("the number is reserved".to_owned()),
        AddError::AbsentCall(arch)
        | AddError::MultiplexedCall(arch)
        | AddError::Untranslatable(arch) => of(format!("{arch} has no such call")),
        _ => of("the rules of the call are too many or too entangled".to_owned()),
    })
}

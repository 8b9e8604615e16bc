//! What the languages have in common that hand each of their lines to libseccomp, for a machine with its other calls.

use tamis_abi::Arch;
use tamis_diag::{Code, Diagnostic, SourceId, Span};
use tamis_rules::Section;
use tamis_scmp::{AddError, Refusal};

use crate::near::nearest_call;

/// The sections of several machines. An architecture that a machine before has is left out; `read` has the sections of a
/// machine, or nothing after an error.
pub(crate) fn sections(
    machines: Vec<Arch>,
    mut read: impl FnMut(Arch) -> Option<Vec<Section>>,
) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for native in machines {
        let has = |arch| sections.iter().any(|section| section.arch == arch);
        if has(native) {
            continue;
        }
        let mut own = read(native).unwrap_or_default();
        own.retain(|section| !has(section.arch));
        sections.extend(own);
    }
    sections
}

/// The error for rules that have too many paths.
pub(crate) fn too_complex(code: Code, root: SourceId) -> Diagnostic {
    let message = "the conditions of a call have too many combinations";
    Diagnostic::error(code, message).label(Span::new(root, 0, 0), "")
}

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

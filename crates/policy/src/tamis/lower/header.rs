//! Selection of the architectures of a policy.

use tamis_abi::{Arch, syscall};
use tamis_diag::{Diagnostic, Span};

use super::stated_twice;
use crate::code;
use crate::sink::Sink;
use crate::tamis::ast::{Name, Statement, StatementKind};
use crate::tamis::names::suggest_from;
use crate::tamis::{Arches, TamisOptions};

/// The architectures of a policy.
pub(super) struct Selection {
    /// The architectures without duplicates, in the order of the sections; never empty.
    pub(super) arches: Vec<Arch>,
    /// The `arch` statement, if it determines the selection.
    stated: Option<Span>,
}

/// The selection: the caller's if exact, else the policy's, else the caller's.
pub(super) fn selection(
    statements: &[Statement],
    options: &TamisOptions,
    sink: &mut Sink,
) -> Option<Selection> {
    let mut stated: Option<(Vec<Arch>, Span)> = None;
    for statement in statements {
        let StatementKind::Arch(names) = &statement.kind else {
            continue;
        };
        if let Some((_, earlier)) = &stated {
            sink.report(stated_twice("arch", statement.span, *earlier));
            continue;
        }
        stated = Some((resolve(names, sink), statement.span));
    }
    let (mut arches, stated) = match (&options.arches, stated) {
        (Arches::UnlessStated(_), Some((arches, span))) => (arches, Some(span)),
        (Arches::Exactly(arches), Some((stated, span))) => {
            if !same_arches(arches, &stated) {
                sink.advise(overridden(arches, span));
            }
            (arches.clone(), None)
        }
        (Arches::UnlessStated(arches) | Arches::Exactly(arches), None) => (arches.clone(), None),
    };
    let mut seen = Vec::new();
    arches.retain(|arch| {
        let is_new = !seen.contains(arch);
        seen.push(*arch);
        is_new
    });
    if let Some(missing) = arches.iter().find(|arch| !syscall::has_table(**arch)) {
        let diagnostic = without_table(*missing);
        sink.report(match stated {
            Some(span) => diagnostic.label(span, "stated here"),
            None => diagnostic,
        });
        return None;
    }
    if arches.is_empty() && !sink.is_finished() && stated.is_none() {
        sink.report(
            Diagnostic::error(code::UNKNOWN_ARCH, "the policy has no architecture")
                .help("name them in the policy: `arch x86_64, aarch64`"),
        );
    }
    (!arches.is_empty()).then_some(Selection { arches, stated })
}

/// The error for an architecture whose tables were left out.
fn without_table(arch: Arch) -> Diagnostic {
    let message = format!("the calls of {arch} are not in this program");
    Diagnostic::error(code::UNKNOWN_ARCH, message)
        .note("it was built for x86_64, aarch64 and its own machine")
        .help("build it with the feature `architectures` of the crate `tamis`")
}

/// Whether two lists contain the same architectures in any order.
fn same_arches(one: &[Arch], other: &[Arch]) -> bool {
    one.iter().all(|arch| other.contains(arch)) && other.iter().all(|arch| one.contains(arch))
}

fn overridden(arches: &[Arch], stated: Span) -> Diagnostic {
    let names: Vec<&str> = arches.iter().map(|arch| arch.name()).collect();
    let message = format!("the policy is compiled for {} instead", names.join(", "));
    Diagnostic::warning(code::ARCH_OVERRIDDEN, message)
        .label(stated, "this statement has no effect")
        .note("the caller's architectures replace those of the policy")
        .help("omit `--arch` to use the policy's own")
}

impl Selection {
    /// The sections of an `on` block for these architectures.
    pub(super) fn scope(&self, names: &[Name], sink: &mut Sink) -> Vec<usize> {
        let mut scope = Vec::new();
        for arch in resolve(names, sink) {
            match self.arches.iter().position(|selected| *selected == arch) {
                Some(index) => scope.push(index),
                None => self.not_selected(arch, names, sink),
            }
        }
        scope
    }

    /// Reports an architecture that isn't selected, unless the caller chose the architectures: blocks for others
    /// are then expected.
    fn not_selected(&self, arch: Arch, names: &[Name], sink: &mut Sink) {
        let Some(stated) = self.stated else { return };
        let of_arch = |name: &&Name| Arch::from_name(&name.text) == Some(arch);
        let Some(name) = names.iter().find(of_arch) else {
            return;
        };
        sink.report(
            Diagnostic::warning(
                code::ARCH_NOT_SELECTED,
                format!("the policy is not for {arch}"),
            )
            .label(name.span, "this has no effect")
            .label(stated, "the policy's architectures"),
        );
    }
}

/// The architectures of these names, without duplicates.
fn resolve(names: &[Name], sink: &mut Sink) -> Vec<Arch> {
    let mut found: Vec<(Arch, Span)> = Vec::new();
    for name in names {
        let Some(arch) = Arch::from_name(&name.text) else {
            let diagnostic =
                Diagnostic::error(code::UNKNOWN_ARCH, format!("unknown architecture `{name}`"))
                    .label(name.span, "");
            sink.report(suggest_from(
                diagnostic,
                &name.text,
                Arch::all().map(Arch::name),
            ));
            continue;
        };
        match found.iter().find(|(known, _)| *known == arch) {
            Some((_, earlier)) => sink.report(stated_twice(arch.name(), name.span, *earlier)),
            None => found.push((arch, name.span)),
        }
    }
    found.into_iter().map(|(arch, _)| arch).collect()
}

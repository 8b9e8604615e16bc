//! Included files in other languages: their explicit rules, on the architectures of the including policy.
//!
//! A default, the action for other architectures and the requirements on the installer are those of the including policy
//! alone. An included profile of containers has its default reading: options for capabilities and kernels don't reach it.

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, Sources, Span};
use tamis_rules::Rule;

use super::include::ForeignFile;
use crate::code;
use crate::explicit;
use crate::front_end::ParseOptions;
use crate::included::not_of_language;
use crate::loader::Loader;
use crate::sink::Sink;

/// The rules of a file, by architecture.
type Sections = Vec<(Arch, Vec<Rule>)>;

/// The rules of the included files in other languages.
#[derive(Default)]
pub(super) struct ForeignRules {
    files: Vec<(Span, Sections)>,
}

impl ForeignRules {
    /// The rules of the file at this path of an `include` statement, for an architecture.
    pub(super) fn at(&self, path: Span, arch: Arch) -> &[Rule] {
        let file = self.files.iter().find(|(own, _)| *own == path);
        let mut sections = file.iter().flat_map(|(_, sections)| sections);
        let section = sections.find(|(own, _)| *own == arch);
        section.map_or(&[], |(_, rules)| rules)
    }
}

/// Reads the files for these architectures.
pub(super) fn read(
    files: &[ForeignFile],
    arches: &[Arch],
    sources: &mut Sources,
    loader: &mut dyn Loader,
    sink: &mut Sink,
) -> ForeignRules {
    let mut found = ForeignRules::default();
    let Some(native) = arches.first() else {
        return found;
    };
    let options = ParseOptions {
        asked_arches: arches.to_vec(),
        ..ParseOptions::new(*native).for_explicit_rules()
    };
    for file in files {
        if !file.front_end.has_separate_default {
            sink.report(without_default(file, sources));
            continue;
        }
        let read = (file.front_end.parse)(sources, file.source, loader, &options);
        let Some(ruleset) = read.parsed.ruleset else {
            sink.report(unreadable(file, &read.parsed.diagnostics, sources));
            continue;
        };
        for warning in read.parsed.diagnostics {
            sink.report(warning);
        }
        let mut sections = Vec::new();
        for arch in arches {
            match ruleset.section(*arch) {
                Some(section) => sections.push((*arch, explicit::rules(section))),
                None => sink.report(without_rules(file, *arch, sources)),
            }
        }
        found.files.push((file.path, sections));
    }
    found
}

/// The error for a file with mistakes. Its lines may be confidential, so of the first mistake it has the title of the
/// code, which quotes nothing.
fn unreadable(file: &ForeignFile, diagnostics: &[Diagnostic], sources: &Sources) -> Diagnostic {
    let error = diagnostics.iter().find(|own| own.is_error());
    let start = Span::new(file.source, 0, 0);
    let label = error.and_then(|own| own.labels.first());
    let mistake = label.map_or(start, |label| label.span);
    let diagnostic = not_of_language(
        file.front_end.title,
        code::INCLUDE_FAILED,
        sources.name(file.source),
        file.path,
        sources,
        mistake,
    );
    match error {
        Some(own) => diagnostic.note(format!("{}: {}", own.code.id, own.code.title)),
        None => diagnostic,
    }
}

/// The error for a file in a language whose policies state a default alone.
fn without_default(file: &ForeignFile, sources: &Sources) -> Diagnostic {
    let name = sources.name(file.source);
    let title = file.front_end.title;
    let message = format!("cannot include `{name}`: {title} has no rules apart from its default");
    Diagnostic::error(code::INCLUDE_FAILED, message)
        .label(file.path, "included here")
        .help("`tamis convert` writes it in the tamis language; include its rules without the `default`")
}

fn without_rules(file: &ForeignFile, arch: Arch, sources: &Sources) -> Diagnostic {
    let name = sources.name(file.source);
    let message = format!("cannot include `{name}`: it has no rules for {arch}");
    Diagnostic::error(code::INCLUDE_FAILED, message)
        .label(file.path, "included here")
        .help("select the architectures that both have: `arch x86_64`")
}

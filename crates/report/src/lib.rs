//! Reports of commands: one model for all forms of a result.
//!
//! A command computes its result, builds the document of its module, and prints it. A [`Document`] is plain data.
//! [`json`] is the form for programs, described member by member in `docs/schemas`. [`Display`](std::fmt::Display), or
//! a function `text` if the form has options, is the form for people. Some documents have charts as well. Members that
//! only the text needs are not serialised. Members that several documents share are defined once, in [`entry`] and
//! [`change`].
//!
//! This crate neither reads options nor opens files, and doesn't choose exit codes.
#![forbid(unsafe_code)]
#![expect(
    missing_docs,
    reason = "docs/schemas describes the fields by the same names"
)]

pub mod addition;
pub mod advisories;
pub mod audit;
pub mod bench;
pub mod bisect;
pub mod change;
pub mod combine;
pub mod compile;
pub mod convert;
pub mod decompile;
pub mod denial_event;
pub mod denied;
pub mod diagnostics;
pub mod diff;
pub mod disasm;
pub mod dump;
pub mod engines;
pub mod entry;
pub mod eval;
pub mod explain;
pub mod extent;
pub mod fuzz;
pub mod gap;
pub mod harden;
pub mod help;
pub mod inject;
pub mod installed;
pub mod learn;
pub mod lint;
pub mod live;
pub mod oci;
pub mod optimize;
pub mod packets;
pub mod passes;
pub mod place;
pub mod platforms;
pub mod precompile;
pub mod profile;
pub mod program;
pub mod prove;
pub mod record;
pub mod reduce;
pub mod run;
pub mod sandbox;
pub mod strace_table;
pub mod tables;
pub mod test;
pub mod trace;
mod upper_bits;

use diagnostics::DiagnosticEntry;
use serde::Serialize;

/// The report of a command.
pub trait Document: Serialize {
    /// The name of the document's schema, with its version.
    const SCHEMA: &'static str;

    /// The diagnostics other than the warnings about the inputs.
    fn diagnostics(&self) -> &[DiagnosticEntry] {
        &[]
    }
}

impl Document for diagnostics::DiagnosticsReport {
    const SCHEMA: &'static str = "tamis.diagnostics/1";

    fn diagnostics(&self) -> &[DiagnosticEntry] {
        &self.diagnostics
    }
}

macro_rules! documents {
    ($($document:ty = $schema:literal,)*) => {
        $(impl Document for $document {
            const SCHEMA: &'static str = $schema;
        })*
    };
}

documents! {
    advisories::AdvisoriesReport = "tamis.advisories/1",
    audit::AuditReport = "tamis.audit/1",
    bench::BenchReport = "tamis.bench/1",
    engines::EnginesReport = "tamis.bench-engines/1",
    gap::GapReport = "tamis.bench-gap/1",
    bisect::BisectReport = "tamis.bisect/1",
    combine::CombineReport = "tamis.combine/1",
    compile::CompileReport = "tamis.compile/1",
    convert::ConvertReport = "tamis.convert/1",
    decompile::DecompileReport = "tamis.decompile/1",
    denial_event::DenialEvent = "tamis.denied/1",
    denied::AuditReport = "tamis.explain-audit/1",
    diff::DiffReport = "tamis.diff/1",
    disasm::DisasmReport = "tamis.disasm/1",
    disasm::ExtendedReport = "tamis.disasm-extended/1",
    dump::DumpReport = "tamis.dump/1",
    eval::EvalReport = "tamis.eval/1",
    explain::ExplainReport = "tamis.explain/1",
    explain::ExplainCodeReport = "tamis.explain-code/1",
    fuzz::FuzzReport = "tamis.fuzz/1",
    harden::HardenReport = "tamis.harden/1",
    help::HelpReport = "tamis.help/1",
    inject::InjectReport = "tamis.inject/1",
    installed::InstalledReport = "tamis.libseccomp/1",
    learn::LearnReport = "tamis.learn/1",
    lint::LintReport = "tamis.lint/1",
    lint::LintChecksReport = "tamis.lint-checks/1",
    oci::OciReport = "tamis.oci/1",
    oci::OciAllowReport = "tamis.oci-allow/1",
    optimize::OptimizeReport = "tamis.optimize/1",
    packets::PacketsReport = "tamis.packets/1",
    passes::PassesReport = "tamis.passes/1",
    platforms::PlatformsReport = "tamis.platforms/1",
    precompile::PrecompileReport = "tamis.precompile/1",
    prove::ProveReport = "tamis.prove/1",
    record::RecordReport = "tamis.record/1",
    reduce::ReduceReport = "tamis.reduce/1",
    run::RunReport = "tamis.run/1",
    sandbox::SandboxReport = "tamis.sandbox/1",
    tables::Table<tables::ArchRow> = "tamis.tables.arches/1",
    tables::Table<tables::SyscallRow> = "tamis.tables.syscalls/1",
    tables::Table<tables::ConstantRow> = "tamis.tables.constants/1",
    tables::Table<tables::CodeRow> = "tamis.tables.codes/1",
    tables::Table<tables::OptionRow> = "tamis.tables.options/1",
    test::TestReport = "tamis.test/1",
    trace::TraceEvent = "tamis.trace/1",
}

/// An event as one line of JSON, with `schema` as its first member and without the newline.
fn line<D: Document>(event: &D) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Named<'a, D> {
        schema: &'static str,
        #[serde(flatten)]
        event: &'a D,
    }
    serde_json::to_string(&Named {
        schema: D::SCHEMA,
        event,
    })
}

/// A document as JSON: indented, with a final newline, with `schema` as its first member and `diagnostics` as its last:
/// the warnings about the inputs, and the errors of a failure.
///
/// # Errors
/// Never for the documents of this crate: their members have names.
pub fn json<D: Document>(document: &D, warnings: &[DiagnosticEntry]) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Named<'a, D> {
        schema: &'static str,
        #[serde(flatten)]
        document: &'a D,
        diagnostics: Vec<&'a DiagnosticEntry>,
    }
    let named = Named {
        schema: D::SCHEMA,
        document,
        diagnostics: warnings.iter().chain(document.diagnostics()).collect(),
    };
    let text = serde_json::to_string_pretty(&named)?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_comes_first() {
        let document = disasm::DisasmReport { insns: Vec::new() };
        let text = json(&document, &[]).unwrap();
        let expected =
            "{\n  \"schema\": \"tamis.disasm/1\",\n  \"insns\": [],\n  \"diagnostics\": []\n}\n";
        assert_eq!(text, expected);
    }
}

//! `tamis compile`: from a policy to the program that the kernel runs.

use std::fmt::Write;

use clap::ValueEnum;
use serde::Serialize;
use tamis_bpf::disasm;
use tamis_compiler::Compiled;

use super::disasm::{InsnEntry, insn_entries};
use crate::cli::load::{self, LoadArgs, Policy};
use crate::cli::output::OutputArgs;
use crate::cli::{Failure, Global, exit, output};
use crate::summary::{ArchSummary, summaries};

/// Compile a policy to a seccomp program
#[derive(clap::Args)]
#[command(after_help = "\
Without a policy the embedded `container-default` is compiled; `-` reads standard input. On a terminal \
the result is a summary and the readable program, otherwise the raw program: struct sock_filter[] in \
the byte order of the target, without a header, as bubblewrap, minijail0 and crun take it.
Examples:
  tamis compile policy.tamis -o filter.bpf
  tamis compile profile.json --arch x86_64 --arch x86 --stats -o filter.bpf
  tamis compile policy.tamis --emit rules")]
pub(crate) struct Args {
    /// The policy: a path, `-`, or the name of an embedded policy [default: container-default]
    policy: Option<String>,
    /// What to print
    #[arg(long, value_name = "FORM")]
    emit: Option<Emit>,
    /// Also say how long the program is and what calls cost, on standard error
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    compiler: CompilerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// What a compiled policy is printed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The raw program
    Bpf,
    /// Assembler text with comments
    Asm,
    /// A JSON document with the instructions and what they cost
    Json,
    /// The text form of the ruleset, before anything is compiled
    Rules,
}

/// What the compiler is to do.
#[derive(clap::Args, Debug)]
struct CompilerArgs {
    /// The passes to run, in order, separated by commas; `none` for none [default: all]
    #[arg(long, value_name = "NAMES")]
    passes: Option<String>,
    /// Stop the passes after this many changes, to find the one that matters
    #[arg(long, value_name = "COUNT")]
    fuel: Option<u64>,
    /// Say what each pass changed, on standard error
    #[arg(long)]
    remarks: bool,
}

/// The document for programs.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    policy: &'a str,
    length_insns: usize,
    kernel_length_insns: usize,
    arches: Vec<ArchSummary>,
    insns: Vec<InsnEntry>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let input = args.policy.as_deref().unwrap_or(load::DEFAULT_POLICY);
    if args.policy.is_none() {
        global.notice(&format!(
            "no policy given: compiling the embedded `{input}` (`-` reads standard input)"
        ));
    }
    let policy = args.load.load_policy(input, global)?;
    if args.emit == Some(Emit::Rules) {
        args.output.text(&policy.ruleset.to_string())?;
        return Ok(exit::OK);
    }
    let compiled = policy.compile(&args.compiler.options()?)?;
    if args.compiler.remarks {
        for remark in compiled.remarks() {
            global.notice(&remark.to_string());
        }
    }
    let emit = args.emit.or(global.json.then_some(Emit::Json));
    let shows_person = emit.is_none() && args.output.is_terminal();
    if args.stats || shows_person {
        crate::cli::message(&summary(&policy, &compiled));
    }
    match emit {
        Some(Emit::Json) => args.output.text(&output::json(&document(&policy, &compiled))?)?,
        Some(Emit::Asm) => args.output.text(&listing(&compiled))?,
        None if shows_person => args.output.text(&listing(&compiled))?,
        Some(Emit::Bpf | Emit::Rules) | None => {
            args.output.raw(&compiled.program().to_bytes(compiled.endian()))?;
        }
    }
    Ok(exit::OK)
}

impl CompilerArgs {
    fn options(&self) -> Result<tamis_compiler::Options, Failure> {
        let mut options = tamis_compiler::Options::default();
        options.fuel = self.fuel;
        if let Some(passes) = &self.passes {
            let names = passes.split(',').map(str::trim);
            let names = names.filter(|name| !name.is_empty() && *name != "none");
            options.passes = tamis_compiler::passes::select(names).map_err(|error| {
                Failure::usage(error.to_string(), "`tamis passes` lists them")
            })?;
        }
        Ok(options)
    }
}

fn listing(compiled: &Compiled) -> String {
    disasm::disassemble(compiled.program(), compiled.endian(), disasm::Style::Commented)
}

fn document<'a>(policy: &'a Policy, compiled: &Compiled) -> Document<'a> {
    Document {
        schema: "tamis.compile/1",
        policy: &policy.name,
        length_insns: compiled.program().len(),
        kernel_length_insns: tamis_bpf::convert::kernel_len_insns(compiled.program()),
        arches: summaries(&policy.ruleset, compiled),
        insns: insn_entries(compiled.program()),
    }
}

/// What the program costs, for a person.
fn summary(policy: &Policy, compiled: &Compiled) -> String {
    let program = compiled.program();
    let kernel = tamis_bpf::convert::kernel_len_insns(program);
    let mut text = format!(
        "{}: {} instructions ({kernel} in the kernel)\n",
        policy.name,
        program.len()
    );
    for arch in summaries(&policy.ruleset, compiled) {
        let ArchSummary { arch, calls, allowed, cacheable, mean_steps, max_steps } = arch;
        let _ = writeln!(
            text,
            "  {arch:<12} {allowed} of {calls} calls allowed, {cacheable} cached by the kernel; \
             {mean_steps:.1} steps on average, {max_steps} at most"
        );
    }
    text
}

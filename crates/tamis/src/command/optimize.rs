//! `tamis optimize`: smaller and faster filters, equivalent to existing ones of any origin.

use std::path::Path;

use clap::ValueEnum;
use tamis_bpf::{Program, Stack, disasm};
use tamis_compiler::{CompileError, CompileOptions, compile_any_length};
use tamis_deploy::tasks::unreadable;
use tamis_embed::annotation;
use tamis_kernel::dump;
use tamis_optimize::{Optimised, Split, optimise};
use tamis_prover::Subject;
use tamis_report::entry::{InputEntry, counted};
use tamis_report::optimize::OptimizeReport;
use tamis_session::{Loaded, NamedProgram};

use super::bpf::dump::write_all;
use crate::cli::certify::CertifyArgs;
use crate::cli::compiler::CompilerArgs;
use crate::cli::load::LoadArgs;
use crate::cli::output::{OutputArgs, document_json, print};
use crate::cli::side;
use crate::cli::{Failure, Global, exit, input, message};

/// Make filters smaller and faster, and merge a stack into one
#[derive(clap::Args)]
#[command(after_help = "\
Several inputs are a stack, the oldest first; a directory is the stack of its .bpf files, ordered by \
name. The result is proved equivalent to the inputs, for every call. It is never worse than the input; \
if nothing better is found, the result is the input.
Examples:
  tamis optimize filter.bpf -o better.bpf
  tamis optimize filters/ --stats -o fused.bpf
  tamis optimize --pid 4711 -o fused.bpf
  tamis optimize large.policy --split -o parts/
Exit status: 0 done, also without an improvement; 3 the result is too long for the kernel.")]
pub(crate) struct Args {
    /// The filters, the oldest first: paths or folders [default: -]
    #[arg(conflicts_with = "pid", value_parser = input::PolicyParser, hide_possible_values = true)]
    inputs: Vec<String>,
    /// Take the filters of a running process
    #[arg(short, long, value_name = "PID")]
    pid: Option<i32>,
    /// Produce several filters if one would be too long
    #[arg(long)]
    split: bool,
    /// What to print
    #[arg(long, value_name = "FORM")]
    emit: Option<Emit>,
    #[command(flatten)]
    certify: CertifyArgs,
    #[command(flatten)]
    compiler: CompilerArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The raw program; several are files in the directory named by `-o`
    Bpf,
    /// Assembler text with comments
    Asm,
    /// A JSON document with the instructions and their costs
    Json,
    /// The raw program in base64, the annotation of crun; for one filter
    Annotation,
}

/// The filters to optimise.
struct Inputs {
    inputs: Vec<InputEntry>,
    stack: Stack,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    for input in &args.inputs {
        args.output.refuse_to_replace_any(input)?;
    }
    args.output.refuse_to_replace_policy()?;
    args.certify.check_folder()?;
    if !matches!(args.form(global), None | Some(Emit::Json)) {
        args.output.refuse_beside_document(global)?;
    }
    let load = args.load.for_any_filter();
    let options = args.compiler.options(&load.options(), global)?;
    let given = match args.pid {
        Some(pid) => dumped(pid)?,
        None => read(args, &load, &options, global)?,
    };
    let split = match args.split {
        true => Split::IfTooLong,
        false => Split::Never,
    };
    let optimised = optimise(&given.stack, &options, split);
    let optimised = optimised.map_err(|error| bug(&error))?;
    let reported = args.compiler.stats.then_some(&options);
    let report = OptimizeReport::from_optimised(given.inputs, &optimised, reported);
    args.compiler.print_remarks(optimised.remarks());
    print_summary(args, &report, global);
    if !optimised.after().is_installable {
        return Err(too_long(args, &report));
    }
    let [before, after] = [given.stack.programs(), optimised.programs()].map(Subject::programs);
    let [before, after] = [&before, &after].map(|filters| Subject::whole(filters));
    args.certify
        .write(&before, &after, &options.proof, global)?;
    write(args, &report, &optimised, global)?;
    if args.output.is_beside_document(global) && args.emit != Some(Emit::Json) {
        print(document_json(&report)?.as_bytes())?;
    }
    Ok(exit::OK)
}

impl Inputs {
    fn new(programs: Vec<NamedProgram>) -> Result<Inputs, Failure> {
        let entry = |raw: &NamedProgram| InputEntry {
            name: raw.name.clone(),
            length_insns: Some(raw.program.len()),
        };
        Ok(Inputs {
            inputs: programs.iter().map(entry).collect(),
            stack: side::stack(programs)?,
        })
    }
}

impl Args {
    /// The selected form.
    fn form(&self, global: &Global) -> Option<Emit> {
        let is_document = global.json && !self.output.is_beside_document(global);
        self.emit.or(is_document.then_some(Emit::Json))
    }
}

/// The filters of a process.
fn dumped(pid: i32) -> Result<Inputs, Failure> {
    let programs = dump(pid).map_err(|error| unreadable(pid, &error))?;
    if programs.is_empty() {
        return Err(Failure::input(format!("process {pid} has no filters")));
    }
    let named = programs.into_iter().zip(0..).map(|(program, index)| {
        let name = format!("filter {index} of process {pid}");
        NamedProgram { name, program }
    });
    Inputs::new(named.collect())
}

/// The filters of the arguments; policies are compiled.
fn read(
    args: &Args,
    load: &LoadArgs,
    options: &CompileOptions,
    global: &Global,
) -> Result<Inputs, Failure> {
    let standard_input = ["-".to_owned()];
    let arguments = match args.inputs.as_slice() {
        [] => &standard_input,
        inputs => inputs,
    };
    let mut filters = Vec::new();
    for argument in arguments {
        filters.extend(side::read(argument, load, global)?.into_filters());
    }
    load.check_options(&filters)?;
    let programs = filters.into_iter().map(|filter| match filter {
        Loaded::Program(raw) => Ok(raw),
        Loaded::Policy(policy) => {
            let compiled = compile_any_length(&policy.ruleset, options);
            let compiled = compiled.map_err(|error| policy.compile_error(&error))?;
            let program = policy.program(&compiled)?.clone();
            let name = policy.name;
            Ok(NamedProgram { name, program })
        }
    });
    Inputs::new(programs.collect::<Result<_, Failure>>()?)
}

/// Prints a summary of the result on standard error, as requested.
fn print_summary(args: &Args, report: &OptimizeReport, global: &Global) {
    // The document contains the summary.
    if global.json || args.emit == Some(Emit::Json) {
        return;
    }
    let shows_person = args.emit.is_none() && args.output.is_terminal();
    if args.compiler.stats || shows_person {
        message(&report.to_string());
    } else if !report.rejected.is_empty() {
        global.notice(&report.in_brief());
    }
    for report in report.filters.iter().filter_map(|own| own.report.as_ref()) {
        message(&report.text());
    }
}

/// Writes the result in the selected form.
fn write(
    args: &Args,
    report: &OptimizeReport,
    optimised: &Optimised,
    global: &Global,
) -> Result<(), Failure> {
    let shows_person = args.output.is_terminal();
    match args.form(global) {
        Some(Emit::Json) => args.output.text(&document_json(report)?),
        Some(Emit::Asm) => args.output.text(&listing(optimised)),
        None if shows_person => args.output.text(&listing(optimised)),
        Some(Emit::Annotation) => match optimised.programs() {
            [program] => args.output.text(&annotation::text(&program.to_bytes())),
            programs => Err(Failure::usage(
                format!("the result is {} filters", programs.len()),
                "crun installs one; omit --split",
            )),
        },
        Some(Emit::Bpf) | None => match (optimised.programs(), &args.output.output) {
            (programs, Some(folder)) if args.split && is_folder(folder) => {
                write_all(programs, folder)
            }
            ([program], _) => args.output.raw(&program.to_bytes()),
            (programs, Some(folder))
                if is_folder(folder) || args.split && folder != Path::new("-") =>
            {
                write_all(programs, folder)
            }
            (programs, _) => Err(Failure::usage(
                format!("the result is {} filters, not one", programs.len()),
                "name a directory for them with `-o DIR/`, or choose `--emit asm`",
            )),
        },
    }
}

/// Whether a path is a folder or ends like one: then even a single filter is written into it.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn listing(optimised: &Optimised) -> String {
    let programs = optimised.programs().iter();
    let texts: Vec<String> = programs
        .map(|program| disasm::disassemble(program, disasm::Style::Commented))
        .collect();
    match texts.as_slice() {
        [single] => single.clone(),
        several => {
            let titled = several.iter().enumerate();
            let titled = titled.map(|(index, text)| format!("; filter {index}\n{text}"));
            titled.collect()
        }
    }
}

fn too_long(args: &Args, report: &OptimizeReport) -> Failure {
    let insns = counted(report.after.length_insns, "instruction");
    let filters = counted(report.after.filters, "filter");
    let help = match args.split {
        true => "a single system call needs more: simplify its conditions",
        false => "`--split` produces several filters within the kernel's limit",
    };
    Failure::gave_up(
        format!(
            "the best result exceeds the kernel's limit: {insns} in {filters}, \
             at most {} each",
            Program::MAX_INSNS
        ),
        Some(help.to_owned()),
    )
}

/// Errors of the optimiser are bugs of tamis.
fn bug(error: &CompileError) -> Failure {
    Failure::bug(
        error.to_string(),
        "please report this with the input; no program was written",
    )
}

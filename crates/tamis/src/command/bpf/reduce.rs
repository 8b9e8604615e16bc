//! `tamis bpf reduce`: a smaller policy or program with the same failure.

use std::path::Path;

use clap::ArgGroup;
use tamis_bpf::Program;
use tamis_bpf::disasm::{self, Style};
use tamis_fuzz::reduce;
use tamis_kernel::interrupt::Interrupts;
use tamis_report::reduce::ReduceReport;
use tamis_session::{Input, InputKind, Loaded, NamedProgram};

use crate::cli::load::{LoadArgs, read_input};
use crate::cli::output::{OutputArgs, show_beside};
use crate::cli::{Failure, Global, exit, input, quietly};

mod symptom;

use symptom::{Candidate, Symptom};

/// Reduce a policy or program that shows a failure
#[derive(clap::Args)]
#[command(group(ArgGroup::new("failure").required(true).args(["differs", "compile_fails", "reports", "test"])))]
#[command(after_help = "\
For bug reports, and to see what a difference depends on. The result is a valid policy or program of \
the same kind if the input is valid; none of the attempted reductions makes it smaller. Comments are \
removed, too.
Examples:
  tamis bpf reduce profile.json --differs theirs.bpf --call clone3 --keep clone
  tamis bpf reduce profile.json --reports TM0706
  tamis bpf reduce filter.bpf -o small.bpf --test 'other-tool {} | grep crash'
  tamis bpf reduce big.json --test 'timeout 5 tamis compile {} --quiet >/dev/null; test $? = 124'
Ctrl-C ends the reduction and writes what was reached until then.
Exit status: 2 if the input doesn't show the failure; 3 if it was interrupted.")]
pub(crate) struct Args {
    /// The policy or program: a path, `-`, or an embedded policy's name
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    input: String,
    /// It differs for a call from this policy, filter or stack
    ///
    /// Its action for that call stays the same.
    #[arg(long, value_name = "OTHER", value_parser = input::PolicyParser, hide_possible_values = true)]
    differs: Option<String>,
    /// The call that shows it [default: found by the prover]
    #[arg(long, requires = "differs")]
    call: Option<String>,
    /// Its action for this call stays; may be repeated
    #[arg(long, value_name = "CALL", requires = "differs")]
    keep: Vec<String>,
    /// Compiling it still fails, for the same reason
    #[arg(long)]
    compile_fails: bool,
    /// Parsing or linting it reports this code, as TM0706
    #[arg(long, value_name = "CODE")]
    reports: Option<String>,
    /// This shell command exits with 0; `{}` is the input
    ///
    /// That is a file with it. Without `{}` the file becomes the last argument.
    #[arg(long, value_name = "COMMAND")]
    test: Option<String>,
    /// An option for OTHER alone: of its language, or `from`, `include-dir` or `kernel`; may be repeated
    #[arg(long = "other", value_name = "NAME=VALUE", requires = "differs", hide_short_help = true,
          conflicts_with_all = ["compile_fails", "reports", "test"])]
    other_options: Vec<String>,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The report, and the result as text or as a raw program.
type Reduction = (ReduceReport, Vec<u8>);

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let input = read_input(&args.input, global)?;
    let kind = args.load.from.unwrap_or_else(|| input.kind());
    if kind == InputKind::Bpf && !global.json {
        args.output.refuse_terminal()?;
    }
    for read in [Some(&args.input), args.differs.as_ref()]
        .into_iter()
        .flatten()
    {
        args.output.refuse_to_replace_any(read)?;
    }
    args.output.check_folder()?;
    let load = args.load.for_comparison().with_kind(Some(kind));
    let symptom = Symptom::requested(args, &load, &input, global)?;
    // After an interrupt the current result is written.
    let interrupts = Interrupts::catch();
    let (report, bytes) = match kind {
        InputKind::Bpf | InputKind::Text(_) => {
            reduce_program(&load, input, kind, &symptom, &interrupts)?
        }
        _ => reduce_text(&load, input, &symptom, &interrupts)?,
    };
    let write = |output: &OutputArgs| match kind {
        InputKind::Bpf => output.raw(&bytes),
        _ => output.text(&report.text),
    };
    show_beside(&args.output, write, &report, global)?;
    if !global.json {
        global.notice(&report.to_string());
    }
    Ok(match interrupts.arrived() {
        true => {
            global.notice("interrupted: it may be reduced further");
            exit::GAVE_UP
        }
        false => exit::OK,
    })
}

/// Runs a test; after a signal, which may have ended the test's command too, its result is false.
fn counts(interrupts: &Interrupts, test: impl FnOnce() -> bool) -> bool {
    !interrupts.arrived() && test() && !interrupts.arrived()
}

/// The failure for an input without the symptom.
fn not_shown(symptom: &Symptom, name: &str, interrupts: &Interrupts) -> Failure {
    match interrupts.arrived() {
        true => Failure::gave_up(
            format!("interrupted before it was known whether {name} shows the failure"),
            Some("let the first test end".to_owned()),
        ),
        false => symptom.not_shown_by(name),
    }
}

/// Reduces the text of a policy. A text that parses is reduced to one that parses.
fn reduce_text(
    load: &LoadArgs,
    input: Input,
    symptom: &Symptom,
    interrupts: &Interrupts,
) -> Result<Reduction, Failure> {
    let name = input.name.clone();
    let Ok(given) = String::from_utf8(input.bytes) else {
        return Err(Failure::input(format!("{name} is not UTF-8 text")));
    };
    let read = |text: &str| {
        let input = Input {
            name: name.clone(),
            bytes: text.as_bytes().to_vec(),
        };
        quietly(|| load.load_input(input))
    };
    let must_be_readable = matches!(read(&given), Some(Ok(_)));
    let mut tests = 0;
    let mut shows = |text: &str| {
        tests += 1;
        let loaded = read(text);
        if must_be_readable && !matches!(loaded, Some(Ok(_))) {
            return Ok(false);
        }
        symptom.is_shown_by(&Candidate {
            bytes: text.as_bytes(),
            loaded: loaded.as_ref(),
        })
    };
    if !shows(&given)? {
        return Err(not_shown(symptom, &name, interrupts));
    }
    let mut failure = None;
    let mut text = reduce::text(&given, &mut |text| {
        counts(interrupts, || or_failure(shows(text), &mut failure))
    });
    let complete = format!("{}\n", text.trim_end());
    if complete.len() > 1 && counts(interrupts, || or_failure(shows(&complete), &mut failure)) {
        text = complete;
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    let bytes = text.clone().into_bytes();
    let report = ReduceReport {
        input: name,
        unit: "bytes",
        before: given.len(),
        after: text.len(),
        tests,
        text,
    };
    Ok((report, bytes))
}

fn reduce_program(
    load: &LoadArgs,
    input: Input,
    kind: InputKind,
    symptom: &Symptom,
    interrupts: &Interrupts,
) -> Result<Reduction, Failure> {
    let Loaded::Program(given) = load.load_input(input)? else {
        return Err(Failure::input("expected a program"));
    };
    let NamedProgram { name, program } = given;
    let text = |program: &Program| disasm::disassemble(program, Style::Commented);
    let bytes = |program: &Program| match kind {
        InputKind::Text(_) => text(program).into_bytes(),
        _ => program.to_bytes(),
    };
    let mut tests = 0;
    let mut shows = |program: &Program| {
        tests += 1;
        let loaded = Ok(Loaded::Program(NamedProgram {
            name: name.clone(),
            program: program.clone(),
        }));
        symptom.is_shown_by(&Candidate {
            bytes: &bytes(program),
            loaded: Some(&loaded),
        })
    };
    if !shows(&program)? {
        return Err(not_shown(symptom, &name, interrupts));
    }
    let mut failure = None;
    let small = reduce::program(&program, &mut |program| {
        counts(interrupts, || or_failure(shows(program), &mut failure))
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    let report = ReduceReport {
        input: name,
        unit: "instructions",
        before: program.len(),
        after: small.len(),
        tests,
        text: text(&small),
    };
    Ok((report, bytes(&small)))
}

/// The result of a test. The first failure to run one is kept; from then on results are false.
fn or_failure(shown: Result<bool, Failure>, failure: &mut Option<Failure>) -> bool {
    if failure.is_some() {
        return false;
    }
    shown.unwrap_or_else(|error| {
        *failure = Some(error);
        false
    })
}

fn no_failure(name: &str) -> Failure {
    Failure::usage(
        format!("{name} doesn't show the failure"),
        "name a failure that it shows; `--test` runs its command with `sh -c`",
    )
}

/// The name of the file for a test command.
fn file_name(input: &Input) -> String {
    let name = Path::new(&input.name).file_name();
    let name = name.and_then(|name| name.to_str()).unwrap_or("input");
    name.replace(['<', '>'], "")
}

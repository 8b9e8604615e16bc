//! `tamis bench`: what filters cost on this machine.

mod report;

use tamis_abi::{Action, SeccompData, syscall};
use tamis_bpf::{Op, Program, Stack, cache, harmless::harmless};
use tamis_diag::suggest;
use tamis_kernel::InstallError;
use tamis_kernel::measure::{self, Call, MeasureError, Measured, Measurement, Rounds, Workload};

use crate::cli::load::{self, LoadArgs, Loaded};
use crate::cli::side::Side;
use crate::cli::target::TargetArgs;
use crate::cli::{Failure, Global, exit, output};

/// Time real system calls under filters
#[derive(clap::Args)]
#[command(after_help = "\
A filter is a policy or a program; a stack is given as a list with commas or a folder, the oldest first. Its \
answers other than allow become errors, so that nothing dies. No filter, the empty filter and the smallest \
one that the kernel has to run each time are measured along with it.
Calls are made as they are if they do nothing, or with arguments that the kernel refuses at once; others \
are left out, and the report says why.
Examples:
  tamis bench container-default
  tamis bench old.bpf new.bpf --calls read,write,futex --rounds 20")]
pub(crate) struct Args {
    /// What to measure
    #[arg(required = true, value_name = "FILTER")]
    filters: Vec<String>,
    /// The calls to time [default: getpid,getppid,close,ioctl]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    calls: Vec<String>,
    /// How many times each filter is installed and measured anew
    #[arg(long, value_name = "NUMBER", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    target: TargetArgs,
}

/// The error that calls get where a filter would do worse; `ENOSYS`.
const DENIED_ERRNO: u16 = 38;
/// The byte offset of the low half of the first argument on little-endian machines; on others it is
/// the high half, which serves as well.
const ARG0_OFFSET: u32 = 16;

/// What is measured: no filter, one, or several.
struct Subject {
    name: String,
    /// As they are meant.
    original: Stack,
    /// As they are installed.
    tame: Stack,
}

/// What is called.
struct Calls {
    made: Vec<(Call, SeccompData)>,
    /// Calls that were asked for, and why they are not made.
    left_out: Vec<(String, &'static str)>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let calls = calls(&args.calls)?;
    let subjects = subjects(args, global)?;
    if !tamis_kernel::probe().filter_mode.is_present() {
        return Err(Failure::environment(
            "this kernel has no seccomp filters, or a filter installed before hides them",
        ));
    }
    let stacks: Vec<Vec<Program>> = subjects
        .iter()
        .map(|subject| subject.tame.programs().to_vec())
        .collect();
    let data: Vec<SeccompData> = calls.made.iter().map(|(_, data)| *data).collect();
    let workload = Workload::of_calls(&data);
    let rounds = Rounds::exactly(args.rounds);
    let measurement = measure::measure_workload(&stacks, &workload, rounds, &mut |_| {})
        .map_err(|error| refusal(&error, &subjects))?;
    let report = report::Document::new(&subjects, &calls, &measurement);
    if global.json {
        output::print_json(&report)?;
    } else {
        output::print(report.text().as_bytes())?;
    }
    Ok(exit::OK)
}

/// The calls with these names, or the usual ones.
fn calls(names: &[String]) -> Result<Calls, Failure> {
    let usual = measure::calls::DEFAULT.map(str::to_owned);
    let names = if names.is_empty() { &usual[..] } else { names };
    let arch = load::native_arch();
    let mut calls = Calls {
        made: Vec::new(),
        left_out: Vec::new(),
    };
    for (index, name) in names.iter().enumerate() {
        if !syscall::is_known(name) {
            let help = match suggest::nearest(name, syscall::names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`tamis tables syscalls` lists the names".to_owned(),
            };
            return Err(Failure::usage(format!("no system call `{name}`"), help));
        }
        if names[..index].contains(name) {
            continue;
        }
        match Call::find(name).map(|call| (call, call.data(arch))) {
            Ok((call, Some(data))) => calls.made.push((call, data)),
            Ok((_, None)) => {
                let reason = "this architecture has no such call";
                calls.left_out.push((name.clone(), reason));
            }
            Err(reason) => calls.left_out.push((name.clone(), reason)),
        }
    }
    if let ([], [(name, reason), ..]) = (calls.made.as_slice(), calls.left_out.as_slice()) {
        return Err(Failure::usage(
            format!("none of the calls can be timed: {name}: {reason}"),
            "name others with `--calls`, for instance getpid,read,write",
        ));
    }
    Ok(calls)
}

/// The baselines, then what the user named.
fn subjects(args: &Args, global: &Global) -> Result<Vec<Subject>, Failure> {
    let allow = Op::RetImm(Action::ALLOW.ret());
    let mut subjects = vec![
        Subject::new("no filter", Vec::new())?,
        Subject::new("empty", vec![baseline(&[allow])])?,
        Subject::new(
            "uncacheable",
            vec![baseline(&[Op::LoadData(ARG0_OFFSET), allow])],
        )?,
    ];
    let load = args.load.for_filter();
    let sides: Vec<Side> = args
        .filters
        .iter()
        .map(|filter| Side::read(filter, &load, global))
        .collect::<Result<_, _>>()?;
    let inputs = || sides.iter().flat_map(Side::filters);
    load.check_profile_options(inputs())?;
    load.check_arches(inputs())?;
    let compiles = inputs().any(|input| matches!(input, Loaded::Policy(_)));
    args.target.check_use(compiles)?;
    let options = args.target.options(&load, global)?;
    for side in sides {
        let name = side.name.clone();
        let programs = side.into_filters().into_iter();
        let programs: Vec<Program> = programs
            .map(|filter| Ok(filter.into_program_for(&options)?.program))
            .collect::<Result<_, Failure>>()?;
        subjects.push(Subject::new(&name, programs)?);
    }
    Ok(subjects)
}

fn baseline(ops: &[Op]) -> Program {
    let insns = ops.iter().copied().map(Into::into).collect();
    Program::new(insns).expect("a load of an argument and a return are valid")
}

impl Subject {
    fn new(name: &str, programs: Vec<Program>) -> Result<Subject, Failure> {
        let tame = programs
            .iter()
            .map(|program| harmless(program, DENIED_ERRNO))
            .collect::<Result<_, _>>()
            .map_err(|error| Failure::input(format!("{name} can't be measured: {error}")))?;
        Ok(Subject {
            name: name.to_owned(),
            original: Stack::new(programs),
            tame: Stack::new(tame),
        })
    }

    /// Whether there are filters and the kernel never runs any of them for this call.
    fn is_cached(&self, call: &SeccompData) -> bool {
        let programs = self.tame.programs();
        let mut each = programs.iter();
        !programs.is_empty() && each.all(|program| cache::is_cacheable(program, call.arch, call.nr))
    }
}

/// Why nothing was measured.
fn refusal(error: &MeasureError, subjects: &[Subject]) -> Failure {
    let (subject, help) = match error {
        // The answer of a filter made harmless, not the kernel's.
        MeasureError::Install {
            subject,
            filter,
            error: InstallError::NotAvailable,
        } if *filter > 0 => {
            let name = &subjects[*subject].name;
            return Failure::usage(
                format!(
                    "nothing was measured: {name}: a filter of the stack denies seccomp, so that the next can't be installed"
                ),
                "each filter of a stack must allow seccomp, but for the newest",
            );
        }
        MeasureError::Install { subject, error, .. } => (Some(*subject), Some(error.way_out())),
        MeasureError::Died { subject, .. } | MeasureError::TimedOut { subject } => {
            (Some(*subject), None)
        }
        _ => (None, None),
    };
    let name = subject.map_or_else(String::new, |subject| {
        format!("{}: ", subjects[subject].name)
    });
    Failure::Message {
        message: format!("nothing was measured: {name}{error}"),
        help,
        code: match error {
            MeasureError::TooManyCalls => exit::USAGE,
            _ => exit::ENVIRONMENT,
        },
    }
}

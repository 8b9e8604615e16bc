//! The cost of catching a call on each platform, with the kernel's own time and its own answer for comparison.
//!
//! All subjects are measured in turn, in several rounds, so that a busy machine slows all of them. Guest and supervisor
//! run on one CPU, and on separate CPUs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tamis_abi::{Action, ActionKind, SeccompData};
use tamis_bpf::{Op, Program, Test};
use tamis_kernel::errno::Errno;
use tamis_kernel::interrupt::Interrupts;
use tamis_kernel::spawn::Spawn;
use tamis_kernel::{Ended, Flags, NATIVE_ENDIAN, affinity};
use tamis_platform::{Answer, Guest, Isolation, Options, Placement, Platform, Supervisor, Task};
use tamis_report::platforms::{AdviceEntry, FigureEntry};
use tamis_session::path_text::PathText;

use super::guest::{self, Operation, nr};
use super::peer::Peer;
use tamis_cli::Failure;
use tamis_cli::private::Scratch;
use tamis_cli::progress::Progress;

/// A measured case: the name, the operation, the number of batches and of operations per batch, and the caught calls.
struct Case {
    name: &'static str,
    workload: &'static str,
    operation: Operation,
    batches: u32,
    per_batch: u32,
    caught: &'static [u32],
}

static CASES: [Case; 6] = [
    Case {
        name: "null",
        workload: "calls answered by their numbers",
        operation: Operation::Null,
        batches: 40,
        per_batch: 100,
        caught: &[nr::GETPPID],
    },
    Case {
        name: "pointer",
        workload: "calls whose memory the supervisor reads",
        operation: Operation::Pointer,
        batches: 40,
        per_batch: 100,
        caught: &[nr::GETPGID],
    },
    Case {
        name: "read",
        workload: "calls whose memory the supervisor writes",
        operation: Operation::Read,
        batches: 40,
        per_batch: 100,
        caught: &[nr::READ],
    },
    Case {
        name: "blocking",
        workload: "calls that block",
        operation: Operation::Blocking,
        batches: 20,
        per_batch: 20,
        caught: &[nr::NANOSLEEP],
    },
    Case {
        name: "fault",
        workload: "page faults",
        operation: Operation::Fault,
        batches: 40,
        per_batch: 100,
        caught: &[],
    },
    Case {
        name: "fork",
        workload: "starting processes",
        operation: Operation::Fork,
        batches: 15,
        per_batch: 4,
        caught: &[nr::FORK, nr::WAIT4, nr::EXIT_GROUP],
    },
];

/// The executor of the calls.
#[derive(Clone, Copy)]
enum Subject<'a> {
    Native,
    /// The kernel, by the errno of a filter.
    Errno,
    Platform(&'static dyn Platform),
    /// A command that runs the guest.
    Peer(&'a Peer),
}

impl<'a> Subject<'a> {
    fn name(self) -> &'a str {
        match self {
            Subject::Native => "native",
            Subject::Errno => "errno",
            Subject::Platform(platform) => platform.name(),
            Subject::Peer(peer) => &peer.name,
        }
    }
}

/// The figures, and the problems of the measurement.
pub(super) struct Measured {
    pub(super) figures: Vec<FigureEntry>,
    pub(super) advice: Vec<AdviceEntry>,
    pub(super) notes: Vec<String>,
    /// A signal ended the measurement.
    pub(super) is_cut_short: bool,
}

/// A figure, collected over the rounds.
struct Row<'a> {
    case: &'static Case,
    cpus: usize,
    subject: Subject<'a>,
    batches: Vec<f64>,
    /// The reason for the absence of the figure.
    problem: Option<String>,
}

/// Measures the working platforms, and other programs that run guests, in this many rounds, or until an interrupt.
pub(super) fn measure(
    platforms: &[&'static dyn Platform],
    peers: &[Peer],
    rounds: usize,
    interrupts: &Interrupts,
    mut progress: Progress,
) -> Result<Measured, Failure> {
    let cpus = affinity::allowed()
        .map_err(|errno| Failure::environment(format!("the CPUs are unknown: {errno}")))?;
    let folder = Folder::new()?;
    let mut rows = rows(platforms, peers, cpus.len().min(2));
    let steps = (rounds * rows.len()).max(1) as f64;
    'rounds: for round in 0..rounds {
        let done = round * rows.len();
        for (at, row) in rows.iter_mut().enumerate() {
            if interrupts.arrived() {
                break 'rounds;
            }
            let words = format!("{}, {}", row.subject.name(), row.case.name);
            progress.show((done + at) as f64 / steps, &words);
            if row.problem.is_some() {
                continue;
            }
            let placement = placement(&cpus, row.cpus);
            match folder.run(row.case, row.subject, placement) {
                Ok(batches) => row.batches.extend(batches),
                // The signal is for guests as well.
                Err(_) if interrupts.arrived() => break 'rounds,
                Err(problem) => row.problem = Some(problem),
            }
        }
    }
    let notes = rows.iter().filter_map(|row| {
        let problem = row.problem.as_ref()?;
        let case = row.case.name;
        Some(format!("{}, {case}: {problem}", row.subject.name()))
    });
    let mut notes: Vec<String> = notes.collect();
    notes.dedup();
    if cpus.len() < 2 {
        notes.push("there is one CPU only".to_owned());
    }
    let is_cut_short = interrupts.arrived();
    if is_cut_short {
        notes.push("interrupted: what was measured until then".to_owned());
    }
    let figures = figures(&rows);
    Ok(Measured {
        is_cut_short,
        advice: advice(platforms, &figures),
        figures,
        notes,
    })
}

fn rows<'a>(platforms: &[&'static dyn Platform], peers: &'a [Peer], cpus: usize) -> Vec<Row<'a>> {
    let own = [Subject::Native, Subject::Errno];
    let all = platforms
        .iter()
        .map(|platform| Subject::Platform(*platform));
    let peers = peers.iter().map(Subject::Peer);
    let subjects: Vec<Subject<'_>> = own.into_iter().chain(all).chain(peers).collect();
    let mut rows = Vec::new();
    for case in &CASES {
        for cpus in 1..=cpus {
            for subject in &subjects {
                let forks = case.operation == Operation::Fork;
                let is_possible = match subject {
                    Subject::Platform(platform) => platform.caps().has_forks || !forks,
                    // The kernel executes the calls of other cases; an errno would skip the measured work.
                    Subject::Errno => case.operation == Operation::Null,
                    Subject::Native | Subject::Peer(_) => true,
                };
                if is_possible {
                    rows.push(Row {
                        case,
                        cpus,
                        subject: *subject,
                        batches: Vec::new(),
                        problem: None,
                    });
                }
            }
        }
    }
    rows
}

/// Interrupts tend to go to the first CPU, so the guest runs on the last.
fn placement(cpus: &[usize], count: usize) -> Placement {
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    match count {
        1 => Placement::Same(last),
        _ => Placement::Apart {
            guest: last,
            supervisor: first,
        },
    }
}

fn figures(rows: &[Row<'_>]) -> Vec<FigureEntry> {
    let least = |row: &Row<'_>| row.batches.iter().copied().fold(f64::INFINITY, f64::min);
    let native = |of: &Row<'_>| {
        let is_native = |row: &&Row<'_>| {
            matches!(row.subject, Subject::Native)
                && (row.case.name, row.cpus) == (of.case.name, of.cpus)
        };
        rows.iter().find(is_native).map(least)
    };
    let mut entries = Vec::new();
    for row in rows.iter().filter(|row| !row.batches.is_empty()) {
        let mut sorted = row.batches.clone();
        sorted.sort_by(f64::total_cmp);
        let min_ns = sorted[0];
        entries.push(FigureEntry {
            case: row.case.name,
            cpus: row.cpus,
            subject: row.subject.name().to_owned(),
            min_ns,
            median_ns: sorted[sorted.len() / 2],
            ratio: native(row)
                .filter(|native| native.is_finite() && *native > 0.0)
                .map(|native| min_ns / native),
        });
    }
    entries
}

/// The fastest platform with an address space of its own, for each workload.
fn advice(platforms: &[&'static dyn Platform], figures: &[FigureEntry]) -> Vec<AdviceEntry> {
    let is_safe = |name: &str| {
        let mut named = platforms.iter().filter(|platform| platform.name() == name);
        named.any(|platform| platform.caps().isolation > Isolation::None)
    };
    let best = |case: &Case| {
        let figures = figures.iter();
        let candidates =
            figures.filter(|figure| figure.case == case.name && is_safe(&figure.subject));
        let best = candidates.min_by(|a, b| a.min_ns.total_cmp(&b.min_ns))?;
        Some(AdviceEntry {
            workload: case.workload,
            platform: best.subject.clone(),
            cpus: best.cpus,
            ratio: best.ratio?,
        })
    };
    CASES.iter().filter_map(best).collect()
}

/// A folder for guests and their readings.
struct Folder(Scratch);

impl Folder {
    fn new() -> Result<Folder, Failure> {
        Scratch::new("platforms").map(Folder)
    }

    /// The times of an operation in each batch.
    fn run(
        &self,
        case: &Case,
        subject: Subject<'_>,
        placement: Placement,
    ) -> Result<Vec<f64>, String> {
        let (program, readings) = (self.0.path().join("guest"), self.0.path().join("readings"));
        self.write(case, &program, &readings)
            .map_err(|error| error.to_string())?;
        let ended = run_guest(case, &program, subject, placement)?;
        if ended != Ended::Exited(0) {
            return Err(format!("the guest ended with {ended:?}"));
        }
        let bytes = fs::read(&readings).map_err(|error| error.to_string())?;
        fs::remove_file(&readings).map_err(|error| error.to_string())?;
        let figures = guest::figures(&bytes, case.per_batch);
        match figures.is_empty() {
            true => Err("the guest wrote nothing".to_owned()),
            false => Ok(figures),
        }
    }

    fn write(&self, case: &Case, program: &Path, readings: &Path) -> std::io::Result<()> {
        let path = readings.text();
        let bytes = guest::program(case.operation, case.batches, case.per_batch, &path);
        fs::write(program, bytes)?;
        fs::set_permissions(program, fs::Permissions::from_mode(0o700))
    }
}

fn run_guest(
    case: &Case,
    program: &Path,
    subject: Subject<'_>,
    placement: Placement,
) -> Result<Ended, String> {
    let (Placement::Same(cpu) | Placement::Apart { guest: cpu, .. }) = placement else {
        return Err("without a CPU".to_owned());
    };
    match subject {
        Subject::Native => run_alone(program, None, cpu).map_err(|error| error.to_string()),
        Subject::Errno => {
            let filter = filter(case.caught, Action::errno(1));
            run_alone(program, Some(&filter), cpu).map_err(|error| error.to_string())
        }
        Subject::Peer(peer) => peer.run(program, placement),
        Subject::Platform(platform) => {
            let filter = filter(case.caught, Action::new(ActionKind::Notify, 0));
            let guest = Guest {
                program: program.into(),
                args: Vec::new(),
                filter: &filter,
                has_results: false,
            };
            let options = Options {
                placement,
                ..Options::default()
            };
            let ended = platform.run(&guest, &Answering, &options);
            ended.map_err(|error| error.to_string())
        }
    }
}

/// Runs the guest on a CPU without a supervisor.
fn run_alone(
    program: &Path,
    filter: Option<&Program>,
    cpu: usize,
) -> Result<Ended, Box<dyn std::error::Error>> {
    let mut spawn = Spawn::new(program);
    spawn.filters = filter
        .map(|filter| (filter, Flags::NONE))
        .into_iter()
        .collect();
    let held = spawn.start()?;
    affinity::keep_on(held.pid(), cpu)?;
    let mut child = held.release();
    let ended = child.wait()?;
    match child.error() {
        Some(error) => Err(error.into()),
        None => Ok(ended),
    }
}

/// A filter that returns this action for some calls and allows the rest.
fn filter(caught: &[u32], action: Action) -> Program {
    let mut ops = vec![Op::LoadData(0)];
    for nr in caught {
        ops.push(Op::branch(Test::Eq, *nr, 0, 1));
        ops.push(Op::RetImm(action.ret()));
    }
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    let insns = ops.into_iter().map(Into::into).collect();
    Program::new(insns, NATIVE_ENDIAN).expect("the program is valid")
}

/// Answers with the least work.
struct Answering;

impl Supervisor for Answering {
    fn call(&self, task: &mut dyn Task, call: &SeccompData) -> Answer {
        match call.nr {
            nr::GETPPID => Answer::Return(1),
            nr::GETPGID => {
                let mut bytes = [0; 8];
                match task.space().read(call.args[0], &mut bytes) {
                    Ok(_) => Answer::Return(u64::from_ne_bytes(bytes).cast_signed()),
                    Err(Errno(errno)) => Answer::Errno(errno as u16),
                }
            }
            nr::READ => match task.space().write(call.args[1], &[0]) {
                Ok(_) => Answer::Return(1),
                Err(Errno(errno)) => Answer::Errno(errno as u16),
            },
            _ => Answer::Forward,
        }
    }
}

//! The library in libseccomp's place beside the system's libseccomp, in one run: Docker's profile through the C
//! interface from `seccomp_init` to `seccomp_export_bpf`, proof included, the first call, memory, and a thousand rules
//! on one argument.
//!
//! `cargo bench -p tamis-bench --bench dropin`; the first argument is the number of rounds. Times are CPU times of
//! this thread. Memory is that of a process of its own for each library, which this program starts.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use std::{env, fs};

use tamis_abi::{Action, Arch, SeccompData};
use tamis_bench::policies::DOCKER;
use tamis_bench::ratio::{Contestant, compare};
use tamis_bench::runc::Rules;
use tamis_bpf::{Program, interp};
use tamis_testkit::libseccomp::{Condition, Library, Op};
use tamis_testkit::skip::{self, Need};
use tamis_testkit::{corpus, harness};

const ROUNDS: usize = 31;

/// The rules on one argument.
const RULES: u64 = 1000;

/// The argument that selects the measurement of memory only.
const MEMORY: &str = "--memory";

/// The system's library.
const SYSTEM: &str = "libseccomp.so.2";

fn main() -> ExitCode {
    harness::measure(measure_all)
}

fn measure_all() {
    let text = corpus::text(DOCKER);
    let rules = Rules::parse(&text);
    let arguments: Vec<String> = env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == MEMORY) {
        return print_memory(Path::new(&arguments[at + 1]), &rules);
    }
    let rounds = arguments.iter().find_map(|argument| argument.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS);
    let file = our_file();
    let ours = Library::open_file(&file).expect("the library has all functions");
    let theirs = Library::open().unwrap_or_else(|reason| skip::because(Need::Peers, reason));
    for (name, library) in [("tamis", &ours), ("libseccomp", &theirs)] {
        let version = library.version();
        let first = timed(|| usize::from(library.filter(Action::ALLOW).is_some()));
        println!("{name} {version:?}: first seccomp_init {first:?}");
    }
    docker(&ours, &theirs, &rules, rounds);
    one_argument(&ours, &theirs, rounds);
    for path in [&file, Path::new(SYSTEM)] {
        let child = env::current_exe().map(Command::new);
        let mut child = child.expect("this program has a path");
        let status = child.arg(MEMORY).arg(path).status();
        assert!(status.is_ok_and(|status| status.success()), "{path:?}");
    }
}

fn docker(ours: &Library, theirs: &Library, rules: &Rules, rounds: usize) {
    let cases = [
        ("tamis", ours, 1),
        ("libseccomp, list", theirs, 1),
        ("libseccomp, tree", theirs, 2),
    ];
    println!("Docker's profile, three architectures");
    let mut contestants = cases.map(|(name, library, optimize)| {
        let make = move || {
            let filter = rules.filter(library, optimize);
            filter.and_then(|filter| filter.export())
        };
        let length = make().expect("the profile is taken").len();
        println!("{name}: {length} instructions");
        Contestant::with_own_clock(name, move || timed(|| make().map_or(0, |made| made.len())))
    });
    print!("{}", compare(&mut contestants, rounds));
}

fn one_argument(ours: &Library, theirs: &Library, rounds: usize) {
    println!("{RULES} rules on one argument of one call");
    let mut contestants = [("tamis", ours), ("libseccomp, list", theirs)].map(|(name, library)| {
        let program = with_many_values(library);
        let steps = steps(&program);
        println!(
            "{name}: {} instructions, at most {steps} steps",
            program.len()
        );
        Contestant::with_own_clock(name, move || timed(|| with_many_values(library).len()))
    });
    print!("{}", compare(&mut contestants, rounds));
}

/// A value without a pattern.
const fn value(index: u64) -> u64 {
    index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

fn with_many_values(library: &Library) -> Program {
    let mut filter = library.filter(Action::ALLOW).expect("a filter");
    for index in 0..RULES {
        let condition = Condition {
            arg: 1,
            op: Op::Eq,
            value: value(index),
            value_two: 0,
        };
        let added = filter.add_rule(Action::errno(1), 16, &[condition]);
        added.expect("a rule");
    }
    let insns = filter.export().expect("a program");
    Program::new(insns, Arch::X86_64.endian()).expect("a valid program")
}

/// The most steps for a value of the rules or a neighbour of one.
fn steps(program: &Program) -> usize {
    let values = (0..RULES).flat_map(|index| [value(index), value(index) + 1]);
    let steps = values.map(|value| {
        let call = SeccompData {
            nr: 16,
            arch: Arch::X86_64.audit(),
            args: [3, value, 0, 0, 0, 0],
            ..SeccompData::default()
        };
        interp::run(program, &call).steps as usize
    });
    steps.max().unwrap_or(0)
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a structure of this type.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(code, 0, "threads have a clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn timed(run: impl FnOnce() -> usize) -> Duration {
    let start = cpu_time();
    std::hint::black_box(run());
    cpu_time().saturating_sub(start)
}

/// Prints the memory that the library adds to this process: anonymous memory, which is private, and pages of files,
/// which processes share.
fn print_memory(library: &Path, rules: &Rules) {
    let before = resident();
    let library = Library::open_file(library).expect("the library can be loaded");
    let filter = rules.filter(&library, 1).expect("the profile is taken");
    filter.export().expect("a program");
    drop(filter);
    let after = resident();
    let [anonymous, files] = [0, 1].map(|kind: usize| after[kind].saturating_sub(before[kind]));
    let version = library.version();
    println!("{version:?}: resident memory {anonymous} KiB anonymous, {files} KiB of files");
}

/// Resident anonymous memory and resident pages of files, in KiB.
fn resident() -> [u64; 2] {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["RssAnon:", "RssFile:"].map(|name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let size = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        size.expect("the kernel tells")
    })
}

/// The library of this build, beside this program or above it.
fn our_file() -> PathBuf {
    let program = env::current_exe().expect("this program has a path");
    let mut folders = program.ancestors().skip(1).take(2);
    let file = folders.find_map(|folder| {
        let file = folder.join("libtamis_libseccomp.so");
        file.exists().then_some(file)
    });
    file.expect("tamis-libseccomp is a dependency of the benchmarks")
}

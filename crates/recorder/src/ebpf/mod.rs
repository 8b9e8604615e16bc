//! Recording by programs at the kernel's tracepoints.
//!
//! Recording requires `CAP_BPF` and `CAP_PERFMON`, or root, and Linux 5.13 or later with BTF on x86-64 or AArch64. While a
//! recorder exists, every call of every task on the machine takes about 0.2 µs more.
//!
//! Limits: calls for which a filter sends a signal have no entry and, depending on the kernel, no exit, so they are
//! counted separately ([`Recording::signalled`]). A thread that a filter kills silently while other threads of its
//! process live isn't seen.

mod btf;
mod load;
mod machine;
mod programs;
mod tasks;
mod view;
mod view_programs;

use std::collections::BTreeMap;
use std::error;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering;

use tamis_abi::{Arch, KernelVersion, Nr, syscall};
use tamis_kernel::Errno;
use tamis_kernel::bpf::{self, Array, Attached, Counts, LoadError};
use tamis_profile::{Profile, Times, interest};

use crate::recording::{LostEvents, MAX_VALUES, Recording, Signalled};
pub use btf::{Btf, BtfError};
pub use load::MissingColumn;
use programs::{Facts, INTERFACES, ROW_WORDS, ROWS, TIME_WORDS, TRACEPOINTS};
use tasks::Tasks;
pub use view::Viewer;

/// The interfaces of the kernel in the order of their rows.
const ARCHES: &[Arch] = machine::HOST.arches;
/// The maximum number of distinct numbers without rows, and of distinct calls with signals.
const MAX_NUMBERS: u32 = 1 << 12;
/// More than the number of keys of lost values: the arguments of each call, and its errors.
const MAX_LOST: u32 = 8 * (ROWS * INTERFACES) as u32;

/// Optional columns of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The values of arguments that are constants or flags.
    pub values: bool,
    /// The durations of calls.
    pub times: bool,
    /// Recordings that would [begin with a program](Start::AtExec) begin with a task's first call under a filter. Of a
    /// container's runtime, only the calls that the container's filter must allow are then recorded.
    pub confined: bool,
    /// A control group: tasks that make a call in it, and their descendants, are recorded besides the chosen tasks.
    pub cgroup: Option<Cgroup>,
}

/// A control group of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// The number of its directory's inode.
    pub id: u64,
    /// The number of groups above it; 0 for the root.
    pub level: u32,
}

/// Programs at the kernel's tracepoints, with their counts. Nothing is recorded before tasks are chosen. Dropping this
/// ends the recording and removes the programs.
///
/// ```no_run
/// use tamis_kernel::spawn::Spawn;
/// use tamis_recorder::ebpf::{Options, Recorder, Start};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let recorder = Recorder::new(Options::default())?;
/// let held = Spawn::new("true").start()?;
/// recorder.record(held.pid(), Start::AtExec);
/// held.release().wait()?;
/// println!("{}", recorder.recording()?.profile.to_json());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Recorder {
    attached: Vec<Attached>,
    missing: Vec<MissingColumn>,
    options: Options,
    cpus: usize,
    tasks: Tasks,
    counts: Array,
    times: Array,
    values: Counts,
    /// Counts of the pairs that `values` had no room for, by the first half of their keys.
    lost_values: Counts,
    numbers: Counts,
    signals: Counts,
    /// Used by programs only.
    _interest: Array,
    _starts: Array,
}

/// The beginning of a task's recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the task's next call; the present one isn't recorded.
    Now,
    /// When the task, or a descendant started in the meantime, executes a program; that `execve` is recorded.
    AtExec,
}

/// The reason why programs can't record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// The machine is neither x86-64 nor AArch64.
    Machine,
    /// This process isn't in the initial PID namespace, whose numbers programs see.
    Namespace,
    /// The file with the kernel's types can't be read.
    NoTypes(std::io::ErrorKind),
    /// A type or member is missing in the kernel's types.
    Types(BtfError),
    /// A file in `/proc` or `/sys` is missing.
    NoLimits,
    /// Memory for the counts can't be allocated.
    Memory(Errno),
    /// The kernel rejects a program.
    Program {
        /// Its tracepoint.
        tracepoint: &'static str,
        /// The reason.
        error: LoadError,
    },
    /// A program can't be assembled: a bug of tamis.
    Bug(String),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match tamis_kernel::probe::version() {
            Some(version) if self.is_of_age(version) => {
                return write!(
                    f,
                    "recording by eBPF needs Linux {SINCE} or later, and this is {version}"
                );
            }
            _ => {}
        }
        match self {
            Unavailable::Machine => f.write_str("recording by eBPF needs an x86-64 or AArch64 machine"),
            Unavailable::Namespace => f.write_str(
                "recording by eBPF doesn't work in a namespace of processes: tasks have other numbers there",
            ),
            Unavailable::NoTypes(kind) => write!(
                f,
                "{}: {kind}; recording by eBPF needs a kernel with CONFIG_DEBUG_INFO_BTF",
                btf::PATH
            ),
            Unavailable::Types(error) => error.fmt(f),
            Unavailable::NoLimits => {
                f.write_str("recording by eBPF needs /proc and /sys to be mounted")
            }
            Unavailable::Memory(Errno(number)) if *number == EPERM => f.write_str(
                "recording by eBPF needs root or the capabilities CAP_BPF and CAP_PERFMON",
            ),
            Unavailable::Memory(errno) => write!(f, "no memory to record by eBPF: {errno}"),
            Unavailable::Program { tracepoint, error } => {
                write!(f, "the program for the tracepoint {tracepoint}: {error}")
            }
            Unavailable::Bug(message) => write!(f, "a program of the recorder is wrong: {message}"),
        }
    }
}

impl error::Error for Unavailable {}

impl Unavailable {
    /// Whether this process lacks a permission.
    fn is_denied(&self) -> bool {
        matches!(
            self,
            Unavailable::Memory(Errno(EPERM))
                | Unavailable::Program {
                    error: LoadError {
                        errno: Errno(EPERM),
                        ..
                    },
                    ..
                }
        )
    }

    /// Whether a kernel of this version refuses because of its age. Before 5.11 maps count as locked memory, and too
    /// much of that is `EPERM` for root too.
    fn is_of_age(&self, version: KernelVersion) -> bool {
        let is_refusal = matches!(self, Unavailable::Memory(_) | Unavailable::Program { .. });
        is_refusal && version < SINCE
    }

    /// Whether this is a bug of tamis: a malformed program, or a rejection by the verifier of a supported kernel.
    pub fn is_bug(&self) -> bool {
        match self {
            Unavailable::Bug(_) => true,
            Unavailable::Program { error, .. } => {
                let is_new = tamis_kernel::probe::version().is_none_or(|version| version >= SINCE);
                !self.is_denied() && !error.log.is_empty() && is_new
            }
            _ => false,
        }
    }
}

/// The first kernel with all functions that the programs call.
const SINCE: KernelVersion = KernelVersion::new(5, 13);

/// `EPERM` has this number on every architecture.
const EPERM: i32 = 1;

impl Recorder {
    /// Loads and attaches the programs.
    ///
    /// # Errors
    /// See [`Unavailable`].
    pub fn new(options: Options) -> Result<Recorder, Unavailable> {
        Recorder::of_programs(options, programs::all)
    }

    /// A recorder with these programs.
    fn of_programs(
        options: Options,
        texts: impl Fn(&Facts) -> [String; TRACEPOINTS.len()],
    ) -> Result<Recorder, Unavailable> {
        let (facts, ids) = facts(options, TRACEPOINTS)?;
        let array = |words| Array::new(words).map_err(Unavailable::Memory);
        let rows = ROWS * INTERFACES;
        let measured = if options.times { rows * facts.cpus } else { 0 };
        let recorder = Recorder {
            attached: Vec::new(),
            missing: Vec::new(),
            options,
            cpus: facts.cpus,
            tasks: Tasks::new(facts.tasks).map_err(Unavailable::Memory)?,
            counts: array(ROW_WORDS * rows * facts.cpus)?,
            times: array(TIME_WORDS * measured)?,
            values: Counts::per_cpu(16, MAX_VALUES).map_err(Unavailable::Memory)?,
            lost_values: Counts::shared(8, MAX_LOST).map_err(Unavailable::Memory)?,
            numbers: Counts::shared(8, MAX_NUMBERS).map_err(Unavailable::Memory)?,
            signals: Counts::shared(8, MAX_NUMBERS).map_err(Unavailable::Memory)?,
            _interest: match options.values {
                true => interesting(array(rows.div_ceil(8))?),
                false => array(1)?,
            },
            _starts: array(2 * if options.times { programs::STARTS } else { 1 })?,
        };
        recorder.attach(&facts, ids, texts(&facts))
    }

    fn attach(
        mut self,
        facts: &Facts,
        ids: [Option<u32>; TRACEPOINTS.len()],
        texts: [String; TRACEPOINTS.len()],
    ) -> Result<Recorder, Unavailable> {
        let maps = [
            ("states", self.tasks.states.descriptor()),
            ("counts", self.counts.descriptor()),
            ("totals", self.tasks.totals.descriptor()),
            ("times", self.times.descriptor()),
            ("values", self.values.descriptor()),
            ("lost_values", self.lost_values.descriptor()),
            ("numbers", self.numbers.descriptor()),
            ("signals", self.signals.descriptor()),
            ("interest", self._interest.descriptor()),
            ("starts", self._starts.descriptor()),
        ];
        // Programs depend on each other: the program for exits reads the states that the program for entries writes.
        let programs = load::programs(TRACEPOINTS, ids, texts);
        let assemble = |text: &str| programs::assemble(text, &[], facts, &maps);
        (self.attached, self.missing) = load::attach(programs, assemble)?;
        Ok(self)
    }

    /// The columns that aren't recorded, because this kernel rejects their programs.
    pub fn missing(&self) -> &[MissingColumn] {
        &self.missing
    }

    /// Records a task, by its number in the initial PID namespace, and its future descendants. Returns false if there
    /// is no such task, or it has ended.
    pub fn record(&self, task: i32, start: Start) -> bool {
        self.tasks.record(task, start)
    }

    /// The number of recorded tasks that live.
    pub fn live(&self) -> u64 {
        self.tasks.live()
    }

    /// The recording so far. Counts never decrease: a later recording includes an earlier one.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn recording(&self) -> Result<Recording, Errno> {
        let mut recording = Recording::default();
        self.add_rows(&mut recording.profile);
        self.add_values(&mut recording.profile)?;
        for (key, count) in self.numbers.all()? {
            add_number(&mut recording, halves(&key), count);
        }
        for (key, count) in self.signals.all()? {
            let [nr, arch] = halves(&key);
            recording.signalled.insert(Signalled { arch, nr }, count);
        }
        let total = |index: usize| self.tasks.total(index);
        // Recordings that begin with a program begin inside this call.
        if let Some(execve) = syscall::number(ARCHES[0], "execve")
            && total(programs::BEGUN) > 0
        {
            recording.profile.call_mut(ARCHES[0], execve).count += total(programs::BEGUN);
        }
        recording.lost = LostEvents {
            counts: total(programs::LOST),
            times: total(programs::LOST_TIMES),
            events: self.misses()?,
        };
        Ok(recording)
    }

    fn misses(&self) -> Result<u64, Errno> {
        self.attached
            .iter()
            .try_fold(0, |sum, program| Ok(sum + program.misses()?))
    }

    /// Adds the counts of all CPUs.
    fn add_rows(&self, profile: &mut Profile) {
        for (interface, row) in rows() {
            let number = ROWS * interface + row;
            let sum = |word: usize| {
                let place = |cpu: usize| ROW_WORDS * (ROWS * INTERFACES * cpu + number) + word;
                let counts = (0..self.cpus).map(|cpu| &self.counts[place(cpu)]);
                counts
                    .map(|count| count.load(Ordering::Relaxed))
                    .sum::<u64>()
            };
            let count = sum(0);
            if count == 0 {
                continue;
            }
            let (arch, nr) = call(interface, row as u32);
            let call = profile.call_mut(arch, nr);
            call.count = count;
            call.denied = sum(1).min(count);
            if self.options.times {
                call.times = self.times_of(number).map(Box::new);
            }
        }
    }

    /// The times of a row, if any was measured.
    fn times_of(&self, row: usize) -> Option<Times> {
        let mut sum: Option<Times> = None;
        for cpu in 0..self.cpus {
            let start = TIME_WORDS * (ROWS * INTERFACES * cpu + row);
            let words = &self.times[start..start + TIME_WORDS];
            let word = |index: usize| words[index].load(Ordering::Relaxed);
            let buckets = std::array::from_fn(|index| word(4 + index));
            if buckets.iter().all(|count| *count == 0) {
                continue;
            }
            let times = Times {
                total_ns: word(0),
                min_ns: !word(1),
                max_ns: word(2),
                buckets,
            };
            match &mut sum {
                Some(sum) => sum.merge(&times),
                None => sum = Some(times),
            }
        }
        sum
    }

    /// Adds the values of arguments, and error numbers.
    fn add_values(&self, profile: &mut Profile) -> Result<(), Errno> {
        for (key, count) in self.values.all()? {
            let [place, _] = halves(&key);
            let value = key
                .last_chunk::<8>()
                .map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            let row = (place & 0xffff) as usize;
            let (arch, nr) = call(row / ROWS, (row % ROWS) as u32);
            let call = profile.call_mut(arch, nr);
            match place >> 16 {
                programs::ERRNO_KEY => {
                    call.errors.insert(value as u16, count);
                }
                arg => {
                    call.values
                        .entry(arg as u8)
                        .or_default()
                        .insert(value, count);
                }
            }
            // A call may have been counted between the two reads.
            let errors = call.errors.values().sum();
            let seen = call
                .values
                .values()
                .map(|values| values.values().sum())
                .max();
            call.count = call.count.max(errors).max(seen.unwrap_or(0));
        }
        for (key, count) in self.lost_values.all()? {
            let [place, _] = halves(&key);
            let row = (place & 0xffff) as usize;
            let (arch, nr) = call(row / ROWS, (row % ROWS) as u32);
            if place >> 16 != programs::ERRNO_KEY {
                let call = profile.call_mut(arch, nr);
                call.lost_values.insert((place >> 16) as u8, count);
                call.count = call.count.max(count);
            }
        }
        Ok(())
    }
}

/// All rows, as interface and number.
fn rows() -> impl Iterator<Item = (usize, usize)> {
    (0..ARCHES.len()).flat_map(|interface| (0..ROWS).map(move |row| (interface, row)))
}

/// The call of a row; the row of an x32 call lacks the x32 bit.
const fn call(interface: usize, row: u32) -> (Arch, Nr) {
    let arch = ARCHES[interface];
    let bit = match arch {
        Arch::X32 => Arch::X32_BIT,
        _ => 0,
    };
    (arch, Nr(row | bit))
}

/// Adds the count of a call without a row. The key has its number, then its interface and the counted property.
fn add_number(recording: &mut Recording, [number, rest]: [u32; 2], count: u64) {
    let audit = ARCHES[(rest as usize / ROWS).min(ARCHES.len() - 1)].audit();
    let Some(arch) = Arch::of_call(audit, number) else {
        if rest % ROWS as u32 == programs::FAR_CALLS {
            *recording.unknown.entry((audit, number)).or_default() += count;
        }
        return;
    };
    let call = recording.profile.call_mut(arch, Nr(number));
    match rest % ROWS as u32 {
        programs::FAR_ERRORS => {
            /// The only error of a number that the kernel doesn't implement.
            const ENOSYS: u16 = 38;
            *call.errors.entry(ENOSYS).or_default() += count;
        }
        programs::FAR_DENIED => call.denied += count,
        _ => call.count += count,
    }
}

fn halves(key: &[u8]) -> [u32; 2] {
    let half = |at: usize| key.get(at..).and_then(|bytes| bytes.first_chunk::<4>());
    [0, 4].map(|at| half(at).map_or(0, |bytes| u32::from_ne_bytes(*bytes)))
}

/// Whether the numbers of tasks here are those that programs see. Assumed to be so without `/proc`: a task that isn't
/// found is not recorded.
fn is_in_first_namespace() -> bool {
    /// `PROC_PID_INIT_INO`, fixed in the kernel's interface.
    const FIRST: u64 = 0xefff_fffc;
    let namespace = fs::metadata("/proc/self/ns/pid");
    namespace.map_or(true, |file| file.ino() == FIRST)
}

/// The properties of the kernel that the programs depend on, and the numbers of these tracepoints' types.
fn facts<const N: usize>(
    options: Options,
    tracepoints: [&str; N],
) -> Result<(Facts, [Option<u32>; N]), Unavailable> {
    if !machine::IS_KNOWN {
        return Err(Unavailable::Machine);
    }
    if !is_in_first_namespace() {
        return Err(Unavailable::Namespace);
    }
    let bytes = bpf::types().map_err(|error| Unavailable::NoTypes(error.kind()))?;
    let btf = Btf::parse(&bytes).map_err(Unavailable::Types)?;
    let names = tracepoints.map(|tracepoint| format!("btf_trace_{tracepoint}"));
    let members: [(usize, &[&str]); 8] = [
        (0, &["thread_info", machine::HOST.flags]),
        (0, &["pid"]),
        (0, &["seccomp", "mode"]),
        (0, &["exit_code"]),
        (0, &["tgid"]),
        (0, &["pending", "signal"]),
        (0, &["signal"]),
        (1, &["live"]),
    ];
    let structures = ["task_struct", "signal_struct"];
    let (ids, offsets) = btf
        .find(names.each_ref().map(String::as_str), structures, members)
        .map_err(Unavailable::Types)?;
    let [
        status,
        pid,
        seccomp_mode,
        exit_code,
        process,
        pending,
        signals,
        threads,
    ] = offsets;
    let most = fs::read_to_string("/proc/sys/kernel/pid_max").ok();
    let tasks = most.and_then(|text| text.trim().parse::<usize>().ok());
    let facts = Facts {
        machine: machine::HOST,
        tasks: tasks.ok_or(Unavailable::NoLimits)?,
        cpus: bpf::possible_cpus().ok_or(Unavailable::NoLimits)?,
        status,
        pid,
        seccomp_mode,
        exit_code,
        process,
        pending,
        signals,
        threads,
        is_confined: options.confined,
        cgroup: options.cgroup,
        has_values: options.values,
        has_times: options.times,
    };
    Ok((facts, ids))
}

/// Fills the array that selects the arguments of interest for the programs: for each row a byte with a bit for each
/// argument. All 64 bits of an argument are recorded, even those that the kernel ignores, because filters may compare
/// them.
fn interesting(array: Array) -> Array {
    let mut words = BTreeMap::<usize, u64>::new();
    for (interface, row) in rows() {
        let (arch, nr) = call(interface, row as u32);
        let Some(name) = syscall::name(arch, nr) else {
            continue;
        };
        let number = ROWS * interface + row;
        for argument in interest::arguments(arch, name) {
            let bit = 1 << argument.index.index();
            *words.entry(number / 8).or_default() |= bit << (8 * (number % 8));
        }
    }
    for (index, word) in words {
        array[index].store(word, Ordering::Relaxed);
    }
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_kernel::spawn::Spawn;

    /// A load from a constant, which every verifier rejects.
    const REFUSED: &str = "
        r1 = 1
        r0 = *(u64 *)(r1 + 0)
        exit
    ";

    #[test]
    fn an_old_kernel_is_named_and_not_the_privileges() {
        let refusals = [
            Unavailable::Memory(Errno(EPERM)),
            Unavailable::Memory(Errno(12)),
        ];
        for refusal in refusals {
            assert!(refusal.is_of_age(KernelVersion::new(5, 10)));
            assert!(!refusal.is_of_age(SINCE));
        }
        assert!(!Unavailable::Namespace.is_of_age(KernelVersion::new(5, 10)));
    }

    /// A recorder whose program for this tracepoint is rejected; `None` where recording is unavailable.
    fn without(tracepoint: &str) -> Option<Result<Recorder, Unavailable>> {
        if let Err(error) = Recorder::new(Options::default()) {
            assert!(!error.is_bug(), "{error}");
            println!("skipped: {error}");
            return None;
        }
        let texts = |facts: &Facts| {
            let mut texts = programs::all(facts);
            let place = TRACEPOINTS.iter().position(|one| *one == tracepoint);
            texts[place.unwrap_or_default()] = REFUSED.to_owned();
            texts
        };
        Some(Recorder::of_programs(Options::default(), texts))
    }

    #[test]
    fn a_refused_program_costs_its_own_column() {
        let Some(recorder) = without("signal_generate") else {
            return;
        };
        let recorder = recorder.expect("the others are loaded");
        let [missing] = recorder.missing() else {
            panic!("{:?}", recorder.missing());
        };
        assert_eq!(missing.column, "calls for which filters send signals");
        assert!(missing.to_string().contains("invalid mem access"));
        let held = Spawn::new("true").start().expect("it starts");
        assert!(recorder.record(held.pid(), Start::AtExec));
        held.release().wait().expect("it ends");
        let recording = recorder.recording().expect("counts");
        let (arch, nr) = (ARCHES[0], syscall::number(ARCHES[0], "execve"));
        assert_eq!(
            recording
                .profile
                .call(arch, nr.unwrap())
                .map(|call| call.count),
            Some(1)
        );
    }

    #[test]
    fn a_refused_program_that_others_need_is_a_bug() {
        for tracepoint in ["sys_enter", "sched_process_exec"] {
            let Some(recorder) = without(tracepoint) else {
                return;
            };
            let error = recorder.expect_err("it records nothing");
            assert!(
                error.is_bug() && error.to_string().contains(tracepoint),
                "{error}"
            );
        }
    }
}

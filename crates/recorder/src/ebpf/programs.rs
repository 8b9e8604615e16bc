//! The programs that run at the kernel's tracepoints, as source texts.
//!
//! The array `states` has a byte for each task number, written only by programs that run for this task: whether the
//! task is recorded, whether it is in a call whose entry was seen, whether it is new, so that its first exit belongs to
//! a call whose entry was not seen, and whether its recording begins when it executes a program. Counts are in the
//! array `counts`, a table of rows for each CPU; calls without a row are counted in hash tables.
//!
//! `sys_enter` comes after filters and tracers. A call that they skip has only an exit, which distinguishes denied
//! calls from others.
//!
//! Texts contain `{name}` for a value, `&NAME` for the address of an array, and `#NAME` for a table.

use std::fmt::Write;
use std::os::fd::RawFd;

use tamis_diag::Sources;
use tamis_ebpf::{Insn, text};

use super::Cgroup;
use super::machine::Machine;

/// The task is recorded.
pub(super) const TRACKED: u64 = 1;
/// It is in a call whose entry was seen.
pub(super) const IN_CALL: u64 = 2;
/// Its next exit belongs to a call that began before the recording.
pub(super) const NEW: u64 = 4;
/// Its recording begins when it executes a program.
pub(super) const ARMED: u64 = 8;
/// The bits of a task's state.
pub(super) const STATE_BITS: usize = 8;
/// The number of tasks in a word of `states`.
pub(super) const TASKS_PER_WORD: usize = 8;

/// The number of rows for each interface, with room for x32's own calls, which begin at 512; higher numbers are counted
/// in a hash table. A multiple of 4: in the key of a call without a row, the lowest bits select the counted property.
pub(super) const ROWS: usize = 576;
/// The most interfaces of a machine: x86-64, i386 and x32.
pub(super) const INTERFACES: usize = 3;
/// The words of a row: calls, and denied calls.
pub(super) const ROW_WORDS: usize = 2;
/// The words of a row of times: sum, minimum, maximum, and a count for each power of two.
pub(super) const TIME_WORDS: usize = 4 + TIME_BUCKETS;
/// The number of counted powers of two, in nanoseconds: up to 18 minutes.
pub(super) const TIME_BUCKETS: usize = 40;
/// The number of tasks whose times of entry are stored; a power of two.
pub(super) const STARTS: usize = 1 << 16;

/// The index of error numbers in the keys of values, after the indices of arguments.
pub(super) const ERRNO_KEY: u32 = 7;
/// The counted properties of calls without a row, in the lower bits of the second half of their keys.
pub(super) const FAR_CALLS: u32 = 0;
pub(super) const FAR_ERRORS: u32 = 1;
pub(super) const FAR_DENIED: u32 = 2;

/// The words of the array `totals`.
pub(super) const LIVE: usize = 0;
pub(super) const LOST: usize = 1;
pub(super) const LOST_TIMES: usize = 2;
pub(super) const BEGUN: usize = 3;
pub(super) const TOTALS: usize = 4;

/// The parameters of the programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) machine: &'static Machine,
    /// The limit of task numbers.
    pub(super) tasks: usize,
    /// The limit of CPU numbers.
    pub(super) cpus: usize,
    /// The offset in a task of the machine's member of `thread_info`.
    pub(super) status: u32,
    /// The offset of `pid` in a task.
    pub(super) pid: u32,
    /// The offset of `seccomp.mode` in a task.
    pub(super) seccomp_mode: u32,
    /// The offset of `exit_code` in a task.
    pub(super) exit_code: u32,
    /// The offset of `tgid` in a task: the number of its process.
    pub(super) process: u32,
    /// The offset of `pending.signal` in a task: the pending signals of this thread alone.
    pub(super) pending: u32,
    /// The offset of `signal` in a task: the address of the data shared by the threads of a process.
    pub(super) signals: u32,
    /// The offset of `live` in that data: the number of threads that live.
    pub(super) threads: u32,
    pub(super) has_values: bool,
    pub(super) has_times: bool,
    /// Whether recordings that begin with a program begin with the first call under a filter.
    pub(super) is_confined: bool,
    /// The control group whose tasks are recorded.
    pub(super) cgroup: Option<Cgroup>,
}

/// The names of arrays and tables, with their descriptors.
pub(super) type Maps<'m> = [(&'m str, RawFd)];

/// The tracepoints.
pub(super) const TRACEPOINTS: [&str; 6] = [
    "sys_enter",
    "sys_exit",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "signal_generate",
];

/// The source texts of the programs.
pub(super) fn all(facts: &Facts) -> [String; 6] {
    [
        enter(facts),
        exit(facts),
        FORK.to_owned(),
        EXEC.to_owned(),
        END.to_owned(),
        SIGNAL.to_owned(),
    ]
}

/// From the number of a task in r7, the address of its state in r8.
pub(super) const STATE: &str = "
    if r7 >= {tasks} goto out
    r8 = &states
    r8 += r7
";

/// The state of the calling task in r1 and its address in r8; the number of the task at r10 - 32. The flags of the
/// interface are at r10 - 64, the context in r6.
pub(super) const TASK: &str = "
    r6 = r1
    call 158 // bpf_get_current_task_btf
    w1 = *(u32 *)(r0 + {status})
    *(u64 *)(r10 - 64) = r1
    w7 = *(u32 *)(r0 + {pid})
    *(u64 *)(r10 - 32) = r7
    {state}
    w1 = *(u8 *)(r8 + 0)
";

/// Returns if the task isn't recorded.
pub(super) const RECORDED: &str = "
    r2 = r1
    r2 &= {tracked}
    if r2 == 0 goto out
";

/// The same, with a recording that begins with the first call under a filter.
const CONFINED: &str = "
    r2 = r1
    r2 &= {tracked}
    if r2 != 0 goto recorded
    if r1 == 0 goto out
    w2 = *(u32 *)(r0 + {seccomp_mode})
    if r2 == 0 goto out
recorded:
";

/// The same, with a recording that begins when a task in a control group makes a call.
fn in_group(group: Cgroup) -> String {
    let Cgroup { id, level } = group;
    let (high, low) = ((id >> 32) as i32, id as i32);
    format!(
        "
    r2 = r1
    r2 &= {{tracked}}
    if r2 != 0 goto recorded
    r1 = {level}
    call 123 // bpf_get_current_ancestor_cgroup_id
    w1 = {high}
    r1 <<= 32
    w2 = {low}
    r1 |= r2
    if r0 != r1 goto out
    r1 = &totals
    r2 = 1
    lock *(u64 *)(r1 + {{live}}) += r2
recorded:
"
    )
}

/// The row of an x32 call: a native one with bit 30 in its number.
const WIDE: &str = "
    r1 = r7
    r1 >>= 30
    if r1 != 1 goto number
    r9 = {x32}
    r1 = r7
    r1 &= 0x3fffffff
    if r1 >= {rows} goto far
    r9 += r1
    goto counted
";

/// From the number of a call in r7, its row in r9: the machine's own rows, then those of 32-bit calls, then of x32.
const ROW: &str = "
    {compat}
    r9 = 0
    if w1 == 0 goto native
    r9 = {rows}
    goto number
native:
    {wide}
number:
    if r7 >= {rows} goto far
    r9 += r7
counted:
    call 8 // bpf_get_smp_processor_id
    w0 = w0
    if r0 >= {cpus} goto out
    r7 = r9
    r7 <<= 4
    r1 = r0
    r1 *= {table_bytes}
    r8 = &counts
    r8 += r1
    r8 += r7
";

fn enter(facts: &Facts) -> String {
    let wanted = match facts.cgroup {
        Some(group) => in_group(group),
        None if facts.is_confined => CONFINED.to_owned(),
        None => RECORDED.to_owned(),
    };
    let mut text = format!(
        "{TASK}{wanted}
    r1 = {{tracked_in_call}}
    *(u8 *)(r8 + 0) = r1
    r7 = *(u64 *)(r6 + 8)
    w7 = w7
    {ROW}
    r1 = *(u64 *)(r8 + 0)
    r1 += 1
    *(u64 *)(r8 + 0) = r1
"
    );
    if facts.has_values {
        text += &values();
    }
    if facts.has_times {
        // Last, so that the time excludes the recording of the call.
        text += "
started:
    call 5 // bpf_ktime_get_ns
    r1 = *(u64 *)(r10 - 32)
    r2 = r1
    r2 &= {starts_mask}
    r2 <<= 4
    r3 = &starts
    r3 += r2
    *(u64 *)(r3 + 0) = r1
    *(u64 *)(r3 + 8) = r0
";
    }
    text += "
out:
    r0 = 0
    exit
far:
    *(u32 *)(r10 - 8) = r7
    *(u32 *)(r10 - 4) = r9
";
    text + &count_in("numbers", -8, "far")
        + "
    r0 = 0
    exit
"
}

/// Counts the values of the arguments of interest.
fn values() -> String {
    let mut text = "
    r1 = &interest
    r1 += r9
    w8 = *(u8 *)(r1 + 0)
    if w8 == 0 goto valued
    r7 = 0
    if r9 < {rows} goto arguments
    if r9 >= {x32} goto arguments
    r7 = 1
arguments:
"
    .to_owned();
    for arg in 0..6 {
        let (bit, key) = (1 << arg, arg << 16);
        let _ = write!(
            text,
            "
    w1 = w8
    w1 &= {bit}
    if w1 == 0 goto next{arg}
    r1 = *(u64 *)(r6 + 0)
    if r7 != 0 goto compat{arg}
    r2 = *(u64 *)(r1 + {{arg{arg}}})
    goto key{arg}
compat{arg}:
    r2 = *(u64 *)(r1 + {{compat{arg}}})
    w2 = w2
key{arg}:
    *(u64 *)(r10 - 8) = r2
    r1 = r9
    r1 |= {key}
    *(u64 *)(r10 - 16) = r1
{}
next{arg}:
",
            count_value(&format!("arg{arg}"))
        );
    }
    text + "\nvalued:\n"
}

/// The call of an exit: the result at r10 - 40, whether it was denied at r10 - 48, the number in r7.
const RESULT: &str = "
    r2 = r1
    r2 &= {in_call}
    if r2 != 0 goto entered
    r1 &= {new}
    if r1 == 0 goto denied
    r1 = {tracked}
    *(u8 *)(r8 + 0) = r1
    goto out
entered:
    r1 = {tracked}
    *(u8 *)(r8 + 0) = r1
    r1 = 0
    goto result
denied:
    r1 = 1
result:
    *(u64 *)(r10 - 48) = r1
    r1 = *(u64 *)(r6 + 0)
    w7 = *(u32 *)(r1 + {nr})
    r2 = *(u64 *)(r6 + 8)
    *(u64 *)(r10 - 40) = r2
    // Of `rt_sigreturn`, and of calls that a tracer skips.
    if w7 == -1 goto out
";

/// Returns for calls that succeeded and were not denied.
const ONLY_ERRORS: &str = "
    r1 = *(u64 *)(r10 - 48)
    if r1 != 0 goto row
    if r2 s>= 0 goto out
    if r2 s< -4095 goto out
";

fn exit(facts: &Facts) -> String {
    let early = if facts.has_times { "" } else { ONLY_ERRORS };
    let errno = count_value("errno");
    let times = if facts.has_times { TIMES } else { "" };
    let far = far_exit();
    format!(
        "{TASK}{RECORDED}{RESULT}{early}
row:
    {ROW}
    *(u64 *)(r10 - 56) = r0
    r1 = *(u64 *)(r10 - 48)
    if r1 == 0 goto made
    r1 = *(u64 *)(r8 + 0)
    r1 += 1
    *(u64 *)(r8 + 0) = r1
    r1 = *(u64 *)(r8 + 8)
    r1 += 1
    *(u64 *)(r8 + 8) = r1
made:
    r2 = *(u64 *)(r10 - 40)
    if r2 s>= 0 goto succeeded
    if r2 s< -4095 goto succeeded
    r2 = -r2
    *(u64 *)(r10 - 8) = r2
    r1 = r9
    r1 |= {{errno_key}}
    *(u64 *)(r10 - 16) = r1
{errno}
succeeded:
{times}
out:
    r0 = 0
    exit
{far}
"
    )
}

/// The exit of a call without a row.
fn far_exit() -> String {
    let call = count_in("numbers", -8, "farcall");
    let denied = count_in("numbers", -8, "fardenied");
    let error = count_in("numbers", -8, "farerror");
    format!(
        "
far:
    *(u32 *)(r10 - 8) = r7
    r1 = *(u64 *)(r10 - 48)
    if r1 == 0 goto farmade
    *(u32 *)(r10 - 4) = r9
{call}
    r1 = r9
    r1 |= {{far_denied}}
    *(u32 *)(r10 - 4) = r1
{denied}
farmade:
    r2 = *(u64 *)(r10 - 40)
    if r2 s>= 0 goto out
    if r2 s< -4095 goto out
    r1 = r9
    r1 |= {{far_errors}}
    *(u32 *)(r10 - 4) = r1
{error}
    goto out
"
    )
}

/// Adds the time since the entry of the call to its row of times.
const TIMES: &str = "
    r1 = *(u64 *)(r10 - 48)
    if r1 != 0 goto out
    call 5 // bpf_ktime_get_ns
    r1 = *(u64 *)(r10 - 32)
    r2 = r1
    r2 &= {starts_mask}
    r2 <<= 4
    r3 = &starts
    r3 += r2
    r4 = *(u64 *)(r3 + 0)
    if r4 != r1 goto untimed
    r4 = *(u64 *)(r3 + 8)
    r0 -= r4
    r7 = r0
    r8 = *(u64 *)(r10 - 56)
    if r8 >= {cpus} goto out
    r8 *= {time_table_bytes}
    r9 *= {time_row_bytes}
    r6 = &times
    r6 += r8
    r6 += r9
    r1 = *(u64 *)(r6 + 0)
    r1 += r7
    *(u64 *)(r6 + 0) = r1
    r1 = *(u64 *)(r6 + 8)
    // The least is kept as its complement, so that 0 stands for none.
    r2 = r7
    r2 ^= -1
    if r1 >= r2 goto least
    *(u64 *)(r6 + 8) = r2
least:
    r1 = *(u64 *)(r6 + 16)
    if r1 >= r7 goto greatest
    *(u64 *)(r6 + 16) = r7
greatest:
    // The number of bits of the time.
    r1 = 0
    {halve}
    r7 >>= 1
    r1 += r7
    if r1 < {time_buckets} goto bucket
    r1 = {time_last}
bucket:
    r1 <<= 3
    r6 += r1
    r1 = *(u64 *)(r6 + 32)
    r1 += 1
    *(u64 *)(r6 + 32) = r1
    goto out
untimed:
    r1 = &totals
    r2 = 1
    lock *(u64 *)(r1 + {lost_times}) += r2
";

/// If the number in r7 has more than `bits` bits, shifts it right by `bits` and adds `bits` to r1.
fn halved(bits: u32) -> String {
    format!(
        "
    r2 = r7
    r2 >>= {bits}
    if r2 == 0 goto within{bits}
    r1 += {bits}
    r7 = r2
within{bits}:
"
    )
}

/// A task has started another: parent and child.
const FORK: &str = "
    r6 = r1
    call 14 // bpf_get_current_pid_tgid
    w7 = w0
    {state}
    w9 = *(u8 *)(r8 + 0)
    r9 &= {tracked_or_armed}
    if r9 == 0 goto out
    r1 = *(u64 *)(r6 + 8)
    w7 = *(u32 *)(r1 + {pid})
    {state}
    r1 = r9
    r9 &= {tracked}
    if r9 == 0 goto set
    r1 = {tracked_new}
set:
    *(u8 *)(r8 + 0) = r1
    r1 = &totals
    r2 = 1
    lock *(u64 *)(r1 + {live}) += r2
out:
    r0 = 0
    exit
";

/// A task has executed a program: the task, and its previous number. A thread other than the first of its process gets
/// the number of the first.
pub(super) const EXEC: &str = "
    r6 = r1
    r7 = *(u64 *)(r6 + 8)
    w7 = w7
    {state}
    w9 = *(u8 *)(r8 + 0)
    if r9 == 0 goto out
    r1 = 0
    *(u8 *)(r8 + 0) = r1
    r1 = *(u64 *)(r6 + 0)
    w7 = *(u32 *)(r1 + {pid})
    {state}
    r1 = {tracked_in_call}
    r9 &= {armed}
    if r9 == 0 goto set
    r1 = {armed}
    r2 = {is_confined}
    if r2 != 0 goto set
    r1 = &totals
    r2 = 1
    lock *(u64 *)(r1 + {begun}) += r2
    r1 = {tracked_new}
set:
    *(u8 *)(r8 + 0) = r1
out:
    r0 = 0
    exit
";

/// A task has ended.
const END: &str = "
    call 14 // bpf_get_current_pid_tgid
    w7 = w0
    {state}
    w1 = *(u8 *)(r8 + 0)
    if r1 == 0 goto out
    r1 = 0
    *(u8 *)(r8 + 0) = r1
    r1 = &totals
    r2 = -1
    lock *(u64 *)(r1 + {live}) += r2
out:
    r0 = 0
    exit
";

/// A signal is sent: its number, `struct kernel_siginfo`, the task. Only signals from filters are counted. For some
/// signals the second argument is a small number, so newer verifiers don't treat it as an address; the structure is
/// copied whole, since others allow no arithmetic with it.
const SIGNAL: &str = "
    r2 = *(u64 *)(r1 + 0)
    w2 = w2
    if w2 != 31 goto out
    {caller}
    r1 = r10
    r1 += -104
    r2 = 32
    r3 = *(u64 *)(r6 + 8)
    call 113 // bpf_probe_read_kernel
    if r0 != 0 goto out
    w2 = *(u32 *)(r10 - 96)
    if w2 != 1 goto out // SYS_SECCOMP
    // Number and architecture.
    r1 = *(u64 *)(r10 - 80)
    *(u64 *)(r10 - 8) = r1
    {signal}
    // Some kernels get to the exit of such a call, others don't.
    r1 = {tracked_new}
    *(u8 *)(r8 + 0) = r1
out:
    r0 = 0
    exit
";

/// Counts the key at this offset from r10 in a table. The suffix distinguishes labels.
fn count_in(table: &str, key: i32, label: &str) -> String {
    count_or(table, key, label, "")
}

/// Counts the value at r10 - 8 of the argument or error whose key is at r10 - 16; if the table is full, counts the
/// loss.
fn count_value(label: &str) -> String {
    let lost = count_in("lost_values", -16, &format!("lost_{label}"));
    count_or("values", -16, label, &lost)
}

/// Counts the key at this offset from r10 in a table; if the table is full, counts the loss and runs `otherwise`.
fn count_or(table: &str, key: i32, label: &str, otherwise: &str) -> String {
    let find = format!(
        "
    r1 = #{table}
    r2 = r10
    r2 += {key}
    call 1 // bpf_map_lookup_elem
    if r0 != 0 goto found_{label}
"
    );
    format!(
        "{find}
    r1 = 1
    *(u64 *)(r10 - 24) = r1
    r1 = #{table}
    r2 = r10
    r2 += {key}
    r3 = r10
    r3 += -24
    r4 = 1 // BPF_NOEXIST
    call 2 // bpf_map_update_elem
    if r0 == 0 goto kept_{label}
    // Full, or another CPU was faster.
{find}
    r1 = &totals
    r2 = 1
    lock *(u64 *)(r1 + {{lost}}) += r2
    {otherwise}
    goto kept_{label}
found_{label}:
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
kept_{label}:
"
    )
}

/// Assembles a text for these arrays and tables. `names`, which only some texts have, take precedence over the common
/// ones.
///
/// # Errors
/// The error in the text, a bug of tamis.
pub(super) fn assemble(
    text: &str,
    names: &[(&str, i64)],
    facts: &Facts,
    maps: &Maps<'_>,
) -> Result<Vec<Insn>, String> {
    let mut filled = String::with_capacity(2 * text.len());
    let numbers: Vec<(&str, i64)> = names.iter().copied().chain(numbers(facts)).collect();
    fill(&mut filled, text, &numbers, &parts(facts.machine));
    let text = with_maps(&filled, maps)?;
    let mut sources = Sources::new();
    let source = sources.add("program", text.as_str());
    let assembly = text::assemble(&text, source).map_err(|diagnostics| {
        let first = diagnostics.first();
        first.map_or_else(String::new, |first| {
            let place = first
                .labels
                .first()
                .map(|label| sources.snippet(label.span));
            format!("{}: {}", first.message, place.unwrap_or_default())
        })
    })?;
    Ok(assembly.insns)
}

/// Writes a text with its names in braces replaced by numbers, or by parts, which contain names too. An unknown name is
/// kept, for the assembler to report.
fn fill(filled: &mut String, mut text: &str, numbers: &[(&str, i64)], parts: &[(&str, String)]) {
    while let Some((before, rest)) = text.split_once('{')
        && let Some((name, behind)) = rest.split_once('}')
    {
        filled.push_str(before);
        text = behind;
        if let Some((_, number)) = numbers.iter().find(|(known, _)| *known == name) {
            let _ = write!(filled, "{number}");
        } else if let Some((_, part)) = parts.iter().find(|(known, _)| *known == name) {
            fill(filled, part, numbers, parts);
        } else {
            let _ = write!(filled, "{{{name}}}");
        }
    }
    filled.push_str(text);
}

/// The numbers with names in texts.
fn numbers(facts: &Facts) -> [(&'static str, i64); 47] {
    let machine = facts.machine;
    let [arg0, arg1, arg2, arg3, arg4, arg5] = machine.args.map(i64::from);
    let [compat0, compat1, compat2, compat3, compat4, compat5] = machine.compat_args.map(i64::from);
    let table_bytes = 8 * ROW_WORDS * ROWS * INTERFACES;
    let time_row_bytes = 8 * TIME_WORDS;
    [
        ("arg0", arg0),
        ("arg1", arg1),
        ("arg2", arg2),
        ("arg3", arg3),
        ("arg4", arg4),
        ("arg5", arg5),
        ("compat0", compat0),
        ("compat1", compat1),
        ("compat2", compat2),
        ("compat3", compat3),
        ("compat4", compat4),
        ("compat5", compat5),
        ("ip", machine.ip.into()),
        ("nr", machine.nr.into()),
        ("tasks", facts.tasks as i64),
        ("cpus", facts.cpus as i64),
        ("status", facts.status.into()),
        ("pid", facts.pid.into()),
        ("tracked", TRACKED as i64),
        ("in_call", IN_CALL as i64),
        ("new", NEW as i64),
        ("armed", ARMED as i64),
        ("tracked_in_call", (TRACKED | IN_CALL) as i64),
        ("tracked_new", (TRACKED | NEW) as i64),
        ("tracked_or_armed", (TRACKED | ARMED) as i64),
        ("seccomp_mode", facts.seccomp_mode.into()),
        ("exit_code", facts.exit_code.into()),
        ("process", facts.process.into()),
        ("pending", facts.pending.into()),
        ("signals", facts.signals.into()),
        ("threads", facts.threads.into()),
        ("is_confined", facts.is_confined.into()),
        ("rows", ROWS as i64),
        ("x32", 2 * ROWS as i64),
        ("table_bytes", table_bytes as i64),
        ("errno_key", i64::from(ERRNO_KEY) << 16),
        ("far_errors", FAR_ERRORS.into()),
        ("far_denied", FAR_DENIED.into()),
        ("live", 8 * LIVE as i64),
        ("lost", 8 * LOST as i64),
        ("lost_times", 8 * LOST_TIMES as i64),
        ("begun", 8 * BEGUN as i64),
        ("starts_mask", STARTS as i64 - 1),
        ("time_row_bytes", time_row_bytes as i64),
        (
            "time_table_bytes",
            (time_row_bytes * ROWS * INTERFACES) as i64,
        ),
        ("time_buckets", TIME_BUCKETS as i64),
        ("time_last", TIME_BUCKETS as i64 - 1),
    ]
}

/// The parts of texts with names.
fn parts(machine: &Machine) -> [(&'static str, String); 6] {
    let wide = if machine.has_x32 { WIDE } else { "" };
    [
        ("compat", machine.is_compat.to_owned()),
        ("wide", wide.to_owned()),
        ("caller", format!("{TASK}{RECORDED}")),
        ("signal", count_in("signals", -8, "signal")),
        ("state", STATE.to_owned()),
        ("halve", [32, 16, 8, 4, 2].map(halved).concat()),
    ]
}

/// Replaces loads of 64-bit addresses, which the text form doesn't have, by raw instructions.
fn with_maps(text: &str, maps: &Maps<'_>) -> Result<String, String> {
    /// `BPF_LD | BPF_IMM | BPF_DW`.
    const LOAD_WIDE: u8 = 0x18;
    /// `BPF_PSEUDO_MAP_FD` and `BPF_PSEUDO_MAP_VALUE`.
    const TABLE: u8 = 1;
    const VALUE: u8 = 2;
    let mut linked = String::with_capacity(text.len());
    for line in text.lines() {
        let load = line
            .trim()
            .split_once(" = ")
            .and_then(|(register, source)| {
                let variant = match source.chars().next()? {
                    '&' => VALUE,
                    '#' => TABLE,
                    _ => return None,
                };
                Some((register.strip_prefix('r')?, variant, &source[1..]))
            });
        let Some((register, variant, name)) = load else {
            linked += line;
            linked.push('\n');
            continue;
        };
        let map = maps.iter().find(|(known, _)| *known == name);
        let (_, descriptor) = map.ok_or_else(|| format!("there is no map `{name}`"))?;
        let _ = writeln!(
            linked,
            ".insn {LOAD_WIDE}, {register}, {variant}, 0, {descriptor}\n.insn 0, 0, 0, 0, 0"
        );
    }
    Ok(linked)
}

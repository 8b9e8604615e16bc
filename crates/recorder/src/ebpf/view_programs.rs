//! The programs that show the calls of recorded tasks that a filter selects, as source texts.
//!
//! The filter is a seccomp filter, translated as the kernel does, and a function of the programs for entries and exits,
//! which pass it the call as `struct seccomp_data`. It returns `notify` for the calls to show. A record of an entry has
//! the call and up to two pieces of memory behind its arguments, which the array `wanted` selects for each number. A
//! record of an exit has the result and the memory that the kernel wrote. A call with an exit but no entry was denied:
//! its one record has both.
//!
//! Records lack text or bytes in memory that isn't loaded, which programs can't read.

use std::os::fd::RawFd;

use tamis_abi::{Action, ActionKind};
use tamis_bpf::disasm::Style;
use tamis_ebpf::{Insn, convert};
use tamis_kernel::tracee::SignalInfo;

use super::programs::{
    self, ARMED, EXEC, Facts, IN_CALL, LOST, NEW, RECORDED, STATE, TASK, TRACKED,
};

/// The task's present call is shown.
const SHOWN: u64 = 16;
const SIGKILL: i32 = 9;

/// Kinds of records.
pub(super) const ENTERED: u32 = 1;
pub(super) const LEFT: u32 = 2;
pub(super) const DENIED: u32 = 3;
pub(super) const CREATED: u32 = 4;
pub(super) const ENDED: u32 = 5;
pub(super) const SIGNALLED: u32 = 6;
pub(super) const RENUMBERED: u32 = 7;

/// The offsets in a record: kind and task, time, the call as `struct seccomp_data`, result, pieces of memory.
pub(super) const TIME: usize = 8;
pub(super) const CALL: usize = 16;
pub(super) const RESULT: usize = 80;
/// In records of ends, in place of the call: the process, and the number of its threads that live.
pub(super) const PROCESS: usize = CALL;
pub(super) const THREADS: usize = CALL + 4;
/// In records of signals, in place of the call: the beginning of `siginfo_t`.
pub(super) const INFO: usize = CALL;
pub(super) const PIECES: usize = 88;
/// The size of a record without pieces.
pub(super) const SHORT_BYTES: usize = PIECES;
/// The number of pieces of a record: address, length or error, bytes.
pub(super) const PIECE_COUNT: usize = 2;
pub(super) const MAX_PIECE_BYTES: usize = 256;
pub(super) const PIECE_BYTES: usize = 16 + MAX_PIECE_BYTES;
const LONG_BYTES: usize = PIECES + PIECE_COUNT * PIECE_BYTES;

/// The parts of a word of `wanted`, 8 bits each: for each piece its argument, and the argument with its length, or 0
/// for a text; then the argument that the kernel fills. Arguments are counted from 1.
pub(super) const OUTPUT_SHIFT: u32 = 32;
/// Then the lengths of the pieces and of the memory that the kernel fills, in units, or 0 if they aren't constant.
pub(super) const FIXED_SHIFT: u32 = 40;
pub(super) const FIXED_UNIT: usize = 4;

/// The tracepoints. Calls for which a filter sends a signal aren't distinguished here.
pub(super) const TRACEPOINTS: [&str; 6] = [
    "sys_enter",
    "sys_exit",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "signal_deliver",
];

/// The source texts of the programs.
pub(super) fn all(filter: &tamis_bpf::Program) -> Result<[String; 6], String> {
    let filter = convert::listing(filter, Style::Plain).map_err(|error| error.to_string())?;
    // The kernel doesn't verify its own translation, but the verifier rejects reads of uninitialised registers.
    let filter = filter
        .replacen("w0 ^= w0", "w0 = 0", 1)
        .replacen("w7 ^= w7", "w7 = 0", 1);
    let filter = format!("filter:\n{filter}");
    Ok([
        enter() + &filter,
        exit() + &filter,
        fork(),
        exec(),
        end(),
        signal(),
    ])
}

/// The call as `struct seccomp_data` at r10 - 192, from the number in r7 and the registers at r9.
fn call() -> String {
    let mut text = "
    *(u32 *)(r10 - 192) = r7
    r1 = *(u64 *)(r9 + {ip})
    *(u64 *)(r10 - 184) = r1
    {compat}
    if w1 != 0 goto compat
    w1 = {native}
    *(u32 *)(r10 - 188) = r1
"
    .to_owned();
    let stored = |place: usize| 176 - 8 * place;
    for place in 0..6 {
        text += &format!(
            "    r1 = *(u64 *)(r9 + {{arg{place}}})\n    *(u64 *)(r10 - {}) = r1\n",
            stored(place)
        );
    }
    text += "    goto known\ncompat:\n    w1 = {foreign}\n    *(u32 *)(r10 - 188) = r1\n";
    for place in 0..6 {
        text += &format!(
            "    r1 = *(u64 *)(r9 + {{compat{place}}})\n    w1 = w1\n    *(u64 *)(r10 - {}) = r1\n",
            stored(place)
        );
    }
    text += "
known:
    r1 = r10
    r1 += -192
    call filter
    if w0 != {notify} goto out
";
    text
}

/// A record of this size in r7, with its kind, the task at r10 - 32, and the time.
fn record(kind: u32, bytes: usize) -> String {
    format!(
        "
    r1 = #ring
    r2 = {bytes}
    r3 = 0
    call 131 // bpf_ringbuf_reserve
    if r0 == 0 goto lost
    r7 = r0
    call 5 // bpf_ktime_get_ns
    *(u64 *)(r7 + {TIME}) = r0
    w1 = {kind}
    *(u32 *)(r7 + 0) = r1
    r1 = *(u64 *)(r10 - 32)
    *(u32 *)(r7 + 4) = r1
"
    )
}

/// Submits the record; the end of a program that can lose one.
const HANDED_OVER: &str = "
    r1 = r7
    r2 = 1 // BPF_RB_NO_WAKEUP
    call 132 // bpf_ringbuf_submit
out:
    r0 = 0
    exit
lost:
    r1 = &totals
    r2 = 1
    lock *(u64 *)(r1 + {lost}) += r2
    r0 = 0
    exit
";

/// Fills a record with the call at r10 - 192 and the memory behind its arguments.
fn filled() -> String {
    let mut text = String::new();
    for at in (0..64).step_by(8) {
        text += &format!(
            "    r1 = *(u64 *)(r10 - {})\n    *(u64 *)(r7 + {}) = r1\n",
            192 - at,
            CALL + at
        );
    }
    text += "    r1 = 0\n";
    for piece in 0..PIECE_COUNT {
        let at = PIECES + piece * PIECE_BYTES;
        text += &format!(
            "    *(u64 *)(r7 + {at}) = r1\n    *(u64 *)(r7 + {}) = r1\n",
            at + 8
        );
    }
    text += &wanted();
    for number in 0..PIECE_COUNT {
        text += &piece(number);
    }
    text + "kept:\n"
}

/// Fills a piece of the record, if the word in r8 selects it.
fn piece(piece: usize) -> String {
    let at = PIECES + piece * PIECE_BYTES;
    let shift = 16 * piece;
    format!(
        "
    r1 = r8
    r1 >>= {shift}
    r1 &= 255
    if r1 == 0 goto kept
{}
    *(u64 *)(r7 + {at}) = r3
    r9 = r3
    r2 = r8
    r2 >>= {}
    r2 &= 255
    r2 *= {FIXED_UNIT}
    if r2 != 0 goto sized{piece}
    r1 = r8
    r1 >>= {}
    r1 &= 255
    if r1 == 0 goto text{piece}
{}
    r2 = r3
sized{piece}:
    if r2 <= {MAX_PIECE_BYTES} goto fits{piece}
    r2 = {MAX_PIECE_BYTES}
fits{piece}:
    *(u64 *)(r10 - 40) = r2
    r1 = r7
    r1 += {}
    r3 = r9
    call 112 // bpf_probe_read_user
    if r0 != 0 goto kept{piece}
    r0 = *(u64 *)(r10 - 40)
    goto kept{piece}
text{piece}:
    r1 = r7
    r1 += {}
    r2 = {MAX_PIECE_BYTES}
    r3 = r9
    call 114 // bpf_probe_read_user_str
kept{piece}:
    *(u64 *)(r7 + {}) = r0
",
        argument(),
        FIXED_SHIFT as usize + 8 * piece,
        shift + 8,
        argument(),
        at + 16,
        at + 16,
        at + 8
    )
}

/// From an argument in r1, counted from 1, its value in r3, of the record in r7.
fn argument() -> String {
    format!(
        "
    r1 += -1
    r1 &= 7
    r1 <<= 3
    r2 = r7
    r2 += r1
    r3 = *(u64 *)(r2 + {})
",
        CALL + 16
    )
}

/// The word of `wanted` for the call at r10 - 192, in r8.
fn wanted() -> String {
    "
    w1 = *(u32 *)(r10 - 192)
    r8 = 0
    w2 = *(u32 *)(r10 - 188)
    if w2 == {foreign} goto wanted_foreign
    // Numbers that bit 30 makes those of x32 exist only there; elsewhere they have no row.
    r2 = r1
    r2 >>= 30
    if r2 != 1 goto wanted_row
    r8 = {x32}
    r1 &= 0x3fffffff
    goto wanted_row
wanted_foreign:
    r8 = {rows}
wanted_row:
    if r1 >= {rows} goto wanted_none
    r1 += r8
    r1 <<= 3
    r2 = &wanted
    r2 += r1
    r8 = *(u64 *)(r2 + 0)
    goto wanted_known
wanted_none:
    r8 = 0
wanted_known:
"
    .to_owned()
}

fn enter() -> String {
    let state = TRACKED | IN_CALL;
    format!(
        "{TASK}{RECORDED}
    r1 = {state}
    *(u8 *)(r8 + 0) = r1
    r7 = *(u64 *)(r6 + 8)
    w7 = w7
    r9 = *(u64 *)(r6 + 0)
{}
{}
    // Only now: the exit of a call whose entry is lost isn't told, as it would pass for that of another call.
    r1 = {}
    *(u8 *)(r8 + 0) = r1
    r1 = 0
    *(u64 *)(r7 + {RESULT}) = r1
{}{HANDED_OVER}",
        call(),
        record(ENTERED, LONG_BYTES),
        state | SHOWN,
        filled()
    )
}

fn exit() -> String {
    format!(
        "{TASK}{RECORDED}
    r2 = *(u64 *)(r6 + 8)
    *(u64 *)(r10 - 48) = r2
    r9 = *(u64 *)(r6 + 0)
    r3 = {TRACKED}
    *(u8 *)(r8 + 0) = r3
    r2 = r1
    r2 &= {IN_CALL}
    if r2 == 0 goto other
    r1 &= {SHOWN}
    if r1 == 0 goto out
    // A call in which its task is killed never returns.
    r2 = *(u64 *)(r10 - 48)
    if r2 s< -516 goto returned
    if r2 s> -512 goto returned
    r2 = *(u64 *)(r0 + {{pending}})
    r2 &= {}
    if r2 != 0 goto out
returned:
{}
done:
    goto hand
other:
    r1 &= {NEW}
    if r1 != 0 goto out
    w7 = *(u32 *)(r9 + {{nr}})
    if w7 == -1 goto out
{}
{}
    r1 = *(u64 *)(r10 - 48)
    *(u64 *)(r7 + {RESULT}) = r1
{}
hand:
{HANDED_OVER}",
        1 << (SIGKILL - 1),
        left(),
        call(),
        record(DENIED, LONG_BYTES),
        filled().replace("wanted_", "denied_"),
    )
}

/// A record of the exit of a shown call, in r7, with the memory that the kernel wrote.
fn left() -> String {
    let output = PIECES + 8;
    format!(
        "
    // The call as it is now.
    w1 = *(u32 *)(r9 + {{nr}})
    *(u32 *)(r10 - 192) = r1
    {{compat}}
    w2 = {{native}}
    if w1 == 0 goto machine
    w2 = {{foreign}}
machine:
    *(u32 *)(r10 - 188) = r2
{}
    r1 = *(u64 *)(r10 - 48)
    *(u64 *)(r7 + {RESULT}) = r1
    r1 = 0
    *(u64 *)(r7 + {PIECES}) = r1
    *(u64 *)(r7 + {output}) = r1
{}
    // Arguments of 32-bit calls are elsewhere.
    {{compat}}
    if w1 != 0 goto done
    r1 = r8
    r1 >>= {OUTPUT_SHIFT}
    r1 &= 255
    if r1 != 0 goto place
    // A text that wasn't loaded when the call began is now.
    r1 = r8
    r1 >>= 8
    r1 &= 255
    if r1 != 0 goto done
    r1 = r8
    r1 >>= {FIXED_SHIFT}
    r1 &= 255
    if r1 != 0 goto done
    r1 = r8
    r1 &= 255
    if r1 == 0 goto done
{}",
        record(LEFT, PIECES + PIECE_BYTES),
        wanted(),
        placed()
    )
}

/// Reads the memory behind the argument in r1, counted from 1, into the record in r7.
fn placed() -> String {
    let (bytes, output) = (PIECES + 16, PIECES + 8);
    format!(
        "
place:
    // Only the first five arguments are ever filled.
    r3 = *(u64 *)(r9 + {{arg0}})
    if r1 == 1 goto placed
    r3 = *(u64 *)(r9 + {{arg1}})
    if r1 == 2 goto placed
    r3 = *(u64 *)(r9 + {{arg2}})
    if r1 == 3 goto placed
    r3 = *(u64 *)(r9 + {{arg3}})
    if r1 == 4 goto placed
    r3 = *(u64 *)(r9 + {{arg4}})
    if r1 != 5 goto done
placed:
    *(u64 *)(r7 + {PIECES}) = r3
    r1 = r7
    r1 += {bytes}
    r2 = r8
    r2 >>= {}
    r2 &= 255
    r2 *= {FIXED_UNIT}
    if r2 != 0 goto structure
    r8 >>= {OUTPUT_SHIFT}
    r8 &= 255
    if r8 != 0 goto buffer
    r2 = {MAX_PIECE_BYTES}
    call 114 // bpf_probe_read_user_str
    *(u64 *)(r7 + {output}) = r0
    goto done
structure:
    r0 = *(u64 *)(r10 - 48)
    if r0 s< 0 goto done
    goto sized
buffer:
    r2 = *(u64 *)(r10 - 48)
    if r2 s<= 0 goto done
sized:
    if r2 <= {MAX_PIECE_BYTES} goto short
    r2 = {MAX_PIECE_BYTES}
short:
    *(u64 *)(r10 - 40) = r2
    call 112 // bpf_probe_read_user
    if r0 != 0 goto done
    r0 = *(u64 *)(r10 - 40)
    *(u64 *)(r7 + {output}) = r0
",
        FIXED_SHIFT as usize + 8 * PIECE_COUNT
    )
}

/// A task has started another: parent and child.
fn fork() -> String {
    format!(
        "
    r6 = r1
    call 14 // bpf_get_current_pid_tgid
    w7 = w0
    {STATE}
    w9 = *(u8 *)(r8 + 0)
    r1 = r9
    r1 &= {}
    if r1 == 0 goto out
    r1 = *(u64 *)(r6 + 8)
    w7 = *(u32 *)(r1 + {{pid}})
    {STATE}
    r1 = {ARMED}
    r2 = r9
    r2 &= {TRACKED}
    if r2 == 0 goto set
    r1 = {}
set:
    *(u8 *)(r8 + 0) = r1
    r1 = &totals
    r2 = 1
    lock *(u64 *)(r1 + {{live}}) += r2
    *(u64 *)(r10 - 32) = r7
    r9 &= {TRACKED}
    if r9 == 0 goto out
{}
{HANDED_OVER}",
        TRACKED | ARMED,
        TRACKED | NEW,
        record(CREATED, SHORT_BYTES),
    )
}

/// A task has executed a program, in a call that may be shown, and may have taken its process's number.
fn exec() -> String {
    let kept = format!("r1 = r9\n    r1 &= {SHOWN}\n    r1 |= {{tracked_in_call}}");
    let told = format!(
        "set:
    *(u8 *)(r8 + 0) = r1
    r2 = *(u64 *)(r6 + 8)
    w2 = w2
    if r2 == r7 goto out
    *(u64 *)(r10 - 48) = r2
    *(u64 *)(r10 - 32) = r7
{}
    r1 = *(u64 *)(r10 - 48)
    *(u64 *)(r7 + {RESULT}) = r1
{HANDED_OVER}",
        record(RENUMBERED, SHORT_BYTES)
    );
    let (start, _) = EXEC.split_once("set:").unwrap_or((EXEC, ""));
    start.replacen("r1 = {tracked_in_call}", &kept, 1) + &told
}

/// A task has ended.
fn end() -> String {
    format!(
        "
    call 158 // bpf_get_current_task_btf
    w1 = *(u32 *)(r0 + {{exit_code}})
    *(u64 *)(r10 - 48) = r1
    w1 = *(u32 *)(r0 + {{process}})
    *(u32 *)(r10 - 40) = r1
    r1 = *(u64 *)(r0 + {{signals}})
    w1 = *(u32 *)(r1 + {{threads}})
    *(u32 *)(r10 - 36) = r1
    w7 = *(u32 *)(r0 + {{pid}})
    *(u64 *)(r10 - 32) = r7
    {STATE}
    w9 = *(u8 *)(r8 + 0)
    if r9 == 0 goto out
    r1 = 0
    *(u8 *)(r8 + 0) = r1
    r9 &= {TRACKED}
    if r9 == 0 goto gone
{}
    r1 = *(u64 *)(r10 - 48)
    *(u64 *)(r7 + {RESULT}) = r1
    r1 = *(u64 *)(r10 - 40)
    *(u64 *)(r7 + {PROCESS}) = r1
    r1 = r7
    r2 = 1
    call 132 // bpf_ringbuf_submit
gone:
    r1 = &totals
    r2 = -1
    lock *(u64 *)(r1 + {{live}}) += r2
out:
    r0 = 0
    exit
lost:
    r1 = &totals
    r2 = 1
    lock *(u64 *)(r1 + {{lost}}) += r2
    goto gone
",
        record(ENDED, SHORT_BYTES),
    )
}

/// A task is about to get a signal: its number. The kernel sends `SIGKILL` to all threads of a process that ends, so
/// this signal is not shown; the status of the task reports it.
fn signal() -> String {
    format!(
        "{TASK}{RECORDED}
    r1 = *(u64 *)(r6 + 0)
    w1 = w1
    if r1 == {SIGKILL} goto out
{}
    r1 = r7
    r1 += {INFO}
    r2 = {}
    r3 = *(u64 *)(r6 + 8)
    call 113 // bpf_probe_read_kernel
{HANDED_OVER}",
        record(SIGNALLED, SHORT_BYTES),
        SignalInfo::SIZE_BYTES,
    )
}

/// Assembles a text.
///
/// # Errors
/// The error in the text, a bug of tamis.
pub(super) fn assemble(
    text: &str,
    facts: &Facts,
    maps: &[(&str, RawFd)],
) -> Result<Vec<Insn>, String> {
    let audit = |interface: usize| i64::from(facts.machine.arches[interface].audit() as i32);
    let names = [
        ("native", audit(0)),
        ("foreign", audit(1)),
        (
            "notify",
            i64::from(Action::new(ActionKind::Notify, 0).ret() as i32),
        ),
        ("lost", 8 * LOST as i64),
    ];
    programs::assemble(text, &names, facts, maps)
}

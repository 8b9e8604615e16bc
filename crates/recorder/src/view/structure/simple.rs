//! Times, limits, single numbers, and attributes of the system.

use tamis_abi::{Arch, consts};

use super::CallMemory;
use super::layout::{Fields, list, pointer};
use crate::view::symbols;
use crate::view::text::quoted;

/// Seconds and a fraction.
fn time_of(fields: &Fields<'_>, at: usize, fraction: &str) -> String {
    let (seconds, rest) = (fields.signed(at), fields.signed(at + 8));
    format!("{{tv_sec={seconds}, {fraction}={rest}}}")
}

pub(super) fn time(address: u64, behind: &CallMemory<'_>, fraction: &str) -> Option<String> {
    let bytes = behind.bytes(address, 16)?;
    Some(time_of(&Fields(&bytes), 0, fraction))
}

/// The times of a file's access and change, each a time or a constant such as `UTIME_NOW`.
pub(super) fn file_times(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    const NOW: i64 = 0x3fff_ffff;
    const OMIT: i64 = 0x3fff_fffe;
    let bytes = behind.bytes(address, 32)?;
    let fields = Fields(&bytes);
    let times = [0, 16].into_iter().map(|at| match fields.signed(at + 8) {
        NOW => "UTIME_NOW".to_owned(),
        OMIT => "UTIME_OMIT".to_owned(),
        _ => time_of(&fields, at, "tv_nsec"),
    });
    Some(format!("[{}]", list(times)))
}

pub(super) fn interval(address: u64, behind: &CallMemory<'_>, fraction: &str) -> Option<String> {
    let bytes = behind.bytes(address, 32)?;
    let fields = Fields(&bytes);
    let [every, next] = [0, 16].map(|at| time_of(&fields, at, fraction));
    Some(format!("{{it_interval={every}, it_value={next}}}"))
}

pub(super) fn limit(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    /// The unit of limits, for multiples of it.
    const UNIT: u64 = 1024;
    let bytes = behind.bytes(address, 16)?;
    let fields = Fields(&bytes);
    let [current, most] = [0, 8].map(|at| match fields.word(at) {
        u64::MAX => "RLIM64_INFINITY".to_owned(),
        limit if limit > UNIT && limit % UNIT == 0 => format!("{}*{UNIT}", limit / UNIT),
        limit => limit.to_string(),
    });
    Some(format!("{{rlim_cur={current}, rlim_max={most}}}"))
}

/// This number of 32-bit numbers.
pub(super) fn ints(address: u64, behind: &CallMemory<'_>, count: usize) -> Option<String> {
    let bytes = behind.bytes(address, 4 * count)?;
    let fields = Fields(&bytes);
    let numbers = (0..count).map(|index| fields.int(4 * index).to_string());
    Some(format!("[{}]", list(numbers)))
}

/// Users or groups: as many as `getgroups` returned, otherwise as the argument gives.
pub(super) fn owners(address: u64, behind: &CallMemory<'_>, count: u8) -> Option<String> {
    /// The maximum number shown.
    const MAX: usize = 32;
    /// The number of `getgroups` on x86-64.
    const GET: u32 = 115;
    let all = match behind.call.nr {
        GET => usize::try_from(behind.result).ok()?,
        _ => behind.arg(count) as u32 as usize,
    };
    let bytes = behind.bytes(address, 4 * all.min(MAX))?;
    let fields = Fields(&bytes);
    let shown = (0..all.min(MAX)).map(|index| fields.half(4 * index).to_string());
    let more = (all > MAX).then(|| "...".to_owned());
    Some(format!("[{}]", list(shown.chain(more))))
}

pub(super) fn utsname(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    /// The size of each member.
    const LEN: usize = 65;
    let bytes = behind.bytes(address, 2 * LEN)?;
    let member = |index: usize| {
        let bytes = &bytes[LEN * index..LEN * (index + 1)];
        let end = bytes.iter().position(|byte| *byte == 0);
        quoted(&bytes[..end.unwrap_or(LEN)], false)
    };
    Some(format!(
        "{{sysname={}, nodename={}, ...}}",
        member(0),
        member(1)
    ))
}

pub(super) fn sysinfo(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let bytes = behind.bytes(address, 112)?;
    let fields = Fields(&bytes);
    let loads = list((1..4).map(|index| fields.word(8 * index).to_string()));
    let names = [
        "totalram",
        "freeram",
        "sharedram",
        "bufferram",
        "totalswap",
        "freeswap",
    ];
    let words = names.iter().enumerate();
    let words = list(words.map(|(index, name)| format!("{name}={}", fields.word(32 + 8 * index))));
    Some(format!(
        "{{uptime={}, loads=[{loads}], {words}, procs={}, totalhigh={}, freehigh={}, mem_unit={}}}",
        fields.signed(0),
        fields.quarter(80),
        fields.word(88),
        fields.word(96),
        fields.half(104)
    ))
}

pub(super) fn rusage(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let bytes = behind.bytes(address, 32)?;
    let fields = Fields(&bytes);
    let [user, system] = [0, 16].map(|at| time_of(&fields, at, "tv_usec"));
    Some(format!("{{ru_utime={user}, ru_stime={system}, ...}}"))
}

/// The arguments of `clone3`, with the numbers that the kernel filled in.
pub(super) fn clone_args(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    /// The size of the first version.
    const LEN: usize = 64;
    let bytes = behind.bytes(address, LEN)?;
    let fields = Fields(&bytes);
    let flags = fields.word(0);
    let has = |name: &str| consts::value(Arch::X86_64, name).is_some_and(|bit| flags & bit != 0);
    let mut parts = vec![format!(
        "flags={}",
        symbols::clone_flags(Arch::X86_64, flags)
    )];
    if has("CLONE_PIDFD") {
        parts.push(format!("pidfd={}", pointer(fields.word(8))));
    }
    if has("CLONE_CHILD_SETTID") || has("CLONE_CHILD_CLEARTID") {
        parts.push(format!("child_tid={}", pointer(fields.word(16))));
    }
    if has("CLONE_PARENT_SETTID") {
        parts.push(format!("parent_tid={}", pointer(fields.word(24))));
    }
    let signal = fields.word(32);
    parts.push(match signal {
        0 => "exit_signal=0".to_owned(),
        signal => format!("exit_signal={}", symbols::signal_name(signal as i32)),
    });
    parts.push(format!("stack={}", pointer(fields.word(40))));
    parts.push(match fields.word(48) {
        0 => "stack_size=0".to_owned(),
        size => format!("stack_size={size:#x}"),
    });
    if has("CLONE_SETTLS") {
        parts.push(format!("tls={}", pointer(fields.word(56))));
    }
    Some(format!("{{{}}}", parts.join(", ")))
}

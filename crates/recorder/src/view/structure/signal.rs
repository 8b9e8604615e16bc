//! Signal sets and actions, signal information, and wait statuses.

use tamis_abi::Nr;
use tamis_abi::{Arch, consts, syscall};
use tamis_kernel::tracee::SignalInfo;

use super::CallMemory;
use super::layout::{Fields, pointer};
use crate::view::symbols::{self, signal_name};

/// The greatest signal number.
const SIGNALS: u32 = 64;

/// The names of the signals in a set, or of those not in it if most are.
fn set_of(mask: u64) -> String {
    /// The number of members from which the complement is shown.
    const MOST: u32 = SIGNALS * 2 / 3;
    let is_inverted = mask.count_ones() >= MOST;
    let shown = if is_inverted { !mask } else { mask };
    let signals = (1..=SIGNALS).filter(|signal| shown >> (signal - 1) & 1 != 0);
    let names = signals.map(|signal| {
        let name = signal_name(signal as i32);
        name.strip_prefix("SIG").unwrap_or(&name).to_owned()
    });
    let names: Vec<String> = names.collect();
    format!(
        "{}[{}]",
        if is_inverted { "~" } else { "" },
        names.join(" ")
    )
}

pub(super) fn set(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let bytes = behind.bytes(address, 8)?;
    Some(set_of(Fields(&bytes).word(0)))
}

pub(super) fn action(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    const FLAGS: [&str; 9] = [
        "SA_RESTORER",
        "SA_ONSTACK",
        "SA_RESTART",
        "SA_NODEFER",
        "SA_RESETHAND",
        "SA_SIGINFO",
        "SA_NOCLDSTOP",
        "SA_NOCLDWAIT",
        "SA_EXPOSE_TAGBITS",
    ];
    /// `SA_RESTORER`.
    const RESTORER: u64 = 0x0400_0000;
    let bytes = behind.bytes(address, 32)?;
    let fields = Fields(&bytes);
    let handler = match fields.word(0) {
        0 => "SIG_DFL".to_owned(),
        1 => "SIG_IGN".to_owned(),
        u64::MAX => "SIG_ERR".to_owned(),
        handler => pointer(handler),
    };
    let flags = fields.word(8);
    let restorer = match flags & RESTORER {
        0 => String::new(),
        _ => format!(", sa_restorer={}", pointer(fields.word(16))),
    };
    Some(format!(
        "{{sa_handler={handler}, sa_mask={}, sa_flags={}{restorer}}}",
        set_of(fields.word(24)),
        symbols::joined(Arch::X86_64, &FLAGS, flags)
    ))
}

pub(super) fn stack(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    const FLAGS: [&str; 3] = ["SS_ONSTACK", "SS_DISABLE", "SS_AUTODISARM"];
    let bytes = behind.bytes(address, 24)?;
    let fields = Fields(&bytes);
    Some(format!(
        "{{ss_sp={}, ss_flags={}, ss_size={}}}",
        pointer(fields.word(0)),
        symbols::joined(Arch::X86_64, &FLAGS, fields.half(8).into()),
        match fields.word(16) {
            0 => "0".to_owned(),
            size => format!("{size:#x}"),
        }
    ))
}

/// The wait status of a child.
pub(super) fn status(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    // Without a child, nothing is written.
    if behind.result == 0 {
        return None;
    }
    let bytes = behind.bytes(address, 4)?;
    let status = Fields(&bytes).int(0);
    Some(format!("[{{{}}}]", status_of(status)))
}

fn status_of(status: i32) -> String {
    /// The status of a continued child.
    const CONTINUED: i32 = 0xffff;
    let (signal, code) = (status & 0x7f, status >> 8 & 0xff);
    if status == CONTINUED {
        "WIFCONTINUED(s)".to_owned()
    } else if signal == 0x7f {
        let event = match status >> 16 {
            0 => String::new(),
            event => format!(" && WPTEVENT(s) == {event:#x}"),
        };
        format!(
            "WIFSTOPPED(s) && WSTOPSIG(s) == {}{event}",
            signal_name(code)
        )
    } else if signal == 0 {
        format!("WIFEXITED(s) && WEXITSTATUS(s) == {code}")
    } else {
        let core = if status & 0x80 != 0 {
            " && WCOREDUMP(s)"
        } else {
            ""
        };
        format!(
            "WIFSIGNALED(s) && WTERMSIG(s) == {}{core}",
            signal_name(signal)
        )
    }
}

/// Signal information that the kernel has filled in for a call that waits for a signal or a child.
pub(super) fn filled_info(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let bytes = behind.bytes(address, SignalInfo::SIZE_BYTES)?;
    let info = SignalInfo::of_bytes(&bytes)?;
    // `waitid` found no child.
    (info.signal() != 0).then(|| self::info(&info))
}

/// The codes of particular signals: their prefix, and the greatest code.
const CODES: [(i32, &str, i32); 6] = [
    (4, "ILL_", 11),
    (5, "TRAP_", 6),
    (7, "BUS_", 5),
    (8, "FPE_", 15),
    (11, "SEGV_", 10),
    (17, "CLD_", 6),
];
const SIGCHLD: i32 = 17;
const SIGPOLL: i32 = 29;
const SIGSYS: i32 = 31;

/// The name of a signal's code.
fn code_name(signal: i32, code: i32) -> String {
    const GENERAL: [(i32, &str); 11] = [
        (0, "SI_USER"),
        (0x80, "SI_KERNEL"),
        (-1, "SI_QUEUE"),
        (-2, "SI_TIMER"),
        (-3, "SI_MESGQ"),
        (-4, "SI_ASYNCIO"),
        (-5, "SI_SIGIO"),
        (-6, "SI_TKILL"),
        (-7, "SI_DETHREAD"),
        (-8, "SI_ASYNCNL"),
        (-60, "SI_ASYNCNL"),
    ];
    if let Some((_, name)) = GENERAL.iter().find(|(number, _)| *number == code) {
        return (*name).to_owned();
    }
    let named = |prefix: &str| {
        let names = consts::starting_with(Arch::X86_64, prefix);
        let mut names = names.filter(|(_, value)| *value == code as u64);
        names.next().map(|(name, _)| name.to_owned())
    };
    let prefix = match signal {
        SIGPOLL => Some("POLL_"),
        SIGSYS => Some("SYS_SECCOMP").filter(|_| code == 1),
        _ => CODES
            .iter()
            .find(|(of, ..)| *of == signal)
            .map(|(_, prefix, _)| *prefix),
    };
    let name = prefix.and_then(named);
    name.unwrap_or_else(|| format!("{code:#x}"))
}

/// The information of a signal, in the form of strace.
///
/// ```
/// use tamis_kernel::tracee::SignalInfo;
/// let info = SignalInfo::sent_by(15, 4711, 0);
/// let text = "{si_signo=SIGTERM, si_code=SI_USER, si_pid=4711, si_uid=0}";
/// assert_eq!(tamis_recorder::view::signal_info(&info), text);
/// ```
pub fn info(info: &SignalInfo) -> String {
    let (signal, code) = (info.signal(), info.code);
    let mut text = format!(
        "{{si_signo={}, si_code={}",
        signal_name(signal),
        code_name(signal, code)
    );
    if info.errno != 0 {
        let name = u16::try_from(info.errno).ok().and_then(symbols::error_name);
        let name = name.map_or_else(|| info.errno.to_string(), str::to_owned);
        text += &format!(", si_errno={name}");
    }
    text += &match (signal, code) {
        // From a timer.
        (_, -2) => {
            let (timer, overrun) = (info.int(16), info.int(20));
            format!(
                ", si_timerid={timer:#x}, si_overrun={overrun}{}",
                sent_value(info)
            )
        }
        (_, 0 | -6) => sender(info),
        (_, ..0) => sender(info) + &sent_value(info),
        (SIGCHLD, _) => of_child(info),
        (4 | 7 | 8 | 11, 1..0x80) => format!(", si_addr={}", pointer(info.word(16))),
        (SIGPOLL, 1..0x80) => format!(", si_band={}, si_fd={}", info.word(16) as i64, info.int(24)),
        (SIGSYS, 1) => of_filter(info),
        _ if info.int(16) != 0 || info.int(20) != 0 => sender(info),
        _ => String::new(),
    };
    text + "}"
}

fn sender(info: &SignalInfo) -> String {
    format!(", si_pid={}, si_uid={}", info.int(16), info.int(20) as u32)
}

/// The value that the sender has attached.
fn sent_value(info: &SignalInfo) -> String {
    let value = info.word(24);
    match value {
        0 => String::new(),
        value => format!(", si_int={}, si_ptr={}", value as i32, pointer(value)),
    }
}

fn of_child(info: &SignalInfo) -> String {
    /// `CLD_EXITED`.
    const EXITED: i32 = 1;
    let status = match info.code {
        EXITED => info.int(24).to_string(),
        _ => signal_name(info.int(24)),
    };
    let ticks = |at: usize| {
        let ticks = info.word(at) as i64;
        match ticks {
            0 => "0".to_owned(),
            ticks => format!("{ticks} /* {}.{:02} s */", ticks / 100, ticks % 100),
        }
    };
    format!(
        "{}, si_status={status}, si_utime={}, si_stime={}",
        sender(info),
        ticks(32),
        ticks(40)
    )
}

fn of_filter(info: &SignalInfo) -> String {
    let arch = Arch::of_call(info.arch, info.nr);
    let name = arch.and_then(|arch| syscall::name(arch, Nr(info.nr)));
    let call = name.map_or_else(|| format!("{:#x}", info.nr), |name| format!("__NR_{name}"));
    let audit = consts::starting_with(Arch::X86_64, "AUDIT_ARCH_");
    let mut audit = audit.filter(|(_, value)| *value == u64::from(info.arch));
    let audit = audit
        .next()
        .map_or_else(|| format!("{:#x}", info.arch), |(name, _)| name.to_owned());
    format!(
        ", si_call_addr={}, si_syscall={call}, si_arch={audit}",
        pointer(info.word(16))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_name_the_fewer_ones() {
        assert_eq!(set_of(0), "[]");
        assert_eq!(set_of(1 << 1 | 1 << 16), "[INT CHLD]");
        assert_eq!(set_of(1 << 31 | 1 << 32), "[RTMIN RT_1]");
        assert_eq!(set_of(!(1 << 8 | 1 << 18)), "~[KILL STOP]");
        assert_eq!(set_of(u64::MAX), "~[]");
    }

    #[test]
    fn a_status_says_how_a_child_ended() {
        assert_eq!(status_of(0x300), "WIFEXITED(s) && WEXITSTATUS(s) == 3");
        assert_eq!(
            status_of(0x8b),
            "WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)"
        );
        assert_eq!(status_of(0x137f), "WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP");
    }

    #[test]
    fn codes_have_names() {
        assert_eq!(code_name(17, 1), "CLD_EXITED");
        assert_eq!(code_name(11, 1), "SEGV_MAPERR");
        assert_eq!(code_name(10, -6), "SI_TKILL");
        assert_eq!(code_name(31, 1), "SYS_SECCOMP");
        assert_eq!(code_name(10, 7), "0x7");
    }
}

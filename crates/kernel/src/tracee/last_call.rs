//! The system call of a stopped task, read without machine-specific registers.
//!
//! `/proc/TID/syscall` has number and arguments in the kernel's architecture-independent form at every stop, even
//! if the task is about to exit, where `PTRACE_GET_SYSCALL_INFO` has none.

use std::fs;

use tamis_abi::SeccompData;

/// The current or last call of a stopped task, without its architecture.
///
/// `None` if it wasn't in a call, or if `/proc` can't be read.
pub(super) fn read(tid: i32) -> Option<SeccompData> {
    parse(&fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?)
}

/// Parses `nr arg0 … arg5 sp pc`; with number -1, for a task outside of calls, the arguments are missing.
fn parse(text: &str) -> Option<SeccompData> {
    let mut fields = text.split_ascii_whitespace();
    let nr: i32 = fields.next()?.parse().ok()?;
    let mut words = fields.map(|field| {
        let digits = field.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    });
    let mut next = || words.next().flatten();
    let mut args = [0; 6];
    for arg in &mut args {
        *arg = next()?;
    }
    let _stack_pointer = next()?;
    Some(SeccompData {
        nr: nr as u32,
        arch: 0,
        ip: next()?,
        args,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_call_as_the_kernel_prints_it() {
        let call = parse("230 0x0 0x1 0x7ffd 0x0 0x5 0xffffffffffffffff 0x7ffc 0x7f10\n").unwrap();
        assert_eq!(call.nr, 230);
        assert_eq!(call.args, [0, 1, 0x7ffd, 0, 5, u64::MAX]);
        assert_eq!(call.ip, 0x7f10);
    }

    #[test]
    fn a_task_outside_of_calls_has_none() {
        assert_eq!(parse("-1 0x7ffc 0x7f10\n"), None);
        assert_eq!(parse("running\n"), None);
    }
}

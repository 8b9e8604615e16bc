//! The registers of a call that a tracer changes: its number, its arguments and its result, by architecture.
//!
//! Whether a call is skipped, and what it returns, has no interface that is the same for all: `PTRACE_SET_SYSCALL_INFO`
//! came with Linux 6.16. Other machines than x86-64 and AArch64 report `ENOSYS`.

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{left_call, repeat_call, replace_call, set_result, skip_call};
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use other::{left_call, repeat_call, replace_call, set_result, skip_call};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{left_call, repeat_call, replace_call, set_result, skip_call};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::mem::offset_of;

    use tamis_abi::SeccompData;

    use crate::errno::Errno;
    use crate::sys::ptrace::set_register;

    /// None: the kernel keeps the call.
    pub(crate) fn left_call(_: libc::pid_t) -> Option<SeccompData> {
        None
    }

    /// Makes a tracee that has stopped at the entry of a system call skip it: it returns the result set by then,
    /// `ENOSYS` by default.
    pub(crate) fn skip_call(tid: libc::pid_t) -> Result<(), Errno> {
        let place = offset_of!(libc::user_regs_struct, orig_rax);
        set_register(tid, place, usize::MAX)
    }

    /// Sets the result of a skipped system call, or at its exit.
    pub(crate) fn set_result(tid: libc::pid_t, result: i64) -> Result<(), Errno> {
        let place = offset_of!(libc::user_regs_struct, rax);
        set_register(tid, place, result as usize)
    }

    /// Sets the instruction pointer to the call instruction before `ip`, and the number of its call. The arguments are
    /// in their registers.
    pub(crate) fn repeat_call(
        tid: libc::pid_t,
        nr: u32,
        _: &[u64; 6],
        ip: u64,
    ) -> Result<(), Errno> {
        /// Of `syscall`, `sysenter` and `int 0x80`.
        const INSTRUCTION_BYTES: u64 = 2;
        set_result(tid, i64::from(nr))?;
        let place = offset_of!(libc::user_regs_struct, rip);
        set_register(tid, place, ip.wrapping_sub(INSTRUCTION_BYTES) as usize)
    }

    /// Replaces number and arguments of the call that a tracee is about to enter.
    pub(crate) fn replace_call(tid: libc::pid_t, nr: u32, args: &[u64; 6]) -> Result<(), Errno> {
        let places = [
            offset_of!(libc::user_regs_struct, rdi),
            offset_of!(libc::user_regs_struct, rsi),
            offset_of!(libc::user_regs_struct, rdx),
            offset_of!(libc::user_regs_struct, r10),
            offset_of!(libc::user_regs_struct, r8),
            offset_of!(libc::user_regs_struct, r9),
        ];
        for (place, arg) in places.into_iter().zip(args) {
            set_register(tid, place, *arg as usize)?;
        }
        let place = offset_of!(libc::user_regs_struct, orig_rax);
        set_register(tid, place, nr as usize)
    }
}

/// The number of the present call is not among the general registers; it has a set of its own. The result takes the
/// place of the first argument, which is why a repeated call needs it again.
#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use tamis_abi::SeccompData;

    use crate::errno::Errno;
    use crate::sys::ptrace::{registers, set_registers, set_system_call};

    /// The general registers of a 64-bit task: x0 to x30, the stack pointer, pc, the state. Of a 32-bit task: r0 to r15,
    /// the state, and r0 at the entry.
    struct Words {
        bytes: Vec<u8>,
    }

    impl Words {
        const LEN_BYTES: usize = 34 * 8;

        fn read(tid: libc::pid_t) -> Result<Words, Errno> {
            Ok(Words {
                bytes: registers(tid)?,
            })
        }

        fn is_64_bit(&self) -> bool {
            self.bytes.len() == Words::LEN_BYTES
        }

        /// The places of the program counter and of the call's number.
        fn places(&self) -> (usize, usize) {
            match self.is_64_bit() {
                true => (32, 8),
                false => (15, 7),
            }
        }

        fn set(&mut self, index: usize, value: u64) {
            let size = if self.is_64_bit() { 8 } else { 4 };
            if let Some(place) = self.bytes.get_mut(index * size..(index + 1) * size) {
                place.copy_from_slice(&value.to_ne_bytes()[..size]);
            }
        }

        fn get(&self, index: usize) -> Option<u64> {
            let size = if self.is_64_bit() { 8 } else { 4 };
            let mut word = [0; 8];
            word[..size].copy_from_slice(self.bytes.get(index * size..(index + 1) * size)?);
            Some(u64::from_ne_bytes(word))
        }

        /// The bytes of a call instruction: 2 for a 32-bit task in the state Thumb, otherwise 4.
        fn instruction_bytes(&self) -> u64 {
            const CPSR: usize = 16 * 4;
            const THUMB: u8 = 0x20;
            match self.bytes.get(CPSR) {
                Some(state) if !self.is_64_bit() && state & THUMB != 0 => 2,
                _ => 4,
            }
        }

        fn write(&self, tid: libc::pid_t) -> Result<(), Errno> {
            set_registers(tid, &self.bytes)
        }
    }

    /// The call that a task has left for a signal, for which the kernel forgets its number. A filter that kills does so by
    /// a signal, and leaves the registers as they were at the entry. Without the architecture.
    pub(crate) fn left_call(tid: libc::pid_t) -> Option<SeccompData> {
        let words = Words::read(tid).ok()?;
        let (counter, number) = words.places();
        let mut args = [0; 6];
        for (place, arg) in args.iter_mut().enumerate() {
            *arg = words.get(place)?;
        }
        Some(SeccompData {
            nr: words.get(number)? as u32,
            arch: 0,
            ip: words.get(counter)?,
            args,
        })
    }

    /// As on x86-64.
    pub(crate) fn skip_call(tid: libc::pid_t) -> Result<(), Errno> {
        set_system_call(tid, -1)?;
        set_result(tid, i64::from(-libc::ENOSYS))
    }

    /// As on x86-64.
    pub(crate) fn set_result(tid: libc::pid_t, result: i64) -> Result<(), Errno> {
        let mut words = Words::read(tid)?;
        words.set(0, result as u64);
        words.write(tid)
    }

    /// As on x86-64, and sets the first argument.
    pub(crate) fn repeat_call(
        tid: libc::pid_t,
        nr: u32,
        args: &[u64; 6],
        ip: u64,
    ) -> Result<(), Errno> {
        let mut words = Words::read(tid)?;
        let (counter, number) = words.places();
        let ip = ip.wrapping_sub(words.instruction_bytes());
        for (place, value) in [(0, args[0]), (number, nr.into()), (counter, ip)] {
            words.set(place, value);
        }
        words.write(tid)
    }

    /// As on x86-64. Filters that see the call after that see the first argument as it was.
    pub(crate) fn replace_call(tid: libc::pid_t, nr: u32, args: &[u64; 6]) -> Result<(), Errno> {
        let mut words = Words::read(tid)?;
        for (place, arg) in args.iter().enumerate() {
            words.set(place, *arg);
        }
        words.set(words.places().1, nr.into());
        words.write(tid)?;
        set_system_call(tid, nr as i32)
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod other {
    use tamis_abi::SeccompData;

    use crate::errno::Errno;

    /// Unknown.
    pub(crate) fn left_call(_: libc::pid_t) -> Option<SeccompData> {
        None
    }

    /// No effect.
    pub(crate) fn skip_call(_: libc::pid_t) -> Result<(), Errno> {
        Err(Errno(libc::ENOSYS))
    }

    /// No effect.
    pub(crate) fn set_result(_: libc::pid_t, _: i64) -> Result<(), Errno> {
        Err(Errno(libc::ENOSYS))
    }

    /// No effect.
    pub(crate) fn repeat_call(_: libc::pid_t, _: u32, _: &[u64; 6], _: u64) -> Result<(), Errno> {
        Err(Errno(libc::ENOSYS))
    }

    /// No effect.
    pub(crate) fn replace_call(_: libc::pid_t, _: u32, _: &[u64; 6]) -> Result<(), Errno> {
        Err(Errno(libc::ENOSYS))
    }
}

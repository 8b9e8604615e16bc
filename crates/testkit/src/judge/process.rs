//! The processes in which filters are installed: all `unsafe` code of the judge.
//!
//! A child of `fork` shares nothing with its parent but the [`Board`]s, and does nothing but system
//! calls and stores to them: the parent may have had threads that held locks.

use std::sync::atomic::{AtomicI64, Ordering};

use tamis_abi::SeccompData;
use tamis_bpf::Insn;

/// What a place on a board holds before something is written.
const EMPTY: i64 = i64::MIN;

/// What the child leaves through `_exit` if its filter was refused.
const REFUSED_STATUS: i32 = 99;

/// Numbers in memory that a child shares with its parent.
pub(super) struct Board {
    places: *const AtomicI64,
    len: usize,
}

impl Board {
    /// A board of `len` empty places.
    pub(super) fn new(len: usize) -> Board {
        let size_bytes = len.max(1) * size_of::<AtomicI64>();
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no other memory.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert!(address != libc::MAP_FAILED, "cannot map {size_bytes} bytes");
        let board = Board {
            places: address.cast::<AtomicI64>(),
            len,
        };
        for place in board.places() {
            place.store(EMPTY, Ordering::Relaxed);
        }
        board
    }

    fn places(&self) -> &[AtomicI64] {
        // SAFETY: the mapping holds `len` of them, is zeroed memory at first, is page-aligned, and
        // lives as long as `self`; other processes change it through atomics only.
        unsafe { std::slice::from_raw_parts(self.places, self.len) }
    }

    fn write(&self, index: usize, value: i64) {
        self.places()[index].store(value, Ordering::Relaxed);
    }

    /// What was written at a place.
    pub(super) fn value(&self, index: usize) -> Option<i64> {
        let value = self.places()[index].load(Ordering::Relaxed);
        (value != EMPTY).then_some(value)
    }

    /// What was written from a place on, up to the first place that is empty.
    pub(super) fn written_from(&self, first: usize) -> impl Iterator<Item = i64> {
        (first..self.len).map_while(|index| self.value(index))
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let size_bytes = self.len.max(1) * size_of::<AtomicI64>();
        // SAFETY: the mapping was made by `new` with this size, and nothing borrows from it any more.
        unsafe { libc::munmap(self.places.cast_mut().cast(), size_bytes) };
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By the illegal instruction, having done what it should.
    AsIntended,
    /// By `SIGSYS`.
    KilledByFilter,
    /// Its filter was refused.
    Refused,
}

/// Tries the lists one after the other in a new process until one is accepted, and writes what the
/// kernel said - 0 or a negative errno - from place `first` on.
pub(super) fn install_until_accepted(lists: &[Vec<Insn>], board: &Board, first: usize) {
    let ending = in_child(|| {
        for (index, insns) in lists.iter().enumerate() {
            let result = install(insns);
            board.write(first + index, result);
            if result == 0 {
                break;
            }
        }
    });
    assert_eq!(ending, Ending::AsIntended);
}

/// Installs a filter again and again in a new process; writes how often that went well, and what the
/// kernel said to the attempt that failed.
pub(super) fn install_until_refused(insns: &[Insn], board: &Board) {
    let ending = in_child(|| {
        let mut count = 0;
        let refusal = loop {
            match install(insns) {
                0 => count += 1,
                error => break error,
            }
        };
        board.write(0, count);
        board.write(1, refusal);
    });
    assert_eq!(ending, Ending::AsIntended);
}

/// Installs filters in a new process and makes the calls one after the other, writing results and
/// instruction pointers from place `first` on.
pub(super) fn install_and_call(
    filters: &[&[Insn]],
    calls: &[SeccompData],
    results: &Board,
    ips: &Board,
    first: usize,
) -> Ending {
    in_child(|| {
        if filters.iter().any(|insns| install(insns) != 0) {
            // SAFETY: `_exit` runs no handlers. If a filter refuses it, the parent sees that too.
            unsafe { libc::_exit(REFUSED_STATUS) };
        }
        for (index, data) in (first..).zip(calls) {
            let result = call(data.nr, data.args, &ips.places()[index]);
            results.write(index, result);
        }
    })
}

/// Runs `body` in a forked process that ends by an illegal instruction afterwards.
fn in_child(body: impl FnOnce()) -> Ending {
    // SAFETY: the child runs `body`, which makes system calls and stores to shared memory only, and
    // then ends; it takes no lock and allocates nothing.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "cannot fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        prepare();
        body();
        end();
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place, and `pid` is a child that nobody else waits for.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid, "{}", std::io::Error::last_os_error());
    if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGILL {
        Ending::AsIntended
    } else if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS {
        Ending::KilledByFilter
    } else if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == REFUSED_STATUS {
        Ending::Refused
    } else {
        panic!("the process ended with wait status {status:#x}")
    }
}

/// Makes the process able to install a filter and unable to leave a core dump.
fn prepare() {
    let no_core = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls change limits of this process only and read valid memory.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    }
}

/// Installs a filter; 0 or a negative errno.
fn install(insns: &[Insn]) -> i64 {
    let program = libc::sock_fprog {
        len: u16::try_from(insns.len()).unwrap_or(u16::MAX),
        filter: insns.as_ptr().cast_mut().cast(),
    };
    let address = &raw const program as u64;
    let mode = u64::from(libc::SECCOMP_SET_MODE_FILTER);
    let ignored = AtomicI64::new(0);
    call(
        libc::SYS_seccomp as u32,
        [mode, 0, address, 0, 0, 0],
        &ignored,
    )
}

/// Makes a system call from a place that is noted first; the result as the kernel gives it.
#[cfg(target_arch = "x86_64")]
fn call(nr: u32, args: [u64; 6], ip: &AtomicI64) -> i64 {
    let result: i64;
    // SAFETY: the callers ask for `seccomp` with a valid program, or for numbers that do nothing; the
    // kernel changes rax, rcx and r11. `ip` is valid for a store of eight bytes.
    unsafe {
        std::arch::asm!(
            "lea rcx, [rip + 2f]",
            "mov [{ip}], rcx",
            "syscall",
            "2:",
            ip = in(reg) ip.as_ptr(),
            inlateout("rax") i64::from(nr) => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            out("rcx") _,
            out("r11") _,
        );
    }
    result
}

/// Ends the process without a system call.
#[cfg(target_arch = "x86_64")]
fn end() -> ! {
    // SAFETY: the instruction does nothing but raise SIGILL, which nobody handles.
    unsafe { std::arch::asm!("ud2", options(noreturn)) }
}

/// No call is made: the judge is unavailable here.
#[cfg(not(target_arch = "x86_64"))]
fn call(_nr: u32, _args: [u64; 6], _ip: &AtomicI64) -> i64 {
    i64::from(-libc::ENOSYS)
}

/// Ends the process in a way that the parent reports as unexpected.
#[cfg(not(target_arch = "x86_64"))]
fn end() -> ! {
    // SAFETY: `_exit` runs no handlers.
    unsafe { libc::_exit(1) }
}

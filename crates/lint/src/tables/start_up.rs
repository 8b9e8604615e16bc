//! Calls of a program between its start and `main`, and calls of a container runtime between the installation of the
//! filter and the start of the container's program.
//!
//! Determined by denying each of them, with `EPERM`, `ENOSYS` and by a kill, to programs of glibc 2.36 (x86_64 and x86,
//! linked dynamically and statically), of musl 1.2.3, and to runc 1.1.5 and crun 1.8.1 with and without `no_new_privs`;
//! compared with the sources of runc and crun of other versions. If programs survive an error, the call must only not
//! be killed.

use tamis_abi::Arch;

use super::{Form, any, with};

/// The required result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// Neither an error nor a kill.
    Executed,
    /// No kill: programs survive errors.
    NotKilled,
}

/// The calls of a row that must be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The first that the architecture has: the others are older calls for the same purpose.
    First,
    /// Any one of them: versions differ.
    Any,
}

/// A needed call.
pub(crate) struct Need {
    /// The call, or alternatives.
    pub(crate) forms: &'static [Form],
    pub(crate) choice: Choice,
    pub(crate) needed: Requirement,
    /// The architectures that need it; all if the list is empty.
    pub(crate) arches: &'static [Arch],
}

const fn first(forms: &'static [Form]) -> Need {
    Need {
        forms,
        choice: Choice::First,
        needed: Requirement::Executed,
        arches: &[],
    }
}

const fn first_on(arches: &'static [Arch], forms: &'static [Form]) -> Need {
    Need {
        arches,
        ..first(forms)
    }
}

const fn one_of(forms: &'static [Form]) -> Need {
    Need {
        choice: Choice::Any,
        ..first(forms)
    }
}

const fn not_killed(forms: &'static [Form]) -> Need {
    Need {
        needed: Requirement::NotKilled,
        ..first(forms)
    }
}

/// The calls that start a program.
pub(crate) const STARTS: [&str; 2] = ["execve", "execveat"];

/// The calls of every dynamically linked program of glibc; programs of musl and static ones make some of them.
pub(crate) const PROGRAM: &[Need] = &[
    first(&[
        with("mmap2", "prot", "PROT_READ|PROT_WRITE"),
        with("mmap", "prot", "PROT_READ|PROT_WRITE"),
    ]),
    first(&[
        with("mmap2", "prot", "PROT_READ|PROT_EXEC"),
        with("mmap", "prot", "PROT_READ|PROT_EXEC"),
    ]),
    first(&[with("mprotect", "prot", "PROT_READ")]),
    one_of(&[
        with("openat", "dfd", "AT_FDCWD"),
        with("open", "flags", "O_RDONLY|O_CLOEXEC"),
    ]),
    one_of(&[
        with("openat", "flags", "O_RDONLY|O_CLOEXEC"),
        with("open", "flags", "O_RDONLY|O_CLOEXEC"),
    ]),
    first(&[any("read")]),
    first(&[any("close")]),
    // glibc 2.33 to 2.38 use newfstatat, on 32-bit architectures statx; others fstat and fstat64.
    one_of(&[
        any("newfstatat"),
        any("fstat"),
        any("fstat64"),
        any("fstatat64"),
        any("statx"),
    ]),
    // Sets the thread pointer.
    first_on(
        &[Arch::X86_64, Arch::X32],
        &[with("arch_prctl", "option", "ARCH_SET_FS")],
    ),
    first_on(
        &[
            Arch::X86,
            Arch::Mips,
            Arch::Mipsel,
            Arch::Mips64,
            Arch::Mipsel64,
            Arch::Mips64n32,
            Arch::Mipsel64n32,
            Arch::M68k,
        ],
        &[any("set_thread_area")],
    ),
    not_killed(&[any("brk")]),
    not_killed(&[any("munmap")]),
    not_killed(&[any("set_tid_address")]),
    not_killed(&[any("set_robust_list")]),
    not_killed(&[any("rseq")]),
    not_killed(&[any("prlimit64")]),
    not_killed(&[any("getrandom")]),
    not_killed(&[any("access"), any("faccessat")]),
];

/// The calls of a runtime after it has installed the filter.
pub(crate) struct RuntimeNeeds {
    /// With `no_new_privs`: the filter is installed last.
    pub(crate) always: &'static [Need],
    /// Without it: the filter is installed before capabilities are dropped.
    pub(crate) with_privileges: &'static [Need],
}

pub(crate) const RUNC: RuntimeNeeds = RuntimeNeeds {
    always: &[
        // It opens its own descriptors in /proc, and waits at a pipe.
        one_of(&[any("openat")]),
        first(&[any("write")]),
        first(&[any("close")]),
        first(&[any("fstatfs64"), any("fstatfs")]),
        first(&[any("getdents64")]),
        one_of(&[any("execve"), any("execveat")]),
        // Go's runtime makes these in one of twenty to five starts: to wake a thread, and after the signal that
        // preempts one.
        first(&[any("futex")]),
        first(&[any("rt_sigreturn")]),
        not_killed(&[any("getpid")]),
        not_killed(&[any("epoll_ctl")]),
    ],
    with_privileges: &[
        first(&[any("read")]),
        one_of(&[any("fstat64"), any("fstat")]),
        one_of(&[any("newfstatat"), any("fstatat64"), any("statx")]),
        first(&[any("chdir")]),
        first(&[any("getcwd")]),
        first(&[any("capget")]),
        first(&[any("capset")]),
        first(&[any("prctl")]),
        first(&[any("setgroups32"), any("setgroups")]),
        first(&[any("setgid32"), any("setgid")]),
        first(&[any("setuid32"), any("setuid")]),
        first(&[any("getppid")]),
        one_of(&[any("faccessat2"), any("faccessat")]),
        not_killed(&[any("fcntl64"), any("fcntl")]),
    ],
};

pub(crate) const CRUN: RuntimeNeeds = RuntimeNeeds {
    always: &[
        one_of(&[any("execve"), any("execveat")]),
        not_killed(&[any("close")]),
    ],
    with_privileges: &[
        first(&[any("prctl")]),
        first(&[any("setresgid32"), any("setresgid")]),
        first(&[any("setresuid32"), any("setresuid")]),
        first(&[any("capset")]),
        first(&[any("rt_sigprocmask")]),
        first(&[any("rt_sigaction")]),
        first(&[any("write")]),
    ],
};

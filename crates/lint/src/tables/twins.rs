//! Calls with the same effect.

use super::{Form, any, with};

/// Calls with a common purpose.
pub(crate) struct EquivalentCalls<'a> {
    /// The purpose: completes "both can …".
    pub(crate) purpose: &'static str,
    /// Equivalent calls: each has the effects of the others.
    pub(crate) calls: &'a [Form],
    /// Calls that can do this and more: a restriction of `calls` is ineffective while one of these is open, but not
    /// the reverse.
    pub(crate) ways: &'a [Form],
    /// A conditional call counts as restricted only if its condition tests one of these arguments; any argument if
    /// the list is empty. `writev` with a limited number of pieces leaves no gap in `write`, `writev` limited to
    /// one descriptor does.
    pub(crate) common: &'static [&'static str],
}

/// A row.
const fn row(
    purpose: &'static str,
    calls: &'static [Form],
    ways: &'static [Form],
) -> EquivalentCalls<'static> {
    EquivalentCalls {
        purpose,
        calls,
        ways,
        common: &[],
    }
}

/// A row whose calls have common arguments that conditions test.
const fn row_by(
    common: &'static [&'static str],
    purpose: &'static str,
    calls: &'static [Form],
    ways: &'static [Form],
) -> EquivalentCalls<'static> {
    EquivalentCalls {
        common,
        ..row(purpose, calls, ways)
    }
}

/// All rows. Variants whose names differ only by `32`, `64` or `_time64` need no row.
pub(crate) const ALL: &[EquivalentCalls<'static>] = &[
    // open_by_handle_at needs CAP_DAC_READ_SEARCH but opens any file of the file system.
    row(
        "open files",
        &[any("open"), any("openat"), any("openat2")],
        &[any("open_by_handle_at"), any("creat")],
    ),
    // creat is open with O_CREAT | O_WRONLY | O_TRUNC.
    row(
        "create files",
        &[any("creat")],
        &[any("open"), any("openat"), any("openat2")],
    ),
    row("run programs", &[any("execve"), any("execveat")], &[]),
    // execve of /proc/self/fd/N runs the file of a descriptor.
    row(
        "run programs from descriptors",
        &[with("execveat", "flags", "AT_EMPTY_PATH")],
        &[any("execve")],
    ),
    // clone with only the signal is fork.
    row(
        "make processes",
        &[any("fork"), with("clone", "clone_flags", "SIGCHLD")],
        &[any("clone3")],
    ),
    row(
        "make processes",
        &[any("vfork")],
        &[
            any("fork"),
            any("clone3"),
            with("clone", "clone_flags", "SIGCHLD"),
        ],
    ),
    row(
        "create user namespaces",
        &[
            with("clone", "clone_flags", "CLONE_NEWUSER"),
            with("unshare", "unshare_flags", "CLONE_NEWUSER"),
        ],
        &[any("clone3")],
    ),
    row(
        "create mount namespaces",
        &[
            with("clone", "clone_flags", "CLONE_NEWNS"),
            with("unshare", "unshare_flags", "CLONE_NEWNS"),
        ],
        &[any("clone3")],
    ),
    row(
        "create network namespaces",
        &[
            with("clone", "clone_flags", "CLONE_NEWNET"),
            with("unshare", "unshare_flags", "CLONE_NEWNET"),
        ],
        &[any("clone3")],
    ),
    // process_vm_* and pidfd_getfd require the same permission as ptrace.
    row(
        "write the memory of other processes",
        &[any("process_vm_writev")],
        &[any("ptrace")],
    ),
    row(
        "read the memory of other processes",
        &[any("process_vm_readv")],
        &[any("ptrace")],
    ),
    row(
        "take over other processes",
        &[any("ptrace")],
        &[any("process_vm_writev")],
    ),
    row(
        "take descriptors from other processes",
        &[any("pidfd_getfd")],
        &[any("ptrace")],
    ),
    // The mount API of 5.2: open_tree and move_mount make bind mounts, fsopen and fsmount new mounts.
    row(
        "mount file systems",
        &[any("mount")],
        &[any("move_mount"), any("fsmount")],
    ),
    row(
        "unmount file systems",
        &[any("umount"), any("umount2")],
        &[],
    ),
    row(
        "change modes of files",
        &[
            any("chmod"),
            any("fchmodat"),
            any("fchmodat2"),
            any("fchmod"),
        ],
        &[],
    ),
    // A file gets these bits when it is created, too; openat2 has its mode in memory.
    row(
        "make set-user-ID files",
        &[
            with("chmod", "mode", "S_ISUID"),
            with("fchmod", "mode", "S_ISUID"),
            with("fchmodat", "mode", "S_ISUID"),
            with("fchmodat2", "mode", "S_ISUID"),
        ],
        &[
            with("open", "mode", "S_ISUID"),
            with("openat", "mode", "S_ISUID"),
            any("openat2"),
            with("creat", "mode", "S_ISUID"),
            with("mknod", "mode", "S_ISUID"),
            with("mknodat", "mode", "S_ISUID"),
        ],
    ),
    row(
        "change owners of files",
        &[any("chown"), any("fchownat"), any("fchown"), any("lchown")],
        &[],
    ),
    row("create device files", &[any("mknod"), any("mknodat")], &[]),
    row("make directories", &[any("mkdir"), any("mkdirat")], &[]),
    row("remove files", &[any("unlink"), any("unlinkat")], &[]),
    row("remove directories", &[any("rmdir")], &[any("unlinkat")]),
    row(
        "rename files",
        &[any("rename"), any("renameat"), any("renameat2")],
        &[],
    ),
    row("create hard links", &[any("link"), any("linkat")], &[]),
    row(
        "create symbolic links",
        &[any("symlink"), any("symlinkat")],
        &[],
    ),
    row(
        "set extended attributes",
        &[
            any("setxattr"),
            any("lsetxattr"),
            any("fsetxattr"),
            any("setxattrat"),
        ],
        &[],
    ),
    row(
        "remove extended attributes",
        &[
            any("removexattr"),
            any("lremovexattr"),
            any("fremovexattr"),
            any("removexattrat"),
        ],
        &[],
    ),
    row(
        "change user IDs",
        &[any("setuid"), any("setreuid"), any("setresuid")],
        &[any("setuid32"), any("setreuid32"), any("setresuid32")],
    ),
    row(
        "change group IDs",
        &[any("setgid"), any("setregid"), any("setresgid")],
        &[any("setgid32"), any("setregid32"), any("setresgid32")],
    ),
    row_by(
        &["prot"],
        "make memory executable",
        &[any("mprotect"), any("pkey_mprotect")],
        &[with("shmat", "shmflg", "SHM_EXEC")],
    ),
    row(
        "make written memory executable",
        &[
            with("mprotect", "prot", "PROT_READ|PROT_EXEC"),
            with("pkey_mprotect", "prot", "PROT_READ|PROT_EXEC"),
        ],
        &[with("mmap", "prot", "PROT_WRITE|PROT_EXEC")],
    ),
    // On architectures with both, mmap takes its arguments from memory.
    row_by(&["prot"], "map memory", &[any("mmap2")], &[any("mmap")]),
    row_by(
        &["fd"],
        "write to descriptors",
        &[
            any("write"),
            any("writev"),
            any("pwrite64"),
            any("pwritev"),
            any("pwritev2"),
        ],
        &[
            any("sendto"),
            any("sendmsg"),
            any("sendmmsg"),
            any("sendfile"),
            any("sendfile64"),
            any("splice"),
            any("tee"),
            any("vmsplice"),
            any("copy_file_range"),
        ],
    ),
    row_by(
        &["fd"],
        "read from descriptors",
        &[
            any("read"),
            any("readv"),
            any("pread64"),
            any("preadv"),
            any("preadv2"),
        ],
        &[
            any("recvfrom"),
            any("recvmsg"),
            any("recvmmsg"),
            any("sendfile"),
            any("sendfile64"),
            any("splice"),
            any("tee"),
            any("vmsplice"),
            any("copy_file_range"),
        ],
    ),
    row_by(
        &["fd"],
        "send to addresses",
        &[any("sendto"), any("sendmsg"), any("sendmmsg")],
        &[],
    ),
    row(
        "signal processes",
        &[
            any("kill"),
            any("tgkill"),
            any("tkill"),
            any("rt_sigqueueinfo"),
            any("rt_tgsigqueueinfo"),
        ],
        &[any("pidfd_send_signal")],
    ),
    row(
        "install filters",
        &[any("seccomp"), with("prctl", "option", "PR_SET_SECCOMP")],
        &[],
    ),
    row("set limits", &[any("setrlimit")], &[any("prlimit64")]),
    row(
        "set real-time priorities",
        &[any("sched_setscheduler")],
        &[any("sched_setattr")],
    ),
    row(
        "set the clock",
        &[
            any("settimeofday"),
            any("clock_settime"),
            any("clock_settime64"),
        ],
        &[
            any("clock_adjtime"),
            any("clock_adjtime64"),
            any("adjtimex"),
        ],
    ),
    row(
        "load modules",
        &[any("init_module"), any("finit_module")],
        &[],
    ),
    row(
        "load kernels",
        &[any("kexec_load"), any("kexec_file_load")],
        &[],
    ),
];

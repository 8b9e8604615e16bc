//! What platforms can do, as data.

/// What a platform can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Its family.
    pub family: Family,
    /// What separates the guest from its supervisor.
    pub isolation: Isolation,
    /// Whether the supervisor is told the results of forwarded calls.
    pub sees_results: bool,
    /// Whether the supervisor is told when tasks start and end.
    pub sees_tasks: bool,
    /// Whether a task's registers can be read and set.
    pub has_registers: bool,
    /// Whether a call can be replaced by another.
    pub replaces_calls: bool,
    /// Whether a call can be answered with a descriptor.
    pub installs_descriptors: bool,
    /// Whether the guest may have several threads.
    pub has_threads: bool,
    /// Whether the guest may fork.
    pub has_forks: bool,
    /// Whether the guest may execute other programs.
    pub has_exec: bool,
    /// Whether dynamically linked programs can be guests.
    pub runs_dynamic: bool,
    /// Whether a guest with instructions that enter the kernel's 32-bit interface is caught.
    pub catches_i386: bool,
    /// Whether the guest may install filters of its own.
    pub takes_filters: bool,
    /// Whether busy call sites are patched in the guest's memory.
    pub patches_sites: bool,
    /// Whether `/proc/self/exe` is the guest's program. Programs that start themselves rely on it.
    pub has_own_exe: bool,
    /// Whether the supervisor is asked from a signal handler: it may only do what `signal-safety(7)` allows.
    pub is_signal_safe: bool,
    /// Whether a user without privileges can use it.
    pub is_unprivileged: bool,
    /// The oldest kernel that has it, major and minor version.
    pub min_kernel: (u16, u16),
}

/// The families of platforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// The guest is an ordinary process, which the kernel stops for the supervisor.
    Attached,
    /// The guest's calls raise a signal, which the supervisor handles in the guest's own process.
    InProcess,
    /// The platform loads the guest, catches its calls without the kernel where it can, and answers them through
    /// shared memory.
    Managed,
}

/// What separates the guest from its supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isolation {
    /// Nothing: the guest can overwrite its supervisor. What its filter denies stays denied.
    None,
    /// Address spaces of the host's kernel.
    Process,
    /// Address spaces as well, and the guest's instructions run in a virtual machine.
    Vm,
}

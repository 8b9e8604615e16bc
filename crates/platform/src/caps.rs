//! The capabilities of platforms, as data.

/// The capabilities of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Its family.
    pub family: Family,
    /// The isolation of the guest from its supervisor.
    pub isolation: Isolation,
    /// Whether the supervisor gets the results of forwarded calls.
    pub sees_results: bool,
    /// Whether the starts and ends of tasks are reported to the supervisor.
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
    /// Whether calls by instructions for the kernel's 32-bit interface are caught.
    pub catches_i386: bool,
    /// Whether the guest may install filters of its own.
    pub takes_filters: bool,
    /// Whether busy call sites are patched in the guest's memory.
    pub patches_sites: bool,
    /// Whether `/proc/self/exe` is the guest's program. Programs that start themselves rely on it.
    pub has_own_exe: bool,
    /// Whether the supervisor runs in a signal handler: it may only do what `signal-safety(7)` allows.
    pub is_signal_safe: bool,
    /// Whether a user without privileges can use it.
    pub is_unprivileged: bool,
    /// The oldest kernel that supports it, major and minor version.
    pub min_kernel: (u16, u16),
}

/// The families of platforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// The guest is an ordinary process that the kernel stops for the supervisor.
    Attached,
    /// The guest's calls raise a signal, which the supervisor handles in the guest's own process.
    InProcess,
    /// The platform loads the guest, catches its calls without the kernel if possible, and answers them through shared
    /// memory.
    Managed,
}

/// The isolation of the guest from its supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isolation {
    /// None: the guest can overwrite its supervisor. Calls that its filter denies stay denied.
    None,
    /// Address spaces of the host's kernel.
    Process,
    /// Address spaces as well, and the guest's instructions run in a virtual machine.
    Vm,
}

//! Structures behind arguments, in the form of strace: the structures of each call, and the time when they are valid.
//!
//! The structures of the most frequent calls are decoded, for the layouts of x86-64. Other structures, and those of
//! other interfaces, are shown by their addresses. Long ones are abbreviated with `...`, as by strace without `-v`.
//!
//! | module | structures |
//! |---|---|
//! | `layout` | bytes of memory as numbers |
//! | `simple` | times, limits, numbers, names of the system |
//! | `file` | `stat`, `statx`, `statfs`, directories |
//! | `signal` | signal sets and actions, signal information, wait statuses |
//! | `terminal` | settings of terminals, and other arguments of `ioctl` |
//! | `wait` | polled descriptors, and the ready ones |
//! | `message` | I/O vectors, messages and socket options |

mod file;
mod layout;
mod message;
mod signal;
mod simple;
mod terminal;
mod wait;

use tamis_abi::signature::Arg;
use tamis_abi::{Arch, SeccompData};

use super::memory::{self, Read};

pub use signal::info as signal_info;

/// The form of a structure, or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Timespec,
    Timeval,
    /// The times of a file's access and change.
    TimespecPair,
    Itimerval,
    Itimerspec,
    Rlimit,
    /// A 32-bit number in brackets.
    Int,
    /// The two numbers that calls such as `pipe` return.
    IntPair,
    /// Users or groups, as many as this argument or the result.
    Owners(u8),
    Utsname,
    Sysinfo,
    Rusage,
    Stat,
    Statx,
    Statfs,
    /// Entries of a directory, shown by their number.
    Entries,
    SignalSet,
    SignalAction,
    SignalStack,
    SignalInfo,
    /// A wait status.
    Status,
    /// Polled descriptors, as many as this argument.
    Polled(u8),
    /// A set of descriptors below the first argument.
    DescriptorSet,
    EpollEvent,
    /// As many events as the result.
    EpollEvents,
    /// I/O vectors with their bytes, as many as this argument.
    Pieces(u8),
    Message,
    /// A socket address that the kernel fills in; the next argument points to its length.
    Peer,
    /// The length of a `Peer`.
    PeerLen,
    /// The value of an option, with its length in this argument or at its address.
    OptionValue(u8),
    /// The argument of an `ioctl`, by its command.
    Control,
    CloneArgs,
    /// The remaining time of a sleep, which the kernel fills only after an interruption.
    Remainder,
}

/// The time when a structure is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validity {
    /// On entry: the kernel reads it.
    Entry,
    /// On a return without an error: the kernel has filled it.
    Return,
}

/// Forms by the type of an argument, for all calls without an entry in `BY_CALL`.
const BY_TYPE: &[(&str, Form, Validity)] = &[
    ("const sigset_t *", Form::SignalSet, Validity::Entry),
    (
        "const struct __kernel_itimerspec *",
        Form::Itimerspec,
        Validity::Entry,
    ),
    (
        "const struct __kernel_timespec *",
        Form::Timespec,
        Validity::Entry,
    ),
    ("const struct iovec *", Form::Pieces(2), Validity::Entry),
    ("const struct rlimit64 *", Form::Rlimit, Validity::Entry),
    (
        "const struct sigaction *",
        Form::SignalAction,
        Validity::Entry,
    ),
    ("const stack_t *", Form::SignalStack, Validity::Entry),
    ("fd_set *", Form::DescriptorSet, Validity::Entry),
    ("stack_t *", Form::SignalStack, Validity::Return),
    (
        "struct __kernel_itimerspec *",
        Form::Itimerspec,
        Validity::Return,
    ),
    (
        "struct __kernel_timespec *",
        Form::Timespec,
        Validity::Entry,
    ),
    ("struct clone_args *", Form::CloneArgs, Validity::Entry),
    ("struct linux_dirent *", Form::Entries, Validity::Return),
    ("struct linux_dirent64 *", Form::Entries, Validity::Return),
    ("struct new_utsname *", Form::Utsname, Validity::Return),
    ("struct pollfd *", Form::Polled(1), Validity::Entry),
    ("struct rlimit *", Form::Rlimit, Validity::Return),
    ("struct rlimit64 *", Form::Rlimit, Validity::Return),
    ("struct rusage *", Form::Rusage, Validity::Return),
    ("struct sigaction *", Form::SignalAction, Validity::Return),
    ("struct stat *", Form::Stat, Validity::Return),
    ("struct statfs *", Form::Statfs, Validity::Return),
    ("struct statx *", Form::Statx, Validity::Return),
    ("struct sysinfo *", Form::Sysinfo, Validity::Return),
];

/// Forms of arguments of particular calls.
const BY_CALL: &[(&[&str], &str, Form, Validity)] = &[
    (
        &["accept", "accept4"],
        "upeer_addrlen",
        Form::PeerLen,
        Validity::Return,
    ),
    (
        &["accept", "accept4"],
        "upeer_sockaddr",
        Form::Peer,
        Validity::Return,
    ),
    (
        &["clock_getres", "clock_gettime"],
        "tp",
        Form::Timespec,
        Validity::Return,
    ),
    (
        &["clock_nanosleep", "nanosleep"],
        "rmtp",
        Form::Remainder,
        Validity::Return,
    ),
    (&["epoll_ctl"], "event", Form::EpollEvent, Validity::Entry),
    (
        &["epoll_pwait", "epoll_wait"],
        "events",
        Form::EpollEvents,
        Validity::Return,
    ),
    (
        &["getgroups"],
        "grouplist",
        Form::Owners(0),
        Validity::Return,
    ),
    (&["getitimer"], "value", Form::Itimerval, Validity::Return),
    (
        &["getpeername", "getsockname"],
        "usockaddr",
        Form::Peer,
        Validity::Return,
    ),
    (
        &["getpeername", "getsockname"],
        "usockaddr_len",
        Form::PeerLen,
        Validity::Return,
    ),
    (&["getresgid"], "rgidp", Form::Int, Validity::Return),
    (&["getresgid"], "egidp", Form::Int, Validity::Return),
    (&["getresgid"], "sgidp", Form::Int, Validity::Return),
    (&["getresuid"], "ruidp", Form::Int, Validity::Return),
    (&["getresuid"], "euidp", Form::Int, Validity::Return),
    (&["getresuid"], "suidp", Form::Int, Validity::Return),
    (&["getsockopt"], "optlen", Form::PeerLen, Validity::Return),
    (
        &["getsockopt"],
        "optval",
        Form::OptionValue(4),
        Validity::Return,
    ),
    (&["gettimeofday"], "tv", Form::Timeval, Validity::Return),
    (&["ioctl"], "arg", Form::Control, Validity::Return),
    (
        &["pipe", "pipe2"],
        "fildes",
        Form::IntPair,
        Validity::Return,
    ),
    (
        &["preadv", "preadv2", "readv"],
        "vec",
        Form::Pieces(2),
        Validity::Return,
    ),
    (
        &["process_vm_readv"],
        "lvec",
        Form::Pieces(2),
        Validity::Return,
    ),
    (
        &["process_vm_readv", "process_vm_writev"],
        "rvec",
        Form::Pieces(4),
        Validity::Entry,
    ),
    (&["recvfrom"], "addr", Form::Peer, Validity::Return),
    (&["recvfrom"], "addr_len", Form::PeerLen, Validity::Return),
    (&["recvmsg"], "msg", Form::Message, Validity::Return),
    (
        &["rt_sigpending"],
        "uset",
        Form::SignalSet,
        Validity::Return,
    ),
    (
        &["rt_sigprocmask"],
        "nset",
        Form::SignalSet,
        Validity::Entry,
    ),
    (
        &["rt_sigprocmask"],
        "oset",
        Form::SignalSet,
        Validity::Return,
    ),
    (
        &["rt_sigsuspend"],
        "unewset",
        Form::SignalSet,
        Validity::Entry,
    ),
    (
        &["rt_sigtimedwait"],
        "uinfo",
        Form::SignalInfo,
        Validity::Return,
    ),
    (
        &["sched_rr_get_interval"],
        "interval",
        Form::Timespec,
        Validity::Return,
    ),
    (&["select"], "tvp", Form::Timeval, Validity::Entry),
    (&["sendmsg"], "msg", Form::Message, Validity::Entry),
    (
        &["setgroups"],
        "grouplist",
        Form::Owners(0),
        Validity::Entry,
    ),
    (&["setitimer"], "ovalue", Form::Itimerval, Validity::Return),
    (&["setitimer"], "value", Form::Itimerval, Validity::Entry),
    (&["setrlimit"], "rlim", Form::Rlimit, Validity::Entry),
    (
        &["setsockopt"],
        "optval",
        Form::OptionValue(4),
        Validity::Entry,
    ),
    (&["settimeofday"], "tv", Form::Timeval, Validity::Entry),
    (&["socketpair"], "usockvec", Form::IntPair, Validity::Return),
    (
        &["utimensat"],
        "utimes",
        Form::TimespecPair,
        Validity::Entry,
    ),
    (
        &["wait4", "waitpid"],
        "stat_addr",
        Form::Status,
        Validity::Return,
    ),
    (&["waitid"], "infop", Form::SignalInfo, Validity::Return),
];

/// Calls whose structures have another meaning than their types, or no constant one.
const NOT: [&str; 4] = [
    "mq_getsetattr",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "vmsplice",
];

/// The form of the structure behind an argument, if it is decoded.
pub(super) fn form(arch: Arch, call: &str, arg: &Arg) -> Option<(Form, Validity)> {
    if arch != Arch::X86_64 || NOT.contains(&call) {
        return None;
    }
    let mut of_calls = BY_CALL.iter();
    let of_call = of_calls.find(|(calls, name, ..)| *name == arg.name() && calls.contains(&call));
    let of_call = of_call.map(|(.., form, when)| (*form, *when));
    let mut types = BY_TYPE.iter();
    of_call.or_else(|| {
        let of_type = types.find(|(c_type, ..)| *c_type == arg.c_type());
        of_type.map(|(_, form, when)| (*form, *when))
    })
}

/// The number of bytes decoded of a structure, if it is constant.
pub(super) const fn fixed_bytes(form: Form) -> Option<usize> {
    Some(match form {
        Form::Int | Form::Status => 4,
        Form::IntPair | Form::SignalSet => 8,
        Form::EpollEvent => 12,
        Form::Control => terminal::MAX_BYTES,
        Form::Timespec | Form::Timeval | Form::Rlimit => 16,
        Form::SignalStack => 24,
        Form::TimespecPair
        | Form::Itimerval
        | Form::Itimerspec
        | Form::Rusage
        | Form::SignalAction => 32,
        Form::Statx | Form::SignalInfo => 48,
        Form::Stat | Form::CloneArgs => 64,
        Form::Statfs => 88,
        Form::Sysinfo => 112,
        Form::DescriptorSet => 128,
        Form::Utsname => 132,
        _ => return None,
    })
}

/// A call with the memory of its task.
pub(super) struct CallMemory<'m> {
    pub(super) read: &'m Read<'m>,
    pub(super) call: &'m SeccompData,
    /// The result; 0 on entry.
    pub(super) result: i64,
    /// The maximum number of bytes shown of a text.
    pub(super) max_bytes: usize,
    /// Whether buffers are left out.
    pub(super) hides_data: bool,
}

impl CallMemory<'_> {
    /// Exactly `len` bytes at an address; `None` if not all can be read.
    fn bytes(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let bytes = memory::bytes(self.read, address, len)?;
        (bytes.len() == len).then_some(bytes)
    }

    fn arg(&self, index: u8) -> u64 {
        self.call.args[usize::from(index)]
    }
}

/// The structure at an address; `None` if it can't be read.
pub(super) fn text(form: Form, address: u64, behind: &CallMemory<'_>) -> Option<String> {
    if address == 0 {
        return None;
    }
    match form {
        Form::Timespec => simple::time(address, behind, "tv_nsec"),
        Form::Timeval => simple::time(address, behind, "tv_usec"),
        Form::TimespecPair => simple::file_times(address, behind),
        Form::Itimerval => simple::interval(address, behind, "tv_usec"),
        Form::Itimerspec => simple::interval(address, behind, "tv_nsec"),
        Form::Rlimit => simple::limit(address, behind),
        Form::Int => simple::ints(address, behind, 1),
        Form::IntPair => simple::ints(address, behind, 2),
        Form::Owners(count) => simple::owners(address, behind, count),
        Form::Utsname => simple::utsname(address, behind),
        Form::Sysinfo => simple::sysinfo(address, behind),
        Form::Rusage => simple::rusage(address, behind),
        Form::Stat => file::stat(address, behind),
        Form::Statx => file::statx(address, behind),
        Form::Statfs => file::statfs(address, behind),
        Form::Entries => file::entries(address, behind),
        Form::SignalSet => signal::set(address, behind),
        Form::SignalAction => signal::action(address, behind),
        Form::SignalStack => signal::stack(address, behind),
        Form::SignalInfo => signal::filled_info(address, behind),
        Form::Status => signal::status(address, behind),
        Form::Polled(count) => wait::polled(address, behind, count),
        Form::DescriptorSet => wait::descriptor_set(address, behind),
        Form::EpollEvent => wait::epoll_event(address, behind),
        Form::EpollEvents => wait::epoll_events(address, behind),
        Form::Pieces(count) => message::pieces(address, behind, behind.arg(count)),
        Form::Message => message::message(address, behind),
        Form::Peer => message::peer(address, behind),
        Form::PeerLen => simple::ints(address, behind, 1),
        Form::OptionValue(len) => message::option_value(address, behind, len),
        Form::Control => terminal::control(address, behind),
        Form::CloneArgs => simple::clone_args(address, behind),
        Form::Remainder => None,
    }
}

/// Whether some calls read such a structure that others fill.
pub(super) fn may_be_read(form: Form) -> bool {
    form == Form::Control
}

/// Whether the kernel reads such a structure in this call.
pub(super) fn is_read(form: Form, call: &SeccompData) -> bool {
    may_be_read(form) && terminal::is_read(call)
}

/// A note after a result: the ready descriptors.
pub(super) fn after_result(shape_name: &str, behind: &CallMemory<'_>) -> Option<String> {
    match shape_name {
        "poll" | "ppoll" => wait::after_poll(shape_name == "ppoll", behind),
        "select" | "pselect6" => wait::after_select(behind),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_abi::signature;

    #[test]
    fn the_tables_are_about_arguments_that_exist() {
        for (calls, name, ..) in BY_CALL {
            for call in *calls {
                // A call of i386.
                if *call == "waitpid" {
                    continue;
                }
                let args = signature::args(call).unwrap_or_else(|| panic!("{call}"));
                assert!(args.iter().any(|arg| arg.name() == *name), "{call} {name}");
            }
        }
    }
}

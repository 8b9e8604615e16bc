//! Installing a program as a filter, with errors that state the correction.
//!
//! The kernel reports most errors as `EINVAL`. All that can be checked beforehand is checked here; the other causes
//! are distinguished afterwards by testing each flag in the kernel.
//!
//! [`set_no_new_privs`] and [`set_filter`] are the two system calls alone, for callers with checks and errors of their
//! own.

use std::error;
use std::fmt;
use std::os::fd::OwnedFd;

use tamis_bpf::Program;

use crate::errno::Errno;
use crate::flags::{Flag, Flags};
use crate::status::Status;
use crate::sys;
pub use crate::sys::seccomp::{Answer, set_filter, set_no_new_privs};

/// Whether the calling thread may install filters without `no_new_privs`: whether it has `CAP_SYS_ADMIN`.
///
/// ```
/// // Without `/proc` the answer is false; `no_new_privs` is always safe.
/// let _may: bool = tamis_kernel::install::is_privileged();
/// ```
pub fn is_privileged() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    let own = Status::of_this_thread();
    own.and_then(|own| own.bit("CapEff", CAP_SYS_ADMIN)) == Some(true)
}

/// Options of the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Install {
    /// The flags of the installation.
    pub flags: Flags,
    /// Set `no_new_privs` on the calling thread first: needed without `CAP_SYS_ADMIN`, can't be undone, and
    /// disables the privileges of set-user-ID programs.
    pub no_new_privs: bool,
}

impl Default for Install {
    /// No flags, with `no_new_privs`: works without privileges.
    fn default() -> Install {
        Install {
            flags: Flags::NONE,
            no_new_privs: true,
        }
    }
}

impl Install {
    /// Also on all other threads of the process, or on none: [`Flag::Tsync`].
    #[must_use]
    pub fn all_threads(self) -> Install {
        self.with(Flag::Tsync)
    }

    /// With a listener for the calls that get `notify`: [`Flag::NewListener`]. Linux 5.0; together with
    /// [`all_threads`](Self::all_threads) 5.7.
    #[must_use]
    pub fn listener(self) -> Install {
        self.with(Flag::NewListener)
    }

    /// With an audit record of every action except `allow`: [`Flag::Log`]. Linux 4.14.
    #[must_use]
    pub fn log(self) -> Install {
        self.with(Flag::Log)
    }

    /// With a listener whose received calls only deadly signals interrupt: [`Flag::WaitKillableRecv`]. Linux 5.19.
    #[must_use]
    pub fn wait_killable(self) -> Install {
        self.listener().with(Flag::WaitKillableRecv)
    }

    /// Adds a flag, and the one that the kernel needs for both of a combination.
    fn with(mut self, flag: Flag) -> Install {
        self.flags = self.flags | flag;
        if self.flags.contains(Flag::Tsync) && self.flags.contains(Flag::NewListener) {
            self.flags = self.flags | Flag::TsyncEsrch;
        }
        self
    }
}

/// An installed filter. It can't be removed; dropping this closes the listener only.
#[derive(Debug)]
pub struct Installed {
    /// The listener requested by [`Flag::NewListener`], closed on `execve`.
    pub listener: Option<OwnedFd>,
}

/// The reason why a filter was not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstallError {
    /// The program has more instructions than a filter may have.
    TooLong {
        /// The length of the program.
        len_insns: usize,
    },
    /// The program is for machines of the other byte order. The kernel can't detect it, and would accept the program
    /// with the halves of arguments swapped.
    OtherByteOrder,
    /// A flag, or a combination of flags, requires another one.
    MissingFlag {
        /// The rejected flag.
        flag: Flag,
        /// The required flag.
        needs: Flag,
    },
    /// The kernel doesn't support a flag.
    UnknownFlag(Flag),
    /// The thread has neither `no_new_privs` nor `CAP_SYS_ADMIN`.
    NotPermitted,
    /// Setting `no_new_privs` failed.
    NoNewPrivs(Errno),
    /// No room: the filters of a task may have 32768 converted instructions in total.
    NoRoom {
        /// The count of filters already on the thread, if known.
        filters: Option<u32>,
    },
    /// Another thread has filters that this one doesn't have, so they can't be synchronised.
    ThreadDiffers {
        /// The other thread; unknown with [`Flag::TsyncEsrch`].
        thread: Option<i32>,
    },
    /// The task already has a filter with a listener; only one is possible.
    ListenerExists,
    /// The process has reached its limit of open files, so there is no descriptor for the listener.
    NoDescriptor,
    /// An earlier filter kills for the installation of another; [`install`] can't return this error.
    Killed,
    /// The kernel has no `seccomp(2)`, or an earlier filter hides it.
    NotAvailable,
    /// An earlier filter denied the call, or the kernel failed for an unknown reason.
    Refused(Errno),
}

/// Installs a program on the calling thread, or on all threads with [`Flag::Tsync`].
///
/// New threads and processes inherit the filter. After an error nothing is installed, but `no_new_privs` stays set.
///
/// An earlier filter that answers the call with errno 0 makes it look successful. So the same call is made without a
/// program first, which can't succeed; if it does, the result is [`InstallError::NotAvailable`].
///
/// # Errors
/// See [`InstallError`].
pub fn install(program: &Program, install: &Install) -> Result<Installed, InstallError> {
    check(program, install.flags)?;
    if install.no_new_privs {
        set_no_new_privs().map_err(InstallError::NoNewPrivs)?;
    }
    if !sys::seccomp::is_answered_by_kernel(install.flags) {
        return Err(InstallError::NotAvailable);
    }
    let answer = set_filter(program.insns(), install.flags)
        .map_err(|errno| explain(errno, install.flags))?;
    if install.flags.contains(Flag::NewListener) {
        let listener = sys::fd::adopt(answer as i32);
        return Ok(Installed {
            listener: Some(listener),
        });
    }
    match answer {
        0 => Ok(Installed { listener: None }),
        thread => Err(InstallError::ThreadDiffers {
            thread: Some(thread as i32),
        }),
    }
}

/// Finds errors that the kernel would report without a reason.
pub(crate) fn check(program: &Program, flags: Flags) -> Result<(), InstallError> {
    if !program.is_installable() {
        return Err(InstallError::TooLong {
            len_insns: program.len(),
        });
    }
    if program.endian() != crate::NATIVE_ENDIAN {
        return Err(InstallError::OtherByteOrder);
    }
    let has = |flag| flags.contains(flag);
    if has(Flag::Tsync) && has(Flag::NewListener) && !has(Flag::TsyncEsrch) {
        // A failed tsync returns a thread, a new listener a descriptor: they can't be distinguished.
        return Err(InstallError::MissingFlag {
            flag: Flag::NewListener,
            needs: Flag::TsyncEsrch,
        });
    }
    if has(Flag::WaitKillableRecv) && !has(Flag::NewListener) {
        return Err(InstallError::MissingFlag {
            flag: Flag::WaitKillableRecv,
            needs: Flag::NewListener,
        });
    }
    Ok(())
}

/// The meaning of an error number of `seccomp(SECCOMP_SET_MODE_FILTER)` for a checked program.
pub(crate) fn explain(errno: Errno, flags: Flags) -> InstallError {
    match errno.0 {
        libc::EACCES => InstallError::NotPermitted,
        libc::ENOMEM => InstallError::NoRoom {
            filters: Status::of_this_thread().and_then(|own| own.filters()),
        },
        libc::EBUSY => InstallError::ListenerExists,
        libc::EMFILE => InstallError::NoDescriptor,
        libc::ESRCH => InstallError::ThreadDiffers { thread: None },
        libc::ENOSYS => InstallError::NotAvailable,
        libc::EINVAL => {
            unknown_flag(flags).map_or(InstallError::Refused(errno), InstallError::UnknownFlag)
        }
        _ => InstallError::Refused(errno),
    }
}

/// The first flag of a set that the running kernel doesn't support.
fn unknown_flag(flags: Flags) -> Option<Flag> {
    flags
        .iter()
        .find(|flag| matches!(crate::probe::flag(*flag), crate::probe::Support::No { .. }))
}

impl InstallError {
    /// The correction.
    pub fn hint(&self) -> String {
        match self {
            InstallError::TooLong { .. } => {
                "make the policy smaller or split it in two filters".to_owned()
            }
            InstallError::OtherByteOrder => {
                "make the filter for an architecture of this machine".to_owned()
            }
            InstallError::MissingFlag { needs, .. } => format!("add the flag {}", needs.name()),
            InstallError::UnknownFlag(flag) => format!(
                "leave the flag {} out or use kernel {} or newer",
                flag.name(),
                flag.since()
            ),
            InstallError::NotPermitted => "set no_new_privs first, or run with CAP_SYS_ADMIN in \
                the user namespace"
                .to_owned(),
            InstallError::NoNewPrivs(_) => {
                "a filter installed before seems to refuse prctl; allow it there".to_owned()
            }
            InstallError::NoRoom { .. } => {
                "install fewer or smaller filters: one policy that says \
                what several say takes less; filters can't be removed from a running task"
                    .to_owned()
            }
            InstallError::ThreadDiffers { .. } => "install the filter on all threads before any \
                thread gets one of its own"
                .to_owned(),
            InstallError::ListenerExists => "use one listener for all calls, or install this \
                filter without new_listener"
                .to_owned(),
            InstallError::NoDescriptor => "close files or raise the limit, `ulimit -n`".to_owned(),
            InstallError::Killed => "look at the filters before this one, and at the profile of \
                the container: they must allow seccomp(2) and prctl(2)"
                .to_owned(),
            InstallError::NotAvailable => {
                "use a kernel with CONFIG_SECCOMP_FILTER, 3.17 or newer, and check that \
                no filter installed before this one denies seccomp(2)"
                    .to_owned()
            }
            InstallError::Refused(_) => {
                "check whether a filter installed before this one denies seccomp(2)".to_owned()
            }
        }
    }
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstallError::TooLong { len_insns } => write!(
                f,
                "the program has {len_insns} instructions, a filter at most {}",
                Program::MAX_INSNS
            ),
            InstallError::OtherByteOrder => {
                f.write_str("the program is for machines of the other byte order")
            }
            InstallError::MissingFlag { flag, needs } => {
                write!(f, "the flag {} needs {} here", flag.name(), needs.name())
            }
            InstallError::UnknownFlag(flag) => {
                write!(f, "the kernel doesn't know the flag {}", flag.name())
            }
            InstallError::NotPermitted => {
                f.write_str("the thread has neither no_new_privs nor CAP_SYS_ADMIN")
            }
            InstallError::NoNewPrivs(errno) => write!(f, "setting no_new_privs failed: {errno}"),
            InstallError::NoRoom { filters } => {
                f.write_str(
                    "no room: the filters of a task may have 32768 converted instructions",
                )?;
                match filters {
                    Some(count) => write!(f, ", and it has {count} filters already"),
                    None => Ok(()),
                }
            }
            InstallError::ThreadDiffers { thread: Some(tid) } => {
                write!(f, "thread {tid} has filters that the calling thread hasn't")
            }
            InstallError::ThreadDiffers { thread: None } => {
                f.write_str("another thread has filters that the calling thread hasn't")
            }
            InstallError::ListenerExists => {
                f.write_str("a filter with a listener is installed already")
            }
            InstallError::NoDescriptor => {
                f.write_str("too many files are open for a listener to be made")
            }
            InstallError::Killed => {
                f.write_str("a filter installed before kills whoever installs another")
            }
            InstallError::NotAvailable => f.write_str("the kernel has no seccomp filters"),
            InstallError::Refused(errno) => write!(f, "the kernel refused the filter: {errno}"),
        }
    }
}

impl error::Error for InstallError {}

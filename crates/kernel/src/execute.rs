//! Becoming a program under filters: no child, no supervisor, the same process number.
//!
//! [`Execute::execute`] finds the program, asks the filters about the calls that are still to be made, and only then
//! installs them and executes. What the filters would deny, and what they would hand to a supervisor that isn't there, is
//! refused while nothing has changed. Signals and descriptors are those that the process was started with, if the program
//! has [`note_start!`](crate::note_start); without it `SIGPIPE` stays as the Rust runtime has set it.
//!
//! The filters are asked about the very call that executes the program, with its pointers; only the instruction pointer
//! is unknown, and is 0. A filter of an earlier program of this process is not asked.

use std::error;
use std::ffi::{CString, OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tamis_abi::{Action, ActionKind, SeccompData, host};
use tamis_bpf::{Insn, Op, Program, interp, stack};

use crate::errno::Errno;
use crate::flags::Flags;
use crate::install::{self, Install, InstallError};
use crate::search;
#[doc(hidden)]
pub use crate::sys::execute::note;
use crate::sys::execute::{Image, restore, was_closed};

/// What interprets a file that is executable and no program, as for `execvp`.
const SHELL: &str = "/bin/sh";

/// Makes a program note, before its `main` and the Rust runtime, what it was started with. Once in a program, beside `main`.
#[macro_export]
macro_rules! note_start {
    () => {
        const _: () = {
            #[used]
            // SAFETY: the section has the addresses of functions without a result, which may have no parameters.
            #[unsafe(link_section = ".init_array")]
            static NOTE: extern "C" fn() = $crate::execute::note;
        };
    };
}

/// Whether standard output was closed when the process was started. What is written to it then goes to `/dev/null`, without an
/// error. Known in a program that has [`note_start!`](crate::note_start), false in others.
pub fn stdout_was_closed() -> bool {
    was_closed(1)
}

/// A program and its filters.
///
/// ```
/// use tamis_kernel::execute::{Execute, ExecuteError};
/// use tamis_kernel::Errno;
/// let error = Execute::new("no such program").execute();
/// assert_eq!(error, ExecuteError::NotFound(Errno::ENOENT));
/// ```
#[derive(Clone, Debug)]
pub struct Execute<'a> {
    /// The program: a path if it contains a slash, else a name to be looked for in `PATH`.
    pub program: OsString,
    /// The name that the program is told instead of `program`.
    pub name: Option<OsString>,
    /// Its arguments, without the name.
    pub args: Vec<OsString>,
    /// The filters with their installation flags, the oldest first.
    pub filters: Vec<(&'a Program, Flags)>,
    /// Set `no_new_privs` only if the kernel takes no filter without it, as it does with `CAP_SYS_ADMIN`.
    pub keep_privs: bool,
}

/// The reason why the process is still what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecuteError {
    /// An argument contains a zero byte.
    ZeroByte,
    /// There is no such program, or it may not be executed. Nothing was changed.
    NotFound(Errno),
    /// A filter denies a call that has to be made. Nothing was changed.
    Denied {
        /// The index of the filter.
        filter: usize,
        /// The call.
        call: NeededCall,
        /// The filter's answer.
        action: Action,
    },
    /// A filter hands calls to a supervisor. Nothing was changed.
    Notifies {
        /// The index of the filter.
        filter: usize,
    },
    /// A filter could not be installed; those before it are.
    Install {
        /// The index of the filter.
        filter: usize,
        /// The error.
        error: InstallError,
    },
    /// The filters are installed, and the program was not executed; 0 if a filter answers so.
    Exec {
        /// The kernel's error.
        errno: Errno,
        /// Whether the filters allow a message on standard error.
        may_tell: bool,
    },
}

/// A call that must be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededCall {
    /// Installs the next filter.
    Seccomp,
    /// Executes the program.
    Execve,
}

impl<'a> Execute<'a> {
    /// A program without arguments and filters.
    pub fn new(program: impl Into<OsString>) -> Execute<'a> {
        Execute {
            program: program.into(),
            name: None,
            args: Vec::new(),
            filters: Vec::new(),
            keep_privs: false,
        }
    }

    /// Installs the filters on the calling thread and makes the process the program. Returns only on errors.
    pub fn execute(&self) -> ExecuteError {
        match self.try_execute() {
            Ok(never) => never,
            Err(error) => error,
        }
    }

    fn try_execute(&self) -> Result<ExecuteError, ExecuteError> {
        let path = search::find(&self.program).map_err(ExecuteError::NotFound)?;
        check_file(&path)?;
        let image = self.image(&path, None)?;
        let by_shell = self.image(Path::new(SHELL), Some(&path))?;
        self.check(&image)?;
        // From here on each call may be denied that isn't needed.
        restore();
        let mut options = Install {
            flags: Flags::NONE,
            no_new_privs: !self.keep_privs,
        };
        for (filter, (program, flags)) in self.filters.iter().enumerate() {
            options.flags = *flags;
            let mut result = install::install(program, &options);
            if self.keep_privs && matches!(result, Err(InstallError::NotPermitted)) {
                options.no_new_privs = true;
                result = install::install(program, &options);
            }
            result.map_err(|error| ExecuteError::Install { filter, error })?;
            // It stays set.
            options.no_new_privs = false;
        }
        let mut errno = image.execute();
        if errno.0 == libc::ENOEXEC {
            errno = by_shell.execute();
        }
        let write = SeccompData {
            nr: libc::SYS_write as u32,
            arch: native(),
            args: [2, 0, 0, 0, 0, 0],
            ..SeccompData::default()
        };
        let may_tell = self.denial(&write).is_none();
        Ok(ExecuteError::Exec { errno, may_tell })
    }

    /// The arguments of the call; with a script, those of the shell that interprets it.
    fn image(&self, path: &Path, script: Option<&PathBuf>) -> Result<Image, ExecuteError> {
        let own = self.name.as_ref().unwrap_or(&self.program).as_os_str();
        let names = match script {
            None => vec![own],
            Some(script) => vec![OsStr::new(SHELL), script.as_os_str()],
        };
        let words = names
            .into_iter()
            .chain(self.args.iter().map(OsString::as_os_str));
        let terminated =
            |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| ExecuteError::ZeroByte);
        let argv = words.map(terminated).collect::<Result<_, _>>()?;
        Ok(Image::new(terminated(path.as_os_str())?, argv))
    }

    /// Asks the filters about what is still to be done.
    fn check(&self, image: &Image) -> Result<(), ExecuteError> {
        for (filter, (program, flags)) in self.filters.iter().enumerate() {
            install::check(program, *flags)
                .map_err(|error| ExecuteError::Install { filter, error })?;
            if notifies(program) {
                return Err(ExecuteError::Notifies { filter });
            }
        }
        let denied = |call: NeededCall, (filter, action)| ExecuteError::Denied {
            filter,
            call,
            action,
        };
        for count in 1..self.filters.len() {
            let (_, flags) = self.filters[count];
            let call = SeccompData {
                nr: libc::SYS_seccomp as u32,
                arch: native(),
                args: [
                    u64::from(libc::SECCOMP_SET_MODE_FILTER),
                    u64::from(flags.bits()),
                    0,
                    0,
                    0,
                    0,
                ],
                ..SeccompData::default()
            };
            if let Some(by) = denial(&self.filters[..count], &call) {
                return Err(denied(NeededCall::Seccomp, by));
            }
        }
        let [path, argv, environment] = image.words();
        let call = SeccompData {
            nr: libc::SYS_execve as u32,
            arch: native(),
            args: [path, argv, environment, 0, 0, 0],
            ..SeccompData::default()
        };
        match self.denial(&call) {
            Some(by) => Err(denied(NeededCall::Execve, by)),
            None => Ok(()),
        }
    }

    fn denial(&self, call: &SeccompData) -> Option<(usize, Action)> {
        denial(&self.filters, call)
    }
}

/// A file that can't be a program is refused while nothing is installed; what it contains is the kernel's to judge.
fn check_file(path: &Path) -> Result<(), ExecuteError> {
    let errno = |error: std::io::Error| Errno(error.raw_os_error().unwrap_or(libc::EACCES));
    let file = path
        .metadata()
        .map_err(|error| ExecuteError::NotFound(errno(error)))?;
    match file.is_file() {
        true => Ok(()),
        false => Err(ExecuteError::NotFound(Errno::EACCES)),
    }
}

/// The filter that keeps a call from being made, and its action.
fn denial(filters: &[(&Program, Flags)], call: &SeccompData) -> Option<(usize, Action)> {
    let rets: Vec<u32> = filters
        .iter()
        .map(|(program, _)| interp::run(program, call).ret)
        .collect();
    let filter = stack::winner(&rets)?;
    let action = Action::from_ret(rets[filter]);
    (!action.kind.executes()).then_some((filter, action))
}

/// Whether a program returns the action as a constant somewhere.
fn notifies(program: &Program) -> bool {
    program
        .insns()
        .iter()
        .copied()
        .filter_map(Insn::op)
        .any(|op| matches!(op, Op::RetImm(ret) if Action::from_ret(ret).kind == ActionKind::Notify))
}

/// The number by which filters know the architecture of this program.
fn native() -> u32 {
    host::arch().map_or(0, tamis_abi::Arch::audit)
}

impl fmt::Display for NeededCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NeededCall::Seccomp => "seccomp, which installs the next filter",
            NeededCall::Execve => "execve, which executes the command",
        })
    }
}

impl ExecuteError {
    /// The index of the filter in the way, if one is.
    pub const fn filter(&self) -> Option<usize> {
        match self {
            ExecuteError::Denied { filter, .. }
            | ExecuteError::Notifies { filter }
            | ExecuteError::Install { filter, .. } => Some(*filter),
            ExecuteError::ZeroByte | ExecuteError::NotFound(_) | ExecuteError::Exec { .. } => None,
        }
    }

    /// The exit code: 127 for a program that isn't there, 126 for one that can't be executed, 2 for filters that are in
    /// the way by themselves, 4 where the kernel refuses one.
    pub const fn exit_code(&self) -> u8 {
        match self {
            ExecuteError::NotFound(errno) | ExecuteError::Exec { errno, .. } => match errno.0 {
                libc::ENOENT => 127,
                _ => 126,
            },
            ExecuteError::ZeroByte
            | ExecuteError::Denied { .. }
            | ExecuteError::Notifies { .. } => 2,
            ExecuteError::Install { .. } => 4,
        }
    }

    /// The correction, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            ExecuteError::Denied { call: NeededCall::Execve, .. } => Some(
                "allow execve in the policy; a filter that denies it is for programs that install it \
                 themselves"
                    .to_owned(),
            ),
            ExecuteError::Denied { call: NeededCall::Seccomp, .. } => {
                Some("name this filter last, or make one of several: `tamis optimize`".to_owned())
            }
            ExecuteError::Notifies { .. } => {
                Some("`tamis sandbox` answers such calls".to_owned())
            }
            ExecuteError::Install { error, .. } => Some(error.hint()),
            ExecuteError::ZeroByte | ExecuteError::NotFound(_) | ExecuteError::Exec { .. } => None,
        }
    }
}

impl fmt::Display for ExecuteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecuteError::ZeroByte => f.write_str("an argument contains a zero byte"),
            ExecuteError::NotFound(errno) => errno.fmt(f),
            ExecuteError::Denied { call, action, .. } => {
                write!(f, "the filter answers {call}, with {action}")
            }
            ExecuteError::Notifies { .. } => f.write_str(
                "the filter hands calls to a supervisor (the action notify), and there is none",
            ),
            ExecuteError::Install { error, .. } => {
                write!(f, "the filter could not be installed: {error}")
            }
            ExecuteError::Exec {
                errno: Errno(0), ..
            } => f.write_str("a filter answers execve with 0, and nothing was executed"),
            ExecuteError::Exec { errno, .. } => write!(f, "it could not be executed: {errno}"),
        }
    }
}

impl error::Error for ExecuteError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(ops: &[Op]) -> Program {
        let insns = ops.iter().copied().map(Insn::from).collect();
        Program::new(insns, crate::NATIVE_ENDIAN).unwrap()
    }

    /// None of these may change anything, so they can be tried in the process of the tests.
    #[test]
    fn what_denies_or_notifies_is_refused_before_anything_is_installed() {
        let ret = |action: Action| program(&[Op::RetImm(action.ret())]);
        let allow = ret(Action::ALLOW);
        let deny = ret(Action::errno(1));
        let notify = ret(Action::new(ActionKind::Notify, 0));
        let run = |filters: &[&Program]| {
            Execute {
                filters: filters.iter().map(|own| (*own, Flags::NONE)).collect(),
                ..Execute::new("/bin/true")
            }
            .execute()
        };
        let by = |filter, call| ExecuteError::Denied {
            filter,
            call,
            action: Action::errno(1),
        };
        assert_eq!(run(&[&allow, &deny]), by(1, NeededCall::Execve));
        assert_eq!(run(&[&deny, &allow]), by(0, NeededCall::Seccomp));
        assert_eq!(
            run(&[&allow, &notify]),
            ExecuteError::Notifies { filter: 1 }
        );
        assert_eq!(run(&[&notify]).exit_code(), 2);
    }

    #[test]
    fn what_is_no_program_is_refused_before_anything_is_installed() {
        let deny = program(&[Op::RetImm(Action::KILL_PROCESS.ret())]);
        let run = |name: &str| {
            Execute {
                filters: vec![(&deny, Flags::NONE)],
                ..Execute::new(name)
            }
            .execute()
        };
        assert_eq!(run("/no/such"), ExecuteError::NotFound(Errno::ENOENT));
        assert_eq!(run("/no/such").exit_code(), 127);
        assert_eq!(run("/dev").exit_code(), 126);
        let mut command = Execute::new("/bin/true");
        command.args = vec!["a\0b".into()];
        assert_eq!(command.execute(), ExecuteError::ZeroByte);
    }
}

//! Executing a program under filters: no child, no supervisor, the same process number.
//!
//! [`Execute::execute`] finds the program, evaluates the filters for the remaining calls, and only then installs them
//! and executes. Filters that deny a needed call or need a supervisor are rejected before anything changes. Signals and
//! descriptors are those at the start of the process, if the program has [`note_start!`](crate::note_start); without
//! it, `SIGPIPE` stays as set by the Rust runtime.
//!
//! The filters are evaluated for the exact `execve` call, with its pointers; only the instruction pointer is unknown,
//! and is 0. Filters that the process inherited are not evaluated.

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

/// The interpreter of an executable file in an unknown format, as for `execvp`.
const SHELL: &str = "/bin/sh";

/// Records the state at the start of the process, before `main` and the Rust runtime. Use it once per program, beside
/// `main`.
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

/// Whether standard output was closed at the start of the process; output is then written to `/dev/null` without an
/// error. Always false without [`note_start!`](crate::note_start).
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
    /// The program: a path if it contains a slash, otherwise a name in `PATH`.
    pub program: OsString,
    /// `argv[0]`, if it differs from `program`.
    pub name: Option<OsString>,
    /// Its arguments, without the name.
    pub args: Vec<OsString>,
    /// The filters with their installation flags, the oldest first.
    pub filters: Vec<(&'a Program, Flags)>,
    /// Set `no_new_privs` only if the kernel rejects the filters without it; it accepts them with `CAP_SYS_ADMIN`.
    pub keep_privs: bool,
}

/// The reason why the program was not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecuteError {
    /// An argument contains a zero byte.
    ZeroByte,
    /// There is no such program, or it may not be executed. Nothing was changed.
    NotFound(Errno),
    /// A filter denies a needed call. Nothing was changed.
    Denied {
        /// The index of the filter.
        filter: usize,
        /// The call.
        call: NeededCall,
        /// The filter's answer.
        action: Action,
    },
    /// A filter needs a supervisor. Nothing was changed.
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
    /// The filters are installed, and `execve` failed; 0 if a filter returned errno 0.
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
        // The installed filters may deny every other call from here on.
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
            // `no_new_privs` stays set.
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

    /// Evaluates the filters for the remaining calls.
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

/// Rejects a file that can't be executed before anything is installed; its format is left to the kernel.
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

/// The audit number of this program's architecture.
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
    /// The index of the filter that prevented the execution.
    pub const fn filter(&self) -> Option<usize> {
        match self {
            ExecuteError::Denied { filter, .. }
            | ExecuteError::Notifies { filter }
            | ExecuteError::Install { filter, .. } => Some(*filter),
            ExecuteError::ZeroByte | ExecuteError::NotFound(_) | ExecuteError::Exec { .. } => None,
        }
    }

    /// The exit code: 127 for a missing program, 126 for one that can't be executed, 2 for a filter that denies a
    /// needed call, 4 for a filter that the kernel rejects.
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

    /// The correction, if there is one.
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

    /// No case changes anything, so the test's own process can execute them.
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

//! Guests that are loaded into a copy of the calling process, where their calls raise a signal: the calls that a filter
//! selects (`RET_TRAP`), or all calls of the first thread (syscall user dispatch, kernel 5.11; the filter stays the
//! boundary, and catches other threads).
//!
//! The process forks; the child loads the program beside the existing mappings, installs a handler for `SIGSYS` and the
//! filters, and becomes the guest. Its calls are answered in its own process, by the supervisor's code, which works on
//! the child's copy of memory: its counts aren't visible to the parent process, unless they are in shared memory. The
//! handler returns by itself, without `rt_sigreturn`, which saves a fourth of the time.
//!
//! | module | function |
//! |---|---|
//! | `image` | reads a program |
//! | `filter` | the two filters |
//! | `calls` | the handler's treatment of a call |
//!
//! The guest can overwrite its supervisor, but not bypass its filter. It has one process and one program: `fork` and
//! `execve` fail with `ENOSYS`, as does `clone3`, which C libraries replace by `clone`. The signal `SIGSYS` can't be
//! blocked. The guest's handler for it is called for signals that our filter didn't cause: a filter's own `trap`, or a
//! sent signal. A signal that is sent while a call is being answered is lost if the guest has a handler for it.

pub(crate) mod calls;
pub(crate) mod filter;
pub(crate) mod image;

use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::path::Path;

use tamis_abi::SeccompData;
use tamis_bpf::Stack;
use tamis_kernel::spawn::SpawnError;
use tamis_kernel::{Ended, Errno, search};
use tamis_vm::Evaluator;

use crate::caps::{Caps, Family, Isolation};
use crate::error::{PlatformError, Unavailable};
use crate::platform::{Guest, Options, Placement, Platform};
use crate::probe;
use crate::supervisor::{Answer, Supervisor};
use crate::sys::{guest, machine};
use crate::task::Task;
use calls::Calls;
use image::Image;

/// `RET_TRAP` in process.
pub(crate) static TRAP: InProcess = InProcess(Signals::ByFilter);
/// Syscall user dispatch in process.
pub(crate) static DISPATCH: InProcess = InProcess(Signals::ByDispatch);

/// A platform of this family.
pub(crate) struct InProcess(Signals);

/// The mechanism that raises the signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signals {
    ByFilter,
    ByDispatch,
}

/// The settings of a child that becomes a guest.
#[derive(Debug)]
pub(crate) struct ChildSettings<'a> {
    pub(crate) filter: &'a tamis_bpf::Program,
    pub(crate) signals: Signals,
    /// The CPU to stay on.
    pub(crate) cpu: Option<usize>,
}

/// The program that a child loads.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) main: Image,
    pub(crate) interpreter: Option<Image>,
    pub(crate) path: CString,
    pub(crate) args: Vec<CString>,
    pub(crate) environment: Vec<CString>,
}

impl Platform for InProcess {
    fn name(&self) -> &'static str {
        match self.0 {
            Signals::ByFilter => "trap",
            Signals::ByDispatch => "dispatch",
        }
    }

    fn caps(&self) -> Caps {
        Caps {
            family: Family::InProcess,
            isolation: Isolation::None,
            sees_results: false,
            sees_tasks: false,
            has_registers: false,
            replaces_calls: true,
            installs_descriptors: false,
            has_threads: true,
            has_forks: false,
            has_exec: false,
            runs_dynamic: true,
            takes_filters: true,
            catches_i386: false,
            patches_sites: false,
            has_own_exe: false,
            is_signal_safe: true,
            is_unprivileged: true,
            min_kernel: match self.0 {
                // The FS base for user space.
                Signals::ByFilter => (5, 9),
                Signals::ByDispatch => (5, 11),
            },
        }
    }

    fn probe(&self) -> Result<(), Unavailable> {
        if !machine::has_fs_base() {
            return Err(no_fs_base());
        }
        probe::run(self, &ExitRewriter, ExitRewriter::CODE)
    }

    fn run(
        &self,
        guest: &Guest<'_>,
        supervisor: &dyn Supervisor,
        options: &Options<'_>,
    ) -> Result<Ended, PlatformError> {
        if !machine::has_fs_base() {
            return Err(PlatformError::Unavailable(no_fs_base()));
        }
        guest.check(&self.caps())?;
        let stack = Stack::from(guest.filter.clone());
        let evaluator =
            Evaluator::new(&stack).map_err(|error| PlatformError::Filter(error.to_string()))?;
        let program = load(guest, options.name)
            .map_err(|errno| PlatformError::Spawn(SpawnError::Exec(errno)))?;
        let cpu = match options.placement {
            Placement::Free => None,
            Placement::Same(cpu) | Placement::Apart { guest: cpu, .. } => Some(cpu),
        };
        // A filter that is too long is reported before the fork.
        filter::filters(guest.filter, [0; 2], 0).map_err(PlatformError::Unsupported)?;
        let calls = Calls::new(supervisor, &evaluator);
        let how = ChildSettings {
            filter: guest.filter,
            signals: self.0,
            cpu,
        };
        supervisor.loaded();
        guest::run(&program, &how, &calls, options.until)
    }
}

pub(crate) fn no_fs_base() -> Unavailable {
    Unavailable {
        reason: "programs can't set the FS base themselves".to_owned(),
        remedy: Some("it takes kernel 5.9 and a processor with FSGSBASE"),
    }
}

/// Changes the code with which the guest ends.
struct ExitRewriter;

impl ExitRewriter {
    const CODE: u8 = 77;
}

impl Supervisor for ExitRewriter {
    fn call(&self, _task: &mut dyn Task, call: &SeccompData) -> Answer {
        let args = [u64::from(ExitRewriter::CODE), 0, 0, 0, 0, 0];
        Answer::ForwardWith(SeccompData { args, ..*call })
    }
}

/// Reads the program, its interpreter and their arguments; `name` is the program's `argv[0]`, if not its path.
pub(crate) fn load(guest: &Guest<'_>, name: Option<&OsStr>) -> Result<Program, Errno> {
    let path = search::find(&guest.program)?;
    let (main, interpreter) = image::read(&path)?;
    let read = |path: &Path| image::read(path).map(|(image, _)| image);
    let interpreter = interpreter.as_deref().map(read).transpose()?;
    let name = name.unwrap_or(&guest.program);
    let args = std::iter::once(name).chain(guest.args.iter().map(OsString::as_os_str));
    let variable = |(name, value): (OsString, OsString)| {
        let mut text = name;
        text.push("=");
        text.push(value);
        image::c_string(&text)
    };
    Ok(Program {
        main,
        interpreter,
        path: image::c_string(path.as_os_str())?,
        args: args.map(image::c_string).collect::<Result<_, _>>()?,
        environment: env::vars_os().map(variable).collect::<Result<_, _>>()?,
    })
}

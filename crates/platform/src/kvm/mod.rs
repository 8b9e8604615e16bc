//! Guests in a virtual machine of the kernel's KVM.
//!
//! A process is forked that is monitor and memory of the machine: the guest runs there with the privileges of user space
//! and leaves it at each call. The monitor makes the call in its own process, under the guest's filter, so that what the
//! filter says is the kernel's doing, as for [`notify`](crate::attached): an error is one, a kill kills, and `notify` asks
//! the supervisor through a listener. Tasks of the guest are tasks of the kernel with a thread of the machine each, traced
//! so that they die with their supervisor.
//!
//! The boundary is the filter. The machine keeps the guest's code from the kernel's entries that the monitor doesn't make
//! for it; the calls themselves work on the monitor's process, which a guest can overwrite by them.
//!
//! | module | function |
//! |---|---|
//! | `filter` | the guest's filter, and what the monitor may do besides |
//!
//! Not done are `execve` and what else is about programs rather than machines: such calls fail with `ENOSYS`.

mod arguments;
mod filter;

use std::fs::OpenOptions;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use tamis_kernel::spawn::SpawnError;
use tamis_kernel::{Ended, Errno};

use crate::attached::{self, Start};
use crate::caps::{Caps, Family, Isolation};
use crate::error::{PlatformError, Unavailable, Unsupported};
use crate::in_process;
use crate::platform::{Guest, Options, Platform};
use crate::supervisor::Supervisor;
use crate::sys::guest::{self, SharedReport};
use crate::sys::kvm::area::{Area, Exit};
use crate::sys::kvm::{self, Machine, machine};

/// The platform, which finds out how calls leave machines here.
pub(crate) static KVM: Kvm = Kvm(None);

/// A platform of this kind.
pub(crate) struct Kvm(Option<Exit>);

const DEVICE: &str = "/dev/kvm";

impl Platform for Kvm {
    fn name(&self) -> &'static str {
        "kvm"
    }

    fn caps(&self) -> Caps {
        Caps {
            family: Family::Managed,
            isolation: Isolation::Vm,
            has_exec: false,
            has_own_exe: false,
            catches_i386: false,
            takes_filters: false,
            ..attached::NOTIFY.caps()
        }
    }

    fn probe(&self) -> Result<(), Unavailable> {
        exit().map(|_| ())
    }

    fn run(
        &self,
        guest: &Guest<'_>,
        supervisor: &dyn Supervisor,
        options: &Options<'_>,
    ) -> Result<Ended, PlatformError> {
        if guest.has_results {
            let what = Unsupported::new("telling the results of forwarded calls");
            return Err(PlatformError::Unsupported(what));
        }
        let exit = self
            .0
            .map_or_else(exit, Ok)
            .map_err(PlatformError::Unavailable)?;
        let filter = filter::filter(guest.filter, kvm::own_ips(), kvm::asking_ip());
        let filter = filter.map_err(PlatformError::Unsupported)?;
        let program = in_process::load(guest);
        let program = program.map_err(|errno| PlatformError::Spawn(SpawnError::Exec(errno)))?;
        let kvm = open().map_err(PlatformError::Unavailable)?;
        let failed = |request| move |errno| PlatformError::Request { request, errno };
        let machine = Machine {
            area: Area::new().map_err(failed("mmap"))?,
            program: &program,
            kvm: kvm.as_fd(),
            exit,
            last_fd: guest::last_fd(),
            report: SharedReport::new().map_err(failed("mmap"))?,
        };
        let start = Start {
            body: Some(&machine),
            filter: Some(&filter),
            stub: None,
        };
        let ended = attached::NOTIFY.run_from(&start, guest, supervisor, options);
        match (machine.report.get().errno.load(Ordering::Acquire), &ended) {
            // The machine of another process of the guest.
            (0, _) | (_, Ok(Ended::Exited(_))) => {}
            (errno, _) => return Err(failed("running a virtual machine")(Errno(errno))),
        }
        match ended {
            // The program has been found, so it is the machine that could not be made.
            Err(PlatformError::Spawn(SpawnError::Exec(errno))) => {
                Err(failed("making a virtual machine")(errno))
            }
            ended => ended,
        }
    }
}

/// How calls leave machines of this KVM: found out once.
fn exit() -> Result<Exit, Unavailable> {
    static FOUND: OnceLock<Result<Exit, Unavailable>> = OnceLock::new();
    FOUND.get_or_init(find_exit).clone()
}

fn find_exit() -> Result<Exit, Unavailable> {
    let kvm = open()?;
    let unavailable = |reason: String| Unavailable {
        reason,
        remedy: None,
    };
    match machine::missing(kvm.as_fd()) {
        Ok(None) => {}
        Ok(Some(missing)) => return Err(unavailable(format!("KVM is too old: {missing}"))),
        Err(errno) => return Err(unavailable(format!("a request to {DEVICE} fails: {errno}"))),
    }
    let mut problems: Vec<(&str, String)> = Vec::new();
    // The cheapest first.
    for (name, exit) in [
        ("hlt", Exit::Halt),
        ("a port", Exit::Port),
        ("memory", Exit::Memory),
    ] {
        match attached::probe(&Kvm(Some(exit))) {
            Ok(()) => return Ok(exit),
            Err(problem) => problems.push((name, problem.reason)),
        }
    }
    if let [(_, first), rest @ ..] = &problems[..]
        && rest.iter().all(|(_, reason)| reason == first)
    {
        return Err(unavailable(first.clone()));
    }
    let problems = problems
        .iter()
        .map(|(name, reason)| format!("by {name}: {reason}"));
    let problems: Vec<String> = problems.collect();
    let problems = problems.join("; ");
    Err(unavailable(format!(
        "no call leaves a machine of this KVM ({problems})"
    )))
}

fn open() -> Result<OwnedFd, Unavailable> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_CLOEXEC);
    let error = match options.open(DEVICE) {
        Ok(file) => return Ok(file.into()),
        Err(error) => error,
    };
    let (reason, remedy) = match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => (
            format!("there is no {DEVICE}"),
            Some(
                "it takes a processor with virtualisation, or a virtual machine with nested one, and KVM's modules",
            ),
        ),
        Some(libc::EACCES | libc::EPERM) => (
            format!("{DEVICE} may not be opened"),
            Some("its group, mostly `kvm`, may"),
        ),
        errno => (
            format!(
                "{DEVICE} can't be opened: {}",
                Errno(errno.unwrap_or(libc::EIO))
            ),
            None,
        ),
    };
    Err(Unavailable { reason, remedy })
}

//! Guests in a virtual machine of the kernel's KVM.
//!
//! The guest's process is the monitor and the memory of the machine: the guest runs there with the privileges of user
//! space and leaves the machine at each call. The monitor makes the call in its own process, under the guest's filter,
//! so the kernel carries out the filter's action, as for [`notify`](crate::attached): it returns errors and kills, and
//! `notify` passes the call to the supervisor through a listener. The kernel executes programs; before their first
//! instruction the tracer brings the monitor into their memory. Tasks of the guest are tasks of the kernel with a
//! thread of the machine each, traced so that they die with their supervisor.
//!
//! The boundary is the filter. The machine keeps the guest's code from entering the kernel without the monitor; the
//! calls themselves affect the monitor's process, which a guest can overwrite by them.
//!
//! | module | function |
//! |---|---|
//! | `filter` | the guest's filter, and the calls of the monitor |
//! | `arguments` | filters that can't be applied |
//! | `residence` | bringing the monitor into a program's memory |
//!
//! Programs of the 32-bit interface are killed.

mod arguments;
mod filter;
mod residence;

use std::fs::OpenOptions;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use tamis_kernel::{Ended, Errno};

use crate::attached::{self, Start};
use crate::caps::{Caps, Family, Isolation};
use crate::error::{PlatformError, Unavailable};
use crate::platform::{Guest, Options, Platform};
use crate::probe;
use crate::supervisor::Supervisor;
use crate::sys::image::{self, Snapshot};
use crate::sys::kvm::area::Exit;
use crate::sys::kvm::{self, Machine, machine};

/// The platform, which detects the exit of calls on this machine.
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
            catches_i386: false,
            takes_filters: false,
            // The device mostly belongs to a group.
            is_unprivileged: false,
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
        guest.check(&self.caps())?;
        let exit = self
            .0
            .map_or_else(exit, Ok)
            .map_err(PlatformError::Unavailable)?;
        let filter = filter::filter(guest.filter, kvm::own_ips(), kvm::asking_ip());
        let filter = filter.map_err(PlatformError::Unsupported)?;
        let kvm = open().map_err(PlatformError::Unavailable)?;
        let failed = |request| move |errno| PlatformError::Request { request, errno };
        let place = image::nothing().map_err(failed("memfd_create"))?;
        let machine = Machine {
            kvm: kvm.as_fd(),
            place: place.as_fd(),
            exit,
            code: Snapshot::new().map_err(failed("memfd_create"))?,
            first_fd: kvm::first_fd().map_err(failed("making a virtual machine"))?,
            first: AtomicI32::new(0),
            failure: AtomicI32::new(0),
        };
        let start = Start {
            body: Some(&machine),
            filter: Some(&filter),
            stub: None,
            residence: Some(&machine),
        };
        let ended = attached::NOTIFY.run_from(&start, guest, supervisor, options);
        match (machine.failure.load(Ordering::Acquire), &ended) {
            // It ended by itself before it was killed for the failure.
            (0, _) | (_, Ok(Ended::Exited(_))) => ended,
            (errno, _) => Err(failed("running a virtual machine")(Errno(errno))),
        }
    }
}

/// The exit of calls from machines of this KVM: detected again until it succeeds, since descriptors or memory may be
/// missing temporarily.
fn exit() -> Result<Exit, Unavailable> {
    static FOUND: OnceLock<Exit> = OnceLock::new();
    match FOUND.get() {
        Some(exit) => Ok(*exit),
        None => find_exit().map(|exit| *FOUND.get_or_init(|| exit)),
    }
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
    // The fastest first.
    for (name, exit) in [
        ("hlt", Exit::Halt),
        ("a port", Exit::Port),
        ("memory", Exit::Memory),
    ] {
        match probe::probe(&Kvm(Some(exit))) {
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
    let error = match options.read(true).write(true).open(DEVICE) {
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

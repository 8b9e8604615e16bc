//! Guests with a stub: a signal handler in the guest's process that hands calls over to the supervisor through shared
//! memory.
//!
//! The guest is loaded into a process of its own. Its threads' calls raise a signal (syscall user dispatch), and the
//! handler hands calls that may need the supervisor over in a slot. The filter is the boundary: it returns `notify`
//! where the guest's does, for the stub's instructions as well, so the kernel notifies a call that the supervisor
//! hasn't forwarded. Processes without a stub, after a fork or an execution, run as on [`notify`](crate::attached).
//!
//! | module | function |
//! |---|---|
//! | `filter` | the guest's filter, and the calls of the stub |

mod filter;

use std::sync::{Arc, Mutex};

use tamis_abi::ActionKind;
use tamis_bpf::{Program, Stack};
use tamis_kernel::spawn::SpawnError;
use tamis_kernel::{Ended, Errno};
use tamis_vm::Evaluator;

use crate::attached::{self, Start};
use crate::caps::{Caps, Family};
use crate::error::{PlatformError, Unavailable};
use crate::in_process::{self, calls, filter::MASKS};
use crate::offsets::reads_ip;
use crate::patched::Numbers;
use crate::patched::channels::StubInterface;
use crate::patched::dispatcher::{Handler, Slots};
use crate::platform::{Guest, Options, Platform};
use crate::probe;
use crate::supervisor::Supervisor;
use crate::sys::separate::{self, Separate};
use crate::sys::shared::Shared;
use crate::sys::{guest, machine};

/// The platform.
pub(crate) static STUB: Stub = Stub;

/// The platform.
pub(crate) struct Stub;

/// The threads that can have a slot; the calls of others are notified.
const SLOTS: usize = 1024;

impl Platform for Stub {
    fn name(&self) -> &'static str {
        "stub"
    }

    fn caps(&self) -> Caps {
        Caps {
            family: Family::Managed,
            sees_tasks: false,
            has_own_exe: false,
            ..attached::NOTIFY.caps()
        }
    }

    fn probe(&self) -> Result<(), Unavailable> {
        if !machine::has_fs_base() {
            return Err(in_process::no_fs_base());
        }
        probe::probe(self)
    }

    fn run(
        &self,
        guest: &Guest<'_>,
        supervisor: &dyn Supervisor,
        options: &Options<'_>,
    ) -> Result<Ended, PlatformError> {
        guest.check(&self.caps())?;
        let evaluator = Evaluator::cached(&Stack::from(guest.filter.clone()));
        let evaluator = evaluator.map_err(|error| PlatformError::Filter(error.to_string()))?;
        let Some(numbers) = numbers(guest.filter, &evaluator) else {
            return attached::NOTIFY.run(guest, supervisor, options);
        };
        let failed = |request| move |errno| PlatformError::Request { request, errno };
        let program = match in_process::load(guest, options.name) {
            Ok(program) => program,
            // A script, or a program of the 32-bit interface.
            Err(Errno(libc::ENOEXEC)) => return attached::NOTIFY.run(guest, supervisor, options),
            Err(errno) => return Err(PlatformError::Spawn(SpawnError::Exec(errno))),
        };
        let filter = filter::filter(guest.filter, guest::own_ips());
        let Ok(filter) = filter else {
            return attached::NOTIFY.run(guest, supervisor, options);
        };
        let memory = Shared::with_children(SLOTS).map_err(failed("mmap"))?;
        let slots = Arc::new(Slots {
            memory: Arc::new(memory),
            free: Mutex::new((0..SLOTS).rev().collect()),
        });
        let tables = numbers.tables();
        let body = Separate::new(&program, &slots.memory, &tables);
        let start = Start {
            body: Some(&body),
            filter: Some(&filter),
            stub: Some(StubInterface {
                evaluator: &evaluator,
                slots: &slots,
                may_leave: filter::may_leave,
                handler: Handler {
                    is_emulated: calls::is_emulated,
                    may_emulate: calls::may_emulate,
                    args_of: calls::with_mask_of,
                },
                numbers: separate::numbers_at(),
            }),
            residence: None,
        };
        supervisor.loaded();
        attached::NOTIFY.run_from(&start, guest, supervisor, options)
    }
}

/// The filter's actions by call numbers; `None` if the guest can't have a stub.
fn numbers(filter: &Program, evaluator: &Evaluator) -> Option<Numbers> {
    if reads_ip(filter) || !machine::has_fs_base() {
        return None;
    }
    let numbers = Numbers::new(filter, evaluator);
    // The stub makes these calls itself, so it must support the filter's action.
    let is_answered = |nr: i64| {
        let kind = numbers.action(nr).map(|action| action.kind);
        matches!(
            kind,
            Some(ActionKind::Allow | ActionKind::Notify | ActionKind::Errno)
        )
    };
    MASKS
        .iter()
        .all(|(nr, _)| is_answered(*nr))
        .then_some(numbers)
}

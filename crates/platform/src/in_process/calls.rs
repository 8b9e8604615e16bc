//! What the signal handler does with a call. All of it is async-signal-safe, if the supervisor is.

use std::mem;

use tamis_abi::{Action, ActionKind, Arch, SeccompData};
use tamis_engine::Evaluator;
use tamis_kernel::Errno;

use super::filter::{MASKS, SYS_EPOLL_PWAIT2};
use crate::supervisor::{Answer, Supervisor};
use crate::sys::guest;
use crate::task::{Space, Task, TaskId};

/// `SIGSYS` in a set of signals.
const OWN_SIGNAL: u64 = 1 << (libc::SIGSYS - 1);

/// Who answers.
pub(crate) struct Calls<'a> {
    supervisor: &'a dyn Supervisor,
    evaluator: &'a Evaluator,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It returns this.
    Result(i64),
    /// The guest makes it itself: it returns twice, or elsewhere.
    InGuest,
    /// The guest is killed.
    Kill,
    /// It is killed because the supervisor wants what can't be done.
    Unsupported,
    /// The guest dies of the signal, because its filter says so.
    Signal,
}

impl<'a> Calls<'a> {
    pub(crate) const fn new(supervisor: &'a dyn Supervisor, evaluator: &'a Evaluator) -> Calls<'a> {
        Calls {
            supervisor,
            evaluator,
        }
    }

    /// Decides a call that has raised the signal.
    pub(crate) fn decide(&self, call: &SeccompData) -> Outcome {
        let action = Action::from_ret(self.evaluator.run(call));
        match action.kind {
            ActionKind::Notify => self.ask(call),
            ActionKind::Allow | ActionKind::Log => forward(call, call),
            ActionKind::Errno => Outcome::Result(-i64::from(action.data.min(4095))),
            _ => Outcome::Signal,
        }
    }

    fn ask(&self, call: &SeccompData) -> Outcome {
        match self.supervisor.call(&mut Own, call) {
            Answer::Return(value) => Outcome::Result(value),
            Answer::Errno(errno) => Outcome::Result(-i64::from(errno)),
            Answer::Forward => forward(call, call),
            Answer::ForwardWith(new) => forward(call, &new),
            Answer::Descriptor(fd) => {
                // It was closed when the guest started.
                mem::forget(fd);
                Outcome::Unsupported
            }
            Answer::Kill => Outcome::Kill,
        }
    }
}

/// Makes a call in place of one.
fn forward(call: &SeccompData, made: &SeccompData) -> Outcome {
    /// Calls that return twice, or not from where they were made, and those that a handler would make for itself.
    const ELSEWHERE: [i64; 4] = [
        libc::SYS_clone,
        libc::SYS_rt_sigreturn,
        libc::SYS_arch_prctl,
        libc::SYS_sigaltstack,
    ];
    let is_elsewhere = ELSEWHERE.contains(&i64::from(made.nr));
    if made.arch != Arch::X86_64.audit() || is_elsewhere && made != call {
        return Outcome::Result(-i64::from(libc::ENOSYS));
    }
    match is_elsewhere {
        true => Outcome::InGuest,
        false => Outcome::Result(make_unblocking(made)),
    }
}

/// Makes a call, so that it doesn't block the signal.
fn make_unblocking(call: &SeccompData) -> i64 {
    let nr = i64::from(call.nr);
    let found = MASKS.iter().find(|(one, _)| *one == nr);
    match found.map(|(_, arg)| *arg as usize) {
        Some(arg) if call.args[arg] != 0 => {
            with_mask(call, arg).unwrap_or_else(|errno| -i64::from(errno.0))
        }
        _ => guest::make(call.nr, call.args),
    }
}

/// Makes a call with a copy of what an argument points to, in which the signal isn't blocked.
fn with_mask(call: &SeccompData, arg: usize) -> Result<i64, Errno> {
    /// Words of `struct sigaction` as the kernel has it, with the mask last.
    const ACTION_WORDS: usize = 4;
    let mut args = call.args;
    let nr = i64::from(call.nr);
    if nr == libc::SYS_rt_sigaction {
        if args[0] == libc::SIGSYS as u64 {
            if args[2] != 0 {
                write_words(args[2], &[0; ACTION_WORDS])?;
            }
            return Ok(0);
        }
        let mut action: [u64; ACTION_WORDS] = read_words(args[arg])?;
        action[ACTION_WORDS - 1] &= !OWN_SIGNAL;
        args[arg] = action.as_ptr() as u64;
        return Ok(guest::make(call.nr, args));
    }
    if nr == libc::SYS_pselect6 {
        // A pointer to a set, and its size.
        let mut pair: [u64; 2] = read_words(args[arg])?;
        let mut set: [u64; 1];
        if pair[0] != 0 {
            set = read_words(pair[0])?;
            set[0] &= !OWN_SIGNAL;
            pair[0] = set.as_mut_ptr() as u64;
        }
        args[arg] = pair.as_ptr() as u64;
        return Ok(guest::make(call.nr, args));
    }
    debug_assert!(nr != SYS_EPOLL_PWAIT2 || arg == 4);
    let mut set: [u64; 1] = read_words(args[arg])?;
    let unblocks = nr == libc::SYS_rt_sigprocmask && args[0] == libc::SIG_UNBLOCK as u64;
    if !unblocks {
        set[0] &= !OWN_SIGNAL;
    }
    args[arg] = set.as_ptr() as u64;
    Ok(guest::make(call.nr, args))
}

fn read_words<const COUNT: usize>(address: u64) -> Result<[u64; COUNT], Errno> {
    let mut bytes = [[0; size_of::<u64>()]; COUNT];
    match guest::read(address, bytes.as_flattened_mut())? {
        read if read == size_of_val(&bytes) => Ok(bytes.map(u64::from_ne_bytes)),
        _ => Err(Errno(libc::EFAULT)),
    }
}

fn write_words<const COUNT: usize>(address: u64, words: &[u64; COUNT]) -> Result<(), Errno> {
    let bytes = words.map(u64::to_ne_bytes);
    guest::write(address, bytes.as_flattened()).map(|_| ())
}

/// The calling thread.
struct Own;

impl Task for Own {
    fn id(&self) -> TaskId {
        TaskId(guest::thread())
    }

    fn space(&self) -> &dyn Space {
        self
    }
}

impl Space for Own {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        guest::read(address, buffer)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<usize, Errno> {
        guest::write(address, bytes)
    }
}

//! The signal handler's treatment of a call. All of it is async-signal-safe, if the supervisor is.

use std::mem;
use std::sync::atomic::AtomicU32;

use tamis_abi::{Action, ActionKind, Arch, SeccompData, errno};
use tamis_kernel::Errno;
use tamis_vm::Evaluator;

use super::filter::MASKS;
use crate::installing;
use crate::supervisor::{Answer, Supervisor};
use crate::sys::guest::{self, ACTION_WORDS, Owner};
use crate::sys::{frame, separate};
use crate::task::{Space, Task, TaskId};

/// `SIGSYS` in a set of signals.
const OWN_SIGNAL: u64 = 1 << (libc::SIGSYS - 1);

/// The source of decisions about calls.
pub(crate) struct Calls<'a>(Decider<'a>);

enum Decider<'a> {
    /// A supervisor in the guest's own process, where the guest's filter is evaluated.
    Here {
        supervisor: &'a dyn Supervisor,
        evaluator: &'a Evaluator,
    },
    /// The kernel, or a supervisor in another process before it.
    There(&'a dyn RemoteSupervisor),
}

/// A supervisor in another process.
pub(crate) trait RemoteSupervisor: Sync {
    /// Requests the answer to a call of a thread. `None` if the guest is to make the call, and the kernel decides.
    fn ask(&self, thread: &mut Thread, call: &SeccompData) -> Option<i64>;

    /// The flag of a thread with this FS base that marks the restoring of its signal mask, if it has one.
    fn leaving(&self, fs_base: u64) -> Option<&AtomicU32>;

    /// Removes the former thread with the FS base of a thread that is about to begin.
    fn forget(&self, fs_base: u64);
}

/// The thread of the guest that the handler has interrupted.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) fs_base: u64,
    /// The signals that it blocks outside of the handler.
    pub(crate) mask: u64,
    /// Whether it blocks all signals in the handler.
    pub(crate) blocks: bool,
    /// Whether other threads wait for it: it makes the handler's calls, and handlers of the guest must not run in it.
    pub(crate) is_inside: bool,
}

impl Thread {
    /// Makes a call while handlers of the guest may run.
    fn make(&mut self, nr: u32, args: [u64; 6]) -> i64 {
        guest::make_outside(self, Owner::Guests, nr, args)
    }
}

/// The result of deciding a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The call returns this value.
    Result(i64),
    /// The guest makes the call itself, after the handler.
    InGuest,
    /// The guest restarts the call at its own instruction; dispatch of this thread has ended, or is about to end.
    Again,
    /// The guest is killed.
    Kill,
    /// The guest is killed because the supervisor's answer isn't supported.
    Unsupported,
    /// The guest dies of the signal, by its filter's action.
    Signal,
    /// The guest gets the signal with this data, by its filter's action.
    Trap(u16),
}

impl<'a> Calls<'a> {
    pub(crate) const fn new(supervisor: &'a dyn Supervisor, evaluator: &'a Evaluator) -> Calls<'a> {
        Calls(Decider::Here {
            supervisor,
            evaluator,
        })
    }

    /// For guests whose supervisor is another process.
    pub(crate) const fn there(far: &'a dyn RemoteSupervisor) -> Calls<'a> {
        Calls(Decider::There(far))
    }

    /// Whether the supervisor is another process.
    pub(crate) const fn is_there(&self) -> bool {
        matches!(self.0, Decider::There(_))
    }

    /// Removes the former thread with the FS base of a thread that is about to begin.
    pub(crate) fn forget(&self, fs_base: u64) {
        if let Decider::There(far) = self.0 {
            far.forget(fs_base);
        }
    }

    /// See [`RemoteSupervisor::leaving`].
    pub(crate) fn leaving(&self, fs_base: u64) -> Option<&AtomicU32> {
        match self.0 {
            Decider::There(far) => far.leaving(fs_base),
            Decider::Here { .. } => None,
        }
    }

    /// Decides a call that has raised the signal.
    pub(crate) fn decide(&self, call: &SeccompData, thread: &mut Thread) -> Outcome {
        let (supervisor, evaluator) = match self.0 {
            Decider::Here {
                supervisor,
                evaluator,
            } => (supervisor, evaluator),
            Decider::There(far) => {
                return match far.ask(thread, call) {
                    Some(result) => Outcome::Result(result),
                    None if thread.is_inside => by_kernel(call, thread),
                    // A filter for all threads has been installed meanwhile.
                    None => Outcome::Again,
                };
            }
        };
        let action = Action::from_ret(evaluator.run(call));
        match action.kind {
            ActionKind::Notify => ask(supervisor, call, thread),
            ActionKind::Allow | ActionKind::Log => forward(call, call, thread),
            ActionKind::Errno => Outcome::Result(-i64::from(action.data.min(errno::MAX))),
            // There is no tracer.
            ActionKind::Trace => Outcome::Result(-i64::from(libc::ENOSYS)),
            ActionKind::Trap => Outcome::Trap(action.data),
            _ => Outcome::Signal,
        }
    }
}

/// Requests the answer of a supervisor in this process.
fn ask(supervisor: &dyn Supervisor, call: &SeccompData, thread: &mut Thread) -> Outcome {
    let mut answer = supervisor.call(&mut CallingThread, call);
    while let Answer::Later(time, next) = answer {
        let time = [time.as_secs(), u64::from(time.subsec_nanos())];
        let args = [time.as_ptr() as u64, 0, 0, 0, 0, 0];
        guest::make_outside(thread, Owner::Ours, libc::SYS_nanosleep as u32, args);
        answer = *next;
    }
    match answer {
        Answer::Return(value) => Outcome::Result(value),
        Answer::Errno(errno) => Outcome::Result(-i64::from(errno)),
        Answer::Forward => forward(call, call, thread),
        Answer::ForwardWith(new) => forward(call, &new, thread),
        Answer::Descriptor(fd) => {
            // It was closed when the guest started.
            mem::forget(fd);
            Outcome::Unsupported
        }
        Answer::Kill | Answer::Later(..) => Outcome::Kill,
    }
}

/// Leaves a call to the guest, and to the kernel, whose filter decides.
fn by_kernel(call: &SeccompData, thread: &mut Thread) -> Outcome {
    match installs(call) {
        FilterScope::Nothing => {}
        // The new filter may deny the handler's calls: no call of this thread comes here any more.
        FilterScope::ForThread => guest::stop_dispatch(),
        FilterScope::ForAll => {
            guest::stop_everywhere(thread);
            return Outcome::Again;
        }
    }
    if call.arch == Arch::X86.audit() {
        // The call may concern a handler.
        guest::block_in_handler(thread);
        return Outcome::InGuest;
    }
    let shares_stack = call.args[0] & libc::CLONE_VM as u64 != 0 && call.args[1] == 0;
    match i64::from(call.nr) {
        // The child would overwrite the handler's return address.
        libc::SYS_vfork => return without_dispatch(),
        libc::SYS_clone if shares_stack => return without_dispatch(),
        _ => {}
    }
    forward(call, call, thread)
}

/// The threads that get the filter of a call.
enum FilterScope {
    Nothing,
    ForThread,
    ForAll,
}

fn installs(call: &SeccompData) -> FilterScope {
    /// `SECCOMP_SET_MODE_STRICT`, `SECCOMP_SET_MODE_FILTER`, `SECCOMP_FILTER_FLAG_TSYNC`.
    const STRICT: u32 = 0;
    const FILTER: u32 = 1;
    const FOR_ALL_THREADS: u64 = 1;
    let [first, second, third, ..] = call.args;
    // Libraries test for a flag with a null pointer to a filter.
    let is_there = third != 0;
    if !installing::may_install(call) {
        return FilterScope::Nothing;
    }
    // `prctl` with these arguments.
    let is_prctl = !installing::is_seccomp(call);
    match first as u32 {
        _ if is_prctl => FilterScope::ForThread,
        STRICT => FilterScope::ForThread,
        FILTER if !is_there => FilterScope::Nothing,
        FILTER if second & FOR_ALL_THREADS != 0 => FilterScope::ForAll,
        FILTER => FilterScope::ForThread,
        _ => FilterScope::Nothing,
    }
}

/// Leaves a call, and all further ones of this thread, to the guest's own instructions.
fn without_dispatch() -> Outcome {
    guest::stop_dispatch();
    Outcome::Again
}

/// Makes one call in place of another.
fn forward(call: &SeccompData, made: &SeccompData, thread: &mut Thread) -> Outcome {
    /// Calls that return twice, or to another address, or concern the thread itself.
    const BY_GUEST: [i64; 4] = [
        libc::SYS_clone,
        libc::SYS_rt_sigreturn,
        libc::SYS_arch_prctl,
        libc::SYS_sigaltstack,
    ];
    let nr = i64::from(made.nr);
    if made.arch != Arch::X86_64.audit() || made != call && BY_GUEST.contains(&nr) {
        return Outcome::Result(-i64::from(libc::ENOSYS));
    }
    let found = MASKS.iter().find(|(one, _)| *one == nr);
    match found.map(|(_, arg)| *arg as usize) {
        Some(arg) if made.args[arg] != 0 || is_own_action(made) => {
            let result = with_mask(made, arg, thread);
            Outcome::Result(result.unwrap_or_else(|errno| -i64::from(errno.0)))
        }
        _ if made == call && nr == libc::SYS_sigaltstack => set_stack(call),
        _ if made == call => Outcome::InGuest,
        _ => Outcome::Result(thread.make(made.nr, made.args)),
    }
}

/// Sets a new stack for signals, used by the handler. A stack that is too small for the handler or can't be
/// written fails like one that is too small for the kernel's frame. If the supervisor is another process, this thread
/// continues without a handler.
fn set_stack(call: &SeccompData) -> Outcome {
    let is_usable = match read_words(call.args[0]) {
        Ok([first, flags, len_bytes]) => {
            let is_off = flags as i32 & libc::SS_DISABLE != 0;
            is_off || frame::has_room(first, len_bytes)
        }
        // There is no stack to set, or the kernel returns the error.
        Err(_) => true,
    };
    match is_usable {
        true => Outcome::InGuest,
        false if separate::is_separate() => without_dispatch(),
        false => Outcome::Result(-i64::from(libc::ENOMEM)),
    }
}

/// Whether a call sets or reads the action of our signal.
fn is_own_action(call: &SeccompData) -> bool {
    i64::from(call.nr) == libc::SYS_rt_sigaction && call.args[0] as i32 == libc::SIGSYS
}

/// Whether the handler carries out a call without making it.
pub(crate) fn is_emulated(call: &SeccompData) -> bool {
    is_own_action(call) || i64::from(call.nr) == libc::SYS_rt_sigprocmask && call.args[1] != 0
}

/// Whether the handler may carry out calls of a number without making them.
pub(crate) fn may_emulate(nr: u32) -> bool {
    [libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask].contains(&i64::from(nr))
}

/// The arguments of a call that the handler makes for one with these arguments: it passes a copy of a mask. Filters
/// don't decide by the memory behind pointers anyway.
pub(crate) fn with_mask_of(call: &SeccompData, original: &[u64; 6]) -> [u64; 6] {
    let mut args = call.args;
    let found = MASKS.iter().find(|(nr, _)| *nr == i64::from(call.nr));
    if let Some((_, arg)) = found
        && let (place, original) = (&mut args[*arg as usize], original[*arg as usize])
        && *place != 0
        && original != 0
    {
        *place = original;
    }
    args
}

/// Makes a call with a copy of an argument's memory that doesn't block the signal.
fn with_mask(call: &SeccompData, arg: usize, thread: &mut Thread) -> Result<i64, Errno> {
    let mut args = call.args;
    if is_own_action(call) {
        guest::block_in_handler(thread);
        return own_action(args);
    }
    match i64::from(call.nr) {
        libc::SYS_rt_sigaction => {
            let mut action: [u64; ACTION_WORDS] = read_words(args[arg])?;
            guest::block_in_handler(thread);
            action[ACTION_WORDS - 1] &= !OWN_SIGNAL;
            args[arg] = action.as_ptr() as u64;
            return Ok(thread.make(call.nr, args));
        }
        libc::SYS_rt_sigprocmask => return set_mask(args, thread),
        _ => {}
    }
    let pair: [u64; 2];
    let mut address = args[arg];
    if i64::from(call.nr) == libc::SYS_pselect6 {
        // A pointer to a set, and its size.
        pair = read_words(address)?;
        address = pair[0];
        if address == 0 {
            return Ok(thread.make(call.nr, args));
        }
    }
    let [set]: [u64; 1] = read_words(address)?;
    let set = set & !OWN_SIGNAL;
    let copy = [&raw const set as u64, size_of::<u64>() as u64];
    args[arg] = match i64::from(call.nr) {
        libc::SYS_pselect6 => copy.as_ptr() as u64,
        _ => copy[0],
    };
    Ok(thread.make(call.nr, args))
}

/// `rt_sigaction` for our signal, whose handler stays and calls the guest's.
fn own_action(args: [u64; 6]) -> Result<i64, Errno> {
    let [_, new, old, size, ..] = args;
    if size != size_of::<u64>() as u64 {
        return Err(Errno(libc::EINVAL));
    }
    let new = (new != 0).then(|| read_words(new)).transpose()?;
    let former = guest::own_action(new);
    if old != 0 {
        write_words(old, &former)?;
    }
    Ok(0)
}

/// `rt_sigprocmask`, on the mask that is restored in the thread.
fn set_mask(args: [u64; 6], thread: &mut Thread) -> Result<i64, Errno> {
    let [how, _, old, size, ..] = args;
    let [set]: [u64; 1] = read_words(args[1])?;
    if size != size_of::<u64>() as u64 {
        return Err(Errno(libc::EINVAL));
    }
    let new = match how as i32 {
        libc::SIG_BLOCK => thread.mask | set,
        libc::SIG_UNBLOCK => thread.mask & !set,
        libc::SIG_SETMASK => set,
        _ => return Err(Errno(libc::EINVAL)),
    };
    if old != 0 {
        write_words(old, &[thread.mask])?;
    }
    thread.mask = new & !OWN_SIGNAL;
    Ok(0)
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
struct CallingThread;

impl Task for CallingThread {
    fn id(&self) -> TaskId {
        TaskId(guest::thread())
    }

    fn space(&self) -> &dyn Space {
        self
    }
}

impl Space for CallingThread {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        guest::read(address, buffer)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<usize, Errno> {
        guest::write(address, bytes)
    }
}

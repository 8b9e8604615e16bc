//! The monitor's descriptors: numbers that no call assigns to the guest, and a limit that may be lower than they are.
//!
//! Each has a fixed number: KVM's, the machine's, those of the threads and that of the monitor's code, in this order.
//! If one isn't created yet, a placeholder (`O_PATH`, of an empty file) reserves its number. Processes inherit them
//! from their parents.
//!
//! A guest may lower its limit of descriptors. While a descriptor is created, the limit is raised; if raising is
//! denied, the descriptor gets the highest free number below the limit. Only the table of the creating process has it
//! at that number, and tables that were copied from it later: a process that has borrowed its memory notes which
//! descriptors it has.
//!
//! No thread has a descriptor table of its own: the guest can't request one.

use std::ops::Range;
use std::sync::atomic::{AtomicI32, Ordering};

use tamis_kernel::Errno;

use super::area::{MAX_VCPUS, OWN_FDS, PLACE_FD, State};
use super::call::own;
use super::machine::errno;
use super::vcpu::Vcpu;

/// The number of the limit of descriptors.
pub(crate) const NOFILE: u64 = libc::RLIMIT_NOFILE as u64;
/// The index of the machine's descriptor among the monitor's; those of its threads follow.
const VM_FD: i32 = 1;
const FIRST_VCPU_FD: i32 = 2;

/// Spare numbers beyond the monitor's own that a raised limit allows: as many as other threads of the guest may take
/// meanwhile.
const SOME: u64 = 8;
const NONE: u64 = 0;

/// A soft and a hard limit.
pub(super) type Limit = [u64; 2];

/// The threads of a machine that a process has descriptors of, a bit for each.
pub(super) type ThreadSet = [u64; MAX_VCPUS / u64::BITS as usize];

/// The threads whose descriptors are created.
pub(super) fn known(state: &State) -> ThreadSet {
    let mut known = ThreadSet::default();
    for (index, fd) in state.vcpu_fds.iter().enumerate() {
        let is_made = fd.load(Ordering::Acquire) != 0;
        known[index / 64] |= u64::from(is_made) << (index % 64);
    }
    known
}

/// The machine's descriptors in the table of a thread.
fn made<'a>(vcpu: &Vcpu) -> impl Iterator<Item = &'a AtomicI32> {
    let state = vcpu.state();
    let lent = vcpu.is_borrower.then_some(vcpu.lent);
    let is_there =
        move |index: usize| lent.is_none_or(|known| known[index / 64] >> (index % 64) & 1 != 0);
    let threads = state.vcpu_fds.iter().enumerate();
    let threads = threads
        .filter(move |(index, _)| is_there(*index))
        .map(|(_, fd)| fd);
    std::iter::once(&state.vm_fd).chain(threads)
}

/// The fixed numbers of the monitor.
fn usual(state: &State) -> Range<u64> {
    let first = state.first_fd.load(Ordering::Relaxed) as u64;
    first..first + OWN_FDS
}

/// The placeholder.
fn place(state: &State) -> i64 {
    i64::from(state.first_fd.load(Ordering::Relaxed) + PLACE_FD)
}

/// Whether a descriptor of a thread is the monitor's.
pub(super) fn is_own(vcpu: &Vcpu, fd: u64) -> bool {
    let fd = fd & 0xffff_ffff;
    own_from(vcpu, fd).start <= fd
}

/// The first range of the monitor's descriptors that doesn't end below this number.
pub(super) fn own_from(vcpu: &Vcpu, fd: u64) -> Range<u64> {
    let usual = usual(vcpu.state());
    let made = made(vcpu).map(|fd| fd.load(Ordering::Relaxed));
    let made = made.map(|fd| u64::from(fd.unsigned_abs()));
    let others = made.filter(|one| *one != 0 && !usual.contains(one));
    let after = others.filter(|one| *one >= fd).map(|one| one..one + 1);
    let usual = (usual.end > fd).then(|| usual.clone());
    let all = after.chain(usual);
    all.min_by_key(|range| range.start)
        .unwrap_or(u64::MAX..u64::MAX)
}

/// Reserves the numbers of descriptors that aren't created, as far as the limit permits.
pub(super) fn occupy(state: &State) -> Result<(), Errno> {
    let place = place(state);
    let usual = usual(state);
    with_limit(state, NONE, |limit| {
        let mut next = usual.start;
        while next < usual.end.min(limit) {
            match copy_from(place, next as i32) {
                Ok(fd) if usual.contains(&(fd as u64)) => next = fd as u64 + 1,
                Ok(fd) => {
                    close(fd.into());
                    return Ok(());
                }
                // The limit permits no more.
                Err(Errno(libc::EMFILE)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })
}

/// Creates the machine's descriptor, in a process whose only thread this is.
pub(super) fn put_machine(
    state: &State,
    make: impl FnOnce() -> Result<i64, Errno>,
) -> Result<i32, Errno> {
    with_limit(state, NONE, |_| put(state, make()?, VM_FD))
}

/// Creates the descriptor of a thread, which isn't set up yet. From here on the guest can't close it.
pub(super) fn put_thread(
    state: &State,
    index: usize,
    make: impl Fn() -> Result<i64, Errno>,
) -> Result<i32, Errno> {
    let number = FIRST_VCPU_FD + index as i32;
    let attempt = |_| put(state, make()?, number);
    let made = with_limit(state, NONE, attempt);
    // It is created at another number first, and the guest may have used all numbers.
    let fd = match made {
        Err(Errno(libc::EMFILE)) => with_limit(state, SOME, attempt)?,
        made => made?,
    };
    state.vcpu_fds[index].store(-fd, Ordering::Release);
    Ok(fd)
}

/// Moves a descriptor to its fixed number. If that is beyond the limit, which may just have been lowered, the
/// descriptor gets the highest free number. KVM creates no second descriptor of the same thread, so it isn't given up.
fn put(state: &State, fd: i64, index: i32) -> Result<i32, Errno> {
    let wanted = state.first_fd.load(Ordering::Relaxed) + index;
    if fd == i64::from(wanted) {
        return Ok(wanted);
    }
    let moved = copy_to(fd, wanted).ok().or_else(|| {
        let [limit, _] = exchange_limit(None)?;
        let end = limit.min(wanted as u64) as i32;
        let mut higher = (fd as i32 + 1..end).rev();
        higher.find_map(|number| copy_from(fd, number).ok())
    });
    match moved {
        None if fd != 0 => return Ok(fd as i32),
        _ => close(fd),
    }
    // Number 0 means not created: only a descriptor with that number that can't be moved is given up.
    moved.ok_or(Errno(libc::EMFILE))
}

/// Closes the descriptors of the former machine in a forked process, whose only thread this is.
pub(super) fn leave_machine(vcpu: &Vcpu) {
    for fd in made(vcpu) {
        let fd = fd.swap(0, Ordering::Relaxed);
        if fd != 0 {
            close(i64::from(fd).abs());
        }
    }
    for fd in &vcpu.state().vcpu_fds {
        fd.store(0, Ordering::Relaxed);
    }
}

/// Returns the limit that a process to be forked will have; `None` if it has no room for the descriptors of its machine
/// and a thread.
pub(super) fn before_fork(state: &State) -> Option<Limit> {
    state.locked(|| {
        let limit = own_limit();
        let vm = state.vm_fd.load(Ordering::Relaxed) as u64;
        // If the monitor's descriptors are beyond the limit, they leave no room below it.
        let is_left = |limit| vm < limit;
        has_room(state, is_left, |_| false).then_some(limit)
    })
}

/// The limit that a process will have which is about to be created and borrows memory.
pub(super) fn limit(state: &State) -> Limit {
    state.locked(own_limit)
}

/// The limit while no other thread raises it, or a value that no limit is raised to.
fn own_limit() -> Limit {
    exchange_limit(None).unwrap_or([u64::MAX; 2])
}

/// Restores the limit in the new process if another thread had just raised it.
pub(super) fn after_fork(state: &State, limit: Limit) {
    let now = exchange_limit(None);
    let is_raised = |spare| now == Some(raised(state, limit, spare));
    if now != Some(limit) && (is_raised(NONE) || is_raised(SOME)) {
        exchange_limit(Some(limit));
    }
}

/// Whether an executed program will have room for its machine's descriptors.
pub(super) fn is_room_for_program(state: &State) -> bool {
    let is_closed = |flags: i64| flags & i64::from(libc::FD_CLOEXEC) != 0;
    state.locked(|| has_room(state, |_| false, is_closed))
}

/// Whether two descriptors can be created in a future process: either the limit permits its fixed numbers, or two
/// numbers are free or will be by their flags.
fn has_room(state: &State, is_left: impl Fn(u64) -> bool, will_be: impl Fn(i64) -> bool) -> bool {
    with_limit(state, NONE, |limit| {
        let is_free = |fd: &u64| {
            let args = [*fd, libc::F_GETFD as u64, 0, 0, 0, 0];
            let flags = own(libc::SYS_fcntl, args);
            flags < 0 || will_be(flags)
        };
        // Number 0 is never a descriptor of the monitor.
        limit >= usual(state).end
            || is_left(limit)
            || (1..limit).filter(is_free).take(2).count() == 2
    })
}

/// The raised limit.
fn raised(state: &State, [soft, hard]: Limit, spare: u64) -> Limit {
    let needed = usual(state).end + spare;
    [soft.max(needed), hard.max(needed)]
}

/// Runs `make` with the limit raised, if it is too low and raising is permitted; `make` gets the limit. A limit that
/// another thread of the guest sets meanwhile is kept.
fn with_limit<T>(state: &State, spare: u64, make: impl FnOnce(u64) -> T) -> T {
    let Some(limit) = exchange_limit(None) else {
        return make(usual(state).end);
    };
    let higher = raised(state, limit, spare);
    if limit[0] == higher[0] {
        return make(limit[0]);
    }
    let Some(mut former) = exchange_limit(Some(higher)) else {
        return make(limit[0]);
    };
    let made = make(higher[0]);
    let mut ours = higher;
    // This fails if the guest has lowered its hard limit, which is then the final limit.
    while let Some(found) = exchange_limit(Some(former))
        && found != ours
    {
        (ours, former) = (former, found);
    }
    made
}

/// Returns the limit, and sets another one if given.
fn exchange_limit(new: Option<Limit>) -> Option<Limit> {
    let mut old = Limit::default();
    let new = new.as_ref().map_or(0, |limit| limit.as_ptr() as u64);
    let args = [0, NOFILE, new, old.as_mut_ptr() as u64, 0, 0];
    (own(libc::SYS_prlimit64, args) == 0).then_some(old)
}

pub(super) fn close(fd: i64) {
    own(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0]);
}

/// A copy of a descriptor with this number, closed on `execve`.
fn copy_to(fd: i64, number: i32) -> Result<i32, Errno> {
    let args = [fd as u64, number as u64, libc::O_CLOEXEC as u64, 0, 0, 0];
    errno(own(libc::SYS_dup3, args)).map(|fd| fd as i32)
}

/// The same, with the next free number.
fn copy_from(fd: i64, number: i32) -> Result<i32, Errno> {
    let command = libc::F_DUPFD_CLOEXEC as u64;
    let args = [fd as u64, command, number as u64, 0, 0, 0];
    errno(own(libc::SYS_fcntl, args)).map(|fd| fd as i32)
}

//! Decisions about calls that the kernel decides again.
//!
//! A thread may have several: a signal handler that interrupts it between the answer and the call makes its own calls.
//! Each order lets one call pass, of the same architecture, with the same number and arguments: 11 is `munmap` in one
//! interface and `execve` in another.
//!
//! If a handler leaves by a jump, the interrupted call is never made, unnoticed. Its order stays until the thread makes
//! such a call, ends, or has too many orders. The effect is bounded: one call that was decided earlier passes later
//! without a new decision, and a thread keeps a few hundred bytes.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Mutex;

use tamis_abi::SeccompData;

use super::serve::lock;

/// The most orders of a thread.
const OF_THREAD: usize = 4;

/// A decision about the next call of a task.
#[derive(Debug)]
pub(crate) struct Order {
    pub(super) arch: u32,
    pub(super) nr: u32,
    pub(super) args: [u64; 6],
    /// The call that is made instead.
    pub(crate) replacement: Option<SeccompData>,
    /// The descriptor that is the answer to a call that isn't made.
    pub(crate) descriptor: Option<OwnedFd>,
}

/// The orders of all threads, from the oldest to the newest.
#[derive(Debug, Default)]
pub(super) struct Orders(Mutex<HashMap<i32, Vec<Order>>>);

impl Orders {
    pub(super) fn give(&self, tid: i32, order: Order) {
        let mut all = lock(&self.0);
        let orders = all.entry(tid).or_default();
        if orders.len() == OF_THREAD {
            orders.remove(0);
        }
        orders.push(order);
    }

    /// Removes and returns the newest order of a thread that matches a call.
    pub(super) fn take(&self, tid: i32, is_about: impl Fn(&Order) -> bool) -> Option<Order> {
        let mut all = lock(&self.0);
        let orders = all.get_mut(&tid)?;
        let index = orders.iter().rposition(is_about)?;
        let taken = orders.remove(index);
        if orders.is_empty() {
            all.remove(&tid);
        }
        Some(taken)
    }

    /// Removes the orders of a thread that has ended, or has executed another program.
    pub(super) fn left(&self, tid: i32) {
        lock(&self.0).remove(&tid);
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Arch;

    use super::{OF_THREAD, Order, Orders};

    fn order(nr: u32) -> Order {
        Order {
            arch: Arch::X86_64.audit(),
            nr,
            args: [0; 6],
            replacement: None,
            descriptor: None,
        }
    }

    fn takes(orders: &Orders, tid: i32, nr: u32) -> bool {
        orders.take(tid, |order| order.nr == nr).is_some()
    }

    #[test]
    fn an_interrupted_call_keeps_its_order() {
        let orders = Orders::default();
        orders.give(1, order(10));
        orders.give(1, order(11));
        assert!(!takes(&orders, 2, 10), "another thread's");
        assert!(takes(&orders, 1, 11));
        assert!(takes(&orders, 1, 10));
        assert!(!takes(&orders, 1, 10), "it counts once");
    }

    #[test]
    fn who_has_left_has_none() {
        let orders = Orders::default();
        orders.give(1, order(10));
        orders.left(1);
        assert!(!takes(&orders, 1, 10));
    }

    #[test]
    fn the_oldest_of_too_many_is_dropped() {
        let orders = Orders::default();
        let last = OF_THREAD as u32;
        for nr in 0..=last {
            orders.give(1, order(nr));
        }
        assert!(!takes(&orders, 1, 0));
        assert!((1..=last).all(|nr| takes(&orders, 1, nr)));
    }
}

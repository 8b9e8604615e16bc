//! Values that are made at first use and kept, without waiting for other threads.
//!
//! A thread that waits for a value which another one is making waits for ever in a child that was forked meanwhile: the
//! other thread doesn't exist there. Here nobody waits. Who finds the place in use for longer than a look takes makes a
//! value of its own.

use std::hint;
use std::sync::{Mutex, TryLockError};

/// How often the place is tried: a look takes far less.
const TRIES: usize = 1 << 10;

/// The place of a value. What is put there is never freed.
pub(crate) struct Kept<T: 'static>(Mutex<Option<&'static T>>);

impl<T: Sync> Kept<T> {
    /// An empty place.
    pub(crate) const fn new() -> Kept<T> {
        Kept(Mutex::new(None))
    }

    /// The value, made if there is none.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> &'static T {
        if let Some(value) = self.look(|place| *place).flatten() {
            return value;
        }
        let made: &'static T = Box::leak(Box::new(make()));
        self.look(|place| *place.get_or_insert(made))
            .unwrap_or(made)
    }

    fn look<R>(&self, at: impl FnOnce(&mut Option<&'static T>) -> R) -> Option<R> {
        for _ in 0..TRIES {
            match self.0.try_lock() {
                Ok(mut place) => return Some(at(&mut place)),
                Err(TryLockError::Poisoned(place)) => return Some(at(&mut place.into_inner())),
                Err(TryLockError::WouldBlock) => hint::spin_loop(),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_and_nobody_waits_for_it() {
        static PLACE: Kept<u32> = Kept::new();
        let first = PLACE.get_or_make(|| 1);
        assert!(std::ptr::eq(first, PLACE.get_or_make(|| 2)));
        // As in a child that was forked while another thread held the place.
        let _held = PLACE.0.lock().unwrap();
        assert_eq!(*PLACE.get_or_make(|| 3), 3);
    }
}

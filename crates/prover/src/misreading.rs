//! Deliberate misreadings of programs, for tests: does anything wrong leave when the prover is wrong?
//!
//! A test picks a [`Misreading`] and one of the two [`Reading`]s that the prover has, and runs something
//! inside [`with`]; in the meantime that reading, on that thread, takes instructions or stacks for
//! something else. Most misreadings put one instruction in place of another where an engine fetches it;
//! the rest are asked for where an engine shifts, divides, compares or combines filters.
//!
//! There is nothing of this in a program that is released: the hooks are identities unless the feature
//! `misreadings` is on, which only the test support enables, *and* debug assertions are.

#[cfg(not(all(feature = "misreadings", debug_assertions)))]
pub(crate) use disabled::{has, op};
#[cfg(all(feature = "misreadings", debug_assertions))]
pub use enabled::with;
#[cfg(all(feature = "misreadings", debug_assertions))]
pub(crate) use enabled::{has, op};

use tamis_bpf::Op;

/// One of the two ways in which the prover gives programs a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As decision diagrams.
    Diagrams,
    /// As gates.
    Gates,
}

/// A way to misunderstand programs or stacks.
#[derive(Clone, Copy, Debug)]
pub enum Misreading {
    /// Each instruction is taken for another, or for itself.
    Op(fn(Op) -> Op),
    /// Something else is misunderstood.
    Rule(Rule),
}

/// A rule of the machine, or of stacks, that a reading may get wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Shifts by 32 and more give 0 instead of using five bits of the distance.
    ShiftDistance,
    /// A division by X = 0 goes on with some quotient instead of ending the program.
    DivisionByZero,
    /// Comparisons are of signed numbers.
    Signedness,
    /// Actions of filters are ordered as unsigned numbers.
    StackOrder,
    /// Of equal actions the oldest filter's data is kept, not the newest's.
    StackTies,
    /// Data counts when actions of filters are ordered.
    StackData,
    /// `ALLOW` of a stack keeps its data.
    StackAllow,
}

#[cfg(not(all(feature = "misreadings", debug_assertions)))]
mod disabled {
    use super::{Op, Reading, Rule};

    #[inline(always)]
    pub(crate) fn op(_: Reading, op: Op) -> Op {
        op
    }

    #[inline(always)]
    pub(crate) fn has(_: Reading, _: Rule) -> bool {
        false
    }
}

#[cfg(all(feature = "misreadings", debug_assertions))]
mod enabled {
    use std::cell::Cell;

    use super::{Misreading, Op, Reading, Rule};

    thread_local! {
        static CURRENT: Cell<Option<(Reading, Misreading)>> = const { Cell::new(None) };
    }

    /// Ends the misreading also if what runs inside panics.
    struct Restore(Option<(Reading, Misreading)>);

    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }

    /// Runs something while one of the readings on this thread misreads.
    pub fn with<T>(reading: Reading, misreading: Misreading, body: impl FnOnce() -> T) -> T {
        let _restore = Restore(CURRENT.replace(Some((reading, misreading))));
        body()
    }

    /// The instruction that a reading takes this one for.
    pub(crate) fn op(reading: Reading, op: Op) -> Op {
        match CURRENT.get() {
            Some((of, Misreading::Op(map))) if of == reading => map(op),
            _ => op,
        }
    }

    /// Whether a reading gets a rule wrong.
    pub(crate) fn has(reading: Reading, rule: Rule) -> bool {
        match CURRENT.get() {
            Some((of, Misreading::Rule(wrong))) => of == reading && wrong == rule,
            _ => false,
        }
    }
}

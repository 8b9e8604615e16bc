//! Deliberate misreadings of programs, to test that no wrong result is returned if the prover is wrong.
//!
//! A test selects a [`Misreading`] and one of the prover's two [`Reading`]s, and runs code inside `with`;
//! meanwhile this reading, on this thread, misinterprets instructions or stacks. Most misreadings replace an
//! instruction when an engine fetches it; the rest are hooks in shifts, divisions, comparisons or the combination
//! of filters.
//!
//! None of this is in released programs: the hooks are identities unless the feature `misreadings`, which only the
//! test support enables, *and* debug assertions are on.

#[cfg(not(all(feature = "misreadings", debug_assertions)))]
pub(crate) use disabled::{has, op};
#[cfg(all(feature = "misreadings", debug_assertions))]
pub use enabled::with;
#[cfg(all(feature = "misreadings", debug_assertions))]
pub(crate) use enabled::{has, op};

use tamis_bpf::Op;

/// One of the prover's two translations of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As decision diagrams.
    Diagrams,
    /// As gates.
    Gates,
}

/// A misinterpretation of programs or stacks.
#[derive(Clone, Copy, Debug)]
pub enum Misreading {
    /// Each instruction is replaced by another, or by itself.
    Op(fn(Op) -> Op),
    /// A rule is misinterpreted.
    Rule(Rule),
}

/// A rule of the machine, or of stacks, that a reading may get wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Shifts by 32 and more give 0 instead of using five bits of the distance.
    ShiftDistance,
    /// A division by X = 0 continues with some quotient instead of ending the program.
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

    /// Ends the misreading even if the code inside panics.
    struct Restore(Option<(Reading, Misreading)>);

    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }

    /// Runs code while one of the readings on this thread misreads.
    pub fn with<T>(reading: Reading, misreading: Misreading, body: impl FnOnce() -> T) -> T {
        let _restore = Restore(CURRENT.replace(Some((reading, misreading))));
        body()
    }

    /// The instruction as interpreted by a reading.
    pub(crate) fn op(reading: Reading, op: Op) -> Op {
        match CURRENT.get() {
            Some((of, Misreading::Op(map))) if of == reading => map(op),
            _ => op,
        }
    }

    /// Whether a reading misinterprets a rule.
    pub(crate) fn has(reading: Reading, rule: Rule) -> bool {
        match CURRENT.get() {
            Some((of, Misreading::Rule(wrong))) => of == reading && wrong == rule,
            _ => false,
        }
    }
}

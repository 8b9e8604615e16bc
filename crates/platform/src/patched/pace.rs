//! How long one side waits for the other before it sleeps.
//!
//! A side that spins gets an answer in the time of a system call if the other runs on another CPU, and keeps the other
//! from running if it shares the CPU. There a side lets others run instead, which costs less than to sleep and be woken.
//!
//! A side that spins pauses between its looks: without that it takes the line of memory away from the other while that is writing there,
//! and a call takes longer (2.6 instead of 2.4 times native).
//!
//! Neither of the two is worth its time if what is waited for comes late: after a few waits in vain a side sleeps at once, and
//! tries again only now and then.

use crate::spin::Spin;

/// Rounds of spinning that take about as long as to wake a thread on another CPU, some 20 microseconds.
const MANY: u32 = 1000;
/// How often a side lets others run. Where the scheduler doesn't run the other side then, more wouldn't help.
const FEW: u32 = 2;
/// Waits in vain after which a side gives up.
const PATIENCE: u32 = 4;
/// Waits after which it tries again.
const PAUSE: u32 = 64;

/// The pace of one side's waiting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    spins: u32,
    yields: u32,
    is_adaptive: bool,
    /// Waits in vain, one after another.
    in_vain: u32,
    /// Waits until the next attempt, while there is none.
    pause: u32,
}

impl Pace {
    /// The pace of a policy, for two sides that share a CPU or not, and may let others run or not.
    pub(crate) const fn new(spin: Spin, shares_cpu: bool, may_yield: bool) -> Pace {
        let few = if may_yield { FEW } else { 0 };
        let (spins, yields, is_adaptive) = match (spin, shares_cpu) {
            (Spin::Never, _) => (0, 0, false),
            (Spin::Bounded(rounds), _) => (rounds, 0, false),
            (Spin::Adaptive, true) => (0, few, true),
            (Spin::Adaptive, false) => (MANY, 0, true),
        };
        Pace {
            spins,
            yields,
            is_adaptive,
            in_vain: 0,
            pause: 0,
        }
    }

    /// Rounds to spin.
    pub(crate) const fn spins(&self) -> u32 {
        if self.pause == 0 { self.spins } else { 0 }
    }

    /// How often to let others run, after that.
    pub(crate) const fn yields(&self) -> u32 {
        if self.pause == 0 { self.yields } else { 0 }
    }

    /// A wait has ended, and what was waited for came before the side slept, or not.
    pub(crate) const fn waited(&mut self, has_come: bool) {
        if !self.is_adaptive {
            return;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return;
        }
        self.in_vain = if has_come { 0 } else { self.in_vain + 1 };
        if self.in_vain >= PATIENCE {
            // One more wait in vain is enough after the pause.
            self.in_vain = PATIENCE - 1;
            self.pause = PAUSE;
        }
    }
}

//! The time that one side waits for the other before it sleeps.
//!
//! A side that spins gets an answer in the time of a system call if the other side runs on another CPU; on a shared CPU
//! it prevents the other side from running. There a side yields instead, which costs less than sleeping and being
//! woken.
//!
//! A side that spins pauses between its reads: without pauses it takes the cache line away from the other side while
//! that writes it, and a call takes longer (2.6 instead of 2.4 times native).
//!
//! Spinning and yielding are wasted if the answer comes late: after a few waits in vain a side sleeps at once, and
//! spins or yields again only now and then.

use crate::spin::Spin;

/// Rounds of spinning that take about as long as waking a thread on another CPU, some 20 microseconds.
const MANY: u32 = 1000;
/// The number of yields. If the scheduler doesn't run the other side then, more yields wouldn't help.
const FEW: u32 = 2;
/// Waits in vain until a side gives up.
const PATIENCE: u32 = 4;
/// Waits until it spins again.
const PAUSE: u32 = 64;

/// The pace of one side's waiting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    spins: u32,
    yields: u32,
    is_adaptive: bool,
    /// Consecutive waits in vain.
    in_vain: u32,
    /// Remaining waits of a pause.
    pause: u32,
}

impl Pace {
    /// The pace of a policy, for two sides that may share a CPU, and may yield.
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

    /// The number of yields after spinning.
    pub(crate) const fn yields(&self) -> u32 {
        if self.pause == 0 { self.yields } else { 0 }
    }

    /// Notes the end of a wait, and whether the event came before the side slept.
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

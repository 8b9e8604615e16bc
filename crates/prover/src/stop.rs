//! Cancellation of a search by the caller.
//!
//! The prover reads no clock: its own limits count work, so that its answers are the same on every machine. A
//! caller with a deadline passes a function, which is called every few thousand steps.

use std::fmt;
use std::sync::Arc;

use crate::diagram::LimitReached;

/// Cancellation by the caller; by default never.
#[derive(Clone, Default)]
pub struct Stop(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Stop {
    /// Cancels some milliseconds after the function returns true.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use tamis_prover::{LimitReached, Limits, Space, Stop};
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// let space = Space::stoppable(Limits::default(), Stop::when(move || Instant::now() > deadline));
    /// ```
    pub fn when(is_enough: impl Fn() -> bool + Send + Sync + 'static) -> Stop {
        Stop(Some(Arc::new(is_enough)))
    }

    /// Whether the caller has cancelled.
    pub fn is_asked_for(&self) -> bool {
        self.0.as_ref().is_some_and(|is_enough| is_enough())
    }

    /// An error if the caller has cancelled.
    pub(crate) fn check(&self) -> Result<(), LimitReached> {
        if self.is_asked_for() {
            return Err(LimitReached::Stopped);
        }
        Ok(())
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Stop::when(..)"
        } else {
            "Stop::default()"
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tamis_abi::Endian;
    use tamis_bpf::{AluOp, Insn, Op, Operand, Program};

    use super::*;
    use crate::{Limits, Scope, Space, Subject, prove_by_gates};

    /// The product of three words, in this order.
    fn product(offsets: [u32; 3]) -> Program {
        let times_x = Op::Alu(AluOp::Mul, Operand::X);
        let [a, b, c] = offsets.map(Op::LoadData);
        let ops = [a, Op::Tax, b, times_x, Op::Tax, c, times_x, Op::RetA];
        Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap()
    }

    fn after_asking(times: u32) -> Stop {
        let asked = AtomicU32::new(0);
        Stop::when(move || asked.fetch_add(1, Ordering::Relaxed) >= times)
    }

    #[test]
    fn diagrams_circuits_and_solver_stop() {
        let programs = [product([16, 24, 32]), product([24, 32, 16])];
        let mut space = Space::stoppable(Limits::default(), after_asking(3));
        let function = space.program(&programs[0]);
        assert_eq!(function, Err(LimitReached::Stopped));
        assert!(space.len_nodes() < 100_000);

        let [left, right] = programs.each_ref().map(Subject::Program);
        // The circuit makes a handful of checks, the solver the rest.
        for times in [1, 30] {
            let (scope, limits) = (Scope::default(), Limits::default());
            let report = prove_by_gates(&left, &right, &scope, &limits, &after_asking(times));
            assert_eq!(report.result, Err(LimitReached::Stopped), "{times}");
        }
    }
}

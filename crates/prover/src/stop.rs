//! Cancellation of a search by the caller.
//!
//! The prover reads no clock: its own limits count work, so that its answers are the same on every machine. A
//! caller with a deadline passes a function, which is called every few thousand steps.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::diagram::LimitReached;

/// The end of a search that its caller determines: a deadline or the like, and a limit of memory; by default neither.
/// Clones share both.
#[derive(Clone, Default)]
pub struct Stop {
    is_enough: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    memory: Option<Arc<Memory>>,
}

/// Memory that searches share.
#[derive(Debug)]
struct Memory {
    max_bytes: usize,
    used_bytes: AtomicUsize,
}

/// The memory that one table accounts for; given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Share {
    memory: Option<Arc<Memory>>,
    bytes: usize,
}

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
        Stop {
            is_enough: Some(Arc::new(is_enough)),
            memory: None,
        }
    }

    /// The same with a limit of the memory of diagrams, gates and the solver, of all searches together that share it.
    /// It is an estimate from the sizes of their tables.
    ///
    /// ```
    /// use tamis_abi::Endian;
    /// use tamis_bpf::{Op, Program};
    /// use tamis_prover::{LimitReached, Limits, Space, Stop};
    /// let word = [Op::LoadData(16), Op::RetA].map(Into::into).to_vec();
    /// let word = Program::new(word, Endian::Little).unwrap();
    /// let mut space = Space::stoppable(Limits::default(), Stop::default().with_memory(1 << 20));
    /// assert_eq!(space.program(&word), Err(LimitReached::Memory));
    /// ```
    #[must_use]
    pub fn with_memory(self, max_bytes: usize) -> Stop {
        Stop {
            memory: Some(Arc::new(Memory {
                max_bytes,
                used_bytes: AtomicUsize::new(0),
            })),
            ..self
        }
    }

    /// Whether the caller has cancelled.
    pub fn is_asked_for(&self) -> bool {
        self.is_enough.as_ref().is_some_and(|is_enough| is_enough())
    }

    /// A share of the memory, empty as yet.
    pub(crate) fn share(&self) -> Share {
        Share {
            memory: self.memory.clone(),
            bytes: 0,
        }
    }

    /// An error if the caller has cancelled.
    pub(crate) fn check(&self) -> Result<(), LimitReached> {
        if self.is_asked_for() {
            return Err(LimitReached::Stopped);
        }
        Ok(())
    }
}

impl Share {
    /// Accounts for this many bytes from now on, in place of those before.
    ///
    /// # Errors
    /// If this is more than there is.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), LimitReached> {
        let Some(memory) = &self.memory else {
            return Ok(());
        };
        let more = bytes.saturating_sub(self.bytes);
        let before = memory.used_bytes.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) > memory.max_bytes && more > 0 {
            memory.used_bytes.fetch_sub(more, Ordering::Relaxed);
            return Err(LimitReached::Memory);
        }
        let fewer = self.bytes.saturating_sub(bytes);
        memory.used_bytes.fetch_sub(fewer, Ordering::Relaxed);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(memory) = &self.memory {
            memory.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_enough.is_some() {
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
        for times in [1, 10] {
            let (scope, limits) = (Scope::default(), Limits::default());
            let report = prove_by_gates(&left, &right, &scope, &limits, &after_asking(times));
            assert_eq!(report.result, Err(LimitReached::Stopped), "{times}");
        }
    }
}

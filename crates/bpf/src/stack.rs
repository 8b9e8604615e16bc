//! Several filters on one task.
//!
//! Filters are never replaced, only added, and all of them run for every system call. The most restrictive action
//! wins; of equal actions that of the newest filter, because the kernel runs the newest first and replaces a result
//! only by a stricter one (`seccomp_run_filters` in `kernel/seccomp.c`).

use std::error;
use std::fmt;

use tamis_abi::{Action, Endian, SeccompData};

use crate::cache;
use crate::ebpf_len::kernel_len_insns;
use crate::interp;
use crate::program::Program;

/// The kernel's initial value: the result if no filter is stricter.
pub const NO_FILTER: u32 = Action::ALLOW.ret();

/// The index of the winning return value of a stack's filters, given from the oldest to the newest; `None` if none
/// is stricter than [`NO_FILTER`].
pub fn winner(oldest_first: &[u32]) -> Option<usize> {
    let mut kept = (NO_FILTER, None);
    for (index, ret) in oldest_first.iter().enumerate().rev() {
        if Action::precedence(*ret) < Action::precedence(kept.0) {
            kept = (*ret, Some(index));
        }
    }
    kept.1
}

/// The result of newer filters and an older one: the stricter action, of equal ones the newer.
#[inline]
pub fn stricter(newer: u32, older: u32) -> u32 {
    if Action::precedence(older) < Action::precedence(newer) {
        older
    } else {
        newer
    }
}

/// The filters of one task, all for machines of one byte order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    programs: Vec<Program>,
}

/// Programs for machines of different byte orders, which one task can't have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixedEndian {
    /// The first one whose byte order differs from the earlier ones, counted from the oldest.
    pub filter: usize,
}

impl fmt::Display for MixedEndian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MixedEndian { filter } = self;
        write!(
            f,
            "filter {filter} is for machines of another byte order than the filters before it"
        )
    }
}

impl error::Error for MixedEndian {}

/// The result of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackRun {
    /// The winning return value; `ALLOW` without data if no filter was stricter.
    pub ret: u32,
    /// The index of its filter, counted from the oldest; `None` if nothing was stricter than `ALLOW`.
    pub decided_by: Option<usize>,
    /// The total count of executed instructions.
    pub steps: u32,
}

impl Stack {
    /// The most instructions that the kernel accepts on one task, `MAX_INSNS_PER_PATH`, as counted by
    /// [`charge_insns`](Self::charge_insns).
    pub const MAX_KERNEL_INSNS: usize = 32768;

    /// The addition to the length of each existing filter.
    const PENALTY_INSNS: usize = 4;

    /// A stack of these programs, the oldest first.
    ///
    /// # Errors
    /// If they have different byte orders.
    pub fn new(programs: Vec<Program>) -> Result<Stack, MixedEndian> {
        let mut stack = Stack::default();
        programs
            .into_iter()
            .try_for_each(|program| stack.push(program))?;
        Ok(stack)
    }

    /// Adds a filter, which becomes the newest.
    ///
    /// # Errors
    /// If its byte order differs from the others.
    pub fn push(&mut self, program: Program) -> Result<(), MixedEndian> {
        if self
            .endian()
            .is_some_and(|endian| endian != program.endian())
        {
            let filter = self.programs.len();
            return Err(MixedEndian { filter });
        }
        self.programs.push(program);
        Ok(())
    }

    /// The programs, the oldest first.
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// The byte order of their machines; `None` if there are none.
    pub fn endian(&self) -> Option<Endian> {
        self.programs.first().map(Program::endian)
    }

    /// Evaluates every filter on a call.
    pub fn run(&self, call: &SeccompData) -> StackRun {
        let runs: Vec<interp::Execution> = self
            .programs
            .iter()
            .map(|program| interp::run(program, call))
            .collect();
        let rets: Vec<u32> = runs.iter().map(|run| run.ret).collect();
        let decided_by = winner(&rets);
        StackRun {
            ret: decided_by.map_or(NO_FILTER, |index| rets[index]),
            decided_by,
            steps: runs.iter().map(|run| run.steps).sum(),
        }
    }

    /// Whether the kernel runs no filter for this number of this architecture, provided that it has a bitmap for
    /// it: see [`cache`].
    pub fn is_cacheable(&self, audit_arch: u32, nr: u32) -> bool {
        self.programs
            .iter()
            .all(|program| cache::is_cacheable(program, audit_arch, nr))
    }

    /// The kernel's count when the newest filter is installed: the converted length of every filter, and four for
    /// each earlier one. 0 if there are none.
    pub fn charge_insns(&self) -> usize {
        let lengths: usize = self.programs.iter().map(kernel_len_insns).sum();
        lengths + Stack::PENALTY_INSNS * self.programs.len().saturating_sub(1)
    }

    /// Whether the kernel accepts all of them, one after the other, on one task.
    pub fn is_installable(&self) -> bool {
        self.programs.iter().all(Program::is_installable)
            && self.charge_insns() <= Stack::MAX_KERNEL_INSNS
    }
}

impl From<Program> for Stack {
    fn from(program: Program) -> Stack {
        Stack {
            programs: vec![program],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insn::Op;

    fn ret_on(value: u32, endian: Endian) -> Program {
        Program::new(vec![Op::RetImm(value).into()], endian).unwrap()
    }

    fn ret(value: u32) -> Program {
        ret_on(value, Endian::Little)
    }

    fn answer(rets: &[u32]) -> (u32, Option<usize>) {
        let stack = Stack::new(rets.iter().copied().map(ret).collect()).unwrap();
        let run = stack.run(&SeccompData::default());
        assert_eq!(run.steps as usize, rets.len());
        (run.ret, run.decided_by)
    }

    #[test]
    fn the_stricter_action_wins_wherever_it_stands() {
        assert_eq!(answer(&[0x0005_0001, 0x7ff0_0000]), (0x0005_0001, Some(0)));
        assert_eq!(answer(&[0x7ff0_0000, 0x0005_0001]), (0x0005_0001, Some(1)));
        assert_eq!(answer(&[0, 0x8000_0000]), (0x8000_0000, Some(1)));
    }

    #[test]
    fn of_equal_actions_the_newest_filters_data_wins() {
        assert_eq!(answer(&[0x0005_0001, 0x0005_0002]), (0x0005_0002, Some(1)));
    }

    #[test]
    fn allow_loses_its_data() {
        assert_eq!(answer(&[0x7fff_0009]), (0x7fff_0000, None));
        assert_eq!(answer(&[]), (0x7fff_0000, None));
    }

    #[test]
    fn the_smallest_filter_fits_3641_times() {
        let stack = |count| Stack::new(vec![ret(0); count]).unwrap();
        assert!(stack(3641).is_installable());
        assert!(!stack(3642).is_installable());
    }

    #[test]
    fn one_machine_has_one_byte_order() {
        let [little, big] = [Endian::Little, Endian::Big].map(|endian| ret_on(0, endian));
        let mixed = Stack::new(vec![big.clone(), big.clone(), little]);
        assert_eq!(mixed, Err(MixedEndian { filter: 2 }));
        assert_eq!(Stack::from(big).endian(), Some(Endian::Big));
        assert_eq!(Stack::default().endian(), None);
    }
}

//! A stack of seccomp filters, prepared to answer many calls.

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::{Stack, stack};

use crate::cache::{Residual, Table};
use crate::threaded::{Seccomp, Threaded, TooLong};

/// A stack of filters on the threaded interpreter, with or without a table of the answers that architecture and number
/// decide.
///
/// ```
/// use tamis_abi::{Action, Arch, Endian, SeccompData};
/// use tamis_bpf::{Op, Program, Stack, Test};
/// use tamis_vm::Evaluator;
/// let (allow, deny) = (Action::ALLOW.ret(), Action::errno(1).ret());
/// let getpid = Op::branch(Test::Eq, 39, 0, 1);
/// let ops = [Op::LoadData(0), getpid, Op::RetImm(deny), Op::RetImm(allow)];
/// let program = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
/// let evaluator = Evaluator::new(&Stack::from(program)).unwrap();
/// let call = SeccompData { nr: 39, arch: Arch::X86_64.audit(), ..SeccompData::default() };
/// assert_eq!(evaluator.run(&call), deny);
/// ```
#[derive(Debug)]
pub struct Evaluator {
    /// The oldest first.
    filters: Vec<Threaded<Seccomp>>,
    table: Option<Table>,
    endian: Endian,
}

impl Evaluator {
    /// Prepares a stack without a table, for a few calls, or where the table's memory isn't wanted.
    ///
    /// # Errors
    /// If a program is longer than the kernel permits.
    pub fn new(stack: &Stack) -> Result<Evaluator, TooLong> {
        let filters: Result<Vec<_>, TooLong> =
            stack.programs().iter().map(Threaded::seccomp).collect();
        Ok(Evaluator {
            filters: filters?,
            table: None,
            endian: stack.endian().unwrap_or(Endian::Little),
        })
    }

    /// Prepares a stack with a table, for many calls.
    ///
    /// # Errors
    /// As for [`Evaluator::new`].
    pub fn cached(stack: &Stack) -> Result<Evaluator, TooLong> {
        let table = Some(Table::new(stack));
        Ok(Evaluator {
            table,
            ..Evaluator::new(stack)?
        })
    }

    /// The table of answers that the architecture and the number decide, if there is one.
    pub const fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// The stack's answer to a call: the strictest of its filters' actions, of equal ones the newest filter's.
    pub fn run(&self, call: &SeccompData) -> u32 {
        self.run_image(&call.image(self.endian))
    }

    /// The stack's answer to a call, given the sixteen words that a machine of the filters' byte order has in memory.
    pub fn run_image(&self, image: &[u32; 16]) -> u32 {
        let [nr, audit, ..] = *image;
        let Some(table) = &self.table else {
            let rets = self.filters.iter().rev().map(|filter| filter.run(image));
            return rets.fold(stack::NO_FILTER, stack::stricter);
        };
        table.answer(audit, nr, |residual| {
            let Residual { filter, pc, state } = table.residuals()[residual as usize];
            self.filters[filter].run_from(pc, state, image)
        })
    }
}

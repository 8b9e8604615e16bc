//! Evaluators of stacks of seccomp filters.

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::{Program, Stack, interp, stack};
use tamis_jit::Entry;
use tamis_vm::cache::{Plan, Residual, Table};
use tamis_vm::threaded::{self, Threaded};

use crate::choice::{Choice, Engine, choose};
use crate::{Error, Options};

/// A stack of filters, prepared to answer many calls.
///
/// ```
/// use tamis_abi::{Action, Arch, Endian, SeccompData};
/// use tamis_bpf::{Op, Program, Stack, Test};
/// use tamis_engine::{Evaluator, Options};
/// let (allow, deny) = (Action::ALLOW.ret(), Action::errno(1).ret());
/// let getpid = Op::branch(Test::Eq, 39, 0, 1);
/// let ops = [Op::LoadData(0), getpid, Op::RetImm(deny), Op::RetImm(allow)];
/// let program = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
/// let evaluator = Evaluator::new(&Stack::from(program), &Options::default()).unwrap();
/// let call = SeccompData { nr: 39, arch: Arch::X86_64.audit(), ..SeccompData::default() };
/// assert_eq!(evaluator.run(&call), deny);
/// println!("runs on {}", evaluator.choice());
/// ```
#[derive(Debug)]
pub struct Evaluator {
    filters: Filters,
    table: Option<Table>,
    endian: Endian,
    choice: Choice,
}

/// The filters, the oldest first.
#[derive(Debug)]
enum Filters {
    Reference(Vec<Program>),
    Threaded(Vec<Threaded<threaded::Seccomp>>),
    /// With an entry for each residual of the table.
    Jit(tamis_jit::Filters),
}

impl Evaluator {
    /// Prepares a stack.
    ///
    /// # Errors
    /// If a program is too long, or the requested engine isn't available.
    pub fn new(stack: &Stack, options: &Options) -> Result<Evaluator, Error> {
        let programs = stack.programs();
        if let Some(filter) = programs.iter().position(|one| !one.is_installable()) {
            let len_insns = programs[filter].len();
            return Err(Error::TooLong { filter, len_insns });
        }
        let table = options.is_cached.then(|| Table::new(stack));
        let residuals = table.as_ref().map_or(&[][..], Table::residuals);
        let compile = || compile(programs, residuals, options);
        let (choice, compiled) = choose(options.engine, options.evaluations, compile)?;
        let filters = match (choice.engine, compiled) {
            (_, Some(filters)) => Filters::Jit(filters),
            (Engine::Reference, None) => Filters::Reference(programs.to_vec()),
            (_, None) => Filters::Threaded(threaded(programs)?),
        };
        // The reference interpreter judges tables, and so runs without one.
        let is_judge = choice.engine == Engine::Reference;
        Ok(Evaluator {
            filters,
            table: table.filter(|_| !is_judge),
            endian: stack.endian().unwrap_or(Endian::Little),
            choice,
        })
    }

    /// The engine, and the reason for its choice.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The table of answers that the architecture and the number decide, if there is one.
    pub fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// The stack's answer to a call: the strictest of its filters' actions, of equal ones the newest filter's.
    pub fn run(&self, call: &SeccompData) -> u32 {
        self.run_image(&call.image(self.endian))
    }

    /// The stack's answer to a call, given the sixteen words that a machine of the filters' byte order has in memory.
    #[inline]
    pub fn run_image(&self, image: &[u32; 16]) -> u32 {
        let Some(table) = &self.table else {
            return self.run_all(image);
        };
        let [nr, audit, ..] = *image;
        match (table.plan(audit, nr), &self.filters) {
            (Plan::Answer(ret), _) => ret,
            (Plan::Residual(residual), Filters::Jit(filters)) => {
                let ret = filters.run_entry(residual as usize, image);
                stack::stricter(stack::NO_FILTER, ret)
            }
            (plan, _) => self.run_residuals(table, plan, image),
        }
    }

    /// The action for a call that a plan leaves to the filters. A separate function keeps the inlined part short.
    #[inline(never)]
    fn run_residuals(&self, table: &Table, plan: Plan, image: &[u32; 16]) -> u32 {
        match &self.filters {
            Filters::Jit(filters) => {
                table.carry_out(plan, |residual| filters.run_entry(residual as usize, image))
            }
            Filters::Threaded(filters) => table.carry_out(plan, |residual| {
                let Residual { filter, pc, state } = table.residuals()[residual as usize];
                filters[filter].run_from(pc, state, image)
            }),
            // It has no table.
            Filters::Reference(_) => self.run_all(image),
        }
    }

    /// The answer of all filters, each from its first instruction.
    #[inline(never)]
    fn run_all(&self, image: &[u32; 16]) -> u32 {
        match &self.filters {
            Filters::Reference(programs) => strictest(
                programs
                    .iter()
                    .map(|program| interp::run_image(program, image).ret),
            ),
            Filters::Threaded(filters) => strictest(filters.iter().map(|filter| filter.run(image))),
            Filters::Jit(filters) => strictest(filters.run_each(image)),
        }
    }
}

/// The strictest of the values of filters, given from the oldest to the newest.
#[inline]
fn strictest(rets: impl DoubleEndedIterator<Item = u32>) -> u32 {
    rets.rev().fold(stack::NO_FILTER, stack::stricter)
}

fn threaded(programs: &[Program]) -> Result<Vec<Threaded<threaded::Seccomp>>, Error> {
    let prepare = |(filter, program): (usize, &Program)| {
        let too_long = |error: threaded::TooLong| Error::TooLong {
            filter,
            len_insns: error.len_insns,
        };
        Threaded::seccomp(program).map_err(too_long)
    };
    programs.iter().enumerate().map(prepare).collect()
}

fn compile(
    programs: &[Program],
    residuals: &[Residual],
    options: &Options,
) -> Result<tamis_jit::Filters, tamis_jit::Error> {
    let entry = |Residual { filter, pc, state }: &Residual| {
        let entry = Entry {
            pc: *pc,
            a: state.a,
            x: state.x,
            memory: state.memory,
        };
        (*filter, entry)
    };
    let entries: Vec<(usize, Entry)> = residuals.iter().map(entry).collect();
    let harden = options.harden;
    tamis_jit::Filters::compile(programs, &entries, &tamis_jit::Options { harden })
}

//! Deliberate errors in programs, each with a name: possible bugs of a compiler or an optimiser of filters.
//!
//! A sabotage changes a program at one place, if there is something to change; a stack sabotage changes the set of
//! filters and their order. Most results return another action for some input, and the prover must find such an
//! input. [`sample`] is a program on which every sabotage has an effect.

mod arithmetic;
mod branches;
mod dataflow;
mod returns;
mod values;

use tamis_abi::Endian;
use tamis_bpf::{AluOp, Insn, Op, Operand, Pc, Program, asm};

/// A deliberate error in a program.
#[derive(Clone, Copy)]
pub struct Sabotage {
    /// The name of the error, in kebab-case.
    pub name: &'static str,
    /// The program with the error at an instruction; `None` if it does not apply there.
    change: fn(&[Op], usize) -> Option<Vec<Op>>,
}

/// A deliberate error in a stack.
#[derive(Clone, Copy)]
pub struct StackSabotage {
    /// The name of the error, in kebab-case.
    pub name: &'static str,
    /// The stack with the error; both have the oldest filter first.
    pub change: fn(&[Program]) -> Vec<Program>,
}

/// All errors in programs.
pub fn all() -> Vec<Sabotage> {
    [
        &branches::ALL[..],
        &values::ALL,
        &arithmetic::ALL,
        &dataflow::ALL,
        &returns::ALL,
    ]
    .concat()
}

/// All errors in stacks.
pub const STACKS: [StackSabotage; 4] = [
    StackSabotage {
        name: "stack-in-reverse-order",
        change: |stack| stack.iter().rev().cloned().collect(),
    },
    StackSabotage {
        name: "newest-filter-dropped",
        change: |stack| stack[..stack.len() - 1].to_vec(),
    },
    StackSabotage {
        name: "oldest-filter-dropped",
        change: |stack| stack[1..].to_vec(),
    },
    StackSabotage {
        name: "newest-filter-decides-alone",
        change: |stack| stack[stack.len() - 1..].to_vec(),
    },
];

impl Sabotage {
    /// The programs that differ from a given one by this error, with the place of each.
    pub fn results(&self, program: &Program) -> Vec<(Pc, Program)> {
        let ops: Vec<Op> = program.ops().collect();
        let changed = |pc| {
            let insns: Vec<Insn> = (self.change)(&ops, pc)?
                .into_iter()
                .map(Insn::from)
                .collect();
            let changed = Program::new(insns, Endian::Little).ok()?;
            (changed != *program).then_some((Pc(pc), changed))
        };
        (0..ops.len()).filter_map(changed).collect()
    }
}

/// The program with another instruction at `pc`.
fn with(ops: &[Op], pc: usize, op: Op) -> Option<Vec<Op>> {
    let mut changed = ops.to_vec();
    changed[pc] = op;
    Some(changed)
}

/// The program with one more instruction before that at `pc`; jumps keep their targets, except that those to `pc`
/// lead to the new one.
fn with_inserted(ops: &[Op], pc: usize, op: Op) -> Option<Vec<Op>> {
    let mut changed = ops.to_vec();
    for (at, op) in changed.iter_mut().enumerate().take(pc) {
        let longer = |skip: u32| skip + u32::from(at + 1 + skip as usize > pc);
        match op {
            Op::Jump(skip) => *skip = longer(*skip),
            Op::Branch { jt, jf, .. } => {
                *jt = u8::try_from(longer(u32::from(*jt))).ok()?;
                *jf = u8::try_from(longer(u32::from(*jf))).ok()?;
            }
            _ => {}
        }
    }
    changed.insert(pc, op);
    Some(changed)
}

/// An instruction without effect, in place of a removed one.
const NOTHING: Op = Op::Alu(AluOp::Or, Operand::K(0));

/// A filter for x86_64 that uses every feature of the machine.
///
/// ```
/// let program = tamis_testkit::sabotage::sample();
/// assert!(program.is_installable());
/// ```
///
/// # Panics
/// Never: the text is a program.
pub fn sample() -> Program {
    let text = include_str!("sabotage/sample.bpfasm");
    let source = tamis_diag::Sources::new().add("sample.bpfasm", text.to_owned());
    let assembly = asm::assemble(text, source, Endian::Little).expect("the sample assembles");
    assembly.into_program().expect("the sample is a program")
}

//! A program as gates: all of its paths at once.
//!
//! Jumps only go forward, so one sweep is sufficient. At each instruction the paths to it are merged: the contents
//! of the machine are selected bit by bit by the path taken. The size is proportional to the length of the program
//! and independent of the number of paths.

use std::convert::Infallible;

use tamis_abi::{ArgIndex, Endian, Word};
use tamis_bpf::insn::Operation;
use tamis_bpf::{AluOp, Operand, Pc, Test};

use super::graph::{Gate, Gates};
use super::words::{self, Bits};
use crate::code::Code;
use crate::diagram::Limited;
use crate::misreading::{self, Reading, Rule};

/// Words of scratch memory, `BPF_MEMWORDS`.
const SLOTS: usize = 16;
/// The value of `len`, the size of `struct seccomp_data`: two words, a pointer and six arguments.
const LEN: u32 = 2 * 4 + 8 + 6 * 8;

/// The contents of the machine.
#[derive(Clone)]
pub(super) struct Machine {
    pub(super) a: Bits,
    pub(super) x: Bits,
    memory: [Bits; SLOTS],
}

/// The result of a load.
pub(super) struct Loaded {
    /// The condition that it doesn't end the program.
    goes_on: Gate,
    /// The loaded value.
    value: Bits,
    /// The returned value if the program ends here.
    pub(super) returned: Bits,
}

impl Loaded {
    /// A load that gives a value, or ends the program with 0.
    pub(super) fn or_zero((goes_on, value): (Gate, Bits)) -> Loaded {
        Loaded {
            goes_on,
            value,
            returned: words::constant(0),
        }
    }
}

/// The input of a program.
pub(super) trait Input {
    /// The operand of a load.
    type Load: Copy;
    /// The instructions that only this machine has.
    type Extra: Copy;

    /// The value of `len`.
    fn len(&mut self, gates: &mut Gates) -> Limited<Bits>;

    /// The result of a load.
    fn load(&mut self, gates: &mut Gates, load: Self::Load, machine: &Machine) -> Limited<Loaded>;

    /// Runs an instruction that only this machine has; the condition that it doesn't end the program.
    fn extra(
        &mut self,
        gates: &mut Gates,
        extra: Self::Extra,
        machine: &mut Machine,
    ) -> Limited<Gate>;
}

/// The words of a call, in the order of a machine's bytes.
struct Words {
    endian: Endian,
}

impl Input for Words {
    type Load = u32;
    type Extra = Infallible;

    fn len(&mut self, _: &mut Gates) -> Limited<Bits> {
        Ok(words::constant(LEN))
    }

    fn load(&mut self, gates: &mut Gates, offset: u32, _: &Machine) -> Limited<Loaded> {
        let value = words::input(gates, word_at(offset, self.endian))?;
        Ok(Loaded::or_zero((Gate::TRUE, value)))
    }

    fn extra(&mut self, _: &mut Gates, extra: Infallible, _: &mut Machine) -> Limited<Gate> {
        match extra {}
    }
}

/// The merged paths to an instruction.
struct Way {
    is_taken: Gate,
    machine: Machine,
}

struct Circuit<'a, I> {
    gates: &'a mut Gates,
    note: &'a mut dyn FnMut(Pc, [Gate; 2]),
    input: &'a mut I,
    /// For each instruction the paths to it, if any.
    ways: Vec<Option<Way>>,
    returned: Bits,
}

/// The return value of a program. `note` is called for every reached branch with the conditions that it is reached
/// and its test fails or holds.
pub(super) fn returned(
    gates: &mut Gates,
    code: Code<'_>,
    note: &mut dyn FnMut(Pc, [Gate; 2]),
) -> Limited<Bits> {
    let endian = code.endian();
    let op_at = |pc| misreading::op(Reading::Gates, code.op(pc));
    sweep(
        gates,
        &mut Words { endian },
        code.shape().len(),
        op_at,
        note,
    )
}

/// The same for a program of any machine with so many instructions.
pub(super) fn sweep<I: Input>(
    gates: &mut Gates,
    input: &mut I,
    length: usize,
    op_at: impl Fn(Pc) -> Operation<I::Load, I::Extra>,
    note: &mut dyn FnMut(Pc, [Gate; 2]),
) -> Limited<Bits> {
    let zero = words::constant(0);
    let start = Machine {
        a: zero,
        x: zero,
        memory: [zero; SLOTS],
    };
    let mut circuit = Circuit {
        gates,
        note,
        input,
        ways: (0..length).map(|_| None).collect(),
        returned: zero,
    };
    circuit.go(0, Gate::TRUE, start)?;
    for pc in 0..length {
        if let Some(way) = circuit.ways[pc].take() {
            circuit.step(op_at(Pc(pc)), pc + 1, way)?;
        }
    }
    Ok(circuit.returned)
}

impl<I: Input> Circuit<'_, I> {
    /// Adds a path to an instruction.
    fn go(&mut self, target: usize, is_taken: Gate, machine: Machine) -> Limited<()> {
        if is_taken == Gate::FALSE {
            return Ok(());
        }
        let way = match self.ways[target].take() {
            None => Way { is_taken, machine },
            Some(other) => Way {
                is_taken: self.gates.or(is_taken, other.is_taken)?,
                machine: self.meet(is_taken, machine, &other.machine)?,
            },
        };
        self.ways[target] = Some(way);
        Ok(())
    }

    /// The merged contents of the machine: those of `first` on the first path.
    fn meet(&mut self, is_first: Gate, first: Machine, second: &Machine) -> Limited<Machine> {
        let mut met = first;
        met.a = words::select(self.gates, is_first, &met.a, &second.a)?;
        met.x = words::select(self.gates, is_first, &met.x, &second.x)?;
        for (slot, other) in met.memory.iter_mut().zip(&second.memory) {
            *slot = words::select(self.gates, is_first, slot, other)?;
        }
        Ok(met)
    }

    fn end(&mut self, is_taken: Gate, value: &Bits) -> Limited<()> {
        self.returned = words::select(self.gates, is_taken, value, &self.returned)?;
        Ok(())
    }

    /// Runs an instruction; the next one is at `next`.
    fn step(&mut self, op: Operation<I::Load, I::Extra>, next: usize, way: Way) -> Limited<()> {
        let Way {
            is_taken,
            mut machine,
        } = way;
        // Where another instruction than a load ends the program early it does so with 0: `returned` stays as it was.
        let goes_on = match op {
            Operation::RetImm(k) => return self.end(is_taken, &words::constant(k)),
            Operation::RetA => return self.end(is_taken, &machine.a),
            Operation::Jump(skip) => return self.go(next + skip as usize, is_taken, machine),
            Operation::Branch {
                test,
                operand,
                jt,
                jf,
            } => {
                let holds = self.outcome(test, operand, &machine)?;
                let yes = self.gates.and(is_taken, holds)?;
                let no = self.gates.and(is_taken, holds.not())?;
                (self.note)(Pc(next - 1), [no, yes]);
                self.go(next + usize::from(jt), yes, machine.clone())?;
                return self.go(next + usize::from(jf), no, machine);
            }
            Operation::LoadData(load) => {
                let loaded = self.input.load(self.gates, load, &machine)?;
                let ends = self.gates.and(is_taken, loaded.goes_on.not())?;
                self.end(ends, &loaded.returned)?;
                machine.a = loaded.value;
                loaded.goes_on
            }
            Operation::Extra(extra) => self.input.extra(self.gates, extra, &mut machine)?,
            Operation::Alu(alu, operand) => {
                let right = right(self.gates, operand, &machine)?;
                machine.a = words::alu(self.gates, alu, &machine.a, &right)?;
                match alu {
                    AluOp::Div if !misreading::has(Reading::Gates, Rule::DivisionByZero) => {
                        words::is_not_zero(self.gates, &right)?
                    }
                    _ => Gate::TRUE,
                }
            }
            op => {
                self.transfer(op, &mut machine)?;
                Gate::TRUE
            }
        };
        let is_taken = self.gates.and(is_taken, goes_on)?;
        self.go(next, is_taken, machine)
    }

    /// The condition that a test holds.
    fn outcome(&mut self, test: Test, operand: Operand, machine: &Machine) -> Limited<Gate> {
        let mut sides = [machine.a, right(self.gates, operand, machine)?];
        if misreading::has(Reading::Gates, Rule::Signedness) && matches!(test, Test::Gt | Test::Ge)
        {
            sides = sides.map(signed_as_unsigned);
        }
        let [left, right] = sides;
        words::test(self.gates, test, &left, &right)
    }

    /// The effect of an instruction that only moves values.
    fn transfer(&mut self, op: Operation<I::Load, I::Extra>, machine: &mut Machine) -> Limited<()> {
        match op {
            Operation::LoadImm(k) => machine.a = words::constant(k),
            Operation::LoadMem(slot) => machine.a = machine.memory[slot as usize],
            Operation::LoadLen => machine.a = self.input.len(self.gates)?,
            Operation::LoadXImm(k) => machine.x = words::constant(k),
            Operation::LoadXMem(slot) => machine.x = machine.memory[slot as usize],
            Operation::LoadXLen => machine.x = self.input.len(self.gates)?,
            Operation::Store(slot) => machine.memory[slot as usize] = machine.a,
            Operation::StoreX(slot) => machine.memory[slot as usize] = machine.x,
            Operation::Neg => {
                let zero = words::constant(0);
                machine.a = words::alu(self.gates, AluOp::Sub, &zero, &machine.a)?;
            }
            Operation::Tax => machine.x = machine.a,
            Operation::Txa => machine.a = machine.x,
            Operation::LoadData(_)
            | Operation::Extra(_)
            | Operation::Alu(..)
            | Operation::Jump(_)
            | Operation::Branch { .. }
            | Operation::RetImm(_)
            | Operation::RetA => unreachable!("the caller loads, computes, jumps and ends"),
        }
        Ok(())
    }
}

/// The input word at a byte offset of `struct seccomp_data`: the number, the architecture, then 64-bit values with
/// halves in the machine's byte order.
///
/// # Panics
/// If the offset has no word, which valid programs don't load.
fn word_at(offset: u32, endian: Endian) -> Word {
    let is_low = offset.is_multiple_of(8) == (endian == Endian::Little);
    match offset / 8 {
        0 if offset == 0 => Word::NR,
        0 => Word::ARCH,
        1 if is_low => Word::IP_LOW,
        1 => Word::IP_HIGH,
        value => {
            let arg = ArgIndex::ALL[value as usize - 2];
            if is_low {
                Word::arg_low(arg)
            } else {
                Word::arg_high(arg)
            }
        }
    }
}

/// The bits for comparing a signed number as an unsigned one.
fn signed_as_unsigned(mut bits: Bits) -> Bits {
    bits[31] = bits[31].not();
    bits
}

/// The right-hand side of an operation.
pub(super) fn right(gates: &mut Gates, operand: Operand, machine: &Machine) -> Limited<Bits> {
    match operand {
        Operand::K(k) => Ok(words::constant(k)),
        Operand::X => Ok(machine.x),
        Operand::Variable(word) => words::input(gates, word),
    }
}

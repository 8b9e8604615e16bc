//! A program as gates: all of its paths at once.
//!
//! Jumps only go forward, so one sweep is sufficient. At each instruction the paths to it are merged: the contents
//! of the machine are selected bit by bit by the path taken. The size is proportional to the length of the program
//! and independent of the number of paths.

use tamis_abi::{ArgIndex, Endian, Word};
use tamis_bpf::{AluOp, Op, Operand, Pc, Test};

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
struct Machine {
    a: Bits,
    x: Bits,
    memory: [Bits; SLOTS],
}

/// The merged paths to an instruction.
struct Way {
    is_taken: Gate,
    machine: Machine,
}

struct Circuit<'a> {
    gates: &'a mut Gates,
    note: &'a mut dyn FnMut(Pc, [Gate; 2]),
    endian: Endian,
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
    let length = code.shape().len();
    let zero = words::constant(0);
    let start = Machine {
        a: zero,
        x: zero,
        memory: [zero; SLOTS],
    };
    let mut circuit = Circuit {
        gates,
        note,
        endian: code.endian(),
        ways: (0..length).map(|_| None).collect(),
        returned: zero,
    };
    circuit.go(0, Gate::TRUE, start)?;
    for pc in 0..length {
        if let Some(way) = circuit.ways[pc].take() {
            let op = misreading::op(Reading::Gates, code.op(Pc(pc)));
            circuit.step(op, pc + 1, way)?;
        }
    }
    Ok(circuit.returned)
}

impl Circuit<'_> {
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
    fn step(&mut self, op: Op, next: usize, way: Way) -> Limited<()> {
        let Way {
            is_taken,
            mut machine,
        } = way;
        match op {
            Op::RetImm(k) => return self.end(is_taken, &words::constant(k)),
            Op::RetA => return self.end(is_taken, &machine.a),
            Op::Jump(skip) => return self.go(next + skip as usize, is_taken, machine),
            Op::Branch {
                test,
                operand,
                jt,
                jf,
            } => {
                let right = right(self.gates, operand, &machine)?;
                let mut sides = [machine.a, right];
                if misreading::has(Reading::Gates, Rule::Signedness)
                    && matches!(test, Test::Gt | Test::Ge)
                {
                    sides = sides.map(signed_as_unsigned);
                }
                let [left, right] = sides;
                let holds = words::test(self.gates, test, &left, &right)?;
                let yes = self.gates.and(is_taken, holds)?;
                let no = self.gates.and(is_taken, holds.not())?;
                (self.note)(Pc(next - 1), [no, yes]);
                self.go(next + usize::from(jt), yes, machine.clone())?;
                return self.go(next + usize::from(jf), no, machine);
            }
            Op::Alu(alu, operand) => {
                let right = right(self.gates, operand, &machine)?;
                machine.a = words::alu(self.gates, alu, &machine.a, &right)?;
                if alu == AluOp::Div && !misreading::has(Reading::Gates, Rule::DivisionByZero) {
                    // Division by zero ends the program with 0: `returned` stays as it was.
                    let zero = words::constant(0);
                    let by_zero = words::test(self.gates, Test::Eq, &right, &zero)?;
                    let is_taken = self.gates.and(is_taken, by_zero.not())?;
                    return self.go(next, is_taken, machine);
                }
            }
            op => self.transfer(op, &mut machine)?,
        }
        self.go(next, is_taken, machine)
    }

    /// The effect of an instruction that only moves values.
    fn transfer(&mut self, op: Op, machine: &mut Machine) -> Limited<()> {
        match op {
            Op::LoadData(offset) => {
                machine.a = words::input(self.gates, word_at(offset, self.endian))?;
            }
            Op::LoadImm(k) => machine.a = words::constant(k),
            Op::LoadMem(slot) => machine.a = machine.memory[slot as usize],
            Op::LoadLen => machine.a = words::constant(LEN),
            Op::LoadXImm(k) => machine.x = words::constant(k),
            Op::LoadXMem(slot) => machine.x = machine.memory[slot as usize],
            Op::LoadXLen => machine.x = words::constant(LEN),
            Op::Store(slot) => machine.memory[slot as usize] = machine.a,
            Op::StoreX(slot) => machine.memory[slot as usize] = machine.x,
            Op::Neg => {
                let zero = words::constant(0);
                machine.a = words::alu(self.gates, AluOp::Sub, &zero, &machine.a)?;
            }
            Op::Tax => machine.x = machine.a,
            Op::Txa => machine.a = machine.x,
            Op::Alu(..) | Op::Jump(_) | Op::Branch { .. } | Op::RetImm(_) | Op::RetA => {
                unreachable!("the caller computes, jumps and ends")
            }
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

fn right(gates: &mut Gates, operand: Operand, machine: &Machine) -> Limited<Bits> {
    match operand {
        Operand::K(k) => Ok(words::constant(k)),
        Operand::X => Ok(machine.x),
        Operand::Variable(word) => words::input(gates, word),
    }
}

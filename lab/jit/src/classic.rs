//! The machine code of the classic instructions that seccomp and sockets share.
//!
//! A is in EAX, X in ECX, the machine's register for the distance of a shift, and the scratch memory in the red zone
//! below the stack pointer, which leaf functions may use. RDX, R10 and R11 are temporaries; RDI, RSI, R8 and R9 hold
//! the arguments of the function. No instruction relies on flags of the previous one, so each is independent:
//! [`Emitter::emit`] is the list of all templates, and a test proves each for all values of registers, memory and
//! constants.

use tamis_bpf::insn::Operation;
use tamis_bpf::live::Live;
use tamis_bpf::validate::SLOTS;
use tamis_bpf::{AluOp, Operand, Test};

use crate::assembler::{Assembler, Label};
use crate::blind::Blinding;
use crate::x86::{Binary, Condition, Encoded, Inst, Mem, Reg, Shift, Width};

pub(crate) const A: Reg = Reg::Rax;
pub(crate) const X: Reg = Reg::Rcx;
/// Points to the first byte of the input.
pub(crate) const INPUT: Reg = Reg::Rdi;
/// Holds a constant that no instruction can have, or that is blinded.
pub(crate) const CONSTANT: Reg = Reg::R10;
/// The upper half of a dividend, then the remainder.
const REMAINDER: Reg = Reg::Rdx;

/// The differences between seccomp and sockets.
pub(crate) trait Machine {
    /// The source of a load.
    type Load: Copy;
    /// The instructions that only this machine has.
    type Extra: Copy;
    /// The facts about registers and input before an instruction.
    type Facts: Copy;
    /// The facts at the beginning of a program.
    const START: Self::Facts;
    /// The facts that always hold.
    const NOTHING: Self::Facts;

    /// Writes the load of A, which comes before `next`.
    fn load(emitter: &mut Emitter, load: Self::Load, facts: Self::Facts);

    /// Writes a load of the length of the input.
    fn load_len(emitter: &mut Emitter, to: Reg);

    /// Writes an instruction that only this machine has.
    fn extra(emitter: &mut Emitter, extra: Self::Extra, facts: Self::Facts);

    /// The live state before a load of A if `live` is live after it; `None` if it has no effect.
    fn live_before_load(load: Self::Load, live: Live) -> Option<Live>;

    /// The same for an instruction that only this machine has.
    fn live_before_extra(extra: Self::Extra, live: Live) -> Option<Live>;

    /// The facts after an instruction.
    fn facts_after(op: Operation<Self::Load, Self::Extra>, facts: Self::Facts) -> Self::Facts;

    /// The facts that hold if one of two does.
    fn join(one: Self::Facts, other: Self::Facts) -> Self::Facts;
}

/// The places where an instruction goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exits {
    /// After an instruction or jump, or where the test of a branch holds.
    pub(crate) next: Label,
    /// Where the test of a branch doesn't hold.
    pub(crate) no: Label,
}

/// Writes instructions, last to first.
#[derive(Debug)]
pub(crate) struct Emitter {
    pub(crate) out: Assembler,
    /// Where the program ends with 0.
    zero: Label,
    /// Where it ends with A.
    end: Label,
    blinding: Blinding,
    /// Whether the code reads the ancillary values of a packet.
    pub(crate) uses_record: bool,
    /// Whether it reads a packet's length.
    pub(crate) uses_len: bool,
}

/// The right-hand side of an operation in the machine.
#[derive(Clone, Copy)]
enum Source {
    Constant(u32),
    Register(Reg),
}

/// A blinded constant: instructions contain only its combination with a random number.
#[derive(Clone, Copy)]
struct Blinded {
    value: u32,
    random: u32,
}

impl Emitter {
    /// An emitter whose code has the end with 0 and nothing else.
    pub(crate) fn new(mut out: Assembler, blinding: Blinding) -> Emitter {
        out.push(Inst::Return);
        let end = out.here();
        out.push(Inst::Binary(Binary::Xor, Width::Half, A, A));
        Emitter {
            zero: out.here(),
            end,
            out,
            blinding,
            uses_record: false,
            uses_len: false,
        }
    }

    /// Whether constants are blinded.
    pub(crate) fn is_hardened(&self) -> bool {
        self.blinding.is_on()
    }

    /// Where the program ends with 0.
    pub(crate) fn zero(&self) -> Label {
        self.zero
    }

    /// Where the program ends with A.
    pub(crate) fn end(&self) -> Label {
        self.end
    }

    /// Writes one instruction.
    #[inline]
    pub(crate) fn emit<M: Machine>(
        &mut self,
        op: Operation<M::Load, M::Extra>,
        facts: M::Facts,
        exits: Exits,
    ) {
        match op {
            Operation::RetImm(value) => {
                self.out.push(Inst::Return);
                return self.set(A, value);
            }
            Operation::RetA => return self.out.push(Inst::Return),
            Operation::Branch { test, operand, .. } => return self.branch(test, operand, exits),
            _ => self.out.jump(exits.next),
        }
        let half = |op, dst, src| Inst::Binary(op, Width::Half, dst, src);
        match op {
            Operation::LoadData(load) => M::load(self, load, facts),
            Operation::LoadImm(k) => self.set(A, k),
            Operation::LoadMem(from) => self.out.push(Inst::Load(A, slot(from))),
            Operation::LoadLen => M::load_len(self, A),
            Operation::LoadXImm(k) => self.set(X, k),
            Operation::LoadXMem(from) => self.out.push(Inst::Load(X, slot(from))),
            Operation::LoadXLen => M::load_len(self, X),
            Operation::Store(to) => self.out.push(Inst::Store(slot(to), A)),
            Operation::StoreX(to) => self.out.push(Inst::Store(slot(to), X)),
            Operation::Alu(alu, operand) => self.alu(alu, operand),
            Operation::Neg => self.out.push(Inst::Neg(Width::Half, A)),
            Operation::Tax => self.out.push(half(Binary::Mov, X, A)),
            Operation::Txa => self.out.push(half(Binary::Mov, A, X)),
            Operation::Extra(extra) => M::extra(self, extra, facts),
            Operation::Jump(_)
            | Operation::Branch { .. }
            | Operation::RetImm(_)
            | Operation::RetA => {}
        }
    }

    /// Writes `M[to] = value`.
    pub(crate) fn set_slot(&mut self, to: u32, value: u32) {
        self.out.push(Inst::Store(slot(to), CONSTANT));
        self.set(CONSTANT, value);
    }

    /// Writes `register = value`.
    pub(crate) fn set(&mut self, dst: Reg, value: u32) {
        match self.blinding.next() {
            Some(random) => {
                let reveal = Inst::BinaryImm(Binary::Xor, Width::Half, dst, random as i32);
                self.out.push(reveal);
                self.out.push(Inst::Set(dst, value ^ random));
            }
            None if value == 0 => {
                self.out
                    .push(Inst::Binary(Binary::Xor, Width::Half, dst, dst));
            }
            None => self.out.push(Inst::Set(dst, value)),
        }
    }

    /// Writes the code of `write` for the operand, preceded by the code that loads the operand.
    fn with_operand(&mut self, operand: Operand, write: impl FnOnce(&mut Emitter, Source)) {
        let (source, blinded) = self.source(operand);
        write(self, source);
        self.reveal(blinded);
    }

    /// Where an operand is found, and how, if it is blinded.
    #[inline]
    fn source(&mut self, operand: Operand) -> (Source, Option<Blinded>) {
        match operand {
            Operand::K(value) => match self.blinding.next() {
                None => (Source::Constant(value), None),
                Some(random) => {
                    let blinded = Blinded { value, random };
                    (Source::Register(CONSTANT), Some(blinded))
                }
            },
            Operand::X => (Source::Register(X), None),
            Operand::Variable(_) => unreachable!("programs have no variables"),
        }
    }

    /// Writes the code that loads a blinded constant into its register.
    #[inline]
    fn reveal(&mut self, blinded: Option<Blinded>) {
        if let Some(Blinded { value, random }) = blinded {
            let reveal = Inst::BinaryImm(Binary::Xor, Width::Half, CONSTANT, random as i32);
            self.out.push(reveal);
            self.out.push(Inst::Set(CONSTANT, value ^ random));
        }
    }

    fn alu(&mut self, alu: AluOp, operand: Operand) {
        match (alu, operand) {
            (AluOp::Lsh, operand) => self.shift(Shift::Left, operand),
            (AluOp::Rsh, operand) => self.shift(Shift::Right, operand),
            (AluOp::Div, Operand::X) => self.divide_by_x(),
            (AluOp::Div, operand) => self.with_operand(operand, Emitter::divide),
            (AluOp::Mul, operand) => self.with_operand(operand, Emitter::multiply),
            (AluOp::Add, operand) => self.binary(Binary::Add, operand),
            (AluOp::Sub, operand) => self.binary(Binary::Sub, operand),
            (AluOp::And, operand) => self.binary(Binary::And, operand),
            (AluOp::Or, operand) => self.binary(Binary::Or, operand),
            (AluOp::Xor, operand) => self.binary(Binary::Xor, operand),
        }
    }

    fn binary(&mut self, op: Binary, operand: Operand) {
        self.with_operand(operand, |this, source| {
            this.out.push(match source {
                Source::Constant(k) => Inst::BinaryImm(op, Width::Half, A, k as i32),
                Source::Register(src) => Inst::Binary(op, Width::Half, A, src),
            });
        });
    }

    /// The machine uses the low five bits of a distance, as classic BPF does.
    fn shift(&mut self, shift: Shift, operand: Operand) {
        self.out.push(match operand {
            Operand::K(k) => Inst::Shift(shift, Width::Half, A, k as u8),
            _ => Inst::ShiftByCl(shift, Width::Half, A),
        });
    }

    fn multiply(&mut self, source: Source) {
        self.out.push(match source {
            Source::Constant(k) if k.is_power_of_two() => {
                Inst::Shift(Shift::Left, Width::Half, A, k.trailing_zeros() as u8)
            }
            Source::Constant(k) => Inst::MultiplyImm(Width::Half, A, k as i32),
            Source::Register(src) => Inst::Multiply(Width::Half, A, src),
        });
    }

    /// Division by a value that is not 0.
    fn divide(&mut self, source: Source) {
        let by = match source {
            Source::Constant(k) if k.is_power_of_two() => {
                let count = k.trailing_zeros() as u8;
                let shift = Inst::Shift(Shift::Right, Width::Half, A, count);
                return self.out.push(shift);
            }
            Source::Constant(_) => CONSTANT,
            Source::Register(by) => by,
        };
        self.out.push(Inst::Divide(Width::Half, by));
        let (high, half) = (REMAINDER, Width::Half);
        self.out.push(Inst::Binary(Binary::Xor, half, high, high));
        if let Source::Constant(k) = source {
            self.out.push(Inst::Set(CONSTANT, k));
        }
    }

    fn divide_by_x(&mut self) {
        self.divide(Source::Register(X));
        self.end_if_x_is_zero();
    }

    fn end_if_x_is_zero(&mut self) {
        let compare = Inst::Binary(Binary::Test, Width::Half, X, X);
        self.out.jump_if(compare, Condition::Equal, self.zero);
    }

    /// Writes `A = A % operand`, which ends the program if X is 0.
    pub(crate) fn remainder(&mut self, operand: Operand) {
        if let Operand::K(k) = operand
            && k.is_power_of_two()
        {
            return self.binary(Binary::And, Operand::K(k - 1));
        }
        let result = Inst::Binary(Binary::Mov, Width::Half, A, REMAINDER);
        self.out.push(result);
        match operand {
            Operand::X => self.divide_by_x(),
            operand => self.with_operand(operand, Emitter::divide),
        }
    }

    #[inline(always)]
    fn branch(&mut self, test: Test, operand: Operand, exits: Exits) {
        let condition = match test {
            Test::Eq => Condition::Equal,
            Test::Gt => Condition::Above,
            Test::Ge => Condition::AboveEqual,
            Test::Set => Condition::NotEqual,
        };
        if exits.next == exits.no {
            return self.out.jump(exits.next);
        }
        let (source, blinded) = self.source(operand);
        let compare = comparison(test, source);
        self.out.branch(compare, condition, exits.next, exits.no);
        self.reveal(blinded);
    }
}

/// The comparison of A. Each form is encoded separately, because most of a filter is comparisons.
#[inline(always)]
fn comparison(test: Test, source: Source) -> Encoded {
    match (test, source) {
        (Test::Set, Source::Constant(k @ 0..=0xff)) => Inst::TestLowByte(k as u8).encode(),
        (Test::Set, Source::Constant(k)) => {
            Inst::BinaryImm(Binary::Test, Width::Half, A, k as i32).encode()
        }
        (Test::Set, Source::Register(src)) => {
            Inst::Binary(Binary::Test, Width::Half, A, src).encode()
        }
        // The same flags as a comparison with 0, in fewer bytes.
        (_, Source::Constant(0)) => Inst::Binary(Binary::Test, Width::Half, A, A).encode(),
        (_, Source::Constant(k)) => Inst::BinaryImm(Binary::Cmp, Width::Half, A, k as i32).encode(),
        (_, Source::Register(src)) => Inst::Binary(Binary::Cmp, Width::Half, A, src).encode(),
    }
}

/// A scratch slot: the red zone of 128 bytes has room for twice as many.
fn slot(slot: u32) -> Mem {
    Mem::at(Reg::Rsp, (slot as i32 - SLOTS as i32) * 4)
}

//! The effects of the x86-64 instructions of extended programs, as terms of SMT-LIB.
//!
//! As for filters, code is decoded by another project's decoder, and instructions outside of the model are rejected.
//! Registers are terms of 64 bits. An instruction accesses eight bytes of memory at one place: they are a term, and the
//! addresses of all accesses are kept, to be compared with that place. The state of the evaluation, to which RBP
//! points, is separate: its fields are terms that don't change.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// The fields of the state that templates read, by their offset in words.
const FIELDS: usize = 6;

/// How a way through the code leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// At this offset.
    At(usize),
    /// By an exception of the processor.
    Fault,
}

/// One way through the code.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) exit: Exit,
    /// When this way is taken.
    pub(super) condition: String,
    pub(super) machine: Machine,
}

#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) registers: [String; 16],
    pub(super) memory: String,
    /// The addresses of accesses outside of the state, and their bytes.
    pub(super) accesses: Vec<(String, usize)>,
    flags: Option<Flags>,
    fault: String,
}

#[derive(Clone, Debug)]
struct Flags {
    zero: String,
    below: String,
    sign: String,
    less: String,
}

/// The code of a template, with a term of 32 bits for the constant that has this value.
pub(super) struct Code<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) constant: Option<i32>,
    /// Offsets where execution leaves.
    pub(super) ends: &'a [usize],
}

/// The declarations of the constants in the terms of [`Machine::start`].
pub(super) fn declarations() -> String {
    let declare = |name: String| format!("(declare-const {name} (_ BitVec 64))\n");
    let registers = (0..16).map(|index| declare(format!("r{index}")));
    let fields = (0..FIELDS).map(|index| declare(field(index)));
    registers
        .chain(fields)
        .chain([declare("m".to_owned())])
        .collect()
}

/// A field of the state, by its offset in words: context, stack, end of the frame, packet, its bytes.
pub(super) fn field(index: usize) -> String {
    format!("s{index}")
}

pub(super) fn number(value: u64, bits: usize) -> String {
    let mask = if bits == 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    };
    format!("#x{:0width$x}", value & mask, width = bits / 4)
}

pub(super) fn low(bits: usize, term: &str) -> String {
    match bits {
        64 => term.to_owned(),
        bits => format!("((_ extract {} 0) {term})", bits - 1),
    }
}

/// A term of so many bits with zeros or with its sign above.
pub(super) fn extended(is_signed: bool, from: usize, to: usize, term: &str) -> String {
    match (to - from, is_signed) {
        (0, _) => term.to_owned(),
        (more, true) => format!("((_ sign_extend {more}) {term})"),
        (more, false) => format!("((_ zero_extend {more}) {term})"),
    }
}

/// Memory with the lower bytes of a term stored.
pub(super) fn stored(memory: &str, bytes: usize, value: &str) -> String {
    match bytes {
        8 => value.to_owned(),
        _ => {
            let others = format!("((_ extract 63 {}) {memory})", 8 * bytes);
            format!(
                "(concat {others} ((_ extract {} 0) {value}))",
                8 * bytes - 1
            )
        }
    }
}

/// The bytes of a term in opposite order.
pub(super) fn reversed(bytes: usize, term: &str) -> String {
    let byte = |at: usize| format!("((_ extract {} {}) {term})", 8 * at + 7, 8 * at);
    match bytes {
        1 => term.to_owned(),
        _ => format!(
            "(concat {})",
            (0..bytes).map(byte).collect::<Vec<_>>().join(" ")
        ),
    }
}

impl Code<'_> {
    /// All paths through the code.
    ///
    /// # Errors
    /// The instruction outside of the model.
    pub(super) fn outcomes(&self) -> Result<Vec<Outcome>, String> {
        let mut outcomes = Vec::new();
        let mut open = vec![(0, "true".to_owned(), Machine::start())];
        while let Some((at, condition, mut machine)) = open.pop() {
            if self.ends.contains(&at) {
                let exit = Exit::At(at);
                outcomes.push(Outcome {
                    exit,
                    condition,
                    machine,
                });
                continue;
            }
            let rest = self.bytes.get(at..).ok_or("a jump outside")?;
            let mut decoder = Decoder::with_ip(64, rest, at as u64, DecoderOptions::NONE);
            let insn = decoder.decode();
            let next = insn.next_ip() as usize;
            let target = insn.near_branch_target() as usize;
            if (1..next).contains(&target) {
                return Err("a jump backward".to_owned());
            }
            match insn.flow_control() {
                FlowControl::Next => {
                    machine.fault = "false".to_owned();
                    machine.step(&insn, self)?;
                    if machine.fault != "false" {
                        let fault = format!("(and {condition} {})", machine.fault);
                        let machine = machine.clone();
                        outcomes.push(Outcome {
                            exit: Exit::Fault,
                            condition: fault,
                            machine,
                        });
                    }
                    open.push((next, condition, machine));
                }
                FlowControl::UnconditionalBranch => {
                    open.push((target, condition, machine));
                }
                FlowControl::ConditionalBranch => {
                    let taken = machine.condition(insn.mnemonic())?;
                    open.push((
                        target,
                        format!("(and {condition} {taken})"),
                        machine.clone(),
                    ));
                    open.push((next, format!("(and {condition} (not {taken}))"), machine));
                }
                other => return Err(format!("{other:?}")),
            }
        }
        Ok(outcomes)
    }
}

/// The bits of an operand.
fn bits(insn: &Instruction, operand: u32) -> usize {
    if operand >= insn.op_count() {
        return 0;
    }
    match insn.op_kind(operand) {
        OpKind::Register => insn.op_register(operand).size() * 8,
        OpKind::Memory => insn.memory_size().size() * 8,
        _ if operand > 0 => bits(insn, 0),
        _ => 0,
    }
}

impl Machine {
    /// Anything in registers and memory.
    pub(super) fn start() -> Machine {
        Machine {
            registers: std::array::from_fn(|index| format!("r{index}")),
            memory: "m".to_owned(),
            accesses: Vec::new(),
            flags: None,
            fault: "false".to_owned(),
        }
    }

    fn step(&mut self, insn: &Instruction, code: &Code<'_>) -> Result<(), String> {
        if insn.op_count() == 0 && !matches!(insn.mnemonic(), Mnemonic::Cdq | Mnemonic::Cqo) {
            return Err(format!("{:?}", insn.mnemonic()));
        }
        let width = bits(insn, 0);
        match insn.mnemonic() {
            Mnemonic::Mov => {
                let value = self.read(insn, 1, code)?;
                return self.write(insn, &value);
            }
            Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => {
                let from = bits(insn, 1);
                let value = self.read(insn, 1, code)?;
                let is_signed = insn.mnemonic() != Mnemonic::Movzx;
                return self.write(insn, &extended(is_signed, from, width, &value));
            }
            Mnemonic::Lea => {
                let address = self.address(insn);
                return self.write(insn, &low(width, &address));
            }
            Mnemonic::Xchg => {
                let (a, b) = (self.read(insn, 0, code)?, self.read(insn, 1, code)?);
                self.write_register(insn.op_register(1), &a)?;
                return self.write(insn, &b);
            }
            Mnemonic::Bswap => {
                let value = self.read(insn, 0, code)?;
                return self.write(insn, &reversed(width / 8, &value));
            }
            Mnemonic::Rol if width == 16 && insn.immediate8() == 8 => {
                let register = insn.op0_register().full_register();
                let old = &self.registers[register.number()];
                let swapped = reversed(2, &low(16, old));
                self.registers[register.number()] =
                    format!("(concat ((_ extract 63 16) {old}) {swapped})");
                self.flags = None;
                return Ok(());
            }
            Mnemonic::Div | Mnemonic::Idiv => return self.divide(insn, code),
            Mnemonic::Cdq => {
                let sign = format!(
                    "(bvashr {} {})",
                    low(32, &self.registers[0]),
                    number(31, 32)
                );
                self.registers[2] = extended(false, 32, 64, &sign);
                return Ok(());
            }
            Mnemonic::Cqo => {
                self.registers[2] = format!("(bvashr {} {})", self.registers[0], number(63, 64));
                return Ok(());
            }
            Mnemonic::Neg => {
                let value = self.read(insn, 0, code)?;
                self.flags = None;
                return self.write(insn, &format!("(bvneg {value})"));
            }
            _ => {}
        }
        self.compute(insn, code)
    }

    /// The instructions that compute from two operands.
    fn compute(&mut self, insn: &Instruction, code: &Code<'_>) -> Result<(), String> {
        let width = bits(insn, 0);
        let (left, right) = match insn.op_count() {
            3 => (self.read(insn, 1, code)?, self.read(insn, 2, code)?),
            2 => (self.read(insn, 0, code)?, self.read(insn, 1, code)?),
            _ => return Err(format!("{insn}")),
        };
        let distance = || format!("(bvand {right} {})", number(width as u64 - 1, width));
        let (result, is_written) = match insn.mnemonic() {
            Mnemonic::Add => (format!("(bvadd {left} {right})"), true),
            Mnemonic::Sub => (format!("(bvsub {left} {right})"), true),
            Mnemonic::And => (format!("(bvand {left} {right})"), true),
            Mnemonic::Or => (format!("(bvor {left} {right})"), true),
            Mnemonic::Xor => (format!("(bvxor {left} {right})"), true),
            Mnemonic::Imul => (format!("(bvmul {left} {right})"), true),
            Mnemonic::Shl => (format!("(bvshl {left} {})", distance()), true),
            Mnemonic::Shr => (format!("(bvlshr {left} {})", distance()), true),
            Mnemonic::Sar => (format!("(bvashr {left} {})", distance()), true),
            Mnemonic::Cmp => (format!("(bvsub {left} {right})"), false),
            Mnemonic::Test => (format!("(bvand {left} {right})"), false),
            other => return Err(format!("{other:?}")),
        };
        let zero = number(0, width);
        let sign = format!("(bvslt {result} {zero})");
        self.flags = match insn.mnemonic() {
            Mnemonic::Cmp => Some(Flags {
                zero: format!("(= {left} {right})"),
                below: format!("(bvult {left} {right})"),
                less: format!("(bvslt {left} {right})"),
                sign,
            }),
            Mnemonic::Test => Some(Flags {
                zero: format!("(= {result} {zero})"),
                below: "false".to_owned(),
                less: sign.clone(),
                sign,
            }),
            _ => None,
        };
        match is_written {
            true => self.write(insn, &result),
            false => Ok(()),
        }
    }

    /// The dividend's upper half must be 0 or the sign of its lower one, as a term.
    fn divide(&mut self, insn: &Instruction, code: &Code<'_>) -> Result<(), String> {
        let width = bits(insn, 0);
        let by = self.read(insn, 0, code)?;
        let value = low(width, &self.registers[0]);
        let upper = self.registers[2].clone();
        let sign = format!("(bvashr {value} {})", number(width as u64 - 1, width));
        let is_signed = insn.mnemonic() == Mnemonic::Idiv;
        let expected = match is_signed {
            false => extended(
                false,
                32,
                64,
                "(bvxor ((_ extract 31 0) r2) ((_ extract 31 0) r2))",
            ),
            true => extended(false, width, 64, &sign),
        };
        if upper != expected {
            return Err(format!("a dividend of {upper}"));
        }
        let (least, minus_one) = (number(1 << (width - 1), width), number(u64::MAX, width));
        let is_zero = format!("(= {by} {})", number(0, width));
        self.fault = match is_signed {
            true => format!("(or {is_zero} (and (= {value} {least}) (= {by} {minus_one})))"),
            false => is_zero,
        };
        let [quotient, remainder] = match is_signed {
            true => ["bvsdiv", "bvsrem"],
            false => ["bvudiv", "bvurem"],
        }
        .map(|function| extended(false, width, 64, &format!("({function} {value} {by})")));
        self.registers[0] = quotient;
        self.registers[2] = remainder;
        self.flags = None;
        Ok(())
    }

    fn address(&self, insn: &Instruction) -> String {
        let mut sum = number(insn.memory_displacement64(), 64);
        for register in [insn.memory_base(), insn.memory_index()] {
            if register != Register::None {
                sum = format!("(bvadd {} {sum})", self.registers[register.number()]);
            }
        }
        sum
    }

    /// An operand, with as many bits as it has, or those of the first one if it is a constant or a distance.
    fn read(
        &mut self,
        insn: &Instruction,
        operand: u32,
        code: &Code<'_>,
    ) -> Result<String, String> {
        let width = bits(insn, operand);
        match insn.op_kind(operand) {
            OpKind::Register if insn.op_register(operand) == Register::CL && bits(insn, 0) > 8 => {
                Ok(low(bits(insn, 0), &self.registers[1]))
            }
            OpKind::Register => {
                let register = insn.op_register(operand);
                match matches!(
                    register,
                    Register::AH | Register::CH | Register::DH | Register::BH
                ) {
                    true => Err(format!("{register:?}")),
                    false => Ok(low(
                        width,
                        &self.registers[register.full_register().number()],
                    )),
                }
            }
            OpKind::Memory if insn.memory_base() == Register::RBP => {
                let offset = insn.memory_displacement64() as usize;
                let is_field = offset / 8 < FIELDS && insn.memory_index() == Register::None;
                match (is_field, offset % 8, width) {
                    (true, 0, 32 | 64) => Ok(low(width, &field(offset / 8))),
                    _ => Err("a part of the state".to_owned()),
                }
            }
            OpKind::Memory => {
                let address = self.address(insn);
                self.accesses.push((address, width / 8));
                Ok(low(width, &self.memory))
            }
            OpKind::Immediate64 => Ok(number(insn.immediate64(), 64)),
            kind => {
                let value = insn
                    .try_immediate(operand)
                    .map_err(|_| format!("{kind:?}"))?;
                // Shifts by constants have one byte that stands for itself.
                let is_distance = matches!(
                    insn.mnemonic(),
                    Mnemonic::Shl | Mnemonic::Shr | Mnemonic::Sar
                );
                let low_bits =
                    |k: i32| value == (i64::from(k) as u64) & (u64::MAX >> (64 - width.min(64)));
                match code
                    .constant
                    .filter(|k| !is_distance && (value as i32 == *k || low_bits(*k)))
                {
                    Some(_) if width == 64 => Ok("((_ sign_extend 32) k)".to_owned()),
                    Some(_) => Ok(low_of_32(width, "k")),
                    None => Ok(number(value, width)),
                }
            }
        }
    }

    fn write(&mut self, insn: &Instruction, value: &str) -> Result<(), String> {
        match insn.op_kind(0) {
            OpKind::Register => self.write_register(insn.op0_register(), value),
            OpKind::Memory if insn.memory_base() != Register::RBP => {
                let bytes = insn.memory_size().size();
                let address = self.address(insn);
                self.accesses.push((address, bytes));
                self.memory = stored(&self.memory, bytes, value);
                Ok(())
            }
            other => Err(format!("{other:?}")),
        }
    }

    fn write_register(&mut self, register: Register, value: &str) -> Result<(), String> {
        self.registers[register.number()] = match register.size() {
            8 => value.to_owned(),
            4 => extended(false, 32, 64, value),
            _ => return Err(format!("{register:?}")),
        };
        Ok(())
    }

    fn condition(&self, jump: Mnemonic) -> Result<String, String> {
        let Some(Flags {
            zero,
            below,
            sign,
            less,
        }) = &self.flags
        else {
            return Err("flags that are not known".to_owned());
        };
        Ok(match jump {
            Mnemonic::Je => zero.clone(),
            Mnemonic::Jne => format!("(not {zero})"),
            Mnemonic::Jb => below.clone(),
            Mnemonic::Jae => format!("(not {below})"),
            Mnemonic::Jbe => format!("(or {below} {zero})"),
            Mnemonic::Ja => format!("(not (or {below} {zero}))"),
            Mnemonic::Js => sign.clone(),
            Mnemonic::Jl => less.clone(),
            Mnemonic::Jge => format!("(not {less})"),
            Mnemonic::Jle => format!("(or {less} {zero})"),
            Mnemonic::Jg => format!("(not (or {less} {zero}))"),
            other => return Err(format!("{other:?}")),
        })
    }
}

fn low_of_32(bits: usize, term: &str) -> String {
    match bits {
        32 => term.to_owned(),
        bits => low(bits, term),
    }
}

//! What a few x86-64 instructions do, as terms of SMT-LIB.
//!
//! Code is decoded by another project's decoder, so what is proved is what the machine would execute. The model
//! follows volume 2 of Intel's manual; code with any other instruction, operand or address is refused.
//!
//! Registers are terms of 64 bits. Memory is what templates may access: sixteen words that the first argument points
//! to, and sixteen words below the stack pointer.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// The scratch slots, and the words of the input.
const WORDS: usize = 16;

/// How execution leaves the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// At this offset.
    At(usize),
    /// By a return.
    Return,
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

/// The registers and the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Machine {
    registers: [String; 16],
    slots: [String; WORDS],
    flags: Flags,
}

/// The zero flag and the carry flag, or that they must not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Flags {
    Unknown,
    Known { zero: String, carry: String },
}

/// Decoded code with terms in place of some constants.
pub(super) struct Code<'a> {
    pub(super) bytes: &'a [u8],
    /// Offsets of instructions, with terms of 32 bits for their constants.
    pub(super) constants: &'a [(usize, String)],
    /// The offsets where execution leaves.
    pub(super) ends: [usize; 2],
}

/// The declarations of the constants in the terms of [`Machine::start`].
pub(super) fn declarations() -> String {
    let registers = (0..16).map(|index| format!("(declare-const r{index} (_ BitVec 64))\n"));
    let words = (0..WORDS).map(|index| {
        format!("(declare-const m{index} (_ BitVec 32))\n(declare-const w{index} (_ BitVec 32))\n")
    });
    registers.chain(words).collect()
}

impl Machine {
    /// Anything in registers and slots.
    pub(super) fn start() -> Machine {
        Machine {
            registers: std::array::from_fn(|index| format!("r{index}")),
            slots: std::array::from_fn(|index| format!("m{index}")),
            flags: Flags::Unknown,
        }
    }

    /// The low half of a register, by its number.
    pub(super) fn low(&self, number: usize) -> String {
        low_half(&self.registers[number])
    }

    /// A scratch slot.
    pub(super) fn slot(&self, index: usize) -> &str {
        &self.slots[index]
    }

    /// Whether all registers that a function must preserve are as at the start.
    pub(super) fn preserves(&self) -> bool {
        // RBX, RSP, RBP, R12 to R15, and RDI, in which the next instruction expects the input.
        let preserved = [3, 4, 5, 7, 12, 13, 14, 15];
        preserved
            .into_iter()
            .all(|number| self.registers[number] == format!("r{number}"))
    }
}

fn low_half(term: &str) -> String {
    let extended = term.strip_prefix("((_ zero_extend 32) ");
    match extended.and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => inner.to_owned(),
        None => format!("((_ extract 31 0) {term})"),
    }
}

impl Code<'_> {
    /// All ways through the code from its first byte.
    ///
    /// # Errors
    /// What the model doesn't know.
    pub(super) fn outcomes(&self) -> Result<Vec<Outcome>, String> {
        let mut outcomes = Vec::new();
        let mut open = vec![(0, "true".to_owned(), Machine::start())];
        while let Some((at, condition, mut machine)) = open.pop() {
            let exit = if self.ends.contains(&at) {
                Some(Exit::At(at))
            } else {
                let insn = self.decode(at)?;
                let next = insn.next_ip() as usize;
                match insn.flow_control() {
                    FlowControl::Return => Some(Exit::Return),
                    FlowControl::UnconditionalBranch => {
                        let target = insn.near_branch_target() as usize;
                        open.push((target, condition.clone(), machine.clone()));
                        None
                    }
                    FlowControl::ConditionalBranch => {
                        let holds = machine.condition(insn.mnemonic())?;
                        let target = insn.near_branch_target() as usize;
                        let yes = format!("(and {condition} {holds})");
                        let no = format!("(and {condition} (not {holds}))");
                        open.push((target, yes, machine.clone()));
                        open.push((next, no, machine.clone()));
                        None
                    }
                    FlowControl::Next => {
                        if let Some(faults) = machine.step(&insn, self)? {
                            outcomes.push(Outcome {
                                exit: Exit::Fault,
                                condition: format!("(and {condition} {faults})"),
                                machine: machine.clone(),
                            });
                        }
                        open.push((next, condition.clone(), machine.clone()));
                        None
                    }
                    other => return Err(format!("{other:?}")),
                }
            };
            outcomes.extend(exit.map(|exit| Outcome {
                exit,
                condition,
                machine,
            }));
        }
        Ok(outcomes)
    }

    fn decode(&self, at: usize) -> Result<Instruction, String> {
        let rest = self.bytes.get(at..).ok_or("past the end")?;
        let mut decoder = Decoder::with_ip(64, rest, at as u64, DecoderOptions::NONE);
        let insn = decoder.decode();
        match insn.is_invalid() {
            true => Err(format!("no instruction at {at}")),
            false => Ok(insn),
        }
    }

    /// The constant of an instruction, as 32 bits.
    fn constant(&self, insn: &Instruction, operand: u32) -> String {
        let mut constants = self.constants.iter();
        let known = constants.find(|(at, _)| *at == insn.ip() as usize);
        match known {
            Some((_, term)) => term.clone(),
            None => hex32(insn.immediate(operand) as u32),
        }
    }
}

pub(super) fn hex32(value: u32) -> String {
    format!("#x{value:08x}")
}

/// The number of a 32-bit register in encodings.
fn half_register(register: Register) -> Result<usize, String> {
    match register.is_gpr32() {
        true => Ok(register.number()),
        false => Err(format!("{register:?}")),
    }
}

impl Machine {
    /// Executes an instruction that doesn't jump; the condition of a fault, if it may fault.
    fn step(&mut self, insn: &Instruction, code: &Code<'_>) -> Result<Option<String>, String> {
        let binary = |function: &str| Some(function.to_owned());
        let function = match insn.mnemonic() {
            Mnemonic::Mov => {
                let source = self.source(insn, 1, code)?;
                self.write(insn, source)?;
                return Ok(None);
            }
            Mnemonic::Add => binary("bvadd"),
            Mnemonic::Sub => binary("bvsub"),
            Mnemonic::And => binary("bvand"),
            Mnemonic::Or => binary("bvor"),
            Mnemonic::Xor => binary("bvxor"),
            Mnemonic::Imul => binary("bvmul"),
            Mnemonic::Shl => binary("bvshl"),
            Mnemonic::Shr => binary("bvlshr"),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Neg | Mnemonic::Div => None,
            other => return Err(format!("{other:?}")),
        };
        if let Some(function) = function {
            self.binary(insn, &function, code)?;
            return Ok(None);
        }
        match insn.mnemonic() {
            Mnemonic::Neg => {
                let old = self.source(insn, 0, code)?;
                self.write(insn, format!("(bvneg {old})"))?;
                self.flags = Flags::Unknown;
                Ok(None)
            }
            Mnemonic::Div => self.divide(insn, code).map(Some),
            compare => self
                .compare(insn, compare == Mnemonic::Cmp, code)
                .map(|()| None),
        }
    }

    fn binary(
        &mut self,
        insn: &Instruction,
        function: &str,
        code: &Code<'_>,
    ) -> Result<(), String> {
        // `imul` has a form with three operands, and one with one, which is refused.
        let (left, right) = match insn.op_count() {
            3 => (1, 2),
            2 => (0, 1),
            _ => return Err("one operand".to_owned()),
        };
        let left = self.source(insn, left, code)?;
        let right = match function {
            "bvshl" | "bvlshr" => self.distance(insn, code)?,
            _ => self.source(insn, right, code)?,
        };
        let result = format!("({function} {left} {right})");
        self.flags = match function {
            "bvand" | "bvor" | "bvxor" => logic_flags(&result),
            _ => Flags::Unknown,
        };
        self.write(insn, result)
    }

    /// The distance of a shift: the low five bits of CL or a constant.
    fn distance(&self, insn: &Instruction, code: &Code<'_>) -> Result<String, String> {
        let distance = match insn.op_kind(1) {
            OpKind::Immediate8 => code.constant(insn, 1),
            OpKind::Register if insn.op1_register() == Register::CL => self.low(1),
            other => return Err(format!("shift by {other:?}")),
        };
        Ok(format!("(bvand {distance} #x0000001f)"))
    }

    fn compare(&mut self, insn: &Instruction, is_cmp: bool, code: &Code<'_>) -> Result<(), String> {
        if insn.op_kind(0) == OpKind::Register && insn.op0_register() == Register::AL && !is_cmp {
            let constant = code.constant(insn, 1);
            let low = |term: &str| format!("((_ extract 7 0) {term})");
            let common = format!("(bvand {} {})", low(&self.low(0)), low(&constant));
            self.flags = Flags::Known {
                zero: format!("(= {common} #x00)"),
                carry: "false".to_owned(),
            };
            return Ok(());
        }
        let left = self.source(insn, 0, code)?;
        let right = self.source(insn, 1, code)?;
        self.flags = match is_cmp {
            true => Flags::Known {
                zero: format!("(= {left} {right})"),
                carry: format!("(bvult {left} {right})"),
            },
            false => logic_flags(&format!("(bvand {left} {right})")),
        };
        Ok(())
    }

    /// EAX = EDX:EAX / operand. Where EDX is 0, which is told apart to keep terms small, the operands have 32 bits.
    fn divide(&mut self, insn: &Instruction, code: &Code<'_>) -> Result<String, String> {
        let by = self.source(insn, 0, code)?;
        let (low, high) = (self.low(0), self.low(2));
        let faults = format!("(or (= {by} #x00000000) (bvuge {high} {by}))");
        let wide = |function: &str| {
            let dividend = format!("(concat {high} {low})");
            format!("((_ extract 31 0) ({function} {dividend} (concat #x00000000 {by})))")
        };
        let result = |function: &str, wide_function: String| {
            format!("(ite (= {high} #x00000000) ({function} {low} {by}) {wide_function})")
        };
        let quotient = result("bvudiv", wide("bvudiv"));
        let remainder = result("bvurem", wide("bvurem"));
        self.registers[0] = format!("((_ zero_extend 32) {quotient})");
        self.registers[2] = format!("((_ zero_extend 32) {remainder})");
        self.flags = Flags::Unknown;
        Ok(faults)
    }

    /// An operand of 32 bits.
    fn source(&self, insn: &Instruction, operand: u32, code: &Code<'_>) -> Result<String, String> {
        match insn.op_kind(operand) {
            OpKind::Register => {
                let number = half_register(insn.op_register(operand))?;
                Ok(self.low(number))
            }
            OpKind::Immediate32 | OpKind::Immediate8to32 => Ok(code.constant(insn, operand)),
            OpKind::Memory => match place(insn)? {
                Place::Word(index) => Ok(format!("w{index}")),
                Place::Slot(index) => Ok(self.slots[index].clone()),
            },
            other => Err(format!("{other:?}")),
        }
    }

    /// Writes 32 bits to the first operand.
    fn write(&mut self, insn: &Instruction, value: String) -> Result<(), String> {
        match insn.op_kind(0) {
            OpKind::Register => {
                let number = half_register(insn.op0_register())?;
                self.registers[number] = format!("((_ zero_extend 32) {value})");
            }
            OpKind::Memory => match place(insn)? {
                Place::Slot(index) => self.slots[index] = value,
                Place::Word(_) => return Err("writes its input".to_owned()),
            },
            other => return Err(format!("{other:?}")),
        }
        Ok(())
    }

    /// Whether the jump is taken.
    fn condition(&self, jump: Mnemonic) -> Result<String, String> {
        let Flags::Known { zero, carry } = &self.flags else {
            return Err("flags that are not known".to_owned());
        };
        Ok(match jump {
            Mnemonic::Je => zero.clone(),
            Mnemonic::Jne => format!("(not {zero})"),
            Mnemonic::Jb => carry.clone(),
            Mnemonic::Jae => format!("(not {carry})"),
            Mnemonic::Jbe => format!("(or {carry} {zero})"),
            Mnemonic::Ja => format!("(not (or {carry} {zero}))"),
            other => return Err(format!("{other:?}")),
        })
    }
}

/// The flags of an operation on single bits.
fn logic_flags(result: &str) -> Flags {
    Flags::Known {
        zero: format!("(= {result} #x00000000)"),
        carry: "false".to_owned(),
    }
}

/// A place in memory.
enum Place {
    Word(usize),
    Slot(usize),
}

/// The memory operand of an instruction.
fn place(insn: &Instruction) -> Result<Place, String> {
    let offset = insn.memory_displacement64() as i64;
    let is_plain = insn.memory_index() == Register::None
        && insn.segment_prefix() == Register::None
        && insn.memory_size().size() == 4
        && offset % 4 == 0;
    let words = WORDS as i64;
    match insn.memory_base() {
        Register::RDI if is_plain && (0..4 * words).contains(&offset) => {
            Ok(Place::Word(offset as usize / 4))
        }
        Register::RSP if is_plain && (-4 * words..0).contains(&offset) => {
            Ok(Place::Slot((offset / 4 + words) as usize))
        }
        base => Err(format!("address {base:?} + {offset}")),
    }
}

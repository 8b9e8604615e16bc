//! The effects of a few x86-64 instructions, as terms of SMT-LIB.
//!
//! Code is decoded by another project's decoder, so the proof is about the instructions that the machine would execute.
//! The model follows volume 2 of Intel's manual; code with any other instruction, operand or address is rejected.
//!
//! Registers are terms of 64 bits. Memory consists of the accessible parts: sixteen words below the stack pointer, and
//! either sixteen words behind the first argument, or a packet with the length in the second one and a record at the
//! fifth one. An access to a packet outside of it is an exception.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// The scratch slots, and the words of the input.
const WORDS: usize = 16;

/// The numbers of a record: the values beside a packet, which of them are known, and where the network layer begins.
const RECORD: usize = 18;

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
    /// The conditions of exceptions by the last instruction.
    faults: Vec<String>,
    /// The place of the last load from a packet.
    loaded_from: Option<String>,
}

/// The flags of zero, carry and sign, or that they must not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Flags {
    Unknown,
    Known {
        zero: String,
        carry: String,
        sign: String,
    },
}

/// Decoded code with terms in place of some constants.
pub(super) struct Code<'a> {
    pub(super) bytes: &'a [u8],
    /// Offsets of instructions, with terms of 32 bits for their constants.
    pub(super) constants: &'a [(usize, String)],
    /// The same for displacements of addresses in the packet, and of addresses that are computed.
    pub(super) displacements: &'a [(usize, String)],
    /// The offsets where execution leaves.
    pub(super) ends: [usize; 2],
    /// Whether the input is a packet.
    pub(super) has_packet: bool,
}

/// The declarations of the constants in the terms of [`Machine::start`].
pub(super) fn declarations() -> String {
    let constant =
        |name: &str, index, bits| format!("(declare-const {name}{index} (_ BitVec {bits}))\n");
    let registers = (0..16).map(|index| constant("r", index, 64));
    let words = (0..WORDS).flat_map(|index| ["m", "w"].map(|name| constant(name, index, 32)));
    let record = (0..RECORD).map(|index| constant("d", index, 32));
    let packet = "(declare-fun p ((_ BitVec 64)) (_ BitVec 8))\n".to_owned();
    registers
        .chain(words)
        .chain(record)
        .chain([packet])
        .collect()
}

impl Machine {
    /// Anything in registers and slots.
    pub(super) fn start() -> Machine {
        Machine {
            registers: std::array::from_fn(|index| format!("r{index}")),
            slots: std::array::from_fn(|index| format!("m{index}")),
            flags: Flags::Unknown,
            faults: Vec::new(),
            loaded_from: None,
        }
    }

    /// The place in the packet that was loaded from, if any was.
    pub(super) fn loaded_from(&self) -> Option<&str> {
        self.loaded_from.as_deref()
    }

    /// The low half of a register, by its number.
    pub(super) fn low(&self, number: usize) -> String {
        low_half(&self.registers[number])
    }

    /// Whether the register of X is as at the start or has zeros above X.
    pub(super) fn x_fills_register(&self) -> bool {
        let x = &self.registers[1];
        x == "r1" || x.starts_with("((_ zero_extend 32) ")
    }

    /// A scratch slot.
    pub(super) fn slot(&self, index: usize) -> &str {
        &self.slots[index]
    }

    /// Whether all callee-saved registers are as at the start, and also the registers with the input: RSI, RDI, R8 and
    /// R9.
    pub(super) fn preserves(&self) -> bool {
        let preserved = [3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15];
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
    /// All paths through the code from its first byte.
    ///
    /// # Errors
    /// The instruction outside of the model.
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
                        machine.step(&insn, self)?;
                        for faults in std::mem::take(&mut machine.faults) {
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
        match insn.is_invalid() || insn.segment_prefix() != Register::None {
            true => Err(format!("no instruction at {at}, or one with a segment")),
            false => Ok(insn),
        }
    }

    /// The constant of an instruction, as 32 bits.
    fn constant(&self, insn: &Instruction, operand: u32) -> String {
        match term_at(self.constants, insn) {
            Some(term) => term.to_owned(),
            None => hex32(insn.immediate(operand) as u32),
        }
    }

    /// The displacement of an instruction, as 32 bits.
    fn displacement(&self, insn: &Instruction) -> String {
        match term_at(self.displacements, insn) {
            Some(term) => term.to_owned(),
            None => hex32(insn.memory_displacement64() as u32),
        }
    }

    /// The memory operand of an instruction, if it is no place in a packet.
    fn place(&self, insn: &Instruction) -> Result<Place, String> {
        let offset = insn.memory_displacement64() as i64;
        let is_plain = insn.memory_index() == Register::None
            && insn.memory_size().size() == 4
            && offset % 4 == 0;
        let bytes = 4 * WORDS as i64;
        match insn.memory_base() {
            Register::RDI if is_plain && !self.has_packet && (0..bytes).contains(&offset) => {
                Ok(Place::Word(offset as usize / 4))
            }
            Register::R8
                if is_plain && self.has_packet && (0..4 * RECORD as i64).contains(&offset) =>
            {
                Ok(Place::Record(offset as usize / 4))
            }
            Register::RSP if is_plain && (-bytes..0).contains(&offset) => {
                Ok(Place::Slot((offset + bytes) as usize / 4))
            }
            base => Err(format!("address {base:?} + {offset}")),
        }
    }
}

fn term_at<'a>(terms: &'a [(usize, String)], insn: &Instruction) -> Option<&'a str> {
    let found = terms.iter().find(|(at, _)| *at == insn.ip() as usize);
    found.map(|(_, term)| term.as_str())
}

/// A place in memory.
enum Place {
    Word(usize),
    Slot(usize),
    Record(usize),
}

pub(super) fn hex32(value: u32) -> String {
    format!("#x{value:08x}")
}

pub(super) fn hex64(value: u64) -> String {
    format!("#x{value:016x}")
}

/// A term of 32 bits as one of 64.
pub(super) fn extended(term: &str) -> String {
    format!("((_ zero_extend 32) {term})")
}

/// The condition that so many bytes from an offset on are not all inside of the packet.
pub(super) fn is_outside(start: &str, size: u64) -> String {
    let (len, size) = ("r6", hex64(size));
    format!("(or (bvult {len} {size}) (bvugt {start} (bvsub {len} {size})))")
}

/// The byte of the packet at a distance from an offset.
pub(super) fn packet_byte(start: &str, distance: u64) -> String {
    format!("(p (bvadd {start} {}))", hex64(distance))
}

impl Machine {
    /// Executes an instruction that doesn't jump.
    fn step(&mut self, insn: &Instruction, code: &Code<'_>) -> Result<(), String> {
        match insn.mnemonic() {
            Mnemonic::Mov => {
                let source = self.source(insn, 1, code)?;
                self.write(insn, &source, code)
            }
            Mnemonic::Movzx => {
                let bits = 8 * insn.memory_size().size();
                let loaded = self.load(insn, code)?;
                let loaded = format!("((_ zero_extend {}) {loaded})", 32 - bits);
                self.write(insn, &loaded, code)
            }
            Mnemonic::Lea if insn.op0_register().is_gpr64() => {
                let address = self.address(insn, insn.memory_base(), code);
                self.write(insn, &address, code)
            }
            Mnemonic::Lea => {
                let address = self.low_address(insn, code);
                self.write(insn, &address, code)
            }
            Mnemonic::Bswap => {
                let old = self.source(insn, 0, code)?;
                let byte = |low: u32| format!("((_ extract {} {low}) {old})", low + 7);
                let bytes = [0, 8, 16, 24].map(byte).join(" ");
                self.write(insn, &format!("(concat {bytes})"), code)
            }
            Mnemonic::Rol => self.swap_low_bytes(insn),
            Mnemonic::Add => self.binary(insn, "bvadd", code),
            Mnemonic::Sub => self.binary(insn, "bvsub", code),
            Mnemonic::And => self.binary(insn, "bvand", code),
            Mnemonic::Or => self.binary(insn, "bvor", code),
            Mnemonic::Xor => self.binary(insn, "bvxor", code),
            Mnemonic::Imul => self.binary(insn, "bvmul", code),
            Mnemonic::Shl => self.binary(insn, "bvshl", code),
            Mnemonic::Shr => self.binary(insn, "bvlshr", code),
            Mnemonic::Cmp => self.compare(insn, true, code),
            Mnemonic::Test => self.compare(insn, false, code),
            Mnemonic::Neg => {
                let old = self.source(insn, 0, code)?;
                self.flags = Flags::Unknown;
                self.write(insn, &format!("(bvneg {old})"), code)
            }
            Mnemonic::Div => self.divide(insn, code),
            other => Err(format!("{other:?}")),
        }
    }

    /// `rol` of 16 bits by 8.
    fn swap_low_bytes(&mut self, insn: &Instruction) -> Result<(), String> {
        let register = insn.op0_register();
        if !register.is_gpr16() || insn.op_kind(1) != OpKind::Immediate8 || insn.immediate8() != 8 {
            return Err("another rotation".to_owned());
        }
        let old = &self.registers[register.number()];
        let part = |high: u32, low: u32| format!("((_ extract {high} {low}) {old})");
        let parts = [part(31, 16), part(7, 0), part(15, 8)].join(" ");
        let swapped = match old.starts_with("((_ zero_extend 32)") {
            true => extended(&format!("(concat {parts})")),
            false => format!("(concat {} {parts})", part(63, 32)),
        };
        self.registers[register.number()] = swapped;
        self.flags = Flags::Unknown;
        Ok(())
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
            "bvand" | "bvor" | "bvxor" => Flags::of_bits(&result, insn),
            "bvsub" => Flags::of_difference(&left, &right),
            _ => Flags::Unknown,
        };
        self.write(insn, &result, code)
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
                sign: format!("(bvslt {common} #x00)"),
            };
            return Ok(());
        }
        let left = self.source(insn, 0, code)?;
        let right = self.source(insn, 1, code)?;
        self.flags = match is_cmp {
            true => Flags::of_difference(&left, &right),
            false => Flags::of_bits(&format!("(bvand {left} {right})"), insn),
        };
        Ok(())
    }

    /// EAX = EDX:EAX / operand. The case EDX = 0 is separate to keep terms small: the operands then have 32 bits.
    fn divide(&mut self, insn: &Instruction, code: &Code<'_>) -> Result<(), String> {
        let by = self.source(insn, 0, code)?;
        let (low, high) = (self.low(0), self.low(2));
        let faults = format!("(or (= {by} #x00000000) (bvuge {high} {by}))");
        self.faults.push(faults);
        let wide = |function: &str| {
            let dividend = format!("(concat {high} {low})");
            format!("((_ extract 31 0) ({function} {dividend} (concat #x00000000 {by})))")
        };
        let result = |function: &str| {
            let wide = wide(function);
            extended(&format!(
                "(ite (= {high} #x00000000) ({function} {low} {by}) {wide})"
            ))
        };
        self.registers[0] = result("bvudiv");
        self.registers[2] = result("bvurem");
        self.flags = Flags::Unknown;
        Ok(())
    }

    /// An operand of 32 bits, or of 64 if it is such a register.
    fn source(
        &mut self,
        insn: &Instruction,
        operand: u32,
        code: &Code<'_>,
    ) -> Result<String, String> {
        match insn.op_kind(operand) {
            OpKind::Register => {
                let register = insn.op_register(operand);
                match (register.is_gpr32(), register.is_gpr64()) {
                    (true, _) => Ok(self.low(register.number())),
                    (_, true) => Ok(self.registers[register.number()].clone()),
                    _ => Err(format!("{register:?}")),
                }
            }
            OpKind::Immediate32 | OpKind::Immediate8to32 => Ok(code.constant(insn, operand)),
            OpKind::Memory if insn.memory_size().size() == 4 => self.load(insn, code),
            other => Err(format!("{other:?}")),
        }
    }

    /// The loaded value, with the width of the memory operand.
    fn load(&mut self, insn: &Instruction, code: &Code<'_>) -> Result<String, String> {
        if code.has_packet && insn.memory_base() == Register::RDI {
            if self.registers[7] != "r7" || insn.memory_index_scale() != 1 {
                return Err("an address that isn't in the packet".to_owned());
            }
            let size = insn.memory_size().size() as u64;
            let start = self.address(insn, Register::None, code);
            self.faults.push(is_outside(&start, size));
            let bytes = (0..size)
                .rev()
                .map(|distance| packet_byte(&start, distance));
            let bytes = bytes.collect::<Vec<_>>().join(" ");
            self.loaded_from = Some(start);
            return Ok(match size {
                1 => bytes,
                _ => format!("(concat {bytes})"),
            });
        }
        Ok(match code.place(insn)? {
            Place::Word(index) => format!("w{index}"),
            Place::Record(index) => format!("d{index}"),
            Place::Slot(index) => self.slots[index].clone(),
        })
    }

    /// The sum of a register, the index and the displacement of a memory operand.
    fn address(&self, insn: &Instruction, base: Register, code: &Code<'_>) -> String {
        let mut sum = format!("((_ sign_extend 32) {})", code.displacement(insn));
        for register in [base, insn.memory_index()] {
            if register != Register::None {
                sum = format!("(bvadd {} {sum})", self.registers[register.number()]);
            }
        }
        sum
    }

    /// The low half of that sum: the sum of low halves, which has fewer bits to reason about.
    fn low_address(&self, insn: &Instruction, code: &Code<'_>) -> String {
        let mut sum = code.displacement(insn);
        for register in [insn.memory_index(), insn.memory_base()] {
            if register != Register::None {
                sum = match sum.as_str() {
                    "#x00000000" => self.low(register.number()),
                    rest => format!("(bvadd {} {rest})", self.low(register.number())),
                };
            }
        }
        sum
    }

    /// Writes to the first operand: 32 bits, or 64 to such a register.
    fn write(&mut self, insn: &Instruction, value: &str, code: &Code<'_>) -> Result<(), String> {
        match insn.op_kind(0) {
            OpKind::Register => {
                let register = insn.op0_register();
                let value = match (register.is_gpr32(), register.is_gpr64()) {
                    (true, _) => extended(value),
                    (_, true) => value.to_owned(),
                    _ => return Err(format!("{register:?}")),
                };
                self.registers[register.number()] = value;
            }
            OpKind::Memory => match code.place(insn)? {
                Place::Slot(index) => value.clone_into(&mut self.slots[index]),
                _ => return Err("writes its input".to_owned()),
            },
            other => return Err(format!("{other:?}")),
        }
        Ok(())
    }

    /// Whether the jump is taken.
    fn condition(&self, jump: Mnemonic) -> Result<String, String> {
        let Flags::Known { zero, carry, sign } = &self.flags else {
            return Err("flags that are not known".to_owned());
        };
        Ok(match jump {
            Mnemonic::Je => zero.clone(),
            Mnemonic::Jne => format!("(not {zero})"),
            Mnemonic::Jb => carry.clone(),
            Mnemonic::Jae => format!("(not {carry})"),
            Mnemonic::Jbe => format!("(or {carry} {zero})"),
            Mnemonic::Ja => format!("(not (or {carry} {zero}))"),
            Mnemonic::Js => sign.clone(),
            Mnemonic::Jns => format!("(not {sign})"),
            other => return Err(format!("{other:?}")),
        })
    }
}

impl Flags {
    /// The flags of an operation on single bits, as many as the first operand of the instruction has.
    fn of_bits(result: &str, insn: &Instruction) -> Flags {
        let is_full = insn.op_kind(0) == OpKind::Register && insn.op0_register().is_gpr64();
        let zero = if is_full { hex64(0) } else { hex32(0) };
        Flags::Known {
            zero: format!("(= {result} {zero})"),
            carry: "false".to_owned(),
            sign: format!("(bvslt {result} {zero})"),
        }
    }

    fn of_difference(left: &str, right: &str) -> Flags {
        Flags::Known {
            zero: format!("(= {left} {right})"),
            carry: format!("(bvult {left} {right})"),
            sign: format!("(bvslt (bvsub {left} {right}) (bvsub {left} {left}))"),
        }
    }
}

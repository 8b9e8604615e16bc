//! Random extended programs, most of which are safe: filters of sockets that compute with registers, stack, context
//! and packet.
//!
//! Registers 0 and 2 to 5, 7 to 9 have numbers all the time, r6 is the context. Now and then a program has something
//! that isn't safe, so both answers of a checker are seen.

use tamis_abi::Endian;
use tamis_ebpf_vm::insn::Address;
use tamis_ebpf_vm::socket::LOAD_BYTES;
use tamis_ebpf_vm::{
    AluOp, Atomic, Bits, Cond, Insn, Op, Place, Program, Reg, Size, Source, Swap, Width,
};

use crate::rng::Rng;

/// The registers with numbers.
const NUMBERS: [u8; 8] = [0, 2, 3, 4, 5, 7, 8, 9];
/// The registers that calls leave without a value, and that have one all the time.
const LOST: [u8; 4] = [2, 3, 4, 5];
/// The deepest byte of the stack that is used.
const DEPTH: i16 = 64;

/// An instruction, or a jump over some of the following ones.
#[derive(Clone, Copy)]
enum Item {
    Op(Op),
    /// Branches over this many items.
    Over(Width, Cond, Reg, Source, usize),
    /// Branches over the rest of its part and this many parts.
    OverParts(Width, Cond, Reg, Source, usize),
    /// Calls the function at the end.
    Call,
}

struct Generator<'r> {
    rng: &'r mut Rng,
    items: Vec<Item>,
    /// Where parts begin; the end is one of them.
    parts: Vec<usize>,
    /// Whether there is a function at the end; with one, packets aren't loaded from.
    has_function: bool,
    /// One in this many choices is unsafe.
    unsafe_every: u64,
}

/// A program of about `body` random parts for machines of this byte order. One in eight has something unsafe in many
/// places, one in eight nowhere.
///
/// # Panics
/// Never: jumps lead forwards and the last instruction ends.
pub fn program(rng: &mut Rng, body: usize, endian: Endian) -> Program {
    let unsafe_every = *rng.choose(&[20, 400, 400, 400, 400, 1000, 1000, u64::MAX]);
    let has_function = rng.chance(1, 3);
    let mut generator = Generator {
        rng,
        items: Vec::new(),
        parts: Vec::new(),
        has_function,
        unsafe_every,
    };
    generator.begin();
    if has_function {
        generator.call();
    }
    for _ in 0..body {
        generator.parts.push(generator.items.len());
        generator.part();
    }
    generator.parts.push(generator.items.len());
    generator.end();
    let function_at = generator.items.len();
    if has_function {
        generator.function();
    }
    let ops = linked(&generator.items, &generator.parts, function_at);
    Program::from_ops(&ops, endian).expect("jumps lead forwards")
}

/// The stored instructions of a program with up to three changes, after which they may still be a safe program.
pub fn altered(rng: &mut Rng, program: &Program) -> Vec<Insn> {
    let mut insns = program.insns().to_vec();
    for _ in 0..rng.range(1..=3) {
        let at = rng.index(insns.len());
        let other = insns[rng.index(insns.len())];
        let insn = &mut insns[at];
        match rng.range(0..=9) {
            0 => insn.code ^= 1 << rng.range(0..=7),
            1 => insn.dst = rng.range(0..=10) as u8,
            2 => insn.src = rng.range(0..=10) as u8,
            3 => insn.offset = rng.range(0..=20) as i16 - 10,
            4 => insn.offset ^= 1 << rng.range(0..=6),
            5 => insn.imm = rng.interesting_u64() as i32,
            6 => insn.imm ^= 1 << rng.range(0..=7),
            7 => insn.code = other.code,
            8 => *insn = other,
            _ => {
                insns.remove(at);
                if insns.is_empty() {
                    break;
                }
            }
        }
    }
    insns
}

/// Unstructured instructions: codes of the instruction set or random ones, fields that often fit, `r0 = 0` before them and
/// an end.
pub fn noise(rng: &mut Rng, len_insns: usize) -> Vec<Insn> {
    const CODES: [u8; 32] = [
        0x07, 0x0f, 0x04, 0x0c, 0xb7, 0xbf, 0xb4, 0xbc, 0x57, 0x27, 0x1f, 0xa7, 0x87, 0xd4, 0xdc,
        0x37, 0x15, 0x1d, 0x16, 0x25, 0x05, 0x06, 0x85, 0x95, 0x61, 0x79, 0x7b, 0x63, 0x7a, 0x81,
        0xdb, 0x18,
    ];
    let mut insns = vec![Insn {
        code: 0xb7,
        ..Insn::default()
    }];
    for _ in 2..len_insns {
        let is_random = rng.chance(1, 20);
        let register = |rng: &mut Rng| *rng.choose(&[0, 0, 0, 1, 2, 10]);
        let mut insn = Insn {
            code: match is_random {
                true => rng.next_u32() as u8,
                false => *rng.choose(&CODES),
            },
            dst: register(rng),
            src: register(rng),
            offset: *rng.choose(&[0, 0, 0, 0, 1, 2, -8, -1, 8, 48]),
            imm: match rng.chance(1, 2) {
                true => 0,
                false => rng.interesting_u64() as i32,
            },
        };
        // Mostly without what the instruction doesn't use.
        if rng.chance(9, 10) {
            let class = insn.code & 7;
            let is_memory = (1..=3).contains(&class);
            let has_register = is_memory || insn.code & 8 != 0;
            (insn.src, insn.imm) = match has_register {
                true => (insn.src, 0),
                false => (0, insn.imm),
            };
            insn.offset = match class {
                4 | 7 => 0,
                _ => insn.offset,
            };
        }
        insns.push(insn);
    }
    insns.push(Insn {
        code: 0x95,
        ..Insn::default()
    });
    insns
}

/// The instructions, with distances in stored instructions.
fn linked(items: &[Item], parts: &[usize], function_at: usize) -> Vec<Op> {
    let places = |item: &Item| match item {
        Item::Op(op) => op.places(),
        Item::Over(..) | Item::OverParts(..) | Item::Call => 1,
    };
    let mut starts = vec![0];
    for item in items {
        starts.push(starts[starts.len() - 1] + places(item));
    }
    let resolve = |(index, item): (usize, &Item)| match *item {
        Item::Op(op) => op,
        Item::Over(width, cond, dst, source, over) => {
            let skip = starts[index + 1 + over] - starts[index + 1];
            Op::Branch(width, cond, dst, source, skip as i16)
        }
        Item::OverParts(width, cond, dst, source, over) => {
            let next = parts.partition_point(|part| *part <= index);
            let target = parts[(next + over).min(parts.len() - 1)];
            let skip = starts[target] - starts[index + 1];
            Op::Branch(width, cond, dst, source, skip as i16)
        }
        Item::Call => Op::CallLocal((starts[function_at] - starts[index + 1]) as i32),
    };
    items.iter().enumerate().map(resolve).collect()
}

fn reg(number: u8) -> Reg {
    Reg::new(number).expect("numbers of registers are at most 10")
}

fn at_frame(offset: i16) -> Address {
    Address {
        base: Reg::FRAME,
        offset,
    }
}

fn mov(dst: Reg, source: Source) -> Op {
    Op::Alu(Width::W64, AluOp::Mov, dst, source)
}

impl Generator<'_> {
    fn push(&mut self, op: Op) {
        self.items.push(Item::Op(op));
    }

    fn is_unsafe(&mut self) -> bool {
        self.unsafe_every != u64::MAX && self.rng.chance(1, self.unsafe_every)
    }

    fn number_register(&mut self) -> Reg {
        match self.is_unsafe() {
            true => reg(*self.rng.choose(&[1, 6, 2, 7])),
            false => reg(*self.rng.choose(&NUMBERS)),
        }
    }

    fn width(&mut self) -> Width {
        *self.rng.choose(&Width::ALL)
    }

    fn source(&mut self) -> Source {
        match self.rng.chance(1, 2) {
            true => Source::Imm(self.rng.interesting_u64() as i32),
            false => Source::Reg(self.number_register()),
        }
    }

    /// Gives a register a constant or a number of the context.
    fn number(&mut self, dst: Reg) {
        let value = self.rng.interesting_u64();
        let context = |offset| Address {
            base: Reg::R6,
            offset,
        };
        match self.rng.range(0..=5) {
            3 => self.push(Op::Load(Size::D, dst, context(48))),
            4 => self.push(Op::LoadSigned(Size::B, dst, context(60))),
            5 => self.push(Op::Load(Size::W, dst, context(8))),
            0 => self.push(Op::LoadImm64(dst, value)),
            1 => self.push(Op::Alu(
                Width::W32,
                AluOp::Mov,
                dst,
                Source::Imm(value as i32),
            )),
            _ => self.push(mov(dst, Source::Imm(value as i32))),
        }
    }

    /// Gives all registers and the used part of the stack a value.
    fn begin(&mut self) {
        self.push(mov(Reg::R6, Source::Reg(Reg::R1)));
        for number in NUMBERS {
            if !self.is_unsafe() {
                self.number(reg(number));
            }
        }
        for slot in 1..=DEPTH / 8 {
            if !self.is_unsafe() {
                let imm = self.rng.interesting_u64() as i32;
                self.push(Op::StoreImm(Size::D, at_frame(-8 * slot), imm));
            }
        }
    }

    /// Brings everything to the lower half of r0.
    fn end(&mut self) {
        let into = |op, dst, src| Op::Alu(Width::W64, op, dst, Source::Reg(src));
        for number in NUMBERS.into_iter().skip(1) {
            self.push(Op::Alu(Width::W64, AluOp::Mul, Reg::R0, Source::Imm(31)));
            self.push(into(AluOp::Add, Reg::R0, reg(number)));
        }
        let r2 = reg(2);
        for slot in 1..=DEPTH / 8 {
            self.push(Op::Load(Size::D, r2, at_frame(-8 * slot)));
            self.push(Op::Alu(Width::W64, AluOp::Mul, Reg::R0, Source::Imm(31)));
            self.push(into(AluOp::Xor, Reg::R0, r2));
        }
        self.push(into(AluOp::Mov, r2, Reg::R0));
        self.push(Op::Alu(Width::W64, AluOp::Rsh, r2, Source::Imm(32)));
        self.push(into(AluOp::Xor, Reg::R0, r2));
        self.push(Op::Exit);
    }

    /// A function of the context and two numbers that uses its own stack.
    fn function(&mut self) {
        let (r2, r3) = (reg(2), reg(3));
        self.push(mov(Reg::R6, Source::Reg(Reg::R1)));
        self.push(mov(Reg::R0, Source::Reg(r2)));
        self.push(Op::Store(Size::D, at_frame(-8), r3));
        for _ in 0..self.rng.range(0..=6) {
            let dst = reg(*self.rng.choose(&[0, 2, 3]));
            let src = reg(*self.rng.choose(&[0, 2, 3]));
            let (width, op) = (self.width(), *self.rng.choose(&AluOp::ALL));
            self.push(Op::Alu(width, op, dst, Source::Reg(src)));
        }
        self.push(Op::Load(Size::D, r3, at_frame(-8)));
        self.push(Op::Alu(Width::W64, AluOp::Add, Reg::R0, Source::Reg(r3)));
        self.push(Op::Exit);
    }

    fn part(&mut self) {
        match self.rng.range(0..=15) {
            0..=4 => self.arithmetic(),
            5 => {
                let dst = self.number_register();
                self.number(dst);
            }
            6 | 7 => self.stack(),
            8 => self.context(),
            9 => self.atomic(),
            10..=12 => {
                let (width, cond) = (self.width(), *self.rng.choose(&Cond::ALL));
                let (dst, source) = (self.number_register(), self.source());
                let over = self.rng.range(0..=6) as usize;
                let branch = Item::OverParts(width, cond, dst, source, over);
                self.items.push(branch);
            }
            13 => self.bounded_access(),
            14 => self.short_loop(),
            _ => self.call(),
        }
    }

    fn arithmetic(&mut self) {
        let (width, dst) = (self.width(), self.number_register());
        let op = match self.rng.range(0..=9) {
            0 => Op::Neg(width, dst),
            1 => {
                let bits = *self.rng.choose(&[Bits::B8, Bits::B16, Bits::B32]);
                let width = if bits == Bits::B32 { Width::W64 } else { width };
                Op::MoveSigned(width, bits, dst, self.number_register())
            }
            2 => {
                let swap = *self.rng.choose(&[Swap::Little, Swap::Big, Swap::Always]);
                Op::Swap(
                    swap,
                    *self.rng.choose(&[Bits::B16, Bits::B32, Bits::B64]),
                    dst,
                )
            }
            _ => {
                let op = *self.rng.choose(&AluOp::ALL);
                let source = match (op, self.source()) {
                    (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Source::Imm(imm)) => {
                        let most = width.size().bits().count() as i32 - 1;
                        Source::Imm(imm & most)
                    }
                    (AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod, Source::Imm(0)) => {
                        Source::Imm(-1)
                    }
                    (_, source) => source,
                };
                Op::Alu(width, op, dst, source)
            }
        };
        self.push(op);
    }

    /// An aligned place of the used part of the stack.
    fn place(&mut self, size: Size) -> Address {
        if self.is_unsafe() {
            return at_frame(-(self.rng.range(0..=520) as i16));
        }
        let bytes = size.bytes() as u64;
        at_frame(-((self.rng.range(1..=DEPTH as u64 / bytes) * bytes) as i16))
    }

    fn stack(&mut self) {
        let size = *self.rng.choose(&Size::ALL);
        let place = self.place(size);
        let op = match self.rng.range(0..=3) {
            0 => Op::StoreImm(size, place, self.rng.interesting_u64() as i32),
            1 => Op::Store(size, place, self.number_register()),
            2 if size != Size::D => Op::LoadSigned(size, self.number_register(), place),
            _ => Op::Load(size, self.number_register(), place),
        };
        self.push(op);
    }

    fn context(&mut self) {
        let size = *self.rng.choose(&Size::ALL);
        let bytes = size.bytes() as u64;
        let in_cb = size == Size::D || self.rng.chance(1, 2);
        let offset = match in_cb {
            true => 48 + self.rng.range(0..=(20 - bytes) / bytes) * bytes,
            // Any word, or a part of `mark`.
            false if size == Size::W => 4 * self.rng.range(0..=11),
            false => 8 + self.rng.range(0..=3 / bytes) * bytes,
        };
        let offset = if self.is_unsafe() {
            self.rng.range(0..=90)
        } else {
            offset
        };
        let address = Address {
            base: Reg::R6,
            offset: offset as i16,
        };
        let op = match in_cb && self.rng.chance(1, 2) {
            true => Op::Store(size, address, self.number_register()),
            false => Op::Load(size, self.number_register(), address),
        };
        self.push(op);
    }

    fn atomic(&mut self) {
        let (width, atomic) = (self.width(), *self.rng.choose(&Atomic::ALL));
        let place = self.place(width.size());
        let src = self.number_register();
        self.push(Op::Atomic(width, atomic, place, src));
    }

    /// A byte of the stack at an offset that is bounded by a mask or a comparison.
    fn bounded_access(&mut self) {
        let (index, pointer) = (reg(2), reg(3));
        let most = i32::from(DEPTH) - 1;
        match self.rng.range(0..=11) {
            0..=5 => self.push(Op::Alu(Width::W64, AluOp::And, index, Source::Imm(most))),
            6 => self.push(Op::Alu(
                Width::W32,
                AluOp::Mod,
                index,
                Source::Imm(most + 1),
            )),
            _ => {
                let (width, most) = (Width::W64, Source::Imm(most));
                self.items.push(Item::Over(width, Cond::Le, index, most, 1));
                self.push(mov(index, Source::Imm(3)));
            }
        }
        let depth = if self.is_unsafe() { DEPTH + 8 } else { DEPTH };
        self.push(mov(pointer, Source::Reg(Reg::FRAME)));
        let down = Source::Imm(-i32::from(depth));
        self.push(Op::Alu(Width::W64, AluOp::Add, pointer, down));
        self.push(Op::Alu(Width::W64, AluOp::Add, pointer, Source::Reg(index)));
        let address = Address {
            base: pointer,
            offset: 0,
        };
        let value = reg(4);
        match self.rng.chance(1, 2) {
            true => self.push(Op::Load(Size::B, value, address)),
            false => self.push(Op::Store(Size::B, address, value)),
        }
        self.number(pointer);
    }

    /// A loop with a known number of rounds.
    fn short_loop(&mut self) {
        let (counter, sum) = (reg(9), reg(8));
        let rounds = self.rng.range(1..=5) as i32;
        self.push(mov(counter, Source::Imm(0)));
        self.push(Op::Alu(Width::W64, AluOp::Add, sum, Source::Reg(counter)));
        self.push(Op::Alu(Width::W64, AluOp::Add, counter, Source::Imm(1)));
        self.push(Op::Branch(
            Width::W64,
            Cond::Lt,
            counter,
            Source::Imm(rounds),
            -3,
        ));
    }

    /// A call or a load from the packet, after which the registers of arguments get values.
    fn call(&mut self) {
        if self.has_function {
            self.push(mov(Reg::R1, Source::Reg(Reg::R6)));
            self.items.push(Item::Call);
        } else if self.rng.chance(1, 2) {
            let size = *self.rng.choose(&[Size::B, Size::H, Size::W]);
            let offset = self.rng.range(0..=30) as i32;
            let place = match self.rng.chance(1, 2) {
                true => Place::Absolute(offset),
                false => {
                    let index = reg(7);
                    self.push(Op::Alu(Width::W32, AluOp::And, index, Source::Imm(15)));
                    Place::Indirect(index, offset - 5)
                }
            };
            self.push(Op::LoadPacket(size, place));
        } else {
            let bytes = 8 * self.rng.range(1..=4) as i32;
            self.push(mov(Reg::R1, Source::Reg(Reg::R6)));
            let offset = self.rng.range(0..=40) as i32;
            self.push(mov(reg(2), Source::Imm(offset)));
            self.push(mov(reg(3), Source::Reg(Reg::FRAME)));
            let down = Source::Imm(-i32::from(DEPTH));
            self.push(Op::Alu(Width::W64, AluOp::Add, reg(3), down));
            self.push(mov(reg(4), Source::Imm(bytes)));
            self.push(Op::CallHelper(LOAD_BYTES));
        }
        for number in LOST {
            if !self.is_unsafe() {
                self.number(reg(number));
            }
        }
    }
}

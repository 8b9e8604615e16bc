//! Classic BPF as the kernel's seccomp accepts and runs it, on calls of which some bits are unknown.
//!
//! The accepted instructions are those of `seccomp_check_filter` and `bpf_check_classic` (kernel/seccomp.c and
//! net/core/filter.c of Linux 6.18). The length is not limited, because a long program has a meaning, too.
//!
//! A value is 32 bits, each known or a bit of the call. Moves, shifts by known distances, `and` and `or` keep unknown
//! bits; anything else needs known ones, and the run stops at the first that is unknown.

use crate::table::{Cube, WORDS};

/// A bit of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bit {
    Known(bool),
    /// The bit of the call: 32 times its word plus its place.
    Open(u16),
}

/// A value.
#[derive(Clone, Copy)]
struct Value {
    /// The bits that are known.
    known: u32,
    /// Their values; 0 for the others.
    bits: u32,
    /// The bit of the call that each unknown bit is.
    from: [u16; 32],
}

/// The registers and the memory of a program that runs.
#[derive(Clone)]
pub struct Machine {
    pc: usize,
    a: Value,
    x: Value,
    memory: [Value; SLOTS],
}

/// An instruction: the code, the jumps if true and if false, the constant.
#[derive(Clone, Copy, Debug)]
struct Insn(u16, u8, u8, u32);

/// A program that the kernel would run, apart from its length.
#[derive(Clone, Debug)]
pub struct Program {
    insns: Vec<Insn>,
}

/// The codes that seccomp accepts: loads, stores and moves; arithmetic with the constant, with X, and negation; jumps;
/// returns.
const CODES: [u16; 41] = [
    0x20, 0x00, 0x01, 0x80, 0x81, 0x60, 0x61, 0x02, 0x03, 0x07, 0x87, //
    0x04, 0x14, 0x24, 0x34, 0x44, 0x54, 0x64, 0x74, 0xa4, //
    0x0c, 0x1c, 0x2c, 0x3c, 0x4c, 0x5c, 0x6c, 0x7c, 0xac, 0x84, //
    0x05, 0x15, 0x1d, 0x25, 0x2d, 0x35, 0x3d, 0x45, 0x4d, 0x06, 0x16,
];
/// Words of scratch memory.
const SLOTS: usize = 16;
/// The size of `struct seccomp_data`.
const LEN: u32 = 4 * WORDS as u32;

impl Program {
    /// Reads `struct sock_filter[]`.
    ///
    /// # Errors
    /// If the kernel would reject it: the instruction, from 0, and the reason.
    pub fn parse(bytes: &[u8], is_big_endian: bool) -> Result<Program, String> {
        if bytes.is_empty() || !bytes.len().is_multiple_of(8) {
            return Err(" its length is no multiple of 8 bytes".into());
        }
        let insn = |bytes: &[u8]| {
            let mut bytes = std::array::from_fn(|at| bytes[at]);
            if is_big_endian {
                bytes[..2].reverse();
                bytes[4..].reverse();
            }
            let raw = u64::from_le_bytes(bytes);
            Insn(
                raw as u16,
                (raw >> 16) as u8,
                (raw >> 24) as u8,
                (raw >> 32) as u32,
            )
        };
        let insns: Vec<Insn> = bytes.chunks_exact(8).map(insn).collect();
        // The slots that are written on every path to an instruction.
        let mut written = vec![u16::MAX; insns.len()];
        written[0] = 0;
        for (pc, Insn(code, jt, jf, k)) in insns.iter().copied().enumerate() {
            let slot = 1u16.checked_shl(k).unwrap_or(0);
            let skips = match code {
                0x06 | 0x16 => vec![],
                0x05 => vec![k as usize],
                _ if code & 0x07 == 0x05 => vec![jt.into(), jf.into()],
                _ => vec![0],
            };
            let fault = match code {
                _ if !CODES.contains(&code) => "seccomp doesn't accept its code",
                _ if skips.iter().any(|skip| *skip >= insns.len() - pc - 1) => {
                    "it leads beyond the end"
                }
                0x20 if k >= LEN || k % 4 != 0 => "the call has no word there",
                0x02 | 0x03 | 0x60 | 0x61 if slot == 0 => "there is no such memory",
                0x60 | 0x61 if written[pc] & slot == 0 => "it reads memory before it is written",
                0x34 if k == 0 => "it divides by 0",
                0x64 | 0x74 if k > 31 => "it shifts by more than 31",
                _ => "",
            };
            if !fault.is_empty() {
                return Err(format!(" instruction {pc}: {fault}"));
            }
            let stores = if code == 0x02 || code == 0x03 {
                slot
            } else {
                0
            };
            for skip in skips {
                written[pc + 1 + skip] &= written[pc] | stores;
            }
        }
        Ok(Program { insns })
    }

    /// The count of instructions.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no program is empty")]
    pub fn len(&self) -> usize {
        self.insns.len()
    }

    /// Runs the program on a cube until it returns a value.
    ///
    /// # Errors
    /// If an instruction depends on a bit that the cube leaves open, its number: 32 times the word plus the bit. The
    /// machine then is before that instruction. Also if no steps are left.
    pub fn run(&self, at: &mut Machine, cube: &Cube, steps_left: &mut u64) -> Result<u32, u16> {
        loop {
            *steps_left = steps_left.checked_sub(1).ok_or(0u16)?;
            let Insn(code, jt, jf, k) = self.insns[at.pc];
            let right = if code & 0x08 == 0 {
                Value::constant(k)
            } else {
                at.x
            };
            let slot = k as usize % SLOTS;
            let mut skip = 0;
            match code {
                0x00 => at.a = Value::constant(k),
                0x01 => at.x = Value::constant(k),
                0x80 => at.a = Value::constant(LEN),
                0x81 => at.x = Value::constant(LEN),
                0x20 => at.a = Value::word(cube, k as usize / 4),
                0x60 => at.a = at.memory[slot],
                0x61 => at.x = at.memory[slot],
                0x02 => at.memory[slot] = at.a,
                0x03 => at.memory[slot] = at.x,
                0x07 => at.x = at.a,
                0x87 => at.a = at.x,
                0x06 => return Ok(k),
                0x16 => return at.a.number(),
                0x05 => skip = k as usize,
                _ if code & 0x07 == 0x05 => {
                    let holds = test(code & 0xf0, &at.a, &right)?;
                    skip = usize::from(if holds { jt } else { jf });
                }
                // A division by 0 ends the program.
                _ if code & 0xf0 == 0x30 && right.number()? == 0 => return Ok(0),
                _ => at.a = arithmetic(code & 0xf0, &at.a, &right)?,
            }
            at.pc += 1 + skip;
        }
    }
}

impl Machine {
    /// The machine before the first instruction.
    #[must_use]
    pub fn start() -> Machine {
        let [a, x] = [Value::constant(0); 2];
        let memory = [a; SLOTS];
        Machine {
            pc: 0,
            a,
            x,
            memory,
        }
    }

    /// Enters a bit of the call that was open.
    pub fn learn(&mut self, open: u16, is_set: bool) {
        for value in [&mut self.a, &mut self.x]
            .into_iter()
            .chain(&mut self.memory)
        {
            for place in 0..32 {
                if value.known >> place & 1 == 0 && value.from[place] == open {
                    value.known |= 1 << place;
                    value.bits |= u32::from(is_set) << place;
                }
            }
        }
    }
}

impl Value {
    fn constant(bits: u32) -> Value {
        let (known, from) = (u32::MAX, [0; 32]);
        Value { known, bits, from }
    }

    /// A word of the calls of a cube.
    fn word(cube: &Cube, word: usize) -> Value {
        let (known, bits) = (cube.mask[word], cube.value[word]);
        let from = std::array::from_fn(|bit| (word * 32 + bit) as u16);
        Value { known, bits, from }
    }

    fn from_bits(bits: impl Iterator<Item = Bit>) -> Value {
        let mut value = Value::constant(0);
        for (place, bit) in bits.enumerate() {
            match bit {
                Bit::Known(is_set) => value.bits |= u32::from(is_set) << place,
                Bit::Open(open) => {
                    value.known &= !(1 << place);
                    value.from[place] = open;
                }
            }
        }
        value
    }

    /// The bits, the lowest first.
    fn iter(&self) -> impl DoubleEndedIterator<Item = Bit> + ExactSizeIterator {
        (0..32).map(|place| match self.known >> place & 1 {
            1 => Bit::Known(self.bits >> place & 1 == 1),
            _ => Bit::Open(self.from[place]),
        })
    }

    /// The number, if all bits are known; else the highest that isn't.
    fn number(&self) -> Result<u32, u16> {
        match (!self.known).checked_ilog2() {
            None => Ok(self.bits),
            Some(place) => Err(self.from[place as usize]),
        }
    }
}

/// The bit that is `absorbing` if one of both is: `or` for true, `and` for false.
fn join(absorbing: bool, a: Bit, b: Bit) -> Result<Bit, u16> {
    match (a, b) {
        _ if a == Bit::Known(absorbing) || a == b => Ok(a),
        _ if b == Bit::Known(absorbing) => Ok(b),
        (Bit::Known(_), bit) | (bit, Bit::Known(_)) => Ok(bit),
        (Bit::Open(open), Bit::Open(_)) => Err(open),
    }
}

/// `a op b`, for `b` other than 0 if it is a division.
fn arithmetic(op: u16, a: &Value, b: &Value) -> Result<Value, u16> {
    let numbers = |join: fn(u32, u32) -> u32| Ok(Value::constant(join(a.number()?, b.number()?)));
    match op {
        0x00 => numbers(u32::wrapping_add),
        0x10 => numbers(u32::wrapping_sub),
        0x20 => numbers(u32::wrapping_mul),
        0x30 => numbers(|a, b| a / b),
        0xa0 => numbers(|a, b| a ^ b),
        0x80 => Ok(Value::constant(a.number()?.wrapping_neg())),
        0x40 | 0x50 => {
            let bits = a.iter().zip(b.iter()).map(|(a, b)| join(op == 0x40, a, b));
            let bits: Vec<Bit> = bits.collect::<Result<_, _>>()?;
            Ok(Value::from_bits(bits.into_iter()))
        }
        _ => {
            // The kernel shifts by the lowest five bits.
            let known = b.known | !31;
            let by = (Value { known, ..*b }.number()? & 31) as usize;
            let zeros = std::iter::repeat_n(Bit::Known(false), by);
            Ok(match op {
                0x60 => Value::from_bits(zeros.chain(a.iter().take(32 - by))),
                _ => Value::from_bits(a.iter().skip(by).chain(zeros)),
            })
        }
    }
}

/// Whether a test holds: 0x10 equal, 0x20 greater, 0x30 greater or equal, else a common bit.
fn test(op: u16, a: &Value, b: &Value) -> Result<bool, u16> {
    let known = a.known & b.known;
    match op {
        0x10 if (a.bits ^ b.bits) & known != 0 => return Ok(false),
        0x40 if a.bits & b.bits & known != 0 => return Ok(true),
        _ => {}
    }
    for (a, b) in a.iter().zip(b.iter()).rev() {
        match (a, b) {
            (Bit::Known(false), _) | (_, Bit::Known(false)) if op == 0x40 => {}
            _ if a == b && op != 0x40 => {}
            (Bit::Open(open), _) | (_, Bit::Open(open)) => return Err(open),
            (Bit::Known(is_greater), _) => return Ok(is_greater && op != 0x10),
        }
    }
    Ok(op == 0x10 || op == 0x30)
}

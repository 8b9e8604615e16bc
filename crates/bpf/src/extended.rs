//! The raw form of extended BPF: the kernel's `struct bpf_insn`, and its codes.
//!
//! The kernel converts every classic program to extended BPF ([`convert`](crate::convert)), so this crate defines the
//! encoding of an extended instruction. The semantics is defined in the crate `ebpf`.

use tamis_abi::Endian;

/// One instruction as the kernel takes it. A wide one takes two places: the second has only the upper half of the
/// constant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Insn {
    /// Class, size, mode, operation and operand source: see [`code`].
    pub code: u8,
    /// The destination register, 0 to 15 in four bits; legal programs have 0 to 10.
    pub dst: u8,
    /// The source register, or the variant of some instructions; as `dst`.
    pub src: u8,
    /// The displacement of a jump or of a memory access, or the variant of some instructions.
    pub offset: i16,
    /// The constant.
    pub imm: i32,
}

/// Parts of codes, as in `include/uapi/linux/bpf.h` and `bpf_common.h`.
pub mod code {
    /// The bits of the class.
    pub const CLASS: u8 = 0x07;
    /// Class: loads that are not relative to a register.
    pub const LD: u8 = 0x00;
    /// Class: loads to a register.
    pub const LDX: u8 = 0x01;
    /// Class: stores of a constant.
    pub const ST: u8 = 0x02;
    /// Class: stores of a register, and atomic operations.
    pub const STX: u8 = 0x03;
    /// Class: arithmetic with 32 bits.
    pub const ALU: u8 = 0x04;
    /// Class: jumps; tests with 64 bits.
    pub const JMP: u8 = 0x05;
    /// Class: tests with 32 bits.
    pub const JMP32: u8 = 0x06;
    /// Class: arithmetic with 64 bits.
    pub const ALU64: u8 = 0x07;

    /// The operand is a register. Of byte swaps: to big endian.
    pub const SOURCE_X: u8 = 0x08;

    /// The bits of the size of a load or store.
    pub const SIZE: u8 = 0x18;
    /// Size: four bytes.
    pub const W: u8 = 0x00;
    /// Size: two bytes.
    pub const H: u8 = 0x08;
    /// Size: one byte.
    pub const B: u8 = 0x10;
    /// Size: eight bytes.
    pub const DW: u8 = 0x18;

    /// The bits of the mode of a load or store.
    pub const MODE: u8 = 0xe0;
    /// Mode: a constant.
    pub const IMM: u8 = 0x00;
    /// Mode: the packet, at a constant offset.
    pub const ABS: u8 = 0x20;
    /// Mode: the packet, at an offset in a register.
    pub const IND: u8 = 0x40;
    /// Mode: memory.
    pub const MEM: u8 = 0x60;
    /// Mode: memory, sign-extended.
    pub const MEMSX: u8 = 0x80;
    /// Mode: atomic.
    pub const ATOMIC: u8 = 0xc0;

    /// The bits of the operation of arithmetic and jumps.
    pub const OPERATION: u8 = 0xf0;
    /// Addition.
    pub const ADD: u8 = 0x00;
    /// Subtraction.
    pub const SUB: u8 = 0x10;
    /// Logical shift to the left.
    pub const LSH: u8 = 0x60;
    /// Bitwise and.
    pub const AND: u8 = 0x50;
    /// Exclusive or.
    pub const XOR: u8 = 0xa0;
    /// Move.
    pub const MOV: u8 = 0xb0;
    /// Byte order.
    pub const END: u8 = 0xd0;

    /// Jump always.
    pub const JA: u8 = 0x00;
    /// Jump if equal.
    pub const JEQ: u8 = 0x10;
    /// Jump if greater, unsigned.
    pub const JGT: u8 = 0x20;
    /// Jump if greater or equal, unsigned.
    pub const JGE: u8 = 0x30;
    /// Jump if a common bit is set.
    pub const JSET: u8 = 0x40;
    /// Jump if not equal.
    pub const JNE: u8 = 0x50;
    /// Jump if less, unsigned.
    pub const JLT: u8 = 0xa0;
    /// Jump if less or equal, unsigned.
    pub const JLE: u8 = 0xb0;
    /// Jump if greater or equal, signed.
    pub const JSGE: u8 = 0x70;
    /// Jump if less, signed.
    pub const JSLT: u8 = 0xc0;
    /// Call.
    pub const CALL: u8 = 0x80;
    /// Return.
    pub const EXIT: u8 = 0x90;
}

impl Insn {
    /// The size of an instruction in a raw program.
    pub const SIZE_BYTES: usize = 8;

    /// The raw form for machines of a byte order. Not only the numbers differ, also the order of the two registers
    /// in their byte.
    pub const fn to_bytes(self, endian: Endian) -> [u8; Insn::SIZE_BYTES] {
        let (low, high) = (self.dst & 0x0f, self.src & 0x0f);
        let ([o0, o1], [i0, i1, i2, i3], registers) = match endian {
            Endian::Little => {
                let fields = (self.offset.to_le_bytes(), self.imm.to_le_bytes());
                (fields.0, fields.1, high << 4 | low)
            }
            Endian::Big => {
                let fields = (self.offset.to_be_bytes(), self.imm.to_be_bytes());
                (fields.0, fields.1, low << 4 | high)
            }
        };
        [self.code, registers, o0, o1, i0, i1, i2, i3]
    }

    /// The instruction with this raw form.
    pub const fn from_bytes(bytes: [u8; Insn::SIZE_BYTES], endian: Endian) -> Insn {
        let [code, registers, o0, o1, i0, i1, i2, i3] = bytes;
        let (low, high) = (registers & 0x0f, registers >> 4);
        let (dst, src, offset, imm) = match endian {
            Endian::Little => {
                let offset = i16::from_le_bytes([o0, o1]);
                (low, high, offset, i32::from_le_bytes([i0, i1, i2, i3]))
            }
            Endian::Big => {
                let offset = i16::from_be_bytes([o0, o1]);
                (high, low, offset, i32::from_be_bytes([i0, i1, i2, i3]))
            }
        };
        Insn {
            code,
            dst,
            src,
            offset,
            imm,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_raw_form_is_that_of_the_kernel_in_both_orders() {
        let insn = Insn {
            code: 0x7b,
            dst: 10,
            src: 3,
            offset: -8,
            imm: 0x0102_0304,
        };
        let little = [0x7b, 0x3a, 0xf8, 0xff, 4, 3, 2, 1];
        let big = [0x7b, 0xa3, 0xff, 0xf8, 1, 2, 3, 4];
        for (endian, bytes) in [(Endian::Little, little), (Endian::Big, big)] {
            assert_eq!(insn.to_bytes(endian), bytes);
            assert_eq!(Insn::from_bytes(bytes, endian), insn);
        }
    }
}

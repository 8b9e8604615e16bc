//! The results of arithmetic, comparisons and byte orders, as functions of 64-bit values.
//!
//! They follow `___bpf_prog_run` in `kernel/bpf/core.c`: division by 0 gives 0, the remainder by 0 the dividend,
//! distances of shifts are taken modulo the width, and 32-bit results are zero-extended.

use tamis_abi::Endian;

use crate::insn::{AluOp, Bits, Cond, Swap, Width};

/// The result of arithmetic. Both values are full registers; an immediate comes sign-extended.
///
/// ```
/// use tamis_ebpf::{AluOp, Width, semantics::arithmetic};
/// assert_eq!(arithmetic(Width::W32, AluOp::Sub, 0, 1), 0xffff_ffff);
/// assert_eq!(arithmetic(Width::W64, AluOp::SDiv, i64::MIN as u64, u64::MAX), i64::MIN as u64);
/// ```
pub const fn arithmetic(width: Width, op: AluOp, a: u64, b: u64) -> u64 {
    match width {
        Width::W32 => arithmetic32(op, a as u32, b as u32) as u64,
        Width::W64 => arithmetic64(op, a, b),
    }
}

/// Arithmetic on numbers of one width, by their unsigned and their signed type. Distances of shifts wrap at the
/// width.
macro_rules! arithmetic_of {
    ($name:ident, $unsigned:ty, $signed:ty) => {
        const fn $name(op: AluOp, a: $unsigned, b: $unsigned) -> $unsigned {
            match op {
                AluOp::Add => a.wrapping_add(b),
                AluOp::Sub => a.wrapping_sub(b),
                AluOp::Mul => a.wrapping_mul(b),
                AluOp::Div | AluOp::SDiv if b == 0 => 0,
                AluOp::Div => a / b,
                AluOp::SDiv => (a as $signed).wrapping_div(b as $signed) as $unsigned,
                AluOp::Mod | AluOp::SMod if b == 0 => a,
                AluOp::Mod => a % b,
                AluOp::SMod => (a as $signed).wrapping_rem(b as $signed) as $unsigned,
                AluOp::And => a & b,
                AluOp::Or => a | b,
                AluOp::Xor => a ^ b,
                AluOp::Lsh => a.wrapping_shl(b as u32),
                AluOp::Rsh => a.wrapping_shr(b as u32),
                AluOp::Arsh => (a as $signed).wrapping_shr(b as u32) as $unsigned,
                AluOp::Mov => b,
            }
        }
    };
}

arithmetic_of!(arithmetic64, u64, i64);
arithmetic_of!(arithmetic32, u32, i32);

/// A constant as an operation with 64 bits takes it.
pub const fn immediate(imm: i32) -> u64 {
    imm as i64 as u64
}

/// The negative value.
pub const fn negate(width: Width, a: u64) -> u64 {
    arithmetic(width, AluOp::Sub, 0, a)
}

/// The lower bits of a value, sign-extended to the width.
pub const fn sign_extended(width: Width, bits: Bits, value: u64) -> u64 {
    let shift = 64 - bits.count();
    let extended = ((value << shift) as i64 >> shift) as u64;
    truncated(width.size().bits(), extended)
}

/// The lower bits of a value.
pub const fn truncated(bits: Bits, value: u64) -> u64 {
    let shift = 64 - bits.count();
    value << shift >> shift
}

/// The lower bits in the other order of bytes, if the machine has not the order already.
pub const fn swapped(swap: Swap, bits: Bits, value: u64, machine: Endian) -> u64 {
    let is_reversed = match (swap, machine) {
        (Swap::Always, _) | (Swap::Big, Endian::Little) | (Swap::Little, Endian::Big) => true,
        (Swap::Big, Endian::Big) | (Swap::Little, Endian::Little) => false,
    };
    if is_reversed {
        value.swap_bytes() >> (64 - bits.count())
    } else {
        truncated(bits, value)
    }
}

/// Whether a comparison holds. Both values are full registers; an immediate comes sign-extended.
pub const fn holds(width: Width, cond: Cond, a: u64, b: u64) -> bool {
    let (a, b) = match width {
        Width::W64 => (a, b),
        Width::W32 => (a as u32 as u64, b as u32 as u64),
    };
    let (signed_a, signed_b) = match width {
        Width::W64 => (a as i64, b as i64),
        Width::W32 => (a as i32 as i64, b as i32 as i64),
    };
    match cond {
        Cond::Eq => a == b,
        Cond::Ne => a != b,
        Cond::Gt => a > b,
        Cond::Ge => a >= b,
        Cond::Lt => a < b,
        Cond::Le => a <= b,
        Cond::SGt => signed_a > signed_b,
        Cond::SGe => signed_a >= signed_b,
        Cond::SLt => signed_a < signed_b,
        Cond::SLe => signed_a <= signed_b,
        Cond::Set => a & b != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_without_a_result() {
        let least32 = u64::from(i32::MIN as u32);
        for (op, a, b, expected) in [
            (AluOp::Div, 7, 1 << 32, 0),
            (AluOp::Mod, 1 << 40 | 7, 1 << 32, 7),
            (AluOp::SDiv, least32, u64::MAX, least32),
            (AluOp::SMod, least32, u64::MAX, 0),
            (AluOp::SMod, (-7_i64) as u64, 2, u64::from(u32::MAX)),
        ] {
            assert_eq!(arithmetic(Width::W32, op, a, b), expected, "{op:?}");
        }
        assert_eq!(arithmetic(Width::W64, AluOp::Mod, 7, 0), 7);
        assert_eq!(
            arithmetic(Width::W64, AluOp::SDiv, (-7_i64) as u64, 2),
            (-3_i64) as u64
        );
    }

    #[test]
    fn shifts_wrap_at_the_width() {
        assert_eq!(arithmetic(Width::W32, AluOp::Lsh, 1, 33), 2);
        assert_eq!(arithmetic(Width::W64, AluOp::Lsh, 1, 65), 2);
        assert_eq!(
            arithmetic(Width::W32, AluOp::Arsh, 0x8000_0000, 4),
            0xf800_0000
        );
    }

    #[test]
    fn partial_values() {
        assert_eq!(sign_extended(Width::W32, Bits::B8, 0x180), 0xffff_ff80);
        assert_eq!(sign_extended(Width::W64, Bits::B16, 0x7fff), 0x7fff);
        let swap = |swap, bits| swapped(swap, bits, 0x0102_0304_0506_0708, Endian::Little);
        assert_eq!(swap(Swap::Big, Bits::B16), 0x0807);
        assert_eq!(swap(Swap::Little, Bits::B16), 0x0708);
        assert_eq!(swap(Swap::Always, Bits::B64), 0x0807_0605_0403_0201);
        assert_eq!(
            swapped(Swap::Big, Bits::B32, 0x0102_0304_0506, Endian::Big),
            0x0304_0506
        );
    }

    #[test]
    fn comparisons_with_32_bits_ignore_the_upper_half() {
        let minus_one = u64::from(u32::MAX);
        assert!(holds(Width::W32, Cond::SLt, minus_one, 0));
        assert!(holds(Width::W64, Cond::SGt, minus_one, 0));
        assert!(holds(Width::W32, Cond::Eq, 1 << 32, 0));
        assert!(!holds(Width::W32, Cond::Set, 1 << 32, u64::MAX));
    }
}

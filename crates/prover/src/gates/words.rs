//! The machine's words and arithmetic as gates.

use tamis_abi::Word;
use tamis_bpf::{AluOp, Test};

use super::graph::{Gate, Gates};
use crate::diagram::Limited;
use crate::misreading::{self, Reading, Rule};

/// A 32-bit value, the lowest bit first.
pub(super) type Bits = [Gate; 32];

pub(super) fn constant(value: u32) -> Bits {
    std::array::from_fn(|bit| Gate::from(value >> bit & 1 == 1))
}

pub(super) fn input(gates: &mut Gates, word: Word) -> Limited<Bits> {
    let mut bits = constant(0);
    for (number, bit) in bits.iter_mut().enumerate() {
        *bit = gates.input(word, number as u32)?;
    }
    Ok(bits)
}

/// `a == b`, from the highest bit down: comparisons with small constants share the gates of the high bits.
pub(super) fn equal(gates: &mut Gates, a: &Bits, b: &Bits) -> Limited<Gate> {
    a.iter().zip(b).rev().try_fold(Gate::TRUE, |all, (a, b)| {
        let differ = gates.xor(*a, *b)?;
        gates.and(all, differ.not())
    })
}

/// `a > b`, or `tie` if they are equal.
pub(super) fn greater(gates: &mut Gates, a: &Bits, b: &Bits, tie: Gate) -> Limited<Gate> {
    a.iter().zip(b).try_fold(tie, |lower, (a, b)| {
        let differ = gates.xor(*a, *b)?;
        gates.select(differ, *a, lower)
    })
}

pub(super) fn test(gates: &mut Gates, test: Test, a: &Bits, b: &Bits) -> Limited<Gate> {
    match test {
        Test::Eq => equal(gates, a, b),
        Test::Gt => greater(gates, a, b, Gate::FALSE),
        Test::Ge => greater(gates, a, b, Gate::TRUE),
        Test::Set => a.iter().zip(b).try_fold(Gate::FALSE, |any, (a, b)| {
            let common = gates.and(*a, *b)?;
            gates.or(any, common)
        }),
    }
}

pub(super) fn select(gates: &mut Gates, condition: Gate, yes: &Bits, no: &Bits) -> Limited<Bits> {
    each(yes, no, |yes, no| gates.select(condition, yes, no))
}

/// `a op b`; the result of a division by zero is unspecified.
pub(super) fn alu(gates: &mut Gates, op: AluOp, a: &Bits, b: &Bits) -> Limited<Bits> {
    // With ordered operands, commutative operations share gates.
    let (first, second) = (a.min(b), a.max(b));
    match op {
        AluOp::Add => add(gates, first, second, Gate::FALSE),
        AluOp::Mul => multiply(gates, first, second),
        AluOp::And => each(a, b, |a, b| gates.and(a, b)),
        AluOp::Or => each(a, b, |a, b| gates.or(a, b)),
        AluOp::Xor => each(a, b, |a, b| gates.xor(a, b)),
        AluOp::Sub => add(gates, a, &b.map(Gate::not), Gate::TRUE),
        AluOp::Div => Ok(divide(gates, a, b)?.0),
        AluOp::Lsh => shift(gates, a, b, |bits, by| {
            std::array::from_fn(|bit| match bit.checked_sub(by) {
                Some(from) => bits[from],
                None => Gate::FALSE,
            })
        }),
        AluOp::Rsh => shift(gates, a, b, |bits, by| {
            std::array::from_fn(|bit| bits.get(bit + by).copied().unwrap_or(Gate::FALSE))
        }),
    }
}

pub(super) fn is_not_zero(gates: &mut Gates, bits: &Bits) -> Limited<Gate> {
    Ok(equal(gates, bits, &constant(0))?.not())
}

fn each(a: &Bits, b: &Bits, mut gate: impl FnMut(Gate, Gate) -> Limited<Gate>) -> Limited<Bits> {
    let mut bits = *a;
    for (bit, b) in bits.iter_mut().zip(b) {
        *bit = gate(*bit, *b)?;
    }
    Ok(bits)
}

fn add(gates: &mut Gates, a: &Bits, b: &Bits, carry: Gate) -> Limited<Bits> {
    let mut carry = carry;
    each(a, b, |a, b| {
        let half = gates.xor(a, b)?;
        let sum = gates.xor(half, carry)?;
        carry = gates.select(half, carry, a)?;
        Ok(sum)
    })
}

fn multiply(gates: &mut Gates, a: &Bits, b: &Bits) -> Limited<Bits> {
    let mut product = constant(0);
    for (by, condition) in a.iter().enumerate() {
        let mut addend = constant(0);
        for (bit, shifted) in addend.iter_mut().enumerate().skip(by) {
            *shifted = gates.and(*condition, b[bit - by])?;
        }
        product = add(gates, &product, &addend, Gate::FALSE)?;
    }
    Ok(product)
}

/// The quotient and the remainder, both unspecified for a division by zero.
///
/// Long division, the highest bit first. The remainder is below the divisor, so with one more bit it has at most
/// 33; if the highest is set, the divisor can be subtracted.
pub(super) fn divide(gates: &mut Gates, a: &Bits, b: &Bits) -> Limited<(Bits, Bits)> {
    let mut quotient = constant(0);
    let mut remainder = constant(0);
    for bit in (0..32).rev() {
        let highest = remainder[31];
        remainder.rotate_right(1);
        remainder[0] = a[bit];
        let fits = greater(gates, &remainder, b, Gate::TRUE)?;
        quotient[bit] = gates.or(highest, fits)?;
        let reduced = alu(gates, AluOp::Sub, &remainder, b)?;
        remainder = select(gates, quotient[bit], &reduced, &remainder)?;
    }
    Ok((quotient, remainder))
}

fn shift(
    gates: &mut Gates,
    a: &Bits,
    by: &Bits,
    shifted: impl Fn(&Bits, usize) -> Bits,
) -> Limited<Bits> {
    let mut value = *a;
    for (stage, condition) in by.iter().take(5).enumerate() {
        value = select(gates, *condition, &shifted(&value, 1 << stage), &value)?;
    }
    if misreading::has(Reading::Gates, Rule::ShiftDistance) {
        for condition in &by[5..] {
            value = select(gates, *condition, &constant(0), &value)?;
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use tamis_bpf::interp::arithmetic;

    use super::*;
    use crate::stop::Stop;

    const SAMPLES: [u32; 9] = [0, 1, 2, 7, 31, 33, 0x8000_0000, 0xdead_beef, u32::MAX];

    #[test]
    fn arithmetic_and_tests_of_constants_are_the_machines() {
        let mut gates = Gates::new(10, Stop::default());
        for a in SAMPLES {
            for b in SAMPLES {
                let (a_bits, b_bits) = (constant(a), constant(b));
                for op in AluOp::ALL {
                    let found = alu(&mut gates, op, &a_bits, &b_bits).unwrap();
                    if let Some(expected) = arithmetic(op, a, b) {
                        assert_eq!(found, constant(expected), "{op:?} {a:#x} {b:#x}");
                    }
                }
                if let Some(expected) = a.checked_rem(b) {
                    let (_, found) = divide(&mut gates, &a_bits, &b_bits).unwrap();
                    assert_eq!(found, constant(expected), "{a:#x} % {b:#x}");
                }
                for kind in Test::ALL {
                    let found = test(&mut gates, kind, &a_bits, &b_bits).unwrap();
                    assert_eq!(
                        found,
                        Gate::from(kind.holds(a, b)),
                        "{kind:?} {a:#x} {b:#x}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_commutes_is_the_same_gates() {
        let mut gates = Gates::new(1 << 16, Stop::default());
        let [a, b] = [Word::NR, Word::ARCH].map(|word| input(&mut gates, word).unwrap());
        for op in [AluOp::Add, AluOp::Mul, AluOp::And, AluOp::Or, AluOp::Xor] {
            let one = alu(&mut gates, op, &a, &b).unwrap();
            assert_eq!(alu(&mut gates, op, &b, &a), Ok(one), "{op:?}");
        }
    }
}

//! 32-bit values as functions of the input: one diagram per bit.
//!
//! Words, optionally masked, shifted or inverted, keep one variable per bit and are cheap. Sums and products of
//! words are exact as well but may exceed the limit: that is an error, and the answer becomes *unknown*.

use tamis_abi::Word;
use tamis_bpf::{AluOp, Test};

use crate::diagram::{Diagram, FALSE, Limited, Node, TRUE, View};
use crate::misreading::{self, Reading, Rule};
use crate::order;

/// One condition per bit, the least significant first.
pub(crate) type Bits = [Node; 32];

/// The value of a word of the input.
pub(crate) fn word(diagram: &mut Diagram, word: Word) -> Limited<Bits> {
    let mut bits = [FALSE; 32];
    for (bit, node) in bits.iter_mut().enumerate() {
        *node = word_bit(diagram, word, bit)?;
    }
    Ok(bits)
}

/// The same value for every input.
pub(crate) fn constant(value: u32) -> Bits {
    std::array::from_fn(|bit| if value >> bit & 1 == 1 { TRUE } else { FALSE })
}

/// The value, if it is constant.
pub(crate) fn as_constant(bits: &Bits) -> Option<u32> {
    bits.iter().rev().try_fold(0, |value, bit| match *bit {
        TRUE => Some(value << 1 | 1),
        FALSE => Some(value << 1),
        _ => None,
    })
}

/// The word and the mask, if the value is a masked word.
pub(crate) fn as_masked(diagram: &mut Diagram, bits: &Bits) -> Limited<Option<(Word, u32)>> {
    let first_variable = bits.iter().find_map(|node| match diagram.view(*node) {
        View::Branch { variable, .. } => Some(variable),
        View::Leaf(_) => None,
    });
    let Some((word, _)) = first_variable.and_then(order::input_bit) else {
        return Ok(None);
    };
    let mut mask = 0;
    for (bit, node) in bits.iter().enumerate() {
        if *node == word_bit(diagram, word, bit)? {
            mask |= 1 << bit;
        } else if *node != FALSE {
            return Ok(None);
        }
    }
    Ok(Some((word, mask)))
}

fn word_bit(diagram: &mut Diagram, word: Word, bit: usize) -> Limited<Node> {
    diagram.variable(order::variable(word, bit as u32))
}

/// The condition that a test of two values holds.
pub(crate) fn test(diagram: &mut Diagram, test: Test, a: &Bits, b: &Bits) -> Limited<Node> {
    match test {
        Test::Eq => equal(diagram, a, b),
        Test::Gt => greater(diagram, a, b, FALSE),
        Test::Ge => greater(diagram, a, b, TRUE),
        Test::Set => {
            let mut any = FALSE;
            for bit in 0..32 {
                let common = diagram.ite(a[bit], b[bit], FALSE)?;
                any = diagram.ite(common, TRUE, any)?;
            }
            Ok(any)
        }
    }
}

fn equal(diagram: &mut Diagram, a: &Bits, b: &Bits) -> Limited<Node> {
    let mut all = TRUE;
    for bit in 0..32 {
        let differs = xor(diagram, a[bit], b[bit])?;
        all = diagram.ite(differs, FALSE, all)?;
    }
    Ok(all)
}

/// `a > b`, or `tie` if they are equal: decided by the highest bit that differs.
fn greater(diagram: &mut Diagram, a: &Bits, b: &Bits, tie: Node) -> Limited<Node> {
    let mut result = tie;
    for bit in 0..32 {
        let differs = xor(diagram, a[bit], b[bit])?;
        result = diagram.ite(differs, a[bit], result)?;
    }
    Ok(result)
}

/// The value of `a op b` as the machine computes it; the caller handles division by zero.
pub(crate) fn alu(diagram: &mut Diagram, op: AluOp, a: &Bits, b: &Bits) -> Limited<Bits> {
    match op {
        AluOp::Add => add(diagram, a, b, FALSE),
        AluOp::Sub => subtract(diagram, a, b),
        AluOp::Mul => multiply(diagram, a, b),
        AluOp::Div => divide(diagram, a, b),
        AluOp::And => bitwise(a, b, |a, b| diagram.ite(a, b, FALSE)),
        AluOp::Or => bitwise(a, b, |a, b| diagram.ite(a, TRUE, b)),
        AluOp::Xor => bitwise(a, b, |a, b| xor(diagram, a, b)),
        AluOp::Lsh => shift(diagram, a, b, |bits, by| {
            std::array::from_fn(|bit| if bit < by { FALSE } else { bits[bit - by] })
        }),
        AluOp::Rsh => shift(diagram, a, b, |bits, by| {
            std::array::from_fn(|bit| if bit + by < 32 { bits[bit + by] } else { FALSE })
        }),
    }
}

/// `-a`.
pub(crate) fn negate(diagram: &mut Diagram, a: &Bits) -> Limited<Bits> {
    subtract(diagram, &constant(0), a)
}

/// `yes` if the condition holds, else `no`.
pub(crate) fn select(
    diagram: &mut Diagram,
    condition: Node,
    yes: &Bits,
    no: &Bits,
) -> Limited<Bits> {
    bitwise(yes, no, |yes, no| diagram.ite(condition, yes, no))
}

fn bitwise(
    a: &Bits,
    b: &Bits,
    mut combine: impl FnMut(Node, Node) -> Limited<Node>,
) -> Limited<Bits> {
    let mut bits = [FALSE; 32];
    for (bit, node) in bits.iter_mut().enumerate() {
        *node = combine(a[bit], b[bit])?;
    }
    Ok(bits)
}

fn xor(diagram: &mut Diagram, a: Node, b: Node) -> Limited<Node> {
    // The common cases need no negated diagram of `a`.
    match b {
        FALSE => Ok(a),
        TRUE => diagram.not(a),
        _ => {
            let not_b = diagram.not(b)?;
            diagram.ite(a, not_b, b)
        }
    }
}

fn add(diagram: &mut Diagram, a: &Bits, b: &Bits, carry_in: Node) -> Limited<Bits> {
    let mut carry = carry_in;
    bitwise(a, b, |a, b| {
        let half = xor(diagram, a, b)?;
        let sum = xor(diagram, half, carry)?;
        carry = diagram.ite(half, carry, a)?;
        Ok(sum)
    })
}

fn subtract(diagram: &mut Diagram, a: &Bits, b: &Bits) -> Limited<Bits> {
    let inverted = bitwise(b, b, |bit, _| diagram.not(bit))?;
    add(diagram, a, &inverted, TRUE)
}

fn multiply(diagram: &mut Diagram, a: &Bits, b: &Bits) -> Limited<Bits> {
    let mut product = constant(0);
    for bit in 0..32 {
        let shifted: Bits = std::array::from_fn(|at| if at < bit { FALSE } else { a[at - bit] });
        let addend = select(diagram, b[bit], &shifted, &constant(0))?;
        product = add(diagram, &product, &addend, FALSE)?;
    }
    Ok(product)
}

/// Long division, the highest bit first: the remainder gets one more bit, and the divisor is subtracted if
/// possible. The remainder has 33 bits before the subtraction; if its top bit is set the subtraction is possible.
fn divide(diagram: &mut Diagram, a: &Bits, b: &Bits) -> Limited<Bits> {
    let mut quotient = constant(0);
    let mut remainder = constant(0);
    for bit in (0..32).rev() {
        let overflow = remainder[31];
        remainder.copy_within(0..31, 1);
        remainder[0] = a[bit];
        let fits = greater(diagram, &remainder, b, TRUE)?;
        let fits = diagram.ite(overflow, TRUE, fits)?;
        let reduced = subtract(diagram, &remainder, b)?;
        remainder = select(diagram, fits, &reduced, &remainder)?;
        quotient[bit] = fits;
    }
    Ok(quotient)
}

/// Shifts by the lowest five bits of `by`, a power of two at a time.
fn shift(
    diagram: &mut Diagram,
    a: &Bits,
    by: &Bits,
    shifted: impl Fn(&Bits, usize) -> Bits,
) -> Limited<Bits> {
    let mut value = *a;
    for (stage, condition) in by.iter().take(5).enumerate() {
        value = select(diagram, *condition, &shifted(&value, 1 << stage), &value)?;
    }
    if misreading::has(Reading::Diagrams, Rule::ShiftDistance) {
        for condition in &by[5..] {
            value = select(diagram, *condition, &constant(0), &value)?;
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Stop;

    const SAMPLES: [u32; 10] = [0, 1, 2, 3, 7, 31, 33, 0x8000_0000, 0xdead_beef, u32::MAX];

    type Arithmetic = fn(u32, u32) -> u32;

    const OPS: [(AluOp, Arithmetic); 9] = [
        (AluOp::Add, u32::wrapping_add),
        (AluOp::Sub, u32::wrapping_sub),
        (AluOp::Mul, u32::wrapping_mul),
        (AluOp::Div, |a, b| a.checked_div(b).unwrap_or(u32::MAX)),
        (AluOp::And, |a, b| a & b),
        (AluOp::Or, |a, b| a | b),
        (AluOp::Xor, |a, b| a ^ b),
        (AluOp::Lsh, |a, b| a << (b & 31)),
        (AluOp::Rsh, |a, b| a >> (b & 31)),
    ];

    #[test]
    fn arithmetic_on_constants_is_the_machines() {
        let mut diagram = Diagram::new(1 << 10, 1 << 20, Stop::default());
        for (op, expected) in OPS {
            for a in SAMPLES {
                for b in SAMPLES {
                    let bits = alu(&mut diagram, op, &constant(a), &constant(b)).unwrap();
                    assert_eq!(
                        as_constant(&bits),
                        Some(expected(a, b)),
                        "{op:?} {a:#x} {b:#x}"
                    );
                }
            }
        }
    }

    #[test]
    fn tests_of_constants_are_the_machines() {
        let mut diagram = Diagram::new(1 << 10, 1 << 20, Stop::default());
        for a in SAMPLES {
            for b in SAMPLES {
                for kind in Test::ALL {
                    let node = test(&mut diagram, kind, &constant(a), &constant(b)).unwrap();
                    assert_eq!(node == TRUE, kind.holds(a, b), "{kind:?} {a:#x} {b:#x}");
                }
            }
        }
    }

    #[test]
    fn comparison_with_a_constant_needs_at_most_one_node_a_bit() {
        let mut diagram = Diagram::new(1 << 16, 1 << 20, Stop::default());
        let nr = word(&mut diagram, Word::NR).unwrap();
        for value in SAMPLES {
            for kind in Test::ALL {
                let before = diagram.len();
                test(&mut diagram, kind, &nr, &constant(value)).unwrap();
                // The negations of the bits are created once.
                assert!(diagram.len() - before <= 2 * 32, "{kind:?} {value:#x}");
            }
        }
    }
}

//! Parts of the calls of one number, as conditions on their arguments.

use std::collections::HashMap;

use tamis_abi::signature::{self, Width};
use tamis_abi::{Arch, ArgIndex};
use tamis_prover::{Function, Limited, Space, View};
use tamis_rules::{CmpOp, Operand, OperandSource, Part, Predicate};

/// The function whose values are replaced by others.
pub(crate) fn map(
    space: &mut Space,
    function: Function,
    replacement: &dyn Fn(u32) -> u32,
    known: &mut HashMap<Function, Function>,
) -> Limited<Function> {
    if let Some(mapped) = known.get(&function) {
        return Ok(*mapped);
    }
    let mapped = match space.view(function) {
        View::Leaf(value) => space.constant(replacement(value))?,
        View::Branch {
            variable,
            low,
            high,
        } => {
            let low = map(space, low, replacement, known)?;
            let high = map(space, high, replacement, known)?;
            space.branch(variable, low, high)?
        }
    };
    known.insert(function, mapped);
    Ok(mapped)
}

/// The condition that a function has a wanted value.
pub(crate) fn values_where(
    space: &mut Space,
    function: Function,
    is_wanted: &dyn Fn(u32) -> bool,
) -> Limited<Function> {
    let replacement = |value| u32::from(is_wanted(value));
    map(space, function, &replacement, &mut HashMap::new())
}

/// The condition that both hold.
pub(crate) fn both(space: &mut Space, left: Function, right: Function) -> Limited<Function> {
    if left == Function::FALSE || right == Function::TRUE {
        return Ok(left);
    }
    if left == Function::TRUE || right == Function::FALSE {
        return Ok(right);
    }
    space.choose(left, right, Function::FALSE)
}

/// The condition that one of them holds.
pub(crate) fn either(space: &mut Space, left: Function, right: Function) -> Limited<Function> {
    space.choose(left, Function::TRUE, right)
}

/// The condition that the first holds and the second doesn't.
pub(crate) fn without(space: &mut Space, left: Function, right: Function) -> Limited<Function> {
    space.choose(right, Function::FALSE, left)
}

/// The condition that every argument is as programs pass it: the bits that the kernel doesn't read are 0, or copies of
/// the sign of an `int`.
///
/// In 32-bit registers there are no others, but a 64-bit process that makes a 32-bit call may leave anything there.
pub(crate) fn passed_by_programs(arch: Arch, call: Option<&str>) -> Predicate {
    let mut parts = Vec::new();
    for index in ArgIndex::ALL {
        let arg = call.and_then(|call| signature::at(arch, call, index));
        let width = match (arg, call) {
            (Some(arg), Some(call)) => signature::width(arch, call, arg),
            _ => Width::of_registers(arch),
        };
        let half = |part| Operand {
            source: OperandSource::Arg(index),
            part,
        };
        let high_is = |value| Predicate::compare(half(Part::High), CmpOp::Eq, value);
        let is_signed = arch.has_64_bit_registers() && width == Width::Bits32;
        match width {
            Width::Bits64 => {}
            Width::Bits32 if is_signed => {
                let is_negative = Predicate::compare(half(Part::Low), CmpOp::Ge, 1 << 31);
                let extended = high_is(u64::from(u32::MAX));
                parts.push(Predicate::Any(vec![
                    high_is(0),
                    Predicate::All(vec![is_negative, extended]),
                ]));
            }
            Width::Bits32 => parts.push(high_is(0)),
            Width::Bits16 => parts.push(Predicate::compare(
                Operand::arg(index),
                CmpOp::Le,
                width.max(),
            )),
        }
    }
    Predicate::All(parts)
}

//! The calls that programs make: those whose arguments are as compiled code passes them.
//!
//! A filter sees 64 bits of every argument, and the kernel reads fewer of some. Nobody but an attacker puts anything
//! into the others, so what a program needs is decided without such calls.

use std::collections::{BTreeMap, HashMap};

use tamis_abi::signature::{self, Width};
use tamis_abi::{Arch, ArgIndex};
use tamis_prover::{Function, Limited, Space};
use tamis_rules::{CmpOp, Operand, OperandSource, Part, Predicate};

/// The widths of a call's arguments.
type Widths = [Width; ArgIndex::ALL.len()];

/// The conditions that arguments are as programs pass them. Most calls share theirs with others.
#[derive(Default)]
pub struct Passed {
    of_calls: HashMap<(Arch, Option<&'static str>), Function>,
    /// By the widths, and whether registers have 64 bits.
    of_widths: BTreeMap<(Widths, bool), Function>,
}

impl Passed {
    /// The condition for a call; without a name, for one that no table has.
    ///
    /// # Errors
    /// If the space is full.
    pub fn condition(
        &mut self,
        space: &mut Space,
        arch: Arch,
        call: Option<&'static str>,
    ) -> Limited<Function> {
        if let Some(known) = self.of_calls.get(&(arch, call)) {
            return Ok(*known);
        }
        let widths = widths(arch, call);
        let key = (widths, arch.has_64_bit_registers());
        let condition = match self.of_widths.get(&key) {
            Some(known) => *known,
            None => space.condition(&passed_by_programs(arch, widths))?,
        };
        self.of_widths.insert(key, condition);
        self.of_calls.insert((arch, call), condition);
        Ok(condition)
    }
}

/// The widths of the arguments of a call, and of registers that are none.
fn widths(arch: Arch, call: Option<&str>) -> Widths {
    ArgIndex::ALL.map(|index| {
        let arg = call.and_then(|call| signature::at(arch, call, index));
        match (arg, call) {
            (Some(arg), Some(call)) => signature::width(arch, call, arg),
            _ => Width::of_registers(arch),
        }
    })
}

/// The condition that every argument is as programs pass it: the bits that the kernel doesn't read are 0, or copies of
/// the sign of an `int`.
///
/// In 32-bit registers there are no others, but a 64-bit process that makes a 32-bit call may leave anything there.
fn passed_by_programs(arch: Arch, widths: Widths) -> Predicate {
    let mut parts = Vec::new();
    for (index, width) in ArgIndex::ALL.into_iter().zip(widths) {
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

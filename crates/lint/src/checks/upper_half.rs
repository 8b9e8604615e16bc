//! Arguments of which the kernel reads the lower half while a filter looks at the upper one.

use tamis_abi::signature::Width;
use tamis_abi::{Arch, ArgIndex, Word, signature};
use tamis_prover::{Function, LimitReached};

use crate::context::{Call, Context};

/// An argument of a call, with what its upper half could be.
pub(super) struct Narrow {
    pub(super) call: Call,
    pub(super) index: ArgIndex,
    /// How the argument is called.
    pub(super) name: String,
    /// The answer with the upper half clear.
    pub(super) clear: Function,
    /// The answer with the upper half all ones.
    pub(super) ones: Function,
    /// 1 where the lower half is negative as an `int`: then ones are its sign, extended.
    pub(super) negative: Function,
}

impl Narrow {
    /// The functions in the order in which [`Answers::of`] takes their values.
    pub(super) fn functions(&self) -> [Function; 4] {
        [self.call.function, self.clear, self.ones, self.negative]
    }
}

/// What one call gets, whatever its upper half is, and what it gets in its proper forms.
pub(super) struct Answers {
    pub(super) as_is: u32,
    pub(super) clear: u32,
    pub(super) ones: u32,
    pub(super) is_negative: bool,
}

impl Answers {
    pub(super) fn of(values: &[u32]) -> Answers {
        Answers {
            as_is: values[0],
            clear: values[1],
            ones: values[2],
            is_negative: values[3] == 1,
        }
    }
}

/// The arguments of 32 bits whose upper halves matter to the filter.
pub(super) fn narrow_arguments(context: &mut Context) -> Result<Vec<Narrow>, LimitReached> {
    let mut found = Vec::new();
    let calls: Vec<Call> = context.calls().collect();
    for call in calls {
        let words = context.space.words(call.function);
        for index in ArgIndex::ALL {
            let high = Word::arg_high(index);
            let Some(name) = narrow_name(&call, index).filter(|_| words.contains(&high)) else {
                continue;
            };
            let space = &mut context.space;
            found.push(Narrow {
                call,
                index,
                name,
                clear: space.with_word(call.function, high, 0)?,
                ones: space.with_word(call.function, high, u32::MAX)?,
                negative: space.bit(Word::arg_low(index), 31)?,
            });
        }
    }
    Ok(found)
}

/// How an argument is called if the kernel reads its lower half only.
pub(super) fn narrow_name(call: &Call, index: ArgIndex) -> Option<String> {
    let args = signature::args(call.name).unwrap_or_default();
    let known = args
        .iter()
        .find(|arg| signature::index(call.arch, call.name, arg.name) == Some(index));
    let name = known.map_or_else(
        || format!("arg{}", index.index()),
        |arg| arg.name.to_owned(),
    );
    // Only x86 lets 64-bit code choose the upper halves of a 32-bit call.
    if call.arch == Arch::X86 {
        return Some(name);
    }
    let arg = known?;
    let is_narrow = signature::width(call.arch, call.name, arg) != Width::Bits64;
    (is_narrow && call.arch.has_64_bit_registers()).then_some(name)
}

//! Arguments with upper bits that the kernel ignores and the filter tests.
//!
//! Most have 32 bits in the kernel and 64 in a filter; file modes and the user IDs of the first kernels have 16.

use tamis_abi::signature::Width;
use tamis_abi::{Arch, ArgIndex, SeccompData, Word, signature};
use tamis_analysis::{with_bits, with_word, words};
use tamis_prover::{Function, LimitReached, Space, Variable};

use crate::context::{Call, Context};

/// A narrow argument of a call, with the filter's results by its upper bits.
pub(super) struct Narrow {
    pub(super) call: Call,
    pub(super) index: ArgIndex,
    /// The name of the argument.
    pub(super) name: String,
    /// The width that the kernel reads; less than 64 bits.
    pub(super) width: Width,
    /// The result with the other bits clear.
    pub(super) clear: Function,
    /// The result with all other bits set.
    pub(super) ones: Function,
    /// 1 if the kernel's value is negative as a signed number: `ones` is then its sign extension.
    pub(super) negative: Function,
}

impl Narrow {
    /// The functions in the order of the values of [`Answers::from_values`].
    pub(super) fn functions(&self) -> [Function; 4] {
        [self.call.function, self.clear, self.ones, self.negative]
    }

    /// A name for the bits that the kernel reads.
    pub(super) fn lower_part(&self) -> &'static str {
        match self.width {
            Width::Bits16 => "16 bits",
            Width::Bits32 | Width::Bits64 => "half",
        }
    }

    /// The equivalent call for the kernel with the argument in its proper form.
    pub(super) fn proper(&self, mut data: SeccompData) -> SeccompData {
        data.args[self.index.index()] &= self.width.max();
        data
    }
}

/// The result of one call, and its results in the proper forms.
pub(super) struct Answers {
    pub(super) as_is: u32,
    pub(super) clear: u32,
    pub(super) ones: u32,
    pub(super) is_negative: bool,
}

impl Answers {
    pub(super) fn from_values(values: &[u32]) -> Answers {
        Answers {
            as_is: values[0],
            clear: values[1],
            ones: values[2],
            is_negative: values[3] == 1,
        }
    }
}

/// The arguments of less than 64 bits whose other bits affect the filter.
pub(super) fn narrow_arguments(context: &mut Context) -> Result<Vec<Narrow>, LimitReached> {
    let mut found = Vec::new();
    let calls: Vec<Call> = context.calls().collect();
    for call in calls {
        let words = words(&context.space, call.function);
        for index in ArgIndex::ALL {
            let Some((name, width)) = narrow_argument(&call, index) else {
                continue;
            };
            let is_seen = [Word::arg_high(index), Word::arg_low(index)].map(|w| words.contains(&w));
            if !is_seen[0] && (width == Width::Bits32 || !is_seen[1]) {
                continue;
            }
            let space = &mut context.space;
            found.push(Narrow {
                call,
                index,
                name,
                width,
                clear: with_upper_bits(space, call.function, index, width, 0)?,
                ones: with_upper_bits(space, call.function, index, width, u32::MAX)?,
                negative: space
                    .variable(Variable::of_bit(Word::arg_low(index), width.bits() - 1))?,
            });
        }
    }
    Ok(found)
}

/// The result if all bits of an argument beyond its width are those of `value`.
fn with_upper_bits(
    space: &mut Space,
    function: Function,
    index: ArgIndex,
    width: Width,
    value: u32,
) -> Result<Function, LimitReached> {
    let function = with_word(space, function, Word::arg_high(index), value)?;
    let ignored = !(width.max() as u32);
    with_bits(space, function, Word::arg_low(index), ignored, value)
}

/// The name of an argument and its width, if the kernel reads less than 64 bits of it.
pub(super) fn narrow_argument(call: &Call, index: ArgIndex) -> Option<(String, Width)> {
    let args = signature::args(call.name).unwrap_or_default();
    let known = args
        .iter()
        .find(|arg| signature::index(call.arch, call.name, arg.name()) == Some(index));
    let name = known.map_or_else(
        || format!("arg{}", index.index()),
        |arg| arg.name().to_owned(),
    );
    let width = known.map(|arg| signature::width(call.arch, call.name, arg));
    // Only on x86 can 64-bit code choose the upper halves of a 32-bit call.
    if call.arch == Arch::X86 {
        return Some((name, width.unwrap_or(Width::Bits32).min(Width::Bits32)));
    }
    let width = width.filter(|width| *width != Width::Bits64)?;
    // On other architectures the registers of 32-bit calls have only 32 bits.
    let has_more = call.arch.has_64_bit_registers() || width == Width::Bits16;
    has_more.then_some((name, width))
}

//! The note on a call whose action depends on bits that the kernel ignores.
//!
//! The kernel reads 32 bits of an `int`, while a filter sees a register of 64. Programs pass a negative one with the
//! sign extended or with a clear upper half, and both have the same name in reports, such as `AT_FDCWD`. If the two
//! forms get different actions, the report of a call contains a note.

use tamis_abi::signature::{self, Width};
use tamis_abi::{Action, Arch, ArgIndex, Nr, SeccompData, syscall};

/// The first argument with deciding upper bits, its value, and the action for the same value with the other upper bits;
/// `None` without such an argument.
pub(crate) fn note(data: &SeccompData, decide: impl Fn(&SeccompData) -> Action) -> Option<String> {
    let arch = Arch::of_call(data.arch, data.nr).filter(|arch| arch.has_64_bit_registers())?;
    let call = syscall::name(arch, Nr(data.nr))?;
    let action = decide(data);
    ArgIndex::ALL.into_iter().find_map(|place| {
        let arg = signature::at(arch, call, place)?;
        if signature::width(arch, call, arg) != Width::Bits32 {
            return None;
        }
        let value = data.args[place.index()];
        let low = value as u32;
        let forms = [u64::from(low), i64::from(low.cast_signed()) as u64];
        let other = |form: u64| {
            let mut other = *data;
            other.args[place.index()] = form;
            let answer = decide(&other);
            (answer != action).then(|| {
                format!(
                    "the upper bits of `{}` decide, which the kernel doesn't read: it is {value:#x}, and {form:#x} would get {answer}",
                    arg.name()
                )
            })
        };
        forms.into_iter().filter(|form| *form != value).find_map(other)
    })
}

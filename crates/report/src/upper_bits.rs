//! What to say of a call whose answer depends on bits that the kernel doesn't read.
//!
//! Of an `int` the kernel reads 32 bits, of a register a filter sees 64. Programs pass a negative one with the sign extended or with
//! a clear upper half, and both have the same name in reports: `AT_FDCWD`. So a report of a call whose other form is
//! answered differently says so.

use tamis_abi::signature::{self, Width};
use tamis_abi::{Action, Arch, ArgIndex, Nr, SeccompData, syscall};

/// The first argument whose upper bits decide, its value, and what the same value with others gets; `None` if there is none.
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

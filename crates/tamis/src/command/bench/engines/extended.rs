//! Filters as the kernel converts them, on the engines for extended programs.

use tamis_abi::Endian;
use tamis_bpf::{Program, Stack, stack};
use tamis_ebpf::check::{self, Checked, Layout, check};
use tamis_ebpf::convert::converted;
use tamis_ebpf::memory::{Context, Helpers, Memory};
use tamis_ebpf::threaded::Threaded;
use tamis_jit::Extended;
use tamis_report::engines::Row;

/// The rows of the interpreter and of machine code.
pub(super) const ROWS: [Row; 2] = [Row::plain("extended"), Row::plain("extended, jit")];

/// A stack of converted filters, oldest first.
pub(super) struct Converted {
    threaded: Vec<Threaded>,
    /// Or why there is no machine code.
    native: Result<Vec<Extended>, tamis_jit::Error>,
    endian: Endian,
}

impl Converted {
    /// Converts all filters of a stack, and says why one can't be.
    pub(super) fn new(stack: &Stack) -> Result<Converted, String> {
        let programs = stack.programs().iter().map(checked);
        let programs: Vec<Checked> = programs.collect::<Result<_, String>>()?;
        let compile = |program| Extended::compile(program, &tamis_jit::Options::default());
        Ok(Converted {
            threaded: programs.iter().map(Threaded::new).collect(),
            native: programs.iter().map(compile).collect(),
            endian: stack.endian().unwrap_or(Endian::Little),
        })
    }

    /// Why there is no machine code, if there is none.
    pub(super) fn without_native(&self) -> Option<&tamis_jit::Error> {
        self.native.as_ref().err()
    }

    /// The verdict of the interpreter for the bytes of a call.
    pub(super) fn interpreted(&self, context: &[u8; 64]) -> u32 {
        self.verdict(context, &self.threaded, |program, memory| {
            program.run(memory, &mut Helpers::none())
        })
    }

    /// The verdict of machine code, or of no filter without it.
    pub(super) fn native(&self, context: &[u8; 64]) -> u32 {
        let programs = self.native.as_deref().unwrap_or(&[]);
        self.verdict(context, programs, |program, memory| {
            program.run(memory, &mut Helpers::none())
        })
    }

    fn verdict<P, E>(
        &self,
        context: &[u8; 64],
        programs: &[P],
        run: impl Fn(&P, &mut Memory<'_>) -> Result<u64, E>,
    ) -> u32 {
        let mut memory = Memory::new(Context::ReadOnly(context), &[], self.endian);
        // A fault would be 0, which no other engine gives, as a difference.
        let runs = programs.iter().rev();
        let runs = runs.map(|program| run(program, &mut memory).map_or(0, |ret| ret as u32));
        runs.fold(stack::NO_FILTER, stack::stricter)
    }
}

fn checked(program: &Program) -> Result<Checked, String> {
    let converted = converted(program).map_err(|error| error.to_string())?;
    let options = check::Options {
        max_steps: 1_000_000,
        permits_unreachable: true,
    };
    let checked = check(converted, &Layout::seccomp(), &Helpers::none(), &options);
    checked.map_err(|refusal| refusal.to_string())
}

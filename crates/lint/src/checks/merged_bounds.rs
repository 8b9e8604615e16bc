//! Finds programs that resemble those of libseccomp before 2.6.1, which merged rules with upper bounds of 64 bits on one
//! argument wrongly (GHSA-4q85-33p6-j5g6): of two such rules whose bounds have the same upper half, the first one decided all
//! values with a smaller upper half, also those below the second one's closer bound.
//!
//! The rules are not in the program, so its meaning doesn't prove the defect, but shows its trace: with the upper half H of
//! the bounds, values up to the closer bound have one result, those from there to the other bound have another, and so have
//! all values below `H << 32`. No comparison with the bounds gives a change at `H << 32`.
//!
//! Reported are programs that allow more below `H << 32`; with a closer bound of exactly `H << 32` there is no trace.

use std::collections::BTreeSet;

use crate::code::LINT_MERGED_BOUNDS;
use tamis_abi::{Arch, ArgIndex, Nr, SeccompData, Word, syscall};
use tamis_analysis::{find, with_word, words};
use tamis_bpf::{Op, Operand, Pc, Program, Test, interp};
use tamis_prover::{Function, LimitReached, Limited};

use crate::context::{Context, is_executed};
use crate::finding::{Finding, Place};
use crate::registry::{Check, note};

pub(crate) const CHECK: Check = note(
    "merged-bounds",
    LINT_MERGED_BOUNDS,
    "a program resembles those in which an older libseccomp has lost a bound",
    run,
);

/// An argument of a call, in one program.
struct Argument<'a> {
    program: &'a Program,
    arch: Arch,
    nr: Nr,
    index: ArgIndex,
    /// From the arguments to return values.
    function: Function,
}

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let Some(stack) = context.filters() else {
        return Ok(Vec::new());
    };
    let mut findings = Vec::new();
    for (filter, program) in stack.programs().iter().enumerate() {
        let bounds = bounds(program);
        if bounds.len() < 2 {
            continue;
        }
        for argument in arguments(context, program)? {
            if let Some(trace) = trace(context, &argument, &bounds)? {
                findings.push(finding(context, &argument, trace, filter));
            }
        }
    }
    Ok(findings)
}

/// The values at which a comparison of order with a constant changes its outcome.
fn bounds(program: &Program) -> BTreeSet<u32> {
    let bound = |op: Op| match op {
        Op::Branch {
            test: Test::Ge,
            operand: Operand::K(k),
            ..
        } => Some(k),
        Op::Branch {
            test: Test::Gt,
            operand: Operand::K(k),
            ..
        } => k.checked_add(1),
        _ => None,
    };
    program.ops().filter_map(bound).collect()
}

/// The arguments of 64 bits that a program tests.
fn arguments<'a>(context: &mut Context, program: &'a Program) -> Limited<Vec<Argument<'a>>> {
    let mut arguments = Vec::new();
    let whole = context.space.program(program)?;
    for arch in context.arches.clone() {
        if !arch.has_64_bit_registers() {
            continue;
        }
        let of_arch = with_word(&mut context.space, whole, Word::ARCH, arch.audit())?;
        for (nr, _) in syscall::all(arch) {
            let function = with_word(&mut context.space, of_arch, Word::NR, nr.0)?;
            let words = words(&context.space, function);
            for index in ArgIndex::ALL {
                let halves = [Word::arg_low(index), Word::arg_high(index)];
                if halves.iter().all(|half| words.contains(half)) {
                    arguments.push(Argument {
                        program,
                        arch,
                        nr,
                        index,
                        function,
                    });
                }
            }
        }
    }
    Ok(arguments)
}

/// A call that the defect allows, with the same call just above `H << 32`, which is not executed.
fn trace(
    context: &mut Context,
    argument: &Argument,
    bounds: &BTreeSet<u32>,
) -> Limited<Option<[SeccompData; 2]>> {
    for upper in upper_halves(context, argument)? {
        let smaller = argument.with_upper(context, upper - 1)?;
        if words(&context.space, smaller).contains(&Word::arg_low(argument.index)) {
            continue;
        }
        let function = argument.with_upper(context, upper)?;
        let lowest = argument.with_lower(context, function, 0)?;
        // The results above each bound that changes them.
        let mut above = Vec::new();
        let mut last = lowest;
        for bound in bounds.iter().copied().filter(|bound| *bound > 0) {
            let before = argument.with_lower(context, function, bound - 1)?;
            let own = argument.with_lower(context, function, bound)?;
            if own != before && before == last {
                above.push(own);
                last = own;
            }
        }
        let is_trace = matches!(above.as_slice(), [between, beyond, ..] if *between == smaller && beyond != between);
        if !is_trace || smaller == lowest {
            continue;
        }
        let wanted = |values: &[u32]| is_executed(values[0]) && !is_executed(values[1]);
        if let Some(found) = find(&context.space, &[smaller, lowest], &wanted)? {
            let below = argument.call(found.data, upper - 1, u32::MAX);
            return Ok(Some([below, argument.call(found.data, upper, 0)]));
        }
    }
    Ok(None)
}

/// The upper halves, but 0, with which results change.
fn upper_halves(context: &mut Context, argument: &Argument) -> Limited<Vec<u32>> {
    let compared = |op: Op| match op {
        Op::Branch {
            operand: Operand::K(k),
            ..
        } => Some(k),
        _ => None,
    };
    let constants: BTreeSet<u32> = argument.program.ops().filter_map(compared).collect();
    let mut upper_halves = Vec::new();
    for upper in constants.into_iter().filter(|upper| *upper > 0) {
        let own = argument.with_upper(context, upper)?;
        if own != argument.with_upper(context, upper - 1)? {
            upper_halves.push(upper);
        }
    }
    Ok(upper_halves)
}

impl Argument<'_> {
    fn with_upper(&self, context: &mut Context, upper: u32) -> Limited<Function> {
        with_word(
            &mut context.space,
            self.function,
            Word::arg_high(self.index),
            upper,
        )
    }

    fn with_lower(
        &self,
        context: &mut Context,
        function: Function,
        lower: u32,
    ) -> Limited<Function> {
        with_word(
            &mut context.space,
            function,
            Word::arg_low(self.index),
            lower,
        )
    }

    /// A call with these halves of the argument.
    fn call(&self, found: SeccompData, upper: u32, lower: u32) -> SeccompData {
        let mut data = SeccompData {
            nr: self.nr.0,
            arch: self.arch.audit(),
            ..found
        };
        data.args[self.index.index()] = u64::from(upper) << 32 | u64::from(lower);
        data
    }
}

fn finding(
    context: &Context,
    argument: &Argument,
    calls: [SeccompData; 2],
    filter: usize,
) -> Finding {
    let name = syscall::name(argument.arch, argument.nr).unwrap_or("a call");
    let mut last = Pc(0);
    interp::run_traced(argument.program, &calls[0], &mut |pc| last = pc);
    Finding::new(
        (CHECK.code, CHECK.severity),
        format!(
            "argument {} of `{name}` seems to have lost an upper bound: smaller values are allowed, larger ones are not",
            argument.index.index()
        ),
        "libseccomp before 2.6.1 makes such programs of two rules with upper bounds of 64 bits; only the rules tell whether it \
         is meant",
        "compare the filter with its rules by `tamis diff`, or install it again with libseccomp 2.6.1 or later, or with tamis",
    )
    .examples(calls.map(|data| context.answer(&data)))
    .places([Place::Insn { filter, pc: last }])
}

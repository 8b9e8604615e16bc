//! Foreign filters: programs of any origin, alone or as a stack, made shorter and faster.
//!
//! The most effective way is to compile anew. The filters of a stack together are one function; `lift` expresses it
//! as rulesets, the compiler lays them out, and the best program wins. If there is no ruleset, `redispatch` rebuilds
//! the dispatch of each program and keeps the rest, and bytecode passes optimise it. A candidate is used only if
//! `rating` finds it better than the input, and is returned only as an [`Optimised`], which requires a comparison
//! with the input itself and not with the lifted ruleset.
//!
//! Stacks that can't be lifted remain stacks. Whether an input is the filters of a task or a function of its own
//! matters for one value: `ALLOW` with data, which a stack does not preserve.

#![forbid(unsafe_code)]

mod calls;
pub mod judge;
mod lift;
mod proved;
mod rating;
mod redispatch;
mod rejected;
mod remainder;
mod split;

use tamis_bpf::cfg::{Cfg, End};
use tamis_bpf::{Op, Operand, Program, Stack, Test};
use tamis_rules::Ruleset;

use tamis_compiler::CompileError;
use tamis_compiler::CompileOptions;
use tamis_compiler::passes::{self, PassCx, Remark};
use tamis_compiler::stages;

pub use proved::{Method, Optimised};
pub use rating::Rating;
pub use rejected::{Rejected, RejectionReason};

use calls::Calls;
use lift::{Lift, Lifted};
use proved::Candidate;
use redispatch::redispatch;

/// Whether the result may have more filters than the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// One program, or the number of programs given.
    #[default]
    Never,
    /// Several programs if one would be longer than the kernel accepts.
    IfTooLong,
}

/// The byte offset of the architecture in `struct seccomp_data`.
const ARCH_OFFSET: u32 = 4;

/// Optimises the filters of a task, given from the oldest to the newest: returns one equivalent filter for all of
/// them, or a better one for each. The result is never worse than the input by the objective; if nothing better was
/// found and proved, it is the input.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_bpf::{Op, Program, Stack};
/// use tamis_compiler::CompileOptions;
/// use tamis_optimize::{Split, optimise};
/// let program = |ret| {
///     let insns = vec![Op::LoadData(0).into(), Op::RetImm(ret).into()];
///     Program::new(insns, Endian::Little).unwrap()
/// };
/// let stack = Stack::new(vec![program(0x7fff_0000), program(0x0005_0001)]).unwrap();
/// let optimised = optimise(&stack, &CompileOptions::default(), Split::Never).unwrap();
/// let [program] = optimised.programs() else { panic!("one filter") };
/// assert_eq!(program.len(), 1);
/// ```
///
/// # Errors
/// Only bugs of tamis: a program that the kernel would reject, or one that is not equivalent.
pub fn optimise(
    stack: &Stack,
    options: &CompileOptions,
    split: Split,
) -> Result<Optimised, CompileError> {
    let lift = Lift::from_stack(stack, &options.proof);
    let calls = Calls::new(stack.programs(), &lift.lifted, options);
    let rate = |programs: &[Program]| Rating::from_programs(programs, &calls);
    let input = proved::Input {
        stack,
        before: rate(stack.programs()),
        archs: calls::archs(stack.programs(), &lift.lifted),
        effort: &options.proof,
        is_beyond_diagrams: lift.is_beyond_diagrams,
    };
    let (candidates, mut rejected) = candidates(&input, lift, options, split)?;
    let rated = candidates.into_iter();
    let mut rated: Vec<(Rating, Candidate)> = rated
        .map(|candidate| (rate(&candidate.programs), candidate))
        .collect();
    rated.sort_by_key(|(rating, _)| rating.key(options.objective));
    let mut best = None;
    for (after, candidate) in rated {
        let how = candidate.how;
        let why = match after.flaw(&input.before, options.objective) {
            Some(why) => why,
            None if best.is_some() => RejectionReason::NotBetter(Box::new(after)),
            None => match proved::prove(&input, candidate, after)? {
                Ok(optimised) => {
                    best = Some(optimised);
                    continue;
                }
                Err(why) => why,
            },
        };
        rejected.push(Rejected { how, why });
    }
    let best = best.unwrap_or_else(|| proved::unchanged(input));
    Ok(proved::with_rejected(best, rejected))
}

/// Candidates for a better result, and the methods that gave none.
fn candidates(
    input: &proved::Input<'_>,
    lift: Lift,
    options: &CompileOptions,
    split: Split,
) -> Result<(Vec<Candidate>, Vec<Rejected>), CompileError> {
    let mut candidates = vec![by_passes(input, options)];
    let mut rejected = Vec::new();
    let mut add = |how: Method, made: Result<Candidate, RejectionReason>| match made {
        Ok(candidate) => candidates.push(candidate),
        Err(why) => rejected.push(Rejected { how, why }),
    };
    if let Some(reason) = lift.unliftable {
        add(
            Method::LaidOutAnew,
            Err(RejectionReason::Unliftable(reason)),
        );
    }
    for lifted in &lift.lifted {
        let made = anew(lifted, options, split)?;
        add(Method::LaidOutAnew, made.ok_or(RejectionReason::NoProgram));
    }
    let made = by_number(input, options);
    add(Method::Redispatched, made.ok_or(RejectionReason::NoProgram));
    Ok((candidates, rejected))
}

/// Every program after bytecode passes.
fn by_passes(input: &proved::Input<'_>, options: &CompileOptions) -> Candidate {
    let mut cx = PassCx::with_options(options, input.archs.iter().copied());
    let passes = options.passes.bytecode_passes();
    let programs = input.stack.programs().iter();
    let programs =
        programs.map(|program| stages::optimise(program, passes, &mut cx).into_unproven());
    Candidate {
        programs: programs.collect(),
        how: Method::Passes,
        remarks: cx.into_remarks(),
    }
}

/// Every program with a new dispatch; `None` if no program can get one.
fn by_number(input: &proved::Input<'_>, options: &CompileOptions) -> Option<Candidate> {
    let mut remarks = Vec::new();
    let mut is_any_new = false;
    let programs = input.stack.programs().iter().map(|program| {
        let made = redispatch(program, &input.archs, options);
        let Some((redispatched, done)) = made else {
            return program.clone();
        };
        is_any_new = true;
        passes::append(&mut remarks, done);
        redispatched
    });
    let programs = programs.collect();
    is_any_new.then_some(Candidate {
        programs,
        how: Method::Redispatched,
        remarks,
    })
}

/// The lifted ruleset, laid out: one program, or several if it is too long and may be split.
fn anew(
    lifted: &Lifted,
    options: &CompileOptions,
    split: Split,
) -> Result<Option<Candidate>, CompileError> {
    let mut remarks = Vec::new();
    let Some(program) = lay_out(&lifted.ruleset, lifted, options, &mut remarks)? else {
        return Ok(None);
    };
    if program.is_installable() || split == Split::Never {
        return Ok(Some(Candidate {
            programs: vec![program],
            how: Method::LaidOutAnew,
            remarks,
        }));
    }
    remarks.clear();
    let mut fit = |share: &Ruleset| {
        let program = lay_out(share, lifted, options, &mut remarks)?;
        Ok(program.filter(Program::is_installable))
    };
    let programs = split::split(&lifted.ruleset, &mut fit)?;
    Ok(programs.map(|programs| Candidate {
        programs,
        how: Method::Split,
        remarks,
    }))
}

fn lay_out(
    ruleset: &Ruleset,
    lifted: &Lifted,
    options: &CompileOptions,
    remarks: &mut Vec<Remark>,
) -> Result<Option<Program>, CompileError> {
    let (template, done) = stages::build(ruleset, options, lifted.endian)?;
    passes::append(remarks, done);
    // Lifted rulesets have no variables.
    let program = template.into_unproven().bind(&[]);
    if lifted.asks_arch {
        return Ok(Some(program));
    }
    Ok(without_arch_check(&program, options))
}

/// The program without its first test, which compares the architecture with that of x86_64; `None` if it begins with
/// anything else, except a return.
fn without_arch_check(program: &Program, options: &CompileOptions) -> Option<Program> {
    let mut graph = Cfg::from_program(program);
    let entry = graph.block(graph.entry());
    if let End::Branch {
        test: Test::Eq,
        operand: Operand::K(audit),
        yes,
        ..
    } = entry.end
        && entry.ops == [Op::LoadData(ARCH_OFFSET)]
        && audit == lift::STAND_IN.audit()
    {
        graph.set_entry(yes);
    } else if !entry.is_return() {
        return None;
    }
    let mut cx = PassCx::new(options.fuel);
    let graph = stages::run_on_graph(graph, options.passes.bytecode_passes(), &mut cx);
    let program = stages::linearise(&graph.into_unproven()).ok()?;
    Some(program.into_unproven())
}

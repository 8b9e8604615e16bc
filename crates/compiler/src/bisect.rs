//! Binary search for the change that breaks a program.
//!
//! Passes use one unit of fuel for every change. Without fuel the program is the result of layout; with enough fuel
//! it is the compiler's result. If the result is wrong and that of layout is not, some change turns a correct program
//! into a wrong one, and about ten compilations find it.

use tamis_abi::Endian;
use tamis_rules::Ruleset;

use crate::compile::{build, check};
use crate::error::CompileError;
use crate::judge;
use crate::options::CompileOptions;
use crate::passes::Remark;
use crate::passes::registry::Selection;

/// The result of the search.
#[derive(Clone, Debug, PartialEq)]
pub enum Bisection {
    /// The program is correct with all changes.
    Right {
        /// The number of changes.
        changes: u64,
    },
    /// The program is wrong without any change: the bug is not in a pass.
    WrongFromTheStart(CompileError),
    /// A change turns a correct program into a wrong one.
    Found(Box<Culprit>),
}

/// The change that turns a correct program into a wrong one.
#[derive(Clone, Debug, PartialEq)]
pub struct Culprit {
    /// The number of the change, from 1: with this much fuel the program is wrong, with one unit less it is correct.
    pub fuel: u64,
    /// The number of all changes.
    pub changes: u64,
    /// The change, with its pass.
    pub remark: Remark,
    /// The error of the program with the change.
    pub error: CompileError,
}

/// Finds the change that breaks the program of a ruleset, if there is one.
///
/// The program may be longer than the kernel accepts. Takes two compilations more than the number of changes has
/// binary digits.
///
/// # Errors
/// If the ruleset can't be compiled, or the prover reaches a limit.
pub fn bisect(ruleset: &Ruleset, passes: &Selection) -> Result<Bisection, CompileError> {
    let endian = check(ruleset)?;
    let all = try_with(ruleset, passes, endian, None)?;
    let changes = all.remarks.len() as u64;
    let Some(mut error) = all.mistake else {
        return Ok(Bisection::Right { changes });
    };
    if let Some(error) = try_with(ruleset, passes, endian, Some(0))?.mistake {
        return Ok(Bisection::WrongFromTheStart(error));
    }
    let (mut right, mut wrong, mut remarks) = (0, changes, all.remarks);
    while wrong - right > 1 {
        let fuel = right + (wrong - right) / 2;
        let trial = try_with(ruleset, passes, endian, Some(fuel))?;
        match trial.mistake {
            Some(mistake) => (wrong, error, remarks) = (fuel, mistake, trial.remarks),
            None => right = fuel,
        }
    }
    let Some(remark) = remarks.pop() else {
        // There were no changes: the same program was built twice, and one proof failed.
        return Ok(Bisection::WrongFromTheStart(error));
    };
    Ok(Bisection::Found(Box::new(Culprit {
        fuel: wrong,
        changes,
        remark,
        error,
    })))
}

/// A program built with limited fuel.
struct Trial {
    remarks: Vec<Remark>,
    /// Its error, if it is wrong.
    mistake: Option<CompileError>,
}

fn try_with(
    ruleset: &Ruleset,
    passes: &Selection,
    endian: Endian,
    fuel: Option<u64>,
) -> Result<Trial, CompileError> {
    let options = CompileOptions {
        passes: passes.clone(),
        fuel,
        ..CompileOptions::default()
    };
    let built = build(ruleset, &options, endian, &mut |_, _| ())?;
    let mistake = match judge::compiled(&built.template, ruleset, &options.proof) {
        Ok(()) => None,
        Err(error) if error.is_bug() => Some(error),
        Err(error) => return Err(error),
    };
    Ok(Trial {
        remarks: built.remarks,
        mistake,
    })
}

#[cfg(test)]
pub(crate) mod testing {
    //! Deliberately wrong passes, and a ruleset to run them on.

    use tamis_abi::Action;
    use tamis_bpf::cfg::{Cfg, End};
    use tamis_rules::Ruleset;

    use crate::passes::registry::{self, Selection};
    use crate::passes::{BytecodePass, Changed, Draft, PassCx, RulePass};

    /// Rules that the passes of the registry can change.
    pub(crate) fn parse() -> Ruleset {
        let text = "ruleset bad-arch kill_process\n\
                    section x86_64 default errno(1)\n\
                    read: allow\n\
                    write if any(arg0 == 0x1, arg0 == 0x2): allow\n\
                    socket if all(arg0.low == 0x2, true): allow\n\
                    close if any(arg0 == 0x5, arg0 == 0x7, arg0 == 0x9): allow\n";
        let mut sources = tamis_diag::Sources::new();
        let source = sources.add("a.rules", text);
        tamis_rules::text::parse(&sources, source).expect("the text parses")
    }

    /// The passes of the registry, followed by wrong ones.
    pub(crate) fn selection(rule: Option<RulePass>, bytecode: Option<BytecodePass>) -> Selection {
        let mut selection = Selection::default();
        selection.rules.extend(rule);
        selection.bytecode.extend(bytecode);
        selection
    }

    /// A wrong pass that drops the last rule, once.
    pub(crate) fn drop_a_rule() -> RulePass {
        fn run(draft: &mut Draft, cx: &mut PassCx) -> Changed {
            let applies = draft.rules.len() == 4 && cx.apply(0, || "forgot it".to_owned());
            if applies {
                draft.rules.pop();
            }
            Changed::when(applies)
        }
        let mut pass = registry::RULE_PASSES[0];
        pass.info.name = "forget-a-rule";
        RulePass { run, ..pass }
    }

    /// A wrong pass that kills the process where the program allows.
    pub(crate) fn allow_nothing() -> BytecodePass {
        fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
            let allowed = End::Ret(Action::ALLOW.ret());
            let block = graph.blocks().find(|(_, block)| block.end == allowed);
            let Some(id) = block.map(|(id, _)| id) else {
                return Changed::No;
            };
            let applies = cx.apply(0, || "killed it".to_owned());
            if applies {
                graph.block_mut(id).end = End::Ret(0);
            }
            Changed::when(applies)
        }
        let mut pass = registry::BYTECODE_PASSES[0];
        pass.info.name = "allow-nothing";
        BytecodePass { run, ..pass }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{allow_nothing, drop_a_rule, parse, selection};
    use super::*;

    fn culprit(passes: &Selection) -> Culprit {
        match bisect(&parse(), passes).unwrap() {
            Bisection::Found(culprit) => *culprit,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn right_programs_have_no_culprit() {
        let Bisection::Right { changes } = bisect(&parse(), &Selection::default()).unwrap() else {
            panic!("the passes are right");
        };
        assert!(changes > 1, "there is something to bisect");
    }

    #[test]
    fn the_wrong_change_is_found_among_right_ones() {
        let by_rule = culprit(&selection(Some(drop_a_rule()), None));
        assert_eq!(by_rule.remark.pass, "forget-a-rule");
        let by_block = culprit(&selection(None, Some(allow_nothing())));
        assert_eq!(by_block.remark.pass, "allow-nothing");
        for Culprit {
            fuel,
            changes,
            error,
            ..
        } in [by_rule, by_block]
        {
            assert!(1 < fuel && fuel <= changes, "{fuel} of {changes}");
            assert!(error.is_bug(), "{error}");
        }
    }

    #[test]
    fn with_the_fuel_that_was_named_the_program_is_wrong_and_with_less_it_is_right() {
        let passes = selection(None, Some(allow_nothing()));
        let Culprit { fuel, .. } = culprit(&passes);
        let compile = |fuel| {
            let options = CompileOptions {
                passes: passes.clone(),
                fuel: Some(fuel),
                ..CompileOptions::default()
            };
            crate::compile(&parse(), &options)
        };
        assert!(compile(fuel - 1).is_ok());
        assert!(compile(fuel).is_err());
    }
}

//! A proof after every stage, to find the stage that breaks the meaning.
//!
//! The proof at the end shows that there is a mistake, not where. A [`Watcher`] gets the result of layout and of
//! every pass that changed something, compares it with the ruleset as given, and keeps the first error with the name
//! of the stage.

use tamis_bpf::cfg::Cfg;
use tamis_rules::Ruleset;

use crate::error::CompileError;
use crate::judge;
use crate::linearise::place;
use crate::options::ProofEffort;
use crate::verify::check_ruleset;

/// The result of a stage.
#[derive(Clone, Copy)]
pub(crate) enum Made<'a> {
    /// The rules, computed on demand.
    Rules(&'a dyn Fn() -> Ruleset),
    Graph(&'a Cfg),
}

/// Checks the results of the stages and keeps the first error.
pub(crate) struct Watcher<'a> {
    ruleset: &'a Ruleset,
    effort: &'a ProofEffort,
    mistake: Option<CompileError>,
}

impl<'a> Watcher<'a> {
    /// A watcher for the compilation of a ruleset.
    pub(crate) fn new(ruleset: &'a Ruleset, effort: &'a ProofEffort) -> Watcher<'a> {
        Watcher {
            ruleset,
            effort,
            mistake: None,
        }
    }

    /// Checks the result of a stage, unless an earlier stage had an error.
    pub(crate) fn see(&mut self, stage: &'static str, made: Made<'_>) {
        if self.mistake.is_some() {
            return;
        }
        if let Err(error) = self.check(made) {
            let error = Box::new(error);
            self.mistake = Some(CompileError::After { stage, error });
        }
    }

    /// The first error, if there was one.
    pub(crate) fn into_result(self) -> Result<(), CompileError> {
        self.mistake.map_or(Ok(()), Err)
    }

    fn check(&self, made: Made<'_>) -> Result<(), CompileError> {
        match made {
            Made::Rules(made) => check_ruleset(&made(), self.ruleset, self.effort),
            Made::Graph(graph) => {
                let template = place(graph).template().map_err(CompileError::Invalid)?;
                judge::compiled(&template, self.ruleset, self.effort)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::testing::{allow_nothing, drop_a_rule, parse, selection};
    use crate::{CompileOptions, compile};

    fn blamed(rules: bool, bytecode: bool) -> Option<&'static str> {
        let options = CompileOptions {
            passes: selection(
                rules.then_some(drop_a_rule()),
                bytecode.then_some(allow_nothing()),
            ),
            verify_each: true,
            ..CompileOptions::default()
        };
        match compile(&parse(), &options) {
            Ok(_) => None,
            Err(CompileError::After { stage, error }) => {
                let CompileError::Miscompiled {
                    witness,
                    expected_ret,
                    actual_ret,
                } = *error
                else {
                    panic!("{error}");
                };
                assert_eq!(parse().decide(&witness.data).action.ret(), expected_ret);
                assert_ne!(expected_ret, actual_ret);
                Some(stage)
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn the_first_wrong_pass_is_blamed_and_no_other() {
        assert_eq!(blamed(false, false), None);
        assert_eq!(blamed(true, false), Some("forget-a-rule"));
        assert_eq!(blamed(false, true), Some("allow-nothing"));
        assert_eq!(blamed(true, true), Some("forget-a-rule"));
    }
}

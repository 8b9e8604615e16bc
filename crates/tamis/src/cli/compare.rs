//! What `prove` and `diff` share: two sides in one space, compared within a scope.

use tamis_abi::{Action, Arch, SeccompData, call};
use tamis_prover::{
    Comparison, Function, LimitReached, Limits, Pair, Scope, Space, Subject, Verdict, prove,
};

use super::load::LoadArgs;
use super::side::Side;
use super::{Failure, Global, exit};

/// What of two filters is compared.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct ScopeArgs {
    /// Compare only numbers below 2^30: not those of x32, nor the -1 of a tracer that skips a call
    #[arg(long)]
    native: bool,
    /// Compare only what happens to a call: neither errno values and other data, nor whether the process
    /// or the thread is killed
    #[arg(long)]
    actions_only: bool,
    /// Give up beyond this many nodes of decision diagrams, 24 bytes each
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().max_nodes)]
    max_nodes: usize,
    /// Give up beyond this many conflicts of the SAT solver, which is asked where diagrams don't do
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().max_conflicts)]
    max_conflicts: u64,
}

/// Two sides in one space.
pub(crate) struct Compared {
    pub(crate) left: Side,
    pub(crate) right: Side,
    pub(crate) space: Space,
    limits: Limits,
    functions: Result<[Function; 2], LimitReached>,
}

/// What is known about two sides.
pub(crate) struct Finding {
    /// `None` if it depends on calls of which none was found.
    pub(crate) verdict: Option<Verdict>,
    /// Pairs of different answers: all, or those that the prover's other way found, one of each
    /// strictness.
    pub(crate) pairs: Vec<Pair>,
    /// Whether diagrams could hold the filters, and so can answer more questions about them.
    pub(crate) by_diagrams: bool,
}

impl ScopeArgs {
    /// The scope; the architectures are those that the inputs are read for.
    pub(crate) fn scope(self, load: &LoadArgs) -> Scope {
        Scope {
            arches: load.arches.clone(),
            native_only: self.native,
            actions_only: self.actions_only,
        }
    }

    fn limits(self) -> Limits {
        Limits {
            max_nodes: self.max_nodes,
            max_conflicts: self.max_conflicts,
            ..Limits::default()
        }
    }
}

impl Compared {
    /// Reads both sides and says what they mean.
    pub(crate) fn read(
        [left, right]: [&str; 2],
        args: ScopeArgs,
        load: &LoadArgs,
        global: &Global,
    ) -> Result<Compared, Failure> {
        let load = load.for_comparison();
        let left = Side::read(left, &load, global)?;
        let right = Side::read(right, &load, global)?;
        load.check_profile_options(left.filters().iter().chain(right.filters()))?;
        let limits = args.limits();
        let mut space = Space::new(limits);
        let functions = [&left, &right].map(|side| side.function(&mut space));
        let [left_function, right_function] = functions;
        let functions = left_function.and_then(|left| Ok([left, right_function?]));
        Ok(Compared {
            left,
            right,
            space,
            limits,
            functions,
        })
    }

    /// Compares them within a scope, by diagrams.
    pub(crate) fn within(&mut self, scope: &Scope) -> Result<Comparison, LimitReached> {
        let [left, right] = self.functions?;
        self.space.comparison(left, right, scope)
    }

    /// What is known about them within a scope, by diagrams or by the prover's other way.
    pub(crate) fn find(&mut self, scope: &Scope) -> Result<Finding, Failure> {
        let limit = match self.within(scope) {
            Ok(comparison) => {
                return Ok(Finding {
                    verdict: comparison.verdict(),
                    pairs: comparison.pairs().to_vec(),
                    by_diagrams: true,
                });
            }
            Err(limit) => limit,
        };
        let report = self.left.with_subject(|left| {
            let prove = |right: &Subject<'_>| prove(left, right, scope, &self.limits);
            self.right.with_subject(prove)
        });
        let Some(report) = report.flatten() else {
            return Err(gave_up(limit));
        };
        Ok(Finding {
            verdict: Some(report.verdict.map_err(gave_up)?),
            pairs: report.pairs,
            by_diagrams: false,
        })
    }

    /// The architectures that one of the sides has something to say about.
    pub(crate) fn arches(&self) -> Vec<Arch> {
        let functions = self.functions.iter().flatten();
        let mut arches: Vec<Arch> = functions
            .flat_map(|function| self.space.arches(*function))
            .collect();
        arches.sort_by_key(|arch| *arch as u32);
        arches.dedup();
        arches
    }

    /// Asks evaluator and interpreter whether a call is answered as the prover says.
    pub(crate) fn confirm(&self, data: &SeccompData, pair: &Pair) -> Result<(), Failure> {
        let answers = (self.left.answer(data), self.right.answer(data));
        if answers == (pair.left, pair.right) {
            return Ok(());
        }
        let answer = |ret| Action::from_ret(ret).to_string();
        Err(Failure::Message {
            message: format!(
                "bug in tamis: the prover says {} and {} for {}, the interpreter {} and {}",
                answer(pair.left),
                answer(pair.right),
                call::describe(data),
                answer(answers.0),
                answer(answers.1),
            ),
            help: Some("please report this with both inputs".to_owned()),
            code: exit::BUG,
        })
    }
}

/// The prover reached a limit.
pub(crate) fn gave_up(limit: LimitReached) -> Failure {
    Failure::Message {
        message: format!("gave up: {limit}"),
        help: Some(
            "programs that compute with several arguments can take more than the prover can hold; \
             there is no answer, neither yes nor no"
                .to_owned(),
        ),
        code: exit::GAVE_UP,
    }
}

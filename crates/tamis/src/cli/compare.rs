//! The comparison of two sides within a scope, for `prove` and `diff`.
//!
//! The cheapest method is first: identical programs are equal; a short search by execution finds differing calls of
//! most sides that differ; then come decision diagrams, then SAT. All share one deadline.

use std::fmt;
use std::sync::Arc;

use tamis_abi::{Action, Arch};
use tamis_analysis::arches;
use tamis_compiler::ProofEffort;
use tamis_fuzz::refute;
use tamis_prover::{
    Comparison, ComparisonResult, Function, LimitReached, Limits, Pair, Scope, Space, Stop,
    prove_by_gates,
};
use tamis_rules::{Input, Variable};
use tamis_session::bindings::match_variables;
use tamis_session::{Side, SideOptions};

use super::certify::CertifyArgs;
use super::limits::{LimitArgs, raise, text};
use super::load::LoadArgs;
use super::settings::Coverage;
use super::{Failure, Global, budget};
use tamis_cli::side::SideInputs;

/// The scope of a comparison.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct ScopeArgs {
    /// Compare only numbers below 2^30: not those of x32, nor the -1 of a tracer that skips a call
    #[arg(long, help_heading = "Comparing")]
    native: bool,
    /// Compare actions only: ignore errno values and other data, and whether the process or the thread is
    /// killed
    #[arg(long, help_heading = "Comparing")]
    actions_only: bool,
    /// Give up beyond this many conflicts of the SAT solver, used when diagrams are inconclusive
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().max_conflicts, help_heading = "Limits")]
    max_conflicts: u64,
    #[command(flatten)]
    limits: LimitArgs,
}

/// Two sides in one space.
pub(crate) struct ComparedSides {
    pub(crate) left: Side,
    pub(crate) right: Side,
    pub(crate) space: Space,
    args: ScopeArgs,
    stop: Stop,
    /// Whether the sides are identical.
    is_identical: bool,
    /// The functions of both sides, once computed.
    functions: Option<Result<[Function; 2], LimitReached>>,
    /// Calls that the sides decide differently, in any of the scopes compared so far.
    known: Vec<Pair>,
    /// The readings that the comparison covers.
    pub(crate) coverage: Coverage,
    sources: Arc<[SideSource; 2]>,
}

/// The inputs of a side with its own options.
struct SideSource {
    inputs: SideInputs,
    own: SideOptions,
}

/// The result of a comparison.
pub(crate) struct Finding {
    /// `None` if it depends on pairs without an example call.
    pub(crate) result: Option<ComparisonResult>,
    /// The pairs of different actions: all, or at most one of each strictness if SAT or execution found them.
    pub(crate) pairs: Vec<Pair>,
    /// The limits of an incomplete comparison.
    pub(crate) gaps: Option<ReachedLimits>,
    /// The comparison by diagrams, if they fit both sides.
    pub(crate) comparison: Option<Comparison>,
}

/// The limits at which the methods stopped.
#[derive(Clone, Copy)]
pub(crate) struct ReachedLimits {
    /// The limit of the decision diagrams.
    by_diagrams: LimitReached,
    /// The limit of the SAT solver.
    by_gates: LimitReached,
}

impl Finding {
    const EQUAL: Finding = Finding {
        result: Some(ComparisonResult::Equal),
        pairs: Vec::new(),
        gaps: None,
        comparison: None,
    };
}

impl ScopeArgs {
    /// The scope; its architectures are those of the inputs.
    pub(crate) fn scope(self, load: &LoadArgs) -> Scope {
        Scope {
            arches: load.arches.to_vec(),
            native_only: self.native,
            actions_only: self.actions_only,
        }
    }

    /// Whether no option leaves out numbers or parts of values.
    pub(crate) const fn is_of_all_values(self) -> bool {
        !self.native && !self.actions_only
    }

    fn limits(self) -> Limits {
        Limits {
            max_conflicts: self.max_conflicts,
            ..self.limits.limits()
        }
    }
}

impl SideSource {
    fn read(
        argument: &str,
        own: SideOptions,
        load: &LoadArgs,
        global: &Global,
    ) -> Result<(SideSource, Side), Failure> {
        let inputs = SideInputs::read(argument, global)?;
        let source = SideSource { inputs, own };
        let side = source.load(load, global)?;
        Ok((source, side))
    }

    fn load(&self, load: &LoadArgs, global: &Global) -> Result<Side, Failure> {
        let side = self.inputs.clone().load(&self.own, load, global)?;
        self.own.check(&side)?;
        Ok(side)
    }
}

/// The options of the first reading of both sides.
fn first_reading(coverage: &Coverage) -> LoadArgs {
    coverage.first.for_comparison().keeping_variables()
}

impl ComparedSides {
    /// Reads both sides, each with its own options, and computes their meaning.
    pub(crate) fn read(
        [left, right]: [(&str, &[String]); 2],
        args: ScopeArgs,
        load: &LoadArgs,
        global: &Global,
    ) -> Result<ComparedSides, Failure> {
        let own = [SideOptions::parse(left.1)?, SideOptions::parse(right.1)?];
        let coverage = Coverage::new(load, &own.each_ref());
        let load = first_reading(&coverage);
        let [own_left, own_right] = own;
        let (source_left, left) = SideSource::read(left.0, own_left, &load, global)?;
        let (source_right, right) = SideSource::read(right.0, own_right, &load, global)?;
        let sources = Arc::new([source_left, source_right]);
        ComparedSides::new(sources, [left, right], args, coverage, global)
    }

    /// The same sides, loaded in another way, without warnings.
    pub(crate) fn loaded_by(&self, load: &LoadArgs) -> Result<ComparedSides, Failure> {
        let global = Global::silent();
        let sources = Arc::clone(&self.sources);
        let coverage = Coverage::new(load, &sources.each_ref().map(|source| &source.own));
        let load = first_reading(&coverage);
        let sides = [
            sources[0].load(&load, &global)?,
            sources[1].load(&load, &global)?,
        ];
        ComparedSides::new(sources, sides, self.args, coverage, &global)
    }

    fn new(
        sources: Arc<[SideSource; 2]>,
        [mut left, mut right]: [Side; 2],
        args: ScopeArgs,
        coverage: Coverage,
        global: &Global,
    ) -> Result<ComparedSides, Failure> {
        let load = first_reading(&coverage);
        load.check_options(left.filters().iter().chain(right.filters()))?;
        let variables = match_variables(left.filters_mut().chain(right.filters_mut()))?;
        note_variables(&variables, global);
        let stop = budget::stop();
        let is_identical = left.is_identical(&right);
        Ok(ComparedSides {
            left,
            right,
            space: Space::stoppable(args.limits(), stop.clone()),
            args,
            stop,
            is_identical,
            functions: None,
            known: Vec::new(),
            coverage,
            sources,
        })
    }

    /// Calls `see` with each other reading in which the sides differ as text, with its title and scope, until it
    /// returns false. Readings that have the same rules as an earlier one are skipped.
    pub(crate) fn other_readings(
        &self,
        scope: &Scope,
        mut see: impl FnMut(&str, &Scope, ComparedSides) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let has_same_options = self.sources[0].own == self.sources[1].own;
        if has_same_options && self.left.has_texts_of(&self.right) {
            return Ok(());
        }
        let mut seen: Vec<[Side; 2]> = vec![[self.left.clone(), self.right.clone()]];
        for other in self
            .coverage
            .others(&[self.left.filters(), self.right.filters()])?
        {
            let compared = match self.loaded_by(&other.load) {
                Ok(compared) => compared,
                // A profile that is no filter on a machine.
                Err(Failure::Diagnostics(..)) => continue,
                Err(failure) => return Err(failure),
            };
            let own = [&compared.left, &compared.right];
            let is_same = |before: &[Side; 2]| (0..2).all(|at| before[at].is_identical(own[at]));
            if compared.is_identical || seen.iter().any(is_same) {
                continue;
            }
            seen.push(own.map(Side::clone));
            let scope = Scope {
                arches: other.arches,
                ..scope.clone()
            };
            if !see(&other.title, &scope, compared)? {
                break;
            }
        }
        Ok(())
    }

    /// The functions of both sides.
    fn functions(&mut self) -> Result<[Function; 2], LimitReached> {
        if let Some(known) = self.functions {
            return known;
        }
        let mut function = |side: &Side| side.with_subject(|subject| self.space.subject(subject));
        let left = function(&self.left);
        let functions = left.and_then(|left| Ok([left, function(&self.right)?]));
        self.functions = Some(functions);
        functions
    }

    /// Compares the sides within a scope, by diagrams.
    fn within(&mut self, scope: &Scope) -> Result<Comparison, LimitReached> {
        let [left, right] = self.functions()?;
        self.space.comparison(left, right, scope)
    }

    /// Compares the sides within a scope. Once a call is known for a pair that settles the question, the rest of the
    /// search gets only a share of the time.
    pub(crate) fn find(&mut self, scope: &Scope, settles: impl Fn(&Pair) -> bool) -> Finding {
        if self.is_identical {
            return Finding::EQUAL;
        }
        let found = self.left.with_subject(|left| {
            self.right
                .with_subject(|right| refute([left, right], scope, &self.stop))
        });
        self.known.extend(found.map(|found| Pair {
            left: found.left,
            right: found.right,
            example: Some(found.data.into()),
        }));
        if self.known_within(scope).any(settles) {
            budget::leave_share();
        }
        self.find_within(scope, self.args.max_conflicts)
    }

    /// Compares the sides within a scope with a tenth of the effort, for additional findings.
    pub(crate) fn find_briefly(&mut self, scope: &Scope) -> Finding {
        self.find_within(scope, self.args.max_conflicts / 10)
    }

    /// The known differing calls within a scope.
    pub(crate) fn known_within(&self, scope: &Scope) -> impl Iterator<Item = &Pair> {
        self.known.iter().filter(|pair| {
            let is_within = pair.example.is_some_and(|example| scope.has(&example));
            is_within && !scope.is_same(pair.left, pair.right)
        })
    }

    fn find_within(&mut self, scope: &Scope, max_conflicts: u64) -> Finding {
        let mut found = self.decide_within(scope, max_conflicts);
        let strictness = |pair: &Pair| pair.strictness();
        for known in self.known_within(scope) {
            if !found
                .pairs
                .iter()
                .map(strictness)
                .any(|has| has == known.strictness())
            {
                found.pairs.push(*known);
            }
        }
        let is_refuted = |pair: &Pair| pair.example.is_some();
        if found.result == Some(ComparisonResult::Equal) && found.pairs.iter().any(is_refuted) {
            // The evaluators contradict the proof, and they define the meaning of filters.
            found.result = None;
        }
        self.known
            .extend(found.pairs.iter().filter(|pair| is_refuted(pair)));
        found
    }

    /// The comparison by diagrams if there are too many pairs of return values to list.
    fn by_strictness(
        &mut self,
        scope: &Scope,
        comparison: &Result<Comparison, LimitReached>,
    ) -> Option<Finding> {
        let Err(LimitReached::Pairs) = comparison else {
            return None;
        };
        let [left, right] = self.functions().ok()?;
        let mut pairs = self.space.strictness(left, right, scope).ok()?;
        let all = ComparisonResult::of_pairs(&pairs);
        // A pair without a call may be infeasible; the result holds if it is the same without such pairs.
        pairs.retain(|pair| pair.example.is_some());
        (all == ComparisonResult::of_pairs(&pairs)).then_some(Finding {
            result: Some(all),
            pairs,
            gaps: None,
            comparison: None,
        })
    }

    /// Compares the sides within a scope, by diagrams or else by SAT.
    fn decide_within(&mut self, scope: &Scope, max_conflicts: u64) -> Finding {
        let comparison = self.within(scope);
        if let Some(found) = self.by_strictness(scope, &comparison) {
            return found;
        }
        if let Ok(comparison) = &comparison
            && let Some(result) = comparison.result()
        {
            return Finding {
                result: Some(result),
                pairs: comparison.pairs().to_vec(),
                gaps: None,
                comparison: Some(comparison.clone()),
            };
        }
        let limits = Limits {
            max_conflicts,
            ..self.args.limits()
        };
        let report = self.left.with_subject(|left| {
            self.right
                .with_subject(|right| prove_by_gates(left, right, scope, &limits, &self.stop))
        });
        let by_diagrams = comparison.as_ref().err().copied();
        let gaps = |by_gates| ReachedLimits {
            by_diagrams: by_diagrams.unwrap_or(LimitReached::Paths),
            by_gates,
        };
        Finding {
            result: report.result.ok(),
            gaps: report.result.err().map(gaps),
            pairs: match &comparison {
                Ok(comparison) if report.result.is_err() => comparison.pairs().to_vec(),
                _ => report.pairs,
            },
            comparison: comparison.ok(),
        }
    }

    /// Writes a certificate that the sides are equivalent for every call, if it is wanted.
    pub(crate) fn certify(&self, args: &CertifyArgs, global: &Global) -> Result<(), Failure> {
        let effort = ProofEffort {
            limits: self.args.limits(),
            stop: self.stop.clone(),
        };
        self.left.with_subject(|left| {
            self.right
                .with_subject(|right| args.write(left, right, &effort, global))
        })
    }

    /// The architectures that either side has rules for.
    pub(crate) fn arches(&self) -> Vec<Arch> {
        let mut arches: Vec<Arch> = match self.functions {
            Some(Ok(functions)) => functions
                .iter()
                .flat_map(|function| arches(&self.space, *function))
                .collect(),
            Some(Err(_)) | None => [self.left.arches(), self.right.arches()].concat(),
        };
        arches.sort_by_key(|arch| *arch as u32);
        arches.dedup();
        arches
    }

    /// The options that raise the limits; `None` if no option does.
    pub(crate) fn advice(&self, gaps: ReachedLimits) -> Option<String> {
        let limits = self.args.limits;
        match (gaps.by_diagrams, gaps.by_gates) {
            (LimitReached::Stopped, _) | (_, LimitReached::Stopped) => {
                limits.advice(LimitReached::Stopped)
            }
            (LimitReached::Memory, _) | (_, LimitReached::Memory) => {
                limits.advice(LimitReached::Memory)
            }
            (_, LimitReached::Conflicts) => Some(format!(
                "--max-conflicts {} --time-limit 600",
                self.args.max_conflicts.saturating_mul(100)
            )),
            (limit, _) => limits.advice(limit),
        }
    }

    /// The failure if no method gave a result.
    pub(crate) fn gave_up(&self, gaps: ReachedLimits) -> Failure {
        let advice = self.advice(gaps);
        let help = advice.map(|options| raise(&options));
        Failure::gave_up(format!("gave up: {gaps}"), help)
    }

    /// Checks the actions of a call by the evaluator and the interpreter.
    pub(crate) fn confirm(&self, input: &Input, pair: &Pair) -> Result<(), Failure> {
        let answers = (self.left.answer(input), self.right.answer(input));
        if answers == (pair.left, pair.right) {
            return Ok(());
        }
        let answer = |ret| Action::from_ret(ret).to_string();
        Err(Failure::bug(
            format!(
                "bug in tamis: the prover has {} and {} for {}, the interpreter {} and {}",
                answer(pair.left),
                answer(pair.right),
                input.describe(),
                answer(answers.0),
                answer(answers.1),
            ),
            "please report this with both inputs",
        ))
    }
}

/// Prints which variables the names in examples stand for.
fn note_variables(variables: &[Variable], global: &Global) {
    let titles = variables.iter().enumerate();
    let titles: Vec<String> = titles
        .map(|(index, variable)| format!("var{index} is `{}`", variable.title()))
        .collect();
    if !titles.is_empty() {
        global.notice(&format!("in examples {}", titles.join(", ")));
    }
}

impl fmt::Display for ReachedLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.by_diagrams == self.by_gates {
            return f.write_str(&text(self.by_gates));
        }
        write!(
            f,
            "{}; then {}",
            text(self.by_diagrams),
            text(self.by_gates)
        )
    }
}

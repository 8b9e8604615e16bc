//! What `prove` and `diff` share: two sides in one space, compared within a scope.

use tamis_abi::{Action, Arch, SeccompData, call};
use tamis_prover::{Comparison, Function, LimitReached, Limits, Pair, Scope, Space};

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
}

/// Two sides in one space.
pub(crate) struct Compared {
    pub(crate) left: Side,
    pub(crate) right: Side,
    pub(crate) space: Space,
    left_function: Function,
    right_function: Function,
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
}

impl Compared {
    /// Reads both sides and says what they mean.
    pub(crate) fn read(
        [left, right]: [&str; 2],
        load: &LoadArgs,
        global: &Global,
    ) -> Result<Compared, Failure> {
        let left = Side::read(left, load, global)?;
        let right = Side::read(right, load, global)?;
        load.check_profile_options(left.filters().iter().chain(right.filters()))?;
        let mut space = Space::new(Limits::default());
        let left_function = left.function(&mut space).map_err(gave_up)?;
        let right_function = right.function(&mut space).map_err(gave_up)?;
        Ok(Compared {
            left,
            right,
            space,
            left_function,
            right_function,
        })
    }

    /// Compares them within a scope.
    pub(crate) fn within(&mut self, scope: &Scope) -> Result<Comparison, Failure> {
        self.space
            .comparison(self.left_function, self.right_function, scope)
            .map_err(gave_up)
    }

    /// The architectures that one of the sides has something to say about.
    pub(crate) fn arches(&self) -> Vec<Arch> {
        let mut arches = self.space.arches(self.left_function);
        let others = self.space.arches(self.right_function);
        arches.extend(others);
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

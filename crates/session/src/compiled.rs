//! A policy, compiled and proved, with what there is to say of it.

use tamis_abi::Arch;
use tamis_compiler::{Compiled, Options};
use tamis_diag::{Diagnostic, Sources};

use crate::error::{self, Error};
use crate::loaded::Policy;
use crate::profile;

/// What a policy was compiled to.
#[derive(Clone, Debug)]
pub struct CompiledPolicy {
    name: String,
    filter: Compiled,
    arches: Vec<Arch>,
    warnings: Vec<Diagnostic>,
    sources: Sources,
}

impl CompiledPolicy {
    /// Compiles a policy for the calls that the options expect or, if they don't say, that the policy counts, and
    /// has the program proved for all values of its variables.
    ///
    /// # Errors
    /// If there is no program for what the policy means.
    pub fn of(policy: Policy, options: &Options) -> Result<CompiledPolicy, Error> {
        let filter = policy.compile(&policy.with_frequency(options.clone()))?;
        let mut warnings = policy.all_warnings();
        let expected = options.profile.as_ref();
        warnings.extend(
            expected.and_then(|profile| profile::mismatch(profile, policy.ruleset.sections())),
        );
        Ok(CompiledPolicy {
            filter,
            arches: policy.arches(),
            warnings,
            name: policy.name,
            sources: policy.sources,
        })
    }

    /// What the policy is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The proved program, with its variables.
    pub fn filter(&self) -> &Compiled {
        &self.filter
    }

    /// The architectures that the policy has rules for; calls of others get the action for unknown ones.
    pub fn arches(&self) -> &[Arch] {
        &self.arches
    }

    /// What there is to say of the policy and its profile, short of errors, and what it wants of whoever
    /// installs the filter. The places are in [`sources`](Self::sources).
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The texts that the policy came from.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The warnings as they are shown to people, each with its headline first, without the word `warning`.
    pub fn warning_messages(&self) -> Vec<String> {
        let warnings = self.warnings.iter();
        warnings
            .map(|warning| error::text(warning, &self.sources))
            .collect()
    }
}

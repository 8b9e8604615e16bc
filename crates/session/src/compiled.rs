//! A policy, compiled and proved, with what there is to say of it.

use std::fmt;

use tamis_abi::Arch;
use tamis_bpf::Program;
use tamis_compiler::{Binding, CompileOptions, Compiled};
use tamis_diag::{Diagnostic, Sources, render};
use tamis_rules::BindError;

use crate::error::{self, Error};
use crate::loaded::Policy;
use crate::profile;

/// What a policy was compiled to.
#[derive(Clone, Debug)]
pub struct CompiledPolicy {
    name: String,
    compiled: Compiled,
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
    pub fn of(policy: Policy, options: &CompileOptions) -> Result<CompiledPolicy, Error> {
        let compiled = policy.compile(&policy.with_frequency(options.clone()))?;
        let mut warnings = policy.all_warnings();
        let expected = options.profile.as_ref();
        warnings.extend(
            expected.and_then(|profile| profile::mismatch(profile, policy.ruleset.sections())),
        );
        Ok(CompiledPolicy {
            compiled,
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
    pub fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// The program of a policy without variables.
    ///
    /// # Errors
    /// If there is a variable, which has no value: [`values`](Self::values) gives it one.
    pub fn program(&self) -> Result<&Program, BindError> {
        self.compiled.program()
    }

    /// Takes values for the variables, by name; [`Binding::bind`] then gives the program.
    pub fn values(&self) -> Binding<'_> {
        self.compiled.values()
    }

    /// The architectures that the policy has rules for; calls of others get the action for unknown ones.
    pub fn arches(&self) -> &[Arch] {
        &self.arches
    }

    /// What there is to say of the policy and its profile, short of errors, and what it wants of whoever
    /// installs the filter.
    pub fn warnings(&self) -> impl ExactSizeIterator<Item = Warning<'_>> {
        self.warnings.iter().map(|diagnostic| Warning {
            diagnostic,
            sources: &self.sources,
        })
    }
}

/// A warning with the texts that it points into; `Display` shows both.
#[derive(Clone, Copy, Debug)]
pub struct Warning<'a> {
    /// What is said.
    pub diagnostic: &'a Diagnostic,
    /// The texts that the policy came from.
    pub sources: &'a Sources,
}

impl Warning<'_> {
    /// The text for whoever shows it and writes `warning` before it: the headline on the first line.
    pub fn message(&self) -> String {
        error::text(self.diagnostic, self.sources)
    }
}

impl fmt::Display for Warning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let diagnostic = std::slice::from_ref(self.diagnostic);
        f.write_str(&render::render(diagnostic, self.sources, false))
    }
}

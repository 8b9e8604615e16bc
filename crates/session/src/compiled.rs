//! A policy compiled to a proved program, with its warnings.

use std::fmt;

use tamis_abi::Arch;
use tamis_bpf::Program;
use tamis_compiler::{Binding, CompileOptions, Compiled};
use tamis_diag::{Diagnostic, Sources, render};
use tamis_rules::BindError;

use crate::error::{self, Error};
use crate::loaded::Policy;
use crate::profile;

/// The proved program of a policy.
#[derive(Clone, Debug)]
pub struct CompiledPolicy {
    name: String,
    compiled: Compiled,
    arches: Vec<Arch>,
    warnings: Vec<Diagnostic>,
    sources: Sources,
}

impl CompiledPolicy {
    /// Compiles a policy and proves the program for all values of its variables. The expected calls are those of the
    /// options or, by default, those of the policy's counts.
    ///
    /// # Errors
    /// If no program implements the policy.
    pub fn from_policy(policy: Policy, options: &CompileOptions) -> Result<CompiledPolicy, Error> {
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

    /// The policy's name.
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
    /// If there is a variable, which has no value: bind it with [`values`](Self::values).
    pub fn program(&self) -> Result<&Program, BindError> {
        self.compiled.program()
    }

    /// A builder for the values of variables, by name; [`Binding::bind`] returns the program.
    pub fn values(&self) -> Binding<'_> {
        self.compiled.values()
    }

    /// The architectures with rules; calls of other architectures get the action for unknown ones.
    pub fn arches(&self) -> &[Arch] {
        &self.arches
    }

    /// The warnings about the policy and its profile, and the requirements on the installer of the filter.
    pub fn warnings(&self) -> impl ExactSizeIterator<Item = Warning<'_>> {
        self.warnings.iter().map(|diagnostic| Warning {
            diagnostic,
            sources: &self.sources,
        })
    }
}

/// A warning with the texts that it points into; `Display` renders it.
#[derive(Clone, Copy, Debug)]
pub struct Warning<'a> {
    /// The warning.
    pub diagnostic: &'a Diagnostic,
    /// The texts of the policy.
    pub sources: &'a Sources,
}

impl Warning<'_> {
    /// The rendered warning without the prefix `warning`: the headline on the first line.
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

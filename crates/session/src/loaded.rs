//! Loaded inputs: a policy with its ruleset, or a program.

use tamis_abi::{Arch, KernelVersion, SeccompData};
use tamis_bpf::{Program, cache};
use tamis_compiler::{CompileError, CompileOptions, Compiled};
use tamis_diag::{Diagnostic, Sources};
use tamis_policy::installation::Installation;
use tamis_policy::selection::Selection;
use tamis_profile::Profile;
use tamis_prover::Subject;
use tamis_rules::{BindError, Ruleset, Variable};

use crate::bindings;
use crate::error::{Cause, Error};
use crate::kind::InputKind;

/// A loaded input.
#[derive(Clone, Debug)]
pub enum Loaded {
    /// A policy.
    Policy(Box<Policy>),
    /// A program.
    Program(NamedProgram),
}

/// A policy with its ruleset.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The name in messages.
    pub name: String,
    /// The kind of the input.
    pub kind: InputKind,
    /// The counts of calls that the policy refers to.
    pub frequency: Option<Profile>,
    /// The rules.
    pub ruleset: Ruleset,
    /// The declared run-time variables, bound or not.
    pub declared: Vec<Variable>,
    /// The texts of the rules.
    pub sources: Sources,
    /// The warnings of the front end.
    pub warnings: Vec<Diagnostic>,
    /// The requirements on the installer of the filter.
    pub installation: Installation,
    /// Whether the text, the language or the options state the architectures; otherwise the policy is for the native
    /// one.
    pub states_arches: bool,
    /// The kernel whose calls the policy has considered, if it states one.
    pub known_until: Option<KernelVersion>,
    /// External conditions that select entries; `None` without any.
    pub selection: Option<Selection>,
}

/// A program with its name.
#[derive(Clone, Debug)]
pub struct NamedProgram {
    /// The name in messages.
    pub name: String,
    /// The program.
    pub program: Program,
}

impl Policy {
    /// The architectures with rules.
    pub fn arches(&self) -> Vec<Arch> {
        let sections = self.ruleset.sections().iter();
        sections.map(|section| section.arch).collect()
    }

    /// All warnings: those of the policy, and the requirements on the installer of the filter.
    pub fn all_warnings(&self) -> Vec<Diagnostic> {
        let warnings = self.warnings.iter().cloned();
        warnings.chain(self.installation.left_out()).collect()
    }

    /// Adds the counts of the policy, unless the options have others.
    pub fn with_frequency(&self, options: CompileOptions) -> CompileOptions {
        CompileOptions {
            profile: options.profile.or_else(|| self.frequency.clone()),
            ..options
        }
    }

    /// Compiles the policy.
    ///
    /// # Errors
    /// If no program implements the policy.
    pub fn compile(&self, options: &CompileOptions) -> Result<Compiled, Error> {
        tamis_compiler::compile(&self.ruleset, options).map_err(|error| self.compile_error(&error))
    }

    /// The compiled program.
    ///
    /// # Errors
    /// If the policy has a variable without a value.
    pub fn program<'c>(&self, compiled: &'c Compiled) -> Result<&'c Program, Error> {
        compiled.program().map_err(|error| {
            let diagnostic = match error {
                BindError::Unset { variable } => bindings::unbound(&variable),
                other => unreachable!("nothing was bound: {other}"),
            };
            Error::diagnostic(diagnostic, self.sources.clone())
        })
    }

    /// The error of a failed compilation.
    pub fn compile_error(&self, error: &CompileError) -> Error {
        match error.diagnostic() {
            Some(diagnostic) => Error::diagnostic(diagnostic, self.sources.clone()),
            None => Error::Message {
                message: error.to_string(),
                hint: Some(
                    "please report this with the policy and the output of `tamis bpf bisect`; no program was \
                     written"
                        .to_owned(),
                ),
                cause: Cause::Bug,
            },
        }
    }
}

impl NamedProgram {
    /// Whether the kernel's bitmap can decide a call without running the program: since 5.11, and not for x32 calls.
    pub fn is_cacheable(&self, call: &SeccompData) -> bool {
        let has_bitmap = Arch::of_call(call.arch, call.nr) != Some(Arch::X32);
        has_bitmap && cache::is_cacheable(&self.program, call.arch, call.nr)
    }
}

impl Loaded {
    /// The kind of a policy; `None` for programs.
    pub fn policy_kind(&self) -> Option<InputKind> {
        self.policy().map(|policy| policy.kind)
    }

    /// The kind; all programs count as raw programs.
    pub fn kind(&self) -> InputKind {
        self.policy_kind().unwrap_or(InputKind::Bpf)
    }

    /// The function that the prover compares.
    pub fn subject(&self) -> Subject<'_> {
        match self {
            Loaded::Policy(policy) => Subject::Ruleset(&policy.ruleset),
            Loaded::Program(raw) => Subject::Program(&raw.program),
        }
    }

    /// The policy, if it is one.
    pub fn policy(&self) -> Option<&Policy> {
        match self {
            Loaded::Policy(policy) => Some(policy),
            Loaded::Program(_) => None,
        }
    }

    /// The policy, for callers that need one; `hint` is the correction for a program.
    ///
    /// # Errors
    /// If the input is a program.
    pub fn into_policy(self, hint: &str) -> Result<Policy, Error> {
        match self {
            Loaded::Policy(policy) => Ok(*policy),
            Loaded::Program(raw) => Err(Error::usage(
                format!("{} is a program, not a policy", raw.name),
                hint,
            )),
        }
    }

    /// The program, for callers that accept no policies; `hint` is the correction for a policy.
    ///
    /// # Errors
    /// If the input is a policy.
    pub fn into_named_program(self, hint: &str) -> Result<NamedProgram, Error> {
        match self {
            Loaded::Program(raw) => Ok(raw),
            Loaded::Policy(policy) => Err(Error::usage(
                format!("{} is a policy, not a program", policy.name),
                hint,
            )),
        }
    }

    /// The program itself, or the compiled policy.
    ///
    /// # Errors
    /// If no program implements the policy, or it has a variable without a value.
    pub fn into_program(self, options: &CompileOptions) -> Result<NamedProgram, Error> {
        match self {
            Loaded::Program(raw) => Ok(raw),
            Loaded::Policy(policy) => {
                let compiled = policy.compile(&policy.with_frequency(options.clone()))?;
                Ok(NamedProgram {
                    program: policy.program(&compiled)?.clone(),
                    name: policy.name,
                })
            }
        }
    }
}

//! What an input was loaded to: a policy with its meaning, or a program.

use tamis_abi::{Arch, SeccompData};
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

/// An input, understood.
#[derive(Clone, Debug)]
pub enum Loaded {
    /// A policy.
    Policy(Box<Policy>),
    /// A program.
    Program(NamedProgram),
}

/// A policy with its meaning.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What to call it.
    pub name: String,
    /// What it was read from.
    pub kind: InputKind,
    /// How often it says that calls are made.
    pub frequency: Option<Profile>,
    /// The meaning.
    pub ruleset: Ruleset,
    /// The run-time variables that it declares, with values or without.
    pub declared: Vec<Variable>,
    /// The texts that its rules came from.
    pub sources: Sources,
    /// What the front end said about it, short of errors.
    pub warnings: Vec<Diagnostic>,
    /// What it wants of whoever installs its filter.
    pub installation: Installation,
    /// Whether its architectures follow from its text, its language or the options; if not, it is for the machine's.
    pub states_arches: bool,
    /// What its entries depend on beside the text; `None` if on nothing.
    pub selection: Option<Selection>,
}

/// A program with its name.
#[derive(Clone, Debug)]
pub struct NamedProgram {
    /// What to call it.
    pub name: String,
    /// The program.
    pub program: Program,
}

impl Policy {
    /// The architectures that it has rules for.
    pub fn arches(&self) -> Vec<Arch> {
        let sections = self.ruleset.sections().iter();
        sections.map(|section| section.arch).collect()
    }

    /// What there is to say of it as a filter: its warnings, and what it wants of whoever installs the filter.
    pub fn all_warnings(&self) -> Vec<Diagnostic> {
        let warnings = self.warnings.iter().cloned();
        warnings.chain(self.installation.left_out()).collect()
    }

    /// The options with the counts that the policy names, unless they have others.
    pub fn with_frequency(&self, options: CompileOptions) -> CompileOptions {
        CompileOptions {
            profile: options.profile.or_else(|| self.frequency.clone()),
            ..options
        }
    }

    /// Compiles the policy.
    ///
    /// # Errors
    /// If there is no program for what it means.
    pub fn compile(&self, options: &CompileOptions) -> Result<Compiled, Error> {
        tamis_compiler::compile(&self.ruleset, options).map_err(|error| self.compile_error(&error))
    }

    /// The program that the policy was compiled to.
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

    /// Why there is no program for the policy.
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
    /// Whether the kernel can answer a call without running the program: since 5.11, and not for x32,
    /// which its bitmaps don't cover.
    pub fn is_cacheable(&self, call: &SeccompData) -> bool {
        let has_bitmap = Arch::of_call(call.arch, call.nr) != Some(Arch::X32);
        has_bitmap && cache::is_cacheable(&self.program, call.arch, call.nr)
    }
}

impl Loaded {
    /// What a policy was read from; `None` for programs.
    pub fn policy_kind(&self) -> Option<InputKind> {
        self.policy().map(|policy| policy.kind)
    }

    /// What it was read from; all programs are raw programs.
    pub fn kind(&self) -> InputKind {
        self.policy_kind().unwrap_or(InputKind::Bpf)
    }

    /// The function that it stands for.
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

    /// The policy, for callers that need one; `hint` says what to do with a program.
    ///
    /// # Errors
    /// If it is a program.
    pub fn into_policy(self, hint: &str) -> Result<Policy, Error> {
        match self {
            Loaded::Policy(policy) => Ok(*policy),
            Loaded::Program(raw) => Err(Error::usage(
                format!("{} is a program, not a policy", raw.name),
                hint,
            )),
        }
    }

    /// The program, for callers that take no policies; `hint` says what to do with a policy.
    ///
    /// # Errors
    /// If it is a policy.
    pub fn into_named_program(self, hint: &str) -> Result<NamedProgram, Error> {
        match self {
            Loaded::Program(raw) => Ok(raw),
            Loaded::Policy(policy) => Err(Error::usage(
                format!("{} is a policy, not a program", policy.name),
                hint,
            )),
        }
    }

    /// The program: as read, or what the policy compiles to.
    ///
    /// # Errors
    /// If there is no program for what the policy means, or it has a variable without a value.
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

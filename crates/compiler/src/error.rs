//! Errors of compilation.

use std::fmt;

use tamis_abi::{Action, Arch};
use tamis_bpf::{InvalidProgram, Op, Pc};
use tamis_diag::Diagnostic;
use tamis_prover::LimitReached;
use tamis_prover::misreading::Reading;
use tamis_rules::{Input, Origin};

use crate::code;

/// The reason why only the prover could confirm that two subjects are equivalent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// The number of outcomes of branches without a known call that are not proved infeasible either.
    Edges(usize),
    /// A policy is too large to be run as a program.
    TooLarge,
}

/// The reason why there is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileError {
    /// The ruleset has architectures of both byte orders, which differ in the layout of `seccomp_data`.
    MixedEndian {
        /// A little-endian architecture of the ruleset.
        little: Arch,
        /// A big-endian one.
        big: Arch,
    },
    /// A condition nests deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
    TooDeep {
        /// The architecture of the section.
        arch: Arch,
        /// The origin of the rule.
        origin: Option<Origin>,
    },
    /// A variable is used other than in a comparison with a word of the call.
    VariableUse {
        /// The architecture of the section.
        arch: Arch,
        /// The origin of the rule.
        origin: Option<Origin>,
    },
    /// The program exceeds the kernel's limit.
    TooLong {
        /// The length of the program.
        given_insns: usize,
        /// The limit.
        limit_insns: usize,
        /// The rules that contribute most, the largest first.
        contributors: Vec<Contributor>,
    },
    /// The program is not equivalent to the ruleset. A bug of tamis.
    Miscompiled {
        /// An input that shows the difference.
        witness: Box<Input>,
        /// The return value of the ruleset.
        expected_ret: u32,
        /// The return value of the program.
        actual_ret: u32,
    },
    /// The prover could neither confirm nor refute the program, so it is not returned.
    Unproven {
        /// The limit that was reached.
        limit: LimitReached,
    },
    /// The prover proved the program, but no second judge could confirm it, so it is not returned.
    Unjudged(Unjudged),
    /// The prover reads a program differently from the reference interpreter. A bug of tamis.
    Misread {
        /// The reading of the prover that is wrong.
        reading: Reading,
        /// A call that shows the difference.
        witness: Box<Input>,
    },
    /// Tamis made a program with an instruction that emission never makes. A bug of tamis.
    Unexpected {
        /// The place of the instruction.
        pc: Pc,
        /// The instruction.
        op: Op,
    },
    /// The kernel would reject the program. A bug of tamis.
    Invalid(InvalidProgram),
    /// An error after a single stage, found by verifying each stage.
    After {
        /// The name of the pass, or `layout`.
        stage: &'static str,
        /// The error.
        error: Box<CompileError>,
    },
}

/// Numbers with the same rules, and the number of instructions that decide them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contributor {
    /// The architecture.
    pub arch: Arch,
    /// The calls, by name where they have one; at most a few.
    pub syscalls: Vec<String>,
    /// The places of the rules, as far as they are known; at most a few.
    pub origins: Vec<Origin>,
    /// The number of instructions that decide these calls once their number is known; instructions that several
    /// contributors share count for each.
    pub length_insns: usize,
}

impl CompileError {
    /// Whether this is a bug of tamis and not an error of the ruleset.
    pub fn is_bug(&self) -> bool {
        match self {
            CompileError::Miscompiled { .. }
            | CompileError::Misread { .. }
            | CompileError::Unexpected { .. }
            | CompileError::Invalid(_) => true,
            CompileError::After { error, .. } => error.is_bug(),
            _ => false,
        }
    }

    /// The error as a diagnostic; `None` for a bug of tamis.
    pub fn diagnostic(&self) -> Option<Diagnostic> {
        let diagnostic = match self {
            CompileError::MixedEndian { .. } => {
                Diagnostic::error(code::MIXED_BYTE_ORDER, self.to_string())
                    .note("a filter reads arguments in the byte order of its machine")
                    .help("compile one program per byte order")
            }
            CompileError::TooDeep { .. } => {
                Diagnostic::error(code::CONDITION_TOO_DEEP, self.to_string())
                    .help("write alternatives as one list instead of nesting them")
            }
            CompileError::VariableUse { .. } => {
                Diagnostic::error(code::VARIABLE_USE, self.to_string())
                    .help("compare an argument that is at least as wide as the variable with it")
            }
            CompileError::TooLong { contributors, .. } => {
                let error = Diagnostic::error(code::PROGRAM_TOO_LONG, self.to_string());
                let notes = contributors.iter().map(ToString::to_string);
                notes.fold(error, Diagnostic::note).help(
                    "split the policy into two filters, or shorten the conditions named above",
                )
            }
            CompileError::Unproven { limit } => self.unproven(help_of(*limit)),
            CompileError::Unjudged(_) => self.unproven(help_of(LimitReached::Nodes)),
            CompileError::After { error, .. } => {
                let mut diagnostic = error.diagnostic()?;
                diagnostic.message = self.to_string();
                diagnostic
            }
            CompileError::Miscompiled { .. }
            | CompileError::Misread { .. }
            | CompileError::Unexpected { .. }
            | CompileError::Invalid(_) => return None,
        };
        Some(diagnostic)
    }
}

/// The advice for a proof that reaches a limit.
fn help_of(limit: LimitReached) -> &'static str {
    match limit {
        LimitReached::Stopped => {
            "simplify the conditions that combine several arguments, or raise the limit: `--time-limit`"
        }
        LimitReached::Memory => {
            "simplify the conditions that combine several arguments, or raise the limit: `--memory-limit`"
        }
        LimitReached::Nodes
        | LimitReached::States
        | LimitReached::Steps
        | LimitReached::Paths
        | LimitReached::Pairs
        | LimitReached::Gates
        | LimitReached::Conflicts => {
            "simplify the conditions that combine several arguments, or raise the limit: `--max-nodes`"
        }
    }
}

impl CompileError {
    /// The diagnostic of a program that isn't proved.
    fn unproven(&self, help: &str) -> Diagnostic {
        Diagnostic::error(code::UNPROVEN, self.to_string())
            .note("tamis never outputs a program that isn't proved equivalent to the policy")
            .help(help)
    }

    /// Describes a bug of tamis.
    fn fmt_bug(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Miscompiled {
                witness,
                expected_ret,
                actual_ret,
            } => write!(
                f,
                "{}: the program returns {} ({actual_ret:#010x}) instead of {} \
                 ({expected_ret:#010x})",
                witness.describe_briefly(),
                Action::from_ret(*actual_ret),
                Action::from_ret(*expected_ret),
            ),
            CompileError::Misread { reading, witness } => {
                let reading = match reading {
                    Reading::Diagrams => "diagrams",
                    Reading::Gates => "gates",
                };
                write!(
                    f,
                    "the reading of {reading} in the prover differs from the reference interpreter for {}",
                    witness.describe_briefly()
                )
            }
            CompileError::Unexpected { pc, op } => {
                write!(f, "emission never makes the instruction {op:?} at {}", pc.0)
            }
            CompileError::Invalid(invalid) => {
                write!(f, "the kernel would reject the program: {invalid:?}")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::MixedEndian { little, big } => write!(
                f,
                "one program cannot serve both {little} (little-endian) and {big} (big-endian)"
            ),
            CompileError::TooDeep { arch, origin } => {
                write!(
                    f,
                    "a condition of section {arch} nests deeper than {} levels",
                    crate::MAX_DEPTH
                )?;
                match origin {
                    Some(origin) => write!(f, " ({origin})"),
                    None => Ok(()),
                }
            }
            CompileError::VariableUse { arch, origin } => {
                write!(
                    f,
                    "a rule of section {arch} uses a variable in an unsupported way"
                )?;
                match origin {
                    Some(origin) => write!(f, " ({origin})"),
                    None => Ok(()),
                }
            }
            CompileError::TooLong {
                given_insns,
                limit_insns,
                ..
            } => write!(
                f,
                "the program would have {given_insns} instructions; the kernel accepts at most {limit_insns}"
            ),
            CompileError::Unproven { limit } => {
                write!(
                    f,
                    "the program could not be proved equivalent to the policy: {limit}"
                )
            }
            CompileError::Unjudged(unjudged) => {
                write!(
                    f,
                    "the proof of the program could not be confirmed: {unjudged}"
                )
            }
            CompileError::Miscompiled { .. }
            | CompileError::Misread { .. }
            | CompileError::Unexpected { .. }
            | CompileError::Invalid(_) => {
                f.write_str("bug in tamis: ")?;
                self.fmt_bug(f)
            }
            CompileError::After { stage, error } => write!(f, "after {stage}: {error}"),
        }
    }
}

impl std::error::Error for CompileError {}

impl fmt::Display for Contributor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} instructions for {} on {}",
            self.length_insns,
            self.syscalls.join(", "),
            self.arch
        )?;
        for (index, origin) in self.origins.iter().enumerate() {
            let separator = if index == 0 { ": " } else { ", " };
            write!(f, "{separator}{origin}")?;
        }
        Ok(())
    }
}
impl fmt::Display for Unjudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unjudged::Edges(1) => f.write_str("it is not settled whether 1 edge can be taken"),
            Unjudged::Edges(edges) => {
                write!(f, "it is not settled whether {edges} edges can be taken")
            }
            Unjudged::TooLarge => f.write_str("the policy is too large to be run as a program"),
        }
    }
}

//! Checks of policies: calls that must never or always be allowed, expected actions, comparisons, sizes.
//!
//! A file of checks is written in the words of the policy language. [`load()`] resolves its names and reports its
//! mistakes, [`Judge`] decides each check for a policy, a program or a stack by the prover's diagrams, and an
//! [`Outcome`] shows calls that contradict it.
//!
//! The bits that the kernel reads count: a `never allow` concerns every value of an argument that the kernel reads as the named
//! one, x32 and the 32-bit calls of the same machine, and multiplexers, whose arguments no filter sees. With `any way`
//! it also concerns calls with the same effect.
//!
//! ```
//! use tamis_abi::{Action, Arch};
//! use tamis_assertions::{Judge, Resources, Verdict, load};
//! use tamis_policy::loader::NoIncludes;
//! use tamis_prover::{Limits, Stop, Subject};
//! use tamis_rules::{Ruleset, Section};
//!
//! let mut sources = tamis_diag::Sources::new();
//! let root = sources.add("a.checks", "never allow ptrace\nalways allow read\n");
//! let checks = load(&mut sources, root, &mut NoIncludes, &[]).checks.expect("no errors");
//!
//! let section = Section { arch: Arch::X86_64, rules: vec![], default: Action::errno(1) };
//! let ruleset = Ruleset::new(vec![section], Action::KILL_PROCESS).unwrap();
//! let subject = Subject::Ruleset(&ruleset);
//! let mut judge = Judge::new(subject, Arch::X86_64, Limits::default(), Stop::default()).unwrap();
//! let verdicts = checks.all.iter().map(|check| judge.check(&checks, check, &Resources::NONE).verdict);
//! assert!(verdicts.eq([Verdict::Holds, Verdict::Fails]));
//! ```
#![forbid(unsafe_code)]

pub mod ast;
mod checks;
pub mod code;
mod contradiction;
mod coverage;
mod judge;
mod load;
mod mend;
mod outcome;
pub mod parser;
pub mod print;
mod region;
mod seek;
mod shared;
pub mod standard;
mod ways;

pub use checks::{Calls, Check, Checks, Claim, Group, Target};
pub use coverage::{Constraint, Uncovered};
pub use judge::{Judge, Programs, Resources};
pub use load::{Loaded, Setting, load};
pub use mend::{
    AllowingEntries, Edit, EditKind, Mend, OtherReadings, PlaceInList, PolicyText, Reading,
};
pub use outcome::{Decider, Example, Outcome, RawArgument, Verdict, Violation, Way, as_read};
pub use shared::Shared;

//! The compiler: from the meaning of a policy to a program for the kernel.
//!
//! [`compile`] runs a ruleset through these stages, each in a module of its own:
//!
//! 1. rule [`passes`] reduce the rules;
//! 2. `layout` decides every number and merges numbers into runs. The result is a decision graph ([`dag`]) with
//!    search trees ([`tree`]) over numbers and values, optimised for the expected calls;
//! 3. `emit` turns questions into blocks of instructions;
//! 4. bytecode [`passes`] optimise these blocks, and programs of other tools;
//! 5. `linearise` orders the blocks and computes jump distances; with a profile, hot branches fall through;
//! 6. `verify` compares the program with the ruleset as given and returns a [`Compiled`].
//!
//! The results of single stages are only available from [`stages`], as [`Unproven`](stages::Unproven).
//!
//! The crate `optimize` lifts programs of other tools to rulesets and compiles them by the same stages.
//!
//! The crate has no I/O, no clock and no randomness: the same ruleset and options give the same program on every
//! machine.
#![cfg_attr(
    not(feature = "foreign"),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "pages are made with the feature, and link to what it has"
    )
)]
#![forbid(unsafe_code)]

pub mod code;
pub mod cost;
pub mod dag;
pub mod dataflow;
pub mod error;
pub mod judge;
pub mod meter;
pub mod options;
pub mod passes;
pub mod report;
pub mod stages;
pub mod tree;
pub mod weights;

mod binding;
mod bisect;
mod block_order;
mod compile;
mod decisions;
mod diagram;
mod direct;
mod emit;
mod expected_calls;
mod formula;
mod hash;
mod hot_copies;
mod layout;
mod linearise;
mod split;
mod verify;
mod verify_each;

pub use binding::Binding;
pub use bisect::{Bisection, Culprit, bisect};
pub use compile::{MAX_DEPTH, compile, compile_any_length};
pub use error::{CompileError, Contributor, Unjudged};
pub use options::{CompileOptions, Effort, Instructions, Objective, ProofEffort, Target};
pub use passes::{PassCx, PassInfo, PassRun, Remark, Size, Stage};
pub use verify::Compiled;

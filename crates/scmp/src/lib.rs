//! What libseccomp's rules mean.
//!
//! libseccomp has no list of rules of which the first match decides. `seccomp_rule_add` inserts
//! each rule into a sorted tree of tests per system call; a rule may be merged, ignored, replace
//! others or be refused, and for a call that several rules match the place in the tree decides.
//! This crate does the same as libseccomp 2.6.1, and reads a tree as rules of which the first match
//! decides.
//!
//! | module | what it does |
//! |---|---|
//! | [`db`] | the rules of a filter on all of its architectures, `seccomp_rule_add` |
//! | [`condition`] | conditions on arguments, as libseccomp compares them |
//! | [`tree`] | the rules of one system call: inserting, conflicts |
//! | `prune` | the removal of chains that a shorter one makes redundant |
//! | [`rules`] | from a tree to rules of which the first match decides |
//! | [`place`] | which numbers a name has on an architecture, `socketcall` and `ipc` included |
//!
//! Whoever adds a rule gives it a *tag*, of any small type, which conflicts and the resulting rules
//! name: a place in a profile, a number, or `()`.
//!
//! What it doesn't do: names of the C interface, attributes, pseudo code, programs.
#![forbid(unsafe_code)]

pub mod condition;
pub mod db;
pub mod place;
mod prune;
pub mod rules;
pub mod tree;

pub use condition::{Comparison, Condition, Conditions};
pub use db::{AddError, ArchRules, Call, Db, Errno, Exactness};
pub use place::{Place, Resolver};
pub use rules::{CallRule, TooComplex};
pub use tree::{CallTree, Refusal};

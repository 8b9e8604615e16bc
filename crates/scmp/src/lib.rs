//! The semantics of libseccomp's rules.
//!
//! libseccomp's rules are not an ordered list in which the first match decides. `seccomp_rule_add` inserts each
//! rule into a sorted tree of tests per system call. A rule may be merged, ignored, replace others or be refused,
//! and for a call that several rules match the position in the tree decides. This crate implements libseccomp
//! 2.6.1, and converts a tree to an ordered list of rules.
//!
//! | module | contents |
//! |---|---|
//! | [`db`] | the rules of a filter on all of its architectures, `seccomp_rule_add` |
//! | [`condition`] | conditions on arguments, as libseccomp compares them |
//! | [`tree`] | the rules of one system call: insertion, conflicts |
//! | `prune` | removal of chains that a shorter one makes redundant |
//! | [`rules`] | from a tree to an ordered list of rules |
//! | [`number`] | numbers and pseudo numbers of calls, values of architectures |
//! | [`header`] | the header files of the C interface |
//! | `list` | how long libseccomp's own program is |
//! | [`pfc`] | the text of `seccomp_export_pfc` |
//! | [`release`] | the releases of libseccomp whose interface tamis has |
//! | `meaning` | from a filter to a ruleset |
//! | [`place`] | the numbers of a name on an architecture, `socketcall` and `ipc` included |
//!
//! The caller gives each rule a *tag* of any small type, such as a place in a profile, a number, or `()`. Conflicts
//! and resulting rules contain it.
//!
//! Not included are the functions of the C interface, attributes and programs.
#![forbid(unsafe_code)]

pub mod condition;
pub mod db;
pub mod header;
mod list;
mod meaning;
pub mod number;
pub mod pfc;
pub mod place;
mod prune;
mod pseudo;
pub mod release;
pub mod rules;
pub mod tree;

pub use condition::{Comparison, Condition, Conditions};
pub use db::{AddError, ArchError, ArchRules, Db, Errno, Exactness};
pub use pfc::{CallOrder, PseudoCode};
pub use place::{Place, Resolver};
pub use release::Release;
pub use rules::{CallRule, TooComplex};
pub use tree::{CallTree, Refusal};

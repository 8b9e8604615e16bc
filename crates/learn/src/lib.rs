//! Policies learned from profiles: what a program was seen to call, as a policy that a person can read and change.
//!
//! | module | what it decides |
//! |---|---|
//! | `evidence` | what all runs together say of a call |
//! | `condition` | which values of arguments a call is allowed with |
//! | `closure` | what is needed though it wasn't seen |
//! | `base` | what an existing policy leaves of it |
//! | `wider` | where the policy is wider than the evidence, and why |
//! | `answers` | what a policy answers to calls of whose arguments only some are known |
//! | `drift` | what a policy would deny of what was called |
//! | `text` | the policy's text, with the evidence in comments |
//!
//! [`learn`] ends with a proof: the policy allows nothing that the base denies. And it checks that every call of the
//! profiles is still allowed, or says which aren't.
//!
//! Not included is recording, and the choice of an action for each denied call: all get `EPERM`, and calls for which programs
//! have an older one to fall back to `ENOSYS`.
#![forbid(unsafe_code)]

mod answers;
mod base;
mod closure;
mod condition;
mod drift;
mod evidence;
mod learned;
mod text;
mod wider;

pub use condition::Generality;
pub use drift::{Drift, drift};
pub use evidence::Run;
pub use learned::{LearnError, Learned, Options, Refused, learn};
pub use wider::{Reason, Wider};

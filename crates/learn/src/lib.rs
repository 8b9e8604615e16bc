//! Policies learned from profiles: the recorded system calls of a program as a readable, editable policy.
//!
//! | module | content |
//! |---|---|
//! | `evidence` | the counts of a call, summed over all runs |
//! | `condition` | the argument values with which a call is allowed |
//! | `closure` | calls that are needed although they were not recorded |
//! | `base` | restriction of the learned policy to an existing one |
//! | `wider` | where the policy is wider than the evidence, and why |
//! | `answers` | the actions of a policy for calls with partly known arguments |
//! | `drift` | recorded calls that a policy would deny |
//! | `text` | the text of the policy, with the evidence in comments |
//!
//! [`learn`] ends with a proof that the policy allows nothing that the base denies, and a check that the policy still
//! allows every recorded call; exceptions are reported.
//!
//! Out of scope: recording, and the choice of an action for each denied call. The default is `EPERM`; calls with an
//! older fallback get `ENOSYS`.
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
pub use learned::{DeniedCall, LearnError, Learned, Options, learn};
pub use wider::{Reason, Widening};

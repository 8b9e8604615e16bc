//! Tests of the recorder against the running kernel, whose judge is `strace`.

mod against_strace;
mod backends;
mod full_tables;
mod made_calls;
pub(crate) mod support;
mod workloads;

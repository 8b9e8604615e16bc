//! A policy learned from profiles: `tamis learn`.

use std::fmt;

use serde::Serialize;

use crate::entry::counted;

/// The policy, and the recorded calls that the base denies.
#[derive(Serialize)]
pub struct LearnReport {
    pub runs: Vec<String>,
    pub base: Option<String>,
    pub policy: String,
    pub refused: Vec<RefusedEntry>,
    pub wider: Vec<WiderEntry>,
}

/// A call that is allowed beyond the evidence.
#[derive(Serialize)]
pub struct WiderEntry {
    pub arch: &'static str,
    pub call: String,
    pub arguments: Vec<&'static str>,
    pub reason: &'static str,
    pub text: String,
}

/// A recorded call that the base denies.
#[derive(Serialize)]
pub struct RefusedEntry {
    pub arch: &'static str,
    pub call: String,
    pub count: u64,
    pub is_certain: bool,
    pub is_whole: bool,
    pub has_fallback: bool,
}

impl fmt::Display for LearnReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.policy)
    }
}

impl fmt::Display for RefusedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.is_whole {
            ""
        } else {
            " with some of the arguments"
        };
        let count = counted(self.count, "time");
        write!(
            f,
            "the base denies {} {}{how}, called {count}",
            self.arch, self.call
        )?;
        match self.has_fallback {
            true => f.write_str("; programs fall back to an older call"),
            false => Ok(()),
        }
    }
}

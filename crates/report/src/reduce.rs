//! A smaller input that still shows a failure: `tamis reduce`.

use std::fmt;

use serde::Serialize;

use crate::Document;

/// What a reduction achieved.
#[derive(Serialize)]
pub struct ReduceReport {
    pub input: String,
    /// `bytes` or `instructions`.
    pub unit: &'static str,
    pub before: usize,
    pub after: usize,
    pub tests: u64,
    pub text: String,
}

impl Document for ReduceReport {
    const SCHEMA: &'static str = "tamis.reduce/1";
}

/// What was achieved, in one line without its end.
impl fmt::Display for ReduceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReduceReport {
            input,
            unit,
            before,
            after,
            tests,
            ..
        } = self;
        write!(f, "{input}: {before} {unit} to {after}, {tests} tests")
    }
}

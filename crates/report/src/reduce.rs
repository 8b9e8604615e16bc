//! A smaller input that still shows a failure: `tamis bpf reduce`.

use std::fmt;

use serde::Serialize;

/// The result of a reduction.
#[derive(Serialize)]
pub struct ReduceReport {
    pub input: String,
    /// The unit of sizes: `bytes` or `instructions`.
    pub unit: &'static str,
    pub before: usize,
    pub after: usize,
    pub tests: u64,
    pub text: String,
}

/// The result on one line, without the final newline.
impl fmt::Display for ReduceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.input, self.before, self.unit)?;
        write!(f, " to {}, {} tests", self.after, self.tests)
    }
}

//! The change of a pass that makes a program incorrect: `tamis bpf bisect`.

use std::fmt;

use serde::Serialize;
use tamis_compiler::{Bisection, Culprit};

/// The result of a bisection over the changes of passes.
#[derive(Serialize)]
pub struct BisectReport {
    pub policy: String,
    #[serde(flatten)]
    pub result: BisectResult,
}

/// Whether a program is incorrect, and the first change that makes it so.
#[derive(Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum BisectResult {
    /// It is correct.
    Right { changes: u64 },
    /// It is incorrect without any change.
    WrongFromTheStart { error: String },
    /// A change makes it incorrect.
    Found {
        changes: u64,
        fuel: u64,
        pass: &'static str,
        what: String,
        error: String,
    },
}

impl BisectReport {
    /// The report for a policy with this name.
    pub fn from_bisection(policy: &str, found: &Bisection) -> BisectReport {
        let result = match found {
            Bisection::Right { changes } => BisectResult::Right { changes: *changes },
            Bisection::WrongFromTheStart(error) => BisectResult::WrongFromTheStart {
                error: error.to_string(),
            },
            Bisection::Found(culprit) => {
                let Culprit {
                    fuel,
                    changes,
                    remark,
                    error,
                } = &**culprit;
                BisectResult::Found {
                    changes: *changes,
                    fuel: *fuel,
                    pass: remark.pass,
                    what: remark.what.clone(),
                    error: error.to_string(),
                }
            }
        };
        BisectReport {
            policy: policy.to_owned(),
            result,
        }
    }
}

impl fmt::Display for BisectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.policy;
        match &self.result {
            BisectResult::Right { changes } => {
                writeln!(f, "{name}: correct with all changes ({changes})")
            }
            BisectResult::WrongFromTheStart { error } => {
                writeln!(
                    f,
                    "{name}: the program is wrong before any pass changes it\n  {error}"
                )
            }
            BisectResult::Found {
                changes,
                fuel,
                pass,
                what,
                error,
            } => writeln!(
                f,
                "{name}: wrong from change {fuel} of {changes} on\n  {pass}: {what}\n  {error}"
            ),
        }
    }
}

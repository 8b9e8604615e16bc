//! Which change of which pass makes a program wrong: `tamis bisect`.

use std::fmt;

use serde::Serialize;
use tamis_compiler::{Bisection, Culprit};

/// What a bisection over the changes of passes found.
#[derive(Serialize)]
pub struct BisectReport {
    pub policy: String,
    #[serde(flatten)]
    pub result: BisectResult,
}

/// Whether and since when a program is wrong.
#[derive(Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum BisectResult {
    /// It is right.
    Right { changes: u64 },
    /// It is wrong before any pass changes it.
    WrongFromTheStart { error: String },
    /// It is wrong since a change.
    Found {
        changes: u64,
        fuel: u64,
        pass: &'static str,
        what: String,
        error: String,
    },
}

impl BisectReport {
    /// What was found for a policy of this name.
    pub fn of(policy: &str, found: &Bisection) -> BisectReport {
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

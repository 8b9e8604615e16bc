//! The embedded policies for agents, builds and services: what they stop, and that programs work under them.
//!
//! `checks` proves what they promise, `probe` makes forbidden and allowed calls, `programs` compares what programs print with and without a policy, `doors`
//! has other tools install the filters.

mod checks;
mod doors;
mod probe;
mod programs;

use std::process::{Command, Stdio};

use tamis_testkit::skip::{self, Need};

/// The policies with parameters.
const POLICIES: [&str; 3] = ["agent", "build", "service"];

/// The values of their parameter `network`.
const NETWORKS: [&str; 4] = ["none", "unix", "proxy", "full"];

const PYTHON: &str = "python3";

/// Whether a program is installed.
fn is_installed(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v \"$0\"", program])
        .stdout(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}

/// Ends the calling test unless filters can be tested here and programs are installed.
#[track_caller]
fn unless_installed(programs: &[&str]) {
    skip::unless_live();
    if let Some(missing) = programs.iter().find(|own| !is_installed(own)) {
        skip::because(Need::Workloads, format!("{missing} is not installed"));
    }
}

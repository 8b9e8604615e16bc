//! The laboratory's command as its users meet it. `cargo test -p tamis-lab --test it NAME::` runs one module.

#[macro_use]
extern crate tamis_testkit;

use std::process::{Command, ExitCode, Output, Stdio};

use tamis_testkit::harness;

mod engines;
mod help;
mod packets;
mod platforms;
mod reading;
mod schemas;

fn main() -> ExitCode {
    harness::main()
}

/// The program under test.
const TAMIS_LAB: &str = env!("CARGO_BIN_EXE_tamis-lab");

fn tamis_lab(args: &[&str]) -> Output {
    let mut command = Command::new(TAMIS_LAB);
    command.args(args).stdin(Stdio::null());
    command.output().expect("it starts")
}

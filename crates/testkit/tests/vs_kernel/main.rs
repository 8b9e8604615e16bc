//! The reference interpreter and the validator against the running kernel, in an executable of their own.
//!
//! They start some ten thousand processes by `fork`, which copies the page tables of the caller. The other tests fill
//! hundreds of megabytes, and beside them one of these modules took 43 s instead of 4.

#[macro_use]
extern crate tamis_testkit;

mod interpreter;
mod stack;
mod validator;

use std::process::ExitCode;

use tamis_abi::{Arch, host};
use tamis_testkit::harness;

/// The architecture of the calls that this machine makes.
fn native() -> Arch {
    host::arch().expect("a known architecture")
}

fn main() -> ExitCode {
    harness::main()
}

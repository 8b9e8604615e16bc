//! The tables of `tamis-abi` against independent sources.
//!
//! Each module uses one source: the crate libc, the system's headers, the system's libseccomp and the corpus. A
//! missing name is not a contradiction; a different value is.

#[macro_use]
extern crate tamis_testkit;

mod corpus;
mod headers;
mod libc_crate;
mod libseccomp;

use std::process::ExitCode;

use tamis_testkit::harness;

fn main() -> ExitCode {
    harness::main()
}

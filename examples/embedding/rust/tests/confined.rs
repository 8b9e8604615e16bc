//! The example, built by cargo as a user builds it, confines itself.

#[macro_use]
extern crate tamis_testkit;

use std::path::Path;
use std::process::ExitCode;

use tamis_testkit::skip::{self, Need};
use tamis_testkit::{harness, toolchains};

fn main() -> ExitCode {
    harness::main()
}

#[test]
fn the_example_is_confined_to_what_it_binds() {
    if !cfg!(target_arch = "x86_64") {
        skip::because(Need::Live, "the filter is for x86-64");
    }
    skip::unless_kernel();
    let program = Path::new(env!("CARGO_BIN_EXE_confined-server"));
    toolchains::assert_confined("confined-server", program);
}

//! The example, built by cargo as a user builds it, confines itself.

use std::path::Path;

use tamis_testkit::{skip, toolchains};

#[test]
fn the_example_is_confined_to_what_it_binds() {
    if !cfg!(target_arch = "x86_64") || skip::without_kernel() {
        return;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_confined-server-build-script"));
    toolchains::assert_confined("confined-server-build-script", program);
}

//! The command and the library as their users meet them: each module starts `tamis`, compilers or programs built by these.
//!
//! One executable, linked once. `cargo test -p tamis --test it NAME::` runs one module. The goldens are an executable
//! of their own (`--test golden`), because each file is a test there, which the standard harness has no means for.
//!
//! Both test the program that cargo built with them, and with `TAMIS_BIN` in the environment another one, such as
//! that of a package.

#[macro_use]
extern crate tamis_testkit;

mod audit;
mod backends;
mod bench;
mod c_header;
mod catching;
mod cli;
mod compare;
mod containers;
mod documents;
mod dump;
mod embedding;
mod examples;
mod exec;
mod exports;
mod facade;
#[cfg(feature = "parquet")]
mod fleet;
mod fuzz;
mod harden;
mod harden_process;
mod harden_undo;
mod help;
mod include_policy;
mod includes;
mod install;
mod kinds;
mod learned;
mod limits;
mod lint;
mod live;
mod migrating;
mod oci_apply;
mod patch_table;
mod paths;
mod precompile;
mod reading;
mod recorded_containers;
mod recording;
mod runs;
mod schemas;
mod shared_folders;
mod stacks;
mod systemd_release;
mod trace;
mod trace_structures;
mod trace_threads;
mod unchanged;
mod workloads;

use std::process::ExitCode;

use tamis_testkit::harness;

fn main() -> ExitCode {
    harness::main()
}

/// The program under test: the one built with the tests, or the one at the absolute path that `TAMIS_BIN` names while they
/// are compiled.
const TAMIS: &str = match option_env!("TAMIS_BIN") {
    Some(path) => path,
    None => env!("CARGO_BIN_EXE_tamis"),
};

/// Whether the program under test loads no library: its file begins without the name of a loader.
fn is_static() -> bool {
    let mut head = [0; 4096];
    let program = std::fs::File::open(TAMIS);
    let read = program.and_then(|mut program| std::io::Read::read(&mut program, &mut head));
    let read = read.expect("the program under test");
    !head[..read].windows(8).any(|word| word == b"ld-linux")
}

//! The tables in the repository (`bench/*.tsv`, the book's) compared with present measurements, and the other
//! compilers. `cargo test -p tamis-bench NAME::` runs one module.

#[macro_use]
extern crate tamis_testkit;

mod arguments;
mod counts;
mod effort;
mod foreign;
mod goals;
mod gvisor;
mod peers;

use std::process::ExitCode;

use tamis_testkit::harness;

fn main() -> ExitCode {
    harness::main()
}

//! Every file below `tests/golden` as a test; `tests/golden/readme.golden` explains the format.

use std::path::PathBuf;
use std::process::ExitCode;

use tamis_testkit::corpus::repository;
use tamis_testkit::golden::{self, Setup};

/// As in the other executable of tests.
const TAMIS: &str = match option_env!("TAMIS_BIN") {
    Some(path) => path,
    None => env!("CARGO_BIN_EXE_tamis"),
};

fn main() -> ExitCode {
    golden::main(&Setup {
        package: "tamis",
        binary: PathBuf::from(TAMIS),
        root: repository().join("tests/golden"),
        work: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
    })
}

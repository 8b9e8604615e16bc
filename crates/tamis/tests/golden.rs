//! Every file below `tests/golden` as a test; `tests/golden/readme.golden` explains the format.

use std::path::PathBuf;
use std::process::ExitCode;

use tamis_testkit::golden::{self, Setup};

fn main() -> ExitCode {
    golden::main(&Setup {
        binary: PathBuf::from(env!("CARGO_BIN_EXE_tamis")),
        work: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
    })
}

//! Every file below `tests/golden` of this package as a test; the product's `tests/golden/readme.golden` explains the format.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tamis_testkit::golden::{self, Setup};

fn main() -> ExitCode {
    golden::main(&Setup {
        package: "tamis-lab",
        binary: PathBuf::from(env!("CARGO_BIN_EXE_tamis-lab")),
        root: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"),
        work: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
    })
}

//! `cargo xtask vectors`: the vectors of the kernel's `lib/test_bpf.c` through every evaluator.
//!
//! The file is a module of the kernel. Its table is put into a program that prints the vectors (`vectors.c`), and the test
//! suite reads what that prints. Nothing of the kernel is committed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::source::Source;
use crate::programs::cargo;
use crate::tidy::root;

/// The program around the table.
const PROGRAM: &str = include_str!("vectors.c");
/// The file with the table.
const TESTS: &str = "lib/test_bpf.c";
/// The file with the macros that the table uses.
const MACROS: &str = "include/linux/filter.h";
/// The first line of the table.
const TABLE: &str = "static struct bpf_test tests[]";
/// Headers of the kernel that the table's file includes, and that programs don't have.
const MISSING: [&str; 5] = ["highmem", "init", "module", "prandom", "skbuff"];

/// Extracts the vectors and runs the tests with them.
///
/// # Errors
/// If the source can't be had or has another form, or a test fails.
pub(crate) fn run() -> Result<()> {
    let source = Source::newest()?;
    let vectors = source.folder.join(format!("{}.vectors", source.package));
    extract(&source, &vectors)?;
    println!("{}: {}", source.package, vectors.display());
    let status = cargo()
        .args([
            "test",
            "--package",
            "tamis-testkit",
            "--locked",
            "--test",
            "it",
            "--",
        ])
        .args(["kernel_vectors::", "--nocapture"])
        .env("TAMIS_KERNEL_VECTORS", &vectors)
        .env("TAMIS_REQUIRE", "vectors")
        .current_dir(root())
        .status();
    ensure!(status.context("cargo test")?.success(), "results differ");
    Ok(())
}

/// Writes the vectors, a line each.
fn extract(source: &Source, vectors: &Path) -> Result<()> {
    let tree = source.tree(&[TESTS, MACROS].map(Into::into))?;
    let folder = source.folder.join("vectors");
    fs::create_dir_all(folder.join("linux"))?;
    for name in MISSING {
        File::create(folder.join(format!("linux/{name}.h")))?;
    }
    let tests = read(&tree.join(TESTS))?;
    let table = up_to_table(&tests).with_context(|| format!("{TESTS} has no table of vectors"))?;
    fs::write(folder.join("tests.inc"), table)?;
    fs::write(folder.join("macros.h"), macros(&read(&tree.join(MACROS))?))?;
    let program = folder.join("vectors");
    fs::write(folder.join("vectors.c"), PROGRAM)?;
    let mut command = Command::new("cc");
    command.arg("-w").arg("-I").arg(&folder);
    for headers in source.headers()? {
        command.arg("-isystem").arg(headers);
    }
    let status = command
        .arg("-o")
        .arg(&program)
        .arg(folder.join("vectors.c"))
        .status();
    ensure!(
        status.context("cc")?.success(),
        "the table of vectors doesn't compile"
    );
    let status = Command::new(&program)
        .stdout(File::create(vectors)?)
        .status();
    ensure!(
        status.context("the vectors")?.success(),
        "the vectors can't be printed"
    );
    Ok(())
}

fn read(path: &PathBuf) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// The text up to the end of the table.
fn up_to_table(tests: &str) -> Option<&str> {
    let start = tests.find(TABLE)?;
    let end = start + tests[start..].find("\n};\n")?;
    Some(&tests[..end + "\n};\n".len()])
}

/// The definitions of macros for instructions, each with its continued lines.
fn macros(header: &str) -> String {
    let mut found = String::new();
    let mut is_inside = false;
    for line in header.lines() {
        let is_first = ["#define BPF_", "#define __BPF_", "#define MAX_BPF_"]
            .iter()
            .any(|begin| line.starts_with(begin));
        if is_inside || is_first {
            found.push_str(line);
            found.push('\n');
            is_inside = line.ends_with('\\');
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_macros_are_found() {
        let tests = "int a;\nstatic struct bpf_test tests[] = {\n\t{\n\t},\n};\nint b;\n";
        assert_eq!(up_to_table(tests), tests.strip_suffix("int b;\n"));
        assert_eq!(up_to_table("int a;\n"), None);
        let header = "#define BPF_A(x)\t\\\n\tx\nint a;\n#define OTHER 1\n#define __BPF_B 2\n";
        assert_eq!(
            macros(header),
            "#define BPF_A(x)\t\\\n\tx\n#define __BPF_B 2\n"
        );
    }
}

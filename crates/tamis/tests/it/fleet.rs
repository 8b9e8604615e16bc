//! Fleets as Parquet: read back to the same, merged by DuckDB to the same bytes, and damaged files refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tamis_testkit::skip::{self, Need};

const MACHINES: &str = "40";

fn tamis(args: &[&str]) -> Output {
    Command::new(crate::TAMIS)
        .args(args)
        .output()
        .expect("it starts")
}

fn merged(args: &[&str]) -> Vec<u8> {
    let output = tamis(&[&["profile", "merge"], args].concat());
    assert!(output.status.success(), "{args:?}: {output:?}");
    output.stdout
}

/// A script of the folder `bench/fleet`.
fn script(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("bench/fleet").join(name)
}

/// The profiles of a synthetic fleet, with two whose counts don't fit in a sum; `None`, with a message, without Python.
fn machines(test: &str) -> Option<(PathBuf, Vec<String>)> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("fleet")
        .join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    let machines = folder.join("machines");
    let mut python = Command::new("python3");
    python
        .arg(script("synthetic.py"))
        .arg(&machines)
        .arg(MACHINES);
    if !python.status().is_ok_and(|status| status.success()) {
        skip::because(Need::Duckdb, "no python3");
    }
    for (name, count) in [("x", u64::MAX), ("y", 5)] {
        let call = format!(r#"{{"arch": "x86", "call": "read", "count": {count}}}"#);
        let runs = format!(r#"[{{"id": "{name}, \"1\""}}]"#);
        let text = format!(r#"{{"schema": "tamis-profile/1", "runs": {runs}, "calls": [{call}]}}"#);
        fs::write(machines.join(format!("{name}.json")), text).expect("it is written");
    }
    let files = fs::read_dir(&machines).expect("a folder");
    let files = files.map(|file| file.expect("a file").path().display().to_string());
    Some((folder.clone(), files.collect()))
}

/// The fleet as Parquet, and its sum.
fn fleet(test: &str) -> Option<(PathBuf, Vec<u8>)> {
    let (folder, files) = machines(test)?;
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let sum = merged(&files);
    let rows = folder.join("fleet.parquet");
    let rows_text = rows.to_str().expect("it is text");
    merged(&[&files[..], &["--to", "parquet", "-o", rows_text]].concat());
    assert_eq!(merged(&[rows_text]), sum, "read back");
    assert_eq!(merged(&[rows_text, files[3]]), sum, "a run again");
    Some((rows, sum))
}

#[test]
fn duckdb_merges_to_the_same_bytes() {
    let Some((rows, sum)) = fleet("duckdb") else {
        return;
    };
    let target = rows.with_file_name("sum.parquet");
    let mut python = Command::new("python3");
    python
        .arg(script("compare.py"))
        .arg("duckdb")
        .arg(&rows)
        .arg(&target);
    let output = python.output().expect("python3 starts");
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or_default();
        skip::because(Need::Duckdb, format_args!("duckdb can't be asked: {last}"));
    }
    assert_eq!(merged(&[target.to_str().expect("it is text")]), sum);
}

#[test]
fn damaged_files_are_refused_or_read_and_never_a_bug() {
    let Some((rows, _)) = fleet("damaged") else {
        return;
    };
    let bytes = fs::read(&rows).expect("it is there");
    let damaged = rows.with_file_name("damaged.parquet");
    let mut refused = 0;
    let step = bytes.len() / 24;
    for at in (4..bytes.len()).step_by(step) {
        let mut changed = bytes.clone();
        for byte in &mut changed[at..(at + 8).min(bytes.len())] {
            *byte ^= 0x55;
        }
        for bytes in [&bytes[..at], &changed] {
            fs::write(&damaged, bytes).expect("it is written");
            let output = tamis(&["profile", "merge", damaged.to_str().expect("it is text")]);
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 2)), "{at}: {output:?}");
            refused += u32::from(code == Some(2));
        }
    }
    assert!(refused >= 24, "what is cut short: {refused}");
}

#[test]
fn a_negative_place_of_a_column_is_damage() {
    let Some((rows, _)) = fleet("negative") else {
        return;
    };
    // Each byte of the metadata, which stands before its length and the last four bytes.
    let bytes = fs::read(&rows).expect("it is there");
    let end = bytes.len() - 8;
    let length: [u8; 4] = bytes[end..end + 4].try_into().expect("four bytes");
    let start = end - u32::from_le_bytes(length) as usize;
    let damaged = rows.with_file_name("damaged.parquet");
    let mut refused = 0;
    for at in (start..end).step_by(23) {
        let mut changed = bytes.clone();
        // The last bit of a number is its sign there.
        changed[at] ^= 1;
        fs::write(&damaged, changed).expect("it is written");
        let output = tamis(&["profile", damaged.to_str().expect("it is text")]);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 2)), "{at}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        refused += u32::from(said.contains("the file is damaged"));
    }
    assert!(refused > 0, "no such place was met");
}

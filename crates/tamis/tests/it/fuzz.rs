//! `tamis bpf fuzz`: the same seed gives the same result, and exported vectors are the left side's answers.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tamis_abi::Endian;
use tamis_bpf::coverage::Coverage;
use tamis_bpf::{Program, program};
use tamis_fuzz::vectors;

const POLICY: &str = "arch x86_64, x86\ndefault errno(EPERM)\nallow read, write(fd in {1, 2, 7})\n\
                      kill clone(clone_flags & CLONE_NEWUSER != 0)\nallow clone\n";

/// Runs `tamis` in the folder of the tests and returns its output.
fn tamis(line: &str) -> Vec<u8> {
    let mut command = Command::new(crate::TAMIS);
    command
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .args(line.split(' '));
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {message}");
    output.stdout
}

#[test]
fn the_same_seed_gives_the_same_document_and_vectors_reach_all() {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::write(work.join("fuzz.tamis"), POLICY).unwrap();
    fs::write(work.join("fuzz.bpf"), tamis("compile fuzz.tamis")).unwrap();
    let run = |file: &str, seed: u32| {
        tamis(&format!(
            "bpf fuzz fuzz.bpf fuzz.tamis --evaluations 50000 --seed {seed} --json --export-vectors {file}"
        ))
    };
    let first = run("fuzz-1.vectors", 5);
    assert_eq!(first, run("fuzz-2.vectors", 5));
    let bytes = fs::read(work.join("fuzz-1.vectors")).unwrap();
    assert_eq!(bytes, fs::read(work.join("fuzz-2.vectors")).unwrap());

    let raw = fs::read(work.join("fuzz.bpf")).unwrap();
    let insns = program::insns_from_bytes(&raw, Endian::Little).unwrap();
    let program = Program::new(insns, Endian::Little).unwrap();
    let mut coverage = Coverage::new(&program);
    for vector in vectors::read(&bytes).unwrap() {
        let run = coverage.add(&vector.data);
        assert_eq!(run.ret, vector.ret, "{vector:x?}");
    }
    let document: Value = serde_json::from_slice(&first).unwrap();
    let stated = &document["coverage"][0];
    let number = |name: &str| stated[name].as_u64().unwrap() as usize;
    let unseen = coverage.unseen_outcomes().count();
    assert_eq!(unseen, number("outcomes") - number("taken_outcomes"));
    assert_eq!(unseen, number("impossible_outcomes"));
    assert_eq!(coverage.unexecuted().count(), number("impossible_insns"));
}

#[test]
fn without_coverage_the_engine_is_named_and_the_seed_decides() {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::write(work.join("fuzz-plain.tamis"), POLICY).unwrap();
    let line = "bpf fuzz fuzz-plain.tamis --evaluations 200000 --no-coverage";
    let run = || tamis(&format!("{line} --json"));
    let first = run();
    assert_eq!(first, run());
    let document: Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(document["evaluations"], 200_000);
    let engine = document["engine"].as_str().unwrap();
    let text = String::from_utf8(tamis(line)).unwrap();
    assert!(text.contains(engine), "{text}");
}

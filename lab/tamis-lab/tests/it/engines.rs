//! Engines side by side; no test asserts a time.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tamis_ebpf_vm::{AluOp, Op, Program, Reg, Source, Width};
use tamis_testkit::capture::{ETHERNET, ethernet, pcap};

use crate::tamis_lab;

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

fn strings<'v>(list: &'v Value, member: &str) -> Vec<&'v str> {
    let entries = list.as_array().unwrap().iter();
    entries
        .map(|entry| entry[member].as_str().unwrap())
        .collect()
}

/// The evaluators of a case of the only filter: the engine, the use of the cache, and the use of batches.
fn evaluators(report: &Value, case: usize) -> Vec<(&str, bool, bool)> {
    let results = report["filters"][0]["cases"][case]["results"].as_array();
    let row = |result| {
        let result: &Value = result;
        assert!(result["min_ns"].as_f64().unwrap() > 0.0, "{result}");
        let is = |member: &str| result[member].as_bool().unwrap();
        let engine = result["engine"].as_str().unwrap();
        (engine, is("is_cached"), is("is_batch"))
    };
    results.unwrap().iter().map(row).collect()
}

/// The document of evaluators, which needs no privileges.
fn document(options: &[&str]) -> Value {
    let output = tamis_lab(options);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The availability of an evaluator, detected without the command.
fn is_there(engine: &str) -> bool {
    match engine {
        "jit" | "extended, jit" => tamis_jit::probe().is_ok(),
        // It loads programs, which needs privileges.
        "kernel" => may_load_programs(),
        "libpcap" => tamis_pcap::Libpcap::open().is_ok(),
        _ => true,
    }
}

/// Whether the kernel loads a minimal program.
fn may_load_programs() -> bool {
    let zero = Op::Alu(Width::W32, AluOp::Mov, Reg::R0, Source::Imm(0));
    let program = Program::from_ops(&[zero, Op::Exit], tamis_kernel::NATIVE_ENDIAN).unwrap();
    tamis_kernel::bpf::load_classifier(program.insns()).is_ok()
}

#[test]
fn every_evaluator_that_is_there_has_a_row() {
    let all = [
        ("reference", false, false),
        ("threaded", false, false),
        ("threaded", true, false),
        ("jit", false, false),
        ("jit", true, false),
        ("extended", false, false),
        ("extended, jit", false, false),
        ("coverage", false, false),
        ("libpcap", false, false),
        ("kernel", false, false),
    ];
    let there: Vec<_> = all.into_iter().filter(|row| is_there(row.0)).collect();
    let report = document(&[
        "engines",
        "bench",
        "--calls",
        "read,socket(AF_VSOCK)",
        "--rounds=1",
        "--json",
    ]);
    assert_eq!(strings(&report["filters"], "name"), ["container-default"]);
    let cases = report["filters"][0]["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for case in 0..cases.len() {
        assert_eq!(evaluators(&report, case), there);
    }
    let absent: Vec<&str> = strings(&report["absent"], "engine");
    assert!(absent.iter().all(|engine| !is_there(engine)), "{absent:?}");
}

#[test]
fn packets_are_evaluated_one_by_one_and_all_at_once() {
    let filter = file(
        "bench-socket.asm",
        "ldh [12]\njne #0x800, drop\nret #96\ndrop: ret #0\n",
    );
    let frames = [ethernet(0x86dd, &[0; 46]), ethernet(0x800, &[0; 46])];
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench.pcap");
    fs::write(&path, pcap(ETHERNET, &frames)).unwrap();
    let all = [
        ("reference", false, false),
        ("threaded", false, false),
        ("jit", false, false),
        ("jit", false, true),
        ("extended", false, false),
        ("extended, jit", false, false),
        ("libpcap", false, false),
        ("kernel", false, false),
    ];
    let there: Vec<_> = all.into_iter().filter(|row| is_there(row.0)).collect();
    // The kernel runs a program on one packet.
    let without_kernel: Vec<_> = there
        .iter()
        .filter(|row| row.0 != "kernel")
        .copied()
        .collect();
    let paths = [&filter, &path].map(|path| path.to_str().unwrap());
    let report = document(&[
        "packets",
        "bench",
        paths[0],
        "--packets",
        paths[1],
        "--rounds=1",
        "--json",
    ]);
    let cases = &report["filters"][0]["cases"];
    assert_eq!(strings(cases, "name"), ["packet 2", "the capture"]);
    assert_eq!(evaluators(&report, 0), there);
    assert_eq!(evaluators(&report, 1), without_kernel);
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-object.o");
    fs::write(&object, crate::packets::ipv4_object()).unwrap();
    let report = document(&[
        "packets",
        "bench",
        object.to_str().unwrap(),
        "--packets",
        paths[1],
        "--rounds=1",
        "--json",
    ]);
    assert_eq!(
        strings(&report["filters"][0]["cases"], "name"),
        ["packet 2", "the capture"]
    );
    let engines: Vec<&str> = evaluators(&report, 0).iter().map(|row| row.0).collect();
    let of_object = ["reference", "threaded", "jit", "kernel"];
    let there: Vec<&str> = of_object
        .into_iter()
        .filter(|name| is_there(name))
        .collect();
    assert_eq!(engines, there);
}

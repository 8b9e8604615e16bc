//! Facts that other projects include with their policies.

use serde_json::Value;
use tamis_abi::{Arch, Nr, consts, signature, syscall};
use tamis_testkit::corpus;

/// Names for which the corpus has the C library's value, which differs from the kernel's.
const OF_THE_C_LIBRARY: [&str; 1] = ["NSIG"];

#[test]
fn constants_are_those_that_minijail_compiled() {
    let text = corpus::text("minijail/constants.json");
    let facts: Value = serde_json::from_str(&text).unwrap();
    let (mut compared, mut unknown) = (0, Vec::new());
    for (name, value) in facts["constants"].as_object().unwrap() {
        let expected = value
            .as_i64()
            .map(|value| value as u64)
            .or(value.as_u64())
            .unwrap();
        match consts::value(Arch::X86_64, name) {
            _ if OF_THE_C_LIBRARY.contains(&name.as_str()) => {}
            Some(value) => {
                assert_eq!(value, expected, "{name}");
                compared += 1;
            }
            None => unknown.push(name.as_str()),
        }
    }
    println!(
        "{compared} constants compared, {} unknown: {unknown:?}",
        unknown.len()
    );
    assert!(compared > 1500, "{compared}");
}

#[test]
fn numbers_are_those_that_minijail_compiled() {
    let text = corpus::text("minijail/constants.json");
    let facts: Value = serde_json::from_str(&text).unwrap();
    for (name, nr) in facts["syscalls"].as_object().unwrap() {
        let expected = Nr(u32::try_from(nr.as_u64().unwrap()).unwrap());
        assert_eq!(
            syscall::number(Arch::X86_64, name),
            Some(expected),
            "{name}"
        );
    }
}

#[test]
fn signatures_are_those_of_the_corpus() {
    /// Events with the name of the entry point in tracefs.
    const RENAMED: [(&str, &str); 4] = [
        ("newstat", "stat"),
        ("newfstat", "fstat"),
        ("newlstat", "lstat"),
        ("newuname", "uname"),
    ];
    let text = corpus::text("syscall-signatures-linux-6.18-x86_64.json");
    let facts: Value = serde_json::from_str(&text).unwrap();
    for (event, expected) in facts.as_object().unwrap() {
        if event == "umount" {
            // This is the event of `umount2`; `umount` itself is a call of other architectures.
            continue;
        }
        let renamed = RENAMED.iter().find(|(known, _)| known == event);
        let call = renamed.map_or(event.as_str(), |(_, call)| call);
        let args = signature::args(call).unwrap_or_else(|| panic!("{call} is unknown"));
        let args: Vec<(&str, &str)> = args.iter().map(|arg| (arg.name(), arg.c_type())).collect();
        let expected: Vec<(&str, &str)> = expected
            .as_array()
            .unwrap()
            .iter()
            .map(|arg| (arg["name"].as_str().unwrap(), arg["type"].as_str().unwrap()))
            .collect();
        assert_eq!(args, expected, "{call}");
    }
}

//! Firecracker's filters compared with the library that defines their meaning: a text compiled by seccompiler and
//! read by tamis must be the same function, and both must reject the same texts.

use std::collections::BTreeMap;

use seccompiler::TargetArch;
use tamis_abi::syscall;
use tamis_abi::{Arch, Endian};
use tamis_bpf::{Insn, Program};
use tamis_diag::{Sources, render};
use tamis_policy::Parsed;
use tamis_policy::firecracker::{self, FirecrackerOptions};
use tamis_prover::{Answer, ComparisonResult, Limits, Scope, Subject, decide, prove};
use tamis_rules::Ruleset;
use tamis_testkit::corpus;
use tamis_testkit::generate::damage::damaged;
use tamis_testkit::oracle::{Class, Classes};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

const ARCHES: [(Arch, TargetArch); 3] = [
    (Arch::X86_64, TargetArch::x86_64),
    (Arch::Aarch64, TargetArch::aarch64),
    (Arch::Riscv64, TargetArch::riscv64),
];
const THREADS: [&str; 3] = ["vmm", "api", "vcpu"];

/// Tamis's ruleset for a thread's filter, with the diagnostics.
fn ours(text: &str, arch: Arch, thread: &str) -> (Option<Ruleset>, String) {
    let mut sources = Sources::new();
    let source = sources.add("filter.json", text);
    let options = FirecrackerOptions {
        thread: Some(thread.to_owned()),
        ..FirecrackerOptions::new(arch)
    };
    let Parsed {
        ruleset,
        diagnostics,
    } = firecracker::parse(&sources, source, &options);
    (ruleset, render::render(&diagnostics, &sources, false))
}

/// The library's programs for the file, by thread.
fn theirs(text: &str, arch: TargetArch) -> Result<BTreeMap<String, Program>, String> {
    let map = seccompiler::compile_from_json(text.as_bytes(), arch);
    let map = map.map_err(|error| error.to_string())?;
    let program = |insns: seccompiler::BpfProgram| {
        let insns = insns.iter().map(|insn| Insn {
            code: insn.code,
            jt: insn.jt,
            jf: insn.jf,
            k: insn.k,
        });
        Program::new(insns.collect(), Endian::Little).expect("the library makes valid programs")
    };
    let programs = map.into_iter();
    Ok(programs
        .map(|(thread, insns)| (thread, program(insns)))
        .collect())
}

#[track_caller]
fn assert_same(ruleset: &Ruleset, program: &Program, what: &str) {
    let right = Subject::Program(program);
    let answer = decide(&Subject::Ruleset(ruleset), &right, &Limits::default());
    assert!(matches!(answer, Answer::Equal(_)), "{what}\n{answer:x?}");
}

/// A value near the borders of widths and near values that other conditions may compare with.
fn value(rng: &mut Rng) -> u64 {
    match rng.range(0..=3) {
        0 => rng.range(0..=4),
        1 => rng.range(0xffff_fffe..=0x1_0000_0001),
        2 => 1 << rng.range(0..=63),
        _ => rng.interesting_u64(),
    }
}

fn condition(rng: &mut Rng) -> String {
    let op = match rng.range(0..=6) {
        0 => "\"eq\"".to_owned(),
        1 => "\"ne\"".to_owned(),
        2 => "\"lt\"".to_owned(),
        3 => "\"le\"".to_owned(),
        4 => "\"gt\"".to_owned(),
        5 => "\"ge\"".to_owned(),
        _ => {
            // Without bits it always holds.
            let bit = u64::from(rng.chance(29, 30));
            format!("{{\"masked_eq\": {}}}", value(rng) | bit)
        }
    };
    format!(
        "{{\"index\": {}, \"type\": \"{}\", \"op\": {op}, \"val\": {}, \"comment\": \"\"}}",
        rng.range(0..=5),
        rng.choose(&["dword", "qword"]),
        value(rng)
    )
}

fn filter(rng: &mut Rng) -> String {
    // Few calls, so that several rules have the same one.
    let calls = ["read", "write", "ioctl", "socket", "mmap"];
    let actions = [
        "\"allow\"",
        "\"trap\"",
        "\"log\"",
        "\"kill_thread\"",
        "\"kill_process\"",
        "{\"errno\": 1}",
        "{\"trace\": 65535}",
    ];
    let rules: Vec<String> = (0..rng.range(0..=12))
        .map(|_| {
            let call = rng.choose(&calls);
            let args: Vec<String> = (0..rng.range(0..=4)).map(|_| condition(rng)).collect();
            match args.as_slice() {
                [] => format!("{{\"syscall\": \"{call}\"}}"),
                args => format!(
                    "{{\"syscall\": \"{call}\", \"args\": [{}]}}",
                    args.join(", ")
                ),
            }
        })
        .collect();
    // With one action for both the file is refused.
    let least = u64::from(rng.chance(19, 20));
    let other = rng.range(least..=6) as usize;
    let mismatch = rng.index(actions.len());
    let keys = rng.choose(&[
        ["mismatch_action", "match_action"],
        ["default_action", "filter_action"],
    ]);
    format!(
        "{{\"{}\": {}, \"{}\": {}, \"filter\": [{}]}}",
        keys[0],
        actions[mismatch],
        keys[1],
        actions[(mismatch + other) % actions.len()],
        rules.join(",\n")
    )
}

/// Whether all errors are conditions that always hold.
fn has_vacuous_masks_only(messages: &str) -> bool {
    let errors = || messages.lines().filter(|line| line.starts_with("error["));
    errors().next().is_some() && errors().all(|line| line.ends_with("the condition always holds"))
}

/// The replacements of a damaged character.
const SIGNS: [char; 16] = [
    '"', ',', ':', '0', '-', '.', 'e', ' ', '\u{a0}', '}', '\\', '\t', '\u{c}', '\u{1}',
    '\u{feff}', '\u{2028}',
];

fn file(rng: &mut Rng) -> String {
    let threads = THREADS.map(|thread| format!("\"{thread}\": {}", filter(rng)));
    let text = format!("{{{}}}", threads.join(",\n"));
    match rng.chance(1, 4) {
        true => damaged(rng, &text, &SIGNS),
        false => text,
    }
}

/// The class of a file with its threads, the worst of them.
fn class(text: &str, arch: Arch, target: TargetArch) -> Class {
    let programs = theirs(text, target);
    let of_thread = |thread: &str| {
        let (ruleset, messages) = ours(text, arch, thread);
        // The library accepts a mask that is empty after truncation to a dword.
        let vacuous = "a mask without bits is an error";
        let reason = || has_vacuous_masks_only(&messages).then_some(vacuous);
        let program = programs.as_ref().ok().map(|programs| programs.get(thread));
        match program {
            Some(None) => Class::BothRefuse,
            program => Class::from_results(ruleset.as_ref(), program.flatten(), reason),
        }
    };
    match &programs {
        Ok(programs) => programs.keys().map(|thread| of_thread(thread)).max(),
        Err(_) => THREADS.into_iter().map(of_thread).max(),
    }
    .expect("a file has threads")
}

#[test]
fn random_files_mean_what_the_library_makes_of_them() {
    let mut classes = Classes::default();
    for seed in seeds::selected(0..1000) {
        let mut rng = Rng::new(seed);
        let text = file(&mut rng);
        let (arch, target) = ARCHES[rng.index(3)];
        classes.add(class(&text, arch, target), &text);
    }
    classes.check();
    classes.check_row("firecracker", "seccompiler 0.5.0", 0);
}

#[test]
fn the_shipped_file_means_what_the_library_makes_of_it() {
    let file = "firecracker/firecracker-vmm-x86_64.json";
    let text = corpus::text(file);
    let programs = theirs(&text, TargetArch::x86_64).expect("it is valid");
    assert_eq!(programs.len(), THREADS.len());
    for thread in THREADS {
        let (ruleset, messages) = ours(&text, Arch::X86_64, thread);
        let ruleset = ruleset.unwrap_or_else(|| panic!("{messages}"));
        assert_same(&ruleset, &programs[thread], thread);
        if thread == "vmm" {
            let program = corpus::program("peers/firecracker-seccompiler-vmm.bpf");
            assert_same(&ruleset, &program, "the stored program");
        }
    }
}

/// Other compilers got the same rules. They differ for calls of other architectures.
#[test]
fn the_shipped_file_means_what_other_compilers_made_of_it() {
    let text = corpus::text("firecracker/firecracker-vmm-x86_64.json");
    let (ruleset, messages) = ours(&text, Arch::X86_64, "vmm");
    let ruleset = ruleset.unwrap_or_else(|| panic!("{messages}"));
    let peers = [
        "own-seccompiler-bin",
        "kafel",
        "libseccomp-2.5.4",
        "libseccomp-2.5.4-opt2",
    ];
    for peer in peers {
        let name = format!("peers/firecracker-{peer}-vmm.bpf");
        let program = corpus::program(&name);
        let right = Subject::Program(&program);
        let scope = Scope {
            arches: vec![Arch::X86_64],
            ..Scope::default()
        };
        let left = Subject::Ruleset(&ruleset);
        let report = prove(&left, &right, &scope, &Limits::default());
        assert_eq!(report.result, Ok(ComparisonResult::Equal), "{name}");
    }
}

#[test]
fn calls_have_the_numbers_of_the_library() {
    for (arch, target) in ARCHES {
        let mut known = 0;
        for (_, name) in syscall::all(arch) {
            let text = format!(
                "{{\"x\": {{\"match_action\": \"log\", \"mismatch_action\": \"trap\", \
                 \"filter\": [{{\"syscall\": \"{name}\"}}]}}}}"
            );
            // The library's tables are older.
            let Ok(programs) = theirs(&text, target) else {
                continue;
            };
            known += 1;
            let (ruleset, messages) = ours(&text, arch, "x");
            let ruleset = ruleset.unwrap_or_else(|| panic!("{messages}"));
            assert_same(&ruleset, &programs["x"], name);
        }
        println!("{arch}: {known} calls");
        assert!(known > 250, "{arch}: {known}");
    }
}

#[test]
fn what_the_library_refuses_is_refused() {
    let rule = |rule: &str| {
        format!(
            "{{\"x\": {{\"match_action\": \"log\", \"mismatch_action\": \"trap\", \"filter\": [{rule}]}}}}"
        )
    };
    let condition = |rest: &str| {
        rule(&format!(
            "{{\"syscall\": \"read\", \"args\": [{{\"index\": 0, {rest}}}]}}"
        ))
    };
    let fine = condition("\"type\": \"dword\", \"op\": \"eq\", \"val\": 1");
    assert!(theirs(&fine, TargetArch::x86_64).is_ok());
    assert!(ours(&fine, Arch::X86_64, "x").0.is_some());
    let refused = [
        String::new(),
        "[]".to_owned(),
        "{\"x\": []}".to_owned(),
        "{\"x\": {}}".to_owned(),
        rule("1"),
        rule("{}"),
        rule("{\"syscall\": \"raed\"}"),
        rule("{\"syscall\": 1}"),
        rule("{\"syscall\": \"read\", \"args\": []}"),
        rule("{\"syscall\": \"read\", \"args\": [{}]}"),
        rule("{\"syscall\": \"read\", \"arg\": []}"),
        rule("{\"syscall\": \"read\", \"comment\": 1}"),
        rule("{\"syscall\": \"read\"},"),
        rule("{\"syscall\": \"read\", \"syscall\": \"read\"}"),
        condition("\"op\": \"eq\", \"val\": 1"),
        condition("\"type\": \"word\", \"op\": \"eq\", \"val\": 1"),
        condition("\"type\": \"dword\", \"op\": \"=\", \"val\": 1"),
        condition("\"type\": \"dword\", \"op\": \"masked_eq\", \"val\": 1"),
        condition("\"type\": \"dword\", \"op\": {\"masked_eq\": -1}, \"val\": 1"),
        condition("\"type\": \"dword\", \"op\": {\"eq\": 1}, \"val\": 1"),
        condition("\"type\": \"dword\", \"op\": \"eq\", \"val\": \"1\""),
        condition("\"type\": \"dword\", \"op\": \"eq\", \"val\": 1.5"),
        condition("\"type\": \"dword\", \"op\": \"eq\", \"val\": 18446744073709551616"),
        condition("\"type\": \"dword\", \"op\": \"eq\", \"val\": 1, \"width\": 4"),
        fine.replace("\"index\": 0", "\"index\": 6"),
        fine.replace("\"log\"", "\"trap\""),
        fine.replace("\"log\"", "\"errno\""),
        fine.replace("\"log\"", "{\"errno\": 1, \"trace\": 1}"),
        fine.replace("\"log\"", "{\"allow\": 1}"),
        fine.replace(
            "match_action\": \"log\"",
            "match_action\": \"log\", \"filter_action\": \"log\"",
        ),
        fine.replace("\"x\":", "\"x\": null, \"y\":"),
    ];
    for text in refused {
        let theirs = theirs(&text, TargetArch::x86_64);
        assert!(theirs.is_err(), "the library takes {text}");
        let (ruleset, messages) = ours(&text, Arch::X86_64, "x");
        assert!(ruleset.is_none() && messages.contains("error["), "{text}");
    }
}

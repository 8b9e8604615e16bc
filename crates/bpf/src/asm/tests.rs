//! The instructions for each text, and the places of mistakes.

use tamis_abi::Endian;
use tamis_diag::{Diagnostic, Sources};

use super::assemble;
use crate::code;
use crate::insn::{Insn, Op, Test};

/// The assembled instructions, or the id, the first label's text and the message of each mistake.
fn result(text: &str) -> Result<Vec<Insn>, Vec<(&'static str, String, String)>> {
    let mut sources = Sources::new();
    let source = sources.add("test.bpf", text);
    let describe = |diagnostic: &Diagnostic| {
        let place = sources.snippet(diagnostic.labels[0].span).to_owned();
        (diagnostic.code.id, place, diagnostic.message.clone())
    };
    match assemble(text, source, Endian::Little) {
        Ok(assembly) => Ok(assembly.insns),
        Err(diagnostics) => Err(diagnostics.iter().map(describe).collect()),
    }
}

fn op(line: &str) -> Op {
    result(line).unwrap()[0].op().unwrap()
}

/// Code, place and message of the only mistake.
fn mistake(text: &str) -> (&'static str, String, String) {
    let mut mistakes = result(text).unwrap_err();
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    mistakes.remove(0)
}

fn branch(test: Test, k: u32, jt: u8, jf: u8) -> Insn {
    Op::branch(test, k, jt, jf).into()
}

#[test]
fn loads_and_stores() {
    assert_eq!(op("ld [4]"), Op::LoadData(4));
    assert_eq!(op("LD [arch]"), Op::LoadData(4));
    assert_eq!(op("ld [arg5.high]"), Op::LoadData(60));
    assert_eq!(op("ld #0x10"), Op::LoadImm(16));
    assert_eq!(op("ldi 020"), Op::LoadImm(16));
    assert_eq!(op("ldxi #0b11"), Op::LoadXImm(3));
    assert_eq!(op("ld M[3]"), Op::LoadMem(3));
    assert_eq!(op("ldx m[15]"), Op::LoadXMem(15));
    assert_eq!(op("ld len"), Op::LoadLen);
    assert_eq!(op("ld #len"), Op::LoadLen);
    assert_eq!(op("ldx #len"), Op::LoadXLen);
    assert_eq!(op("st M[0]"), Op::Store(0));
    assert_eq!(op("stx M[1]"), Op::StoreX(1));
}

#[test]
fn names_for_constants() {
    assert_eq!(op("ret #allow"), Op::RetImm(0x7fff_0000));
    assert_eq!(op("ret #errno(1)"), Op::RetImm(0x0005_0001));
    assert_eq!(op("ret #-1"), Op::RetImm(u32::MAX));
    assert_eq!(op("ret %a"), Op::RetA);
    assert_eq!(op("ld #arch(amd64)"), Op::LoadImm(0xc000_003e));
    assert_eq!(op("ld #nr(x86_64, write)"), Op::LoadImm(1));
}

#[test]
fn the_byte_order_decides_where_halves_stand() {
    let mut sources = Sources::new();
    let source = sources.add("test.bpf", "ld [arg0.low]");
    let offset = |endian| assemble("ld [arg0.low]", source, endian).unwrap().insns[0].k;
    assert_eq!((offset(Endian::Little), offset(Endian::Big)), (16, 20));
}

#[test]
fn branches_with_one_and_two_labels() {
    let assembled = |line: &str| result(&format!("{line}\n ret a\n no: ret a\n yes: ret a"));
    let first = |line: &str| assembled(line).map(|insns| insns[0]);
    assert_eq!(first("jeq #5, yes, no"), Ok(branch(Test::Eq, 5, 2, 1)));
    let one = |line: &str| assembled(&format!("{line}\n ja no")).map(|insns| insns[0]);
    assert_eq!(one("jset #5, yes"), Ok(branch(Test::Set, 5, 3, 0)));
    assert_eq!(one("jne #5, yes"), Ok(branch(Test::Eq, 5, 0, 3)));
    assert_eq!(one("jneq #5, yes"), Ok(branch(Test::Eq, 5, 0, 3)));
    assert_eq!(one("jlt #5, yes"), Ok(branch(Test::Ge, 5, 0, 3)));
    assert_eq!(one("jle #5, yes"), Ok(branch(Test::Gt, 5, 0, 3)));
    assert_eq!(first("jlt #5, yes, no"), Ok(branch(Test::Ge, 5, 1, 2)));
}

#[test]
fn comments_labels_on_their_own_lines_and_raw_instructions() {
    let text = "# heading\n/* two\n lines */ jmp end ; away\n\n end:\n again: .insn 0x16, 1, 2, 3";
    let raw = Insn {
        code: 0x16,
        jt: 1,
        jf: 2,
        k: 3,
    };
    assert_eq!(result(text), Ok(vec![Op::Jump(0).into(), raw]));
}

#[test]
fn an_unused_label_is_a_warning() {
    let mut sources = Sources::new();
    let source = sources.add("test.bpf", "lost: ret a");
    let assembly = assemble("lost: ret a", source, Endian::Little).unwrap();
    let codes: Vec<_> = assembly.warnings.iter().map(|found| found.code).collect();
    assert_eq!(codes, [code::UNUSED_LABEL]);
}

#[test]
fn several_mistakes_are_reported_in_the_order_of_the_text() {
    let text = "ld [nrr]\n jqe #1, end\n ja ende\n add 5\n end: ret #alow\n";
    let mistakes = result(text).unwrap_err();
    let places: Vec<_> = mistakes
        .iter()
        .map(|(id, place, _)| (*id, place.as_str()))
        .collect();
    let expected = [
        ("TM0104", "nrr"),
        ("TM0103", "jqe"),
        ("TM0106", "ende"),
        ("TM0102", "5"),
        ("TM0108", "end"),
        ("TM0104", "alow"),
    ];
    assert_eq!(places, expected);
}

#[test]
fn jumps_that_lead_nowhere() {
    let back = mistake("up: ret a\n ja up\n ret a");
    assert_eq!((back.0, back.1.as_str()), ("TM0109", "up"));
    let itself = mistake("up: ja up\n ret a");
    assert_eq!(itself.0, "TM0109");
    let end = mistake("ja end\n end:");
    assert_eq!(end.2, "no instruction follows label `end`");
    let twice = mistake("ja a1\n a1: ret a\n a1: ret a");
    assert_eq!((twice.0, twice.1.as_str()), ("TM0107", "a1"));
}

#[test]
fn a_branch_reaches_255_instructions_and_no_more() {
    let text = |between: usize| format!("jeq x, far\n {} far: ret a", "tax\n".repeat(between));
    assert_eq!(result(&text(255)).unwrap()[0].jt, 255);
    let (id, place, message) = mistake(&text(256));
    assert_eq!((id, place.as_str()), ("TM0110", "far"));
    assert!(message.contains("skips 256 instructions"), "{message}");
    let jump = text(256).replace("jeq x,", "ja");
    assert_eq!(result(&jump).unwrap()[0].k, 256);
}

#[test]
fn numbers_that_do_not_fit_and_words_that_are_none() {
    for (line, place) in [
        ("ld #0x100000000", "0x100000000"),
        ("ld #-2147483649", "-2147483649"),
        ("ret #errno(65536)", "65536"),
        (".insn 6, 256, 0, 0", "256"),
        (".insn 65536, 0, 0, 0", "65536"),
    ] {
        let (id, at, _) = mistake(line);
        assert_eq!((id, at.as_str()), ("TM0105", place), "{line}");
    }
    for line in [
        "ld #08", "ld #0x", "ld #1z", "ld ?", "ld #1 2", "ld", "/* x", "ret x", "ld #--1",
    ] {
        assert_eq!(mistake(line).0, "TM0102", "{line}");
    }
    for line in ["mod #2", "ldh [4]", "ldb [4]"] {
        assert_eq!(mistake(line).0, "TM0101", "{line}");
    }
}

#[test]
fn an_illegal_program_is_reported_at_its_lines() {
    let text = "ld [2]\ndiv #0\nst M[16]\nret a\n";
    let mut sources = Sources::new();
    let source = sources.add("test.bpf", text);
    let assembly = assemble(text, source, Endian::Little).unwrap();
    let diagnostics = assembly.into_program().unwrap_err();
    let places = diagnostics
        .iter()
        .map(|found| sources.snippet(found.labels[0].span));
    assert_eq!(places.collect::<Vec<_>>(), ["ld [2]", "div #0", "st M[16]"]);
    let empty = assemble("; nothing\n", source, Endian::Little).unwrap();
    assert_eq!(
        empty.into_program().unwrap_err()[0].code,
        code::INVALID_PROGRAM
    );
}

#[test]
fn misspelt_names_are_answered_with_the_nearest() {
    let mut sources = Sources::new();
    let helps = [
        ("jqe #1, x1", "jeq"),
        ("ld [arg0.hi]", "arg0.high"),
        ("ja end\n ende: ret a", "ende"),
        ("ret #kill_proces", "kill_process"),
        ("ld #arch(x86_46)", "x86_64"),
        ("ld #nr(x86_64, opeant)", "openat"),
    ];
    for (text, nearest) in helps {
        let source = sources.add("test.bpf", text);
        let diagnostics = assemble(text, source, Endian::Little).unwrap_err();
        let help = diagnostics.iter().find_map(|found| found.help.clone());
        assert_eq!(help, Some(format!("did you mean `{nearest}`?")), "{text}");
    }
}

#[test]
fn bare_names_of_calls_and_architectures_are_answered_with_what_to_write() {
    let mut sources = Sources::new();
    let helps = [
        (
            "jeq #openat, x1",
            "write `#nr(x86_64, openat)`, or another architecture",
        ),
        ("jeq #i386, x1", "write `#arch(x86)`"),
        (
            "jeq #AUDIT_ARCH_X86_64, x1",
            "write `#arch(x86_64)` for an architecture",
        ),
    ];
    for (text, help) in helps {
        let source = sources.add("test.bpf", text);
        let diagnostics = assemble(text, source, Endian::Little).unwrap_err();
        assert_eq!(diagnostics[0].help.as_deref(), Some(help), "{text}");
    }
}

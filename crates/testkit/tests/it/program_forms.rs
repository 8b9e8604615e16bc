//! Programs of the corpus in every text form: written and read again they are the same, instruction by instruction.

use std::fmt::Write as _;

use tamis_abi::{Arch, Endian};
use tamis_bpf::{Insn, Program, forms};
use tamis_diag::{Sources, render};
use tamis_testkit::corpus;
use tamis_testkit::generate::shape;

/// The texts of a program, with the names of their forms.
fn texts(insns: &[Insn]) -> Vec<(&'static str, String)> {
    let lines = |line: &dyn Fn(&Insn) -> String| insns.iter().map(line).collect::<String>();
    let array = lines(&|i| format!("{{ {:#x}, {}, {}, {:#010x} }},\n", i.code, i.jt, i.jf, i.k));
    let macros = lines(&|i| match i.code & 7 {
        5 if i.code != 5 => format!("BPF_JUMP({}, {}, {}, {}),\n", i.code, i.k, i.jt, i.jf),
        _ => format!("BPF_STMT({:#x}, {:#x}U),\n", i.code, i.k),
    });
    let quad = |i: &Insn| format!("{} {} {} {}", i.code, i.jt, i.jf, i.k);
    let decimal = lines(&|i| format!("{}\n", quad(i)));
    let commas = lines(&|i| format!("{},", quad(i)));
    let mut listing = String::from(" line  CODE  JT   JF      K\n=====\n");
    for (at, i) in insns.iter().enumerate() {
        let (code, jt, jf, k) = (i.code, i.jt, i.jf, i.k);
        let _ = writeln!(
            listing,
            " {at:04}: {code:#04x} {jt:#04x} {jf:#04x} {k:#010x}  text"
        );
    }
    let program = Program::new(insns.to_vec(), Endian::Little).expect("corpus programs are valid");
    let bytes = program.to_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let escaped: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    let count = insns.len();
    vec![
        ("c-array", array),
        (
            "c-array",
            format!("struct sock_filter f[] = {{\n{macros}}};"),
        ),
        ("decimal", format!("{count}\n{decimal}")),
        ("decimal", format!("{count},{commas}\n")),
        ("seccomp-tools", listing),
        ("hex", hex),
        ("hex", escaped),
    ]
}

#[test]
fn every_program_of_the_corpus_survives_every_form() {
    all_survive_every_form(corpus::all_programs(), 500);
}

#[test]
fn programs_of_real_shapes_survive_every_form() {
    all_survive_every_form(shape::programs(), 50);
}

fn all_survive_every_form(programs: Vec<(String, Program)>, least: usize) {
    let mut read = 0;
    for (name, program) in programs {
        let insns = program.insns().to_vec();
        for (form, text) in texts(&insns) {
            let mut sources = Sources::new();
            let source = sources.add("program.txt", text.as_str());
            let mut all = forms::ALL.iter();
            let found = all
                .find(|form| (form.recognises)(&text))
                .expect("it looks like a form");
            assert_eq!(found.name, form, "{name}");
            let again = (found.read)(&text, source, Arch::X86_64).unwrap_or_else(|mistakes| {
                panic!("{}", render::render(&mistakes, &sources, false))
            });
            assert!(again.insns == insns, "{name} as {form}");
            read += 1;
        }
    }
    println!("{read} texts");
    assert!(read > least, "{read}");
}

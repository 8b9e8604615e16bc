//! Assembler text against the kernel's own assembler, instruction for instruction.

use tamis_abi::Endian;
use tamis_bpf::Insn;
use tamis_bpf::asm::assemble;
use tamis_bpf::code;
use tamis_bpf::disasm::{Style, disassemble_packet};
use tamis_bpf::validate::problems;
use tamis_diag::{Diagnostic, Sources};
use tamis_testkit::bpf_asm::{self, PACKAGE};
use tamis_testkit::generate::assembly::assembly;
use tamis_testkit::generate::packet;
use tamis_testkit::oracle::{Class, Classes};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

/// Random texts; only `.ci/run full` tries all.
const RANDOM: u64 = 2000;

/// The instructions of a text that is a filter.
fn read(text: &str) -> Result<Vec<Insn>, Vec<Diagnostic>> {
    let mut sources = Sources::new();
    let source = sources.add("x.asm", text);
    let program = assemble(text, source, Endian::Little)?.into_program()?;
    Ok(program.insns().to_vec())
}

/// The reason for which tamis may reject a text that the kernel's assembler accepts.
fn reason(diagnostics: &[Diagnostic]) -> Option<&'static str> {
    let mut errors = diagnostics.iter().filter(|said| said.is_error());
    let is_listed = |error: &Diagnostic| {
        // A jump to nowhere, a number that would be cut off, a comment that swallows instructions, two in a line.
        let codes = [
            code::UNDEFINED_LABEL,
            code::NUMBER_TOO_LARGE,
            code::DUPLICATE_LABEL,
        ];
        codes.contains(&error.code)
            || ["comment that", "expected the end of the line"]
                .iter()
                .any(|start| error.message.starts_with(start))
    };
    errors
        .all(is_listed)
        .then_some("what would be cut off or skipped is an error")
}

/// Whether an instruction has two labels, as the assembler of tamis takes them.
fn has_two_labels(text: &str) -> bool {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| line.split(';').next().unwrap_or_default());
    let text = lines.collect::<Vec<&str>>().join("\n");
    let is_word = |part: &str| {
        let part = part.trim();
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let parts: Vec<&str> = text.split(':').collect();
    let between = parts.get(1..parts.len() - 1).unwrap_or_default();
    between.iter().any(|part| is_word(part))
}

fn class(text: &str, theirs: Option<&Vec<Insn>>) -> Class {
    // The kernel takes no other programs for filters.
    let theirs = theirs.filter(|insns| problems(insns).is_empty());
    match (read(text), theirs) {
        (Err(_), None) => Class::BothRefuse,
        (Ok(ours), Some(theirs)) if ours == *theirs => Class::Equal,
        (Err(said), Some(theirs)) => {
            let wrong = || {
                let errors: Vec<&Diagnostic> = said.iter().filter(|said| said.is_error()).collect();
                Class::Wrong(format!("{errors:?}, but {theirs:?}"))
            };
            reason(&said).map_or_else(wrong, Class::Stricter)
        }
        (Ok(_), None) if has_two_labels(text) => {
            Class::NotComparable("tamis's assembler has several labels for an instruction")
        }
        (Ok(ours), theirs) => Class::Wrong(format!("{ours:?}, not {theirs:?}")),
    }
}

#[test]
fn random_texts_are_what_the_kernels_assembler_makes_of_them() {
    let seeds = seeds::selected(0..RANDOM);
    let texts: Vec<String> = seeds.map(|seed| assembly(&mut Rng::new(seed))).collect();
    let programs =
        bpf_asm::assemble(&texts).unwrap_or_else(|reason| skip::because(Need::BpfAsm, reason));
    let mut classes = Classes::default();
    for (text, program) in texts.iter().zip(&programs) {
        classes.add(class(text, program.as_ref()), text);
    }
    classes.check();
    classes.check_row("asm", PACKAGE, 0);
}

#[test]
fn listings_of_sockets_programs_are_what_the_kernels_assembler_reads() {
    let mut rng = Rng::new(0x7063_6170);
    let programs: Vec<_> = (0..seeds::share(1000))
        .map(|_| packet::program(&mut rng, 30))
        .collect();
    let listing = |program| disassemble_packet(program, Style::Plain);
    let texts: Vec<String> = programs.iter().map(listing).collect();
    let read =
        bpf_asm::assemble(&texts).unwrap_or_else(|reason| skip::because(Need::BpfAsm, reason));
    for ((program, text), read) in programs.iter().zip(&texts).zip(read) {
        assert_eq!(read.as_deref(), Some(program.insns()), "{text}");
    }
}

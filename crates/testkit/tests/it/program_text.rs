//! Assembling a disassembly gives the same instructions, bit for bit.

use tamis_abi::Endian;
use tamis_bpf::asm::{assemble, assemble_packet};
use tamis_bpf::disasm::{Style, disassemble_insns, disassemble_packet};
use tamis_bpf::{Insn, Program};
use tamis_diag::Sources;
use tamis_testkit::corpus;
use tamis_testkit::generate::packet;
use tamis_testkit::generate::program::{nearly_valid, noise, program, with_unused_fields};
use tamis_testkit::rng::Rng;

const STYLES: [(Style, Endian); 3] = [
    (Style::Plain, Endian::Little),
    (Style::Commented, Endian::Little),
    (Style::Commented, Endian::Big),
];

fn assert_round_trip(insns: &[Insn], name: &str) {
    for (style, endian) in STYLES {
        let text = disassemble_insns(insns, endian, style);
        let source = Sources::new().add(name, text.as_str());
        let assembly = assemble(&text, source, Endian::Little)
            .unwrap_or_else(|diagnostics| panic!("{name}: {diagnostics:?}\n{text}"));
        assert_eq!(assembly.insns, insns, "{name}, {style:?}:\n{text}");
        assert_eq!(assembly.warnings, [], "{name}, {style:?}:\n{text}");
    }
}

#[test]
fn of_generated_programs() {
    let mut rng = Rng::new(0x6173_6d21);
    for index in 0..3000 {
        let body_insns = rng.range(0..=if index % 50 == 0 { 900 } else { 40 }) as usize;
        let plain = program(&mut rng, body_insns, Endian::Little);
        assert_round_trip(plain.insns(), "generated");
        let noisy = with_unused_fields(&mut rng, &plain);
        assert_round_trip(&noisy, "generated with unused fields");
    }
}

#[test]
fn of_generated_programs_of_sockets() {
    let mut rng = Rng::new(0x7063_6170);
    for _ in 0..2000 {
        let body_insns = rng.range(0..=40) as usize;
        let program = packet::program(&mut rng, body_insns);
        for style in [Style::Plain, Style::Commented] {
            let text = disassemble_packet(&program, style);
            let source = Sources::new().add("generated", text.as_str());
            let assembly = assemble_packet(&text, source)
                .unwrap_or_else(|diagnostics| panic!("{diagnostics:?}\n{text}"));
            assert_eq!(assembly.warnings, [], "{text}");
            assert_eq!(
                assembly.into_packet_program(),
                Ok(program.clone()),
                "{text}"
            );
        }
    }
}

#[test]
fn of_lists_that_are_no_programs() {
    let mut rng = Rng::new(0x6e6f_6973);
    for _ in 0..2000 {
        assert_round_trip(&nearly_valid(&mut rng, 12), "nearly valid");
        assert_round_trip(&noise(&mut rng, 12), "noise");
    }
}

#[test]
fn of_every_program_of_the_corpus() {
    let names = corpus::files("", ".bpf");
    for name in names {
        let insns = corpus::insns(&name);
        assert_round_trip(&insns, &name);
        Program::new(insns, Endian::Little).unwrap_or_else(|invalid| panic!("{name}: {invalid}"));
    }
}

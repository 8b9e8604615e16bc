//! Extended programs as text and as documents.

use tamis_abi::Endian;
use tamis_bpf::disasm::Style;
use tamis_bpf::{Program, packet};
use tamis_ebpf_vm::{convert, text};
use tamis_report::disasm::{ExtendedProgram, ExtendedReport};

use crate::object::{Readable, Section};
use tamis_cli::Failure;

/// A filter of seccomp as the kernel converts it.
pub(crate) fn of_program(program: &Program, style: Style) -> Result<String, Failure> {
    convert::listing(program, style).map_err(too_far)
}

/// A filter of a socket as the kernel converts it.
pub(crate) fn of_packet_program(program: &packet::Program) -> Result<String, Failure> {
    let converted = convert::converted_packet(program, Endian::Little).map_err(too_far)?;
    Ok(text::disassemble(converted.insns()))
}

fn too_far(error: impl std::fmt::Display) -> Failure {
    Failure::input(error.to_string())
}

/// The document of a converted filter of seccomp.
pub(crate) fn report_of_program(program: &Program) -> Result<ExtendedReport, Failure> {
    let converted = convert::converted(program).map_err(too_far)?;
    Ok(report([ExtendedProgram::from_program(None, &converted)]))
}

/// The document of a converted filter of a socket.
pub(crate) fn report_of_packet_program(
    program: &packet::Program,
) -> Result<ExtendedReport, Failure> {
    let converted = convert::converted_packet(program, Endian::Little).map_err(too_far)?;
    Ok(report([ExtendedProgram::from_program(None, &converted)]))
}

/// The document of the programs of an object file.
pub(crate) fn report_of_sections(sections: Vec<Readable>) -> ExtendedReport {
    let sections = sections.into_iter();
    report(
        sections
            .map(|Readable { name, program }| ExtendedProgram::from_program(Some(name), &program)),
    )
}

fn report(programs: impl IntoIterator<Item = ExtendedProgram>) -> ExtendedReport {
    ExtendedReport {
        programs: programs.into_iter().collect(),
    }
}

/// The text of the programs of an object file.
pub(crate) fn listing(sections: &[Section]) -> String {
    let mut listing = String::new();
    for Section { name, program } in sections {
        match program {
            Ok(program) => {
                listing.push_str(&format!("; section {name}\n"));
                listing.push_str(&text::disassemble(program.insns()));
            }
            Err(error) => listing.push_str(&format!("; section {name} can't be read: {error}\n")),
        }
    }
    listing
}

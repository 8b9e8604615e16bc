//! `tamis disasm --extended`: what the kernel makes of a classic program, and programs in object files.

use tamis_abi::Endian;
use tamis_bpf::disasm::Style;
use tamis_bpf::{Program, packet};
use tamis_ebpf::elf::Object;
use tamis_ebpf::{convert, text};
use tamis_report::disasm::{ExtendedProgram, ExtendedReport};
use tamis_session::Input;

use crate::cli::Failure;

/// The bytes with which an object file begins.
const MAGIC: [u8; 4] = *b"\x7fELF";

/// A filter of seccomp as the kernel converts it.
pub(super) fn of_program(program: &Program, style: Style) -> Result<String, Failure> {
    convert::listing(program, style).map_err(too_far)
}

/// A filter of a socket as the kernel converts it.
pub(super) fn of_packet_program(program: &packet::Program) -> Result<String, Failure> {
    let converted = convert::converted_packet(program, Endian::Little).map_err(too_far)?;
    Ok(text::disassemble(converted.insns()))
}

fn too_far(error: impl std::fmt::Display) -> Failure {
    Failure::input(error.to_string())
}

/// The document of a converted filter of seccomp.
pub(super) fn report_of_program(program: &Program) -> Result<ExtendedReport, Failure> {
    let converted = convert::converted(program).map_err(too_far)?;
    Ok(report([(None, converted)]))
}

/// The document of a converted filter of a socket.
pub(super) fn report_of_packet_program(
    program: &packet::Program,
) -> Result<ExtendedReport, Failure> {
    let converted = convert::converted_packet(program, Endian::Little).map_err(too_far)?;
    Ok(report([(None, converted)]))
}

/// The document of the programs of an object file.
pub(super) fn report<P>(programs: P) -> ExtendedReport
where
    P: IntoIterator<Item = (Option<String>, tamis_ebpf::Program)>,
{
    let programs = programs.into_iter();
    let programs = programs.map(|(section, program)| ExtendedProgram::of(section, &program));
    ExtendedReport {
        programs: programs.collect(),
    }
}

/// The programs of an object file by their sections, if the input is one.
pub(super) fn of_object(
    input: &Input,
) -> Result<Option<Vec<(Option<String>, tamis_ebpf::Program)>>, Failure> {
    if !input.bytes.starts_with(&MAGIC) {
        return Ok(None);
    }
    let wrong =
        |error: tamis_ebpf::elf::ElfError| Failure::input(format!("{}: {error}", input.name));
    let object = Object::parse(&input.bytes).map_err(wrong)?;
    let mut programs = Vec::new();
    for section in object.sections().map_err(wrong)? {
        let program = object.program(&section).map_err(wrong)?;
        programs.push((Some(section), program));
    }
    Ok(Some(programs))
}

/// The text of the programs of an object file.
pub(super) fn listing(programs: &[(Option<String>, tamis_ebpf::Program)]) -> String {
    let mut listing = String::new();
    for (section, program) in programs {
        if let Some(section) = section {
            listing.push_str(&format!("; section {section}\n"));
        }
        listing.push_str(&text::disassemble(program.insns()));
    }
    listing
}

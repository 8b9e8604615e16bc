//! Classic programs as extended ones.
//!
//! The translation is the kernel's, [`tamis_bpf::convert`]; this module makes a [`Program`] of it.

use tamis_abi::Endian;
use tamis_bpf::convert::{self, JumpTooFar};
use tamis_bpf::disasm::{self, Style};
use tamis_bpf::ebpf_len::{PROLOGUE_INSNS, op_len_insns};
use tamis_bpf::packet;

use crate::program::Program;
use crate::text::disassemble;

/// The program that the kernel runs in place of a seccomp filter.
///
/// # Errors
/// [`JumpTooFar`], only for programs that are not [installable](tamis_bpf::Program::is_installable).
///
/// # Panics
/// Never: what the conversion gives is valid.
pub fn converted(filter: &tamis_bpf::Program) -> Result<Program, JumpTooFar> {
    let insns = convert::convert(filter)?;
    Ok(Program::new(insns, filter.endian()).expect("a conversion is a program"))
}

/// The text of the converted filter, with each classic instruction as a comment before those that it becomes, or plain.
/// Both are read back to the same program.
///
/// # Errors
/// As for [`converted`].
pub fn listing(filter: &tamis_bpf::Program, style: Style) -> Result<String, JumpTooFar> {
    let program = converted(filter)?;
    let text = disassemble(program.insns());
    if style == Style::Plain {
        return Ok(text);
    }
    let mut lines = text.lines();
    let mut listing = String::new();
    let mut add = |line: &str| {
        listing.push_str(line);
        listing.push('\n');
    };
    lines.by_ref().take(PROLOGUE_INSNS).for_each(&mut add);
    // Both texts have a line for each instruction: no conversion has a wide one.
    for (classic, op) in disasm::disassemble(filter, style).lines().zip(filter.ops()) {
        add(&format!("// {classic}"));
        lines.by_ref().take(op_len_insns(op)).for_each(&mut add);
    }
    Ok(listing)
}

/// The program that the kernel runs in place of a socket's filter, with a context and helpers of the
/// kernel.
///
/// # Errors
/// [`JumpTooFar`], if a jump leads over too many loads.
///
/// # Panics
/// Never: what the conversion gives is valid.
pub fn converted_packet(filter: &packet::Program, endian: Endian) -> Result<Program, JumpTooFar> {
    let insns = convert::convert_packet(filter, endian)?;
    Ok(Program::new(insns, endian).expect("a conversion is a program"))
}

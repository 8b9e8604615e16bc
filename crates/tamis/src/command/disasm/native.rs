//! `tamis disasm --native`: machine code as a disassembler shows it.

use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use tamis_bpf::{Program, packet};
use tamis_jit::{Error, Options, Seccomp, Socket};

use crate::cli::Failure;

/// The machine code of a filter of seccomp.
pub(super) fn of_program(program: &Program) -> Result<String, Failure> {
    let compiled = Seccomp::compile(program, &Options::default()).map_err(unusable)?;
    Ok(listing(compiled.code(), compiled.start_bytes()))
}

/// The machine code of a filter of a socket.
pub(super) fn of_packet_program(program: &packet::Program) -> Result<String, Failure> {
    let compiled = Socket::compile(program, &Options::default()).map_err(unusable)?;
    Ok(listing(compiled.code(), compiled.start_bytes()))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` takes")]
fn unusable(error: Error) -> Failure {
    match error {
        Error::Unavailable(_) => Failure::environment(error.to_string()),
        _ => Failure::input(error.to_string()),
    }
}

/// The instructions with their offsets; the program begins at `start_bytes`.
fn listing(code: &[u8], start_bytes: usize) -> String {
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut formatter = IntelFormatter::new();
    let mut listing = String::new();
    for instruction in &mut decoder {
        let offset = instruction.ip();
        if offset == start_bytes as u64 {
            listing.push_str("start:\n");
        }
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        listing.push_str(&format!("{offset:6x}: {text}\n"));
    }
    listing
}

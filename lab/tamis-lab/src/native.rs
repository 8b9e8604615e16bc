//! Disassembly of machine code.

use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use tamis_bpf::convert::JumpTooFar;
use tamis_bpf::{Program, packet};
use tamis_ebpf_vm::check::{self, Checked, Layout, check};
use tamis_ebpf_vm::convert;
use tamis_ebpf_vm::memory::Helpers;
use tamis_jit::{Error, Extended, Options, Seccomp, Socket};

use crate::object::{self, Readable};
use tamis_cli::Failure;

/// The machine code of a filter of seccomp.
pub(crate) fn of_program(program: &Program) -> Result<String, Failure> {
    let compiled = Seccomp::compile(program, &Options::default()).map_err(unusable)?;
    Ok(listing(compiled.code(), compiled.start_bytes()))
}

/// The machine code of a filter of a socket.
pub(crate) fn of_packet_program(program: &packet::Program) -> Result<String, Failure> {
    let compiled = Socket::compile(program, &Options::default()).map_err(unusable)?;
    Ok(listing(compiled.code(), compiled.start_bytes()))
}

/// The machine code of the programs of an object file, as filters of sockets.
pub(crate) fn of_sections(sections: Vec<Readable>) -> Result<String, Failure> {
    let mut text = String::new();
    for Readable { name, program } in sections {
        text.push_str(&format!("; section {name}\n"));
        let checked = object::checked(program)
            .map_err(|reason| Failure::input(format!("section {name}: {reason}")))?;
        text.push_str(&of_checked(&checked)?);
    }
    Ok(text)
}

/// The machine code of a filter of seccomp, by way of the kernel's conversion to extended BPF.
pub(crate) fn of_converted(program: &Program) -> Result<String, Failure> {
    let too_far = |error: JumpTooFar| Failure::input(error.to_string());
    let converted = convert::converted(program).map_err(too_far)?;
    let options = check::Options {
        permits_unreachable: true,
        ..check::Options::default()
    };
    let refused = |refusal: check::Refusal| Failure::input(refusal.to_string());
    let (layout, helpers) = (Layout::seccomp(), Helpers::none());
    of_checked(&check(converted, &layout, &helpers, &options).map_err(refused)?)
}

fn of_checked(checked: &Checked) -> Result<String, Failure> {
    let compiled = Extended::compile(checked, &Options::default()).map_err(unusable)?;
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

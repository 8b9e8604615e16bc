//! Socket filters as input: a separate type, so that no command for seccomp filters accepts one.

use tamis_abi::{Arch, Endian};
use tamis_bpf::packet::{self, Program};
use tamis_bpf::{asm, forms, program};
use tamis_diag::{Diagnostic, Sources};

use crate::code;
use crate::error::Error;
use crate::input::Input;

/// Reads a socket filter: assembler text, an array in C (`tcpdump -dd`), decimal numbers (`tcpdump -ddd`), or a
/// little-endian raw `struct sock_filter[]`.
///
/// # Errors
/// Mistakes in the text, and programs that the kernel would reject.
pub fn load_packet_program(input: &Input) -> Result<Program, Error> {
    let text = match std::str::from_utf8(&input.bytes) {
        Ok(text) if !text.contains('\0') => text,
        _ => return raw(input),
    };
    let form = forms::of_file(&input.name)
        .or_else(|| forms::ALL.iter().find(|form| (form.recognises)(text)))
        .unwrap_or(forms::ASM);
    let mut sources = Sources::new();
    let source = input.clone().add_to(&mut sources)?;
    let text = &sources.get(source).text;
    // Only the assembler's names depend on the purpose of the filter.
    let assembled = if form == forms::ASM {
        asm::assemble_packet(text, source)
    } else {
        (form.read)(text, source, Arch::X86_64)
    };
    assembled
        .and_then(asm::Assembly::into_packet_program)
        .map_err(|diagnostics| Error::Diagnostics(diagnostics, sources))
}

fn raw(input: &Input) -> Result<Program, Error> {
    let name = &input.name;
    let invalid = |message: String| {
        let diagnostic = Diagnostic::error(code::INVALID_PROGRAM, message);
        Error::diagnostic(diagnostic, Sources::new())
    };
    let insns =
        program::insns_from_bytes(&input.bytes, Arch::X86_64.endian()).ok_or_else(|| {
            let length = input.bytes.len();
            invalid(format!(
                "{name}: {length} bytes are not a whole number of 8-byte instructions"
            ))
        })?;
    packet::Program::new(insns).map_err(|error| {
        let other = program::insns_from_bytes(&input.bytes, Endian::Big);
        match other.is_some_and(|insns| packet::Program::new(insns).is_ok()) {
            true => invalid(format!(
                "{name} is a filter of a big-endian machine; only those of little-endian ones are read"
            )),
            false => invalid(format!("{name}: {error}")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_of_a_big_endian_machine_is_called_that() {
        let input = Input::new("x", b"\0\x06\0\0\0\0\xff\xff".as_slice());
        match load_packet_program(&input) {
            Err(Error::Diagnostics(diagnostics, _)) => {
                let message = &diagnostics[0].message;
                assert!(message.contains("big-endian"), "{message}");
            }
            _ => panic!("it isn't a little-endian machine's"),
        }
    }
}

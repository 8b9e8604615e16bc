//! Programs as hexadecimal bytes, as in the output of `xxd -p` for a raw program or in a C or Python string: eight
//! bytes for each instruction, in the byte order of the architecture.
//!
//! ```text
//! 2000000000000000 060000000000ff7f
//! \x20\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\xff\x7f
//! ```

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, SourceId, Span};

use super::Form;
use crate::asm::Assembly;
use crate::code;
use crate::program::insns_from_bytes;

/// The form in the registry.
pub(super) const FORM: Form = Form {
    name: "hex",
    title: "a program in hexadecimal bytes",
    about: "Hexadecimal bytes of a raw program, as printed by xxd -p",
    extensions: &["hex"],
    recognises,
    read,
};

/// The digits of an instruction.
const INSN_DIGITS: usize = 16;

/// Only hexadecimal digits, enough for an instruction and in pairs.
fn recognises(text: &str) -> bool {
    let text = text.trim().replace("\\x", "");
    let digits = text.chars().filter(|c| !c.is_whitespace());
    let is_hex = digits.clone().all(|digit| digit.is_ascii_hexdigit());
    let in_pairs = text.split_whitespace().all(|word| word.len() % 2 == 0);
    is_hex && in_pairs && digits.count() >= INSN_DIGITS
}

fn read(text: &str, source: SourceId, arch: Arch) -> Result<Assembly, Vec<Diagnostic>> {
    let whole = Span::new(source, 0, text.len());
    let mut digits: Vec<(u8, usize)> = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match c.to_digit(16) {
            Some(digit) => digits.push((digit as u8, at)),
            None if c.is_whitespace() => {}
            None if c == '\\' && rest.next_if(|(_, next)| *next == 'x').is_some() => {}
            None => {
                let message = format!("`{}` is not a hexadecimal digit", c.escape_default());
                let place = Span::new(source, at, at + c.len_utf8());
                let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, message)
                    .label(place, "")
                    .help("`xxd -p` prints a raw program in this form");
                return Err(vec![diagnostic]);
            }
        }
    }
    let insns = digits.chunks_exact(INSN_DIGITS);
    if !insns.remainder().is_empty() {
        let message = format!(
            "{} digits are not a whole number of instructions",
            digits.len()
        );
        let (_, last) = insns.remainder()[0];
        let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, message)
            .label(
                Span::new(source, last, text.trim_end().len()),
                "these are left over",
            )
            .note("an instruction has 8 bytes, 16 digits");
        return Err(vec![diagnostic]);
    }
    let spans: Vec<Span> = insns
        .map(|insn| Span::new(source, insn[0].1, insn[INSN_DIGITS - 1].1 + 1))
        .collect();
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair[0].0 << 4 | pair[1].0)
        .collect();
    let endian = arch.endian();
    let insns = insns_from_bytes(&bytes, endian).unwrap_or_default();
    Assembly::new(insns, endian, spans, whole, Vec::new())
}

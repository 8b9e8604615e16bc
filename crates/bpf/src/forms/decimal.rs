//! Programs as lists of decimal numbers: the count of instructions, then four numbers for each. `tcpdump -ddd`
//! prints them line by line, the kernel's `bpf_asm` with commas.
//!
//! ```text
//! 2                      2,32 0 0 0,6 0 0 2147418112,
//! 32 0 0 0
//! 6 0 0 2147418112
//! ```

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, SourceId, Span};

use super::{Form, words};
use crate::asm::{Assembly, Step, number};
use crate::code;
use crate::insn::Insn;

/// The form in the registry.
pub(super) const FORM: Form = Form {
    name: "decimal",
    title: "a list of decimal numbers",
    about: "Decimal numbers, as printed by tcpdump -ddd and bpf_asm",
    extensions: &[],
    recognises,
    read,
};

/// The most digits of a plausible count.
const MAX_COUNT_DIGITS: usize = 5;

/// Only numbers, the first alone on its line or before a comma; or nothing but the count.
fn recognises(text: &str) -> bool {
    let is_listed = |c: char| c.is_ascii_digit() || c == ',' || c.is_whitespace();
    let text = text.trim();
    let count = text.split([',', '\n']).next().unwrap_or("").trim();
    let is_count = (1..=MAX_COUNT_DIGITS).contains(&count.len()) && !count.contains(' ');
    is_count && text.chars().all(is_listed)
}

fn separates(c: char) -> bool {
    c == ',' || c.is_whitespace()
}

fn read(text: &str, source: SourceId, arch: Arch) -> Result<Assembly, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let mut numbers = words(text, text, separates, source);
    let whole = Span::new(source, 0, text.len());
    let Some((count, count_span)) = numbers.next() else {
        let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, "the text is empty");
        return Err(vec![
            diagnostic.label(whole, "expected the number of instructions"),
        ]);
    };
    let count = number(count, count_span).map_err(|diagnostic| vec![*diagnostic])?;
    let numbers: Vec<(&str, Span)> = numbers.collect();
    let (mut insns, mut spans) = (Vec::new(), Vec::new());
    let quads = numbers.chunks_exact(4);
    let rest = quads.remainder();
    for quad in quads {
        match insn(quad) {
            Ok(insn) => insns.push(insn),
            Err(diagnostic) => diagnostics.push(*diagnostic),
        }
        spans.push(quad[0].1.to(quad[3].1));
    }
    if let [first, .., last] | [first @ last] = rest {
        let message = "an instruction has four numbers: code, jt, jf, k";
        let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, message);
        diagnostics.push(diagnostic.label(first.1.to(last.1), "the last ones are fewer"));
    } else if numbers.len() / 4 != count as usize {
        let message = format!(
            "{count} instructions announced, {} listed",
            numbers.len() / 4
        );
        let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, message)
            .label(count_span, "the count comes first")
            .help("check that the list is complete");
        diagnostics.push(diagnostic);
    }
    Assembly::new(insns, arch.endian(), spans, whole, diagnostics)
}

/// The instruction of four numbers: code, jt, jf, k.
pub(super) fn insn(quad: &[(&str, Span)]) -> Step<Insn> {
    let mut fields = [0; 4];
    let maxima = [u32::from(u16::MAX), 255, 255, u32::MAX];
    for ((field, (text, span)), max) in fields.iter_mut().zip(quad).zip(maxima) {
        *field = number(text, *span)?;
        if *field > max {
            let message = format!("`{text}` does not fit its field");
            let diagnostic = Diagnostic::error(code::NUMBER_TOO_LARGE, message)
                .label(*span, format!("at most {max}"))
                .note("the code has 16 bits, jt and jf have 8, k has 32");
            return Err(Box::new(diagnostic));
        }
    }
    let [code, jt, jf, k] = fields;
    Ok(Insn {
        code: code as u16,
        jt: jt as u8,
        jf: jf as u8,
        k,
    })
}

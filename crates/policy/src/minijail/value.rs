//! The value of a constant expression on one architecture.
//!
//! It has the width of a register; negative numbers are reduced modulo it.

use tamis_abi::signature::Width;
use tamis_abi::{Arch, consts};
use tamis_diag::{Diagnostic, Span, suggest};

use super::ast::{Value, ValueKind};
use super::table::Table;
use crate::code;

/// The value, below two to the register's width.
///
/// # Errors
/// An unknown name or a number that is too large.
pub(super) fn value(
    arch: Arch,
    table: Option<&Table>,
    value: &Value,
) -> Result<u64, Box<Diagnostic>> {
    let width = Width::of_registers(arch);
    match &value.kind {
        ValueKind::Number { size, is_negative } => number(*size, *is_negative, width, value.span),
        ValueKind::Name(name) => match table {
            Some(table) => constant_of(table, name, value.span),
            None => constant(arch, name, value.span),
        },
        ValueKind::Complement(inner) => Ok(!self::value(arch, table, inner)? & width.max()),
        ValueKind::Or(operands) => {
            let mut bits = 0;
            for operand in operands {
                bits |= self::value(arch, table, operand)?;
            }
            Ok(bits)
        }
    }
}

fn number(size: u64, is_negative: bool, width: Width, span: Span) -> Result<u64, Box<Diagnostic>> {
    let max = width.max();
    let largest = if is_negative { max / 2 + 1 } else { max };
    if size > largest {
        let message = format!("the number does not fit {} bits", width.bits());
        let diagnostic = Diagnostic::error(code::MINIJAIL_NUMBER, message)
            .label(span, "")
            .note("arguments have the width of a register");
        return Err(Box::new(diagnostic));
    }
    Ok(match is_negative {
        true => size.wrapping_neg() & max,
        false => size,
    })
}

fn constant_of(table: &Table, name: &str, span: Span) -> Result<u64, Box<Diagnostic>> {
    table.constant(name).ok_or_else(|| {
        let message = format!("the table has no constant `{name}`");
        let diagnostic = Diagnostic::error(code::MINIJAIL_CONSTANT, message).label(span, "");
        Box::new(match suggest::nearest(name, table.constants()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help("write its value as a number"),
        })
    })
}

fn constant(arch: Arch, name: &str, span: Span) -> Result<u64, Box<Diagnostic>> {
    if let Some(value) = consts::value(arch, name) {
        return Ok(value & Width::of_registers(arch).max());
    }
    let elsewhere = consts::is_known(name);
    let message = match elsewhere {
        true => format!("`{name}` does not exist on {arch}"),
        false => format!("unknown constant `{name}`"),
    };
    let diagnostic = Diagnostic::error(code::MINIJAIL_CONSTANT, message);
    let diagnostic = diagnostic.label(span, "not a constant of the kernel here");
    Err(Box::new(
        match suggest::nearest(name, consts::names(arch)) {
            Some(near) if !elsewhere => diagnostic.help(format!("did you mean `{near}`?")),
            _ => diagnostic.help("write its value as a number"),
        },
    ))
}

//! Programs as the JSON documents of `tamis compile` and `tamis bpf disasm`: the instructions are the member `insns`.
//!
//! Other members are not read, but a program that wants values for variables is refused.

use tamis_abi::{Arch, Endian};
use tamis_diag::document::{Object, Value};
use tamis_diag::json::{self, Dialect, Reader};
use tamis_diag::{Diagnostic, SourceId, Span};

use super::Form;
use crate::asm::Assembly;
use crate::code;
use crate::insn::Insn;

/// The form in the registry.
pub(super) const FORM: Form = Form {
    name: "document",
    title: "a JSON document of tamis",
    about: "The JSON document that `tamis compile` or `tamis bpf disasm` prints",
    extensions: &[],
    recognises,
    read,
};

static DIALECT: Dialect = Dialect {
    document: "a document",
    max_bytes: 64 << 20,
    max_depth: 32,
    too_large: code::FILE_TOO_LARGE,
    syntax: code::PROGRAM_TEXT,
    nesting: code::PROGRAM_TEXT,
    duplicate_key: code::PROGRAM_TEXT,
    wrong_type: code::PROGRAM_TEXT,
    range: code::NUMBER_TOO_LARGE,
    missing: code::PROGRAM_TEXT,
    unknown_name: code::PROGRAM_TEXT,
    unknown_member: code::PROGRAM_TEXT,
    unknown_member_label: "this is not read",
};

/// How the documents begin that have a program.
const SCHEMAS: [&str; 2] = ["\"tamis.compile/1\"", "\"tamis.disasm/1\""];

/// How far into a text its schema is looked for: it is the first member.
const START_BYTES: usize = 200;

fn recognises(text: &str) -> bool {
    let start = text.get(..START_BYTES).unwrap_or(text);
    start.trim_start().starts_with('{') && SCHEMAS.iter().any(|schema| start.contains(schema))
}

fn read(text: &str, source: SourceId, arch: Arch) -> Result<Assembly, Vec<Diagnostic>> {
    let mut reader = Reader::new(&DIALECT, source, true);
    let program = reader
        .parse(text)
        .and_then(|root| program(&mut reader, root.root(), arch));
    let whole = Span::new(source, 0, text.len());
    match program {
        Some((insns, spans, endian)) => {
            Assembly::new(insns, endian, spans, whole, reader.diagnostics)
        }
        None => Err(reader.diagnostics),
    }
}

fn program(
    reader: &mut Reader,
    root: Value<'_>,
    arch: Arch,
) -> Option<(Vec<Insn>, Vec<Span>, Endian)> {
    let what = "a document";
    let root = reader.object(root, what)?;
    let endian = match json::member(root, "byte_order") {
        Some(order) => match reader.string(order, "`byte_order`")? {
            "big" => Endian::Big,
            _ => Endian::Little,
        },
        None => arch.endian(),
    };
    if let Some(patches) = json::member(root, "patches")
        && !reader.array(patches, "`patches`")?.is_empty()
    {
        let message = "the program wants values for the variables of its policy".to_owned();
        reader.error(code::PROGRAM_TEXT, patches.range(), message, "their places");
        return None;
    }
    let listed = reader.required(root, "insns", what)?;
    let (mut insns, mut spans) = (Vec::new(), Vec::new());
    for element in reader.array(listed, "`insns`")?.elements() {
        let object = reader.object(element, "an instruction")?;
        insns.push(insn(reader, object)?);
        spans.push(reader.span(element.range()));
    }
    Some((insns, spans, endian))
}

fn insn(reader: &mut Reader, object: Object<'_>) -> Option<Insn> {
    let mut field = |name: &str, max: u64| {
        let value = reader.required(object, name, "an instruction")?;
        reader.unsigned(value, name, max)
    };
    Some(Insn {
        code: field("code", u64::from(u16::MAX))? as u16,
        jt: field("jt", u64::from(u8::MAX))? as u8,
        jf: field("jf", u64::from(u8::MAX))? as u8,
        k: field("k", u64::from(u32::MAX))? as u32,
    })
}

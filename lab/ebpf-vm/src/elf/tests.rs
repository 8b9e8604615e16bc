//! Objects in clang's layout, generated here, and the errors of broken ones.

use super::*;
use crate::Encoded;
use crate::insn::{AluOp, Reg, Source, Width};

const SECTION_HEADER_BYTES: usize = 64;
const TEXT: u32 = 1;
const RELOCATIONS: u32 = 9;

struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    link: u32,
    info: u32,
    entry_bytes: u64,
    data: Vec<u8>,
}

fn code(name: &'static str, ops: &[Op]) -> Section {
    let insns = ops
        .iter()
        .flat_map(|op| Encoded::from(*op).insns().to_vec());
    Section {
        name,
        kind: TEXT,
        flags: 6,
        link: 0,
        info: 0,
        entry_bytes: 0,
        data: insns
            .flat_map(|insn| insn.to_bytes(Endian::Little))
            .collect(),
    }
}

/// A symbol of the table: its name's place, the section and the value.
fn symbol(name: u32, section: u16, value: u64) -> Vec<u8> {
    let mut bytes = name.to_le_bytes().to_vec();
    bytes.extend([0x12, 0]);
    bytes.extend(section.to_le_bytes());
    bytes.extend(value.to_le_bytes());
    bytes.extend(8_u64.to_le_bytes());
    bytes
}

/// The object: `socket` in section 1, `.text` in 2, relocations of 1 in 3, symbols in 4 - the null symbol, a function
/// at the second instruction of `.text`, a map that is defined nowhere - and their names in 5.
fn object(relocations: &[(u64, u64, u64)]) -> Vec<u8> {
    let symbols = [symbol(0, 0, 0), symbol(1, 2, 8), symbol(3, 0, 0)].concat();
    object_with(relocations, symbols)
}

/// The same with these symbols.
fn object_with(relocations: &[(u64, u64, u64)], symbols: Vec<u8>) -> Vec<u8> {
    let mov = |value| Op::Alu(Width::W64, AluOp::Mov, Reg::R0, Source::Imm(value));
    let main = [Op::CallLocal(-1), Op::LoadImm64(Reg::R1, 0), Op::Exit];
    let mut entries = Vec::new();
    for (offset, symbol, kind) in relocations {
        entries.extend(offset.to_le_bytes());
        entries.extend((symbol << 32 | kind).to_le_bytes());
    }
    let table = |name, kind, link, info, entry_bytes, data| Section {
        name,
        kind,
        flags: 0,
        link,
        info,
        entry_bytes,
        data,
    };
    object_of(&[
        code("socket", &main),
        code(".text", &[Op::Exit, mov(7), Op::Exit]),
        table(".relsocket", RELOCATIONS, 4, 1, 16, entries),
        table(".symtab", 2, 5, 1, 24, symbols),
        table(".strtab", 3, 0, 0, 0, b"\0f\0map\0".to_vec()),
    ])
}

fn object_of(sections: &[Section]) -> Vec<u8> {
    let mut file = vec![0; 64];
    let mut names = vec![0];
    let mut headers = vec![vec![0; SECTION_HEADER_BYTES]];
    let mut header = |file: &mut Vec<u8>, names: &mut Vec<u8>, section: &Section, data: &[u8]| {
        let mut bytes = (names.len() as u32).to_le_bytes().to_vec();
        names.extend(section.name.bytes().chain([0]));
        bytes.extend(section.kind.to_le_bytes());
        bytes.extend(section.flags.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend((file.len() as u64).to_le_bytes());
        bytes.extend((data.len() as u64).to_le_bytes());
        bytes.extend(section.link.to_le_bytes());
        bytes.extend(section.info.to_le_bytes());
        bytes.extend(8_u64.to_le_bytes());
        bytes.extend(section.entry_bytes.to_le_bytes());
        headers.push(bytes);
        file.extend(data);
        file.resize(file.len().next_multiple_of(8), 0);
    };
    for section in sections {
        header(&mut file, &mut names, section, &section.data);
    }
    let last = Section {
        name: ".shstrtab",
        kind: 3,
        data: Vec::new(),
        ..code("", &[])
    };
    let all_names = [names.clone(), b".shstrtab\0".to_vec()].concat();
    header(&mut file, &mut names, &last, &all_names);
    let start = file.len() as u64;
    let count = headers.len() as u16;
    file.extend(headers.concat());
    file[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\xf7\0");
    file[20..24].copy_from_slice(&1_u32.to_le_bytes());
    file[40..48].copy_from_slice(&start.to_le_bytes());
    file[52..54].copy_from_slice(&64_u16.to_le_bytes());
    file[58..60].copy_from_slice(&(SECTION_HEADER_BYTES as u16).to_le_bytes());
    file[60..62].copy_from_slice(&count.to_le_bytes());
    file[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    file
}

#[test]
fn calls_lead_to_functions_of_other_sections() {
    let bytes = object(&[(0, 1, 10)]);
    let object = Object::parse(&bytes).unwrap();
    assert_eq!(object.sections().unwrap(), ["socket", ".text"]);
    let program = object.program("socket").unwrap();
    // Four references to `socket`, then `.text` with the function as the second instruction.
    assert_eq!(program.len(), 7);
    assert_eq!(program.op(Pc(0)), Some(Op::CallLocal(4)));
    assert_eq!(object.program(".text").unwrap().len(), 3);
}

#[test]
fn what_is_no_function_of_the_object_is_refused_by_name() {
    let refers = |relocations: &[(u64, u64, u64)]| {
        let bytes = object(relocations);
        Object::parse(&bytes)
            .unwrap()
            .program("socket")
            .unwrap_err()
    };
    let expected = |pc, symbol: &str| ElfError::Refers {
        section: "socket".to_owned(),
        pc: Pc(pc),
        symbol: symbol.to_owned(),
    };
    assert_eq!(refers(&[(0, 1, 10), (8, 2, 1)]), expected(1, "map"));
    assert_eq!(refers(&[(0, 2, 10)]), expected(0, "map"));
    assert_eq!(refers(&[(8, 1, 10)]), expected(1, "f"));
    assert!(matches!(refers(&[(0, 9, 10)]), ElfError::Malformed(_)));
    assert_eq!(
        refers(&[(u64::MAX, 1, 10)]),
        expected((u64::MAX / 8) as usize, "f")
    );
}

/// The null symbol stands for nothing, and clang's symbol of a section has the section's name alone.
#[test]
fn a_symbol_without_a_name_is_told_by_its_section() {
    let error = |symbols: Vec<u8>| {
        let bytes = object_with(&[(8, 1, 1)], symbols);
        let error = Object::parse(&bytes).unwrap().program("socket");
        error.unwrap_err().to_string()
    };
    let nameless = error([symbol(0, 0, 0), symbol(0, 0, 0)].concat());
    assert!(nameless.contains("a symbol without a name"), "{nameless}");
    let section = error([symbol(0, 0, 0), symbol(0, 5, 0)].concat());
    assert!(section.contains("refers to `.strtab`"), "{section}");
}

#[test]
fn a_missing_section_is_told_with_those_that_exist() {
    let bytes = object(&[]);
    let error = Object::parse(&bytes).unwrap().program("xdp").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no section `xdp` with code; the object has `socket` and `.text`"
    );
    let mut other = bytes.clone();
    other[18] = 62;
    assert_eq!(Object::parse(&other).unwrap_err(), ElfError::OtherMachine);
}

#[test]
fn truncated_and_altered_objects_are_errors_or_programs() {
    let bytes = object(&[(0, 1, 10)]);
    let read = |bytes: &[u8]| Object::parse(bytes).and_then(|object| object.program("socket"));
    for len in 0..bytes.len() {
        assert!(read(&bytes[..len]).is_err(), "{len} bytes");
    }
    let mut programs = 0;
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut altered = bytes.clone();
            altered[at] ^= value;
            programs += usize::from(read(&altered).is_ok());
        }
    }
    assert!(programs > bytes.len(), "{programs}");
}

//! Executable memory: never writable, guarded on both sides, and gone with its owner.

use std::fs;
use std::ops::Range;

use tamis_abi::Endian;
use tamis_bpf::{AluOp, Insn, Op, Operand, Program};
use tamis_jit::{Options, Seccomp};

use super::agreement::unless_jit;

/// The mappings of this process: addresses and access, such as `r-xp`.
fn mappings() -> Vec<(Range<usize>, String)> {
    let text = fs::read_to_string("/proc/self/maps").expect("Linux has it");
    let parse = |line: &str| {
        let (addresses, rest) = line.split_once(' ')?;
        let (start, end) = addresses.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some((number(start)?..number(end)?, rest[..4].to_owned()))
    };
    text.lines().filter_map(parse).collect()
}

/// The access to the mapping of an address; `None` without one.
fn access(mappings: &[(Range<usize>, String)], address: usize) -> Option<String> {
    let found = mappings.iter().find(|(range, _)| range.contains(&address));
    found.map(|(_, access)| access.clone())
}

#[test]
fn code_is_readable_and_executable_between_inaccessible_pages() {
    unless_jit();
    // More than a page of code.
    let add = Insn::from(Op::Alu(AluOp::Add, Operand::K(0x1234_5678)));
    let insns = [add].repeat(2000).into_iter().chain([Op::RetA.into()]);
    let program = Program::new(insns.collect(), Endian::Little).expect("legal");
    let compiled = Seccomp::compile(&program, &Options::default()).expect("short enough");
    assert_eq!(compiled.run(&[0; 16]), 0x1234_5678_u32.wrapping_mul(2000));
    let code = compiled.code().as_ptr() as usize..compiled.code().as_ptr_range().end as usize;
    let before = mappings();
    assert_eq!(access(&before, code.start).as_deref(), Some("r-xp"));
    assert_eq!(access(&before, code.end - 1).as_deref(), Some("r-xp"));
    let (inside, _) = before
        .iter()
        .find(|(range, _)| range.contains(&code.start))
        .expect("as above");
    assert_eq!(access(&before, inside.start - 1).as_deref(), Some("---p"));
    assert_eq!(access(&before, inside.end).as_deref(), Some("---p"));
    let both = |access: &str| access.contains('w') && access.contains('x');
    assert!(before.iter().all(|(_, access)| !both(access)));
}

#[test]
fn a_dropped_program_leaves_no_mapping() {
    unless_jit();
    let program = Program::new(vec![Op::RetImm(1).into()], Endian::Little).expect("legal");
    // Other tests map memory meanwhile, but not tens of thousands of pages: the kernel permits 65,530 mappings.
    for _ in 0..30_000 {
        Seccomp::compile(&program, &Options::default()).expect("mappings are freed");
    }
}

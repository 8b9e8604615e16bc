//! The disassembler: programs as text.
//!
//! [`asm`](crate::asm) assembles the text to the same instructions, bit for bit. An instruction is printed as its
//! mnemonic if this loses nothing, else as `.insn`: fields that the kernel ignores may have any value. Labels are
//! named after their instruction and are printed only for jump targets.

use std::collections::BTreeSet;
use std::convert::Infallible;

use tamis_abi::{Action, ActionKind, Arch, Endian, Nr, Word, errno, syscall};

use crate::facts::{self, Facts};
use crate::insn::{AluOp, Insn, Op, Operand, Operation, Test};
use crate::packet::{self, Ancillary, Extra, Load, Size};
use crate::program::Program;
use crate::validate::{Machine, Seccomp};

/// The amount of detail of a disassembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Instructions and labels; the kernel's `bpf_asm` accepts them too, except for `.insn`.
    Plain,
    /// With comments that name fields, actions, architectures and system calls.
    Commented,
}

/// The column of comments.
const COMMENT_COLUMN: usize = 40;

/// Disassembles a program; one line per instruction, each with a newline.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_bpf::disasm::{Style, disassemble};
/// use tamis_bpf::{Op, Program};
/// let insns = vec![Op::LoadData(0).into(), Op::RetA.into()];
/// let program = Program::new(insns, Endian::Little).unwrap();
/// assert_eq!(disassemble(&program, Style::Plain), "        ld [0]\n        ret a\n");
/// ```
pub fn disassemble(program: &Program, style: Style) -> String {
    disassemble_insns(program.insns(), program.endian(), style)
}

/// Disassembles instructions for machines of this byte order, which may be an invalid program: instructions that
/// seccomp rejects, and jumps out of the list, are printed as `.insn`.
pub fn disassemble_insns(insns: &[Insn], endian: Endian, style: Style) -> String {
    let listing = Listing::<Seccomp>::new(insns);
    let facts = match style {
        Style::Plain => Vec::new(),
        Style::Commented => facts::facts(&listing.ops, endian),
    };
    listing.text(insns, |pc, insn| match style {
        Style::Plain => None,
        Style::Commented => listing.comment(pc, insn, facts[pc], endian),
    })
}

/// Disassembles a socket's filter; one line per instruction, each with a newline.
///
/// ```
/// use tamis_bpf::disasm::{Style, disassemble_packet};
/// use tamis_bpf::packet::{Load, Op, Program, Size};
/// let insns = [Op::LoadData(Load::Absolute(Size::Half, 12)), Op::RetA].map(Into::into);
/// let program = Program::new(insns.to_vec()).unwrap();
/// let text = disassemble_packet(&program, Style::Plain);
/// assert_eq!(text, "        ldh [12]\n        ret a\n");
/// ```
pub fn disassemble_packet(program: &packet::Program, style: Style) -> String {
    let insns = program.insns();
    let listing = Listing::<packet::Sockets>::new(insns);
    listing.text(insns, |pc, _| match (style, listing.ops[pc]) {
        (Style::Plain, _) => None,
        (Style::Commented, None) => Some("ignored fields are not zero".to_owned()),
        (Style::Commented, Some(packet::Op::RetImm(0))) => Some("drop".to_owned()),
        (Style::Commented, Some(packet::Op::RetImm(_))) => Some("accept".to_owned()),
        (Style::Commented, Some(_)) => None,
    })
}

/// How the instructions are spelled that machines differ in.
trait Spelled: Machine<Load: Copy, Extra: Copy> {
    fn load(load: Self::Load) -> String;
    fn extra(extra: Self::Extra) -> String;
}

impl Spelled for Seccomp {
    fn load(offset: u32) -> String {
        format!("ld [{offset}]")
    }

    fn extra(extra: Infallible) -> String {
        match extra {}
    }
}

impl Spelled for packet::Sockets {
    fn load(load: Load) -> String {
        let name = |size| match size {
            Size::Byte => "ldb",
            Size::Half => "ldh",
            Size::Word => "ld",
        };
        match load {
            Load::Absolute(size, k) => format!("{} [{k}]", name(size)),
            Load::Indexed(size, k) => format!("{} [x + {k}]", name(size)),
            // `bpf_asm` lacks the name of a computed value.
            Load::Ancillary(size, Ancillary::XorX) => {
                format!("{} [{:#x}]", name(size), Ancillary::XorX.offset())
            }
            Load::Ancillary(size, ancillary) => format!("{} #{}", name(size), ancillary.name()),
        }
    }

    fn extra(extra: Extra) -> String {
        match extra {
            Extra::Mod(operand) => format!("mod {}", operand_text(operand)),
            Extra::LoadXHeaderLen(k) => format!("ldx 4*([{k}]&0xf)"),
        }
    }
}

/// A list prepared for printing.
struct Listing<M: Machine> {
    /// The instructions with a mnemonic that loses nothing.
    ops: Vec<Option<Operation<M::Load, M::Extra>>>,
    /// The targets of these instructions.
    labels: BTreeSet<usize>,
}

impl<M: Spelled> Listing<M>
where
    Insn: From<Operation<M::Load, M::Extra>>,
{
    fn new(insns: &[Insn]) -> Listing<M> {
        let mut labels = BTreeSet::new();
        let mut ops = Vec::with_capacity(insns.len());
        for (pc, insn) in insns.iter().enumerate() {
            let op = M::op(*insn).filter(|op| {
                let stays_inside = targets(*op, pc).all(|target| target < insns.len() as u64);
                stays_inside && Insn::from(*op) == *insn
            });
            if let Some(op) = op {
                labels.extend(named_targets(op, pc));
            }
            ops.push(op);
        }
        Listing { ops, labels }
    }

    /// The lines, with the comments that `comment` has for them.
    fn text(&self, insns: &[Insn], comment: impl Fn(usize, Insn) -> Option<String>) -> String {
        let mut text = String::new();
        for (pc, insn) in insns.iter().enumerate() {
            let label = if self.labels.contains(&pc) {
                format!("l{pc}:")
            } else {
                String::new()
            };
            let line = format!("{label:<7} {}", self.spelling(pc, *insn));
            match comment(pc, *insn) {
                Some(comment) => text.push_str(&format!("{line:<COMMENT_COLUMN$}; {comment}\n")),
                None => text.push_str(&format!("{line}\n")),
            }
        }
        text
    }

    fn spelling(&self, pc: usize, insn: Insn) -> String {
        let Some(op) = self.ops[pc] else {
            let Insn { code, jt, jf, k } = insn;
            return format!(".insn {code:#06x}, {jt}, {jf}, {k:#x}");
        };
        match op {
            Operation::LoadData(load) => M::load(load),
            Operation::LoadImm(k) => format!("ld #{k:#x}"),
            Operation::LoadMem(slot) => format!("ld M[{slot}]"),
            Operation::LoadLen => "ld len".to_owned(),
            Operation::LoadXImm(k) => format!("ldx #{k:#x}"),
            Operation::LoadXMem(slot) => format!("ldx M[{slot}]"),
            Operation::LoadXLen => "ldx len".to_owned(),
            Operation::Store(slot) => format!("st M[{slot}]"),
            Operation::StoreX(slot) => format!("stx M[{slot}]"),
            Operation::Alu(alu, operand) => format!("{} {}", alu_name(alu), operand_text(operand)),
            Operation::Neg => "neg".to_owned(),
            Operation::Jump(_) | Operation::Branch { .. } => jump_text(op, pc),
            Operation::RetImm(k) => format!("ret #{k:#x}"),
            Operation::RetA => "ret a".to_owned(),
            Operation::Tax => "tax".to_owned(),
            Operation::Txa => "txa".to_owned(),
            Operation::Extra(extra) => M::extra(extra),
        }
    }
}

impl Listing<Seccomp> {
    fn comment(&self, pc: usize, insn: Insn, facts: Facts, endian: Endian) -> Option<String> {
        let Some(op) = self.ops[pc] else {
            let why = match insn.op() {
                None => "not an instruction of seccomp",
                Some(op) if Insn::from(op) == insn => "jumps outside",
                Some(_) => "ignored fields are not zero",
            };
            return Some(why.to_owned());
        };
        match op {
            Op::LoadData(offset) => {
                Word::from_offset(offset, endian).map(|word| word.name().to_owned())
            }
            Op::RetImm(ret) => Some(action_text(ret)),
            Op::Branch {
                test,
                operand: Operand::K(k),
                ..
            } => constant_text(test, k, facts),
            _ => None,
        }
    }
}

/// The targets of an instruction, inside or outside the list.
fn targets<L: Copy, E: Copy>(op: Operation<L, E>, pc: usize) -> impl Iterator<Item = u64> {
    let next = pc as u64 + 1;
    let [first, second] = match op {
        Operation::Jump(skip) => [Some(next + u64::from(skip)), None],
        Operation::Branch { jt, jf, .. } => {
            [Some(next + u64::from(jt)), Some(next + u64::from(jf))]
        }
        _ => [None, None],
    };
    first.into_iter().chain(second)
}

/// The printed sides of a branch.
enum Sides {
    /// The second side falls through.
    True(u8),
    /// The first side falls through, and the test has a negation.
    False(u8),
    Both(u8, u8),
}

const fn sides(test: Test, jt: u8, jf: u8) -> Sides {
    match (jt, jf) {
        (_, 0) => Sides::True(jt),
        (0, _) if !matches!(test, Test::Set) => Sides::False(jf),
        _ => Sides::Both(jt, jf),
    }
}

/// The targets with labels in the text of an instruction that stays in the list.
fn named_targets<L: Copy, E: Copy>(op: Operation<L, E>, pc: usize) -> impl Iterator<Item = usize> {
    let at = |skip: u8| Some(pc + 1 + usize::from(skip));
    let [first, second] = match op {
        Operation::Jump(skip) => [Some(pc + 1 + skip as usize), None],
        Operation::Branch { test, jt, jf, .. } => match sides(test, jt, jf) {
            Sides::True(skip) | Sides::False(skip) => [at(skip), None],
            Sides::Both(jt, jf) => [at(jt), at(jf)],
        },
        _ => [None, None],
    };
    first.into_iter().chain(second)
}

fn jump_text<L: Copy, E: Copy>(op: Operation<L, E>, pc: usize) -> String {
    let labels: Vec<String> = named_targets(op, pc).map(|pc| format!("l{pc}")).collect();
    let labels = labels.join(", ");
    let Operation::Branch {
        test,
        operand,
        jt,
        jf,
    } = op
    else {
        return format!("ja {labels}");
    };
    let is_exchanged = matches!(sides(test, jt, jf), Sides::False(_));
    let name = match (test, is_exchanged) {
        (Test::Eq, false) => "jeq",
        (Test::Eq, true) => "jne",
        (Test::Gt, false) => "jgt",
        (Test::Gt, true) => "jle",
        (Test::Ge, false) => "jge",
        (Test::Ge, true) => "jlt",
        (Test::Set, _) => "jset",
    };
    format!("{name} {}, {labels}", operand_text(operand))
}

fn operand_text(operand: Operand) -> String {
    match operand {
        Operand::K(k) => format!("#{k:#x}"),
        Operand::X => "x".to_owned(),
        Operand::Variable(word) => format!("#{}", word.name()),
    }
}

const fn alu_name(op: AluOp) -> &'static str {
    match op {
        AluOp::Add => "add",
        AluOp::Sub => "sub",
        AluOp::Mul => "mul",
        AluOp::Div => "div",
        AluOp::And => "and",
        AluOp::Or => "or",
        AluOp::Xor => "xor",
        AluOp::Lsh => "lsh",
        AluOp::Rsh => "rsh",
    }
}

fn action_text(ret: u32) -> String {
    let action = Action::from_ret(ret);
    if action.ret() != ret {
        return format!("unknown action, {}", action.kind.name());
    }
    let name = match action.kind {
        ActionKind::Errno => errno::portable_name(action.data),
        _ => None,
    };
    match name {
        Some(name) => format!("{action} {name}"),
        None => action.to_string(),
    }
}

/// The meaning of a constant compared with A.
fn constant_text(test: Test, k: u32, facts: Facts) -> Option<String> {
    match facts.a? {
        Word::ARCH if test == Test::Eq => {
            let arch = Arch::all().find(|arch| arch.audit() == k)?;
            Some(arch.name().to_owned())
        }
        Word::NR => {
            let audit = facts.audit_arch?;
            if k == Arch::X32_BIT && audit == Arch::X32.audit() {
                return Some("x32".to_owned());
            }
            if test == Test::Set {
                return None;
            }
            let arch = Arch::of_call(audit, k)?;
            syscall::name(arch, Nr(k)).map(str::to_owned)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tamis_diag::Sources;

    use super::*;
    use crate::asm::assemble;

    fn assembled(text: &str) -> Program {
        let source = Sources::new().add("test.bpf", text);
        assemble(text, source, Endian::Little)
            .unwrap()
            .into_program()
            .unwrap()
    }

    #[test]
    fn a_plain_listing_is_assembler_text() {
        let text = "        ld [4]
        jne #0xc000003e, l4
        ld [0]
        jset #0x1, l5, l6
l4:     ret #0x80000000
l5:     ret #0x50001
l6:     ret #0x7fff0000
";
        assert_eq!(disassemble(&assembled(text), Style::Plain), text);
    }

    #[test]
    fn comments_say_what_numbers_mean() {
        let text = "ld [arch]
            jeq #arch(x86), other
            jne #arch(x86_64), killed
            ld [nr]
            jge #0x40000000, killed
            jeq #nr(x86_64, openat), denied
            ret #allow
            denied: ret #errno(13)
            killed: ret #0x12340000
            other: ld [nr]
            jgt #nr(x86, openat), killed2
            ld [arg0.high]
            jeq #nr(x86, read), killed2
            ret a
            killed2: ret #kill_process";
        let text = disassemble(&assembled(text), Style::Commented);
        let comments: Vec<&str> = text
            .lines()
            .map(|line| line.split_once("; ").map_or("", |(_, comment)| comment))
            .collect();
        let expected = [
            "arch",
            "x86",
            "x86_64",
            "nr",
            "x32",
            "openat",
            "allow",
            "errno(13) EACCES",
            "unknown action, kill_process",
            "nr",
            "openat",
            "arg0.high",
            "",
            "",
            "kill_process",
        ];
        assert_eq!(comments, expected);
    }

    #[test]
    fn a_number_has_no_name_where_paths_of_two_architectures_meet() {
        let text = "ld [arch]
            jeq #arch(x86), both
            jeq #arch(x86_64), both
            ret #kill_process
            both: ld [nr]
            jeq #1, end
            ret #allow
            end: ret #errno(1)";
        let text = disassemble(&assembled(text), Style::Commented);
        assert!(text.contains("jeq #0x1, l7\n"), "{text}");
    }

    #[test]
    fn odd_instructions_are_raw_and_say_why() {
        let insn = |code, jt, k| Insn { code, jt, jf: 0, k };
        let insns = [
            insn(0x16, 1, 0),
            insn(0x94, 0, 2),
            insn(0x05, 0, 9),
            insn(0x16, 0, 0),
        ];
        let text = disassemble_insns(&insns, Endian::Little, Style::Commented);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains(".insn 0x0016, 1, 0, 0x0 "), "{text}");
        assert!(
            lines[0].ends_with("; ignored fields are not zero"),
            "{text}"
        );
        assert!(
            lines[1].ends_with("; not an instruction of seccomp"),
            "{text}"
        );
        assert!(lines[2].ends_with("; jumps outside"), "{text}");
        assert_eq!(lines[3].trim(), "ret a");
    }
}

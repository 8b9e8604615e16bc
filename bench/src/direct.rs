//! Filters of sockets as extended programs that access the packet directly.
//!
//! The kernel's own conversion loads from packets with instructions that only its filters of sockets have, and that cost
//! a call of a helper there. For a comparison of machine code by other tools, this writes what somebody would write by
//! hand: a comparison with the end of the packet, a load, and a swap of bytes. It has no values beside the packet and no
//! divisions by X.

use std::fmt::Write as _;

use tamis_abi::Endian;
use tamis_bpf::packet::{Extra, Load, Op, Program, Size};
use tamis_bpf::{AluOp, Operand, Pc, Test};
use tamis_diag::Sources;
use tamis_ebpf::text;

/// What a program is given, and so how it finds the ends of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// `struct __sk_buff`, as the kernel's classifiers are.
    SocketBuffer,
    /// Two addresses: where the packet begins, and where it ends.
    Ends,
}

impl Given {
    const fn prologue(self) -> &'static str {
        match self {
            Given::SocketBuffer => "r7 = *(u32 *)(r1 + 76)\nr8 = *(u32 *)(r1 + 80)\n",
            Given::Ends => "r7 = *(u64 *)(r1 + 0)\nr8 = *(u64 *)(r1 + 8)\n",
        }
    }
}

/// The extended program of a filter: A is r0, X is r9. `None` if the filter uses what there is no text for.
///
/// # Panics
/// If the text has a mistake, which is a mistake here.
pub fn direct(filter: &Program, given: Given) -> Option<tamis_ebpf::Program> {
    let mut out = format!("{}w0 = 0\nw9 = 0\n", given.prologue());
    for (pc, op) in filter.ops().enumerate() {
        writeln!(out, "L{pc}:").expect("a string takes all");
        insn(&mut out, Pc(pc), op)?;
    }
    // The verifier refuses what nothing leads to.
    if out.contains("goto zero") {
        out.push_str("zero:\nw0 = 0\nexit\n");
    }
    let mut sources = Sources::new();
    let source = sources.add("direct.s", out.as_str());
    let assembly = text::assemble(&out, source);
    let assembly = assembly.unwrap_or_else(|errors| panic!("{errors:?} in {out}"));
    let program = assembly.into_program(Endian::Little);
    Some(program.unwrap_or_else(|error| panic!("{error:?} in {out}")))
}

/// Writes an instruction; `None` if there is no text for it.
fn insn(out: &mut String, Pc(pc): Pc, op: Op) -> Option<()> {
    let label = |skip: u32| format!("L{}", pc + 1 + skip as usize);
    let slot = |slot: u32| format!("*(u32 *)(r10 - {})", 4 * (slot + 1));
    let written = match op {
        Op::LoadData(Load::Absolute(size, k)) => load("w0", size, "r7", k)?,
        Op::LoadData(Load::Indexed(size, k)) => {
            format!("r3 = r7\nr3 += r9\n{}", load("w0", size, "r3", k)?)
        }
        Op::Extra(Extra::LoadXHeaderLen(k)) => {
            let byte = load("w9", Size::Byte, "r7", k)?;
            format!("{byte}w9 &= 15\nw9 <<= 2\n")
        }
        Op::LoadImm(k) => format!("w0 = {}\n", k as i32),
        Op::LoadXImm(k) => format!("w9 = {}\n", k as i32),
        Op::LoadMem(k) => format!("w0 = {}\n", slot(k)),
        Op::LoadXMem(k) => format!("w9 = {}\n", slot(k)),
        Op::Store(k) => format!("{} = w0\n", slot(k)),
        Op::StoreX(k) => format!("{} = w9\n", slot(k)),
        Op::Tax => "w9 = w0\n".to_owned(),
        Op::Txa => "w0 = w9\n".to_owned(),
        Op::Neg => "w0 = -w0\n".to_owned(),
        Op::Alu(alu, other) => format!("w0 {} {}\n", sign(alu, other)?, operand(other)?),
        Op::Jump(skip) => format!("goto {}\n", label(skip)),
        Op::Branch {
            test,
            operand: other,
            jt,
            jf,
        } => {
            let sign = match test {
                Test::Eq => "==",
                Test::Gt => ">",
                Test::Ge => ">=",
                Test::Set => "&",
            };
            let (holds, fails) = (label(jt.into()), label(jf.into()));
            format!(
                "if w0 {sign} {} goto {holds}\ngoto {fails}\n",
                operand(other)?
            )
        }
        Op::RetImm(k) => format!("w0 = {}\nexit\n", k as i32),
        Op::RetA => "exit\n".to_owned(),
        Op::LoadData(Load::Ancillary(..))
        | Op::LoadLen
        | Op::LoadXLen
        | Op::Extra(Extra::Mod(_)) => {
            return None;
        }
    };
    out.push_str(&written);
    Some(())
}

/// A load of a value in network byte order; `None` outside of what displacements reach.
fn load(to: &str, size: Size, base: &str, k: u32) -> Option<String> {
    let end = i16::try_from(k + size.bytes()).ok()?;
    let whole = to.replace('w', "r");
    let (kind, swap) = match size {
        Size::Byte => ("u8", String::new()),
        Size::Half => ("u16", format!("{whole} = be16 {whole}\n")),
        Size::Word => ("u32", format!("{whole} = be32 {whole}\n")),
    };
    let guard = format!("r2 = {base}\nr2 += {end}\nif r2 > r8 goto zero\n");
    Some(format!(
        "{guard}{whole} = *({kind} *)({base} + {k})\n{swap}"
    ))
}

fn sign(alu: AluOp, operand: Operand) -> Option<&'static str> {
    Some(match alu {
        AluOp::Add => "+=",
        AluOp::Sub => "-=",
        AluOp::Mul => "*=",
        AluOp::Div if operand != Operand::X => "/=",
        AluOp::And => "&=",
        AluOp::Or => "|=",
        AluOp::Xor => "^=",
        AluOp::Lsh if operand != Operand::X => "<<=",
        AluOp::Rsh if operand != Operand::X => ">>=",
        _ => return None,
    })
}

fn operand(operand: Operand) -> Option<String> {
    match operand {
        Operand::K(k) => Some((k as i32).to_string()),
        Operand::X => Some("w9".to_owned()),
        Operand::Variable(..) => None,
    }
}

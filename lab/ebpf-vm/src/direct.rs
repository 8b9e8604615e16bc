//! Classic filters as handwritten extended programs.
//!
//! The kernel's translation of a filter ([`mod@crate::convert`]) can't be loaded as a program: the context is internal
//! to the kernel, and loads from packets call helpers that user programs lack. For a comparison with other tools, and
//! with the kernel by `BPF_PROG_TEST_RUN`, this module writes loadable programs: a comparison with the end of the
//! packet, a load, and a swap of bytes. They have no values beside the packet and no divisions by X.

use std::fmt::Write as _;

use tamis_abi::Endian;
use tamis_bpf::convert::{JumpTooFar, convert};
use tamis_bpf::ebpf_len::PROLOGUE_INSNS;
use tamis_bpf::packet::{Extra, Load, Op, Program, Size};
use tamis_bpf::{AluOp, Operand, Pc, Test};
use tamis_diag::Sources;

use crate::convert::SECCOMP_CONTEXT_BYTES;
use crate::text::{self, Assembly};

/// The context of a program, which determines its access to the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// `struct __sk_buff`, as the kernel's classifiers are: the ends of the packet stand in it.
    SocketBuffer,
    /// Two addresses: where the packet begins, and where it ends.
    Ends,
    /// `struct __sk_buff`, as filters of sockets are, which load by the instructions that end the program outside of the
    /// packet.
    SocketFilter,
}

impl Given {
    const fn prologue(self) -> &'static str {
        match self {
            Given::SocketBuffer => "r7 = *(u32 *)(r1 + 76)\nr8 = *(u32 *)(r1 + 80)\n",
            Given::Ends => "r7 = *(u64 *)(r1 + 0)\nr8 = *(u64 *)(r1 + 8)\n",
            Given::SocketFilter => "r6 = r1\n",
        }
    }
}

/// The extended program of a filter of sockets, little-endian: A is r0, X is r9. `None` if the filter uses what there is no
/// text for.
///
/// ```
/// use tamis_bpf::packet::{Load, Op, Program, Size};
/// use tamis_ebpf_vm::direct::{Given, packet};
/// let filter = [Op::LoadData(Load::Absolute(Size::Half, 12)), Op::RetA].map(Into::into);
/// let program = packet(&Program::new(filter.to_vec()).unwrap(), Given::SocketFilter).unwrap();
/// assert_eq!(tamis_ebpf_vm::text::disassemble(program.insns()).lines().count(), 5);
/// ```
///
/// # Panics
/// If the text has a mistake, which is a mistake here.
pub fn packet(filter: &Program, given: Given) -> Option<crate::Program> {
    let mut out = format!("{}w0 = 0\nw9 = 0\n", given.prologue());
    for (pc, op) in filter.ops().enumerate() {
        writeln!(out, "L{pc}:").expect("a string takes all");
        insn(&mut out, Pc(pc), op, given)?;
    }
    // The verifier rejects unreachable code.
    if out.contains("goto zero") {
        out.push_str("zero:\nw0 = 0\nexit\n");
    }
    let program = assembled(&out).into_program(Endian::Little);
    Some(program.unwrap_or_else(|error| panic!("{error:?} in {out}")))
}

/// The extended program of a filter of seccomp for machines of its byte order: a classifier of packets, whose bytes are
/// `struct seccomp_data`. Shorter packets have the value 0.
///
/// # Errors
/// [`JumpTooFar`], only for programs that are not [installable](tamis_bpf::Program::is_installable).
///
/// # Panics
/// If the text has a mistake, which is a mistake here.
pub fn call(filter: &tamis_bpf::Program) -> Result<crate::Program, JumpTooFar> {
    let prologue = format!(
        "r6 = *(u32 *)(r1 + 76)\nr2 = *(u32 *)(r1 + 80)\nr3 = r6\nr3 += {SECCOMP_CONTEXT_BYTES}\n\
         if r3 <= r2 goto call\nw0 = 0\nexit\ncall:\nw0 = 0\nw7 = 0\n"
    );
    let mut insns = assembled(&prologue).insns;
    // No jump leads into the kernel's prologue, so distances stay.
    insns.extend(&convert(filter)?[PROLOGUE_INSNS..]);
    Ok(crate::Program::new(insns, filter.endian()).expect("its jumps stay inside"))
}

/// A text, read.
fn assembled(written: &str) -> Assembly {
    let mut sources = Sources::new();
    let source = sources.add("direct.s", written);
    let assembly = text::assemble(written, source);
    assembly.unwrap_or_else(|errors| panic!("{errors:?} in {written}"))
}

/// Writes an instruction; `None` if there is no text for it.
fn insn(out: &mut String, Pc(pc): Pc, op: Op, given: Given) -> Option<()> {
    let label = |skip: u32| format!("L{}", pc + 1 + skip as usize);
    let slot = |slot: u32| format!("*(u32 *)(r10 - {})", 4 * (slot + 1));
    let written = match op {
        Op::LoadData(Load::Absolute(size, k)) if given == Given::SocketFilter => {
            format!("r0 = *({} *)skb[{}]\n", kind(size), own_place(k)?)
        }
        Op::LoadData(Load::Indexed(size, k)) if given == Given::SocketFilter => {
            format!("r0 = *({} *)skb[r9 + {}]\n", kind(size), own_place(k)?)
        }
        Op::Extra(Extra::LoadXHeaderLen(k)) if given == Given::SocketFilter => {
            let place = own_place(k)?;
            format!("r7 = r0\nr0 = *(u8 *)skb[{place}]\nw9 = w0\nw9 &= 15\nw9 <<= 2\nr0 = r7\n")
        }
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

const fn kind(size: Size) -> &'static str {
    match size {
        Size::Byte => "u8",
        Size::Half => "u16",
        Size::Word => "u32",
    }
}

/// An offset that is counted from the packet's start.
fn own_place(k: u32) -> Option<i32> {
    i32::try_from(k).ok()
}

/// A load of a value in network byte order; `None` beyond the range of displacements.
fn load(to: &str, size: Size, base: &str, k: u32) -> Option<String> {
    let end = i16::try_from(k.checked_add(size.bytes())?).ok()?;
    let whole = to.replace('w', "r");
    let swap = match size {
        Size::Byte => String::new(),
        Size::Half => format!("{whole} = be16 {whole}\n"),
        Size::Word => format!("{whole} = be32 {whole}\n"),
    };
    let kind = kind(size);
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

//! The code of single instructions, for proofs and disassemblers.
//!
//! The code comes from the same functions as that of whole programs, which also has space between its jumps. Nothing
//! here can be executed.

use tamis_bpf::Op;
use tamis_bpf::insn::Operation;
use tamis_bpf::packet;
use tamis_ebpf_vm::Pc;
use tamis_ebpf_vm::check::Access;

use crate::Options;
use crate::assembler::{Assembler, Label};
use crate::blind::Blinding;
use crate::classic::{Emitter, Exits, Machine};
use crate::extended::Needs;
use crate::extended::emit::{self, Ends, Site};
use crate::reduce::{Fetch, map_load};
use crate::seccomp::Words;
use crate::socket::Packets;
use crate::x86::{Binary, Inst, Reg, Width};

pub use crate::ranges::Facts;

/// The code of one instruction, with something behind it to jump to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The code. It begins with the instruction; returns are behind it, then the end with the value 0.
    pub code: Vec<u8>,
    /// Where execution goes on after the instruction or a jump, or if the test of a branch holds: an offset in the
    /// code.
    pub next: usize,
    /// Where it goes on if the test of a branch doesn't hold, and after extended instructions that don't jump.
    pub no: usize,
}

/// How something is loaded from a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loading {
    /// Whether it stays in the order of the packet's bytes.
    pub is_unturned: bool,
    /// How many bytes must be there, for loads behind this one, counted from the start of the packet, or from X if the load is: the
    /// program ends with 0 otherwise. 0 for those of the load alone, and in hardened code.
    pub asked_bytes: u32,
}

/// The distances that decide about the forms of jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes from the code to its nearer exit.
    pub to_first: usize,
    /// Bytes from there to the other one, at least 1.
    pub to_second: usize,
    /// Whether the nearer one is `no`.
    pub is_no_first: bool,
}

impl Template {
    /// The code of an instruction of seccomp; the distances in jumps and branches are ignored.
    pub fn seccomp(op: Op, options: &Options, layout: Layout) -> Template {
        Template::new::<Words>(op, (), options, layout)
    }

    /// The code of a socket instruction with known facts; `loading` is the form of the loaded value.
    pub fn socket(
        op: packet::Op,
        loading: Loading,
        facts: Facts,
        options: &Options,
        layout: Layout,
    ) -> Template {
        let Loading {
            is_unturned,
            asked_bytes,
        } = loading;
        let step = map_load(op, |load| Fetch {
            load,
            is_unturned,
            asked_bytes,
        });
        Template::new::<Packets>(step, facts, options, layout)
    }

    /// The code of an extended instruction that accesses something, in a program with so many frames - a power of two -
    /// and of context. Returns are behind it, then the end with the value 0, where the abort by a helper leads too.
    pub fn extended(
        op: tamis_ebpf_vm::Op,
        access: Access,
        (frames, context_bytes): (usize, usize),
        options: &Options,
        layout: Layout,
    ) -> Template {
        let mut out = Assembler::with_capacity(0);
        out.push(Inst::Return);
        out.push(Inst::Binary(Binary::Xor, Width::Half, Reg::Rax, Reg::Rax));
        let zero = out.here();
        let (next, no) = exits(&mut out, layout);
        let mut emitter = emit::Emitter {
            out,
            blinding: Blinding::new(options.harden),
            ends: Ends { zero, abort: zero },
            needs: Needs::new(frames, context_bytes),
        };
        let site = Site {
            pc: Pc(0),
            access,
            next: no,
            taken: next,
            end: None,
        };
        emitter.emit(op, site);
        let code = emitter.out.finish();
        Template {
            next: code.entry(next).offset(),
            no: code.entry(no).offset(),
            code: code.bytes().to_vec(),
        }
    }

    fn new<M: Machine>(
        op: Operation<M::Load, M::Extra>,
        facts: M::Facts,
        options: &Options,
        layout: Layout,
    ) -> Template {
        let out = Assembler::with_capacity(0);
        let mut emitter = Emitter::new(out, Blinding::new(options.harden));
        let (next, no) = exits(&mut emitter.out, layout);
        emitter.emit::<M>(op, facts, Exits { next, no });
        let code = emitter.out.finish();
        Template {
            next: code.entry(next).offset(),
            no: code.entry(no).offset(),
            code: code.bytes().to_vec(),
        }
    }
}

/// Writes returns at the places where an instruction goes on, `next` and `no`.
fn exits(out: &mut Assembler, layout: Layout) -> (Label, Label) {
    let mut fill = |len: usize| {
        for _ in 0..len {
            out.push(Inst::Return);
        }
        out.here()
    };
    let second = fill(1);
    let first = fill(layout.to_second);
    fill(layout.to_first);
    match layout.is_no_first {
        true => (second, first),
        false => (first, second),
    }
}

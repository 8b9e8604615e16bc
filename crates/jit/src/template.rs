//! The code of single instructions, for proofs and disassemblers.
//!
//! What is here comes from the same functions as the code of whole programs. Nothing here can be executed.

use tamis_bpf::Op;
use tamis_bpf::insn::Operation;
use tamis_bpf::packet;

use crate::Options;
use crate::blind::Blinding;
use crate::classic::{Emitter, Exits, Machine};
use crate::seccomp::Words;
use crate::socket::Packets;
use crate::x86::Inst;

pub use crate::ranges::Facts;

/// The code of one instruction, with something behind it to jump to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The code. It begins with the instruction; returns are behind it, then the end with the value 0.
    pub code: Vec<u8>,
    /// Where execution goes on after the instruction or a jump, or if the test of a branch holds: an offset in the
    /// code.
    pub next: usize,
    /// Where it goes on if the test of a branch doesn't hold.
    pub no: usize,
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

    /// The code of an instruction of sockets where something is known.
    pub fn socket(op: packet::Op, facts: Facts, options: &Options, layout: Layout) -> Template {
        Template::new::<Packets>(op, facts, options, layout)
    }

    fn new<M: Machine>(
        op: Operation<M::Load, M::Extra>,
        facts: M::Facts,
        options: &Options,
        layout: Layout,
    ) -> Template {
        let mut emitter = Emitter::new(0, Blinding::new(options.harden));
        let mut fill = |len: usize| {
            for _ in 0..len {
                emitter.out.push(Inst::Return);
            }
            emitter.out.here()
        };
        let second = fill(1);
        let first = fill(layout.to_second);
        fill(layout.to_first);
        let (next, no) = match layout.is_no_first {
            true => (second, first),
            false => (first, second),
        };
        emitter.emit::<M>(op, facts, Exits { next, no });
        let code = emitter.out.finish();
        Template {
            next: code.entry(next).offset(),
            no: code.entry(no).offset(),
            code: code.bytes().to_vec(),
        }
    }
}

//! A whole program as machine code.
//!
//! One pass forward finds the reachable instructions and the facts there, one pass backward writes those with a used
//! result. Jumps become nothing: predecessors of a jump lead to its target.

use tamis_bpf::insn::Operation;
use tamis_bpf::live::Live;
use tamis_bpf::validate::SLOTS;
use tamis_bpf::{Pc, Program};

use crate::assembler::{Assembler, Code, EntryPoint, Label};
use crate::blind::Blinding;
use crate::classic::{A, Emitter, Exits, Machine, X};
use crate::{Error, Options};

/// A state in the middle of a program, which can be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The instruction that comes next.
    pub pc: Pc,
    /// The register A.
    pub a: u32,
    /// The register X.
    pub x: u32,
    /// The scratch memory.
    pub memory: [u32; SLOTS as usize],
}

/// The code of a program, and where it begins.
pub(crate) struct Written {
    pub(crate) code: Code,
    pub(crate) start: EntryPoint,
    pub(crate) entries: Vec<EntryPoint>,
    /// Whether it reads the ancillary values of a packet.
    pub(crate) uses_record: bool,
    /// Whether it reads a packet's length.
    pub(crate) uses_len: bool,
}

/// The bytes of code for an instruction that are made room for at first: few programs need more.
const ROOM_PER_INSN_BYTES: usize = 16;

/// The state at the beginning of every program.
const START: Entry = Entry {
    pc: Pc(0),
    a: 0,
    x: 0,
    memory: [0; SLOTS as usize],
};

/// The properties of a written instruction.
#[derive(Clone, Copy)]
struct Place {
    label: Label,
    /// The live state from here on.
    live: Live,
}

/// Writes a program that was checked.
///
/// # Errors
/// If it is longer than a filter may be, or an entry is outside.
pub(crate) fn write<M: Machine>(
    ops: &[Operation<M::Load, M::Extra>],
    entries: &[Entry],
    options: &Options,
) -> Result<Written, Error> {
    let len_insns = ops.len();
    if len_insns > Program::MAX_INSNS {
        return Err(Error::TooLong { len_insns });
    }
    if let Some(entry) = entries.iter().find(|entry| entry.pc.0 >= len_insns) {
        return Err(Error::EntryOutside { pc: entry.pc });
    }
    let facts = facts::<M>(ops, entries);
    let mut out = Assembler::with_capacity(len_insns * ROOM_PER_INSN_BYTES);
    out.space_jumps();
    let mut emitter = Emitter::new(out, Blinding::new(options.harden));
    let nowhere = Place {
        label: emitter.zero(),
        live: Live::NONE,
    };
    let mut places = vec![nowhere; len_insns + 1];
    for (pc, op) in ops.iter().enumerate().rev() {
        if let Some(facts) = facts[pc] {
            places[pc] = write_op::<M>(&mut emitter, *op, facts, &places[pc + 1..]);
        }
    }
    let labels: Vec<Label> = entries
        .iter()
        .map(|entry| write_entry(&mut emitter, entry, places[entry.pc.0]))
        .collect();
    let start = write_entry(&mut emitter, &START, places[0]);
    let (uses_record, uses_len) = (emitter.uses_record, emitter.uses_len);
    let code = emitter.out.finish();
    Ok(Written {
        uses_record,
        uses_len,
        start: code.entry(start),
        entries: labels.into_iter().map(|label| code.entry(label)).collect(),
        code,
    })
}

/// Writes an instruction before those behind it.
#[inline]
fn write_op<M: Machine>(
    emitter: &mut Emitter,
    op: Operation<M::Load, M::Extra>,
    facts: M::Facts,
    behind: &[Place],
) -> Place {
    let (next, no) = match op {
        Operation::Jump(skip) => return behind[skip as usize],
        Operation::Branch { jt, jf, .. } => (behind[usize::from(jt)], behind[usize::from(jf)]),
        _ => (behind[0], behind[0]),
    };
    let exits = Exits {
        next: next.label,
        no: no.label,
    };
    // A branch whose sides are the same code decides nothing.
    if matches!(op, Operation::Branch { .. }) && exits.next == exits.no {
        return next;
    }
    let after = next.live.or(no.live);
    let live = match op {
        Operation::LoadData(load) => M::live_before_load(load, after),
        Operation::Extra(extra) => M::live_before_extra(extra, after),
        op => after.before(op),
    };
    let Some(live) = live else {
        return next;
    };
    emitter.emit::<M>(op, facts, exits);
    Place {
        label: emitter.out.here(),
        live,
    }
}

/// Writes the code that establishes the live part of a state and continues at its instruction.
fn write_entry(emitter: &mut Emitter, entry: &Entry, place: Place) -> Label {
    if place.live == Live::NONE {
        return place.label;
    }
    emitter.out.jump(place.label);
    for slot in (0..SLOTS).filter(|slot| place.live.meets(Live::slot(*slot))) {
        emitter.set_slot(slot, entry.memory[slot as usize]);
    }
    if place.live.meets(Live::A) {
        emitter.set(A, entry.a);
    }
    if place.live.meets(Live::X) {
        emitter.set(X, entry.x);
    }
    emitter.out.here()
}

/// The facts before each instruction, on every path from the beginning or an entry; `None` if it is unreachable. At
/// entries there are no facts.
fn facts<M: Machine>(
    ops: &[Operation<M::Load, M::Extra>],
    entries: &[Entry],
) -> Vec<Option<M::Facts>> {
    let mut known: Vec<Option<M::Facts>> = vec![None; ops.len() + 1];
    known[0] = Some(M::START);
    for entry in entries {
        known[entry.pc.0] = Some(M::NOTHING);
    }
    flow(ops, &mut known, M::facts_after, M::join);
    known
}

/// The facts before each instruction, on every path from the beginning; `None` if it is unreachable.
pub(crate) fn known_from<L: Copy, E: Copy, F: Copy>(
    start: F,
    ops: &[Operation<L, E>],
    after: impl Fn(Operation<L, E>, F) -> F,
    join: impl Fn(F, F) -> F,
) -> Vec<Option<F>> {
    let mut known = vec![None; ops.len() + 1];
    known[0] = Some(start);
    flow(ops, &mut known, after, join);
    known
}

/// Propagates the facts at some instructions to their successors.
fn flow<L: Copy, E: Copy, F: Copy>(
    ops: &[Operation<L, E>],
    known: &mut [Option<F>],
    after: impl Fn(Operation<L, E>, F) -> F,
    join: impl Fn(F, F) -> F,
) {
    let mut rest = known;
    for op in ops {
        let Some((here, behind)) = rest.split_first_mut() else {
            return;
        };
        rest = behind;
        let Some(here) = *here else {
            continue;
        };
        let after = after(*op, here);
        let mut reach = |skip: usize| {
            let there = &mut rest[skip];
            *there = Some(there.map_or(after, |known| join(known, after)));
        };
        match *op {
            Operation::Jump(skip) => reach(skip as usize),
            Operation::Branch { jt, jf, .. } => {
                reach(jt.into());
                reach(jf.into());
            }
            Operation::RetImm(_) | Operation::RetA => {}
            _ => reach(0),
        }
    }
}

/// Where an instruction goes on.
#[inline]
pub(crate) fn successors<L: Copy, E: Copy>(
    pc: usize,
    op: Operation<L, E>,
) -> impl Iterator<Item = usize> + use<L, E> {
    let (skips, ways) = match op {
        Operation::Jump(skip) => ([skip as usize, 0], 1),
        Operation::Branch { jt, jf, .. } => ([usize::from(jt), usize::from(jf)], 2),
        Operation::RetImm(_) | Operation::RetA => ([0; 2], 0),
        _ => ([0; 2], 1),
    };
    (0..ways).map(move |way| pc + 1 + skips[way])
}

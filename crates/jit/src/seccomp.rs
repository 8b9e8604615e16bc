//! Programs of seccomp as machine code.
//!
//! One pass forward finds the instructions that are reached, one pass backward writes those whose result is used.
//! Jumps become nothing: what leads to one leads to its target.

use tamis_bpf::validate::SLOTS;
use tamis_bpf::{Op, Pc, Program};

use crate::assembler::{Code, EntryPoint, Label};
use crate::blind::Blinding;
use crate::classic::{Emitter, Exits};
use crate::live::Live;
use crate::memory::Executable;
use crate::{Error, Options};

/// A program of seccomp as machine code in executable memory.
///
/// ```
/// use tamis_abi::{Endian, SeccompData};
/// use tamis_bpf::{Op, Program};
/// use tamis_jit::{Error, Options, Seccomp};
/// let program = Program::new(vec![Op::LoadData(4).into(), Op::RetA.into()], Endian::Little).unwrap();
/// match Seccomp::compile(&program, &Options::default()) {
///     Ok(compiled) => {
///         let call = SeccompData { arch: 7, ..SeccompData::default() };
///         assert_eq!(compiled.run(&call.image(program.endian())), 7);
///     }
///     Err(Error::Unavailable(reason)) => println!("{reason}"),
///     Err(other) => panic!("{other}"),
/// }
/// ```
#[derive(Debug)]
pub struct Seccomp {
    executable: Executable,
    start: EntryPoint,
    entries: Vec<EntryPoint>,
}

/// A state in the middle of a program, from which it can be run.
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

/// The bytes of code for an instruction that are made room for at first: few programs need more.
const ROOM_PER_INSN_BYTES: usize = 12;

/// What is known of an instruction once it is written.
#[derive(Clone, Copy)]
struct Place {
    label: Label,
    /// What is used from here on.
    live: Live,
}

impl Seccomp {
    /// Compiles a program.
    ///
    /// # Errors
    /// If it is longer than a filter may be, or there is no executable memory.
    pub fn compile(program: &Program, options: &Options) -> Result<Seccomp, Error> {
        Seccomp::compile_with_entries(program, &[], options)
    }

    /// Compiles a program that can be run from states in its middle, too. What a state says about registers that
    /// are not used from there on costs nothing.
    ///
    /// # Errors
    /// As [`compile`](Self::compile), or if an entry is outside the program.
    pub fn compile_with_entries(
        program: &Program,
        entries: &[Entry],
        options: &Options,
    ) -> Result<Seccomp, Error> {
        let (code, start, entries) = emit(program, entries, options)?;
        let executable = Executable::new(&code).map_err(Error::Unavailable)?;
        Ok(Seccomp {
            executable,
            start: code.entry(start),
            entries: entries.into_iter().map(|label| code.entry(label)).collect(),
        })
    }

    /// The return value for an image of a call: [`SeccompData::image`](tamis_abi::SeccompData::image) in the byte
    /// order of the program.
    #[inline]
    pub fn run(&self, image: &[u32; 16]) -> u32 {
        self.executable.call_with_words(self.start, image)
    }

    /// The return value from an entry on, by its index in the list at compilation.
    ///
    /// # Panics
    /// If there is no such entry.
    #[inline]
    pub fn run_entry(&self, index: usize, image: &[u32; 16]) -> u32 {
        self.executable.call_with_words(self.entries[index], image)
    }

    /// The machine code, for disassemblers. It is independent of its address.
    pub fn code(&self) -> &[u8] {
        self.executable.bytes()
    }

    /// The offset in the code where a program begins; entries are before it.
    pub fn start_bytes(&self) -> usize {
        self.start.offset()
    }
}

/// The code of a program with the labels of its beginning and its entries.
fn emit(
    program: &Program,
    entries: &[Entry],
    options: &Options,
) -> Result<(Code, Label, Vec<Label>), Error> {
    if !program.is_installable() {
        let len_insns = program.len();
        return Err(Error::TooLong { len_insns });
    }
    if let Some(entry) = entries.iter().find(|entry| entry.pc.0 >= program.len()) {
        return Err(Error::EntryOutside { pc: entry.pc });
    }
    let ops: Vec<Op> = program.ops().collect();
    let is_reached = reached(&ops, entries);
    let room_bytes = ops.len() * ROOM_PER_INSN_BYTES;
    let mut emitter = Emitter::new(room_bytes, Blinding::new(options.harden));
    let nowhere = Place {
        label: emitter.zero(),
        live: Live::NONE,
    };
    let mut places = vec![nowhere; ops.len() + 1];
    for (pc, op) in ops.iter().enumerate().rev() {
        if is_reached[pc] {
            places[pc] = write(&mut emitter, *op, &places[pc + 1..]);
        }
    }
    let labels = entries
        .iter()
        .map(|entry| write_entry(&mut emitter, entry, places[entry.pc.0]));
    let labels = labels.collect();
    let zeros = Entry {
        pc: Pc(0),
        a: 0,
        x: 0,
        memory: [0; SLOTS as usize],
    };
    let start = write_entry(&mut emitter, &zeros, places[0]);
    Ok((emitter.out.finish(), start, labels))
}

/// Writes an instruction before those behind it.
#[inline]
fn write(emitter: &mut Emitter, op: Op, behind: &[Place]) -> Place {
    let (next, no) = match op {
        Op::Jump(skip) => return behind[skip as usize],
        Op::Branch { jt, jf, .. } => (behind[usize::from(jt)], behind[usize::from(jf)]),
        _ => (behind[0], behind[0]),
    };
    let exits = Exits {
        next: next.label,
        no: no.label,
    };
    // A branch whose sides are the same code decides nothing.
    if matches!(op, Op::Branch { .. }) && exits.next == exits.no {
        return next;
    }
    let Some(live) = next.live.or(no.live).before(op) else {
        return next;
    };
    emitter.emit(op, exits);
    Place {
        label: emitter.out.here(),
        live,
    }
}

/// Writes what brings about a state, as far as it is used, and leads to its instruction.
fn write_entry(emitter: &mut Emitter, entry: &Entry, place: Place) -> Label {
    let slots = (0..SLOTS).filter(|slot| place.live.meets(Live::slot(*slot)));
    let slots: Vec<u32> = slots.collect();
    let (uses_a, uses_x) = (place.live.meets(Live::A), place.live.meets(Live::X));
    if slots.is_empty() && !uses_a && !uses_x {
        return place.label;
    }
    emitter.out.jump(place.label);
    for slot in slots {
        emitter.set_slot(slot, entry.memory[slot as usize]);
    }
    if uses_a {
        emitter.set_a(entry.a);
    }
    if uses_x {
        emitter.set_x(entry.x);
    }
    emitter.out.here()
}

/// Whether each instruction may be executed from the beginning or an entry.
fn reached(ops: &[Op], entries: &[Entry]) -> Vec<bool> {
    let mut is_reached = vec![false; ops.len() + 1];
    is_reached[0] = true;
    for entry in entries {
        is_reached[entry.pc.0] = true;
    }
    for (pc, op) in ops.iter().enumerate() {
        if !is_reached[pc] {
            continue;
        }
        match *op {
            Op::Jump(skip) => is_reached[pc + 1 + skip as usize] = true,
            Op::Branch { jt, jf, .. } => {
                is_reached[pc + 1 + usize::from(jt)] = true;
                is_reached[pc + 1 + usize::from(jf)] = true;
            }
            Op::RetImm(_) | Op::RetA => {}
            _ => is_reached[pc + 1] = true,
        }
    }
    is_reached
}

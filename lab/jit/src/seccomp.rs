//! Programs of seccomp as machine code: a function of a pointer to sixteen words.

use std::convert::Infallible;
use std::sync::Arc;

use tamis_bpf::insn::Operation;
use tamis_bpf::live::Live;
use tamis_bpf::validate::DATA_SIZE_BYTES;
use tamis_bpf::{Op, Program};

use crate::classic::{A, Emitter, INPUT, Machine};
use crate::memory::{Executable, Function};
use crate::program::{Entry, write};
use crate::x86::{Inst, Mem, Reg};
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
    start: Function,
    entries: Vec<Function>,
}

/// The filters of a stack as machine code, and resumable states in their middle, in one list.
#[derive(Debug)]
pub struct Filters {
    /// The oldest first.
    starts: Vec<Function>,
    entries: Vec<Function>,
}

/// The machine of seccomp.
pub(crate) struct Words;

impl Machine for Words {
    type Load = u32;
    type Extra = Infallible;
    type Facts = ();
    const START: () = ();
    const NOTHING: () = ();

    #[inline]
    fn load(emitter: &mut Emitter, offset: u32, (): ()) {
        emitter
            .out
            .push(Inst::Load(A, Mem::at(INPUT, offset as i32)));
    }

    fn load_len(emitter: &mut Emitter, to: Reg) {
        emitter.out.push(Inst::Set(to, DATA_SIZE_BYTES));
    }

    fn extra(_: &mut Emitter, extra: Infallible, (): ()) {
        match extra {}
    }

    fn live_before_load(_: u32, live: Live) -> Option<Live> {
        live.meets(Live::A).then_some(live.without(Live::A))
    }

    fn live_before_extra(extra: Infallible, _: Live) -> Option<Live> {
        match extra {}
    }

    fn facts_after(_: Operation<u32, Infallible>, (): ()) {}

    fn join((): (), (): ()) {}
}

impl Seccomp {
    /// Compiles a program.
    ///
    /// # Errors
    /// If it is longer than a filter may be, or there is no executable memory.
    pub fn compile(program: &Program, options: &Options) -> Result<Seccomp, Error> {
        Seccomp::compile_with_entries(program, &[], options)
    }

    /// Compiles a program that can also be resumed from states in its middle. The parts of a state for dead registers
    /// cost nothing.
    ///
    /// # Errors
    /// As [`compile`](Self::compile), or if an entry is outside the program.
    pub fn compile_with_entries(
        program: &Program,
        entries: &[Entry],
        options: &Options,
    ) -> Result<Seccomp, Error> {
        let ops: Vec<Op> = program.ops().collect();
        let written = write::<Words>(&ops, entries, options)?;
        let executable = Executable::new(&written.code).map_err(Error::Unavailable)?;
        let executable = Arc::new(executable);
        let function = |entry| Function::new(&executable, entry);
        Ok(Seccomp {
            start: function(written.start),
            entries: written.entries.into_iter().map(function).collect(),
        })
    }

    /// The return value for an image of a call: [`SeccompData::image`](tamis_abi::SeccompData::image) in the byte
    /// order of the program.
    #[inline]
    pub fn run(&self, image: &[u32; 16]) -> u32 {
        self.start.call_with_words(image)
    }

    /// The return value from an entry on, by its index in the list at compilation.
    ///
    /// # Panics
    /// If there is no such entry.
    #[inline]
    pub fn run_entry(&self, index: usize, image: &[u32; 16]) -> u32 {
        self.entries[index].call_with_words(image)
    }

    /// The machine code, for disassemblers. It is independent of its address.
    pub fn code(&self) -> &[u8] {
        self.start.code()
    }

    /// The offset in the code where a program begins; entries are before it.
    pub fn start_bytes(&self) -> usize {
        self.start.offset()
    }
}

impl Filters {
    /// Compiles the filters of a stack, with entries, each in the filter with this index.
    ///
    /// # Errors
    /// As [`Seccomp::compile_with_entries`], for any of them.
    ///
    /// # Panics
    /// If an entry is in none of the filters.
    pub fn compile(
        programs: &[Program],
        entries: &[(usize, Entry)],
        options: &Options,
    ) -> Result<Filters, Error> {
        let mut by_filter: Vec<Vec<Entry>> = vec![Vec::new(); programs.len()];
        for (filter, entry) in entries {
            by_filter[*filter].push(*entry);
        }
        let mut starts = Vec::with_capacity(programs.len());
        let mut entries_of = Vec::with_capacity(programs.len());
        for (program, entries) in programs.iter().zip(&by_filter) {
            let Seccomp { start, entries } =
                Seccomp::compile_with_entries(program, entries, options)?;
            starts.push(start);
            entries_of.push(entries.into_iter());
        }
        let function = |(filter, _): &(usize, Entry)| entries_of[*filter].next();
        Ok(Filters {
            entries: entries.iter().filter_map(function).collect(),
            starts,
        })
    }

    /// The return values of the filters, each from its first instruction, the oldest first. They run as the iterator
    /// advances.
    #[inline]
    pub fn run_each(&self, image: &[u32; 16]) -> impl DoubleEndedIterator<Item = u32> {
        let starts = self.starts.iter();
        starts.map(|start| start.call_with_words(image))
    }

    /// The return value from an entry on, by its index in the list at compilation.
    ///
    /// # Panics
    /// If there is no such entry.
    #[inline]
    pub fn run_entry(&self, index: usize, image: &[u32; 16]) -> u32 {
        self.entries[index].call_with_words(image)
    }
}

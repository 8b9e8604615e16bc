//! Programs of sockets as machine code: a function of the bytes of a packet, of its length, and of what is known
//! beside them.
//!
//! A load is preceded by one comparison with the number of bytes, unless a load before it has made that; outside of the
//! packet it ends the program with 0. Values in network byte order are turned.

use tamis_bpf::Operand;
use tamis_bpf::insn::Operation;
use tamis_bpf::interp;
use tamis_bpf::live::Live;
use tamis_bpf::packet::{
    Ancillary, Extra, LINK_OFFSET, Load, NETWORK_OFFSET, Op, Packet, Program, Size,
};

use crate::assembler::{EntryPoint, Label};
use crate::classic::{A, CONSTANT, Emitter, INPUT, Machine, X};
use crate::memory::{self, Executable};
use crate::program::write;
use crate::ranges::{Area, Facts};
use crate::x86::{Binary, Condition, Inst, Mem, Reg, Shift, Width};
use crate::{Error, Options};

/// The count of readable bytes, as 64 bits.
const CAPTURED: Reg = Reg::Rsi;
/// Points to a [`Record`].
const RECORD: Reg = Reg::R8;
/// The length of the whole packet.
const LEN: Reg = Reg::R9;
/// An offset that is computed.
const OFFSET: Reg = Reg::R11;

/// What is known beside a packet's bytes, as the code reads it: the values by their numbers, a bit for each that is
/// known, and where the network layer begins.
pub(crate) type Record = [u32; Ancillary::ALL.len() + 2];

const KNOWN: usize = Ancillary::ALL.len();
const NETWORK_START: usize = KNOWN + 1;

/// The most bytes that the code can be given: with fewer than 2^31 every offset that it accepts is a place.
const MAX_BYTES: usize = i32::MAX as usize;

/// Packets that are looked up ahead of their evaluation, so that their bytes are in the cache by then.
const AHEAD: usize = 16;

/// A program of a socket as machine code in executable memory.
///
/// ```
/// use tamis_bpf::packet::{Load, Op, Packet, Program, Size};
/// use tamis_jit::{Error, Options, Socket};
/// let insns = [Op::LoadData(Load::Absolute(Size::Half, 12)), Op::RetA].map(Into::into);
/// let program = Program::new(insns.to_vec()).unwrap();
/// match Socket::compile(&program, &Options::default()) {
///     Ok(compiled) => {
///         let mut frame = [0; 60];
///         frame[12] = 8;
///         assert_eq!(compiled.run(&Packet::new(&frame[..])), 0x800);
///         assert_eq!(compiled.run(&Packet::new(&frame[..13])), 0);
///     }
///     Err(Error::Unavailable(reason)) => println!("{reason}"),
///     Err(other) => panic!("{other}"),
/// }
/// ```
#[derive(Debug)]
pub struct Socket {
    executable: Executable,
    start: EntryPoint,
    /// For packets that the code can't be given.
    program: Program,
    reads: Reads,
}

/// What the code reads of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    Bytes,
    /// The length, too.
    Len,
    /// All that is known beside the bytes.
    Record,
}

impl Socket {
    /// Compiles a program.
    ///
    /// # Errors
    /// If there is no executable memory.
    pub fn compile(program: &Program, options: &Options) -> Result<Socket, Error> {
        let ops: Vec<Op> = program.ops().collect();
        let written = write::<Packets>(&ops, &[], options)?;
        let executable = Executable::new(&written.code).map_err(Error::Unavailable)?;
        Ok(Socket {
            executable,
            start: written.start,
            program: program.clone(),
            reads: match (written.uses_record, written.uses_len) {
                (true, _) => Reads::Record,
                (false, true) => Reads::Len,
                (false, false) => Reads::Bytes,
            },
        })
    }

    /// The return value for a packet.
    #[inline]
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        let bytes = packet.bytes;
        if bytes.len() > MAX_BYTES {
            return interp::run_packet(&self.program, packet).ret;
        }
        match self.reads {
            Reads::Bytes => self.executable.call_with_bytes(self.start, bytes),
            Reads::Len => self.run_with(packet, &[0; KNOWN + 2]),
            Reads::Record => self.run_with(packet, &record(packet)),
        }
    }

    /// The return values for packets, in order. Faster than one by one if the packets are not in the cache: it is
    /// asked for the next ones while one is evaluated.
    ///
    /// # Panics
    /// If there are fewer places for return values than packets.
    pub fn run_batch(&self, packets: &[Packet<'_>], rets: &mut [u32]) {
        assert!(rets.len() >= packets.len(), "a place for each return value");
        let (near, far) = packets.split_at(packets.len().min(AHEAD));
        near.iter()
            .for_each(|packet| memory::prefetch(packet.bytes));
        let mut ahead = far.iter();
        for (packet, ret) in packets.iter().zip(rets) {
            if let Some(ahead) = ahead.next() {
                memory::prefetch(ahead.bytes);
            }
            *ret = self.run(packet);
        }
    }

    /// The machine code, for disassemblers. It is independent of its address.
    pub fn code(&self) -> &[u8] {
        self.executable.bytes()
    }

    /// The offset in the code where the program begins.
    pub fn start_bytes(&self) -> usize {
        self.start.offset()
    }

    fn run_with(&self, packet: &Packet<'_>, record: &Record) -> u32 {
        let (bytes, len_bytes) = (packet.bytes, packet.len_bytes);
        self.executable
            .call_with_packet(self.start, bytes, len_bytes, record)
    }
}

fn record(packet: &Packet<'_>) -> Record {
    let mut record = [0; KNOWN + 2];
    record[NETWORK_START] = packet.network_start;
    for ancillary in Ancillary::ALL {
        if let Some(value) = packet.metadata.get(ancillary) {
            record[ancillary as usize] = value;
            record[KNOWN] |= 1 << ancillary as u32;
        }
    }
    record
}

/// The machine of sockets.
pub(crate) struct Packets;

impl Machine for Packets {
    type Load = Load;
    type Extra = Extra;
    type Facts = Facts;
    const START: Facts = Facts::START;
    const NOTHING: Facts = Facts::NOTHING;

    fn load(emitter: &mut Emitter, load: Load, facts: Facts) {
        match load {
            Load::Absolute(size, k) => emitter.load_at(A, size, k, facts),
            Load::Indexed(size, k) => emitter.load_indexed(size, k, facts),
            Load::Ancillary(_, Ancillary::XorX) => {
                let xor = Inst::Binary(Binary::Xor, Width::Half, A, X);
                emitter.out.push(xor);
            }
            Load::Ancillary(_, ancillary) => emitter.load_ancillary(ancillary),
        }
    }

    fn load_len(emitter: &mut Emitter, to: Reg) {
        let copy = Inst::Binary(Binary::Mov, Width::Half, to, LEN);
        emitter.out.push(copy);
        emitter.uses_len = true;
    }

    fn extra(emitter: &mut Emitter, extra: Extra, facts: Facts) {
        match extra {
            Extra::Mod(operand) => emitter.remainder(operand),
            Extra::LoadXHeaderLen(k) => {
                let half = Width::Half;
                emitter.out.push(Inst::Shift(Shift::Left, half, X, 2));
                emitter.out.push(Inst::BinaryImm(Binary::And, half, X, 15));
                emitter.load_at(X, Size::Byte, k, facts);
            }
        }
    }

    fn live_before_load(load: Load, live: Live) -> Option<Live> {
        let uses = match load {
            Load::Absolute(..) => Live::NONE,
            Load::Indexed(..) => Live::X,
            Load::Ancillary(_, Ancillary::XorX) => {
                return live.meets(Live::A).then_some(live.or(Live::X));
            }
            Load::Ancillary(..) => Live::NONE,
        };
        // It may end the program even if nobody uses A.
        Some(live.without(Live::A).or(uses))
    }

    fn live_before_extra(extra: Extra, live: Live) -> Option<Live> {
        match extra {
            Extra::Mod(Operand::X) => Some(live.or(Live::A).or(Live::X)),
            Extra::Mod(_) => live.meets(Live::A).then_some(live),
            Extra::LoadXHeaderLen(_) => Some(live.without(Live::X)),
        }
    }

    fn facts_after(op: Operation<Load, Extra>, facts: Facts) -> Facts {
        facts.after(op)
    }

    fn join(one: Facts, other: Facts) -> Facts {
        one.or(other)
    }
}

impl Emitter {
    /// Writes a load from a fixed place.
    fn load_at(&mut self, to: Reg, size: Size, k: u32, facts: Facts) {
        let zero = self.zero();
        match Area::of(k) {
            Area::Nowhere => self.out.jump(zero),
            Area::Packet(start) if self.is_hardened() => {
                let end = start + size.bytes();
                self.load_before(to, size, OFFSET);
                if end > facts.readable_bytes {
                    self.end_unless_captured(OFFSET);
                }
                self.set(OFFSET, end);
            }
            Area::Packet(start) => {
                let end = start + size.bytes();
                self.load_from(to, size, Mem::at(INPUT, start as i32));
                if end > facts.readable_bytes {
                    // As many bytes are readable as the place says, not more.
                    self.out.jump_if(Condition::Below, zero);
                    let compare = Binary::Cmp;
                    let compare = Inst::BinaryImm(compare, Width::Half, CAPTURED, end as i32);
                    self.out.push(compare);
                }
            }
            Area::Network(distance) => {
                self.load_before(to, size, OFFSET);
                self.end_unless_captured(OFFSET);
                let end = distance + size.bytes();
                let address = match self.is_hardened() {
                    true => Mem::sum(OFFSET, CONSTANT, 0),
                    false => Mem::at(OFFSET, end as i32),
                };
                self.out.push(Inst::Address(Width::Full, OFFSET, address));
                if self.is_hardened() {
                    self.set(CONSTANT, end);
                }
                self.load_record(OFFSET, NETWORK_START);
            }
        }
    }

    /// Writes a load from X + k.
    fn load_indexed(&mut self, size: Size, k: u32, facts: Facts) {
        let is_own = facts.is_own_offset(k);
        if is_own && !self.is_hardened() {
            self.load_before(A, size, OFFSET);
            self.end_unless_captured(OFFSET);
            let end = Mem::at(X, (k + size.bytes()) as i32);
            return self.out.push(Inst::Address(Width::Half, OFFSET, end));
        }
        self.load_from(A, size, Mem::sum(INPUT, OFFSET, 0));
        self.end_unless_captured(CONSTANT);
        let end = Mem::at(OFFSET, size.bytes() as i32);
        self.out.push(Inst::Address(Width::Full, CONSTANT, end));
        if !is_own {
            let plain = self.out.here();
            self.start_of_area(plain);
        }
        if self.is_hardened() {
            let sum = Mem::sum(X, CONSTANT, 0);
            self.out.push(Inst::Address(Width::Half, OFFSET, sum));
            self.set(CONSTANT, k);
        } else {
            let sum = Mem::at(X, k as i32);
            self.out.push(Inst::Address(Width::Half, OFFSET, sum));
        }
    }

    /// Writes what turns an offset in any area into one from the start of the packet, or ends the program.
    fn start_of_area(&mut self, plain: Label) {
        let half = Width::Half;
        let zero = self.zero();
        let add = Inst::Binary(Binary::Add, Width::Full, OFFSET, CONSTANT);
        self.out.push(add);
        self.load_record(CONSTANT, NETWORK_START);
        let link_bytes = (NETWORK_OFFSET - LINK_OFFSET) as i32;
        let subtract = |bytes| Inst::BinaryImm(Binary::Sub, half, OFFSET, bytes);
        self.out.push(subtract(link_bytes));
        self.out.jump_if(Condition::Below, plain);
        let compare = Inst::BinaryImm(Binary::Cmp, half, OFFSET, link_bytes);
        self.out.push(compare);
        self.out.jump_if(Condition::Below, zero);
        self.out.push(subtract(LINK_OFFSET as i32));
        self.out.jump_if(Condition::NotSign, plain);
        let sign = Inst::Binary(Binary::Test, half, OFFSET, OFFSET);
        self.out.push(sign);
    }

    /// Writes a load of what lies before a place that a register holds.
    fn load_before(&mut self, to: Reg, size: Size, end: Reg) {
        let start = Mem::sum(INPUT, end, -(size.bytes() as i32));
        self.load_from(to, size, start);
    }

    /// Writes the end of the program if a place is behind the readable bytes.
    fn end_unless_captured(&mut self, end: Reg) {
        let zero = self.zero();
        self.out.jump_if(Condition::Above, zero);
        let compare = Inst::Binary(Binary::Cmp, Width::Full, end, CAPTURED);
        self.out.push(compare);
    }

    /// Writes a load in network byte order.
    fn load_from(&mut self, to: Reg, size: Size, from: Mem) {
        match size {
            Size::Byte => self.out.push(Inst::LoadByte(to, from)),
            Size::Half => {
                self.out.push(Inst::SwapLowBytes(to));
                self.out.push(Inst::LoadHalf(to, from));
            }
            Size::Word => {
                self.out.push(Inst::SwapBytes(to));
                self.out.push(Inst::Load(to, from));
            }
        }
    }

    /// Writes a load of a value beside the packet, which ends the program if it isn't known.
    fn load_ancillary(&mut self, ancillary: Ancillary) {
        let zero = self.zero();
        self.load_record(A, ancillary as usize);
        self.out.jump_if(Condition::Equal, zero);
        let known = Mem::at(RECORD, KNOWN as i32 * 4);
        self.out.push(Inst::TestMem(known, 1 << ancillary as u32));
    }

    /// Writes a load of a number of the record.
    fn load_record(&mut self, to: Reg, index: usize) {
        self.uses_record = true;
        self.out
            .push(Inst::Load(to, Mem::at(RECORD, index as i32 * 4)));
    }
}

//! Socket programs as machine code: a function of the bytes of a packet, its length and its ancillary values.
//!
//! A load is preceded by one comparison with the number of bytes, unless an earlier load includes it (`ahead`); outside
//! of the packet it ends the program with 0. A load of device data ends it with A if there is no device. Values in
//! network byte order are swapped.

use std::sync::Arc;

use tamis_bpf::Operand;
use tamis_bpf::interp;
use tamis_bpf::live::Live;
use tamis_bpf::packet::{
    Ancillary, Extra, LINK_OFFSET, Load, NETWORK_OFFSET, Op, Packet, Program, Size,
};

use crate::assembler::Label;
use crate::classic::{A, CONSTANT, Emitter, INPUT, Machine, X};
use crate::memory::{self, Executable, Function};
use crate::program::write;
use crate::ranges::{Area, Facts};
use crate::reduce::{Fetch, Step, map_load, reduced};
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

/// The ancillary values of a packet in the form that the code reads: the values by their numbers, a bit for each known
/// one, and the offset of the network layer.
pub(crate) type Record = [u32; Ancillary::ALL.len() + 2];

const KNOWN: usize = Ancillary::ALL.len();
const NETWORK_START: usize = KNOWN + 1;

/// A packet that the code can be given has fewer bytes: then every offset that it accepts is a place.
const LIMIT_BYTES: usize = 1 << 31;

/// Packets that are looked up ahead of their evaluation, so that their bytes are in the cache by then. Packets that lie a power of two
/// apart share few places of the first cache: of those 2048 bytes apart it has 16.
const AHEAD: usize = 12;

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
    start: Function,
    /// The code is given the bytes of a packet and nothing else if they are fewer: 0 if it reads more.
    plain_limit_bytes: usize,
    /// Whether the code reads the ancillary values.
    uses_record: bool,
    /// For packets that the code can't be given.
    program: Program,
}

impl Socket {
    /// Compiles a program.
    ///
    /// # Errors
    /// If there is no executable memory.
    pub fn compile(program: &Program, options: &Options) -> Result<Socket, Error> {
        let ops: Vec<Op> = program.ops().collect();
        let written = write::<Packets>(&reduced(&ops, options.harden.is_some()), &[], options)?;
        let executable = Executable::new(&written.code).map_err(Error::Unavailable)?;
        let is_plain = !written.uses_record && !written.uses_len;
        Ok(Socket {
            start: Function::new(&Arc::new(executable), written.start),
            plain_limit_bytes: if is_plain { LIMIT_BYTES } else { 0 },
            uses_record: written.uses_record,
            program: program.clone(),
        })
    }

    /// The return value for a packet.
    #[inline]
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        if packet.bytes.len() < self.plain_limit_bytes {
            self.start.call_with_bytes(packet.bytes)
        } else {
            self.run_with_all(packet)
        }
    }

    /// The same if the code reads more than bytes, or there are too many of them.
    #[inline(never)]
    fn run_with_all(&self, packet: &Packet<'_>) -> u32 {
        let (bytes, len_bytes) = (packet.bytes, packet.len_bytes);
        if bytes.len() >= LIMIT_BYTES {
            return interp::run_packet(&self.program, packet).ret;
        }
        let record = match self.uses_record {
            true => record(packet),
            false => [0; KNOWN + 2],
        };
        self.start.call_with_packet(bytes, len_bytes, &record)
    }

    /// The return values for packets, in order. Faster than one by one if the packets are not in the cache: the next
    /// ones are prefetched during an evaluation.
    ///
    /// # Panics
    /// If there are fewer places for return values than packets.
    pub fn run_batch(&self, packets: &[Packet<'_>], rets: &mut [u32]) {
        assert!(rets.len() >= packets.len(), "a place for each return value");
        let (near, _) = packets.split_at(packets.len().min(AHEAD));
        for packet in near {
            memory::prefetch(packet.bytes);
        }
        let last = packets.len() - near.len();
        let (first_rets, last_rets) = rets.split_at_mut(last);
        // One pointer to both packets leaves registers for the rest.
        for (window, ret) in packets.windows(AHEAD + 1).zip(first_rets) {
            memory::prefetch(window[AHEAD].bytes);
            *ret = self.run(&window[0]);
        }
        for (packet, ret) in packets[last..].iter().zip(last_rets) {
            *ret = self.run(packet);
        }
    }

    /// The machine code, for disassemblers. It is independent of its address.
    pub fn code(&self) -> &[u8] {
        self.start.code()
    }

    /// The offset in the code where the program begins.
    pub fn start_bytes(&self) -> usize {
        self.start.offset()
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

/// Where a load goes, and how.
#[derive(Clone, Copy)]
struct Target {
    reg: Reg,
    size: Size,
    /// Whether it stays in the packet's order.
    is_unturned: bool,
    /// As in a [`Fetch`].
    asked_bytes: u32,
}

/// The machine of sockets.
pub(crate) struct Packets;

impl Machine for Packets {
    type Load = Fetch;
    type Extra = Extra;
    type Facts = Facts;
    const START: Facts = Facts::START;
    const NOTHING: Facts = Facts::NOTHING;

    fn load(emitter: &mut Emitter, fetch: Fetch, facts: Facts) {
        let target = |size| Target {
            reg: A,
            size,
            is_unturned: fetch.is_unturned,
            asked_bytes: fetch.asked_bytes,
        };
        match fetch.load {
            Load::Absolute(size, k) => emitter.load_at(target(size), k, facts),
            Load::Indexed(size, k) => emitter.load_indexed(target(size), k, facts),
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
                let target = Target {
                    reg: X,
                    size: Size::Byte,
                    is_unturned: true,
                    asked_bytes: 0,
                };
                emitter.load_at(target, k, facts);
            }
        }
    }

    fn live_before_load(fetch: Fetch, live: Live) -> Option<Live> {
        let uses = match fetch.load {
            Load::Absolute(..) => Live::NONE,
            Load::Indexed(..) => Live::X,
            Load::Ancillary(_, Ancillary::XorX) => {
                return live.meets(Live::A).then_some(live.or(Live::X));
            }
            Load::Ancillary(_, one) if one.is_of_device() => Live::A,
            Load::Ancillary(..) => Live::NONE,
        };
        // It may end the program even if A is dead.
        Some(live.without(Live::A).or(uses))
    }

    fn live_before_extra(extra: Extra, live: Live) -> Option<Live> {
        match extra {
            Extra::Mod(Operand::X) => Some(live.or(Live::A).or(Live::X)),
            Extra::Mod(_) => live.meets(Live::A).then_some(live),
            Extra::LoadXHeaderLen(_) => Some(live.without(Live::X)),
        }
    }

    fn facts_after(step: Step, facts: Facts) -> Facts {
        let after = facts.after(map_load(step, |fetch| fetch.load));
        match step {
            Step::LoadData(fetch) => after.after_asking(fetch.load, fetch.asked_bytes),
            _ => after,
        }
    }

    fn join(one: Facts, other: Facts) -> Facts {
        one.or(other)
    }
}

impl Emitter {
    /// Writes a load from a fixed place.
    fn load_at(&mut self, to: Target, k: u32, facts: Facts) {
        let size = to.size;
        // The bytes that a load tests count as tested from here on, and hardened code tests only for its own bytes.
        assert!(to.asked_bytes == 0 || !self.is_hardened());
        let zero = self.zero();
        match Area::from_offset(k) {
            Area::Nowhere => self.out.jump(zero),
            Area::Packet(start) if self.is_hardened() => {
                let end = start + size.bytes();
                self.load_before(to, OFFSET);
                if end > facts.readable_bytes {
                    self.end_unless_captured(OFFSET);
                }
                self.set(OFFSET, end);
            }
            Area::Packet(start) => {
                let end = to.asked_bytes.max(start + size.bytes());
                self.load_from(to, Mem::at(INPUT, start as i32));
                if end > facts.readable_bytes {
                    // Exactly as many bytes are readable as the place requires.
                    let compare = Binary::Cmp;
                    let compare = Inst::BinaryImm(compare, Width::Half, CAPTURED, end as i32);
                    self.out.jump_if(compare, Condition::Below, zero);
                }
            }
            Area::Network(distance) => {
                self.load_before(to, OFFSET);
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
    fn load_indexed(&mut self, to: Target, k: u32, facts: Facts) {
        let size = to.size;
        // The bytes that a load tests count as tested from here on, and hardened code tests only for its own bytes.
        assert!(to.asked_bytes == 0 || !self.is_hardened());
        let is_own = facts.is_own_offset(k);
        if is_own && !self.is_hardened() {
            let end = to.asked_bytes.max(k + size.bytes());
            self.load_from(to, Mem::sum(INPUT, X, k as i32));
            if end > facts.x_readable_bytes {
                self.end_unless_captured(OFFSET);
                let end = Mem::at(X, end as i32);
                self.out.push(Inst::Address(Width::Half, OFFSET, end));
            }
            return;
        }
        self.load_from(to, Mem::sum(INPUT, OFFSET, 0));
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

    /// Writes the conversion of an offset in any area into one from the start of the packet, or the end of the program.
    fn start_of_area(&mut self, plain: Label) {
        let half = Width::Half;
        let zero = self.zero();
        let add = Inst::Binary(Binary::Add, Width::Full, OFFSET, CONSTANT);
        self.out.push(add);
        self.load_record(CONSTANT, NETWORK_START);
        let link_bytes = (NETWORK_OFFSET - LINK_OFFSET) as i32;
        let subtract = |bytes| Inst::BinaryImm(Binary::Sub, half, OFFSET, bytes);
        self.out.push(subtract(link_bytes));
        let compare = Inst::BinaryImm(Binary::Cmp, half, OFFSET, link_bytes);
        self.out.jump_if(compare, Condition::Below, plain);
        let subtract = subtract(LINK_OFFSET as i32);
        self.out.jump_if(subtract, Condition::Below, zero);
        let sign = Inst::Binary(Binary::Test, half, OFFSET, OFFSET);
        self.out.jump_if(sign, Condition::NotSign, plain);
    }

    /// Writes a load of the value before a place in a register.
    fn load_before(&mut self, to: Target, end: Reg) {
        let start = Mem::sum(INPUT, end, -(to.size.bytes() as i32));
        self.load_from(to, start);
    }

    /// Writes the end of the program if a place is behind the readable bytes.
    fn end_unless_captured(&mut self, end: Reg) {
        let zero = self.zero();
        let compare = Inst::Binary(Binary::Cmp, Width::Full, end, CAPTURED);
        self.out.jump_if(compare, Condition::Above, zero);
    }

    /// Writes a load of bytes that are there.
    fn load_from(&mut self, to: Target, from: Mem) {
        let Target { reg, size, .. } = to;
        match size {
            Size::Half if !to.is_unturned => self.out.push(Inst::SwapLowBytes(reg)),
            Size::Word if !to.is_unturned => self.out.push(Inst::SwapBytes(reg)),
            _ => {}
        }
        self.out.push(match size {
            Size::Byte => Inst::LoadByte(reg, from),
            Size::Half => Inst::LoadHalf(reg, from),
            Size::Word => Inst::Load(reg, from),
        });
    }

    /// Writes a load of a value beside the packet, which ends the program if it isn't known.
    fn load_ancillary(&mut self, ancillary: Ancillary) {
        let end = match ancillary.is_of_device() {
            true => self.end(),
            false => self.zero(),
        };
        self.load_record(A, ancillary as usize);
        let known = Mem::at(RECORD, KNOWN as i32 * 4);
        let test = Inst::TestMem(known, 1 << ancillary as u32);
        self.out.jump_if(test, Condition::Equal, end);
    }

    /// Writes a load of a number of the record.
    fn load_record(&mut self, to: Reg, index: usize) {
        self.uses_record = true;
        self.out
            .push(Inst::Load(to, Mem::at(RECORD, index as i32 * 4)));
    }
}

//! The loads of socket filters as gates, and whether two socket filters return the same value for every packet.
//!
//! A packet is any bytes. Its length, its ancillary values and each byte at a constant offset are variables. Bytes at a
//! computed offset are variables, too: the same ones for the same gates of the offset. So two filters that agree do so
//! on every packet; for two that don't agree the result is unknown, because the bytes at one place may be several
//! variables.
//!
//! Offsets are counted from the start of the packet or from the header of a layer. The places of these headers in the
//! packet depend on the socket, and so does the number of readable bytes after them. So each of the three [areas](Area)
//! has its own bytes and its own end, and they are never assumed to be equal.
//!
//! Packets of 2^32 bytes and more are not included.

use tamis_abi::hash::WordHashMap;
use tamis_bpf::packet::{Ancillary, Extra, LINK_OFFSET, Load, NETWORK_OFFSET, Op, Program, Size};
use tamis_bpf::{AluOp, Test};

use super::graph::{Gate, Gates};
use super::program::{Input, Loaded, Machine, right, sweep};
use super::solve;
use super::words::{self, Bits};
use crate::diagram::{LimitReached, Limited};
use crate::space::Limits;
use crate::stop::Stop;

/// From where an offset is counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Area {
    /// From the start of the packet.
    Start,
    /// From the header of the link layer.
    Link,
    /// From the header of the network layer.
    Network,
}

/// A variable of the packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Unknown {
    /// How many bytes of an area can be read.
    Readable(Area),
    /// The length of the whole packet.
    Length,
    /// The byte at a distance from the start of an area.
    Byte(Area, u32),
    /// The bytes at an unknown offset.
    Bytes(Size, Bits),
    /// Whether a value beside the packet is known, in the lowest bit.
    IsKnown(Ancillary),
    /// The value.
    Value(Ancillary),
    /// A value that depends on A and X.
    ValueFor(Ancillary, Bits, Bits),
}

/// The first bit of an offset's place within an area.
const AREA_BITS: usize = NETWORK_OFFSET.trailing_zeros() as usize;
const _: () = assert!(LINK_OFFSET == NETWORK_OFFSET << 1);

/// A packet with its ancillary values.
#[derive(Default)]
struct Packet {
    /// The numbers of the first bits.
    firsts: WordHashMap<Unknown, u32>,
}

/// Whether two filters return the same value for every packet, in any circumstances; false if that can't be shown: they
/// may differ, or look at one byte in two ways.
///
/// ```
/// use tamis_bpf::packet::{Load, Op, Program, Size};
/// use tamis_prover::{Limits, Stop, agree_on_packets};
/// let load = |size, at| Op::LoadData(Load::Absolute(size, at));
/// let program = |ops: &[Op]| Program::from_ops(ops).unwrap();
/// let one = program(&[load(Size::Half, 12), load(Size::Byte, 3), Op::RetA]);
/// let agree = |other: &[Op]| agree_on_packets(&one, &program(other), &Limits::default(), &Stop::default());
/// assert_eq!(agree(&[load(Size::Half, 12), Op::LoadImm(0), load(Size::Byte, 3), Op::RetA]), Ok(true));
/// assert_eq!(agree(&[load(Size::Byte, 3), Op::RetA]), Ok(false));
/// ```
///
/// # Errors
/// If a limit is reached, or the caller stops.
pub fn agree_on_packets(
    left: &Program,
    right: &Program,
    limits: &Limits,
    stop: &Stop,
) -> Limited<bool> {
    if left.ops().chain(right.ops()).any(differs_each_time) {
        return Ok(false);
    }
    let mut gates = Gates::new(limits.max_gates, stop.clone());
    let mut packet = Packet::default();
    let mut returned = |program: &Program| {
        let op_at = |pc| program.op(pc);
        sweep(
            &mut gates,
            &mut packet,
            program.len(),
            op_at,
            &mut |_, _| (),
        )
    };
    let (left, right) = (returned(left)?, returned(right)?);
    let differ = words::equal(&mut gates, &left, &right)?.not();
    let found = solve::input_for(&gates, differ, limits.max_conflicts, stop)?;
    Ok(found.is_none())
}

/// Whether a value is another one each time.
fn differs_each_time(op: Op) -> bool {
    matches!(
        op,
        Op::LoadData(Load::Ancillary(_, Ancillary::Random | Ancillary::Cpu))
    )
}

/// The value of bits that are known.
fn known(bits: &Bits) -> Option<u32> {
    let mut value = 0;
    for (number, bit) in bits.iter().enumerate() {
        match *bit {
            Gate::TRUE => value |= 1 << number,
            Gate::FALSE => {}
            _ => return None,
        }
    }
    Some(value)
}

impl Packet {
    /// The bits of a variable, from the lowest one on.
    fn unknown(&mut self, gates: &mut Gates, unknown: Unknown) -> Limited<Bits> {
        let count = match unknown {
            Unknown::IsKnown(_) => 1,
            Unknown::Byte(..) => 8,
            Unknown::Bytes(size, _) => 8 * size.bytes(),
            _ => 32,
        };
        // Each has as many numbers as a word has bits.
        let count_before = u32::try_from(self.firsts.len()).ok();
        let next = count_before.and_then(|count| count.checked_mul(u32::BITS));
        let first = *self
            .firsts
            .entry(unknown)
            .or_insert(next.ok_or(LimitReached::Gates)?);
        let mut bits = words::constant(0);
        for (number, bit) in (first..).zip(&mut bits[..count as usize]) {
            *bit = gates.free(number)?;
        }
        Ok(bits)
    }

    /// How many bytes can be read from where an offset is counted, and the distance from there. None can be read from
    /// offsets that aren't counted from anywhere.
    fn area(&mut self, gates: &mut Gates, offset: &Bits) -> Limited<(Bits, Bits)> {
        let in_layers = offset[AREA_BITS + 1..].iter();
        let in_layers = in_layers
            .copied()
            .try_fold(Gate::TRUE, |all, bit| gates.and(all, bit))?;
        let mut distance = *offset;
        distance[AREA_BITS..].fill(Gate::FALSE);
        let [start, link, network] = [Area::Start, Area::Link, Area::Network]
            .map(|area| self.unknown(gates, Unknown::Readable(area)));
        let from_layer = words::select(gates, offset[AREA_BITS], &network?, &link?)?;
        let from_start = words::select(gates, offset[31], &words::constant(0), &start?)?;
        let readable = words::select(gates, in_layers, &from_layer, &from_start)?;
        let distance = words::select(gates, in_layers, &distance, offset)?;
        Ok((readable, distance))
    }

    /// The condition that a load ends inside of the packet, and the loaded value.
    fn bytes(&mut self, gates: &mut Gates, size: Size, offset: &Bits) -> Limited<(Gate, Bits)> {
        let (readable, distance) = self.area(gates, offset)?;
        let count = words::constant(size.bytes());
        let is_long_enough = words::test(gates, Test::Ge, &readable, &count)?;
        let last = words::alu(gates, AluOp::Sub, &readable, &count)?;
        let is_before_last = words::test(gates, Test::Ge, &last, &distance)?;
        let is_inside = gates.and(is_long_enough, is_before_last)?;
        let value = match known(offset) {
            None => self.unknown(gates, Unknown::Bytes(size, *offset))?,
            // The last byte is the lowest.
            Some(offset) => {
                let (area, first) = match offset {
                    NETWORK_OFFSET.. => (Area::Network, offset - NETWORK_OFFSET),
                    LINK_OFFSET.. => (Area::Link, offset - LINK_OFFSET),
                    _ => (Area::Start, offset),
                };
                let mut value = words::constant(0);
                for (at, eight) in (0..size.bytes()).rev().zip(value.chunks_exact_mut(8)) {
                    // No sum overflows: an offset from the start is below `LINK_OFFSET`.
                    let byte = self.unknown(gates, Unknown::Byte(area, first + at))?;
                    eight.copy_from_slice(&byte[..8]);
                }
                value
            }
        };
        Ok((is_inside, value))
    }

    fn ancillary(
        &mut self,
        gates: &mut Gates,
        ancillary: Ancillary,
        machine: &Machine,
    ) -> Limited<Loaded> {
        let Machine { a, x, .. } = machine;
        let value = match ancillary {
            Ancillary::XorX => {
                let value = words::alu(gates, AluOp::Xor, a, x)?;
                return Ok(Loaded::or_zero((Gate::TRUE, value)));
            }
            Ancillary::NetlinkAttribute | Ancillary::NetlinkNested => {
                Unknown::ValueFor(ancillary, *a, *x)
            }
            _ => Unknown::Value(ancillary),
        };
        let [is_known, ..] = self.unknown(gates, Unknown::IsKnown(ancillary))?;
        let mut loaded = Loaded::or_zero((is_known, self.unknown(gates, value)?));
        // A packet without a device.
        if let Ancillary::InterfaceIndex | Ancillary::HardwareType = ancillary {
            loaded.returned = *a;
        }
        Ok(loaded)
    }
}

impl Input for Packet {
    type Load = Load;
    type Extra = Extra;

    fn len(&mut self, gates: &mut Gates) -> Limited<Bits> {
        self.unknown(gates, Unknown::Length)
    }

    fn load(&mut self, gates: &mut Gates, load: Load, machine: &Machine) -> Limited<Loaded> {
        let (size, offset) = match load {
            Load::Absolute(size, k) => (size, words::constant(k)),
            Load::Indexed(size, k) => {
                let k = words::constant(k);
                (size, words::alu(gates, AluOp::Add, &machine.x, &k)?)
            }
            Load::Ancillary(_, ancillary) => return self.ancillary(gates, ancillary, machine),
        };
        self.bytes(gates, size, &offset).map(Loaded::or_zero)
    }

    fn extra(&mut self, gates: &mut Gates, extra: Extra, machine: &mut Machine) -> Limited<Gate> {
        match extra {
            Extra::Mod(operand) => {
                let divisor = right(gates, operand, machine)?;
                (_, machine.a) = words::divide(gates, &machine.a, &divisor)?;
                words::is_not_zero(gates, &divisor)
            }
            Extra::LoadXHeaderLen(k) => {
                let (goes_on, byte) = self.bytes(gates, Size::Byte, &words::constant(k))?;
                machine.x = words::constant(0);
                machine.x[2..6].copy_from_slice(&byte[..4]);
                Ok(goes_on)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tamis_bpf::packet::{self, Metadata};
    use tamis_bpf::{Operand, interp};

    use super::super::graph::Driver;
    use super::*;

    const KNOWN: Metadata = Metadata::NONE
        .with(Ancillary::Protocol, 0x800)
        .with(Ancillary::Mark, 9);

    fn is_set(values: &[bool], gate: Gate) -> bool {
        values[gate.number()] != gate.is_inverted()
    }

    fn number(values: &[bool], bits: &Bits) -> u32 {
        let bits = bits.iter().enumerate();
        bits.fold(0, |sum, (bit, gate)| {
            sum | u32::from(is_set(values, *gate)) << bit
        })
    }

    /// The value of a variable for a packet. Beyond the packet any value is correct.
    fn value(unknown: Unknown, values: &[bool], packet: &packet::Packet<'_>) -> u32 {
        const ANY: u32 = 0xa5a5_a5a5;
        match unknown {
            Unknown::Readable(Area::Network) => {
                let all = packet.bytes.len() as u32;
                all.saturating_sub(packet.network_start)
            }
            Unknown::Readable(_) => packet.bytes.len() as u32,
            Unknown::Length => packet.len_bytes,
            Unknown::Byte(area, distance) => {
                let start = match area {
                    Area::Start | Area::Link => Some(distance),
                    Area::Network => distance.checked_add(packet.network_start),
                };
                let value = start.and_then(|start| packet.value(Size::Byte, start));
                value.unwrap_or(ANY)
            }
            Unknown::Bytes(size, offset) => {
                packet.value(size, number(values, &offset)).unwrap_or(ANY)
            }
            Unknown::IsKnown(one) => packet.metadata.get(one).is_some().into(),
            Unknown::Value(one) | Unknown::ValueFor(one, ..) => {
                packet.metadata.get(one).unwrap_or(ANY)
            }
        }
    }

    /// Compares the value of a program's circuit for packets with the interpreter's.
    fn assert_meant(ops: &[Op], packets: &[packet::Packet<'_>]) {
        let program = Program::from_ops(ops).unwrap();
        let mut gates = Gates::new(1 << 20, Stop::default());
        let mut model = Packet::default();
        let op_at = |pc| program.op(pc);
        let returned = sweep(&mut gates, &mut model, program.len(), op_at, &mut |_, _| ());
        let returned = returned.unwrap();
        let unknowns: HashMap<u32, Unknown> = model
            .firsts
            .iter()
            .map(|(unknown, first)| (first / 32, *unknown))
            .collect();
        for packet in packets {
            // A gate comes after its inputs, and an offset before its bytes.
            let mut values: Vec<bool> = Vec::with_capacity(gates.len());
            for driver in (0..gates.len()).map(|number| gates.driver(number)) {
                let is_true = match driver {
                    Driver::False => false,
                    Driver::And(a, b) => is_set(&values, a) && is_set(&values, b),
                    Driver::Free(bit) => {
                        value(unknowns[&(bit / 32)], &values, packet) >> (bit % 32) & 1 == 1
                    }
                    Driver::Input(..) => panic!("a packet has no words"),
                };
                values.push(is_true);
            }
            let expected = interp::run_packet(&program, packet).ret;
            assert_eq!(number(&values, &returned), expected, "{packet:x?} {ops:x?}");
        }
    }

    #[test]
    fn circuits_give_what_the_interpreter_gives() {
        let bytes = [3, 0x12, 0xf4, 0x45, 0x80, 6, 7, 8];
        let mut packets = Vec::new();
        for len in 0..=bytes.len() {
            for network_start in [0, 2, u32::MAX] {
                packets.push(packet::Packet {
                    network_start,
                    len_bytes: 0xffff_fffd,
                    metadata: &KNOWN,
                    ..packet::Packet::new(&bytes[..len])
                });
            }
        }
        let places = [0, 1, 5, 7, 8, 0x7fff_fffd, 0x7fff_ffff, 0x8000_0000];
        let areas = [
            LINK_OFFSET - 1,
            LINK_OFFSET,
            NETWORK_OFFSET - 1,
            NETWORK_OFFSET,
        ];
        let near = [LINK_OFFSET + 3, NETWORK_OFFSET + 3, u32::MAX, u32::MAX - 3];
        for k in places.into_iter().chain(areas).chain(near) {
            if k < Ancillary::FIRST_OFFSET {
                let header_len = Op::Extra(Extra::LoadXHeaderLen(k));
                assert_meant(&[header_len, Op::Txa, Op::RetA], &packets);
            }
            for size in Size::ALL {
                if k < Ancillary::FIRST_OFFSET {
                    let absolute = Op::LoadData(Load::Absolute(size, k));
                    assert_meant(&[absolute, Op::RetA], &packets);
                }
                // X is 0, 4, the length of the packet, or a large number that isn't known.
                let at_x = Op::LoadData(Load::Indexed(size, k));
                let last = Op::LoadData(Load::Absolute(Size::Word, 2));
                for x in [
                    &[][..],
                    &[Op::LoadXImm(4)],
                    &[Op::LoadXLen],
                    &[last, Op::Tax],
                ] {
                    assert_meant(&[x, &[at_x, Op::RetA]].concat(), &packets);
                }
            }
        }
        let word = Op::LoadData(Load::Absolute(Size::Word, 0));
        let index = Op::Extra(Extra::LoadXHeaderLen(2));
        let beside = |one| Op::LoadData(Load::Ancillary(Size::Word, one));
        for op in [
            Op::Extra(Extra::Mod(Operand::X)),
            Op::Extra(Extra::Mod(Operand::K(10))),
            Op::Alu(AluOp::Div, Operand::X),
            Op::LoadLen,
            beside(Ancillary::XorX),
            beside(Ancillary::Protocol),
            beside(Ancillary::Queue),
            beside(Ancillary::InterfaceIndex),
            beside(Ancillary::HardwareType),
            beside(Ancillary::NetlinkAttribute),
        ] {
            assert_meant(&[word, index, op, Op::RetA], &packets);
            assert_meant(&[word, op, Op::RetA], &packets);
        }
    }

    fn agree(left: &[Op], right: &[Op]) -> bool {
        let [left, right] = [left, right].map(|ops| Program::from_ops(ops).unwrap());
        agree_on_packets(&left, &right, &Limits::default(), &Stop::default()).unwrap()
    }

    fn byte(at: u32) -> Op {
        Op::LoadData(Load::Absolute(Size::Byte, at))
    }

    /// The places of headers are unknown, and so are bytes beyond the end of an area.
    #[test]
    fn no_byte_of_one_area_is_taken_for_one_of_another() {
        let starts = [0, LINK_OFFSET, NETWORK_OFFSET];
        for at in starts {
            for other in starts {
                let load = Op::LoadData(Load::Indexed(Size::Byte, other.wrapping_sub(3)));
                let indexed = [Op::LoadXImm(3), load, Op::RetA];
                assert_eq!(agree(&[byte(at), Op::RetA], &indexed), at == other);
                // A load that reaches as far in another area permits nothing in this one.
                let both = [byte(other + 1), byte(at), Op::RetImm(1)];
                assert_eq!(agree(&both, &[byte(other + 1), Op::RetImm(1)]), at == other);
            }
        }
        let half = |at| [Op::LoadData(Load::Absolute(Size::Half, at)), Op::RetImm(1)];
        for (last, next) in [
            (NETWORK_OFFSET - 1, NETWORK_OFFSET),
            (LINK_OFFSET - 1, LINK_OFFSET),
        ] {
            assert!(!agree(&half(last), &[byte(next), Op::RetImm(1)]));
        }
    }

    #[test]
    fn a_packet_without_a_device_returns_a() {
        for one in [Ancillary::InterfaceIndex, Ancillary::HardwareType] {
            let load = Op::LoadData(Load::Ancillary(Size::Word, one));
            let plain = [load, Op::RetImm(1)];
            assert!(!agree(&[Op::LoadImm(5), load, Op::RetImm(1)], &plain));
            assert!(agree(&[Op::LoadImm(0), load, load, Op::RetImm(1)], &plain));
            // The second load can't end it.
            let twice = [byte(0), load, Op::LoadImm(5), load, Op::RetImm(1)];
            assert!(agree(&twice, &[byte(0), load, Op::RetImm(1)]));
        }
        let mark = Op::LoadData(Load::Ancillary(Size::Word, Ancillary::Mark));
        let plain = [mark, Op::RetImm(1)];
        assert!(agree(&[Op::LoadImm(5), mark, Op::RetImm(1)], &plain));
    }
}

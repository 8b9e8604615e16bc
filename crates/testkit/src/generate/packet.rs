//! Random programs of sockets, and packets that cover their branches.

use tamis_bpf::packet::{Ancillary, Extra, Load, Metadata, Op, Packet, Program, Size};
use tamis_bpf::{Insn, Operand};

use super::program::op;
use crate::rng::Rng;

/// The ancillary values of a packet from another socket of the machine: such a packet has no device.
pub const METADATA_OF_LOCAL_PACKETS: Metadata = Metadata::NONE
    .with(Ancillary::Protocol, 0)
    .with(Ancillary::PacketType, 0)
    .with(Ancillary::Mark, 0)
    .with(Ancillary::Queue, 0)
    .with(Ancillary::FlowHash, 0)
    .with(Ancillary::VlanTag, 0)
    .with(Ancillary::HasVlanTag, 0)
    .with(Ancillary::VlanProtocol, 0);

/// The ancillary values that programs load here: those of local packets, and those of a device, which may be missing.
pub fn answered() -> Vec<Ancillary> {
    let is_answered =
        |one: &Ancillary| one.is_of_device() || METADATA_OF_LOCAL_PACKETS.get(*one).is_some();
    Ancillary::ALL.into_iter().filter(is_answered).collect()
}

/// A program of at least `body_insns` random instructions, which return A at the end. It loads only the [`answered`]
/// ancillary values.
pub fn program(rng: &mut Rng, body_insns: usize) -> Program {
    let len_insns = body_insns + 2;
    let mut insns = vec![Insn::from(load(rng))];
    while insns.len() < len_insns - 1 {
        let behind = len_insns - insns.len() - 1;
        insns.push(op(rng, behind, own).into());
    }
    insns.push(Op::RetA.into());
    // The random choice does not avoid reads of slots that are not written on some path.
    loop {
        match Program::new(insns.clone()) {
            Ok(program) => return program,
            Err(problem) => insns[problem.pc.0] = Op::Store(rng.range(0..=15) as u32).into(),
        }
    }
}

/// Instructions that only sockets take, mostly loads.
fn own(rng: &mut Rng) -> Op {
    match rng.range(0..=9) {
        0 => Op::Extra(Extra::LoadXHeaderLen(place(rng))),
        1 => Op::Extra(Extra::Mod(Operand::X)),
        2 => Op::Extra(Extra::Mod(Operand::K(rng.range(1..=1000) as u32))),
        _ => load(rng),
    }
}

fn load(rng: &mut Rng) -> Op {
    let size = *rng.choose(&Size::ALL);
    Op::LoadData(match rng.range(0..=9) {
        0 => {
            let mut all = answered();
            all.push(Ancillary::XorX);
            Load::Ancillary(size, *rng.choose(&all))
        }
        1..=3 => Load::Indexed(size, place(rng)),
        _ => Load::Absolute(size, place(rng)),
    })
}

/// A place that is mostly inside of a packet.
fn place(rng: &mut Rng) -> u32 {
    match rng.range(0..=19) {
        0 => rng.range(60..=70) as u32,
        1 => rng.interesting_u64() as u32 & 0x7fff_ffff,
        _ => rng.range(0..=59) as u32,
    }
}

/// The bytes of a packet of 2 to 64 bytes, mostly long, with words near constants of the program.
pub fn bytes(rng: &mut Rng, program: &Program) -> Vec<u8> {
    let len_bytes = match rng.range(0..=3) {
        0 => rng.range(2..=64),
        _ => 64,
    };
    let mut bytes: Vec<u8> = Vec::with_capacity(68);
    while (bytes.len() as u64) < len_bytes {
        let near = rng.choose(program.insns()).k;
        match rng.range(0..=3) {
            0 => bytes.extend(near.to_be_bytes()),
            1 => bytes.extend((near as u16).to_be_bytes()),
            2 => bytes.push(near as u8),
            _ => bytes.push(rng.next_u32() as u8),
        }
    }
    bytes.truncate(len_bytes as usize);
    bytes
}

/// The same of a packet from a device.
const METADATA_WITH_DEVICE: Metadata = METADATA_OF_LOCAL_PACKETS
    .with(Ancillary::InterfaceIndex, 2)
    .with(Ancillary::HardwareType, 1);

/// These bytes as a packet that comes from a device or another socket of the machine.
pub fn from_anywhere<'a>(rng: &mut Rng, bytes: &'a [u8]) -> Packet<'a> {
    Packet {
        metadata: rng.choose(&[METADATA_OF_LOCAL_PACKETS, METADATA_WITH_DEVICE]),
        ..local(bytes)
    }
}

/// These bytes as a packet from another socket of the machine.
pub fn local(bytes: &[u8]) -> Packet<'_> {
    Packet {
        network_start: 0,
        metadata: &METADATA_OF_LOCAL_PACKETS,
        ..Packet::new(bytes)
    }
}

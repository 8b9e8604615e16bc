//! The memory and the helpers on which converted classic programs run.
//!
//! [`tamis_ebpf::convert`] makes the programs; the context of one is `struct seccomp_data` or a part of `struct sk_buff`.

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::convert::{context, helper};
use tamis_bpf::packet::{self, Ancillary, Packet};
pub use tamis_ebpf::convert::{converted, converted_packet, listing};

use crate::memory::{Argument, CONTEXT, Helpers, Memory, PACKET};

/// The size of the context of a converted seccomp filter, `struct seccomp_data`.
pub const SECCOMP_CONTEXT_BYTES: usize = 64;

/// The bytes of a call in the memory of a machine.
///
/// ```
/// use tamis_abi::{Endian, SeccompData};
/// use tamis_ebpf_vm::convert::{converted, seccomp_context};
/// use tamis_ebpf_vm::memory::{Context, Helpers, Memory};
/// let filter = vec![tamis_bpf::Op::LoadData(4).into(), tamis_bpf::Op::RetA.into()];
/// let filter = tamis_bpf::Program::new(filter, Endian::Little).unwrap();
/// let program = converted(&filter).unwrap();
/// let call = SeccompData { arch: 7, ..SeccompData::default() };
/// let context = seccomp_context(&call, Endian::Little);
/// let mut memory = Memory::new(Context::ReadOnly(&context), &[], Endian::Little);
/// let run = tamis_ebpf_vm::interp::run(&program, &mut memory, &mut Helpers::none(), 10);
/// assert_eq!(run.unwrap().ret, 7);
/// ```
pub fn seccomp_context(call: &SeccompData, endian: Endian) -> [u8; SECCOMP_CONTEXT_BYTES] {
    let mut bytes = [0; SECCOMP_CONTEXT_BYTES];
    for (word, at) in call.image(endian).iter().zip(bytes.as_chunks_mut().0) {
        *at = match endian {
            Endian::Little => word.to_le_bytes(),
            Endian::Big => word.to_be_bytes(),
        };
    }
    bytes
}

/// The context of a packet, whose bytes are the packet of the [`Memory`]. Values that aren't known are 0.
pub fn packet_context(packet: &Packet<'_>, endian: Endian) -> [u8; context::BYTES] {
    let mut bytes = [0; context::BYTES];
    let mut put = |offset: i16, size: usize, value: u64| {
        let at = offset as usize..offset as usize + size;
        match endian {
            Endian::Little => bytes[at].copy_from_slice(&value.to_le_bytes()[..size]),
            Endian::Big => bytes[at].copy_from_slice(&value.to_be_bytes()[8 - size..]),
        }
    };
    let known = |ancillary| packet.metadata.get(ancillary);
    let value = |ancillary| u64::from(known(ancillary).unwrap_or(0));
    let captured = packet.bytes.len() as u64;
    put(context::DATA, 8, PACKET);
    put(context::LEN, 4, u64::from(packet.len_bytes));
    put(
        context::DATA_LEN,
        4,
        u64::from(packet.len_bytes).wrapping_sub(captured),
    );
    put(context::MARK, 4, value(Ancillary::Mark));
    put(context::HASH, 4, value(Ancillary::FlowHash));
    put(context::VLAN_TAG, 2, value(Ancillary::VlanTag));
    put(context::QUEUE, 2, value(Ancillary::Queue));
    let device = [Ancillary::InterfaceIndex, Ancillary::HardwareType];
    if device.iter().any(|one| known(*one).is_some()) {
        put(context::DEVICE, 8, CONTEXT + context::OWN_DEVICE as u64);
        put(context::OWN_DEVICE, 4, value(device[0]));
        let hardware_type = context::OWN_DEVICE + context::HARDWARE_TYPE;
        put(hardware_type, 2, value(device[1]));
    }
    let packet_type = value(Ancillary::PacketType);
    let shift = if endian == Endian::Big { 5 } else { 0 };
    put(context::PACKET_TYPE, 1, packet_type << shift);
    for (offset, ancillary) in [
        (context::PROTOCOL, Ancillary::Protocol),
        (context::VLAN_PROTOCOL, Ancillary::VlanProtocol),
    ] {
        let at = offset as usize..offset as usize + 2;
        bytes[at].copy_from_slice(&(value(ancillary) as u16).to_be_bytes());
    }
    bytes
}

/// The helpers of converted filters of sockets, for one packet. They answer from what is known of it, so a netlink
/// attribute, which is searched for, is always the same.
pub fn packet_helpers<'h>(packet: &'h Packet<'_>) -> Helpers<'h> {
    let mut helpers = Helpers::none();
    for (number, size) in [
        (helper::LOAD_BYTE, packet::Size::Byte),
        (helper::LOAD_HALF, packet::Size::Half),
        (helper::LOAD_WORD, packet::Size::Word),
    ] {
        let load = move |[_, _, _, offset, _]: [u64; 5], _: &mut Memory<'_>| {
            let value = packet.value(size, offset as u32);
            Ok(value.map_or(u64::MAX, u64::from))
        };
        let anything = Argument::Anything;
        let signature = vec![Argument::Context, anything, anything, Argument::Scalar];
        helpers.register(number, signature, Box::new(load));
    }
    for (number, ancillary) in [
        (helper::PAYLOAD_OFFSET, Ancillary::PayloadOffset),
        (helper::NETLINK_ATTRIBUTE, Ancillary::NetlinkAttribute),
        (helper::NETLINK_NESTED, Ancillary::NetlinkNested),
        (helper::CPU, Ancillary::Cpu),
        (helper::RANDOM, Ancillary::Random),
    ] {
        let value = u64::from(packet.metadata.get(ancillary).unwrap_or(0));
        let signature = vec![Argument::Context, Argument::Scalar, Argument::Scalar];
        helpers.register(number, signature, Box::new(move |_, _| Ok(value)));
    }
    helpers
}

#[cfg(test)]
mod tests {
    use tamis_bpf::convert::JumpTooFar;
    use tamis_bpf::interp::run_packet;
    use tamis_bpf::packet::{Load, Metadata, Op, Size};

    use super::*;
    use crate::interp::{Execution, run};
    use crate::memory::Context;

    fn filter(ops: &[Op]) -> packet::Program {
        packet::Program::new(ops.iter().copied().map(Into::into).collect()).unwrap()
    }

    fn extended(filter: &packet::Program, packet: &Packet<'_>, endian: Endian) -> u64 {
        let program = converted_packet(filter, endian).unwrap();
        let context = packet_context(packet, endian);
        let mut memory = Memory::new(Context::ReadOnly(&context), packet.bytes, endian);
        let Execution { ret, .. } =
            run(&program, &mut memory, &mut packet_helpers(packet), 100).unwrap();
        ret
    }

    #[test]
    fn every_value_beside_the_packet_is_the_one_that_is_known() {
        let value = |one: Ancillary| match one {
            // Three bits, and whether there is a tag.
            Ancillary::PacketType => 5,
            Ancillary::HasVlanTag => 1,
            other => 0x1230 + other as u32,
        };
        let all = Ancillary::ALL.into_iter();
        let metadata = all.fold(Metadata::default(), |known, one| {
            known.with(one, value(one))
        });
        let packet = Packet {
            metadata: &metadata,
            ..Packet::new(&[1, 2, 3, 4][..])
        };
        for one in Ancillary::ALL {
            let load = Op::LoadData(Load::Ancillary(Size::Word, one));
            let filter = filter(&[Op::LoadImm(6), Op::LoadXImm(3), load, Op::RetA]);
            let expected = u64::from(run_packet(&filter, &packet).ret);
            for endian in [Endian::Little, Endian::Big] {
                assert_eq!(
                    extended(&filter, &packet, endian),
                    expected,
                    "{one:?} {endian:?}"
                );
            }
        }
    }

    #[test]
    fn places_are_compared_with_what_was_captured() {
        let mut packet = Packet::new(&[0x11, 0x22, 0x33, 0x44, 0x55][..]);
        packet.len_bytes = 9;
        packet.network_start = 2;
        for (size, k) in [
            (Size::Byte, 4),
            (Size::Byte, 5),
            (Size::Half, 3),
            (Size::Half, 4),
            (Size::Word, 1),
            (Size::Word, 0x7fff_ffff),
            (Size::Byte, 0xfff0_0001),
            (Size::Half, 0xffe0_0000),
            (Size::Byte, 0x8000_0000),
        ] {
            for load in [
                Load::Absolute(size, k),
                Load::Indexed(size, k.wrapping_sub(7)),
            ] {
                let filter = filter(&[Op::LoadXImm(7), Op::LoadData(load), Op::RetA]);
                let expected = u64::from(run_packet(&filter, &packet).ret);
                for endian in [Endian::Little, Endian::Big] {
                    assert_eq!(extended(&filter, &packet, endian), expected, "{load:?}");
                }
            }
        }
        let length = filter(&[Op::LoadXLen, Op::Txa, Op::RetA]);
        assert_eq!(extended(&length, &packet, Endian::Big), 9);
    }

    #[test]
    fn a_jump_over_too_many_loads_is_not_converted() {
        let load = Op::LoadData(Load::Absolute(Size::Word, 40_000));
        let jumping_over = |loads: usize| {
            let ops = [Op::Jump(loads as u32)].into_iter();
            let ops = ops
                .chain(std::iter::repeat_n(load, loads))
                .chain([Op::RetA]);
            converted_packet(&filter(&ops.collect::<Vec<Op>>()), Endian::Little).map(|_| ())
        };
        assert_eq!(jumping_over(1900), Ok(()));
        assert_eq!(jumping_over(2100), Err(JumpTooFar { pc: crate::Pc(0) }));
    }
}

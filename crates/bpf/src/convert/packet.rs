//! The conversion of socket filters.
//!
//! Loads from the packet become a comparison with the length of the linear data, a load, and otherwise a call of a
//! helper. The kernel's context is its `sk_buff`, whose layout differs between builds; here it is a structure with the
//! fields that conversion needs ([`context`]), and helpers have numbers ([`helper`]) instead of addresses.

use tamis_abi::Endian;

use super::{
    EXIT, JumpTooFar, MOD, Own, PROLOGUE, Step, alu32, alu32_imm, alu32_operand, common, joined,
    load, mov64, plain, register,
};
use crate::extended::{Insn, code};
use crate::packet::{Ancillary, Extra, Load, Op, Program, Size};

/// The context of converted socket filters: offsets of fields, in bytes. Numbers are in the machine's order unless
/// stated otherwise.
pub mod context {
    /// The size of the context.
    pub const BYTES: usize = 56;
    /// 8 bytes: the address of the packet.
    pub const DATA: i16 = 0;
    /// 8 bytes: the address of the device, or 0. A device has 4 bytes for its index and 2 for its hardware type.
    pub const DEVICE: i16 = 8;
    /// 4 bytes: the length of the whole packet.
    pub const LEN: i16 = 16;
    /// 4 bytes: how much of it does not lie at its address.
    pub const DATA_LEN: i16 = 20;
    /// 4 bytes: the mark.
    pub const MARK: i16 = 24;
    /// 4 bytes: the hash of the flow.
    pub const HASH: i16 = 28;
    /// 4 bytes: both fields of VLANs, which are 0 if there is no tag.
    pub const VLAN: i16 = 32;
    /// 2 bytes in network order: the protocol of the tag.
    pub const VLAN_PROTOCOL: i16 = 32;
    /// 2 bytes: the tag.
    pub const VLAN_TAG: i16 = 34;
    /// 2 bytes in network order: the protocol of the link layer.
    pub const PROTOCOL: i16 = 36;
    /// 2 bytes: the queue.
    pub const QUEUE: i16 = 38;
    /// 1 byte: the type of the packet, in the bits that are the first of a bit field.
    pub const PACKET_TYPE: i16 = 40;
    /// Where the device is that [`DEVICE`] may point to.
    pub const OWN_DEVICE: i16 = 48;
    /// The offset of the hardware type in a device.
    pub const HARDWARE_TYPE: i16 = 4;
}

/// The numbers of helpers. The kernel's own helpers have small numbers.
pub mod helper {
    /// Gives a byte of the packet, or a negative number: context, address, length there and offset.
    pub const LOAD_BYTE: i32 = 0x7000_0001;
    /// The same for two bytes.
    pub const LOAD_HALF: i32 = 0x7000_0002;
    /// The same for four bytes.
    pub const LOAD_WORD: i32 = 0x7000_0004;
    /// Gives the place behind the headers: context, A and X, as for all that follow.
    pub const PAYLOAD_OFFSET: i32 = 0x7000_0010;
    /// Searches for a netlink attribute.
    pub const NETLINK_ATTRIBUTE: i32 = 0x7000_0011;
    /// Searches in a netlink attribute.
    pub const NETLINK_NESTED: i32 = 0x7000_0012;
    /// Gives the number of the processor.
    pub const CPU: i32 = 0x7000_0013;
    /// Gives a random number.
    pub const RANDOM: i32 = 0x7000_0014;
}

const PACKET_TYPES: u32 = 7;

/// The kernel's further instructions for a filter with loads from the packet, after [`PROLOGUE`].
const PACKET_PROLOGUE: [Insn; 4] = [
    load(code::DW, register::DATA, register::CTX, context::DATA),
    load(code::W, register::HEAD_LEN, register::CTX, context::LEN),
    load(code::W, register::TMP, register::CTX, context::DATA_LEN),
    alu32(code::SUB, register::HEAD_LEN, register::TMP),
];

/// The converted filter, for machines of a byte order.
///
/// # Errors
/// [`JumpTooFar`]: loads take up to 16 instructions, so a jump over more than 2000 of them can't be converted; the
/// kernel refuses such a filter too.
pub fn convert_packet(program: &Program, endian: Endian) -> Result<Vec<Insn>, JumpTooFar> {
    let reads_packet = |op| {
        matches!(
            op,
            Op::LoadData(Load::Absolute(..) | Load::Indexed(..))
                | Op::Extra(Extra::LoadXHeaderLen(_))
        )
    };
    let mut prologue = PROLOGUE.to_vec();
    if program.ops().any(reads_packet) {
        prologue.extend(PACKET_PROLOGUE);
    }
    joined(prologue, program.ops(), |op, mut emit| {
        expand_packet(op, endian, &mut emit);
    })
}

/// Gives `emit` the extended instructions of one instruction of a socket's filter, in order.
pub fn expand_packet(op: Op, endian: Endian, emit: &mut impl FnMut(Step)) {
    let length = |reg| load(code::W, reg, register::CTX, context::LEN);
    let mut plainly = |insn| emit(plain(insn));
    match op {
        Op::LoadData(Load::Absolute(size, k)) => absolute(size, k, &mut plainly),
        Op::LoadData(Load::Indexed(size, k)) => {
            by_helper(size, mov64(register::ARG4, register::X), k, &mut plainly);
        }
        Op::LoadData(Load::Ancillary(_, value)) => ancillary(value, endian, &mut plainly),
        Op::Extra(Extra::LoadXHeaderLen(k)) => {
            plainly(mov64(register::X, register::A));
            absolute(Size::Byte, k, &mut plainly);
            plainly(alu32_imm(code::AND, register::A, 0xf));
            plainly(alu32_imm(code::LSH, register::A, 2));
            plainly(mov64(register::TMP, register::X));
            plainly(mov64(register::X, register::A));
            plainly(mov64(register::A, register::TMP));
        }
        other => match common(other, length, emit) {
            Some(Own::Extra(Extra::Mod(operand))) => alu32_operand(MOD, operand, emit),
            // The arms above have all others.
            Some(Own::Load(_) | Own::Extra(_)) | None => {}
        },
    }
}

const fn size_bits(size: Size) -> u8 {
    match size {
        Size::Byte => code::B,
        Size::Half => code::H,
        Size::Word => code::W,
    }
}

/// The value in A from network order.
const fn from_network(bits: i32) -> Insn {
    Insn {
        code: code::ALU | code::END | code::SOURCE_X,
        dst: register::A,
        src: 0,
        offset: 0,
        imm: bits,
    }
}

const fn alu64_imm(bits: u8, dst: u8, imm: i32) -> Insn {
    Insn {
        code: code::ALU64 | bits,
        dst,
        src: 0,
        offset: 0,
        imm,
    }
}

/// A comparison with a constant that skips some of the following instructions.
const fn skip_if(test: u8, dst: u8, imm: i32, offset: i16) -> Insn {
    Insn {
        code: code::JMP | test,
        dst,
        src: 0,
        offset,
        imm,
    }
}

const fn call(number: i32) -> Insn {
    Insn {
        imm: number,
        ..skip_if(code::CALL, 0, 0, 0)
    }
}

/// A load at a fixed place: from memory if it lies there, else by a helper.
fn absolute(size: Size, k: u32, emit: &mut impl FnMut(Insn)) {
    let offset = k as i32;
    let by_number = alu64_imm(code::MOV, register::ARG4, offset);
    if offset < 0 {
        return by_helper(size, by_number, 0, emit);
    }
    let bits = 8 * size.bytes() as i32;
    let is_swapped = size != Size::Byte;
    let near = i16::try_from(offset);
    emit(mov64(register::TMP, register::HEAD_LEN));
    if offset != 0 {
        emit(alu64_imm(code::SUB, register::TMP, offset));
    }
    let skipped = 2 + i16::from(is_swapped) + if near.is_ok() { 0 } else { 2 };
    emit(skip_if(code::JSLT, register::TMP, bits / 8, skipped));
    match near {
        Ok(near) => emit(load(size_bits(size), register::A, register::DATA, near)),
        Err(_) => {
            emit(mov64(register::TMP, register::DATA));
            emit(alu64_imm(code::ADD, register::TMP, offset));
            emit(load(size_bits(size), register::A, register::TMP, 0));
        }
    }
    if is_swapped {
        emit(from_network(bits));
    }
    let mut by_helper_insns = 0;
    by_helper(size, by_number, 0, &mut |_| by_helper_insns += 1);
    emit(skip_if(code::JA, 0, 0, by_helper_insns));
    by_helper(size, by_number, 0, emit);
}

/// A load by a helper, which ends the program with 0 if nothing lies there. `place` moves the offset to the fourth
/// argument, and `k` is added.
fn by_helper(size: Size, place: Insn, k: u32, emit: &mut impl FnMut(Insn)) {
    emit(mov64(register::ARG1, register::CTX));
    emit(mov64(register::TMP, register::DATA));
    emit(mov64(register::ARG3, register::HEAD_LEN));
    emit(place);
    if k != 0 {
        emit(alu32_imm(code::ADD, register::ARG4, k));
    }
    emit(call(match size {
        Size::Byte => helper::LOAD_BYTE,
        Size::Half => helper::LOAD_HALF,
        Size::Word => helper::LOAD_WORD,
    }));
    emit(skip_if(code::JSGE, register::A, 0, 2));
    emit(alu32(code::XOR, register::A, register::A));
    emit(EXIT);
}

/// A value beside the packet.
fn ancillary(value: Ancillary, endian: Endian, emit: &mut impl FnMut(Insn)) {
    let field = |size, offset| load(size, register::A, register::CTX, offset);
    match value {
        Ancillary::Protocol => {
            emit(field(code::H, context::PROTOCOL));
            emit(from_network(16));
        }
        Ancillary::PacketType => {
            emit(field(code::B, context::PACKET_TYPE));
            // The first bits of a bit field are the highest on big-endian machines.
            match endian {
                Endian::Little => emit(alu32_imm(code::AND, register::A, PACKET_TYPES)),
                Endian::Big => {
                    emit(alu32_imm(code::AND, register::A, PACKET_TYPES << 5));
                    emit(alu32_imm(RSH, register::A, 5));
                }
            }
        }
        Ancillary::InterfaceIndex => device(code::W, 0, emit),
        Ancillary::HardwareType => device(code::H, context::HARDWARE_TYPE, emit),
        Ancillary::Mark => emit(field(code::W, context::MARK)),
        Ancillary::FlowHash => emit(field(code::W, context::HASH)),
        Ancillary::Queue => emit(field(code::H, context::QUEUE)),
        Ancillary::VlanTag => emit(field(code::H, context::VLAN_TAG)),
        Ancillary::HasVlanTag => {
            emit(field(code::W, context::VLAN));
            emit(skip_if(code::JEQ, register::A, 0, 1));
            emit(alu32_imm(code::MOV, register::A, 1));
        }
        Ancillary::VlanProtocol => {
            emit(field(code::H, context::VLAN_PROTOCOL));
            emit(from_network(16));
        }
        Ancillary::XorX => emit(alu32(code::XOR, register::A, register::X)),
        Ancillary::PayloadOffset => ask(helper::PAYLOAD_OFFSET, emit),
        Ancillary::NetlinkAttribute => ask(helper::NETLINK_ATTRIBUTE, emit),
        Ancillary::NetlinkNested => ask(helper::NETLINK_NESTED, emit),
        Ancillary::Cpu => ask(helper::CPU, emit),
        Ancillary::Random => ask(helper::RANDOM, emit),
    }
}

const RSH: u8 = 0x70;

/// A field of the device. Without one the program ends with A as it is.
fn device(size: u8, offset: i16, emit: &mut impl FnMut(Insn)) {
    emit(load(
        code::DW,
        register::TMP,
        register::CTX,
        context::DEVICE,
    ));
    emit(skip_if(code::JNE, register::TMP, 0, 1));
    emit(EXIT);
    emit(load(size, register::A, register::TMP, offset));
}

fn ask(number: i32, emit: &mut impl FnMut(Insn)) {
    emit(mov64(register::ARG1, register::CTX));
    emit(mov64(register::TMP, register::A));
    emit(mov64(register::ARG3, register::X));
    emit(call(number));
}

//! Filters of sockets: classic BPF over the bytes of a packet, as `tcpdump -d` prints it.
//!
//! A socket accepts more than seccomp: loads of bytes and half-words, at a fixed place or at X, header lengths, the
//! remainder, and *ancillary* values, which the kernel provides besides the bytes. These programs are separate types,
//! with no conversion to or from [`crate::Program`], so nothing that compiles or proves seccomp filters accepts one by
//! accident. The common parts of both machines are written once: the decoded instruction ([`Operation`]), the checker
//! ([`validate`](crate::validate)), the interpreter ([`interp`](crate::interp)) and the texts.
//!
//! The rules are those of `bpf_check_classic` and `bpf_convert_filter` in `net/core/filter.c`.

mod ancillary;
mod input;
mod program;

use crate::insn::{Insn, Operand, Operation};

pub use ancillary::Ancillary;
pub use input::{LINK_OFFSET, Metadata, NETWORK_OFFSET, Packet};
pub(crate) use program::Sockets;
pub use program::{Program, problems};

/// A legal instruction of a socket's filter.
pub type Op = Operation<Load, Extra>;

/// The source of a load into A. A load outside of the packet ends the program with 0; a load of device data without a
/// device ends it with A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Load {
    /// Bytes of the packet, in network byte order: `ld`, `ldh` or `ldb` of `[k]`. From 2^31 on the place is an offset
    /// in the area before the packet's data, see [`Packet`].
    Absolute(Size, u32),
    /// The same at X + k: `ld [x + k]`.
    Indexed(Size, u32),
    /// A value beside the packet, and the size that the instruction names, which doesn't matter.
    Ancillary(Size, Ancillary),
}

/// The size of a load from a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    /// One byte: `ldb`.
    Byte,
    /// Two bytes: `ldh`.
    Half,
    /// Four bytes: `ld`.
    Word,
}

/// The instructions that seccomp refuses although they load nothing into A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extra {
    /// A = A % operand, unsigned; by X = 0 it ends the program with 0: `mod`.
    Mod(Operand),
    /// X = 4 * (the byte at this place & 15), the length of an IPv4 header: `ldx 4*([k]&0xf)`.
    LoadXHeaderLen(u32),
}

impl Size {
    /// All sizes.
    pub const ALL: [Size; 3] = [Size::Byte, Size::Half, Size::Word];

    /// The count of bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Size::Byte => 1,
            Size::Half => 2,
            Size::Word => 4,
        }
    }

    /// Its bits in the code of a load.
    const fn bits(self) -> u16 {
        match self {
            Size::Byte => 0x10,
            Size::Half => 0x08,
            Size::Word => 0x00,
        }
    }
}

/// Codes of the loads of `include/uapi/linux/bpf_common.h` without the size, and of the instructions that only packets
/// have.
mod code {
    pub(super) const LD_ABS: u16 = 0x20;
    pub(super) const LD_IND: u16 = 0x40;
    pub(super) const LDX_MSH: u16 = 0xb1;
    pub(super) const MOD: u16 = 0x94;
    pub(super) const MOD_X: u16 = 0x9c;
}

/// The decoded instruction; `None` if the code is none that a socket takes.
///
/// ```
/// use tamis_bpf::Insn;
/// use tamis_bpf::packet::{Load, Op, Size, op};
/// let insn = Insn { code: 0x28, jt: 0, jf: 0, k: 12 };
/// assert_eq!(op(insn), Some(Op::LoadData(Load::Absolute(Size::Half, 12))));
/// ```
pub fn op(insn: Insn) -> Option<Op> {
    let Insn { code: full, k, .. } = insn;
    match full {
        code::MOD | code::MOD_X => Some(Op::Extra(Extra::Mod(insn.operand()))),
        code::LDX_MSH => Some(Op::Extra(Extra::LoadXHeaderLen(k))),
        _ => load(full, k).map(Op::LoadData).or_else(|| insn.common_op()),
    }
}

fn load(full: u16, k: u32) -> Option<Load> {
    let size = Size::ALL
        .into_iter()
        .find(|size| full & 0x18 == size.bits())?;
    match full & !0x18 {
        code::LD_ABS => Some(match Ancillary::at(k) {
            Some(ancillary) => Load::Ancillary(size, ancillary),
            None => Load::Absolute(size, k),
        }),
        code::LD_IND => Some(Load::Indexed(size, k)),
        _ => None,
    }
}

impl From<Op> for Insn {
    /// The instruction with all unused fields zero.
    fn from(op: Op) -> Insn {
        let load = |load| match load {
            Load::Absolute(size, k) => Insn::plain(code::LD_ABS | size.bits(), k),
            Load::Indexed(size, k) => Insn::plain(code::LD_IND | size.bits(), k),
            Load::Ancillary(size, ancillary) => {
                Insn::plain(code::LD_ABS | size.bits(), ancillary.offset())
            }
        };
        op.encode(load, |extra| match extra {
            Extra::Mod(operand) => Insn::with_operand(code::MOD, operand),
            Extra::LoadXHeaderLen(k) => Insn::plain(code::LDX_MSH, k),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_socket_survives_decoding_and_encoding() {
        let mut legal = 0;
        for code in 0..=u16::MAX {
            let insn = Insn {
                code,
                jt: 3,
                jf: 4,
                k: 5,
            };
            if let Some(op) = op(insn) {
                legal += 1;
                assert_eq!(Insn::from(op).code, code);
                assert_eq!(super::op(Insn::from(op)), Some(op));
            }
        }
        // Those of seccomp; loads of bytes and half-words at a fixed place, of all sizes at X; msh; mod with 2 sources.
        assert_eq!(legal, 41 + 2 + 3 + 1 + 2);
    }

    #[test]
    fn every_code_of_seccomp_is_one_of_sockets() {
        for code in 0..=u16::MAX {
            let insn = Insn::plain(code, 0);
            if insn.op().is_some() {
                assert!(op(insn).is_some(), "{code:#06x}");
            }
        }
    }
}

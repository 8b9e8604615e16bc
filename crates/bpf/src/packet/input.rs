//! The input of a socket filter: the bytes of a packet and its ancillary values.

use super::{Ancillary, Extra, Load, Size};
use crate::interp::{Ended, Input, Registers};

/// A packet, from its link layer's header on.
///
/// Loads from offsets below 2^31 are from its start. The last 2 MiB of the offsets name two places: from `SKF_LL_OFF`
/// (`0xffe00000`) on the header of the link layer, which is the start again, and from `SKF_NET_OFF` (`0xfff00000`) on the
/// header of the network layer. In the kernel a filter of an UDP socket, say, sees the packet from the UDP header on;
/// there these are the only ways to what lies before it. A packet of AF_UNIX, say, has no header of the link layer there, and
/// loads from it end the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The bytes that were captured.
    pub bytes: &'a [u8],
    /// The length of the whole packet, possibly more than captured: the value of `ld len`.
    pub len_bytes: u32,
    /// Where the header of the network layer begins, in bytes.
    pub network_start: u32,
    /// The values beside the bytes. Many packets share them, so a packet is half a line of the processor's cache.
    pub metadata: &'a Metadata,
}

/// The ancillary values of a packet, as far as they are known.
///
/// In the kernel all are known, except those of the device ([`Ancillary::is_of_device`]) if the packet has none. A load of these ends
/// the program with the value of A then, there and here. A load of another value that isn't known ends it with 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    values: [u32; Ancillary::ALL.len()],
    /// A bit for each value that is known.
    known: u16,
}

/// The first offset that is counted from the header of the network layer, `SKF_NET_OFF`.
pub const NETWORK_OFFSET: u32 = 0xfff0_0000;
/// The first offset that is counted from the header of the link layer, `SKF_LL_OFF`.
pub const LINK_OFFSET: u32 = 0xffe0_0000;

impl Metadata {
    /// No value is known.
    pub const NONE: Metadata = Metadata {
        values: [0; Ancillary::ALL.len()],
        known: 0,
    };

    /// The same with this value.
    #[must_use]
    pub const fn with(mut self, ancillary: Ancillary, value: u32) -> Metadata {
        self.values[ancillary as usize] = value;
        self.known |= 1 << ancillary as u16;
        self
    }

    /// The same without a device.
    #[must_use]
    pub const fn without_device(mut self) -> Metadata {
        self.known &=
            !(1 << Ancillary::InterfaceIndex as u16 | 1 << Ancillary::HardwareType as u16);
        self
    }

    /// The value, if it is known.
    pub const fn get(&self, ancillary: Ancillary) -> Option<u32> {
        if self.known & (1 << ancillary as u16) == 0 {
            None
        } else {
            Some(self.values[ancillary as usize])
        }
    }
}

impl<'a> Packet<'a> {
    /// An Ethernet packet that was captured whole, without ancillary values.
    pub fn new(bytes: &'a [u8]) -> Packet<'a> {
        Packet {
            bytes,
            len_bytes: bytes.len() as u32,
            network_start: 14,
            metadata: &Metadata::NONE,
        }
    }

    /// The value that lies at an offset as a load gives it, in network byte order; `None` if it isn't inside.
    pub fn value(&self, size: Size, offset: u32) -> Option<u32> {
        let start = match offset {
            NETWORK_OFFSET.. => (offset - NETWORK_OFFSET).checked_add(self.network_start)?,
            LINK_OFFSET.. => offset - LINK_OFFSET,
            0x8000_0000.. => return None,
            _ => offset,
        };
        let bytes = self.bytes.get(start as usize..)?;
        match size {
            Size::Byte => bytes.first().map(|byte| u32::from(*byte)),
            Size::Half => bytes
                .first_chunk()
                .map(|bytes| u32::from(u16::from_be_bytes(*bytes))),
            Size::Word => bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)),
        }
    }
}

impl Input for Packet<'_> {
    type Load = Load;
    type Extra = Extra;

    fn len_bytes(&self) -> u32 {
        self.len_bytes
    }

    fn load(&self, load: Load, registers: Registers) -> Result<u32, Ended> {
        let Registers { a, x } = registers;
        let (value, ret) = match load {
            Load::Absolute(size, k) => (self.value(size, k), 0),
            Load::Indexed(size, k) => (self.value(size, x.wrapping_add(k)), 0),
            Load::Ancillary(_, Ancillary::XorX) => (Some(a ^ x), 0),
            Load::Ancillary(_, one) if one.is_of_device() => (self.metadata.get(one), a),
            Load::Ancillary(_, one) => (self.metadata.get(one), 0),
        };
        value.ok_or(Ended { ret })
    }

    fn run_extra(&self, extra: Extra, registers: &mut Registers) -> Option<()> {
        let Registers { a, x } = registers;
        match extra {
            Extra::Mod(operand) => *a = a.checked_rem(operand.value(*x))?,
            Extra::LoadXHeaderLen(k) => *x = 4 * (self.value(Size::Byte, k)? & 15),
        }
        Some(())
    }
}

//! Ancillary values: those that the kernel provides besides the bytes of a packet.
//!
//! A load from an offset after `SKF_AD_OFF` returns such a value instead of bytes. They are defined in
//! `include/uapi/linux/filter.h`; the names are those of the kernel's `bpf_asm`.

/// A value beside the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Ancillary {
    /// The protocol of the link layer, such as 0x0800 for IPv4.
    Protocol,
    /// The addressee of the packet: `PACKET_HOST` and so on.
    PacketType,
    /// The index of the interface.
    InterfaceIndex,
    /// The place of the netlink attribute of type X, searched from A on.
    NetlinkAttribute,
    /// The same within the attribute at A.
    NetlinkNested,
    /// The packet's mark.
    Mark,
    /// The queue of the device.
    Queue,
    /// The hardware type of the interface.
    HardwareType,
    /// The hash of the packet's flow.
    FlowHash,
    /// The number of the processor.
    Cpu,
    /// A ^ X, which needs nothing beside the registers.
    XorX,
    /// The VLAN's tag.
    VlanTag,
    /// Whether there is a VLAN's tag.
    HasVlanTag,
    /// The place behind the headers.
    PayloadOffset,
    /// A random number.
    Random,
    /// The protocol of the VLAN's tag.
    VlanProtocol,
}

impl Ancillary {
    /// The first offset of these values, `SKF_AD_OFF`.
    pub const FIRST_OFFSET: u32 = 0xffff_f000;

    /// All values, in the order of their offsets.
    pub const ALL: [Ancillary; 16] = [
        Ancillary::Protocol,
        Ancillary::PacketType,
        Ancillary::InterfaceIndex,
        Ancillary::NetlinkAttribute,
        Ancillary::NetlinkNested,
        Ancillary::Mark,
        Ancillary::Queue,
        Ancillary::HardwareType,
        Ancillary::FlowHash,
        Ancillary::Cpu,
        Ancillary::XorX,
        Ancillary::VlanTag,
        Ancillary::HasVlanTag,
        Ancillary::PayloadOffset,
        Ancillary::Random,
        Ancillary::VlanProtocol,
    ];

    /// The value that a load from this offset gives, if it is none of the packet's bytes.
    pub const fn at(offset: u32) -> Option<Ancillary> {
        let distance = offset.wrapping_sub(Ancillary::FIRST_OFFSET);
        if distance.is_multiple_of(4) && distance / 4 < Ancillary::ALL.len() as u32 {
            Some(Ancillary::ALL[distance as usize / 4])
        } else {
            None
        }
    }

    /// The offset of its loads.
    pub const fn offset(self) -> u32 {
        Ancillary::FIRST_OFFSET + 4 * self as u32
    }

    /// Its name in assembler text, behind `#`.
    pub const fn name(self) -> &'static str {
        match self {
            Ancillary::Protocol => "proto",
            Ancillary::PacketType => "type",
            Ancillary::InterfaceIndex => "ifidx",
            Ancillary::NetlinkAttribute => "nla",
            Ancillary::NetlinkNested => "nlan",
            Ancillary::Mark => "mark",
            Ancillary::Queue => "queue",
            Ancillary::HardwareType => "hatype",
            Ancillary::FlowHash => "rxhash",
            Ancillary::Cpu => "cpu",
            Ancillary::XorX => "xor_x",
            Ancillary::VlanTag => "vlan_tci",
            Ancillary::HasVlanTag => "vlan_avail",
            Ancillary::PayloadOffset => "poff",
            Ancillary::Random => "rand",
            Ancillary::VlanProtocol => "vlan_tpid",
        }
    }

    /// Whether a device has the value: a load of it ends the program with the value of A if the packet has no device.
    pub const fn is_of_device(self) -> bool {
        matches!(self, Ancillary::InterfaceIndex | Ancillary::HardwareType)
    }

    /// The value with this name.
    pub fn from_name(name: &str) -> Option<Ancillary> {
        Ancillary::ALL.into_iter().find(|one| one.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_names_are_those_of_one_value() {
        for one in Ancillary::ALL {
            assert_eq!(Ancillary::at(one.offset()), Some(one));
            assert_eq!(Ancillary::from_name(one.name()), Some(one));
        }
        for offset in [0, 0xffff_effc, 0xffff_f001, 0xffff_f040, u32::MAX] {
            assert_eq!(Ancillary::at(offset), None, "{offset:#x}");
        }
    }
}

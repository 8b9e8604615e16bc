//! The kernel's context of extended socket programs, `struct __sk_buff`, and a helper to load bytes of the packet.
//!
//! The fields of the context that a [`Packet`] has are set, like `sk_filter` in Linux 6.12 does; the rest is 0.
//! Programs in C need one helper, which is provided; the checker rejects programs with others.

use tamis_bpf::packet::{Ancillary, Packet};

use crate::memory::{AccessError, Argument, Helpers, Memory};

/// The size of `struct __sk_buff`.
pub const CONTEXT_BYTES: usize = 192;

/// The number of `bpf_skb_load_bytes`.
pub const LOAD_BYTES: i32 = 26;

/// The context of a packet on a little-endian machine. Programs may write some of it, so each run takes a new one.
///
/// ```
/// use tamis_bpf::packet::Packet;
/// let context = tamis_ebpf_vm::socket::context(&Packet::new(&[0; 60]));
/// assert_eq!(context[..4], [60, 0, 0, 0]);
/// ```
pub fn context(packet: &Packet<'_>) -> [u8; CONTEXT_BYTES] {
    const LEN: usize = 0;
    const PROTOCOL: usize = 16;
    const VLAN_PRESENT: usize = 20;
    const VLAN_PROTOCOL: usize = 28;
    let mut bytes = [0; CONTEXT_BYTES];
    let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    let known = |one| packet.metadata.get(one).unwrap_or(0);
    put(LEN, packet.len_bytes);
    for (at, one) in [
        (4, Ancillary::PacketType),
        (8, Ancillary::Mark),
        (12, Ancillary::Queue),
        (VLAN_PRESENT, Ancillary::HasVlanTag),
        (24, Ancillary::VlanTag),
        (40, Ancillary::InterfaceIndex),
        (68, Ancillary::FlowHash),
    ] {
        put(at, known(one));
    }
    // In network order, as in the packet.
    for (at, one) in [
        (PROTOCOL, Ancillary::Protocol),
        (VLAN_PROTOCOL, Ancillary::VlanProtocol),
    ] {
        put(at, u32::from((known(one) as u16).to_be()));
    }
    bytes
}

/// The arguments of [`LOAD_BYTES`].
const LOAD_BYTES_ARGUMENTS: [Argument; 3] =
    [Argument::Context, Argument::Scalar, Argument::Writable];

/// The signature of [`LOAD_BYTES`].
pub fn load_bytes_signature() -> Vec<Argument> {
    LOAD_BYTES_ARGUMENTS.to_vec()
}

/// The helpers: [`LOAD_BYTES`], which clears the memory if the packet has not so many bytes.
pub fn helpers<'h>() -> Helpers<'h> {
    Helpers::plain(&[(LOAD_BYTES, &LOAD_BYTES_ARGUMENTS, load_bytes)])
}

fn load_bytes(
    [_, offset, to, len, _]: [u64; 5],
    memory: &mut Memory<'_>,
) -> Result<u64, AccessError> {
    const EFAULT: i64 = -14;
    let (start, len) = (offset as u32 as usize, len as u32 as usize);
    match memory.packet().get(start..start.saturating_add(len)) {
        Some(bytes) => memory.write_bytes(to, bytes).map(|()| 0),
        None => memory
            .write_bytes(to, &vec![0; len])
            .map(|()| EFAULT as u64),
    }
}

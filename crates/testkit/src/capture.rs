//! Captures of packets as files: the format pcap, with chosen bytes.

/// A packet of Ethernet with this protocol.
pub fn ethernet(protocol: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 12];
    packet.extend(protocol.to_be_bytes());
    packet.extend(payload);
    packet
}

/// A packet of IPv4 over Ethernet with this protocol (6 for TCP, 17 for UDP) and these ports.
pub fn ipv4(protocol: u8, ports: [u16; 2], data: &[u8]) -> Vec<u8> {
    let mut payload = vec![0x45, 0, 0, 60, 0, 0, 0, 0, 64, protocol, 0, 0];
    payload.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    payload.extend(ports.into_iter().flat_map(u16::to_be_bytes));
    payload.extend(data);
    ethernet(0x0800, &payload)
}

/// The link type of Ethernet.
pub const ETHERNET: u32 = 1;

/// A file with these packets of a link type, each captured whole.
pub fn pcap(link_type: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    let max_bytes: u32 = 65535;
    file.extend(
        [0, 0, max_bytes, link_type]
            .into_iter()
            .flat_map(u32::to_le_bytes),
    );
    for packet in packets {
        let len_bytes = packet.len() as u32;
        file.extend(
            [0, 0, len_bytes, len_bytes]
                .into_iter()
                .flat_map(u32::to_le_bytes),
        );
        file.extend(packet);
    }
    file
}

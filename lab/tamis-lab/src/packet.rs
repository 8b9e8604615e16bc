//! Filters of sockets, and packets from a capture, as input of commands.
//!
//! A capture has the format of `tcpdump -w`: pcap or pcapng. Of a packet's metadata it has only the protocol of the
//! link layer.

use std::io::Cursor;

use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use tamis_abi::Endian;
use tamis_bpf::convert::convert_packet;
use tamis_bpf::packet::{Ancillary, Metadata, Packet, Program, Size};
use tamis_session::packet::load_packet_program;
use tamis_session::{Input, files};

use tamis_cli::Failure;

/// The metadata that every packet of a capture has.
pub(crate) const KNOWN: [Ancillary; 1] = [Ancillary::Protocol];

/// Reads a socket's filter.
pub(crate) fn load(path: &str) -> Result<Program, Failure> {
    of_input(&files::read(path)?)
}

/// Parses a socket's filter.
pub(crate) fn of_input(input: &Input) -> Result<Program, Failure> {
    Ok(load_packet_program(input)?)
}

/// Checks that the kernel accepts a valid filter: its conversion limits the distances of jumps to 16 bits.
pub(crate) fn check_attachable(program: &Program) -> Result<(), Failure> {
    let refused = |error| Failure::input(format!("the kernel refuses the filter: {error}"));
    convert_packet(program, Endian::Little)
        .map(|_| ())
        .map_err(refused)
}

/// The packets of a file.
#[derive(Debug)]
pub(crate) struct Capture {
    packets: Vec<Captured>,
}

/// A packet of a file.
#[derive(Debug)]
struct Captured {
    bytes: Vec<u8>,
    len_bytes: u32,
    network_start: u32,
    metadata: Metadata,
}

/// A link layer: the offset of the network layer's header, and that of its protocol.
#[derive(Clone, Copy, Debug)]
struct Link {
    network_start: u32,
    protocol_at: Option<u32>,
}

impl Capture {
    /// Reads a capture.
    pub(crate) fn read(path: &str) -> Result<Capture, Failure> {
        let input = files::read(path)?;
        packets(&input.bytes)
            .map(|packets| Capture { packets })
            .map_err(|reason| Failure::input(format!("{}: {reason}", input.name)))
    }

    /// The packets, in order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = Packet<'_>> {
        self.packets.iter().map(Captured::packet)
    }
}

impl Captured {
    fn packet(&self) -> Packet<'_> {
        Packet {
            len_bytes: self.len_bytes,
            network_start: self.network_start,
            metadata: &self.metadata,
            ..Packet::new(&self.bytes)
        }
    }
}

impl Link {
    /// The metadata of a packet with these bytes.
    fn metadata(self, bytes: &[u8]) -> Metadata {
        let packet = Packet::new(bytes);
        let protocol = match self.protocol_at {
            Some(at) => packet.value(Size::Half, at),
            // Without a header of the link layer, the IP version selects the protocol.
            None => packet.value(Size::Byte, 0).map(|first| match first >> 4 {
                6 => 0x86dd,
                _ => 0x0800,
            }),
        };
        protocol.map_or(Metadata::NONE, |protocol| {
            Metadata::NONE.with(Ancillary::Protocol, protocol)
        })
    }
}

/// The link layer of this type, if it is supported.
fn link(link_type: Linktype) -> Result<Link, String> {
    let (network_start, protocol_at) = match link_type {
        Linktype::ETHERNET => (14, Some(12)),
        Linktype::LINUX_SLL => (16, Some(14)),
        Linktype::LINUX_SLL2 => (20, Some(0)),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12) => (0, None),
        other => {
            return Err(format!(
                "link type {} is none of Ethernet, Linux cooked and raw IP",
                other.0
            ));
        }
    };
    Ok(Link {
        network_start,
        protocol_at,
    })
}

/// The packets of a file, or the reason that it is invalid.
fn packets(bytes: &[u8]) -> Result<Vec<Captured>, String> {
    // The reader needs a capacity for the largest block.
    let capacity_bytes = bytes.len().max(1 << 16) + 1;
    let no_capture = |_| "it is no capture in the format pcap or pcapng".to_owned();
    let mut reader = create_reader(capacity_bytes, Cursor::new(bytes)).map_err(no_capture)?;
    let mut links: Vec<Linktype> = Vec::new();
    let mut found = Vec::new();
    loop {
        match reader.next() {
            Ok((offset, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => links = vec![header.network],
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => links.clear(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        links.push(interface.linktype);
                    }
                    PcapBlockOwned::Legacy(one) => {
                        found.push(captured(&links, 0, one.data, one.caplen, one.origlen)?);
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(one)) => {
                        let interface = one.if_id as usize;
                        found.push(captured(
                            &links,
                            interface,
                            one.data,
                            one.caplen,
                            one.origlen,
                        )?);
                    }
                    PcapBlockOwned::NG(Block::SimplePacket(one)) => {
                        found.push(captured(&links, 0, one.data, one.origlen, one.origlen)?);
                    }
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => return Ok(found),
            Err(PcapError::Incomplete(_)) => {
                if reader.reader_exhausted() {
                    return Err(format!("it ends within packet {}", found.len() + 1));
                }
                reader.refill().map_err(|error| error.to_string())?;
            }
            Err(PcapError::UnexpectedEof) => {
                return Err(format!("it ends within packet {}", found.len() + 1));
            }
            Err(error) => return Err(format!("behind packet {}: {error}", found.len())),
        }
    }
}

fn captured(
    links: &[Linktype],
    interface: usize,
    data: &[u8],
    captured_bytes: u32,
    len_bytes: u32,
) -> Result<Captured, String> {
    let link_type = links
        .get(interface)
        .ok_or("a packet of an unknown interface")?;
    let bytes = data.get(..captured_bytes as usize).unwrap_or(data);
    let link = link(*link_type)?;
    Ok(Captured {
        bytes: bytes.to_vec(),
        len_bytes,
        network_start: link.network_start,
        metadata: link.metadata(bytes),
    })
}

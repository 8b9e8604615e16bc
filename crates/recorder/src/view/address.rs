//! Socket addresses: `struct sockaddr` of any family.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use tamis_abi::{Arch, family};

use super::text::quoted;

/// The maximum size of an address, `struct sockaddr_storage`.
pub(super) const MAX_BYTES: usize = 128;

const UNIX: u16 = 1;
const INET: u16 = 2;
const INET6: u16 = 10;
const NETLINK: u16 = 16;

/// An address as strace prints it; `None` if it is too short for a family.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let half = |at: usize| bytes.get(at..)?.first_chunk::<2>().copied();
    let word = |at: usize| bytes.get(at..)?.first_chunk::<4>().copied();
    let number = u16::from_ne_bytes(half(0)?);
    let family = family::for_argument("socket", "family");
    let name = family.and_then(|family| family.name(Arch::X86_64, number.into(), 32));
    let mut text = match name {
        Some(name) => format!("{{sa_family={name}"),
        None => format!("{{sa_family={number:#x}"),
    };
    let rest = match number {
        UNIX => Some(unix(&bytes[2..])),
        INET => half(2).zip(word(4)).map(|(port, address)| {
            let (port, address) = (u16::from_be_bytes(port), Ipv4Addr::from(address));
            format!("sin_port=htons({port}), sin_addr=inet_addr(\"{address}\")")
        }),
        INET6 => inet6(bytes),
        NETLINK => word(4).zip(word(8)).map(|(port, groups)| {
            let (port, groups) = (u32::from_ne_bytes(port), u32::from_ne_bytes(groups));
            format!("nl_pid={port}, nl_groups={groups:08x}")
        }),
        _ => None,
    };
    let rest = rest.unwrap_or_else(|| format!("sa_data={}", quoted(&bytes[2..], false)));
    if bytes.len() > 2 {
        let _ = write!(text, ", {rest}");
    }
    text.push('}');
    Some(text)
}

/// A path ends with a zero byte; an abstract name begins with one.
fn unix(path: &[u8]) -> String {
    if let Some((0, name)) = path.split_first() {
        return format!("sun_path=@{}", quoted(name, false));
    }
    let end = path.iter().position(|byte| *byte == 0);
    let path = &path[..end.unwrap_or(path.len())];
    format!("sun_path={}", quoted(path, false))
}

fn inet6(bytes: &[u8]) -> Option<String> {
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let flow = u32::from_be_bytes(*bytes.get(4..)?.first_chunk()?);
    let address = Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?);
    let scope = u32::from_ne_bytes(*bytes.get(24..)?.first_chunk()?);
    Some(format!(
        "sin6_port=htons({port}), sin6_flowinfo=htonl({flow}), inet_pton(AF_INET6, \"{address}\", &sin6_addr), \
         sin6_scope_id={scope}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_members_of_their_family() {
        let inet = [&2u16.to_ne_bytes()[..], &[0, 80, 127, 0, 0, 1], &[0; 8]].concat();
        assert_eq!(
            text(&inet).unwrap(),
            "{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}"
        );
        let unix = [&1u16.to_ne_bytes()[..], b"/run/x\0\0\0"].concat();
        assert_eq!(
            text(&unix).unwrap(),
            "{sa_family=AF_UNIX, sun_path=\"/run/x\"}"
        );
        let name = [&1u16.to_ne_bytes()[..], b"\0name"].concat();
        assert_eq!(
            text(&name).unwrap(),
            "{sa_family=AF_UNIX, sun_path=@\"name\"}"
        );
        assert_eq!(text(&0u16.to_ne_bytes()).unwrap(), "{sa_family=AF_UNSPEC}");
        assert_eq!(text(&[1]), None);
    }

    #[test]
    fn no_address_of_any_length_is_a_mistake() {
        for family in [0u16, 1, 2, 10, 16, 17, 999] {
            let bytes = [&family.to_ne_bytes()[..], &[0xff; MAX_BYTES - 2]].concat();
            for len in 2..=MAX_BYTES {
                assert!(text(&bytes[..len]).is_some(), "{family} {len}");
            }
        }
    }
}

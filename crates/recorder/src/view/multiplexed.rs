//! The i386 calls made through the multiplexers `socketcall` and `ipc`.
//!
//! The first argument selects the call. The arguments are in memory (`socketcall`), or in other registers (`ipc`). The
//! oldest form of `msgrcv`, with arguments partly in memory, is not decoded.

use tamis_abi::{Arch, SeccompData};

use super::memory::{self, Read};

/// The calls of `socketcall` from 1 on, with their numbers of arguments.
const SOCKET: [(&str, usize); 20] = [
    ("socket", 3),
    ("bind", 3),
    ("connect", 3),
    ("listen", 2),
    ("accept", 3),
    ("getsockname", 3),
    ("getpeername", 3),
    ("socketpair", 4),
    ("send", 4),
    ("recv", 4),
    ("sendto", 6),
    ("recvfrom", 6),
    ("shutdown", 2),
    ("setsockopt", 5),
    ("getsockopt", 5),
    ("sendmsg", 3),
    ("recvmsg", 3),
    ("accept4", 4),
    ("recvmmsg", 5),
    ("sendmmsg", 4),
];
/// The calls of `ipc`: their numbers, and the registers of their arguments.
const IPC: [(u32, &str, &[usize]); 12] = [
    (1, "semop", &[1, 4, 2]),
    (2, "semget", &[1, 2, 3]),
    (3, "semctl", &[1, 2, 3, 4]),
    (4, "semtimedop", &[1, 4, 2, 5]),
    (11, "msgsnd", &[1, 4, 2, 3]),
    (12, "msgrcv", &[1, 4, 2, 5, 3]),
    (13, "msgget", &[1, 2]),
    (14, "msgctl", &[1, 2, 4]),
    (21, "shmat", &[1, 4, 2]),
    (22, "shmdt", &[4]),
    (23, "shmget", &[1, 2, 3]),
    (24, "shmctl", &[1, 2, 4]),
];
const SOCKETCALL_NR: u32 = 102;
const IPC_NR: u32 = 117;
/// Numbers for these calls, unused by the kernel; the lowest bits are the index in either list.
const FIRST_SOCKET: u32 = 0xffff_0100;
const FIRST_IPC: u32 = 0xffff_0200;

/// The multiplexed form of an i386 call: the multiplexer, with a condition in the policy language.
///
/// ```
/// use tamis_recorder::view::multiplexed;
/// assert_eq!(multiplexed("accept"), Some("socketcall(call == 5)".to_owned()));
/// assert_eq!(multiplexed("shmget"), Some("ipc(call & 0xffff == 23)".to_owned()));
/// assert_eq!(multiplexed("read"), None);
/// ```
pub fn multiplexed(name: &str) -> Option<String> {
    if let Some(place) = SOCKET.iter().position(|(known, _)| *known == name) {
        return Some(format!("socketcall(call == {})", place + 1));
    }
    let (number, ..) = IPC.iter().find(|(_, known, _)| *known == name)?;
    Some(format!("ipc(call & 0xffff == {number})"))
}

/// The multiplexed call, with a number for [`name`].
pub(super) fn inner(call: &SeccompData, read: &Read<'_>) -> Option<SeccompData> {
    if call.arch != Arch::X86.audit() {
        return None;
    }
    let mut args = [0; 6];
    let nr = match call.nr {
        SOCKETCALL_NR => {
            let place = usize::try_from(call.args[0] as u32).ok()?.checked_sub(1)?;
            let (_, count) = SOCKET.get(place)?;
            let bytes = memory::bytes(read, call.args[1], 4 * count)?;
            let (words, _) = bytes.as_chunks::<4>();
            if words.len() < *count {
                return None;
            }
            for (arg, word) in args.iter_mut().zip(words) {
                *arg = u32::from_ne_bytes(*word).into();
            }
            FIRST_SOCKET + place as u32
        }
        IPC_NR => {
            let (version, number) = (call.args[0] as u32 >> 16, call.args[0] as u32 & 0xffff);
            let place = IPC.iter().position(|(known, ..)| *known == number)?;
            let (_, name, registers) = IPC[place];
            if name == "msgrcv" && version == 0 {
                return None;
            }
            for (arg, register) in args.iter_mut().zip(registers) {
                *arg = call.args[*register];
            }
            FIRST_IPC + place as u32
        }
        _ => return None,
    };
    Some(SeccompData { nr, args, ..*call })
}

/// The name of a call with such a number.
pub(super) fn name(call: &SeccompData) -> Option<&'static str> {
    let place = |first: u32| call.nr.checked_sub(first).map(|place| place as usize);
    let of_ipc = place(FIRST_IPC).and_then(|place| IPC.get(place));
    let of_socket = place(FIRST_SOCKET).and_then(|place| SOCKET.get(place));
    let of_ipc = of_ipc.map(|(_, name, _)| *name);
    of_ipc.or_else(|| of_socket.map(|(name, _)| *name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Decoder;

    fn shown(call: &SeccompData, read: &Read<'_>) -> (String, Vec<String>) {
        let mut decoder = Decoder::new(32);
        let call = inner(call, read).expect("it stands for another");
        let args = decoder.entered(&call, read);
        let args = args.iter().map(|arg| arg.shown.text()).collect();
        (decoder.name(&call).to_string(), args)
    }

    fn i386(nr: u32, args: [u64; 6]) -> SeccompData {
        SeccompData {
            nr,
            arch: Arch::X86.audit(),
            args,
            ..SeccompData::default()
        }
    }

    #[test]
    fn arguments_are_those_of_the_call_that_is_meant() {
        // `AF_INET`, `SOCK_STREAM` and 0 at 0x1000.
        let read = |address: u64, buffer: &mut [u8]| {
            let words: Vec<u8> = [2_u32, 1, 0]
                .iter()
                .flat_map(|word| word.to_ne_bytes())
                .collect();
            let start = address.saturating_sub(0x1000) as usize;
            let bytes = words.get(start..).unwrap_or_default();
            let len = bytes.len().min(buffer.len());
            buffer[..len].copy_from_slice(&bytes[..len]);
            len
        };
        let socket = i386(SOCKETCALL_NR, [1, 0x1000, 0, 0, 0, 0]);
        let expected = ["AF_INET", "SOCK_STREAM", "0"].map(str::to_owned).to_vec();
        assert_eq!(shown(&socket, &read), ("socket".to_owned(), expected));
        let segment = i386(IPC_NR, [23, 7, 4096, 0o600, 0, 0]);
        let (name, args) = shown(&segment, &read);
        assert_eq!(
            (name.as_str(), args[0].as_str(), args[1].as_str()),
            ("shmget", "7", "4096")
        );
        assert_eq!(
            inner(&i386(SOCKETCALL_NR, [21, 0x1000, 0, 0, 0, 0]), &read),
            None
        );
        assert_eq!(
            inner(&i386(SOCKETCALL_NR, [1, 0x2000, 0, 0, 0, 0]), &read),
            None
        );
        assert_eq!(inner(&i386(IPC_NR, [12, 0, 0, 0, 0, 0]), &read), None);
    }

    #[test]
    fn numbers_and_names_belong_together() {
        for (first, count) in [(FIRST_SOCKET, SOCKET.len()), (FIRST_IPC, IPC.len())] {
            for place in 0..count {
                let call = i386(first + place as u32, [0; 6]);
                let name = name(&call).expect("a name");
                assert!(tamis_abi::syscall::is_known(name), "{name}");
                assert!(multiplexed(name).is_some());
            }
        }
        assert_eq!(name(&i386(SOCKETCALL_NR, [0; 6])), None);
    }
}

//! The time limits of calls that any signal ends with `EINTR`: where they are, and how long.
//!
//! They are in a register, in the memory of the task, or an option of a socket. The last are read from a duplicate of
//! the descriptor (Linux 5.6).

use std::time::Duration;

use tamis_abi::{Arch, Nr, SeccompData, syscall};

use crate::memory;
use crate::sys::socket::{self, Direction, TimeLimit};

/// Where the time limit of a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It has none.
    Nowhere,
    /// Milliseconds in an argument.
    Milliseconds { index: usize, limit_ms: u32 },
    /// A `struct timespec` at an address, with fields of 64 bits or of 32.
    Timespec { address: u64, is_wide: bool },
    /// A `struct io_uring_getevents_arg` at an address, with the address of a `struct timespec`.
    Ring { address: u64 },
    /// An option of these descriptors, if they are sockets.
    Sockets(Vec<(i32, Direction)>),
    /// The arguments of `socketcall` at an address, the first of which is a socket.
    SocketCall { address: u64, direction: Direction },
    /// Where it can't be read.
    Hidden,
}

/// A time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Never,
    After(Duration),
    /// None of the known kinds.
    Maybe,
    /// It can't be read.
    Unknown,
}

impl Place {
    /// The place of the limit of a call that any signal ends with `EINTR`; `None` for other calls.
    pub(super) fn from_call(call: &SeccompData) -> Option<Place> {
        let arch = Arch::of_call(call.arch, call.nr)?;
        let name = syscall::name(arch, Nr(call.nr))?;
        let timespec = |index: usize| Place::timespec(call, name, index);
        Some(match name {
            "epoll_wait" | "epoll_pwait" => match u32::try_from(call.args[3] as i32) {
                Ok(limit_ms) => Place::Milliseconds { index: 3, limit_ms },
                Err(_) => Place::Nowhere,
            },
            "epoll_pwait2" | "semtimedop" | "semtimedop_time64" => timespec(3),
            "rt_sigtimedwait" | "rt_sigtimedwait_time64" => timespec(2),
            "io_getevents" | "io_pgetevents" | "io_pgetevents_time64" => timespec(4),
            "io_uring_enter" => Place::from_ring(call),
            "semop" => Place::Nowhere,
            // `semop` and `semtimedop`.
            "ipc" => match call.args[0] & 0xffff {
                1 => Place::Nowhere,
                4 => timespec(5),
                _ => return None,
            },
            // Of sockets with `SO_RCVTIMEO` or `SO_SNDTIMEO`: the kernel restarts the waits of others by itself.
            "accept" | "accept4" | "read" | "readv" | "recv" | "recvfrom" | "recvmmsg"
            | "recvmmsg_time64" | "recvmsg" => {
                Place::Sockets(vec![(call.args[0] as i32, Direction::In)])
            }
            "connect" | "send" | "sendmmsg" | "sendmsg" | "sendto" | "write" | "writev" => {
                Place::Sockets(vec![(call.args[0] as i32, Direction::Out)])
            }
            "sendfile" | "sendfile64" => Place::Sockets(vec![
                (call.args[0] as i32, Direction::Out),
                (call.args[1] as i32, Direction::In),
            ]),
            "splice" => Place::Sockets(vec![
                (call.args[0] as i32, Direction::In),
                (call.args[2] as i32, Direction::Out),
            ]),
            "socketcall" => Place::SocketCall {
                address: call.args[1],
                // `connect`, `send`, `sendto`, `sendmsg` and `sendmmsg`.
                direction: match call.args[0] {
                    3 | 9 | 11 | 16 | 20 => Direction::Out,
                    _ => Direction::In,
                },
            },
            _ => return None,
        })
    }

    fn timespec(call: &SeccompData, name: &str, index: usize) -> Place {
        /// `__AUDIT_ARCH_64BIT` of `linux/audit.h`.
        const AUDIT_64_BIT: u32 = 1 << 31;
        let is_wide =
            call.arch & AUDIT_64_BIT != 0 || name.ends_with("_time64") || name == "epoll_pwait2";
        match call.args[index] {
            0 => Place::Nowhere,
            address => Place::Timespec { address, is_wide },
        }
    }

    fn from_ring(call: &SeccompData) -> Place {
        /// `IORING_ENTER_EXT_ARG`, `IORING_ENTER_ABS_TIMER` and `IORING_ENTER_EXT_ARG_REG` of `linux/io_uring.h`: the
        /// argument may have a time limit, which is a time of the clock, and the argument is in a registered region.
        const EXT_ARG: u64 = 1 << 3;
        const ABS_TIMER: u64 = 1 << 5;
        const EXT_ARG_REG: u64 = 1 << 6;
        match call.args[3] {
            // A time of the clock stays the same for a restarted call.
            flags if flags & EXT_ARG == 0 || flags & ABS_TIMER != 0 => Place::Nowhere,
            flags if flags & EXT_ARG_REG != 0 => Place::Hidden,
            _ => Place::Ring {
                address: call.args[4],
            },
        }
    }

    /// The time limit, in this process.
    pub(super) fn limit(&self, process: i32) -> Limit {
        /// Where `struct io_uring_getevents_arg` has the address.
        const RING_TIME: u64 = 16;
        match self {
            Place::Nowhere => Limit::Never,
            Place::Hidden => Limit::Unknown,
            Place::Milliseconds { limit_ms, .. } => {
                Limit::After(Duration::from_millis((*limit_ms).into()))
            }
            Place::Timespec { address, is_wide } => timespec_at(process, *address, *is_wide),
            Place::Ring { address } => match word_at(process, address.wrapping_add(RING_TIME)) {
                Some(0) => Limit::Never,
                Some(address) => timespec_at(process, address, true),
                None => Limit::Unknown,
            },
            Place::Sockets(sockets) => of_sockets(process, sockets),
            Place::SocketCall { address, direction } => match half_at(process, *address) {
                Some(fd) => of_sockets(process, &[(fd, *direction)]),
                None => Limit::Unknown,
            },
        }
    }
}

/// The shortest limit of some descriptors.
fn of_sockets(process: i32, sockets: &[(i32, Direction)]) -> Limit {
    let mut shortest = Limit::Maybe;
    for (fd, direction) in sockets {
        match (socket::time_limit(process, *fd, *direction), shortest) {
            (Err(_), _) => return Limit::Unknown,
            (Ok(TimeLimit::After(limit)), Limit::After(other)) => {
                shortest = Limit::After(limit.min(other));
            }
            (Ok(TimeLimit::After(limit)), _) => shortest = Limit::After(limit),
            (Ok(TimeLimit::None), _) => {}
        }
    }
    shortest
}

fn timespec_at(process: i32, address: u64, is_wide: bool) -> Limit {
    let fields = if is_wide {
        word_at(process, address).zip(word_at(process, address.wrapping_add(8)))
    } else {
        let half = |address| half_at(process, address)?.try_into().ok();
        half(address).zip(half(address.wrapping_add(4)))
    };
    let limit = fields.and_then(|(seconds, nanoseconds)| {
        let part = Duration::from_nanos(nanoseconds);
        Duration::from_secs(seconds).checked_add(part)
    });
    limit.map_or(Limit::Unknown, Limit::After)
}

fn word_at(process: i32, address: u64) -> Option<u64> {
    bytes_at(process, address).map(u64::from_ne_bytes)
}

fn half_at(process: i32, address: u64) -> Option<i32> {
    bytes_at(process, address).map(i32::from_ne_bytes)
}

fn bytes_at<const SIZE: usize>(process: i32, address: u64) -> Option<[u8; SIZE]> {
    let mut bytes = [0; SIZE];
    let read = memory::read(process, address, &mut bytes);
    (read == Ok(SIZE)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// The limit of a call of this process.
    fn limit(text: &str) -> Option<Limit> {
        let call = tamis_abi::call::parse(text, Arch::X86_64).unwrap();
        Place::from_call(&call).map(|place| place.limit(std::process::id() as i32))
    }

    fn after(limit_ms: u64) -> Option<Limit> {
        Some(Limit::After(Duration::from_millis(limit_ms)))
    }

    #[test]
    fn limits_are_read_where_they_are() {
        let time = [1_u64, 500_000_000];
        let time_at = time.as_ptr() as u64;
        let ring = [0, 0, time_at];
        let ring_at = ring.as_ptr() as u64;
        assert_eq!(
            limit("epoll_wait(3, 0x1000, 1, 0xffffffff)"),
            Some(Limit::Never)
        );
        assert_eq!(limit("epoll_wait(3, 0x1000, 1, 100)"), after(100));
        assert_eq!(
            limit("rt_sigtimedwait(0x1000, 0, 0, 8)"),
            Some(Limit::Never)
        );
        let of = |text: &str| limit(&text.replace("TIME", &time_at.to_string()));
        assert_eq!(of("rt_sigtimedwait(0x1000, 0, TIME, 8)"), after(1500));
        assert_eq!(of("semtimedop(1, 0x1000, 1, TIME)"), after(1500));
        assert_eq!(limit("semtimedop(1, 0x1000, 1, 1)"), Some(Limit::Unknown));
        assert_eq!(
            limit("io_uring_enter(3, 0, 1, 1, 0, 8)"),
            Some(Limit::Never)
        );
        let of = |flags: u32| limit(&format!("io_uring_enter(3, 0, 1, {flags}, {ring_at}, 24)"));
        assert_eq!(of(0x9), after(1500));
        assert_eq!(of(0x29), Some(Limit::Never));
        assert_eq!(of(0x49), Some(Limit::Unknown));
        // Whether it has closed the descriptor is unknown.
        assert_eq!(limit("close(3)"), None);
    }

    #[test]
    fn limits_of_sockets_have_a_direction() {
        let (socket, _other) = UnixStream::pair().unwrap();
        let time = Duration::from_millis(300);
        socket.set_read_timeout(Some(time)).unwrap();
        let fd = socket.as_raw_fd();
        let received = limit(&format!("recvfrom({fd}, 0x1000, 1, 0, 0, 0)"));
        // Without the right to duplicate descriptors, the limit is unknown.
        assert!(received == after(300) || received == Some(Limit::Unknown));
        let sent = limit(&format!("sendto({fd}, 0x1000, 1, 0, 0, 0)"));
        assert!(matches!(sent, Some(Limit::Maybe | Limit::Unknown)));
    }
}

//! I/O vectors, messages, and attributes of sockets.

use tamis_abi::{Arch, consts, family};

use super::CallMemory;
use super::layout::{Fields, list, pointer};
use crate::view::address;
use crate::view::text::quoted;

/// The maximum number shown.
const MAX: usize = 32;

/// I/O vectors with their bytes, if data is shown; of vectors that the call has filled, only as many bytes as the
/// result.
pub(super) fn pieces(address: u64, behind: &CallMemory<'_>, count: u64) -> Option<String> {
    let all = usize::try_from(count).ok()?;
    let bytes = behind.bytes(address, 16 * all.min(MAX))?;
    let fields = Fields(&bytes);
    let mut left = filled(behind);
    let mut parts = Vec::new();
    for index in 0..all.min(MAX) {
        let (base, len) = (fields.word(16 * index), fields.word(16 * index + 8));
        let known = left.map_or(len, |left| left.min(len));
        left = left.map(|left| left - known);
        if behind.hides_data {
            parts.push(format!("{{iov_len={len}}}"));
            continue;
        }
        let shown = usize::try_from(known).ok()?.min(behind.max_bytes);
        let text = match behind.bytes(base, shown) {
            Some(bytes) if base != 0 => quoted(&bytes, known > shown as u64),
            _ => pointer(base),
        };
        parts.push(format!("{{iov_base={text}, iov_len={len}}}"));
    }
    parts.extend((all > MAX).then(|| "...".to_owned()));
    Some(format!("[{}]", parts.join(", ")))
}

/// The number of bytes that a call has filled; `None` for calls that only read.
fn filled(behind: &CallMemory<'_>) -> Option<u64> {
    /// `readv`, `recvmsg`, `preadv`, `process_vm_readv` and `preadv2` of x86-64.
    const FILLING: [u32; 5] = [19, 47, 295, 310, 327];
    let fills = FILLING.contains(&behind.call.nr);
    fills.then(|| u64::try_from(behind.result).unwrap_or(0))
}

pub(super) fn message(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let bytes = behind.bytes(address, 56)?;
    let fields = Fields(&bytes);
    let name_len = fields.half(8);
    let name = socket_address(fields.word(0), name_len, behind);
    let (iov, count) = (fields.word(16), fields.word(24));
    let pieces = match iov {
        0 => "NULL".to_owned(),
        iov => pieces(iov, behind, count).unwrap_or_else(|| pointer(iov)),
    };
    let control_len = fields.word(40);
    let control = match control_len {
        0 => String::new(),
        len => format!(", msg_control={}", control(fields.word(32), len, behind)),
    };
    let flags = family::for_argument("recvmsg", "flags");
    let flags = flags.and_then(|of| of.flags(Arch::X86_64, fields.half(48).into(), 32));
    let flags = match flags {
        Some(names) if !names.is_empty() => names.join("|"),
        _ => fields.half(48).to_string(),
    };
    Some(format!(
        "{{msg_name={name}, msg_namelen={name_len}, msg_iov={pieces}, msg_iovlen={count}{control}, \
         msg_controllen={control_len}, msg_flags={flags}}}"
    ))
}

/// The control data of a message: descriptors, or other data by level and type.
fn control(address: u64, len: u64, behind: &CallMemory<'_>) -> String {
    const HEADER: usize = 16;
    /// The maximum number of bytes decoded.
    const MOST: u64 = 4096;
    let Some(bytes) = behind.bytes(address, len.min(MOST) as usize) else {
        return pointer(address);
    };
    let (mut at, mut parts) = (0, Vec::new());
    while at + HEADER <= bytes.len() && parts.len() < MAX {
        let fields = Fields(&bytes[at..]);
        let (own, level, kind) = (fields.word(0) as usize, fields.int(8), fields.int(12));
        if own < HEADER || own > bytes.len() - at {
            break;
        }
        parts.push(one_control(&fields, own, level, kind));
        at += own.next_multiple_of(8);
    }
    format!("[{}]", parts.join(", "))
}

fn one_control(fields: &Fields<'_>, len: usize, level: i32, kind: i32) -> String {
    const SOL_SOCKET: i32 = 1;
    const SCM_RIGHTS: i32 = 1;
    const SCM_CREDENTIALS: i32 = 2;
    let head =
        |level: &str, kind: &str| format!("cmsg_len={len}, cmsg_level={level}, cmsg_type={kind}");
    match (level, kind) {
        (SOL_SOCKET, SCM_RIGHTS) => {
            let numbers = (16..len).step_by(4).map(|at| fields.int(at).to_string());
            let head = head("SOL_SOCKET", "SCM_RIGHTS");
            format!("{{{head}, cmsg_data=[{}]}}", list(numbers))
        }
        (SOL_SOCKET, SCM_CREDENTIALS) => {
            let (pid, uid, gid) = (fields.int(16), fields.half(20), fields.half(24));
            let head = head("SOL_SOCKET", "SCM_CREDENTIALS");
            format!("{{{head}, cmsg_data={{pid={pid}, uid={uid}, gid={gid}}}}}")
        }
        _ => format!("{{{}}}", head(&level_name(level), &format!("{kind:#x}"))),
    }
}

fn level_name(level: i32) -> String {
    let family = family::for_argument("setsockopt", "level");
    let name = family.and_then(|family| family.name(Arch::X86_64, level as u64, 32));
    name.map_or_else(|| format!("{level:#x}"), str::to_owned)
}

fn socket_address(at: u64, len: u32, behind: &CallMemory<'_>) -> String {
    let len = (len as usize).min(address::MAX_BYTES);
    let bytes = behind.bytes(at, len).filter(|_| at != 0);
    let text = bytes.and_then(|bytes| address::text(&bytes));
    text.unwrap_or_else(|| pointer(at))
}

/// The address that the kernel has filled in, with the length at the next argument's address.
pub(super) fn peer(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let mut places = (0..5).filter(|place| behind.arg(*place) == address);
    let len_at = behind.arg(places.next()? + 1);
    let bytes = behind.bytes(len_at, 4)?;
    let len = Fields(&bytes).half(0);
    (len != 0).then(|| socket_address(address, len, behind))
}

/// The value of an option: a number if it has the size of one.
pub(super) fn option_value(address: u64, behind: &CallMemory<'_>, len: u8) -> Option<String> {
    /// `getsockopt` on x86-64, whose length is in memory.
    const GET: u32 = 55;
    /// Options whose values aren't numbers, even with the size of one.
    const OTHERS: [&str; 4] = [
        "SO_ATTACH_FILTER",
        "SO_BINDTODEVICE",
        "SO_LINGER",
        "SO_PEERCRED",
    ];
    const SOL_SOCKET: u64 = 1;
    let len = match behind.call.nr {
        GET => Fields(&behind.bytes(behind.arg(len), 4)?).half(0),
        _ => behind.arg(len) as u32,
    };
    let is_other = |name: &&str| {
        let value = consts::value(Arch::X86_64, name);
        behind.arg(1) == SOL_SOCKET && value == Some(behind.arg(2))
    };
    match len {
        4 if !OTHERS.iter().any(is_other) => super::simple::ints(address, behind, 1),
        _ => None,
    }
}

//! Polled descriptors, and the ready ones.

use tamis_abi::Arch;

use super::layout::{Fields, list};
use super::{CallMemory, Form};
use crate::view::symbols;

/// The maximum number shown.
const MAX: usize = 32;

const EVENTS: [&str; 12] = [
    "POLLIN",
    "POLLPRI",
    "POLLOUT",
    "POLLRDNORM",
    "POLLWRNORM",
    "POLLRDBAND",
    "POLLWRBAND",
    "POLLERR",
    "POLLHUP",
    "POLLNVAL",
    "POLLMSG",
    "POLLRDHUP",
];

fn events(bits: u16) -> String {
    symbols::joined(Arch::X86_64, &EVENTS, bits.into())
}

/// The descriptors of `poll`, with the requested events.
pub(super) fn polled(address: u64, behind: &CallMemory<'_>, count: u8) -> Option<String> {
    let all = behind.arg(count) as u32 as usize;
    let bytes = behind.bytes(address, 8 * all.min(MAX))?;
    let fields = Fields(&bytes);
    let shown = (0..all.min(MAX)).map(|index| {
        let (fd, wanted) = (fields.int(8 * index), fields.quarter(8 * index + 4));
        match fd {
            // The kernel skips it.
            ..0 => format!("{{fd={fd}}}"),
            _ => format!("{{fd={fd}, events={}}}", events(wanted)),
        }
    });
    let more = (all > MAX).then(|| "...".to_owned());
    Some(format!("[{}]", list(shown.chain(more))))
}

/// The ready descriptors, and the remaining time.
pub(super) fn after_poll(has_time: bool, behind: &CallMemory<'_>) -> Option<String> {
    let (address, time) = (behind.arg(0), behind.arg(2));
    if behind.result == 0 {
        return Some("Timeout".to_owned());
    }
    let all = (behind.arg(1) as u32 as usize).min(MAX);
    let bytes = behind.bytes(address, 8 * all)?;
    let fields = Fields(&bytes);
    let ready = (0..all).filter_map(|index| {
        let (fd, got) = (fields.int(8 * index), fields.quarter(8 * index + 6));
        (got != 0 && fd >= 0).then(|| format!("{{fd={fd}, revents={}}}", events(got)))
    });
    let mut text = format!("[{}]", list(ready));
    if has_time && let Some(left) = super::text(Form::Timespec, time, behind) {
        text += &format!(", left {left}");
    }
    Some(text)
}

/// The descriptors of a set below the first argument.
pub(super) fn descriptor_set(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let set = members(address, behind)?;
    let numbers: Vec<String> = set.iter().map(usize::to_string).collect();
    Some(format!("[{}]", numbers.join(" ")))
}

fn members(address: u64, behind: &CallMemory<'_>) -> Option<Vec<usize>> {
    /// The most descriptors of a set.
    const MOST: usize = 1024;
    let below = usize::try_from(behind.arg(0) as i32).ok()?.min(MOST);
    let bytes = behind.bytes(address, below.div_ceil(64) * 8)?;
    let is_in = |fd: &usize| bytes[fd / 8] >> (fd % 8) & 1 != 0;
    Some((0..below).filter(is_in).collect())
}

/// The non-empty sets after `select`, and the remaining time.
pub(super) fn after_select(behind: &CallMemory<'_>) -> Option<String> {
    if behind.result == 0 {
        return Some("Timeout".to_owned());
    }
    let mut parts = Vec::new();
    for (place, name) in [(1, "in"), (2, "out"), (3, "except")] {
        let address = behind.arg(place);
        if address != 0
            && let Some(set) = members(address, behind).filter(|set| !set.is_empty())
        {
            let numbers: Vec<String> = set.iter().map(usize::to_string).collect();
            parts.push(format!("{name} [{}]", numbers.join(" ")));
        }
    }
    let is_old = behind.call.nr == SELECT;
    let form = if is_old {
        Form::Timeval
    } else {
        Form::Timespec
    };
    let left = super::text(form, behind.arg(4), behind);
    parts.extend(left.map(|left| format!("left {left}")));
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The number of `select` on x86-64.
const SELECT: u32 = 23;

fn epoll(fields: &Fields<'_>, at: usize) -> String {
    const NAMES: [&str; 15] = [
        "EPOLLIN",
        "EPOLLPRI",
        "EPOLLOUT",
        "EPOLLRDNORM",
        "EPOLLRDBAND",
        "EPOLLWRNORM",
        "EPOLLWRBAND",
        "EPOLLMSG",
        "EPOLLERR",
        "EPOLLHUP",
        "EPOLLRDHUP",
        "EPOLLEXCLUSIVE",
        "EPOLLWAKEUP",
        "EPOLLONESHOT",
        "EPOLLET",
    ];
    let events = symbols::joined(Arch::X86_64, &NAMES, fields.half(at).into());
    let data = fields.word(at + 4);
    format!(
        "{{events={events}, data={{u32={}, u64={data}}}}}",
        data as u32
    )
}

/// The bytes of `struct epoll_event`, which is packed on x86-64.
const EPOLL_BYTES: usize = 12;

pub(super) fn epoll_event(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let bytes = behind.bytes(address, EPOLL_BYTES)?;
    Some(epoll(&Fields(&bytes), 0))
}

pub(super) fn epoll_events(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let all = usize::try_from(behind.result).ok()?;
    let bytes = behind.bytes(address, EPOLL_BYTES * all.min(MAX))?;
    let fields = Fields(&bytes);
    let shown = (0..all.min(MAX)).map(|index| epoll(&fields, EPOLL_BYTES * index));
    let more = (all > MAX).then(|| "...".to_owned());
    Some(format!("[{}]", list(shown.chain(more))))
}

//! Attributes of files, file systems and directories.

use std::fmt::Write;

use tamis_abi::{Arch, consts};

use super::CallMemory;
use super::layout::{Fields, list};
use crate::view::symbols;

/// The types of files, by the bits of their mode.
const KINDS: [(u32, &str); 7] = [
    (0o010_000, "S_IFIFO"),
    (0o020_000, "S_IFCHR"),
    (0o040_000, "S_IFDIR"),
    (0o060_000, "S_IFBLK"),
    (0o100_000, "S_IFREG"),
    (0o120_000, "S_IFLNK"),
    (0o140_000, "S_IFSOCK"),
];

/// The type, the bits beyond permissions, and the permissions.
fn mode(mode: u32) -> String {
    let mut text = String::new();
    let kind = mode & 0o170_000;
    match KINDS.iter().find(|(bits, _)| *bits == kind) {
        Some((_, name)) => text += name,
        None if kind != 0 => {
            let _ = write!(text, "{kind:#o}");
        }
        None => {}
    }
    for (bit, name) in [
        (0o4000, "S_ISUID"),
        (0o2000, "S_ISGID"),
        (0o1000, "S_ISVTX"),
    ] {
        if mode & bit != 0 {
            let _ = write!(text, "|{name}");
        }
    }
    let _ = write!(text, "|0{:02o}", mode & 0o777);
    text.trim_start_matches('|').to_owned()
}

/// The major and minor number of a device, as the C library computes them.
fn device(number: u64) -> String {
    let major = (number >> 8 & 0xfff) | (number >> 32 & !0xfff);
    let minor = (number & 0xff) | (number >> 12 & !0xff & 0xffff_ffff);
    format!("makedev({major:#x}, {minor:#x})")
}

fn is_device(mode: u32) -> bool {
    matches!(mode & 0o170_000, 0o020_000 | 0o060_000)
}

pub(super) fn stat(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let bytes = behind.bytes(address, 64)?;
    let fields = Fields(&bytes);
    let bits = fields.half(24);
    let (shown, size) = (mode(bits), fields.signed(48));
    Some(match is_device(bits) {
        true => format!(
            "{{st_mode={shown}, st_rdev={}, ...}}",
            device(fields.word(40))
        ),
        false => format!("{{st_mode={shown}, st_size={size}, ...}}"),
    })
}

pub(super) fn statx(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let bytes = behind.bytes(address, 48)?;
    let fields = Fields(&bytes);
    let mask = symbols::statx_mask(u64::from(fields.half(0)));
    let attributes = symbols::starting_with("STATX_ATTR_", fields.word(8));
    let (shown, size) = (mode(fields.quarter(28).into()), fields.word(40));
    Some(format!(
        "{{stx_mask={mask}, stx_attributes={attributes}, stx_mode={shown}, stx_size={size}, ...}}"
    ))
}

pub(super) fn statfs(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let bytes = behind.bytes(address, 88)?;
    let fields = Fields(&bytes);
    let kind = fields.word(0);
    let mut magics = consts::names(Arch::X86_64).filter(|name| name.ends_with("_MAGIC"));
    let is_it = |name: &&str| consts::value(Arch::X86_64, name) == Some(kind);
    let kind = match magics.find(is_it) {
        Some("EXT4_SUPER_MAGIC" | "EXT3_SUPER_MAGIC") => "EXT2_SUPER_MAGIC".to_owned(),
        Some(name) => name.to_owned(),
        None => format!("{kind:#x}"),
    };
    let names = [
        "f_bsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree",
    ];
    let words = names.iter().enumerate();
    let words = list(words.map(|(index, name)| format!("{name}={}", fields.word(8 + 8 * index))));
    Some(format!(
        "{{f_type={kind}, {words}, f_fsid={{val=[{}, {}]}}, f_namelen={}, f_frsize={}, f_flags={}}}",
        hexadecimal(fields.half(56)),
        hexadecimal(fields.half(60)),
        fields.word(64),
        fields.word(72),
        flags(fields.word(80))
    ))
}

fn hexadecimal(number: u32) -> String {
    match number {
        0 => "0".to_owned(),
        number => format!("{number:#x}"),
    }
}

/// The flags of a mounted file system.
fn flags(flags: u64) -> String {
    /// `ST_VALID`, which is internal to the kernel.
    const VALID: u64 = 0x20;
    const NAMES: [&str; 10] = [
        "ST_RDONLY",
        "ST_NOSUID",
        "ST_NODEV",
        "ST_NOEXEC",
        "ST_SYNCHRONOUS",
        "ST_MANDLOCK",
        "ST_NOATIME",
        "ST_NODIRATIME",
        "ST_RELATIME",
        "ST_NOSYMFOLLOW",
    ];
    let rest = symbols::joined(Arch::X86_64, &NAMES, flags & !VALID);
    match (flags & VALID != 0, rest.as_str()) {
        (true, "0") => "ST_VALID".to_owned(),
        (true, rest) => format!("ST_VALID|{rest}"),
        (false, rest) => rest.to_owned(),
    }
}

/// The number of entries of a directory, after their address.
pub(super) fn entries(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let len = usize::try_from(behind.result).ok()?;
    let bytes = behind.bytes(address, len)?;
    let (mut at, mut count) = (0, 0);
    while at < len {
        // The length of an entry follows two words.
        let own = usize::from(Fields(&bytes).quarter(at + 16));
        if own == 0 {
            break;
        }
        at += own;
        count += 1;
    }
    Some(format!("{address:#x} /* {count} entries */"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_devices_are_those_of_strace() {
        assert_eq!(mode(0o100_644), "S_IFREG|0644");
        assert_eq!(mode(0o041_777), "S_IFDIR|S_ISVTX|0777");
        assert_eq!(mode(0o104_755), "S_IFREG|S_ISUID|0755");
        assert_eq!(mode(0o100_000), "S_IFREG|000");
        assert_eq!(device(0x103), "makedev(0x1, 0x3)");
        assert_eq!(device(0x8801), "makedev(0x88, 0x1)");
    }
}

//! The instructions around a `syscall` that are replaced by a jump of five bytes.
//!
//! The `syscall` has two bytes; its neighbours provide the others: whole instructions after it, such as the comparison
//! with -4095 that C libraries and Go make, the padding after a return, or the instruction before it. They must mean
//! the same at another address, and no jump may lead between them. So the whole mapping is decoded once, with the
//! targets of all its jumps.

use std::collections::BTreeMap;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};

/// The bytes of `jmp rel32`.
pub(crate) const JUMP_BYTES: usize = 5;
/// The bytes of `syscall`.
pub(crate) const SYSCALL_BYTES: usize = 2;
/// The longest instruction.
const MAX_INSN_BYTES: usize = 15;

/// The decoded code of a mapping, by offsets into it.
#[derive(Debug)]
pub(crate) struct Text {
    bytes: Vec<u8>,
    /// The targets of its jumps and calls, sorted.
    targets: Vec<u32>,
    /// Each `syscall`, with the length of the instruction before it.
    sites: BTreeMap<u32, u8>,
}

/// The bytes that are replaced at one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The offset of its first byte.
    pub(crate) start: u32,
    /// The instructions before the `syscall`.
    pub(crate) before: Vec<u8>,
    /// The instructions after it.
    pub(crate) after: Vec<u8>,
    /// Unreachable bytes after those.
    pub(crate) padding: usize,
    /// The boundaries between instructions, as offsets into the window.
    pub(crate) boundaries: Vec<usize>,
}

impl Window {
    pub(crate) const fn len_bytes(&self) -> usize {
        self.before.len() + SYSCALL_BYTES + self.after.len() + self.padding
    }
}

impl Text {
    /// Decodes the code of a mapping.
    pub(crate) fn new(bytes: Vec<u8>) -> Text {
        let mut targets = Vec::new();
        let mut sites = BTreeMap::new();
        let mut decoder = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE);
        let (mut insn, mut before) = (Instruction::default(), 0);
        while decoder.can_decode() {
            decoder.decode_out(&mut insn);
            if insn.code() == Code::Syscall {
                sites.insert(insn.ip32(), before);
            }
            if insn.is_jcc_short_or_near() || is_direct(insn.flow_control()) {
                targets.push(insn.near_branch_target() as u32);
            }
            before = insn.len() as u8;
        }
        targets.sort_unstable();
        Text {
            bytes,
            targets,
            sites,
        }
    }

    /// The bytes of a window.
    pub(crate) fn bytes_of(&self, window: &Window) -> &[u8] {
        &self.bytes[window.start as usize..][..window.len_bytes()]
    }

    /// The window of a site; `None` if there is no site or it can't be replaced.
    pub(crate) fn window(&self, site: u32) -> Option<Window> {
        let before = *self.sites.get(&site)? as usize;
        let found = self.after(site).or_else(|| self.before(site, before))?;
        let end = found.start as usize + found.len_bytes();
        let first = self
            .targets
            .partition_point(|target| *target <= found.start);
        let is_entered = self
            .targets
            .get(first)
            .is_some_and(|one| (*one as usize) < end);
        (!is_entered).then_some(found)
    }

    /// The window that begins with the `syscall`.
    fn after(&self, site: u32) -> Option<Window> {
        let mut window = Window {
            start: site,
            before: Vec::new(),
            after: Vec::new(),
            padding: 0,
            boundaries: vec![SYSCALL_BYTES],
        };
        let first = site as usize + SYSCALL_BYTES;
        let rest = self.bytes.get(first..)?;
        let rest = &rest[..rest.len().min(JUMP_BYTES + MAX_INSN_BYTES)];
        let mut decoder = Decoder::with_ip(64, rest, first as u64, DecoderOptions::NONE);
        while window.len_bytes() < JUMP_BYTES {
            let insn = decoder.decode();
            if insn.is_invalid() {
                return None;
            }
            window
                .after
                .extend(&rest[window.after.len()..][..insn.len()]);
            match insn.flow_control() {
                FlowControl::Next if is_movable(&insn) => {}
                FlowControl::Return => {
                    let missing = JUMP_BYTES.saturating_sub(window.len_bytes());
                    window.padding = missing;
                    let padding = &rest[window.after.len()..];
                    return is_padding(padding, missing).then_some(window);
                }
                _ => return None,
            }
            window.boundaries.push(window.len_bytes());
        }
        window.boundaries.pop();
        Some(window)
    }

    /// The window that begins with the instruction before the `syscall`.
    fn before(&self, site: u32, len_bytes: usize) -> Option<Window> {
        let start = (site as usize).checked_sub(len_bytes)?;
        let before = &self.bytes[start..site as usize];
        let insn = Decoder::with_ip(64, before, 0, DecoderOptions::NONE).decode();
        let is_enough = len_bytes + SYSCALL_BYTES >= JUMP_BYTES;
        let is_plain = insn.flow_control() == FlowControl::Next && is_movable(&insn);
        (is_enough && is_plain && insn.len() == len_bytes).then(|| Window {
            start: start as u32,
            before: before.to_vec(),
            after: Vec::new(),
            padding: 0,
            boundaries: vec![len_bytes],
        })
    }
}

const fn is_direct(flow: FlowControl) -> bool {
    matches!(
        flow,
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call
    )
}

/// Whether an instruction means the same at another address.
fn is_movable(insn: &Instruction) -> bool {
    !insn.is_ip_rel_memory_operand() && insn.code() != Code::Syscall
}

/// Whether `count` bytes are padding between functions, which isn't reached after a return.
fn is_padding(bytes: &[u8], count: usize) -> bool {
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    while decoder.position() < count {
        let insn = decoder.decode();
        let is_nop = matches!(
            insn.code(),
            Code::Nopd | Code::Nopw | Code::Nopq | Code::Int3
        ) || insn.mnemonic() == iced_x86::Mnemonic::Nop;
        if insn.is_invalid() || !is_nop {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(bytes: &[u8], site: u32) -> Option<Window> {
        Text::new(bytes.to_vec()).window(site)
    }

    #[test]
    fn neighbours_give_way_only_where_nothing_jumps() {
        let read = [
            0x31, 0xc0, 0x0f, 0x05, 0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff, 0x77, 0x06, 0xc3,
        ];
        let found = window(&read, 2).unwrap();
        assert_eq!((found.start, found.after.len()), (2, 6));
        let mut entered = read.to_vec();
        // A jump to the comparison.
        entered.extend([0xeb, (4u8).wrapping_sub(15)]);
        assert_eq!(window(&entered, 2), None);
        // A jump to the `syscall` itself.
        *entered.last_mut().unwrap() = 2u8.wrapping_sub(15);
        assert_eq!(window(&entered, 2), Some(found));
    }

    #[test]
    fn padding_and_the_instruction_before_give_way() {
        let mut getppid = vec![0xb8, 0x6e, 0, 0, 0, 0x0f, 0x05, 0xc3];
        let before = window(&getppid, 5).unwrap();
        assert_eq!((before.start, before.before.len()), (0, 5));
        getppid.extend([0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]);
        let after = window(&getppid, 5).unwrap();
        assert_eq!((after.start, after.padding), (5, 2));
        // A function follows without padding.
        assert_eq!(
            window(&[0x89, 0xf8, 0x0f, 0x05, 0xc3, 0x55, 0x53, 0x50], 2),
            None
        );
    }
}

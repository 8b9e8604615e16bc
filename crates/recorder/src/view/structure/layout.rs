//! The bytes of a structure as numbers.

/// Bytes in the machine's order.
pub(super) struct Fields<'b>(pub(super) &'b [u8]);

impl Fields<'_> {
    /// 64 bits at an offset; 0 beyond the end.
    pub(super) fn word(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..).and_then(|bytes| bytes.first_chunk::<8>());
        bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    /// 32 bits.
    pub(super) fn half(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..).and_then(|bytes| bytes.first_chunk::<4>());
        bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    /// 16 bits.
    pub(super) fn quarter(&self, at: usize) -> u16 {
        let bytes = self.0.get(at..).and_then(|bytes| bytes.first_chunk::<2>());
        bytes.map_or(0, |bytes| u16::from_ne_bytes(*bytes))
    }

    /// 64 signed bits.
    pub(super) fn signed(&self, at: usize) -> i64 {
        self.word(at) as i64
    }

    /// 32 signed bits.
    pub(super) fn int(&self, at: usize) -> i32 {
        self.half(at) as i32
    }
}

/// An address as strace prints it.
pub(super) fn pointer(address: u64) -> String {
    match address {
        0 => "NULL".to_owned(),
        address => format!("{address:#x}"),
    }
}

/// Parts separated by commas.
pub(super) fn list(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

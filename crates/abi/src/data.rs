//! What a filter sees: `struct seccomp_data`, sixteen 32-bit words.
//!
//! The kernel lays 64-bit members out in its own byte order, so the low half of an argument stands
//! at a different offset on little- and big-endian machines. [`Word`] names the halves by meaning;
//! [`Word::offset`] and [`SeccompData::image`] know the layout.

use crate::arch::Endian;

/// The index of a system call argument, 0 to 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArgIndex(u8);

impl ArgIndex {
    /// All six indices.
    pub const ALL: [ArgIndex; 6] = [
        ArgIndex(0),
        ArgIndex(1),
        ArgIndex(2),
        ArgIndex(3),
        ArgIndex(4),
        ArgIndex(5),
    ];

    /// The index, if it is below 6.
    pub const fn new(index: u8) -> Option<ArgIndex> {
        if index < 6 {
            Some(ArgIndex(index))
        } else {
            None
        }
    }

    /// The index as a number, below 6.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One of the sixteen 32-bit words of [`SeccompData`], named by meaning rather than by offset.
///
/// The order is that of the little-endian layout: `nr`, `arch`, `ip` low and high, then low and high
/// of each argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(u8);

impl Word {
    /// The system call number.
    pub const NR: Word = Word(0);
    /// The architecture, an `AUDIT_ARCH_*` value.
    pub const ARCH: Word = Word(1);
    /// The low half of the instruction pointer.
    pub const IP_LOW: Word = Word(2);
    /// The high half of the instruction pointer.
    pub const IP_HIGH: Word = Word(3);
    /// How many words there are.
    pub const COUNT: usize = 16;

    /// All words in order.
    pub fn all() -> impl Iterator<Item = Word> {
        (0..Word::COUNT as u8).map(Word)
    }

    /// The low half of an argument.
    pub const fn arg_low(arg: ArgIndex) -> Word {
        Word(4 + 2 * arg.0)
    }

    /// The high half of an argument.
    pub const fn arg_high(arg: ArgIndex) -> Word {
        Word(5 + 2 * arg.0)
    }

    /// The position in the order of this type, below 16.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The byte offset in `struct seccomp_data` on a machine of this byte order.
    pub const fn offset(self, endian: Endian) -> u32 {
        let position = match endian {
            Endian::Big if self.0 >= 2 => self.0 ^ 1,
            Endian::Big | Endian::Little => self.0,
        };
        position as u32 * 4
    }

    /// The word at a byte offset; `None` unless the offset is one of 0, 4, … 60.
    pub fn from_offset(offset: u32, endian: Endian) -> Option<Word> {
        Word::all().find(|word| word.offset(endian) == offset)
    }

    /// The name used in comments: `nr`, `arch`, `ip.low`, `arg3.high`.
    pub const fn name(self) -> &'static str {
        const NAMES: [&str; Word::COUNT] = [
            "nr",
            "arch",
            "ip.low",
            "ip.high",
            "arg0.low",
            "arg0.high",
            "arg1.low",
            "arg1.high",
            "arg2.low",
            "arg2.high",
            "arg3.low",
            "arg3.high",
            "arg4.low",
            "arg4.high",
            "arg5.low",
            "arg5.high",
        ];
        NAMES[self.0 as usize]
    }
}

/// The input of a filter: one system call as the kernel presents it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeccompData {
    /// The system call number; on x86_64 bit 30 marks x32 calls.
    pub nr: u32,
    /// The architecture, an `AUDIT_ARCH_*` value.
    pub arch: u32,
    /// The address of the instruction after the call.
    pub ip: u64,
    /// The six arguments. Calls of a 32-bit architecture use the lower halves only; the upper ones
    /// are zero on a 32-bit kernel, but 64-bit code that calls as i386 (`int 0x80`) chooses them.
    pub args: [u64; 6],
}

impl SeccompData {
    /// The value of one word.
    pub const fn word(&self, word: Word) -> u32 {
        match word.0 {
            0 => self.nr,
            1 => self.arch,
            2 => self.ip as u32,
            3 => (self.ip >> 32) as u32,
            n if n % 2 == 0 => self.args[(n as usize - 4) / 2] as u32,
            n => (self.args[(n as usize - 4) / 2] >> 32) as u32,
        }
    }

    /// A copy with one word replaced.
    #[must_use]
    pub fn with_word(mut self, word: Word, value: u32) -> SeccompData {
        let low = |old: u64| old & !0xffff_ffff | u64::from(value);
        let high = |old: u64| old & 0xffff_ffff | u64::from(value) << 32;
        match word.0 {
            0 => self.nr = value,
            1 => self.arch = value,
            2 => self.ip = low(self.ip),
            3 => self.ip = high(self.ip),
            n if n % 2 == 0 => {
                let arg = (n as usize - 4) / 2;
                self.args[arg] = low(self.args[arg]);
            }
            n => {
                let arg = (n as usize - 4) / 2;
                self.args[arg] = high(self.args[arg]);
            }
        }
        self
    }

    /// The sixteen words in memory order, as `ld [4 * i]` reads them on a machine of this byte order.
    pub fn image(&self, endian: Endian) -> [u32; Word::COUNT] {
        let mut image = [0; Word::COUNT];
        for word in Word::all() {
            image[word.offset(endian) as usize / 4] = self.word(word);
        }
        image
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_matches_the_c_struct_in_both_byte_orders() {
        let data = SeccompData {
            nr: 1,
            arch: 2,
            ip: 0x3_0000_0004,
            args: [0x5_0000_0006; 6],
        };
        let mut bytes_le = Vec::new();
        let mut bytes_be = Vec::new();
        bytes_le.extend(data.nr.to_le_bytes());
        bytes_be.extend(data.nr.to_be_bytes());
        bytes_le.extend(data.arch.to_le_bytes());
        bytes_be.extend(data.arch.to_be_bytes());
        for wide in [data.ip].into_iter().chain(data.args) {
            bytes_le.extend(wide.to_le_bytes());
            bytes_be.extend(wide.to_be_bytes());
        }
        let words = |bytes: &[u8], read: fn([u8; 4]) -> u32| -> Vec<u32> {
            bytes
                .chunks(4)
                .map(|chunk| read(chunk.try_into().unwrap()))
                .collect()
        };
        assert_eq!(
            data.image(Endian::Little).to_vec(),
            words(&bytes_le, u32::from_le_bytes)
        );
        assert_eq!(
            data.image(Endian::Big).to_vec(),
            words(&bytes_be, u32::from_be_bytes)
        );
    }

    #[test]
    fn with_word_changes_that_word_only() {
        let before = SeccompData {
            nr: 9,
            arch: 8,
            ip: u64::MAX,
            args: [0x1111_2222_3333_4444; 6],
        };
        for changed in Word::all() {
            let after = before.with_word(changed, 0xabcd);
            for word in Word::all() {
                let expected = if word == changed {
                    0xabcd
                } else {
                    before.word(word)
                };
                assert_eq!(
                    after.word(word),
                    expected,
                    "{} after {}",
                    word.name(),
                    changed.name()
                );
            }
        }
    }
}

//! The input of a filter: `struct seccomp_data`, sixteen 32-bit words.
//!
//! The kernel lays 64-bit members out in its own byte order, so the low half of an argument stands
//! at a different offset on little- and big-endian machines. [`Word`] names the halves by meaning;
//! [`Word::offset`] and [`SeccompData::image`] know the layout.
//!
//! A filter with run-time variables is a function of their values too. They are words of the same kind, but
//! stand in the filter's instructions and not in the kernel's structure: they have no offset.

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

/// The index of a run-time variable of a policy, 0 to 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariableIndex(u8);

impl VariableIndex {
    /// How many variables a policy may have.
    pub const COUNT: usize = 32;

    /// The index, if it is below 32.
    pub const fn new(index: usize) -> Option<VariableIndex> {
        if index < VariableIndex::COUNT {
            Some(VariableIndex(index as u8))
        } else {
            None
        }
    }

    /// The index as a number, below 32.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One of the 32-bit input words of a filter, named by meaning rather than by offset: the sixteen of
/// [`SeccompData`] as the kernel has it, and those of the run-time variables.
///
/// The order is that of the little-endian layout: `nr`, `arch`, `ip` low and high, then low and high
/// of each argument; low and high of each variable follow.
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
    /// How many words the kernel's structure has.
    pub const COUNT: usize = 16;
    /// How many words there are with those of the variables.
    pub const COUNT_WITH_VARIABLES: usize = Word::COUNT + 2 * VariableIndex::COUNT;

    /// All words of the kernel's structure in order.
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

    /// The low half of a variable.
    pub const fn variable_low(variable: VariableIndex) -> Word {
        Word(Word::COUNT as u8 + 2 * variable.0)
    }

    /// The high half of a variable.
    pub const fn variable_high(variable: VariableIndex) -> Word {
        Word(Word::COUNT as u8 + 1 + 2 * variable.0)
    }

    /// Whether it is half of a variable: filled in when the filter is bound, not read from the call.
    pub const fn is_variable(self) -> bool {
        self.index() >= Word::COUNT
    }

    /// The position in the order of this type, below [`COUNT_WITH_VARIABLES`](Self::COUNT_WITH_VARIABLES).
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The word at a position; `None` from [`COUNT_WITH_VARIABLES`](Self::COUNT_WITH_VARIABLES) on.
    pub const fn from_index(index: usize) -> Option<Word> {
        if index < Word::COUNT_WITH_VARIABLES {
            Some(Word(index as u8))
        } else {
            None
        }
    }

    /// The byte offset in `struct seccomp_data` on a machine of this byte order.
    ///
    /// # Panics
    /// If it is half of a variable, which no program loads.
    pub const fn offset(self, endian: Endian) -> u32 {
        assert!(!self.is_variable(), "variables have no offset");
        let position = match endian {
            Endian::Big if self.0 >= 2 => self.0 ^ 1,
            Endian::Big | Endian::Little => self.0,
        };
        position as u32 * 4
    }

    /// The word at a byte offset; `None` unless the offset is one of 0, 4, … 60.
    pub fn from_offset(offset: u32, endian: Endian) -> Option<Word> {
        let is_word = offset.is_multiple_of(4) && offset < 4 * Word::COUNT as u32;
        let word = is_word.then_some(Word((offset / 4) as u8))?;
        // Halves change places, so that the way back is the way there.
        Some(Word((word.offset(endian) / 4) as u8))
    }

    /// The name used in comments: `nr`, `arch`, `ip.low`, `arg3.high`; of all variables, `variable`.
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
        if self.is_variable() {
            "variable"
        } else {
            NAMES[self.index()]
        }
    }
}

/// The input of a filter: one system call as the kernel presents it, laid out as the kernel's structure is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct SeccompData {
    /// The system call number; on x86_64 bit 30 marks x32 calls.
    pub nr: u32,
    /// The architecture, an `AUDIT_ARCH_*` value.
    pub arch: u32,
    /// The address of the instruction after the call.
    pub ip: u64,
    /// The six arguments. Calls of a 32-bit architecture use the lower halves only; the upper ones
    /// are zero on a 32-bit kernel, but 64-bit code that calls as i386 (`int 0x80`) controls them.
    pub args: [u64; 6],
}

const _: () = assert!(size_of::<SeccompData>() == 4 * Word::COUNT);

impl SeccompData {
    /// The value of one word.
    ///
    /// # Panics
    /// If it is half of a variable, which is not part of a call.
    pub const fn word(&self, word: Word) -> u32 {
        let wide = match word.0 {
            0 => return self.nr,
            1 => return self.arch,
            2 | 3 => self.ip,
            _ => self.args[(word.index() - 4) / 2],
        };
        if word.0.is_multiple_of(2) {
            wide as u32
        } else {
            (wide >> 32) as u32
        }
    }

    /// A copy with one word replaced.
    ///
    /// # Panics
    /// If it is half of a variable, which is not part of a call.
    #[must_use]
    pub fn with_word(mut self, word: Word, value: u32) -> SeccompData {
        let wide = match word.0 {
            0 => {
                self.nr = value;
                return self;
            }
            1 => {
                self.arch = value;
                return self;
            }
            2 | 3 => &mut self.ip,
            _ => &mut self.args[(word.index() - 4) / 2],
        };
        let value = u64::from(value);
        *wide = if word.0.is_multiple_of(2) {
            *wide & !0xffff_ffff | value
        } else {
            *wide & 0xffff_ffff | value << 32
        };
        self
    }

    /// The sixteen words in memory order, as `ld [4 * i]` reads them on a machine of this byte order.
    pub fn image(&self, endian: Endian) -> [u32; Word::COUNT] {
        let mut image = [0; Word::COUNT];
        let (words, halves) = image.split_at_mut(Word::ARCH.index() + 1);
        words.copy_from_slice(&[self.nr, self.arch]);
        let values = std::iter::once(self.ip).chain(self.args);
        for (place, value) in halves.chunks_exact_mut(2).zip(values) {
            let (low, high) = (value as u32, (value >> u32::BITS) as u32);
            place.copy_from_slice(&match endian {
                Endian::Little => [low, high],
                Endian::Big => [high, low],
            });
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
                assert_eq!(after.word(word), expected, "{word:?} after {changed:?}");
            }
        }
    }
}

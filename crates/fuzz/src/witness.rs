//! Minimisation of an input: as many words zero as possible, and few bits in the others.

use tamis_abi::{Arch, SeccompData, Word};

/// The input with words replaced by simpler ones as long as `is_one` holds of it. No single word of the result can be
/// simplified further. The number keeps its bits unless it can be zero, because a part of it would be another call.
pub(crate) fn plain(data: &SeccompData, is_one: impl Fn(&SeccompData) -> bool) -> SeccompData {
    let mut best = *data;
    loop {
        let before = best;
        // First the arguments from the last to the first, then the pointer, the architecture, the number.
        let mut all: Vec<Word> = Word::all().collect();
        all.reverse();
        for word in all {
            let value = best.word(word);
            let found = plainer(word, value)
                .into_iter()
                .map(|value| best.with_word(word, value))
                .find(&is_one);
            best = found.unwrap_or(best);
        }
        if best == before {
            return best;
        }
    }
}

/// The candidates for replacing a word, the simplest first.
fn plainer(word: Word, value: u32) -> Vec<u32> {
    match (word, value) {
        (Word::ARCH, _) => {
            let known = [Arch::X86_64, Arch::Aarch64, Arch::X86];
            let known = known.map(Arch::audit).into_iter();
            known.take_while(|audit| *audit != value).collect()
        }
        (_, 0) => Vec::new(),
        (Word::NR, _) => vec![0],
        (_, 1) => vec![0],
        _ => {
            let fewer = (0..32).rev().filter(|bit| value >> bit & 1 == 1);
            let mut plainer = vec![0, 1];
            plainer.extend(fewer.map(|bit| value & !(1 << bit)));
            plainer
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_becomes_zero() {
        let data = SeccompData {
            nr: 16,
            arch: 7,
            ip: u64::MAX,
            args: [u64::MAX, 0x1234_5678_9abc_def0, 3, 4, 5, 6],
        };
        let plain = plain(&data, |data| data.nr == 16 && data.args[1] & 0xf0 >= 0x30);
        let expected = SeccompData {
            nr: 16,
            arch: Arch::X86_64.audit(),
            ip: 0,
            args: [0, 0x30, 0, 0, 0, 0],
        };
        assert_eq!(plain, expected);
    }
}

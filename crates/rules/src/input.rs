//! The input of a ruleset: a call, and the values of its run-time variables.
//!
//! Most rulesets have no variables and are evaluated for a [`SeccompData`]. An [`Input`] is for those with
//! variables, and for code that, like the prover, finds inputs of any subject.

use std::fmt;

use tamis_abi::{SeccompData, VariableIndex, Word, call};

/// The values of a ruleset's variables, by index; 0 by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Values([u64; VariableIndex::COUNT]);

impl Values {
    /// All values 0.
    pub const ZERO: Values = Values([0; VariableIndex::COUNT]);

    /// These values for the first variables.
    ///
    /// # Panics
    /// If there are more than [`VariableIndex::COUNT`].
    pub fn new(values: &[u64]) -> Values {
        let mut all = Values::ZERO;
        all.0[..values.len()].copy_from_slice(values);
        all
    }

    /// All values, by index.
    pub const fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// The value of the variable of a word.
    const fn of_word(&self, word: Word) -> u64 {
        self.0[(word.index() - Word::COUNT) / 2]
    }
}

/// The values other than 0: ` with var0=0x3, var2=0x7`.
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = " with";
        for (index, value) in self.0.iter().enumerate().filter(|(_, value)| **value != 0) {
            write!(f, "{separator} var{index}={value:#x}")?;
            separator = ",";
        }
        Ok(())
    }
}

/// A call, and the values of the variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Input {
    /// The call.
    pub data: SeccompData,
    /// The values of the variables.
    pub variables: Values,
}

impl From<SeccompData> for Input {
    fn from(data: SeccompData) -> Input {
        Input {
            data,
            variables: Values::ZERO,
        }
    }
}

impl Input {
    /// The value of one word, of the call or of a variable.
    pub const fn word(&self, word: Word) -> u32 {
        word_of(&self.data, &self.variables, word)
    }

    /// A copy with one word replaced.
    #[must_use]
    pub fn with_word(mut self, word: Word, value: u32) -> Input {
        if !word.is_variable() {
            self.data = self.data.with_word(word, value);
            return self;
        }
        let half = word.index() - Word::COUNT;
        let shift = 32 * (half % 2);
        let wide = &mut self.variables.0[half / 2];
        *wide = *wide & !(0xffff_ffff << shift) | u64::from(value) << shift;
        self
    }

    /// The call as shown by [`call::describe`], and the values other than 0.
    pub fn describe(&self) -> String {
        call::describe(&self.data) + &self.variables.to_string()
    }

    /// The call as shown by [`call::describe_briefly`], and the values other than 0.
    pub fn describe_briefly(&self) -> String {
        call::describe_briefly(&self.data) + &self.variables.to_string()
    }
}

/// The value of a word of a call or of a variable.
pub(crate) const fn word_of(data: &SeccompData, variables: &Values, word: Word) -> u32 {
    if !word.is_variable() {
        return data.word(word);
    }
    let wide = variables.of_word(word);
    if (word.index() - Word::COUNT).is_multiple_of(2) {
        wide as u32
    } else {
        (wide >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_word_changes_that_word_only() {
        let before = Input {
            data: SeccompData {
                nr: 9,
                arch: 8,
                ip: u64::MAX,
                args: [0x1111_2222_3333_4444; 6],
            },
            variables: Values::new(&[0x5555_6666_7777_8888; VariableIndex::COUNT]),
        };
        let words = || (0..).map_while(Word::from_index);
        for changed in words() {
            let after = before.with_word(changed, 0xabcd);
            for word in words() {
                let expected = if word == changed {
                    0xabcd
                } else {
                    before.word(word)
                };
                assert_eq!(after.word(word), expected, "{word:?} after {changed:?}");
            }
        }
    }

    #[test]
    fn values_that_are_zero_are_left_out_of_the_description() {
        let plain = Input::from(SeccompData::default());
        assert_eq!(plain.describe(), call::describe(&plain.data));
        let bound = Input {
            variables: Values::new(&[3, 0, 7]),
            ..plain
        };
        assert_eq!(
            bound.describe(),
            format!("{} with var0=0x3, var2=0x7", plain.describe())
        );
    }
}

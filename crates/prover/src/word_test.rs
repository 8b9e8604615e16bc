//! Conditions on one word: comparisons of the word, or of some of its bits, with a constant.
//!
//! They are built from the lowest bit up, with one node for each relevant bit.

use tamis_abi::Word;
use tamis_bpf::Test;

use crate::diagram::{Diagram, FALSE, LimitReached, Node, TRUE};
use crate::order;

/// The condition that `word & mask` and `k` satisfy a comparison.
pub(crate) fn masked_test(
    diagram: &mut Diagram,
    word: Word,
    mask: u32,
    test: Test,
    k: u32,
) -> Result<Node, LimitReached> {
    let mut condition = match test {
        Test::Eq | Test::Ge => TRUE,
        Test::Gt | Test::Set => FALSE,
    };
    for bit in 0..32 {
        // The results for this bit being 0 and 1, given those of the lower bits.
        let wanted = k >> bit & 1 == 1;
        let (low, high) = match (test, wanted) {
            (Test::Eq, false) => (condition, FALSE),
            (Test::Eq | Test::Gt | Test::Ge, true) => (FALSE, condition),
            (Test::Gt | Test::Ge, false) => (condition, TRUE),
            (Test::Set, true) => (condition, TRUE),
            (Test::Set, false) => (condition, condition),
        };
        condition = if mask >> bit & 1 == 1 {
            diagram.branch(order::variable(word, bit), low, high)?
        } else {
            low
        };
    }
    Ok(condition)
}

#[cfg(test)]
mod tests {
    use tamis_abi::SeccompData;

    use super::*;
    use crate::{Function, Limits, Space};

    #[test]
    fn agrees_with_the_test_of_the_masked_value() {
        let samples = [0, 1, 2, 7, 8, 0x80, 0x4000_0000, 0xffff_0000, u32::MAX];
        let mut space = Space::new(Limits::default());
        for mask in samples {
            for k in samples {
                for test in Test::ALL {
                    let node = masked_test(&mut space.diagram, Word::NR, mask, test, k).unwrap();
                    for nr in samples {
                        let data = SeccompData {
                            nr,
                            ..SeccompData::default()
                        };
                        let value = space.value(Function(node), &data.into());
                        assert_eq!(
                            value == 1,
                            test.holds(nr & mask, k),
                            "{nr:#x} & {mask:#x} {test:?} {k:#x}"
                        );
                    }
                }
            }
        }
    }
}

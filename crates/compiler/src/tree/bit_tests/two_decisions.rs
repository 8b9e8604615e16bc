//! Bit tests with a decision on each side.
//!
//! Where every fourth number has another decision than its neighbours, comparisons need a question for each of them;
//! the question whether one of the two lowest bits is set decides all. The mask follows from the values of both
//! decisions: it must not have bits of the values whose answer is no, and may have all other bits of the values whose
//! answer is yes.

use crate::tree::Span;

/// A mask that has a bit of every value of `set` and no bit of any value of `clear`, if there is one. Values in neither
/// are don't-cares. Linear.
pub(in crate::tree) fn separating_mask<'a>(
    set: impl Iterator<Item = &'a Span>,
    clear: impl Iterator<Item = &'a Span>,
) -> Option<u32> {
    let used = clear.fold(0, |bits, span| bits | bits_of(span));
    let mut reach = 0;
    let mask = !used;
    for span in set {
        reach |= bits_of(span);
        if !has_bits(span, mask) {
            return None;
        }
    }
    Some(mask & reach)
}

/// Whether all values have one of these bits.
pub(in crate::tree) fn has_bits(span: &Span, mask: u32) -> bool {
    common_bits(span) & mask != 0 || first_without(span.first, mask).is_none_or(|at| at > span.last)
}

/// The bits that one of the values has.
pub(in crate::tree) fn bits_of(span: &Span) -> u32 {
    span.last | varying_bits(span)
}

/// The bits that all values have.
pub(in crate::tree) fn common_bits(span: &Span) -> u32 {
    span.last & !varying_bits(span)
}

/// The bits up to the highest one that some values have and some do not.
fn varying_bits(span: &Span) -> u32 {
    let differ = span.first ^ span.last;
    u32::MAX.checked_shr(differ.leading_zeros()).unwrap_or(0)
}

/// The smallest value from `first` on that has none of these bits.
pub(in crate::tree) fn first_without(first: u32, mask: u32) -> Option<u32> {
    let mut value = first;
    while value & mask != 0 {
        // The highest of these bits becomes clear only by counting up past it.
        let top = u32::BITS - 1 - (value & mask).leading_zeros();
        value = (value >> top).checked_add(1)?.checked_mul(1 << top)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::Dag;

    #[test]
    fn a_mask_is_found_if_and_only_if_there_is_one() {
        let node = Dag::new().ret(0);
        let span = |first: u32, last: u32| Span {
            first,
            last,
            weight: 1,
            node,
        };
        let values = 0..8_u32;
        for (a, b, c) in values.clone().flat_map(|a| {
            let values = values.clone();
            let pairs = values
                .clone()
                .flat_map(move |b| values.clone().map(move |c| (b, c)));
            pairs.map(move |(b, c)| (a, b, c))
        }) {
            let set = [span(a, a + 1)];
            let clear = [span(b, b + 2), span(c, c)];
            let fits = |mask: u32| {
                let has = |value: u32| value & mask != 0;
                (a..=a + 1).all(has) && !(b..=b + 2).chain([c]).any(has)
            };
            let found = separating_mask(set.iter(), clear.iter());
            assert_eq!(found.is_some(), (0..16).any(fits), "{set:?} {clear:?}");
            assert!(found.is_none_or(fits));
        }
    }
}

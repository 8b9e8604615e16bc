//! Texts with a slip of the pen.

use crate::rng::Rng;

/// The text with a character taken out, doubled or exchanged for one of these.
///
/// # Panics
/// If the text or the list is empty.
pub fn damaged(rng: &mut Rng, text: &str, signs: &[char]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = rng.index(chars.len());
    match rng.range(0..=2) {
        0 => drop(chars.remove(at)),
        1 => chars.insert(at, chars[at]),
        _ => chars[at] = *rng.choose(signs),
    }
    chars.into_iter().collect()
}

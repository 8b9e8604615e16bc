//! Integer literals of C: decimal, hexadecimal with prefix `0x`, octal with prefix `0`.

/// The value of a literal without a sign, or the error.
///
/// A digit outside the base is an error: C's `strtol` would silently stop before it and read `08` as 0.
pub(crate) fn c_integer(text: &str) -> Result<u64, &'static str> {
    let (radix, digits) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &text[2..]),
        [b'0', _, ..] => (8, &text[1..]),
        _ => (10, text),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(match radix {
            8 => "a number that begins with 0 is octal, but this has a digit above 7",
            _ => "not a digit in this base",
        });
    }
    u64::from_str_radix(digits, radix).map_err(|_| "more than 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_are_those_of_c() {
        assert_eq!(c_integer("0"), Ok(0));
        assert_eq!(c_integer("10"), Ok(10));
        assert_eq!(c_integer("010"), Ok(8));
        assert_eq!(c_integer("0x10"), Ok(16));
        assert_eq!(c_integer("0XffffFFFFffffFFFF"), Ok(u64::MAX));
    }

    #[test]
    fn what_strtol_would_cut_short_is_a_mistake() {
        for text in [
            "",
            "08",
            "0x",
            "0xg",
            "12a",
            "0x1_0000",
            "18446744073709551616",
        ] {
            assert!(c_integer(text).is_err(), "{text}");
        }
    }
}

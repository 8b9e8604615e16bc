//! The annotation by which crun accepts a program instead of a profile.
//!
//! ```text
//! run.oci.seccomp_bpf_data=IAAAAAQAAAA…
//! ```
//!
//! The value is the raw program in base64 (RFC 4648, with padding).

pub use tamis_bpf::forms::annotation::KEY;

/// The annotation, as an argument of `--annotation` of podman and nerdctl.
#[must_use]
pub fn text(program: &[u8]) -> String {
    format!("{KEY}={}\n", value(program))
}

/// The value of the annotation.
#[must_use]
pub fn value(program: &[u8]) -> String {
    base64(program)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| chunk.get(index).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            match digit <= chunk.len() {
                true => text.push(char::from(DIGITS[value as usize])),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xbf]), "+/+/");
    }
}

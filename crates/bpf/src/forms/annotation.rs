//! Programs as the annotation by which crun accepts one instead of a profile: the raw program in base64 (RFC 4648).
//!
//! ```text
//! run.oci.seccomp_bpf_data=IAAAAAQAAAA…
//! ```

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, SourceId, Span};

use super::Form;
use crate::asm::Assembly;
use crate::code;
use crate::program::insns_from_bytes;

/// The key of the annotation.
pub const KEY: &str = "run.oci.seccomp_bpf_data";

/// The form in the registry.
pub(super) const FORM: Form = Form {
    name: "annotation",
    title: "an annotation of crun",
    about: "The annotation run.oci.seccomp_bpf_data, with a raw program in base64",
    extensions: &[],
    recognises,
    read,
};

fn recognises(text: &str) -> bool {
    text.trim_start().starts_with(KEY)
}

fn read(text: &str, source: SourceId, arch: Arch) -> Result<Assembly, Vec<Diagnostic>> {
    let whole = Span::new(source, 0, text.len());
    let wrong = |message: &str| {
        let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, message).label(whole, "");
        vec![diagnostic]
    };
    let value = text.trim().strip_prefix(KEY);
    let value = value.and_then(|rest| rest.trim_start().strip_prefix(['=', ':']));
    let value = value.ok_or_else(|| wrong("expected `run.oci.seccomp_bpf_data=` and base64"))?;
    let value = value.trim().trim_matches('"');
    let bytes = bytes(value).ok_or_else(|| wrong("the value is not base64"))?;
    let insns = insns_from_bytes(&bytes, arch.endian());
    let insns = insns.ok_or_else(|| wrong("the value is not a whole number of instructions"))?;
    let spans = vec![whole; insns.len()];
    Assembly::new(insns, arch.endian(), spans, whole, Vec::new())
}

/// The bytes of base64 with its padding.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    (bits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (text, expected) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(bytes(text).as_deref(), Some(expected.as_bytes()));
        }
        for wrong in ["Z", "Zg=", "Zh==", "Zm9*", "===="] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}

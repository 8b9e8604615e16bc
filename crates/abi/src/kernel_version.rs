//! Kernel releases.

use std::fmt;
use std::str::FromStr;

/// A kernel release without its patch level: `5.11`.
///
/// ```
/// use tamis_abi::KernelVersion;
/// let running: KernelVersion = "6.1.187-amd64".parse().unwrap();
/// assert!(running > KernelVersion::new(5, 11));
/// assert_eq!(running.to_string(), "6.1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
}

impl KernelVersion {
    /// The release `major.minor`.
    pub const fn new(major: u16, minor: u16) -> KernelVersion {
        KernelVersion { major, minor }
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A text is not a number, and does not start with two numbers separated by a dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseKernelVersionError {
    text: String,
}

impl fmt::Display for ParseKernelVersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a kernel version such as 5.11", self.text)
    }
}

impl std::error::Error for ParseKernelVersionError {}

impl FromStr for KernelVersion {
    type Err = ParseKernelVersionError;

    /// Parses `major.minor`, or `major` alone as its first release; a suffix of `uname -r` after `.`, `-`, `+`, `_` or
    /// `~` is ignored.
    fn from_str(text: &str) -> Result<KernelVersion, ParseKernelVersionError> {
        parse(text).ok_or_else(|| ParseKernelVersionError {
            text: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<KernelVersion> {
    let Some((major, rest)) = text.split_once('.') else {
        // `6` alone is the first release of a series.
        return Some(KernelVersion::new(number(text)?, 0));
    };
    let minor = rest.split(['.', '-', '+', '_', '~']).next()?;
    Some(KernelVersion::new(number(major)?, number(minor)?))
}

/// A number without the sign that `str::parse` would accept.
fn number(digits: &str) -> Option<u16> {
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        for version in [KernelVersion::new(2, 6), KernelVersion::new(6, 18)] {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
    }

    #[test]
    fn a_series_begins_with_its_first_release() {
        assert_eq!("6".parse(), Ok(KernelVersion::new(6, 0)));
    }

    #[test]
    fn releases_order_by_number_not_by_text() {
        assert!(KernelVersion::new(5, 9) < KernelVersion::new(5, 11));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "", "5.", ".5", "x", "-5", "5.x", "+5.1", "5.+1", "v5.1", "5.99999",
        ] {
            let error = text.parse::<KernelVersion>().unwrap_err();
            assert!(error.to_string().contains(text));
        }
    }
}

//! Programs and libraries that a filter is for, with their versions: `glibc-2.42`.

use std::fmt;
use std::iter;
use std::str::FromStr;

use tamis_abi::KernelVersion;
use tamis_diag::suggest;
use tamis_diag::words::joined;

use crate::tables::needs;

/// The target that is a kernel.
const LINUX: &str = "linux";

/// A version as dotted numbers: `2.42`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(Vec<u16>);

/// A program or library, in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: Version,
}

/// A text names no target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTarget {
    /// The mistake.
    pub message: String,
    /// The correction.
    pub help: String,
}

impl Version {
    /// The branch of a release: its first numbers; missing ones are 0.
    fn branch(&self, len: usize) -> Version {
        let parts = self.0.iter().copied().chain(iter::repeat(0));
        Version(parts.take(len).collect())
    }

    /// The same as a kernel release.
    fn as_kernel(&self) -> KernelVersion {
        let part = |index: usize| self.0.get(index).copied().unwrap_or(0);
        KernelVersion::new(part(0), part(1))
    }

    /// Whether it stands for every version.
    pub(crate) fn is_zero(&self) -> bool {
        self.0.iter().all(|part| *part == 0)
    }

    /// The first number.
    pub fn major(&self) -> u16 {
        self.0[0]
    }
}

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Version, ()> {
        let part = |part: &str| {
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| part.parse().ok()).flatten()
        };
        let parts: Option<Vec<u16>> = text.split('.').map(part).collect();
        parts.map(Version).ok_or(())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(u16::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

impl Target {
    /// The kernel, if the target is one.
    pub fn kernel(&self) -> Option<KernelVersion> {
        (self.name == LINUX).then(|| self.version.as_kernel())
    }

    /// Whether the target is of this version or a later one. A shorter number stands for the newest release of its branch.
    pub(crate) fn is_since(&self, since: &Version) -> bool {
        self.version >= since.branch(self.version.0.len())
    }

    /// Whether the target is of this version or an earlier one; of a branch, the newest release counts.
    pub(crate) fn is_until(&self, last: &Version) -> bool {
        self.version.0.len() >= last.0.len() && self.version.branch(last.0.len()) <= *last
    }
}

impl FromStr for Target {
    type Err = UnknownTarget;

    /// Parses `NAME-VERSION`.
    ///
    /// ```
    /// use tamis_lint::Target;
    /// assert_eq!("glibc-2.42".parse::<Target>().unwrap().to_string(), "glibc 2.42");
    /// assert!("musl-1.2".parse::<Target>().is_ok() && "linux-6".parse::<Target>().is_err());
    /// assert!("glibc-9".parse::<Target>().unwrap_err().message.contains("newer"));
    /// assert_eq!("glib-2.42".parse::<Target>().unwrap_err().help, "did you mean `glibc-2.42`?");
    /// ```
    fn from_str(text: &str) -> Result<Target, UnknownTarget> {
        let version_after = |name: &str| {
            let rest = text.strip_prefix(name)?;
            rest.strip_prefix('-').or(rest.is_empty().then_some(""))
        };
        let named = needs::TARGETS
            .iter()
            .filter_map(|known| Some((known, version_after(known.name)?)));
        let Some((known, written)) = named.max_by_key(|(known, _)| known.name.len()) else {
            return Err(not_a_target(text));
        };
        let name = known.name;
        let versions = known.versions();
        let range = match &versions {
            Some((oldest, newest)) => {
                format!("name one from {oldest} to {newest}: `{name}-{newest}`")
            }
            None => format!("its needs are those of every version; name any: `{name}-1`"),
        };
        let Ok(version) = written.parse::<Version>() else {
            let message = match written {
                "" => format!("`{text}` has no version"),
                _ => format!("`{written}` is no version of {name}"),
            };
            return Err(unknown(message, range));
        };
        if name == LINUX && version.0.len() < 2 {
            return Err(unknown(format!("`{text}` is a series of releases"), range));
        }
        // A patch level of the newest release is no later release, and a branch has its newest one.
        let len = version.0.len();
        let age = match versions {
            Some((_, newest)) if version.branch(newest.0.len()) > newest => "newer",
            Some((oldest, _)) if version < oldest.branch(len) => "older",
            _ => return Ok(Target { name, version }),
        };
        Err(unknown(
            format!("{name} {version} is {age} than the known versions"),
            range,
        ))
    }
}

fn unknown(message: String, help: String) -> UnknownTarget {
    UnknownTarget { message, help }
}

/// The mistake in a text that begins with no target's name.
fn not_a_target(text: &str) -> UnknownTarget {
    let is_version =
        |(at, _): &(usize, &str)| text[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let at = text.match_indices('-').find(is_version);
    let (name, version) = at.map_or((text, ""), |(at, _)| (&text[..at], &text[at + 1..]));
    let names = needs::TARGETS.map(|known| known.name);
    let help = match suggest::nearest(name, names) {
        Some(near) if version.parse::<Version>().is_err() => {
            format!("did you mean `{near}-VERSION`?")
        }
        Some(near) => format!("did you mean `{near}-{version}`?"),
        None => format!(
            "the targets are {}, each with a version: `glibc-2.42`",
            joined(&names, "and")
        ),
    };
    unknown(format!("there is no target `{name}`"), help)
}

//! The runs of a profile: those with an id are identified, so that none is counted twice.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The most bytes of an id, and of the names of a machine and a program.
const MAX_BYTES: usize = 128;

/// The id of a run: text of 1 to 128 bytes without control characters. Runs with the same id are the same run. Copies
/// share the text, because a fleet has each id in several sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Arc<str>);

impl RunId {
    /// An id; `None` if the text is invalid.
    ///
    /// ```
    /// use tamis_profile::RunId;
    /// assert!(RunId::new("build-4711/web").is_some());
    /// assert!(RunId::new("").is_none());
    /// assert!(RunId::new("a\nb").is_none());
    /// ```
    pub fn new(text: &str) -> Option<RunId> {
        (!text.is_empty() && is_name(text)).then(|| RunId(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a text can be the name of a machine or a program: up to 128 bytes without control characters.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= MAX_BYTES && !text.contains(char::is_control)
}

/// The machine and the program of a run; unknown ones are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    machine: Box<str>,
    program: Box<str>,
}

impl Origin {
    /// A machine and a program, either of them without control characters and cut to 128 bytes.
    pub fn new(machine: &str, program: &str) -> Origin {
        Origin {
            machine: name(machine),
            program: name(program),
        }
    }

    /// The name of the machine.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// The program.
    pub fn program(&self) -> &str {
        &self.program
    }
}

fn name(text: &str) -> Box<str> {
    let mut name = String::new();
    for char in text.chars().filter(|char| !char.is_control()) {
        if name.len() + char.len_utf8() > MAX_BYTES {
            break;
        }
        name.push(char);
    }
    name.into_boxed_str()
}

/// The counted runs of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Runs {
    /// The runs with an id.
    pub named: BTreeMap<RunId, Origin>,
    /// The number of runs without an id.
    pub unnamed: u64,
}

impl Runs {
    /// One run with an id.
    pub fn one(id: RunId, origin: Origin) -> Runs {
        Runs {
            named: BTreeMap::from([(id, origin)]),
            unnamed: 0,
        }
    }

    /// The number of runs.
    pub fn count(&self) -> u64 {
        self.unnamed.saturating_add(self.named.len() as u64)
    }

    /// Adds other runs. If the origins of a run differ, the alphabetically later one is kept, so that the order of
    /// merging doesn't matter.
    pub(crate) fn merge(&mut self, other: &Runs) {
        let unnamed = self.unnamed.saturating_add(other.unnamed);
        self.join(other);
        self.unnamed = unnamed;
    }

    /// As [`merge`](Self::merge), but runs without an id are assumed to be the same.
    pub(crate) fn join(&mut self, other: &Runs) {
        self.unnamed = self.unnamed.max(other.unnamed);
        for (id, origin) in &other.named {
            let known = self.named.entry(id.clone()).or_default();
            if *origin > *known {
                known.clone_from(origin);
            }
        }
    }
}

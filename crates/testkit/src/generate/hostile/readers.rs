//! Files near the limits of each reader of the command, for the cost of reading: many tiny elements, many different
//! values, long strings, wide and deep documents.
//!
//! Policies and programs with mistakes are in [`texts`](super::texts). [`SOURCES`] is the list of readers: every file
//! of the product's source that reads a user's file is in it, so that a new one without inputs here is noticed.

mod files;
mod policies;
mod profiles;

/// The files of the source that read untrusted input, with the evidence that they keep to the limits.
pub const SOURCES: [(&str, By); 19] = [
    ("crates/embed/src/file.rs", By::Loader),
    (
        "crates/exec/src/main.rs",
        By::Bounded("a program of 64 KiB"),
    ),
    ("crates/session/src/files.rs", By::Loader),
    (
        "crates/tamis/src/cli/library.rs",
        By::Bounded("the library, and the first 256 bytes of a program"),
    ),
    ("crates/cli/src/load.rs", By::Inputs),
    (
        "crates/cli/src/output.rs",
        By::Bounded("its own earlier output"),
    ),
    ("crates/cli/src/profile.rs", By::Inputs),
    ("crates/deploy/src/root.rs", By::Inputs),
    ("crates/tamis/src/command/explain/records.rs", By::Inputs),
    ("crates/tamis/src/command/inject.rs", By::Inputs),
    ("crates/tamis/src/command/oci.rs", By::Inputs),
    ("crates/tamis/src/command/precompile.rs", By::Inputs),
    ("crates/tamis/src/command/precompile/work.rs", By::Loader),
    ("crates/tamis/src/command/test.rs", By::Loader),
    ("crates/tamis/src/filter.rs", By::Loader),
    ("lab/tamis-lab/src/ebpf/check.rs", By::Loader),
    ("lab/tamis-lab/src/engines/mod.rs", By::Loader),
    ("lab/tamis-lab/src/packet.rs", By::Inputs),
    ("lab/tamis-lab/src/packets/eval.rs", By::Inputs),
];

/// The evidence that a reader keeps to the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Inputs of [`all`] with this source.
    Inputs,
    /// It hands on to readers that have inputs.
    Loader,
    /// It reads no more than this.
    Bounded(&'static str),
}

/// Files and the command that reads them.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The file of the source that takes them, one of [`SOURCES`].
    pub source: &'static str,
    /// The difficulty.
    pub name: &'static str,
    /// Their names and contents.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// The command; names of files are relative to their folder.
    pub args: Vec<&'static str>,
    /// The additional memory for rules, which are limited by their number and not by the size of their text.
    pub rules_bytes: usize,
}

impl Reading {
    /// A file with a command, whose words are separated by spaces.
    fn new(
        source: &'static str,
        name: &'static str,
        (file, bytes): (&'static str, Vec<u8>),
        command: &'static str,
    ) -> Reading {
        Reading {
            source,
            name,
            files: vec![(file, bytes)],
            args: command.split(' ').collect(),
            rules_bytes: 0,
        }
    }

    /// With another file.
    fn with(mut self, file: &'static str, bytes: &[u8]) -> Reading {
        self.files.push((file, bytes.to_vec()));
        self
    }

    /// Whether the laboratory's command reads the files.
    pub fn is_of_lab(&self) -> bool {
        self.source.starts_with("lab/")
    }

    /// The bytes of all files.
    pub fn size_bytes(&self) -> usize {
        self.files.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

/// All of them, of this many bytes if nothing else limits them.
pub fn all(long_bytes: usize) -> Vec<Reading> {
    [
        profiles::all(long_bytes),
        policies::all(long_bytes),
        files::all(long_bytes),
    ]
    .concat()
}

/// A bit less than the values and keys of a JSON document whose reader counts 2^20 commas.
const VALUES: usize = (1 << 20) - 100;

/// A text of elements: the parts before, between and after them; and limits of its bytes and of their number.
struct List<'l> {
    parts: [&'l str; 3],
    bytes: usize,
    elements: usize,
}

impl List<'_> {
    /// The text with as many elements as fit.
    fn text(&self, mut element: impl FnMut(usize) -> String) -> Vec<u8> {
        let [head, separator, tail] = self.parts;
        let mut text = head.to_owned();
        for index in 0..self.elements {
            let element = element(index);
            if text.len() + separator.len() + element.len() + tail.len() > self.bytes {
                break;
            }
            if index > 0 {
                text.push_str(separator);
            }
            text.push_str(&element);
        }
        text.push_str(tail);
        text.into_bytes()
    }
}

/// A list that is limited by its bytes alone.
fn list<'l>(head: &'l str, separator: &'l str, tail: &'l str, bytes: usize) -> List<'l> {
    List {
        parts: [head, separator, tail],
        bytes,
        elements: usize::MAX,
    }
}

impl List<'_> {
    /// With at most so many elements.
    fn up_to(self, elements: usize) -> Self {
        List { elements, ..self }
    }
}

/// Lines of so many bytes together.
fn lines(bytes: usize, line: impl FnMut(usize) -> String) -> Vec<u8> {
    list("", "\n", "\n", bytes).text(line)
}

/// The name of a call that every architecture has, in turn.
fn call(index: usize) -> &'static str {
    const NAMES: [&str; 6] = ["read", "write", "openat", "close", "mmap", "ioctl"];
    NAMES[index % NAMES.len()]
}

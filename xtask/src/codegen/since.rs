//! The kernel in which each call appeared.
//!
//! There are three sources, in order of priority: the hand rows of `since.csv`, the manual page syscalls(2), and the
//! releases of the package `system-calls`, which give a lower bound (a release without the call) and an upper bound
//! (the first release with it). If only the bounds are known, the upper one is used, so that no call gets a kernel
//! that lacks it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

use super::{read_data, sources};

const HAND_ROWS: &str = "since.csv";

/// A kernel release, without its patch level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kernel(pub(super) u16, pub(super) u16);

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl FromStr for Kernel {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Kernel> {
        let mut parts = text.split('.');
        let mut part = || parts.next().and_then(|part| part.parse().ok());
        match (part(), part()) {
            (Some(major), Some(minor)) => Ok(Kernel(major, minor)),
            _ => bail!("`{text}` is not a kernel release"),
        }
    }
}

/// The kernel of a call: the general one, and those of single columns that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Since {
    general: Option<Kernel>,
    columns: BTreeMap<String, Kernel>,
}

impl Since {
    /// The kernel for one column of the table.
    pub(super) fn column(&self, column: &str) -> Option<Kernel> {
        self.columns.get(column).copied().or(self.general)
    }
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let general = self.general.map(|kernel| kernel.to_string());
        let columns = self
            .columns
            .iter()
            .map(|(name, kernel)| format!("{name}={kernel}"));
        let all: Vec<String> = general.into_iter().chain(columns).collect();
        f.write_str(&all.join(" "))
    }
}

impl FromStr for Since {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Since> {
        let mut since = Since::default();
        for word in text.split_whitespace() {
            match word.split_once('=') {
                None => since.general = Some(word.parse()?),
                Some((column, kernel)) => {
                    since.columns.insert(column.to_owned(), kernel.parse()?);
                }
            }
        }
        Ok(since)
    }
}

/// The bounds for one call in one column by the releases of `system-calls`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The last release whose table lacks the call; `None` if even the first table has it.
    pub(super) absent: Option<Kernel>,
    /// The first release whose table has the call.
    pub(super) present: Kernel,
}

/// All data about the kernels of calls.
pub(super) struct History {
    hand: BTreeMap<(String, String), Kernel>,
    manual: BTreeMap<String, Kernel>,
}

impl History {
    /// Reads the hand rows and the manual page.
    pub(super) fn read() -> Result<History> {
        let mut hand = BTreeMap::new();
        for line in super::csv_rows(&read_data(HAND_ROWS)?) {
            let [name, column, kernel, _source] = line[..] else {
                bail!("{HAND_ROWS}: {line:?} has not four columns");
            };
            hand.insert((name.to_owned(), column.to_owned()), kernel.parse()?);
        }
        let page = sources::output(
            Command::new("sh").args(["-c", "zcat /usr/share/man/man2/syscalls.2.gz"]),
        )
        .context("syscalls(2): install the Debian package manpages-dev")?;
        Ok(History {
            hand,
            manual: manual_rows(&page),
        })
    }

    /// Determines the kernel of a call from all sources and its bounds per column.
    pub(super) fn decide(&self, name: &str, bounds: &BTreeMap<&str, Bounds>) -> Result<Since> {
        let hand = |column: &str| {
            self.hand
                .get(&(name.to_owned(), column.to_owned()))
                .copied()
        };
        let earliest_bound = bounds
            .values()
            .filter(|bounds| bounds.absent.is_some())
            .map(|bounds| bounds.present)
            .min();
        let general = hand("*")
            .or(self.manual.get(name).copied())
            .or(earliest_bound);
        let mut since = Since {
            general,
            ..Since::default()
        };
        for (&column, bounds) in bounds {
            let kernel = match hand(column) {
                Some(kernel) => kernel,
                None if bounds.absent.is_some_and(|absent| Some(absent) >= general) => {
                    bounds.present
                }
                None => continue,
            };
            if Some(kernel) != general {
                since.columns.insert(column.to_owned(), kernel);
            }
        }
        if let Some(general) = hand("*") {
            let contradicts = |bounds: &Bounds| bounds.present < general;
            if bounds.values().any(contradicts) {
                bail!("{name}: {HAND_ROWS} says {general}, an earlier release has it");
            }
        }
        Ok(since)
    }

    /// Hand rows for calls that are not in any table.
    pub(super) fn unused<'a>(&'a self, names: &BTreeSet<&str>) -> Vec<&'a str> {
        let hand = self.hand.keys().map(|(name, _)| name.as_str());
        hand.filter(|name| !names.contains(name)).collect()
    }
}

/// The rows `\fBname\fP(2)<tab>kernel…` of the manual page; if there are several kernels (backports), the first.
fn manual_rows(page: &str) -> BTreeMap<String, Kernel> {
    page.lines()
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("\\fB")?.split_once("\\fP(2)\t")?;
            let kernel = rest.split([';', '\t', ' ']).next()?.parse().ok()?;
            Some((name.to_owned(), kernel))
        })
        .collect()
}

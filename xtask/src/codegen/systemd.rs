//! Data from systemd: its sets of system calls and the directives of its units, by version.
//!
//! `cargo xtask codegen --refresh systemd VERSION=DIR …` reads source trees of systemd, each of one point release, and
//! `crates/policy/data/systemd-evidence.tsv` with the facts that are not in these trees: the release between two of
//! them in which a name appeared, by the release notes, pull requests and kernels. The results are tables that the
//! front end reads directly. `crates/policy/data/README.md` describes how to get the trees with apt.
//!
//! A version that isn't certain stays a range. Only names are taken from the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::abi_dir;
use super::systemd_tree::{Pair, Tree};

const EVIDENCE: &str = "systemd-evidence.tsv";
const HEADER: &str = "# Made by `cargo xtask codegen --refresh systemd`; see README.md.\n";

/// Rewrites both tables from source trees: `VERSION=DIR` each.
pub(super) fn refresh(trees: &[&str]) -> Result<()> {
    let mut read = BTreeMap::new();
    for tree in trees {
        let (version, folder) = tree.split_once('=').context("write VERSION=DIR")?;
        let tree = Tree::read(Path::new(folder)).with_context(|| format!("reading {folder}"))?;
        read.insert(Version::parse(version)?, tree);
    }
    ensure!(read.len() > 1, "two or more source trees are needed");
    let evidence = fs::read_to_string(data(EVIDENCE)).context("reading the evidence")?;
    let evidence = Evidence::parse(&evidence)?;
    write("systemd-sets.tsv", &sets(&read, &evidence)?)?;
    write("systemd-directives.tsv", &directives(&read, &evidence)?)
}

/// A release of systemd: of a main release the point is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u16,
    point: u16,
}

impl Version {
    fn parse(text: &str) -> Result<Version> {
        let (major, point) = text.split_once('.').unwrap_or((text, "0"));
        let number = |part: &str| part.parse().with_context(|| format!("version {text}"));
        Ok(Version {
            major: number(major)?,
            point: number(point)?,
        })
    }

    fn text(self) -> String {
        match self.point {
            0 => self.major.to_string(),
            point => format!("{}.{point}", self.major),
        }
    }
}

/// The trees by version.
type Trees = BTreeMap<Version, Tree>;

/// The evidence on a pair besides the trees, by table, pair and event.
struct Evidence(BTreeMap<(String, Pair, String), Known>);

/// The range of versions of an event, and the source of that.
#[derive(Clone)]
struct Known {
    range: String,
    source: String,
}

impl Evidence {
    /// Reads lines of table, key, member, event, version, bounds, source.
    fn parse(text: &str) -> Result<Evidence> {
        let mut all = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            let [table, key, member, event, version, bounds, source] = fields[..] else {
                bail!("`{line}` has not seven fields");
            };
            let known = Known {
                range: match bounds {
                    "-" => version.to_owned(),
                    bounds => bounds.to_owned(),
                },
                source: source.to_owned(),
            };
            let pair = (key.to_owned(), member.to_owned());
            all.insert((table.to_owned(), pair, event.to_owned()), known);
        }
        Ok(Evidence(all))
    }

    fn get(&self, table: &str, pair: &Pair, event: &str) -> Option<Known> {
        let key = (table.to_owned(), pair.clone(), event.to_owned());
        self.0.get(&key).cloned()
    }
}

/// The versions that have a pair.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Life {
    /// The first main release, or a range of such: `258..259`.
    first: String,
    /// The last main release, or `-`.
    last: String,
    /// The stable branches that have it, though the main release of their number may not.
    stable: String,
    source: String,
}

impl Life {
    fn from_trees(
        table: &str,
        pair: &Pair,
        trees: &Trees,
        has: &dyn Fn(&Tree) -> bool,
        evidence: &Evidence,
    ) -> Result<Life> {
        let having: Vec<bool> = trees.values().map(has).collect();
        let start = having.iter().position(|has| *has).context("it is in one")?;
        let end = having
            .iter()
            .rposition(|has| *has)
            .context("it is in one")?;
        ensure!(
            having[start..=end].iter().all(|has| *has),
            "{pair:?} comes and goes"
        );
        let majors: Vec<u16> = trees.keys().map(|version| version.major).collect();
        let newest = trees.values().next_back().context("there are trees")?;
        let mut source = "seen".to_owned();
        let mut first = match start {
            0 => majors[0].to_string(),
            _ => range(majors[start - 1] + 1, majors[start]),
        };
        if start > 0 && table == "directives" {
            let bounds = majors[start - 1] + 1..=majors[start];
            let since = newest.since.get(&pair.1).into_iter().flatten();
            if let Some(version) = since.filter(|version| bounds.contains(version)).min() {
                (first, source) = (version.to_string(), "manual".to_owned());
            }
        }
        if let Some(known) = evidence.get(table, pair, "first") {
            (first, source) = (known.range, known.source);
        }
        let mut last = match majors.get(end + 1) {
            None => "-".to_owned(),
            Some(next) => range(majors[end], next - 1),
        };
        if let Some(known) = evidence.get(table, pair, "last") {
            (last, source) = (known.range, known.source);
        }
        let lowest: u16 = first.split("..").next().unwrap_or_default().parse()?;
        let highest: u16 = first.rsplit("..").next().unwrap_or_default().parse()?;
        ensure!(lowest <= highest, "{pair:?}: {first}");
        let backported = trees.keys().zip(&having);
        let backported = backported
            .filter(|(version, has)| **has && version.major < highest && version.point > 0);
        let mut stable: Vec<String> = backported.map(|(version, _)| version.text()).collect();
        stable.extend(evidence.get(table, pair, "stable").map(|known| known.range));
        stable.sort();
        Ok(Life {
            first,
            last,
            source,
            stable: match stable.is_empty() {
                true => "-".to_owned(),
                false => stable.join(" "),
            },
        })
    }
}

fn range(low: u16, high: u16) -> String {
    match low == high {
        true => high.to_string(),
        false => format!("{low}..{high}"),
    }
}

/// The line that names the trees.
fn trees_line(trees: &Trees) -> String {
    let versions: Vec<String> = trees.keys().map(|version| version.text()).collect();
    format!("{HEADER}trees\t{}\n", versions.join(" "))
}

fn sets(trees: &Trees, evidence: &Evidence) -> Result<String> {
    let all: BTreeSet<&Pair> = trees.values().flat_map(|tree| &tree.members).collect();
    let mut rows: BTreeMap<(String, Life), Vec<String>> = BTreeMap::new();
    for pair in all {
        let has = |tree: &Tree| tree.members.contains(pair);
        let life = Life::from_trees("sets", pair, trees, &has, evidence)?;
        let row = rows.entry((pair.0.clone(), life)).or_default();
        row.push(pair.1.clone());
    }
    let mut text = trees_line(trees);
    text += "# set\tfirst\tlast\tstable\tsource\tmembers\n";
    for ((set, life), members) in rows {
        let fields = [
            set.as_str(),
            &life.first,
            &life.last,
            &life.stable,
            &life.source,
            &members.join(" "),
        ];
        text += &format!("{}\n", fields.join("\t"));
    }
    Ok(text)
}

fn directives(trees: &Trees, evidence: &Evidence) -> Result<String> {
    let all: BTreeSet<&Pair> = trees.values().flat_map(|tree| &tree.directives).collect();
    let mut rows: BTreeMap<(String, Life, String), Vec<String>> = BTreeMap::new();
    for pair in all {
        let has = |tree: &Tree| tree.directives.contains(pair);
        let life = Life::from_trees("directives", pair, trees, &has, evidence)?;
        ensure!(
            life.last == "-",
            "{pair:?} is gone: the table has no column for that"
        );
        let mut ignoring = trees.iter().filter(|(_, tree)| tree.ignored.contains(pair));
        let seen = ignoring
            .next()
            .map(|(version, _)| version.major.to_string());
        let known = evidence.get("directives", pair, "ignored");
        let ignored = known.map(|known| known.range).or(seen);
        let ignored = ignored.unwrap_or_else(|| "-".to_owned());
        let row = rows.entry((pair.0.clone(), life, ignored)).or_default();
        row.push(pair.1.clone());
    }
    let mut text = trees_line(trees);
    text += "# section\tfirst\tignored\tsource\tdirectives\n";
    for ((section, life, ignored), names) in rows {
        let fields = [
            section.as_str(),
            &life.first,
            &ignored,
            &life.source,
            &names.join(" "),
        ];
        text += &format!("{}\n", fields.join("\t"));
    }
    Ok(text)
}

fn data(file: &str) -> PathBuf {
    abi_dir().join("../policy/data").join(file)
}

fn write(file: &str, text: &str) -> Result<()> {
    let path = data(file);
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}

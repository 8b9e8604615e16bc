//! What a source tree of systemd says of its sets of system calls and of the directives of units.
//!
//! Read are `src/shared/seccomp-util.c` (the sets), `syscall-list.txt` somewhere below `src` (the set `@known`, which the
//! former includes), `src/core/load-fragment-gperf.gperf.in` (the directives) and `man/systemd*.xml` (the version that
//! first had a documented directive).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// A set and its member, or a section and its directive.
pub(super) type Pair = (String, String);

/// The sections that share the directives of a template.
const TEMPLATES: [(&str, &str); 3] = [
    ("EXEC_CONTEXT_CONFIG_ITEMS", "exec-common"),
    ("CGROUP_CONTEXT_CONFIG_ITEMS", "cgroup-common"),
    ("KILL_CONTEXT_CONFIG_ITEMS", "kill-common"),
];
/// The argument of directives that are accepted and have no effect.
const IGNORED: &str = "DISABLED_LEGACY";

/// A source tree.
pub(super) struct Tree {
    pub(super) members: BTreeSet<Pair>,
    pub(super) directives: BTreeSet<Pair>,
    /// The directives that are accepted without effect.
    pub(super) ignored: BTreeSet<Pair>,
    /// The versions that the manual names beside a directive.
    pub(super) since: BTreeMap<String, BTreeSet<u16>>,
}

impl Tree {
    pub(super) fn read(folder: &Path) -> Result<Tree> {
        let text = |path: &str| {
            fs::read_to_string(folder.join(path)).with_context(|| format!("reading {path}"))
        };
        let list = find(&folder.join("src"), "syscall-list.txt")?;
        let list = fs::read_to_string(list.context("there is no syscall-list.txt")?)?;
        let members = members(&text("src/shared/seccomp-util.c")?, &list)?;
        let table = text("src/core/load-fragment-gperf.gperf.in")?;
        let (directives, ignored) = directives(&table);
        ensure!(!directives.is_empty(), "no directives");
        Ok(Tree {
            members,
            directives,
            ignored,
            since: since(&folder.join("man"))?,
        })
    }
}

/// The first file of a name below a folder, in the order of names.
fn find(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    let entries: Result<Vec<_>, _> = fs::read_dir(folder)?.collect();
    let mut paths: Vec<PathBuf> = entries?.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    for path in paths {
        if path.file_name().is_some_and(|own| own == name) {
            return Ok(Some(path));
        }
        let is_folder = path.is_dir() && !path.is_symlink();
        if is_folder && let Some(found) = find(&path, name)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The text without the parts between two marks, and without the marks.
fn without(text: &str, begin: &str, end: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once(begin) {
        left.push_str(before);
        left.push(' ');
        rest = inside.split_once(end).map_or("", |(_, after)| after);
    }
    left + rest
}

/// The sets and their members; those that begin with `@` are sets.
fn members(text: &str, known: &str) -> Result<BTreeSet<Pair>> {
    let (_, array) = text
        .split_once("syscall_filter_sets[")
        .context("no array of sets")?;
    let (array, _) = array.split_once("\n};").context("the array has no end")?;
    let array = without(array, "/*", "*/");
    let mut members = BTreeSet::new();
    for entry in array.split("[SYSCALL_FILTER_SET_").skip(1) {
        let (head, value) = entry.split_once(".value").context("a set without value")?;
        let (_, name) = head.split_once(".name").context("a set without name")?;
        let name = name.split('"').nth(1).context("a set without name")?;
        let strings = value.split('"').skip(1).step_by(2);
        let strings = strings.filter_map(|string| string.strip_suffix("\\0"));
        let listed = known.split_whitespace();
        let listed = listed.filter(|_| value.contains("syscall-list"));
        members.extend(
            strings
                .chain(listed)
                .map(|own| (name.to_owned(), own.to_owned())),
        );
    }
    Ok(members)
}

/// The directives by section or template, and those without effect.
fn directives(text: &str) -> (BTreeSet<Pair>, BTreeSet<Pair>) {
    let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let (mut all, mut ignored) = (BTreeSet::new(), BTreeSet::new());
    let mut template = None;
    for line in without(text, "{#", "#}").lines() {
        if line.contains("macro ") && !line.contains("endmacro") {
            let mut names = TEMPLATES.into_iter();
            template = names.find_map(|(own, name)| line.contains(own).then_some(name));
        } else if line.contains("endmacro") {
            template = None;
        }
        let mut fields = line.split(',').map(str::trim);
        let item = fields.next().and_then(|item| item.split_once('.'));
        let Some((section, directive)) = item.filter(|(_, own)| is_word(own)) else {
            continue;
        };
        if line.split(',').count() < 3 || !(is_word(section) || section == "{{type}}") {
            continue;
        }
        let section = template.map_or_else(|| format!("[{section}]"), str::to_owned);
        let pair = (section, directive.to_owned());
        if fields.nth(1) == Some(IGNORED) {
            ignored.insert(pair.clone());
        }
        all.insert(pair);
    }
    (all, ignored)
}

/// The versions that the pages of a manual name beside each directive.
fn since(folder: &Path) -> Result<BTreeMap<String, BTreeSet<u16>>> {
    let mut since: BTreeMap<String, BTreeSet<u16>> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        if !name.starts_with("systemd") || !name.ends_with(".xml") {
            continue;
        }
        let text = fs::read_to_string(folder.join(&name))?;
        for entry in text.split("<varlistentry").skip(1) {
            let entry = entry.split("</varlistentry>").next().unwrap_or_default();
            let versions = entry.split("xpointer=\"v").skip(1);
            let versions = versions.filter_map(|rest| rest.split('"').next()?.parse().ok());
            let versions: Vec<u16> = versions.collect();
            for rest in entry.split("<term><varname>").skip(1) {
                if let Some((name, _)) = rest.split_once('=') {
                    since.entry(name.to_owned()).or_default().extend(&versions);
                }
            }
        }
    }
    Ok(since)
}

//! A unit and its drop-ins, found by systemd's rules without calling systemd.
//!
//! The folders are those of the system manager, in its order; the first one with a file of the unit's name counts. An
//! instance without a file uses that of its template. A link to another name of the same type is an alias, and the
//! drop-ins of all names apply. A file that is empty or a link to `/dev/null` masks the name. Drop-ins are in the
//! folders `NAME.d` of every name, its template, each prefix that ends with a dash, and the type; of several with the
//! same file name the first counts, and they apply in the order of their file names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tamis_session::Error;
use tamis_session::path_text::PathText;

use super::{DROP_IN, is_own_text};
use crate::root::Root;

/// The type of units that have command lines.
const TYPE: &str = ".service";
/// The folders of units; those of the administrator precede those of packages.
const FOLDERS: [&str; 12] = [
    "etc/systemd/system.control",
    "run/systemd/system.control",
    "run/systemd/transient",
    "run/systemd/generator.early",
    "etc/systemd/system",
    "etc/systemd/system.attached",
    "run/systemd/system",
    "run/systemd/system.attached",
    "run/systemd/generator",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "run/systemd/generator.late",
];
/// The folder on systems where `/lib` isn't merged into `/usr/lib`.
const SPLIT_FOLDER: &str = "lib/systemd/system";
/// The longest name of a unit.
const MAX_NAME_BYTES: usize = 255;
/// The most links in a chain of aliases.
const MAX_LINKS: usize = 16;

/// The limit of a unit with its drop-ins. Usual units have a few thousand bytes.
const MAX_BYTES: usize = 1 << 18;

/// The files of a unit.
#[derive(Debug)]
pub struct UnitFiles {
    /// Its name with the type; not an alias.
    pub name: String,
    /// The main file, then the drop-ins in the order in which they apply.
    pub(super) files: Vec<(PathBuf, String)>,
}

impl UnitFiles {
    /// Finds and reads the files below a root. A drop-in of this command is skipped, and one of others with its name is
    /// an error.
    ///
    /// # Errors
    /// If there is no such service, or a file can't be read.
    pub fn read(root: &Root, name: &str) -> Result<UnitFiles, Error> {
        let name = full_name(name)?;
        check_name(&name)?;
        let (name, fragment) = fragment(root, &name)?;
        let mut names = vec![name.clone()];
        names.extend(aliases(root, &name));
        let mut files = vec![(fragment.clone(), read(root, &fragment)?)];
        let mut size_bytes = files[0].1.len();
        for path in drop_ins(root, &names) {
            let text = read(root, &path)?;
            size_bytes += text.len();
            if size_bytes > MAX_BYTES {
                return Err(Error::input(format!(
                    "{name} and its drop-ins have more than {MAX_BYTES} bytes together"
                )));
            }
            if path.file_name() != Some(DROP_IN.as_ref()) {
                files.push((path, text));
            } else if !is_own_text(&text) {
                return Err(Error::usage(
                    format!("/{} was not written by tamis", path.text()),
                    "give it another name, or remove it",
                ));
            }
        }
        Ok(UnitFiles { name, files })
    }

    /// The paths of the files in the service.
    pub(super) fn paths(&self) -> Vec<String> {
        let paths = self.files.iter();
        paths.map(|(path, _)| format!("/{}", path.text())).collect()
    }

    /// The text in the format of `systemctl cat`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (path, own) in &self.files {
            if !text.is_empty() {
                text.push('\n');
            }
            // White space would end the title comment.
            let path = path.text().replace(char::is_whitespace, "_");
            text.push_str(&format!("# /{path}\n{own}"));
            if !own.is_empty() && !own.ends_with('\n') {
                text.push('\n');
            }
        }
        text
    }

    /// The text, perhaps with a further drop-in.
    pub(super) fn text_with(&self, drop_in: Option<&str>) -> String {
        let title = |text| {
            let name = &self.name;
            format!("\n# /etc/systemd/system/{name}.d/{DROP_IN}\n{text}")
        };
        [self.text(), drop_in.map(title).unwrap_or_default()].concat()
    }
}

/// The name with its type; a path or another type is an error.
fn full_name(name: &str) -> Result<String, Error> {
    if name.contains('/') {
        return Err(Error::usage(
            format!("{name}: the unit is named, not its file"),
            "write its name, such as `nginx`, and `--root DIR` for units of another file system",
        ));
    }
    let other = [
        "socket", "mount", "swap", "timer", "target", "path", "slice",
    ];
    match name.rsplit_once('.') {
        Some((_, "service")) => Ok(name.to_owned()),
        Some((_, kind)) if other.contains(&kind) => Err(Error::usage(
            format!("{name}: only services can be hardened"),
            "systemd runs the programs of other units itself, not by a command line",
        )),
        _ => Ok(format!("{name}{TYPE}")),
    }
}

/// The name of a unit with its type, after resolving an alias, and whether the unit exists.
///
/// # Errors
/// If it isn't a valid name of a service.
pub fn unit_name(root: &Root, name: &str) -> Result<(String, bool), Error> {
    let name = full_name(name)?;
    Ok(match fragment(root, &name) {
        Ok((own, _)) => (own, true),
        Err(_) => (name, false),
    })
}

/// Rejects an invalid name (`unit_name_is_valid` in systemd's `unit-name.c`).
fn check_name(name: &str) -> Result<(), Error> {
    let stem = name.strip_suffix(TYPE).unwrap_or(name);
    let is_known = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    let why = if name.len() > MAX_NAME_BYTES {
        "it is longer than 255 bytes"
    } else if stem.is_empty() || stem.starts_with('@') {
        "nothing is before its type or its `@`"
    } else if !stem.chars().all(is_known) {
        "names have letters, digits and :-_.\\@ alone"
    } else {
        return Ok(());
    };
    Err(Error::usage(
        format!("systemd has no unit {name:?}: {why}"),
        "`systemd-escape` writes other characters as names have them",
    ))
}

/// The folders of units below a root.
fn folders(root: &Root) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    let split = root.at(SPLIT_FOLDER.as_ref()).ok();
    if split != root.at(&Path::new("usr").join(SPLIT_FOLDER)).ok() {
        folders.insert(FOLDERS.len() - 1, SPLIT_FOLDER.into());
    }
    folders
}

/// The name of a unit, after resolving an alias, and its file below the root.
fn fragment(root: &Root, name: &str) -> Result<(String, PathBuf), Error> {
    let mut own = name.to_owned();
    for _ in 0..MAX_LINKS {
        let candidates = [Some(own.clone()), template(&own)];
        let found = candidates.into_iter().flatten().find_map(|candidate| {
            let places = folders(root).into_iter();
            let mut places = places.map(|folder| folder.join(&candidate));
            places.find(|place| {
                let place = root.place(place);
                place.is_ok_and(|place| place.symlink_metadata().is_ok())
            })
        });
        let Some(path) = found else {
            return Err(Error::input(format!("there is no unit {own}")));
        };
        if is_masked(root, &path) {
            let message = format!("{own} is masked by /{}", path.text());
            return Err(Error::input(message));
        }
        match link_target(root, &path).map(|target| instantiated(&target, &own)) {
            Some(target) if target != own => own = target,
            _ => return Ok((own, path)),
        }
    }
    Err(Error::input(format!("{name} leads through too many links")))
}

/// The other names of a unit: links to it or, for an instance, to its template.
fn aliases(root: &Root, name: &str) -> Vec<String> {
    let template = template(name);
    let is_own = |target: &str| target == name || Some(target) == template.as_deref();
    let mut names = Vec::new();
    for folder in folders(root) {
        for alias in root.names(&folder) {
            let target = link_target(root, &folder.join(&alias)).filter(|target| is_own(target));
            if target.is_none() || !alias.ends_with(TYPE) {
                continue;
            }
            let instance = instance(name).unwrap_or_default();
            let alias = match alias.split_once("@.") {
                Some((prefix, kind)) => format!("{prefix}@{instance}.{kind}"),
                None => alias,
            };
            if alias != name && !names.contains(&alias) {
                names.push(alias);
            }
        }
    }
    names.sort();
    names
}

/// The name of the unit to which a link leads.
fn link_target(root: &Root, path: &Path) -> Option<String> {
    let target = fs::read_link(root.place(path).ok()?).ok()?;
    let name = target.file_name()?.to_str()?;
    name.ends_with(TYPE).then(|| name.to_owned())
}

/// A template's name with the instance of another name.
fn instantiated(target: &str, own: &str) -> String {
    match (target.split_once("@."), instance(own)) {
        (Some((prefix, kind)), Some(instance)) => format!("{prefix}@{instance}.{kind}"),
        _ => target.to_owned(),
    }
}

/// The instance in a name, `b` of `a@b.service`.
fn instance(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once('@')?;
    rest.strip_suffix(TYPE)
        .filter(|instance| !instance.is_empty())
}

fn template(name: &str) -> Option<String> {
    instance(name)?;
    let (prefix, _) = name.split_once('@')?;
    Some(format!("{prefix}@{TYPE}"))
}

fn is_masked(root: &Root, path: &Path) -> bool {
    let null = root.at("dev/null".as_ref()).ok();
    root.at(path).is_ok_and(|real| {
        let is_empty = |data: fs::Metadata| data.is_file() && data.len() == 0;
        Some(&real) == null.as_ref() || real.metadata().is_ok_and(is_empty)
    })
}

/// The names whose folders of drop-ins apply to a unit, in systemd's order: the name, its template with its prefixes,
/// and the name's prefixes as instances.
fn drop_in_names(name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    if let Some(template) = template(name) {
        names.extend(drop_in_names(&template));
    }
    let stem = name.strip_suffix(TYPE).unwrap_or(name);
    let stem = stem.split_once('@').map_or(stem, |(prefix, _)| prefix);
    // The prefix of a prefix lacks the final dash.
    let stem = stem.strip_suffix('-').unwrap_or(stem);
    if let Some((prefix, _)) = stem
        .rsplit_once('-')
        .filter(|(prefix, _)| !prefix.is_empty())
    {
        let instance = instance(name).map(|instance| format!("@{instance}"));
        let instance = instance.unwrap_or_default();
        names.extend(drop_in_names(&format!("{prefix}-{instance}{TYPE}")));
    }
    names
}

/// The drop-ins of all names below the root, in the order in which they apply. For each name the folders are searched
/// in order, and in each the most specific name first; the type is last.
fn drop_ins(root: &Root, names: &[String]) -> Vec<PathBuf> {
    let chains = names.iter().map(|name| drop_in_names(name));
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    for chain in chains.chain([vec![TYPE[1..].to_owned()]]) {
        for folder in folders(root) {
            for name in &chain {
                add(root, &folder.join(format!("{name}.d")), &mut found);
            }
        }
    }
    let places = found.into_values();
    places.filter(|place| !is_masked(root, place)).collect()
}

/// Adds the drop-ins of a folder whose names were not found before.
fn add(root: &Root, folder: &Path, found: &mut BTreeMap<String, PathBuf>) {
    for file in root.names(folder) {
        if file.ends_with(".conf") {
            found
                .entry(file.clone())
                .or_insert_with(|| folder.join(file));
        }
    }
}

fn read(root: &Root, path: &Path) -> Result<String, Error> {
    let cannot = |error: &dyn std::fmt::Display| {
        Error::input(format!("cannot read /{}: {error}", path.text()))
    };
    let bytes = root.read_bounded(path, MAX_BYTES as u64);
    let bytes = bytes.map_err(|error| cannot(&error))?;
    String::from_utf8(bytes).map_err(|_| cannot(&"it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_ins_have_the_names_of_template_and_prefixes() {
        assert_eq!(drop_in_names("a.service"), ["a.service"]);
        assert_eq!(
            drop_in_names("a-b-c.service"),
            ["a-b-c.service", "a-b-.service", "a-.service"]
        );
        assert_eq!(
            drop_in_names("a-b@c.service"),
            [
                "a-b@c.service",
                "a-b@.service",
                "a-.service",
                "a-@c.service",
                "a-@.service"
            ]
        );
        assert_eq!(drop_in_names("-a.service"), ["-a.service"]);
        assert_eq!(
            drop_in_names("a--b.service"),
            ["a--b.service", "a--.service", "a-.service"]
        );
    }

    #[test]
    fn a_name_without_a_type_is_a_service_and_paths_are_refused() {
        assert_eq!(full_name("nginx").unwrap(), "nginx.service");
        assert_eq!(full_name("a@b.c").unwrap(), "a@b.c.service");
        assert!(full_name("a.socket").is_err());
        assert!(full_name("/etc/x.service").is_err());
    }

    #[test]
    fn names_that_systemd_refuses_are_no_units() {
        let long = format!("{}.service", "a".repeat(248));
        let refused = ["a b", "a\nb", "a%b", "a\"b", "a$b", "\u{e9}", "@b", ""];
        for name in refused
            .map(|stem| format!("{stem}.service"))
            .iter()
            .chain([&long])
        {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["a@.service", "a\\x2db@c:d_e.f.service", &long[1..]] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }
}

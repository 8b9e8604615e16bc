//! Finding control groups and containers by name.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tamis_recorder::ebpf::Cgroup;
use tamis_session::path_text::PathText;

use crate::cli::Failure;

pub(super) struct Group {
    folder: PathBuf,
    /// Its identifier for programs in the kernel.
    pub(super) cgroup: Cgroup,
}

impl Group {
    /// The group with this path, in the file system or below the root of all groups.
    pub(super) fn find(path: &Path) -> Result<Group, Failure> {
        let root = root()?;
        let folder = match path.starts_with(&root) {
            true => path.to_owned(),
            false => root.join(path.strip_prefix("/").unwrap_or(path)),
        };
        let missing = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::input(format!("no control group {}: {error}", folder.text()))
            }
            _ => Failure::environment(format!(
                "the control group {} can't be read: {error}",
                folder.text()
            )),
        };
        let folder = fs::canonicalize(&folder).map_err(missing)?;
        let data = fs::metadata(folder.join("cgroup.procs")).and_then(|_| fs::metadata(&folder));
        let id = data.map_err(missing)?.ino();
        let below = folder.strip_prefix(&root).map_err(|_| {
            Failure::input(format!("{} isn't below {}", folder.text(), root.text()))
        })?;
        let level = below.components().count() as u32;
        Ok(Group {
            cgroup: Cgroup { id, level },
            folder,
        })
    }

    /// The group of the container whose ID begins with this text: that of a process whose path of groups contains the
    /// ID.
    pub(super) fn of_container(id: &str) -> Result<Group, Failure> {
        const MIN_DIGITS: usize = 6;
        let none = || {
            Failure::input(format!(
                "no process is in a control group of version 2 of the container {id}"
            ))
        };
        if id.len() < MIN_DIGITS {
            return Err(Failure::usage(
                format!("`{id}` is too short for the number of a container"),
                format!("write at least {MIN_DIGITS} of its digits; `--cgroup` takes a path"),
            ));
        }
        root()?;
        let processes = fs::read_dir("/proc")
            .map_err(|error| Failure::environment(format!("/proc can't be read: {error}")))?;
        let paths = processes.flatten().filter_map(|process| {
            let text = fs::read_to_string(process.path().join("cgroup")).ok()?;
            let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
            let mut whole = PathBuf::new();
            // The path up to the container: the groups below are its own.
            for part in Path::new(path).components() {
                whole.push(part);
                let name = part.as_os_str().text();
                // The monitor of a container in Podman and CRI-O has the ID in its group as well.
                let is_monitor = name.contains("conmon-");
                if !is_monitor
                    && name
                        .rsplit(['-', ':'])
                        .next()
                        .is_some_and(|own| own.starts_with(id))
                {
                    return Some(whole);
                }
            }
            None
        });
        let paths: BTreeSet<PathBuf> = paths.collect();
        let path = paths.first().ok_or_else(none)?;
        if let Some(other) = paths.iter().find(|other| !other.starts_with(path)) {
            return Err(Failure::usage(
                format!("`{id}` may be {} and {}", path.text(), other.text()),
                "write more of the container's digits",
            ));
        }
        Group::find(path)
    }

    /// The processes in the group and its descendants.
    pub(super) fn processes(&self) -> Vec<i32> {
        let mut processes = Vec::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            processes.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            folders.extend(below.map(|entry| entry.path()));
        }
        processes
    }

    /// Whether the group and its descendants have no process, or it was removed.
    pub(super) fn is_empty(&self) -> bool {
        match fs::read_to_string(self.folder.join("cgroup.events")) {
            Ok(events) => events.lines().any(|line| line == "populated 0"),
            // The root group has no events.
            Err(_) => !self.folder.join("cgroup.procs").exists(),
        }
    }
}

/// The mount point of control groups of version 2.
fn root() -> Result<PathBuf, Failure> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let root = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let folder = fields.next()?;
        (fields.next()? == "cgroup2").then(|| PathBuf::from(folder))
    });
    root.ok_or_else(|| Failure::environment("no control groups of version 2 are mounted"))
}

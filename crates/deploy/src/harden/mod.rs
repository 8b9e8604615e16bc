//! One filter in place of the filters that systemd makes for a service.
//!
//! Settings that are only filters are reset in a drop-in, and the commands of the service are executed by an installer
//! under one filter with their meaning. The filter is proved equivalent to the unit's and, if the service runs, compared
//! with those of its process. The module reads units and `/proc`; the caller writes drop-in and filter.

mod commands;
mod credentials;
mod plan;
mod privileges;
mod process;
mod program;
mod release;
mod settings;
mod typical;
mod undo;
mod unit;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use tamis_abi::Arch;
use tamis_bpf::{Program, Stack};
use tamis_compiler::CompileOptions;
use tamis_diag::Sources;
use tamis_policy::systemd::{self, Assignment, SystemdOptions};
use tamis_prover::{Answer, Limits, Subject, decide_until};
use tamis_report::harden::{HardenReport, ProcessEntry, StackEntry};
use tamis_session::path_text::PathText;
use tamis_session::{Cause, Error, Policy};

use crate::merged;
use crate::root::Root;
use commands::CommandLine;
use plan::Plan;
use settings::{Change, Settings};

pub use release::Release;
pub use undo::{Removal, undo};
pub use unit::{UnitFiles, unit_name};

/// The name of the drop-in, which sorts after others.
const DROP_IN: &str = "zz-tamis.conf";
/// The name of the filter beside it; systemd ignores this file.
const FILTER: &str = "tamis.bpf";
/// The first line of a drop-in by this command.
const HEADER: &str = "# Written by `tamis harden`";
/// The program that installs the filter.
pub const INSTALLER: &str = "tamis-exec";
/// This file exists if SELinux is enabled.
const SELINUX: &str = "/sys/fs/selinux/enforce";

/// The process whose filters are compared with the unit's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// None: the unit alone counts.
    Ignored,
    /// This process.
    Given(i32),
    /// The oldest process of the service, if it runs.
    Found,
}

/// A service, and how it is hardened.
#[derive(Clone, Debug)]
pub struct Service<'a> {
    /// The file system of the unit.
    pub root: &'a Root,
    /// The unit.
    pub files: &'a UnitFiles,
    /// Where the results are put.
    pub places: &'a Places,
    /// The systemd that starts it.
    pub release: Release,
    /// The architecture of its machine.
    pub arch: Arch,
    /// The path of the installer in the service.
    pub installer: &'a Path,
    /// Whether settings with other effects than filters are rewritten.
    pub rewrites: bool,
    /// The process to compare with.
    pub running: Running,
}

/// The paths of the results.
#[derive(Clone, Debug)]
pub struct Places {
    /// The drop-in, for writing.
    pub drop_in: PathBuf,
    /// The filter, for writing.
    pub filter: PathBuf,
    /// The filter's path in the service.
    filter_inside: PathBuf,
}

/// The results, of which nothing has been written.
pub struct Hardening {
    /// The filter of the service.
    pub filter: Program,
    /// The report, with the text of the drop-in.
    pub report: HardenReport,
}

impl Service<'_> {
    /// The drop-in and the filter of the service. The policy is its unit, as loaded for its release of systemd; the
    /// notes precede those on the process.
    ///
    /// # Errors
    /// If the service can't be hardened, or a limit was reached.
    pub fn harden(
        &self,
        policy: &Policy,
        options: &CompileOptions,
        notes: Option<String>,
    ) -> Result<Hardening, Error> {
        let (files, places, arch) = (self.files, self.places, self.arch);
        let unit_options = self.release.options(arch);
        let plan = Plan::new(self)?;
        let filters_before = count(files, None, &unit_options);
        let mut all_notes = plan.notes;
        all_notes.extend(notes);
        let process = process::find(self.running, self.root, &files.name)?;
        if process.is_none() && self.running != Running::Ignored && self.root.is_own() {
            all_notes.push("no process of the service was found".to_owned());
        }
        let process = process.map(|(pid, mut filters)| {
            let made = places.count_made(files, filters_before, &unit_options, filters.len());
            all_notes.extend(newer_filters(pid, filters.len(), made));
            filters.truncate(made);
            (pid, filters)
        });
        let made = MergedFilter::new(policy, process, options)?;
        process::check_execve(&made.filter, arch, &files.name)?;
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let drop_in = plan.drop_in;
        let report = HardenReport {
            unit: files.name.clone(),
            systemd: self.release.text(),
            files: files.paths(),
            carried: names(&plan.change.carried),
            kept: names(&plan.change.kept),
            notes: all_notes,
            filters_before,
            filters_after: count(files, Some(&drop_in), &unit_options) + 1,
            process: made.process_entry(),
            before: made.before(arch),
            filter: typical::entry(std::slice::from_ref(&made.filter), arch),
            status: plan.status,
            commands: plan.commands,
            is_written: false,
            filter_path: places.filter.text(),
            drop_in_path: places.drop_in.text(),
            drop_in,
        };
        Ok(Hardening {
            filter: made.filter,
            report,
        })
    }
}

/// The commands of a service, with programs found below the root.
fn command_lines(
    assignments: &[Assignment],
    root: &Root,
    unit: &str,
) -> Result<Vec<CommandLine>, Error> {
    let folders = commands::searched_folders(assignments);
    let settings = Settings(assignments);
    // A folder with a specifier, or one that the service sees differently, may contain another program of this name.
    let find = |name: &str| {
        let mut looked_at = root.search(folders.as_ref().ok()?, name)?;
        let paths: Vec<&Path> = looked_at.iter().map(Path::new).collect();
        let is_hidden = !settings.hidden(&paths).is_empty();
        match is_hidden || settings.has_extensions() {
            true => None,
            false => looked_at.pop(),
        }
    };
    commands::of_unit(assignments, unit, &find).map_err(|line| refused(unit, &[line]))
}

impl Places {
    /// The paths in a folder; without one, in that of the unit's drop-ins below the root.
    ///
    /// # Errors
    /// If the folder can't be resolved.
    pub fn new(folder: Option<&Path>, own: &Root, unit: &str) -> Result<Places, Error> {
        let default = || {
            own.path()
                .join("etc/systemd/system")
                .join(format!("{unit}.d"))
        };
        let folder = folder.map_or_else(default, Path::to_owned);
        let absolute = |path: &Path| {
            std::path::absolute(path)
                .map_err(|error| Error::environment(format!("{}: {error}", path.text())))
        };
        let (root, inside) = (absolute(own.path())?, absolute(&folder)?);
        let (inside, folder) = match inside.strip_prefix(&root) {
            Err(_) => (inside.as_path(), folder),
            Ok(inside) => {
                let real = own.at(inside);
                let cannot = |error| Error::environment(format!("{}: {error}", folder.text()));
                (inside, real.map_err(cannot)?)
            }
        };
        Ok(Places {
            drop_in: folder.join(DROP_IN),
            filter: folder.join(FILTER),
            filter_inside: Path::new("/").join(inside).join(FILTER),
        })
    }

    /// The number of a process's oldest filters that systemd installed, or an existing drop-in.
    fn count_made(
        &self,
        files: &UnitFiles,
        before: usize,
        options: &SystemdOptions,
        filters: usize,
    ) -> usize {
        let text = is_ours(&self.drop_in).then(|| fs::read_to_string(&self.drop_in));
        match text {
            // The filters of the remaining settings, and the merged one.
            Some(Ok(text)) if filters < before => count(files, Some(&text), options) + 1,
            _ => before,
        }
    }

    /// Refuses to overwrite files that this command didn't write.
    ///
    /// # Errors
    /// If there are such files.
    pub fn check(&self, unit: &str) -> Result<(), Error> {
        for path in [&self.drop_in, &self.filter] {
            let Ok(data) = path.symlink_metadata() else {
                continue;
            };
            let is_ours = data.is_file() && (path == &self.filter || is_ours(path));
            if !is_ours {
                let message = format!("{} was not written by tamis", path.text());
                return Err(Error::usage(
                    message,
                    format!("{unit}: rename or remove it yourself"),
                ));
            }
        }
        Ok(())
    }
}

/// Whether this command wrote the drop-in.
fn is_ours(drop_in: &Path) -> bool {
    let is_file = drop_in.symlink_metadata().is_ok_and(|data| data.is_file());
    is_file && fs::read(drop_in).is_ok_and(|text| is_own_text(&String::from_utf8_lossy(&text)))
}

/// Whether a text is a drop-in by this command, perhaps with other lines.
fn is_own_text(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(HEADER))
}

/// The note on filters that a process installed itself.
fn newer_filters(pid: i32, filters: usize, made: usize) -> Option<String> {
    let newer = filters.checked_sub(made).filter(|newer| *newer > 0)?;
    Some(format!(
        "newer filters of process {pid}, which are no part of this one: {newer}"
    ))
}

/// The number of filters that systemd makes for a unit, perhaps with a further drop-in.
fn count(files: &UnitFiles, drop_in: Option<&str>, options: &SystemdOptions) -> usize {
    let mut sources = Sources::new();
    let source = sources.add("unit", files.text_with(drop_in));
    systemd::count_filters(&sources, source, options)
}

/// Rejects a unit that can't be hardened.
fn check(
    files: &UnitFiles,
    root: &Root,
    change: &Change,
    lines: &[CommandLine],
    mut obstacles: Vec<String>,
) -> Result<(), Error> {
    if lines.is_empty() {
        obstacles.push("it has no command".to_owned());
    } else if lines.iter().all(|line| line.is_free) {
        obstacles.push("systemd runs none of its commands under filters: all have `+`".to_owned());
    }
    if root.is_own() && Path::new(SELINUX).exists() {
        obstacles.push("SELinux would choose the domain by what installs the filter".to_owned());
    }
    let is_last = |(path, _): &(PathBuf, String)| path.file_name() < Some(DROP_IN.as_ref());
    if let Some((path, _)) = files.files[1..].iter().find(|file| !is_last(file)) {
        obstacles.push(format!("/{}: it applies behind {DROP_IN}", path.text()));
    }
    if change.carried.is_empty() {
        obstacles.push("it has no setting that is only a filter".to_owned());
    }
    if change.carried.is_empty() && change.kept.is_empty() {
        let help = "`tamis record --cgroup` and `tamis learn` make a policy of what a service calls, `tamis exec` installs it";
        return Err(cannot(&files.name, &obstacles, help));
    }
    match obstacles.is_empty() {
        true => Ok(()),
        false => Err(refused(&files.name, &obstacles)),
    }
}

fn refused(unit: &str, why: &[String]) -> Error {
    let help = "nothing was written; the service keeps systemd's filters";
    cannot(unit, why, help)
}

fn cannot(unit: &str, why: &[String], help: &str) -> Error {
    let message = format!("{unit} can't be hardened: {}", why.join("; "));
    Error::usage(message, help)
}

/// The filter, with the result of the comparison.
struct MergedFilter {
    filter: Program,
    process: Option<(i32, Vec<Program>)>,
    /// Whether the filters of the process are equivalent to those of the unit.
    is_equal: Option<bool>,
}

impl MergedFilter {
    fn new(
        policy: &Policy,
        process: Option<(i32, Vec<Program>)>,
        options: &CompileOptions,
    ) -> Result<MergedFilter, Error> {
        let compiled = policy.compile(options)?;
        let own = policy.program(&compiled)?.clone();
        let is_equal = process.as_ref().map(|(_, filters)| {
            let unit = Subject::Ruleset(&policy.ruleset);
            let subjects = Subject::programs(filters);
            let stack = Subject::Stack(&subjects);
            let answer = decide_until(&unit, &stack, &Limits::default(), &options.proof.stop);
            matches!(answer, Answer::Equal(_))
        });
        let mut programs = vec![own];
        if let (Some((_, filters)), Some(false)) = (&process, is_equal) {
            // The process's filters count as the newer ones: if both return an errno, theirs is returned.
            programs.extend(filters.iter().cloned());
        }
        let stack = Stack::new(programs).expect("all are of this machine");
        let single = merged(&stack, options)?;
        let Some(filter) = single.filter(Program::is_installable) else {
            return Err(Error::Message {
                message: "there is no single filter that the kernel would take".to_owned(),
                hint: None,
                cause: Cause::Limit,
            });
        };
        Ok(MergedFilter {
            filter,
            process,
            is_equal,
        })
    }

    fn process_entry(&self) -> Option<ProcessEntry> {
        let (pid, _) = self.process.as_ref()?;
        Some(ProcessEntry {
            pid: *pid,
            is_equal: self.is_equal == Some(true),
        })
    }

    fn before(&self, arch: Arch) -> Option<StackEntry> {
        self.process
            .as_ref()
            .map(|(_, filters)| typical::entry(filters, arch))
    }
}

//! The drop-in of a service, and its effect on privileges.
//!
//! The drop-in is parsed together with the unit and compared with the unit alone, for each command by
//! [`privileges`](super::privileges). systemd removes some privileges from services with filters. If the service would
//! gain one because its filters are reset, the drop-in keeps a setting that systemd treats as a filter; if that isn't
//! enough, the service is rejected.

use tamis_diag::Sources;
use tamis_policy::systemd::{self, Assignment, SystemdOptions};
use tamis_report::harden::CommandStatus;
use tamis_session::Error;

use super::commands::{self, CommandLine, Installer};
use super::privileges::{Comparison, Privileges, Rule};
use super::settings::{Change, Settings};
use super::unit::UnitFiles;
use super::{HEADER, INSTALLER, Service, check, command_lines, program, refused, release};
use crate::root::Root;

/// systemd's limit for a line.
const MAX_LINE_BYTES: usize = 1 << 20;
/// The section of the drop-in.
const SECTION: &str = "[Service]\n";

/// The drop-in, with the notes for the report.
pub(super) struct Plan {
    pub(super) change: Change,
    pub(super) drop_in: String,
    pub(super) status: Vec<CommandStatus>,
    pub(super) notes: Vec<String>,
    /// The number of commands under the filter.
    pub(super) commands: usize,
}

impl Plan {
    pub(super) fn new(service: &Service<'_>) -> Result<Plan, Error> {
        let (root, files, installer) = (service.root, service.files, service.installer);
        let filter = &service.places.filter_inside;
        let options = service.release.options(service.arch);
        let (assignments, lets_change) = read(files, None, &options);
        let settings = Settings(&assignments);
        let lines = command_lines(&assignments, root, &files.name)?;
        let version = service
            .release
            .version
            .map(|version| u32::from(version.major));
        let mut change = settings.change(installer, service.rewrites, version);
        let mut obstacles = settings.obstacles(&[installer, filter]);
        obstacles.extend(commands::obstacle(&lines, settings));
        let bytes = installer.as_os_str().as_encoded_bytes();
        if let Err(why) = program::check(bytes) {
            obstacles.push(format!("{}: {why}", installer.display()));
        }
        check(files, root, &change, &lines, obstacles)?;
        let is_root = |user: &str| is_root(root, user);
        let manager = release::credentials(root);
        let before = Privileges::new(settings, lets_change, manager, &is_root);
        let compare = |change: &Change| {
            let text = format!("{SECTION}{}", change.text());
            let (assignments, lets_change) = read(files, Some(&text), &options);
            let after = Privileges::new(Settings(&assignments), lets_change, manager, &is_root);
            let bound = lines.iter().filter(|line| !line.is_free);
            let rules = Rule::of_version(version);
            bound
                .map(|line| Comparison::new(line, &before, &after, rules))
                .collect::<Vec<Comparison>>()
        };
        let gains = |all: &[Comparison]| all.iter().any(|own| !own.gained().is_empty());
        let mut comparisons = compare(&change);
        if gains(&comparisons) {
            let all = systemd::all_architectures(service.arch);
            change.lines.push(format!("SystemCallArchitectures={all}"));
            comparisons = compare(&change);
        }
        if gains(&comparisons) {
            return Err(gained(&files.name, &comparisons));
        }
        let installer = Installer {
            program: installer,
            subcommand: (!installer.ends_with(INSTALLER)).then_some("exec"),
            filter,
        };
        let mut notes = settings.notes();
        notes.extend(lines.iter().filter_map(CommandLine::note));
        notes.extend(sets_no_new_privs(&comparisons));
        let drop_in = text(&files.name, &change, &lines, &installer, &comparisons)?;
        Ok(Plan {
            change,
            drop_in,
            status: comparisons.iter().flat_map(Comparison::entries).collect(),
            notes,
            commands: comparisons.len(),
        })
    }
}

/// The assignments of a unit, perhaps with a further drop-in, and whether its call list permits changing capabilities.
fn read(
    files: &UnitFiles,
    drop_in: Option<&str>,
    options: &SystemdOptions,
) -> (Vec<Assignment>, bool) {
    let mut sources = Sources::new();
    let source = sources.add("unit", files.text_with(drop_in));
    let lets_change = systemd::lets_capabilities_change(&sources, source, options);
    (systemd::assignments(&sources, source), lets_change)
}

/// Whether a user's ID is 0, by its name or `/etc/passwd`.
fn is_root(root: &Root, user: &str) -> bool {
    if user == "root" || user.parse() == Ok(0) {
        return true;
    }
    let users = root.read("etc/passwd".as_ref()).unwrap_or_default();
    let users = String::from_utf8_lossy(&users);
    let mut lines = users.lines().map(|line| line.split(':'));
    lines.any(|mut fields| fields.next() == Some(user) && fields.nth(1) == Some("0"))
}

fn gained(unit: &str, comparisons: &[Comparison]) -> Error {
    let of_command = |own: &Comparison| {
        let gained = own.gained();
        (!gained.is_empty()).then(|| format!("{} would gain {}", own.title, gained.join(", ")))
    };
    let why: Vec<String> = comparisons.iter().filter_map(of_command).collect();
    refused(unit, &why)
}

/// A note on commands that get `no_new_privs` only by the merged filter.
fn sets_no_new_privs(comparisons: &[Comparison]) -> Option<String> {
    let mut all = comparisons.iter().flat_map(Comparison::entries);
    let is_set = all.any(|own| own.before.no_new_privs < own.after.no_new_privs);
    is_set.then(|| {
        "no_new_privs is set, because the filter is installed without CAP_SYS_ADMIN: set-user-ID programs and those with \
         capabilities of their own, such as sudo and ping, give the service nothing"
            .to_owned()
    })
}

fn text(
    unit: &str,
    change: &Change,
    lines: &[CommandLine],
    installer: &Installer<'_>,
    comparisons: &[Comparison],
) -> Result<String, Error> {
    let mut text = format!(
        "{HEADER}: `tamis harden {unit} --undo` removes this file and the filter beside it.\n{SECTION}"
    );
    text.push_str(&change.text());
    let mut directive = "";
    let mut comparisons = comparisons.iter();
    for line in lines {
        if line.directive != directive {
            directive = line.directive;
            text.push_str(&format!("{directive}=\n"));
        }
        let keeps_privs = match line.is_free {
            true => true,
            false => comparisons.next().is_none_or(|own| own.keeps_privs),
        };
        let own = line.under(installer, keeps_privs);
        if own.len() >= MAX_LINE_BYTES {
            let why = format!("{}: the line would be longer than 1 MiB", line.title());
            return Err(refused(unit, &[why]));
        }
        text.push_str(&format!("{own}\n"));
    }
    Ok(text)
}

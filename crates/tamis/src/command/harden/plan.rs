//! The drop-in of a service: the settings that change, and every command under the filter.

use std::path::Path;

use tamis_diag::Sources;
use tamis_policy::systemd;

use super::commands::{self, CommandLine, Installer};
use super::root::Root;
use super::settings::{Change, Settings};
use super::unit::UnitFiles;
use super::{Args, HEADER, INSTALLER, Places, check, command_lines, program, refused};
use crate::cli::Failure;

/// systemd's limit of a line.
const MAX_LINE_BYTES: usize = 1 << 20;

/// What is to be written, and what there is to say about it.
pub(super) struct Plan {
    pub(super) change: Change,
    pub(super) drop_in: String,
    pub(super) notes: Vec<String>,
    /// How many commands are under the filter.
    pub(super) commands: usize,
}

impl Plan {
    pub(super) fn new(
        args: &Args,
        root: &Root,
        files: &UnitFiles,
        places: &Places,
        installer: &Path,
    ) -> Result<Plan, Failure> {
        let mut sources = Sources::new();
        let source = sources.add("unit", files.text());
        let assignments = systemd::assignments(&sources, source);
        let settings = Settings(&assignments);
        let lines = command_lines(&assignments, root, &files.name)?;
        let change = settings.change(installer, args.rewrite);
        let mut obstacles = settings.obstacles(&[installer, &places.filter_inside]);
        obstacles.extend(commands::obstacle(&lines, settings));
        let bytes = installer.as_os_str().as_encoded_bytes();
        if let Err(why) = program::check(bytes) {
            obstacles.push(format!("{}: {why}", installer.display()));
        }
        check(files, root, &change, &lines, obstacles)?;
        let installer = Installer {
            program: installer,
            subcommand: (!installer.ends_with(INSTALLER)).then_some("exec"),
            filter: &places.filter_inside,
        };
        let mut notes = settings.notes();
        notes.extend(lines.iter().filter_map(CommandLine::note));
        let drop_in = text(&files.name, &change, &lines, &installer)?;
        Ok(Plan {
            change,
            drop_in,
            notes,
            commands: lines.iter().filter(|line| !line.is_free).count(),
        })
    }
}

/// The text of the drop-in.
fn text(
    unit: &str,
    change: &Change,
    lines: &[CommandLine],
    installer: &Installer<'_>,
) -> Result<String, Failure> {
    let mut text = format!(
        "{HEADER}: `tamis harden {unit} --undo` removes this file and the filter beside it.\n[Service]\n"
    );
    text.push_str(&change.text());
    let mut directive = "";
    for line in lines {
        if line.directive != directive {
            directive = line.directive;
            text.push_str(&format!("{directive}=\n"));
        }
        let own = line.under(installer, true);
        if own.len() >= MAX_LINE_BYTES {
            let why = format!("{}: the line would be longer than 1 MiB", line.title());
            return Err(refused(unit, &[why]));
        }
        text.push_str(&format!("{own}\n"));
    }
    Ok(text)
}

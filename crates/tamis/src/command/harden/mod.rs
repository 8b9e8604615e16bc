//! `tamis harden`: one filter in place of the filters that systemd makes for a service.

mod commands;
mod credentials;
mod manager;
mod plan;
mod privileges;
mod process;
mod program;
mod settings;
mod typical;
mod undo;
mod unit;
mod words;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tamis_abi::Arch;
use tamis_bpf::{Program, Stack};
use tamis_compiler::CompileOptions;
use tamis_diag::{Sources, code};
use tamis_kernel::search;
use tamis_policy::systemd::{self, Assignment, SystemdOptions};
use tamis_prover::{Answer, Limits, Subject, decide_until};
use tamis_report::harden::{HardenReport, ProcessEntry, StackEntry};
use tamis_session::path_text::PathText;
use tamis_session::{Input, Loaded, Policy};

use crate::cli::arches::ArchParser;
use crate::cli::load::{self, LoadArgs};
use crate::cli::replace::{INSTALLED_FOLDER, make_folder};
use crate::cli::root::Root;
use crate::cli::target::TargetArgs;
use crate::cli::trust::{Span, nearest_folder, weakness};
use crate::cli::{Failure, Global, budget, exit, output, side};
use commands::CommandLine;
use manager::Release;
use plan::Plan;
use settings::{Change, Settings};
use unit::UnitFiles;

/// The name of the drop-in, which sorts after others.
const DROP_IN: &str = "zz-tamis.conf";
/// The name of the filter beside it; systemd ignores this file.
const FILTER: &str = "tamis.bpf";
/// The first line of a drop-in by this command.
const HEADER: &str = "# Written by `tamis harden`";
/// The program that installs the filter.
const INSTALLER: &str = "tamis-exec";
/// This file exists if SELinux is enabled.
const SELINUX: &str = "/sys/fs/selinux/enforce";

/// Give a service one filter in the place of systemd's many
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis harden nginx --dry-run
  tamis harden redis-server
  tamis harden redis-server --undo
  tamis harden app --root image/ --installer /usr/bin/tamis-exec
The unit is read with all drop-ins, as systemd reads them. Settings that are only filters are reset in a drop-in, and every \
command of the service is executed by `tamis-exec` under one filter with their meaning; `+` commands stay free. Settings \
that do more than filter stay, with their filters. The filter is proved equivalent to what the unit says and, if the service \
runs, to the filters of its process; where the two differ, it is as strict as both. What can't be carried is an error.
Then: systemctl daemon-reload && systemctl restart UNIT. After a change of the unit run the command again.
The report compares no_new_privs and capabilities of each command by systemd's rules; a service that would gain a privilege \
is refused. --undo also works if the unit, the drop-in or the filter is gone, and says what it found.
Exit status: 0 done; 2 the unit is wrong or can't be hardened.")]
pub(crate) struct Args {
    /// The unit: its name, with or without `.service`
    unit: String,
    /// Remove the drop-in and the filter
    #[arg(long)]
    undo: bool,
    /// Print the drop-in and write nothing
    #[arg(long, conflicts_with = "undo")]
    dry_run: bool,
    /// The file system of the unit
    #[arg(long, value_name = "DIR", default_value = "/", hide_short_help = true)]
    root: PathBuf,
    /// Where drop-in and filter are put [default: /etc/systemd/system/UNIT.d]
    ///
    /// The default is below --root.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The program that installs the filter, as the service finds it: `tamis-exec`, or tamis itself [default: the
    /// tamis-exec beside this program or in PATH]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    installer: Option<PathBuf>,
    /// The process whose filters it has [default: one of the service, if it runs]
    #[arg(short, long, value_name = "PID", conflicts_with = "no_process")]
    pid: Option<i32>,
    /// Go by the unit alone, also if the service runs
    #[arg(long)]
    no_process: bool,
    /// Carry ProtectClock=, ProtectKernelLogs= and ProtectKernelModules= too: their other effects are written as
    /// CapabilityBoundingSet=, DeviceAllow= and InaccessiblePaths=, as systemd 252 has them
    #[arg(long, hide_short_help = true)]
    rewrite: bool,
    /// The architecture of the machine that runs the service [default: this machine's]
    #[arg(long, value_name = "ARCH", value_parser = ArchParser, hide_possible_values = true, hide_short_help = true)]
    arch: Option<Arch>,
    /// Treat warnings about the unit as errors
    #[arg(long, hide_short_help = true)]
    strict: bool,
}

/// The paths of the results.
struct Places {
    /// The path for writing.
    drop_in: PathBuf,
    filter: PathBuf,
    /// The path in the service.
    filter_inside: PathBuf,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let root = Root::new(&args.root)
        .map_err(|error| Failure::input(format!("{}: {error}", args.root.text())))?;
    if args.undo {
        let (name, is_there) = unit::name(&root, &args.unit)?;
        let places = Places::new(args, &root, &name)?;
        return undo::run(&places, (&name, is_there), global);
    }
    let files = UnitFiles::read(&root, &args.unit)?;
    let places = Places::new(args, &root, &files.name)?;
    places.check(&files.name)?;
    let (installer, assumed) = installer(args, &root)?;
    check_places(args, &root, &places, &installer)?;
    let release = Release::below(&root);
    let load = release.load_args(args)?;
    let loaded = load_unit(&files, &load, global)?;
    let arch = load.call_arch();
    let options = TargetArgs::default().options(&load.options(), global)?;
    let policy = loaded.into_policy("name a unit")?;
    let unit_options = release.options(arch);
    let plan = Plan::new(args, &root, &files, &places, (&installer, &release, arch))?;
    let filters_before = count(&files, None, &unit_options);
    let mut notes = plan.notes;
    notes.extend(assumed);
    let process = match args.no_process {
        true => None,
        false => process::find(args.pid, &root, &files.name)?,
    };
    if process.is_none() && !args.no_process && root.is_own() {
        notes.push("no process of the service was found".to_owned());
    }
    let process = process.map(|(pid, mut filters)| {
        let made = places.count_made(&files, filters_before, &unit_options, filters.len());
        notes.extend(newer_filters(pid, filters.len(), made));
        filters.truncate(made);
        (pid, filters)
    });
    let made = MergedFilter::new(&policy, process, &options)?;
    process::check_execve(&made.filter, arch, &files.name)?;
    let drop_in = plan.drop_in;
    if !args.dry_run {
        write(&places, &made.filter, &drop_in)?;
    }
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let report = HardenReport {
        unit: files.name.clone(),
        systemd: release.text(),
        files: files.paths(),
        carried: names(&plan.change.carried),
        kept: names(&plan.change.kept),
        notes,
        filters_before,
        filters_after: count(&files, Some(&drop_in), &unit_options) + 1,
        process: made.process_entry(),
        before: made.before(arch),
        filter: typical::entry(std::slice::from_ref(&made.filter), arch),
        status: plan.status,
        commands: plan.commands,
        is_written: !args.dry_run,
        filter_path: places.filter.text(),
        drop_in_path: places.drop_in.text(),
        drop_in,
    };
    output::show(&report, global)?;
    Ok(exit::OK)
}

/// Loads the unit and prints its warnings.
fn load_unit(files: &UnitFiles, load: &LoadArgs, global: &Global) -> Result<Loaded, Failure> {
    let title = format!("{} and its drop-ins", files.name);
    let mut loaded = load.load_input(Input::new(title, files.text().into_bytes()))?;
    if let Loaded::Policy(policy) = &mut loaded {
        // Warnings about what a filter can't do don't apply: systemd continues to do it.
        let warnings = &mut policy.warnings;
        warnings.retain(|own| own.code != code::SYSTEMD_BY_KERNEL);
    }
    load::warn(&loaded, global);
    Ok(loaded)
}

/// The commands of a service, with programs found below the root.
fn command_lines(
    assignments: &[Assignment],
    root: &Root,
    unit: &str,
) -> Result<Vec<CommandLine>, Failure> {
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
    fn new(args: &Args, own: &Root, unit: &str) -> Result<Places, Failure> {
        let default = || {
            args.root
                .join("etc/systemd/system")
                .join(format!("{unit}.d"))
        };
        let folder = args.output.clone().unwrap_or_else(default);
        let absolute = |path: &Path| {
            std::path::absolute(path)
                .map_err(|error| Failure::environment(format!("{}: {error}", path.text())))
        };
        let (root, inside) = (absolute(&args.root)?, absolute(&folder)?);
        let (inside, folder) = match inside.strip_prefix(&root) {
            Err(_) => (inside.as_path(), folder),
            Ok(inside) => {
                let real = own.at(inside);
                let cannot = |error| Failure::environment(format!("{}: {error}", folder.text()));
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
    fn check(&self, unit: &str) -> Result<(), Failure> {
        for path in [&self.drop_in, &self.filter] {
            let Ok(data) = path.symlink_metadata() else {
                continue;
            };
            let is_ours = data.is_file() && (path == &self.filter || is_ours(path));
            if !is_ours {
                let message = format!("{} was not written by tamis", path.text());
                return Err(Failure::usage(
                    message,
                    format!("{unit}: rename or remove it yourself"),
                ));
            }
        }
        Ok(())
    }
}

/// Rejects a filter or an installer that another user could replace, because the service uses them at each start. Files
/// of an image have other paths at run time and aren't checked.
fn check_places(
    args: &Args,
    root: &Root,
    places: &Places,
    installer: &Path,
) -> Result<(), Failure> {
    if args.dry_run || !root.is_own() {
        return Ok(());
    }
    let folder = places.filter.parent().map(nearest_folder);
    let named = folder.iter().map(PathBuf::as_path).chain([installer]);
    for path in named {
        let cannot = |error| Failure::environment(format!("{}: {error}", path.text()));
        if let Some(why) = weakness(path, Span::Lasting).map_err(cannot)? {
            let message = format!("the service would use what others can change: {why}");
            let help = "choose places that only root can write, with `-o` and `--installer`";
            return Err(Failure::new(
                exit::ENVIRONMENT,
                message,
                Some(help.to_owned()),
            ));
        }
    }
    Ok(())
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

/// Writes the filter, which the service's user must be able to read, and then the drop-in.
fn write(places: &Places, filter: &Program, drop_in: &str) -> Result<(), Failure> {
    let readable = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .map_err(|error| Failure::environment(format!("{}: {error}", path.text())))
    };
    if let Some(folder) = places.drop_in.parent().filter(|folder| !folder.exists()) {
        make_folder(folder, INSTALLED_FOLDER)
            .map_err(|error| Failure::environment(format!("{}: {error}", folder.text())))?;
        readable(folder, 0o755)?;
    }
    output::write_installed(&places.filter, &filter.to_bytes())?;
    readable(&places.filter, 0o644)?;
    output::write_installed(&places.drop_in, drop_in.as_bytes())?;
    readable(&places.drop_in, 0o644)
}

/// The path of the installer in the service, and a note on it.
fn installer(args: &Args, root: &Root) -> Result<(PathBuf, Option<String>), Failure> {
    let path = match &args.installer {
        Some(path) => Some(path.clone()),
        None => {
            let own = std::env::current_exe().ok();
            let beside = own.and_then(|own| Some(own.parent()?.join(INSTALLER)));
            let beside = beside.filter(|path| path.is_file());
            beside.or_else(|| search::find(INSTALLER.as_ref()).ok())
        }
    };
    let Some(path) = path else {
        let missing = format!("{INSTALLER} is neither beside tamis nor in PATH");
        if args.dry_run {
            let assumed = Path::new("/usr/bin").join(INSTALLER);
            let note = format!("{missing}: {} is written here", assumed.text());
            return Ok((assumed, Some(note)));
        }
        return Err(Failure::usage(
            missing,
            "it comes with the packages of tamis; or name it, or tamis itself, with --installer",
        ));
    };
    let place = args.root.join(path.strip_prefix("/").unwrap_or(&path));
    let is_there = root.at(&path).is_ok_and(|real| real.is_file());
    match path.is_absolute() && is_there {
        true => Ok((path, None)),
        false => Err(Failure::usage(
            format!("{} is no program that the service finds", place.text()),
            "name it by its absolute path below --root",
        )),
    }
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
) -> Result<(), Failure> {
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

fn refused(unit: &str, why: &[String]) -> Failure {
    let help = "nothing was written; the service keeps systemd's filters";
    cannot(unit, why, help)
}

fn cannot(unit: &str, why: &[String], help: &str) -> Failure {
    let message = format!("{unit} can't be hardened: {}", why.join("; "));
    Failure::usage(message, help)
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
    ) -> Result<MergedFilter, Failure> {
        let compiled = policy.compile(options)?;
        let own = policy.program(&compiled)?.clone();
        let is_equal = process.as_ref().map(|(_, filters)| {
            let unit = Subject::Ruleset(&policy.ruleset);
            let subjects = Subject::programs(filters);
            let stack = Subject::Stack(&subjects);
            let answer = decide_until(&unit, &stack, &Limits::default(), &budget::stop());
            matches!(answer, Answer::Equal(_))
        });
        let mut programs = vec![own];
        if let (Some((_, filters)), Some(false)) = (&process, is_equal) {
            // The process's filters count as the newer ones: if both return an errno, theirs is returned.
            programs.extend(filters.iter().cloned());
        }
        let stack = Stack::new(programs).expect("all are of this machine");
        let filter = side::single(&stack, options)?.filter(Program::is_installable);
        let Some(filter) = filter else {
            let message = "there is no single filter that the kernel would take";
            return Err(Failure::gave_up(message, None));
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

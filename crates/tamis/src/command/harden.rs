//! `tamis harden`: one filter in place of the filters that systemd makes for a service.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tamis_abi::Arch;
use tamis_bpf::Program;
use tamis_deploy::harden::{
    Hardening, INSTALLER, Places, Release, Removal, Running, Service, UnitFiles, undo, unit_name,
};
use tamis_deploy::root::Root;
use tamis_kernel::search;
use tamis_session::path_text::PathText;
use tamis_session::{Input, Loaded};

use crate::cli::arches::ArchParser;
use crate::cli::load::{self, LoadArgs};
use crate::cli::replace::{INSTALLED_FOLDER, make_folder};
use crate::cli::target::TargetArgs;
use crate::cli::trust::{Span, nearest_folder, weakness};
use crate::cli::{Failure, Global, exit, output};
use crate::code;

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

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let root = Root::new(&args.root)
        .map_err(|error| Failure::input(format!("{}: {error}", args.root.text())))?;
    let folder = args.output.as_deref();
    if args.undo {
        let (name, exists) = unit_name(&root, &args.unit)?;
        let places = Places::new(folder, &root, &name)?;
        let removal = undo(&places, &name, exists)?;
        report_removal(&name, &removal, global);
        return Ok(exit::OK);
    }
    let files = UnitFiles::read(&root, &args.unit)?;
    let places = Places::new(folder, &root, &files.name)?;
    places.check(&files.name)?;
    let (installer, assumed) = installer(args, &root)?;
    check_places(args, &root, &places, &installer)?;
    let release = Release::below(&root);
    let load = LoadArgs::of_systemd(args.arch, args.strict, release.assumed(), release.kernel)?;
    let loaded = load_unit(&files, &load, global)?;
    let options = TargetArgs::default().options(&load.options(), global)?;
    let policy = loaded.into_policy("name a unit")?;
    let service = Service {
        root: &root,
        files: &files,
        places: &places,
        release,
        arch: load.call_arch(),
        installer: &installer,
        rewrites: args.rewrite,
        running: match (args.no_process, args.pid) {
            (true, _) => Running::Ignored,
            (false, Some(pid)) => Running::Given(pid),
            (false, None) => Running::Found,
        },
    };
    let Hardening { filter, mut report } = service.harden(&policy, &options, assumed)?;
    if !args.dry_run {
        write(&places, &filter, &report.drop_in)?;
        report.is_written = true;
    }
    output::show(&report, global)?;
    Ok(exit::OK)
}

fn report_removal(unit: &str, removal: &Removal, global: &Global) {
    for note in &removal.notes {
        global.notice(&format!("{unit}: {note}"));
    }
    let removed = match removal.removed.as_slice() {
        [] => "nothing is".to_owned(),
        [one] => format!("{one} is"),
        several => format!("{} are", several.join(" and ")),
    };
    global.notice(&format!(
        "{unit}: {removed} removed; systemctl daemon-reload && systemctl restart {unit}"
    ));
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

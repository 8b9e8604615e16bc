//! Selecting a platform and running a command on it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::builder::PossibleValuesParser;
use tamis_bpf::Program;
use tamis_kernel::Ended;
use tamis_kernel::errno::Errno;
use tamis_kernel::search;
use tamis_kernel::spawn::SpawnError;
use tamis_platform::{Guest, Options, Platform, PlatformError, Supervisor, Tally};
use tamis_report::run::MUST_ALLOW_EXECVE;
use tamis_report::sandbox::EndOfGuest;
use tamis_session::path_text::PathText;

use super::{Failure, budget, exit, input};

/// The platform.
#[derive(clap::Args)]
pub struct PlatformArgs {
    /// What catches the calls [default: the fastest]
    ///
    /// The fastest that works here and runs every program.
    #[arg(long, value_name = "NAME", value_parser = names())]
    platform: Option<String>,
}

/// What this program offers: the product's platforms, or those of [`offer`].
static OFFERED: OnceLock<&'static [&'static dyn Platform]> = OnceLock::new();

/// Offers these platforms in the place of the product's. To be called once, before the command line is read.
pub fn offer(platforms: &'static [&'static dyn Platform]) {
    // Of two calls the first counts.
    let _ = OFFERED.set(platforms);
}

/// The platforms that this program offers.
pub fn offered() -> &'static [&'static dyn Platform] {
    OFFERED.get_or_init(tamis_platform::supported)
}

/// The names of the platforms that are offered.
fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(offered().iter().map(|platform| platform.name()))
}

impl PlatformArgs {
    /// The given platform, or else the fastest that works.
    pub fn choose(&self) -> Result<&'static dyn Platform, Failure> {
        if let Some(name) = &self.platform {
            let Some(platform) = offered().iter().find(|one| one.name() == name) else {
                return Err(Failure::input(format!("no platform `{name}`")));
            };
            if platform.caps().is_signal_safe {
                return Err(Failure::usage(
                    format!(
                        "`{name}` asks in a signal handler of the guest, where nothing can be counted"
                    ),
                    "choose another with `--platform`",
                ));
            }
            return working(*platform);
        }
        let mut reasons = Vec::new();
        for platform in tamis_platform::preferred(offered()) {
            match platform.probe() {
                Ok(()) => return Ok(platform),
                Err(unavailable) => reasons.push(format!("{}: {unavailable}", platform.name())),
            }
        }
        Err(Failure::new(
            exit::ENVIRONMENT,
            format!("no platform works here: {}", reasons.join("; ")),
            None,
        ))
    }
}

/// A named platform, if it works on this machine.
///
/// # Errors
/// If its probe fails.
pub fn working(platform: &'static dyn Platform) -> Result<&'static dyn Platform, Failure> {
    platform.probe().map(|()| platform).map_err(|unavailable| {
        Failure::new(
            exit::ENVIRONMENT,
            format!(
                "`{}` doesn't work here: {}",
                platform.name(),
                unavailable.reason
            ),
            unavailable.remedy.map(str::to_owned),
        )
    })
}

/// Runs a command until it ends.
pub fn run(
    platform: &dyn Platform,
    command: &[OsString],
    filter: &Program,
    supervisor: &dyn Supervisor,
) -> Result<Ended, Failure> {
    run_guest(platform, command, filter, supervisor, GuestEvents::Calls)
}

/// The events that a guest reports to its supervisor.
#[derive(Clone, Copy)]
pub enum GuestEvents<'a> {
    /// The calls.
    Calls,
    /// The calls and their results.
    Results,
    /// The calls that the guest can't count itself.
    Uncounted(&'a Tally),
}

/// Runs a command that reports these events.
pub fn run_guest(
    platform: &dyn Platform,
    command: &[OsString],
    filter: &Program,
    supervisor: &dyn Supervisor,
    events: GuestEvents<'_>,
) -> Result<Ended, Failure> {
    let [program, arguments @ ..] = command else {
        unreachable!("clap requires a command");
    };
    let guest = Guest {
        program: search::find(program).map_or_else(|_| program.clone(), PathBuf::into_os_string),
        args: arguments.to_vec(),
        filter,
        has_results: matches!(events, GuestEvents::Results),
    };
    let options = Options {
        name: Some(program),
        forwards_signals: true,
        tally: match events {
            GuestEvents::Uncounted(tally) => Some(tally),
            GuestEvents::Calls | GuestEvents::Results => None,
        },
        ..Options::default()
    };
    budget::answered();
    match platform.run(&guest, supervisor, &options) {
        Ok(ended) => Ok(ended),
        Err(PlatformError::Spawn(SpawnError::Exec(errno))) => {
            let code = match errno {
                Errno::ENOENT => exit::NOT_FOUND,
                _ => exit::CANNOT_EXECUTE,
            };
            let text = format!("{}: it could not be executed: {errno}", program.text());
            let is_filters = matches!(errno.0, 0 | libc_errno::EPERM | libc_errno::ENOSYS);
            let help = match is_filters {
                true => Some(MUST_ALLOW_EXECVE.to_owned()),
                false => input::policy_as_command(&program.text()),
            };
            Err(Failure::new(code, text, help))
        }
        Err(PlatformError::Spawn(SpawnError::Install { error, .. })) => {
            let text = format!("the filter could not be installed: {error}");
            Err(Failure::new(exit::ENVIRONMENT, text, Some(error.hint())))
        }
        Err(PlatformError::Unsupported(unsupported)) => Err(Failure::new(
            exit::ENVIRONMENT,
            format!("{}: {unsupported}", platform.name()),
            Some("choose another with `--platform`".into()),
        )),
        Err(error) => Err(Failure::environment(format!(
            "{}: {error}",
            platform.name()
        ))),
    }
}

/// The usual errors of denied calls.
mod libc_errno {
    pub(super) const EPERM: i32 = 1;
    pub(super) const ENOSYS: i32 = 38;
}

/// The end of a command in a document.
pub fn end(ended: Ended) -> EndOfGuest {
    match ended {
        Ended::Exited(code) => EndOfGuest {
            exit_code: Some(code),
            signal: None,
        },
        Ended::Signalled { signal, .. } => EndOfGuest {
            exit_code: None,
            signal: Some(signal),
        },
    }
}

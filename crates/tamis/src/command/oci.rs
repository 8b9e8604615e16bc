//! `tamis oci`: policies in the configurations of containers.

mod allow;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use tamis_deploy::oci::{ContainerConfig, Form, missing_listener};
use tamis_diag::{Diagnostic, Sources};
use tamis_embed::annotation;
use tamis_export as export;
use tamis_export::convert::Source;
use tamis_policy::installation::Installation;
use tamis_report::oci::OciReport;
use tamis_session::path_text::PathText;
use tamis_session::{Loaded, files};

use super::convert::{converted, loss_diagnostic};
use crate::cli::limits::LimitArgs;
use crate::cli::load::{self, LoadArgs};
use crate::cli::output::{self, OutputArgs};
use crate::cli::target::TargetArgs;
use crate::cli::{Failure, Global, exit, input};

pub(crate) use allow::profile_of;

const APPLY: &str = "\
Examples:
  tamis oci apply policy.tamis bundle.json
  tamis oci apply policy.tamis bundle.json --runtime crun -o -
crun installs the program of an annotation, byte by byte, and no profile then. Other runtimes compile `linux.seccomp` \
with libseccomp: it gets the policy as a profile, proved equivalent or, with a warning, stricter. Without --runtime both are \
set, and say the same. The rest of the file stays as it is.";

/// Put a policy into the configuration of a container, or extend a profile
#[derive(clap::Args)]
#[command(after_help = APPLY)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: OciCommand,
}

/// The subcommands.
#[derive(Subcommand)]
enum OciCommand {
    /// Put a policy into a container's config.json
    Apply(Box<ApplyArgs>),
    /// Allow more calls in a profile, and leave the rest of its text as it is
    Allow(Box<allow::AllowArgs>),
}

#[derive(clap::Args)]
#[command(after_help = APPLY)]
struct ApplyArgs {
    /// The policy or program: a path, `-`, or the name of an embedded policy
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    policy: String,
    /// The container's config.json, changed in place without -o; `-` for standard input
    config: PathBuf,
    /// The runtime that reads it [default: both forms]
    #[arg(long, value_name = "RUNTIME")]
    runtime: Option<Runtime>,
    /// Set the profile even if it denies calls that programs can't do without
    #[arg(long, hide_short_help = true)]
    allow_losses: bool,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    target: TargetArgs,
    /// Write to this file and leave CONFIG as it is; `-` for standard output
    #[arg(short, long, value_name = "FILE", help_heading = None)]
    output: Option<PathBuf>,
}

/// Standard input and output.
const STANDARD: &str = "-";

/// The runtime that reads the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Runtime {
    /// The program as an annotation
    Crun,
    /// The profile in `linux.seccomp`, which runc, youki and others read
    Runc,
}

impl Runtime {
    /// The form of filters that it reads.
    fn form(self) -> Form {
        match self {
            Runtime::Crun => Form::Program,
            Runtime::Runc => Form::Profile,
        }
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        OciCommand::Apply(args) => apply(args, global),
        OciCommand::Allow(args) => allow::run(args, global),
    }
}

/// The name and the text of a file.
fn read_text(path: &Path) -> Result<(String, String), Failure> {
    let text = match is_standard(path) {
        true => files::read(STANDARD)?,
        false => files::read_file(path)
            .map_err(|error| Failure::input(format!("cannot read {}: {error}", path.text())))?,
    };
    let name = text.name.clone();
    let text = String::from_utf8(text.bytes)
        .map_err(|_| Failure::input(format!("{name}: it is not UTF-8")))?;
    Ok((name, text))
}

/// Whether a path stands for standard input or output.
fn is_standard(path: &Path) -> bool {
    path == Path::new(STANDARD)
}

fn apply(args: &ApplyArgs, global: &Global) -> Result<u8, Failure> {
    let place = args.output.as_ref().unwrap_or(&args.config);
    let output = OutputArgs::to(place.clone());
    output.refuse_to_replace(&args.policy)?;
    let load = args.load.for_filter();
    let loaded = load.load(&args.policy, global)?;
    args.target.check_use([&loaded].into_iter())?;
    let options = args.target.options(&load.options(), global)?;
    let (name, text) = read_text(&args.config)?;
    let mut config = ContainerConfig::parse(&name, text)?;
    let mut notes = Vec::from_iter(config.leftover(args.runtime.map(Runtime::form)));
    let (mut losses, mut has_profile) = (Vec::new(), false);
    if args.runtime != Some(Runtime::Crun) {
        let has_program = || loaded.clone().into_program(&options).is_ok();
        let (profile, lost) = profile(args, &loaded, has_program)?;
        notes.extend(missing_listener(&profile).map(str::to_owned));
        config.set_profile(&profile)?;
        (losses, has_profile) = (lost, true);
    }
    let mut length_insns = None;
    if args.runtime != Some(Runtime::Runc) {
        if let Loaded::Policy(policy) = &loaded
            && !has_profile
        {
            load::warn_installation(policy, global);
        }
        let program = loaded.into_program(&options)?.program;
        config.set_program(annotation::value(&program.to_bytes()))?;
        length_insns = Some(program.len());
    }
    output.text(config.text())?;
    let report = OciReport {
        config: name,
        policy: args.policy.clone(),
        length_insns,
        has_profile,
        losses,
        notes,
        allows_losses: args.allow_losses,
    };
    report_on(&report, place, global)
}

/// Reports the result: on standard output, unless it has the configuration.
fn report_on(report: &OciReport, place: &Path, global: &Global) -> Result<u8, Failure> {
    match global.json && !is_standard(place) {
        true => output::show(report, global)?,
        false => global.notice(report.to_string().trim_end()),
    }
    Ok(exit::OK)
}

/// The policy as a profile, and its losses. If a program can't be expressed as a profile, the failure names the runtime
/// that accepts the program.
fn profile(
    args: &ApplyArgs,
    loaded: &Loaded,
    has_program: impl Fn() -> bool,
) -> Result<(serde_json::Value, Vec<String>), Failure> {
    let (name, arches, installation) = match loaded {
        Loaded::Policy(policy) => (&policy.name, policy.arches(), policy.installation.clone()),
        Loaded::Program(raw) => (
            &raw.name,
            args.load.arches.to_vec(),
            Installation::default(),
        ),
    };
    let source = Source {
        name: name.clone(),
        arches,
        installation,
        ..Source::default()
    };
    let exporter = export::find("oci").expect("it is registered");
    let converted = converted(loaded, exporter, &source, &args.limits, &args.load.arches);
    let converted = converted.map_err(|failure| match failure {
        Failure::Diagnostics(diagnostics, sources) if has_program() => Failure::Diagnostics(
            diagnostics
                .into_iter()
                .map(|one| one.help("with `--runtime crun` the program itself is set"))
                .collect(),
            sources,
        ),
        other => other,
    })?;
    let lost = loss_diagnostic(&converted, exporter, args.allow_losses);
    if let Some(lost) = lost.clone().filter(Diagnostic::is_error) {
        let help = match has_program() {
            true => {
                "with `--runtime crun` the program itself is set, which has all conditions; `--allow-losses` sets the profile all the same"
            }
            false => "`--allow-losses` sets the profile all the same",
        };
        return Err(Failure::Diagnostics(vec![lost.help(help)], Sources::new()));
    }
    let losses = converted.losses.iter();
    let losses = losses.map(|loss| format!("{}; instead: {}", loss.message, loss.kept));
    let losses = lost.into_iter().map(|lost| lost.message).chain(losses);
    let profile = serde_json::from_str(&converted.text)
        .map_err(|error| Failure::bug(error.to_string(), "please report this with the policy"))?;
    Ok((profile, losses.collect()))
}

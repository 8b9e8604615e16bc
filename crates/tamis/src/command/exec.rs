//! `tamis exec`: execute a command under filters in place of this process.

mod plain;

use std::ffi::OsString;

use clap::Parser;
use tamis_kernel::execute::{Execute, ExecuteError};
use tamis_kernel::flags::Flags;
use tamis_session::NamedProgram;
use tamis_session::path_text::PathText;

use crate::cli::load::LoadArgs;
use crate::cli::target::{self, FlagArgs, TargetArgs};
use crate::cli::{Failure, Global, budget, input, side};

/// Become a command under filters, with no child or supervisor
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  tamis exec -p server.bpf -- /usr/sbin/server --foreground
  tamis exec -p base.bpf -p extra.tamis -- sh
In a unit of systemd: ExecStart=/usr/bin/tamis exec -p /etc/server.bpf -- /usr/sbin/server
Process number, descriptors, environment and signals stay as they are; nothing of tamis is left. A filter compiled \
before costs no time at the start; `tamis-exec` is a small static program that takes such filters alone. \
`tamis run` explains kills; `tamis sandbox` answers calls.
Every filter must allow execve, and seccomp if another filter follows. This is checked before anything changes. The flags \
of an OCI profile apply to its filter.
Exit status: that of the command. Before it: 2 wrong input, or a filter that denies execve or has the action notify; \
4 the kernel refuses a filter; 126 the command could not be executed, 127 it was not found.")]
pub(crate) struct Args {
    /// A policy or program; may be repeated, the first is installed first
    #[arg(
        short,
        long = "policy",
        visible_alias = "filter",
        value_name = "INPUT",
        required = true,
        value_parser = input::PolicyParser, hide_possible_values = true,
    )]
    policies: Vec<String>,
    /// Tell the command this name instead of its own
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    argv0: Option<OsString>,
    /// Don't set no_new_privs if the kernel takes the filters without it, as it does with CAP_SYS_ADMIN
    #[arg(long, hide_short_help = true)]
    keep_privs: bool,
    #[command(flatten)]
    flags: FlagArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    target: TargetArgs,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The command line of this subcommand alone: describing all others would take longer than the rest of the work.
#[derive(clap::Parser, Debug)]
struct ExecCommandLine {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    args: Args,
}

/// Parses `tamis exec …`; `None` for every other command line, for requests for help and for wrong usage, which the
/// complete parser reports.
pub(crate) fn parse_alone(mut words: impl Iterator<Item = OsString>) -> Option<(Global, Args)> {
    let program = words.next()?;
    words.next().filter(|word| word == "exec")?;
    let words: Vec<OsString> = words.collect();
    if let Some(args) = plain::parse(words.iter().cloned()) {
        return Some((Global::default(), args));
    }
    let alone = ExecCommandLine::try_parse_from(std::iter::once(program).chain(words)).ok()?;
    Some((alone.global, alone.args))
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let load = args.load.for_installed_filter();
    let (loaded, options) = args.target.load_stack(&args.policies, &load, global)?;
    let asked = args.flags.flags();
    let mut filters: Vec<(NamedProgram, Flags)> = Vec::new();
    for loaded in loaded {
        let wanted = target::wanted_flags(loaded.policy());
        filters.push((loaded.into_program(&options)?, asked | wanted));
    }
    side::stack(filters.iter().map(|(raw, _)| raw.clone()))?;
    let [program, arguments @ ..] = args.command.as_slice() else {
        unreachable!("clap requires a command");
    };
    let plan = Execute {
        program: program.clone(),
        name: args.argv0.clone(),
        args: arguments.to_vec(),
        filters: filters
            .iter()
            .map(|(raw, flags)| (&raw.program, *flags))
            .collect(),
        keep_privs: args.keep_privs,
    };
    budget::answered();
    let error = plan.execute();
    if let ExecuteError::Exec {
        may_tell: false, ..
    } = error
    {
        // The filters could deny the write of a message, or kill the process for it.
        return Ok(error.exit_code());
    }
    let about = match error.filter() {
        Some(filter) => filters[filter].0.name.clone(),
        None => program.text(),
    };
    Err(Failure::new(
        error.exit_code(),
        format!("{about}: {error}"),
        error.hint(),
    ))
}

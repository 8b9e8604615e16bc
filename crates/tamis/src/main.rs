//! The `tamis` command.
//!
//! Each subcommand is a file in [`command`]; shared parts are in [`cli`]. A subcommand returns its exit code or a
//! [`cli::Failure`]. Results go to standard output, messages to standard error.

use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

mod cli;
mod code;
mod command;

// The start note, which `tamis exec` passes on.
tamis_kernel::note_start!();

/// Compile, explain and run Linux seccomp-bpf filters.
#[derive(Parser)]
#[command(
    name = "tamis",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_help = cli::exit::HELP)]
struct Cli {
    #[command(flatten)]
    global: cli::Global,
    #[command(subcommand)]
    command: command::Command,
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(cli::report_bug));
    let (global, command) = match command::Command::parse_fast().map_or_else(parse, Ok) {
        Ok(parsed) => parsed,
        Err(error) => {
            return cli::usage::misused(&cli::usage::without_command(with_nearest(error)));
        }
    };
    let limits = (command.default_time_limit(), command.own_limit());
    cli::execute(&global, limits, command.doing(), || command.run(&global))
}

/// Parses the command line.
fn parse() -> Result<(cli::Global, command::Command), clap::Error> {
    let mut tamis = cli::help::in_brief(Cli::command());
    let read = tamis.try_get_matches_from_mut(std::env::args_os());
    let matches = read.map_err(|error| requested_help(&mut tamis).unwrap_or(error))?;
    let Cli { global, command } = Cli::from_arg_matches(&matches)?;
    Ok((global, command))
}

/// The help for `tamis help … --json`: clap's command `help` accepts no option.
fn requested_help(tamis: &mut clap::Command) -> Option<clap::Error> {
    let words = std::env::args_os().filter(|word| word != "--json");
    let error = tamis.try_get_matches_from_mut(words).err()?;
    (error.kind() == ErrorKind::DisplayHelp).then_some(error)
}

/// The error with only the most similar of several suggested commands, which clap lists last.
fn with_nearest(mut error: clap::Error) -> clap::Error {
    if let Some(tip) = tip(&error) {
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    let kind = ContextKind::SuggestedSubcommand;
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(whole) = command::nearest_of_bpf(word)
    {
        error.insert(kind, ContextValue::Strings(vec![whole]));
    }
    if let Some(ContextValue::Strings(names)) = error.get(kind)
        && let Some(nearest) = names.last().cloned()
    {
        error.insert(kind, ContextValue::String(nearest));
    }
    error
}

/// The advice for a word in the place of a command, or of an option, that is likely to mean something else.
fn tip(error: &clap::Error) -> Option<String> {
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) {
        return match word.as_str() {
            "platforms" => Some("to list platforms: 'tamis-lab platforms'".to_owned()),
            "engines" | "packets" | "ebpf" => Some(format!("'tamis-lab {word}'")),
            _ if Path::new(word).is_file() => {
                Some(format!("to compile a policy: 'tamis compile {word}'"))
            }
            _ => None,
        };
    }
    // To most, a profile is a policy in the format of container engines.
    let is_profile = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if word == "--profile");
    is_profile.then(|| {
        "a seccomp profile is a policy; '--counts FILE' says how often calls are made".to_owned()
    })
}

//! The `tamis` command.
//!
//! One file per subcommand in [`command`], what they share in [`cli`]. A subcommand returns its exit
//! code or a [`cli::Failure`]; results go to standard output, everything else to standard error.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use tamis_report::help::HelpReport;

mod cli;
mod command;

// What `tamis exec` hands on.
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
        Err(error) => return misused(&without_command(with_nearest(error))),
    };
    let limits = (command.default_time_limit(), command.own_limit());
    cli::budget::begin(global.budget, limits.0, limits.1, global.json);
    // A panic is a bug: the hook has told the user, the exit code tells programs.
    let outcome = std::panic::catch_unwind(|| {
        let _stage = cli::budget::stage(command.doing());
        command.run(&global)
    });
    cli::budget::answered();
    let code = match outcome {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => failure.report(&global),
        Err(_) => cli::exit::BUG,
    };
    for text in cli::output::left_warnings() {
        cli::message(&text);
    }
    ExitCode::from(code)
}

/// The command line.
fn parse() -> Result<(cli::Global, command::Command), clap::Error> {
    let mut tamis = cli::help::in_brief(Cli::command());
    let read = tamis.try_get_matches_from_mut(std::env::args_os());
    let matches = read.map_err(|error| asked_for_help(&mut tamis).unwrap_or(error))?;
    let Cli { global, command } = Cli::from_arg_matches(&matches)?;
    Ok((global, command))
}

/// The help that `tamis help … --json` asks for: clap's own command `help` takes no option.
fn asked_for_help(tamis: &mut clap::Command) -> Option<clap::Error> {
    let words = std::env::args_os().filter(|word| word != "--json");
    let error = tamis.try_get_matches_from_mut(words).err()?;
    (error.kind() == ErrorKind::DisplayHelp).then_some(error)
}

/// The error with the nearest of several suggested commands alone: clap has it last, behind names that share a few letters.
/// A file in the place of a command is one to compile.
fn with_nearest(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && Path::new(word).is_file()
    {
        let tip = format!("to compile a policy: 'tamis compile {word}'");
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    // To most, a profile is a policy in the format of container engines.
    if matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if word == "--profile")
    {
        let tip = "a seccomp profile is a policy; '--counts FILE' says how often calls are made";
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

/// The error without the advice to give an unknown option to what follows as the name of a command.
fn without_command(mut error: clap::Error) -> clap::Error {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    if error.kind() == ErrorKind::UnknownArgument
        && usage.is_some_and(|usage| usage.contains("COMMAND"))
    {
        let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested) else {
            return error;
        };
        let is_kept = |tip: &&StyledStr| !tip.to_string().contains("as a value, use");
        let kept: Vec<StyledStr> = tips.iter().filter(is_kept).cloned().collect();
        let value = match kept.is_empty() {
            true => ContextValue::None,
            false => ContextValue::StyledStrs(kept),
        };
        error.insert(ContextKind::Suggested, value);
    }
    error
}

/// Prints the help or version that was asked for as a document, and gives the exit code.
fn help_document(text: String) -> u8 {
    let document = HelpReport::new(env!("CARGO_PKG_VERSION"), text);
    let json = cli::output::document_json(&document);
    match json.and_then(|json| cli::output::print(json.as_bytes())) {
        Ok(()) => cli::exit::OK,
        // Where no document can be written.
        Err(failure) => failure.report(&cli::Global::default()),
    }
}

/// Tells of wrong usage, or prints the help or version that was asked for.
fn misused(error: &clap::Error) -> ExitCode {
    let is_request = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    // What follows `--` is another command's.
    let mut words = std::env::args_os().take_while(|word| word != "--");
    if !words.any(|word| word == "--json") {
        let can_print = match is_request {
            true => cli::output::check_stdout(),
            false => Ok(()),
        };
        let printed = can_print.and_then(|()| error.print());
        let printed = printed.and_then(|()| std::io::stdout().flush());
        return match printed {
            Err(error) if is_request && error.kind() != std::io::ErrorKind::BrokenPipe => {
                cli::message(&format!("error: cannot write to standard output: {error}"));
                ExitCode::from(cli::exit::ENVIRONMENT)
            }
            // A mistake that can't be told leaves only the exit code.
            _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(cli::exit::USAGE)),
        };
    }
    let text = error.to_string();
    if is_request {
        return ExitCode::from(help_document(text));
    }
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (message, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let tip = rest
        .lines()
        .find_map(|line| line.trim().strip_prefix("tip: "));
    let help = tip.map(str::to_owned);
    ExitCode::from(cli::Failure::new(cli::exit::USAGE, message, help).report_json())
}

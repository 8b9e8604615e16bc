//! Wrong usage and requests for help, as text or as a document.

use std::io::Write as _;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use tamis_report::help::HelpReport;

use crate::{Failure, Global, exit, message, output};

/// The error without clap's suggestion to pass an unknown option to a command.
pub fn without_command(mut error: clap::Error) -> clap::Error {
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

/// Prints the help or version as a document and returns the exit code.
fn help_document(text: String) -> u8 {
    let document = HelpReport::new(env!("CARGO_PKG_VERSION"), text);
    let json = output::document_json(&document);
    match json.and_then(|json| output::print(json.as_bytes())) {
        Ok(()) => exit::OK,
        // No document can be written.
        Err(failure) => failure.report(&Global::default()),
    }
}

/// Reports wrong usage, or prints the help or version.
pub fn misused(error: &clap::Error) -> ExitCode {
    let is_request = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    // Words after `--` belong to another command.
    let mut words = std::env::args_os().take_while(|word| word != "--");
    if !words.any(|word| word == "--json") {
        let can_print = match is_request {
            true => output::check_stdout(),
            false => Ok(()),
        };
        let printed = can_print.and_then(|()| error.print());
        let printed = printed.and_then(|()| std::io::stdout().flush());
        return match printed {
            Err(error) if is_request && error.kind() != std::io::ErrorKind::BrokenPipe => {
                message(&format!("error: cannot write to standard output: {error}"));
                ExitCode::from(exit::ENVIRONMENT)
            }
            // If the error can't be printed, the exit code is the only report.
            _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::USAGE)),
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
    ExitCode::from(Failure::new(exit::USAGE, message, help).report_json())
}

//! The short help, `-h`: what fits a screen.
//!
//! Options under a heading of their own - how inputs are read, how filters are compiled, limits, languages - are many,
//! the same for most commands, and rarely wanted: `--help` has them.

use clap::{Arg, Command};

/// The command with a short help for each of its subcommands.
pub(crate) fn in_brief(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let is_rare = is_rare(&arg);
        arg.hide_short_help(is_rare)
    });
    command.mut_subcommands(|subcommand| {
        let name = subcommand.get_name().to_owned();
        let has_more = subcommand
            .get_arguments()
            .any(|arg| is_rare(arg) && !arg.is_hide_set());
        let after = subcommand
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let subcommand = in_brief(subcommand);
        match has_more {
            true => subcommand
                .after_help(format!("{}More: `tamis {name} --help`", examples(&after)))
                .after_long_help(after),
            false => subcommand,
        }
    })
}

/// Whether an option is one of the many, or a command says that it is rarely wanted.
fn is_rare(arg: &Arg) -> bool {
    arg.get_help_heading().is_some() || arg.is_hide_short_help_set()
}

/// The examples of a help's end: the line that announces them, and the indented ones after it.
fn examples(text: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Example"));
    let title = lines.next().unwrap_or_default();
    let shown = lines.take_while(|line| line.starts_with(' '));
    [title]
        .into_iter()
        .chain(shown)
        .fold(String::new(), |all, line| all + line + "\n")
}

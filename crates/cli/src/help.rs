//! The short help, `-h`, of commands.
//!
//! The short help of a command fits a screen of 24 lines and 80 columns. Options under a heading of their own - how inputs are
//! read, how filters are compiled, limits, languages - are many, the same for most commands, and rarely wanted: `--help`
//! has them, and those that say so of themselves. Of the text at the end the first examples are shown.

use clap::{Arg, Command};

/// How many examples the short help has.
const EXAMPLES: usize = 3;

/// The command with a short help for itself and each command below it; `path` is how it is called.
pub fn brief(command: Command, path: &str) -> Command {
    let command = command.mut_args(|arg| {
        let is_rare = arg.get_help_heading().is_some() || arg.is_hide_short_help_set();
        Arg::hide_short_help(arg, is_rare)
    });
    command.mut_subcommands(|subcommand| {
        let path = format!("{path} {}", subcommand.get_name());
        let after = subcommand
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        brief(subcommand, &path)
            .after_help(format!("{}More: `{path} --help`", examples(&after)))
            .after_long_help(after)
    })
}

/// The first examples of a help's end: the line that announces them, and the indented ones after it.
fn examples(text: &str) -> String {
    let lines = text.lines().skip_while(|line| !line.starts_with("Example"));
    let is_example = |(at, line): &(usize, &str)| *at == 0 || line.starts_with(' ');
    let shown = lines
        .enumerate()
        .take_while(is_example)
        .take(1 + EXAMPLES)
        .map(|(_, line)| line);
    shown.fold(String::new(), |all, line| all + line + "\n")
}

//! The help of `tamis` itself, and the short help, `-h`, of its commands.
//!
//! There are more commands than a screen has lines. `tamis -h` explains those that a beginner needs and names all others by
//! what they are for; `tamis --help` has the same groups with a line for each command.
//!
//! The short help of a command fits a screen of 24 lines and 80 columns. Options under a heading of their own - how inputs are
//! read, how filters are compiled, limits, languages - are many, the same for most commands, and rarely wanted: `--help`
//! has them, and those that say so of themselves. Of the text at the end the first examples are shown.

use std::fmt::Write as _;

use clap::builder::Styles;
use clap::{Arg, Command};

/// How many examples the short help has.
const EXAMPLES: usize = 3;

/// What a beginner needs, in the order in which it is needed.
const FIRST: [&str; 7] = [
    "compile", "explain", "lint", "run", "record", "learn", "diff",
];

/// All commands by what they are for, those that are wanted most first.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Write", &["compile", "precompile", "convert", "lint"]),
    (
        "Understand",
        &[
            "explain",
            "eval",
            "decompile",
            "disasm",
            "asm",
            "dump",
            "audit",
            "tables",
        ],
    ),
    ("Compare", &["diff", "prove", "fuzz", "reduce"]),
    ("Run", &["run", "exec", "sandbox", "inject"]),
    ("Record", &["record", "trace", "learn", "profile"]),
    ("Deploy", &["harden", "oci", "libseccomp"]),
    ("Measure", &["bench", "optimize", "platforms"]),
    ("Other", &["passes", "bisect", "completions"]),
];

/// The command with its commands in groups, and a short help for each of them.
pub(crate) fn in_brief(command: Command) -> Command {
    let path = command.get_name().to_owned();
    let (short, long) = (overview(&command), listing(&command));
    let after = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    // clap puts what is to stand before the help where the template says.
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{{before-help}}{}{{options}}{{after-help}}",
        heading("Options")
    );
    brief(command, &path)
        .help_template(template)
        .before_help(short.trim_end().to_owned())
        .before_long_help(long.trim_end().to_owned())
        .after_help(format!(
            "More: `{path} COMMAND -h` for a command, `{path} --help` for all on a line each"
        ))
        .after_long_help(after)
}

/// The commands that come first with their descriptions, and the names of all in their groups.
fn overview(command: &Command) -> String {
    let mut text = heading("To begin with");
    text += &described(command, &FIRST);
    text += &format!("\n{}", heading("All commands"));
    for (group, names) in GROUPS {
        let _ = writeln!(text, "  {group:<12} {}", names.join(", "));
    }
    text
}

/// All commands with their descriptions, in their groups.
fn listing(command: &Command) -> String {
    let group = |(group, names): (&str, &[&str])| heading(group) + &described(command, names);
    let groups: Vec<String> = GROUPS.into_iter().map(group).collect();
    groups.join("\n")
}

/// A line in the style of clap's own headings.
fn heading(text: &str) -> String {
    let styles = Styles::styled();
    let style = styles.get_header();
    format!("{style}{text}:{style:#}\n")
}

/// A line for each of these commands.
fn described(command: &Command, names: &[&str]) -> String {
    names.iter().fold(String::new(), |mut text, name| {
        let about = command
            .find_subcommand(name)
            .and_then(Command::get_about)
            .map(ToString::to_string);
        let _ = writeln!(text, "  {name:<12} {}", about.unwrap_or_default());
        text
    })
}

fn brief(command: Command, path: &str) -> Command {
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let tamis = crate::Cli::command();
        let shown = tamis.get_subcommands().filter(|one| !one.is_hide_set());
        let mut known: Vec<&str> = shown.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        known.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, known);
        assert!(FIRST.iter().all(|name| known.contains(name)));
    }
}

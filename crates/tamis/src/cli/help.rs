//! The help of `tamis` itself.
//!
//! `tamis -h` fits a screen: it has a line for each of sixteen commands, in the order of a user's work, and the names
//! of the others. `tamis --help` has a line for each command, and the options ([decision
//! 198](../../../../docs/decisions/0198-the-order-of-the-commands.md)).

use std::fmt::Write as _;

use clap::Command;
use clap::builder::Styles;
use tamis_cli::help::brief;

/// The commands of the first screen by purpose, in the order of a user's work.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Observe", &["record", "learn"]),
    ("Write", &["compile", "lint", "explain", "convert"]),
    ("Compare", &["diff", "prove", "test", "combine", "optimize"]),
    ("Use", &["run", "exec", "audit", "harden"]),
    ("Programs", &["bpf"]),
];

/// The commands for rare or special uses.
const OTHERS: [&str; 10] = [
    "bench",
    "trace",
    "profile",
    "precompile",
    "oci",
    "libseccomp",
    "inject",
    "sandbox",
    "tables",
    "completions",
];

/// The last line of the first screen.
const MORE: &str = "More: `tamis COMMAND -h`, and `tamis --help` for all commands and options";

/// Groups the commands, and adds a short help to each.
pub(crate) fn in_brief(command: Command) -> Command {
    let path = command.get_name().to_owned();
    let (short, long) = (overview(&command), listing(&command));
    let after = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    brief(command, &path)
        .help_template("{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{after-help}")
        .before_help(short)
        .before_long_help(format!("{long}\n{after}"))
        .after_help("")
}

/// The first screen: a line for each command of the groups, and the names of the others.
fn overview(command: &Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        for (index, name) in names.iter().enumerate() {
            let group = if index == 0 { group } else { "" };
            let about = about(command, name);
            let _ = writeln!(text, "  {} {name:<8} {about}", emphasised(group, 8));
        }
    }
    text + &format!("\nOthers: {}\n{MORE}", OTHERS.join(", "))
}

/// All commands with their descriptions, in groups, including those of `bpf`.
fn listing(command: &Command) -> String {
    let described = |names: &[&str]| {
        names.iter().fold(String::new(), |text, name| {
            let below = match *name {
                "bpf" => command.find_subcommand(name),
                _ => None,
            };
            let below = below.into_iter().flat_map(Command::get_subcommands);
            let below = below.map(|one| (format!("{name} {}", one.get_name()), about_of(one)));
            let own = (String::from(*name), about(command, name));
            let entries = std::iter::once(own).chain(below);
            entries.fold(text, |text, (name, about)| {
                text + &format!("  {name:<14} {about}\n")
            })
        })
    };
    let group = |(group, names): &(&str, &[&str])| heading(group) + &described(names);
    let groups: Vec<String> = GROUPS.iter().map(group).collect();
    let others = heading("Others") + &described(&OTHERS);
    let options = heading("Options") + &options(command);
    [groups.join("\n"), others, options].join("\n")
}

/// The options of the command in clap's format.
fn options(command: &Command) -> String {
    let mut alone = Command::new("tamis")
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100)
        .args(command.get_arguments().cloned())
        .help_template("{options}");
    format!("{}", alone.render_long_help().ansi())
}

/// The description of a subcommand.
fn about(command: &Command, name: &str) -> String {
    command
        .find_subcommand(name)
        .map(about_of)
        .unwrap_or_default()
}

fn about_of(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    about.unwrap_or_default()
}

/// A word in the style of clap's own headings, in a column of this width.
fn emphasised(text: &str, width: usize) -> String {
    let styles = Styles::styled();
    let style = styles.get_header();
    format!("{style}{text}{style:#}{:1$}", "", width - text.len())
}

/// A line in the style of clap's own headings.
fn heading(text: &str) -> String {
    let styles = Styles::styled();
    let style = styles.get_header();
    format!("{style}{text}:{style:#}\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn clap_finds_no_mistake_in_any_command() {
        crate::Cli::command().debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group() {
        let tamis = crate::Cli::command();
        let shown = tamis.get_subcommands().filter(|one| !one.is_hide_set());
        let mut known: Vec<&str> = shown.map(Command::get_name).collect();
        let first = GROUPS.iter().flat_map(|(_, names)| *names);
        let mut named: Vec<&str> = first.chain(&OTHERS).copied().collect();
        known.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, known);
    }
}

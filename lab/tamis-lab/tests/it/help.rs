//! The help of the laboratory's command: every command has its own example, and a short help within a screen.

use crate::tamis_lab;

/// The help of a command.
fn help(path: &[&str], flag: &str) -> String {
    let output = tamis_lab(&[path, &[flag]].concat());
    assert!(output.status.success(), "{path:?}");
    String::from_utf8(output.stdout).expect("help is text")
}

/// The commands below a command.
fn below(path: &[&str]) -> Vec<String> {
    let help = help(path, "--help");
    let (_, list) = help.split_once("Commands:\n").unwrap_or_default();
    let list = list.lines().take_while(|line| !line.is_empty());
    let names =
        list.filter_map(|line| Some(line.strip_prefix("  ")?.split_once(' ')?.0.to_owned()));
    names
        .filter(|name| !name.is_empty() && name != "help")
        .collect()
}

#[test]
fn every_command_has_an_example_and_a_short_help_within_a_screen() {
    const LINES: usize = 24;
    let mut count = 0;
    for group in below(&[]) {
        let commands = below(&[&group]);
        let paths = commands.iter().map(|name| vec![group.as_str(), name]);
        for path in std::iter::once(vec![group.as_str()]).chain(paths) {
            count += 1;
            let own = format!("tamis-lab {}", path.join(" "));
            // A command of both programs has the product's examples.
            let is_shared = path == ["sandbox"];
            assert!(help(&path, "--help").contains(&own) || is_shared, "{own}");
            let lines = help(&path, "-h").lines().count();
            assert!(lines <= LINES, "{own}: {lines} lines");
        }
    }
    assert!(count > 12, "{count} commands");
}

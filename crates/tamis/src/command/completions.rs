//! `tamis completions`: scripts that complete the command line in a shell.
//!
//! `clap_complete` generates them. A policy can be a file or the name of an embedded policy, but a generated script
//! completes either files or names. It completes names, and file completion is added to the text.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::{Failure, Global, exit, output};

/// Print a completion script for a shell
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  tamis completions bash > ~/.local/share/bash-completion/completions/tamis")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    global.refuse_document("a script of completions")?;
    let mut command = crate::Cli::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tamis", &mut script);
    let script = String::from_utf8_lossy(&script);
    output::print(with_files(args.shell, &script).as_bytes())?;
    Ok(exit::OK)
}

/// Adds files to the completion of names.
fn with_files(shell: Shell, script: &str) -> String {
    let names = tamis_policy::embedded::ALL.map(|policy| policy.name);
    let list = names.join(" ");
    match shell {
        Shell::Bash => in_bash(script, &list),
        Shell::Zsh => script.replace(
            &format!(":({list})"),
            &format!(":{{_files; compadd -- {list}}}"),
        ),
        Shell::Fish => script.replace(
            &format!("-f -a \"{}\\t", names[0]),
            &format!("-F -a \"{}\\t", names[0]),
        ),
        _ => script.to_owned(),
    }
}

/// Adds files in a script of bash, where names are values of options and words among the commands' options.
fn in_bash(script: &str, list: &str) -> String {
    let mut takes_policies = false;
    let lines = script.lines().map(|line| {
        if line.trim_start().starts_with("opts=") {
            takes_policies = line.contains(list);
        }
        let line = line.replace(&format!("{list} {list}"), list);
        let with_files = |line: &str, words: &str| {
            let names = format!("compgen -W \"{words}\"");
            line.replace(&names, &format!("compgen -f -W \"{words}\""))
        };
        let line = with_files(&line, list);
        let line = match takes_policies {
            true => with_files(&line, "${opts}"),
            false => line,
        };
        line + "\n"
    });
    lines.collect()
}

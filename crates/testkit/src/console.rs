//! The examples in documents, run as tests.
//!
//! A fenced block marked `console` shows a terminal: lines that begin with `$ ` are commands, and the lines after
//! each are its output. [`check`] runs the commands that call `tamis` and compares:
//!
//! - `$ tamis …` and `$ cargo run --release -- …` run the binary; `|` chains, as in goldens;
//! - `$ cat FILE` shows a file: the text is written to it for the commands that follow;
//! - other commands are not run, unless the block is marked `console live`: its commands are run by the shell, with the
//!   binary's folder first in `PATH`, if the caller lets them: they install filters.
//!
//! The text is compared with standard error followed by standard output; a line `...` matches any number of lines. If
//! no output is shown, the command must succeed, and its output is not compared. A line that ends with ` ...` matches those
//! that begin so.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::command;
use crate::diff;

/// A line that matches any number of lines.
const ELLIPSIS: &str = "...";

/// A command in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Example {
    line: usize,
    command: String,
    shown: String,
    /// Whether it is for the shell.
    is_live: bool,
}

/// Runs the examples of a Markdown text in the directory `work`, which is created anew, and returns the differences
/// from the document.
///
/// # Errors
/// If the directory cannot be created.
pub fn check(
    markdown: &str,
    binary: &Path,
    work: &Path,
    with_live: bool,
) -> std::io::Result<Vec<String>> {
    if work.exists() {
        fs::remove_dir_all(work)?;
    }
    fs::create_dir_all(work)?;
    let mut failures = Vec::new();
    let examples = examples(markdown).into_iter();
    for example in examples.filter(|example| with_live || !example.is_live) {
        let file = example.command.strip_prefix("cat ");
        if let Some(file) = file.filter(|file| !file.contains('|')) {
            fs::write(work.join(file.trim()), &example.shown)?;
        } else if let Err(problem) = check_one(&example, binary, work) {
            let Example { line, command, .. } = example;
            failures.push(format!("line {line}: $ {command}\n{problem}"));
        }
    }
    Ok(failures)
}

/// Runs a command by the shell, within a minute.
fn run_live(example: &Example, binary: &Path, work: &Path) -> Result<(), String> {
    let folder = binary.parent().unwrap_or(Path::new("."));
    let path = format!(
        "{}:{}",
        folder.display(),
        env::var("PATH").unwrap_or_default()
    );
    let script = format!("exec 2>&1; {}", example.command);
    let output = Command::new("timeout")
        .args(["60", "sh", "-c", &script])
        .current_dir(work)
        .env("PATH", path)
        .output()
        .map_err(|error| error.to_string())?;
    compared(
        example,
        &String::from_utf8_lossy(&output.stdout),
        output.status,
    )
}

fn check_one(example: &Example, binary: &Path, work: &Path) -> Result<(), String> {
    if example.is_live {
        return run_live(example, binary, work);
    }
    let command = example.command.replace("cargo run --release --", "tamis");
    if !command.starts_with("tamis ") {
        return Ok(());
    }
    let outcome = command::run(binary, &command::split(&command, "tamis")?, work, None)?;
    let written = outcome.stderr + &String::from_utf8_lossy(&outcome.stdout);
    compared(example, &written, outcome.status)
}

/// Compares the output of a command with the example's.
fn compared(example: &Example, written: &str, status: ExitStatus) -> Result<(), String> {
    if example.shown.is_empty() {
        return if status.success() {
            Ok(())
        } else {
            Err(format!("{status}\n{written}"))
        };
    }
    let shown: Vec<&str> = example.shown.lines().collect();
    let lines: Vec<&str> = written.lines().map(str::trim_end).collect();
    if matches(&shown, &lines) {
        return Ok(());
    }
    Err(diff::unified(&example.shown, &lines.join("\n")))
}

/// Whether lines match the document, with an ellipsis for any number of lines.
fn matches(shown: &[&str], lines: &[&str]) -> bool {
    match (shown, lines) {
        ([], []) => true,
        ([ELLIPSIS, rest @ ..], _) => (0..=lines.len()).any(|from| matches(rest, &lines[from..])),
        ([first, shown @ ..], [line, lines @ ..]) => is_like(first, line) && matches(shown, lines),
        _ => false,
    }
}

/// Whether a line is as shown, or begins so if the rest is left out.
fn is_like(shown: &str, line: &str) -> bool {
    match shown.strip_suffix(" ...") {
        Some(start) => line.starts_with(start),
        None => shown == line,
    }
}

fn examples(markdown: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let (mut is_console, mut is_live) = (false, false);
    for (index, line) in markdown.lines().enumerate() {
        if line.starts_with("```") {
            is_live = line == "```console live";
            is_console = is_live || line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            examples.push(Example {
                line: index + 1,
                command: command.to_owned(),
                shown: String::new(),
                is_live,
            });
        } else if let Some(example) = examples.last_mut().filter(|_| is_console) {
            example.shown += line;
            example.shown.push('\n');
        }
    }
    examples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn failures(name: &str, markdown: &str) -> Vec<String> {
        let scratch = Scratch::new(name).unwrap();
        check(
            markdown,
            Path::new("/bin/cat"),
            &scratch.path().join("work"),
            false,
        )
        .unwrap()
    }

    #[test]
    fn commands_see_the_files_that_were_shown() {
        let text = "```console\n$ cat a\n1\n2\n3\n$ tamis a\n1\n...\n3\n$ cargo run --release -- a\n\
                    $ tamis a | tamis\n...\n```\n";
        assert_eq!(failures("good", text), [""; 0]);
    }

    #[test]
    fn other_output_and_failing_commands_are_reported() {
        let text = "text\n```console\n$ cat a\n1\n$ tamis a\n2\n$ tamis b\n$ rm -rf a\n```\n";
        let failures = failures("bad", text);
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert_eq!(failures[0], "line 5: $ tamis a\n@@ -1 +1 @@\n-2\n+1\n");
        assert!(failures[1].starts_with("line 7: $ tamis b\nexit status: 1\n"));
    }

    #[test]
    fn other_blocks_are_no_examples() {
        assert!(examples("```text\n$ tamis a\n```\n$ tamis b\n").is_empty());
    }
}

//! Execution of the command lines in goldens and documents.
//!
//! A command line consists of words, in `'` or `"` if they contain spaces, and `|` between chained commands. There is
//! no shell: nothing is expanded, and every command is of the program under test.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// The result of a command line.
#[derive(Clone, Debug)]
pub(crate) struct CommandOutput {
    /// Standard output of the last command.
    pub(crate) stdout: Vec<u8>,
    /// Standard error of the last command.
    pub(crate) stderr: String,
    /// The exit status of the last command.
    pub(crate) status: ExitStatus,
}

/// The arguments of each command of a line; all are of this program.
///
/// # Errors
/// If a quote is not closed or a command is of another program, as a sentence.
pub(crate) fn split(line: &str, program: &str) -> Result<Vec<Vec<String>>, String> {
    words(line)?
        .split(|word| *word == Word::Pipe)
        .map(|command| {
            let mut texts = command.iter().map(|word| match word {
                Word::Text(text) => text.clone(),
                Word::Pipe => unreachable!("split at pipes"),
            });
            if texts.next().as_deref() != Some(program) {
                return Err(format!("not a `{program}` command line: {line}"));
            }
            Ok(texts.collect())
        })
        .collect()
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Text(String),
    Pipe,
}

fn words(line: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('|') {
            words.push(Word::Pipe);
            rest = after.trim_start();
            continue;
        }
        let (word, after) = text_word(rest).ok_or_else(|| format!("open quote: {line}"))?;
        words.push(Word::Text(word));
        rest = after.trim_start();
    }
    Ok(words)
}

/// The word at the start of a text and the text after it; `None` if a quote is not closed.
fn text_word(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match first {
            ' ' | '\t' | '|' => break,
            '\'' | '"' => {
                let (quoted, after) = rest[1..].split_once(first)?;
                word.push_str(quoted);
                rest = after;
            }
            other => {
                word.push(other);
                rest = &rest[other.len_utf8()..];
            }
        }
    }
    Some((word, rest))
}

/// Runs the commands one after the other in the directory `work`. The first one reads the file `stdin`, or nothing;
/// each other one reads the output of the one before.
///
/// The environment is empty, so the caller's language and colours have no effect.
///
/// # Errors
/// If a command cannot be started or one before the last fails, as a sentence.
pub(crate) fn run(
    binary: &Path,
    commands: &[Vec<String>],
    work: &Path,
    stdin: Option<&Path>,
) -> Result<CommandOutput, String> {
    let mut stdin = stdin.map(Path::to_path_buf);
    let mut outcome = None;
    for (index, arguments) in commands.iter().enumerate() {
        let current = run_one(binary, arguments, work, stdin.as_deref())
            .map_err(|error| format!("cannot run {}: {error}", binary.display()))?;
        let is_last = index + 1 == commands.len();
        if !is_last && !current.status.success() {
            let CommandOutput { stderr, status, .. } = current;
            return Err(format!(
                "command {} of the pipe: {status}\n{stderr}",
                index + 1
            ));
        }
        if !is_last {
            let pipe = work.join(format!("pipe.{index}"));
            fs::write(&pipe, &current.stdout)
                .map_err(|error| format!("cannot write {}: {error}", pipe.display()))?;
            stdin = Some(pipe);
        }
        outcome = Some(current);
    }
    outcome.ok_or_else(|| "there is no command".to_owned())
}

fn run_one(
    binary: &Path,
    arguments: &[String],
    work: &Path,
    stdin: Option<&Path>,
) -> std::io::Result<CommandOutput> {
    let stdin = match stdin {
        Some(path) => Stdio::from(File::open(path)?),
        None => Stdio::null(),
    };
    let output = Command::new(binary)
        .args(arguments)
        .current_dir(work)
        .env_clear()
        .stdin(stdin)
        .output()?;
    Ok(CommandOutput {
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        status: output.status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_be_quoted_and_commands_chained() {
        let commands = split(
            "tamis bpf eval --call 'x86_64 read(0)' -|tamis bpf disasm \"a b\"c",
            "tamis",
        )
        .unwrap();
        assert_eq!(
            commands,
            [
                vec!["bpf", "eval", "--call", "x86_64 read(0)", "-"],
                vec!["bpf", "disasm", "a bc"]
            ]
        );
    }

    #[test]
    fn an_empty_quoted_word_is_a_word() {
        assert_eq!(split("tamis ''", "tamis").unwrap(), [[""]]);
    }

    #[test]
    fn other_programs_and_open_quotes_are_refused() {
        assert!(split("rm -rf x", "tamis").is_err());
        assert!(split("tamis bpf asm | cat", "tamis").is_err());
        assert!(
            split("tamis 'x", "tamis")
                .unwrap_err()
                .contains("open quote")
        );
    }
}

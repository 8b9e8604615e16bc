//! Inputs on the command line: paths, the values of `--from`, and unexpected data on standard input.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use tamis_policy::front_end;
use tamis_session::path_text::{PathText, path_of};
use tamis_session::{Input, InputKind};

use super::failure::Failure;

/// Parses the path of an input as [text](tamis_session::path_text): paths needn't be UTF-8.
pub fn path_parser() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|path| path.text())
}

/// Parses a path, `-` or the name of an embedded policy. The names are listed for completion; every other text is a
/// path.
#[derive(Clone, Copy, Debug)]
pub struct PolicyParser;

impl TypedValueParser for PolicyParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        path_parser().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = tamis_policy::embedded::ALL.iter().map(|policy| policy.name);
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

/// Parses the value of `--from` and lists the kinds in the help.
///
/// # Panics
/// Never: the parser accepts names of kinds alone.
pub fn kind_parser() -> impl TypedValueParser<Value = InputKind> {
    let values = InputKind::all().map(|kind| PossibleValue::new(kind.name()).help(kind.about()));
    PossibleValuesParser::new(values).map(|name| {
        let found = InputKind::from_name(&name);
        found.expect("the parser takes no other value")
    })
}

/// The help for a policy in the place of the command: policies come before the command.
pub fn policy_as_command(program: &str) -> Option<String> {
    let extension = path_of(program).extension().map(OsStr::text);
    let extension = extension.as_deref().unwrap_or_default();
    let mut languages = front_end::ALL.into_iter();
    let is_policy = Input::embedded(program).is_some()
        || extension == "bpf"
        || languages.any(|language| language.extensions.contains(&extension));
    is_policy.then(|| format!("a policy is named with `-p`, before the command: `-p {program}`"))
}

/// A text quoted as one word of a shell command.
pub fn shell_word(text: &str) -> String {
    let is_plain = |sign: char| sign.is_alphanumeric() || "/._-@:+%=,".contains(sign);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// The time to wait for a first byte on a pipe that no argument names.
const UNREAD_INPUT_WAIT: Duration = Duration::from_millis(50);

/// Fails if no input is named and standard input is a file, or a pipe with data: it would be ignored silently.
pub fn refuse_unread_input() -> Result<(), Failure> {
    let stdin = io::stdin();
    let Ok(kind) = stdin
        .as_fd()
        .try_clone_to_owned()
        .map(File::from)
        .and_then(|f| f.metadata())
    else {
        return Ok(());
    };
    let has_input = if kind.is_file() {
        kind.len() > 0
    } else if kind.file_type().is_fifo() {
        has_first_byte(stdin)
    } else {
        false
    };
    if !has_input {
        return Ok(());
    }
    Err(Failure::usage(
        "no policy given, but standard input is not empty",
        "did you mean `-`? Without it, the embedded policy is compiled",
    ))
}

/// Whether a byte can be read soon. If not, the reading thread blocks until the process ends.
fn has_first_byte(stdin: Stdin) -> bool {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut stdin = stdin.lock();
        // The receiver is dropped after the wait.
        let _ = sender.send(false);
        let _ = sender.send(matches!(stdin.read(&mut [0]), Ok(1)));
    });
    // Wait for the start of the thread: on a busy machine it may take longer than the read.
    let _ = receiver.recv();
    receiver.recv_timeout(UNREAD_INPUT_WAIT).unwrap_or(false)
}

//! Reading input: files, standard input and embedded policies, and telling what kind they are.
//!
//! Every subcommand takes the same inputs. The kind of a text or program is what the file's extension
//! says and, where it says nothing, what the content looks like; `--from` overrides both.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tamis_bpf::forms::{self, Form};
use tamis_diag::{Diagnostic, SourceId, Sources, Span, code, suggest};
use tamis_policy::front_end::{self, FrontEnd};
use tamis_policy::limits::MAX_SOURCE_BYTES;

use super::failure::Failure;

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A policy in this language.
    Policy(&'static FrontEnd),
    /// The text form of a ruleset.
    Rules,
    /// A program as text in this form.
    Text(&'static Form),
    /// A raw program: `struct sock_filter[]` without a header.
    Bpf,
}

impl Kind {
    /// The word that the text form of a ruleset begins with.
    const RULESET: &str = "ruleset";
    const RULES: &str = "rules";
    const BPF: &str = "bpf";

    /// All kinds.
    fn all() -> impl Iterator<Item = Kind> {
        let policies = front_end::ALL.into_iter().map(Kind::Policy);
        let programs = forms::ALL.iter().map(Kind::Text);
        policies
            .chain([Kind::Rules])
            .chain(programs)
            .chain([Kind::Bpf])
    }

    /// What `--from` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Policy(front_end) => front_end.name,
            Kind::Rules => Kind::RULES,
            Kind::Text(form) => form.name,
            Kind::Bpf => Kind::BPF,
        }
    }

    /// What it is, with its article.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Kind::Policy(front_end) => front_end.title,
            Kind::Rules => "the text form of a ruleset",
            Kind::Text(form) => form.title,
            Kind::Bpf => "a raw program",
        }
    }

    /// The same for a list of kinds.
    fn about(self) -> &'static str {
        match self {
            Kind::Policy(front_end) => front_end.about,
            Kind::Rules => "The text form of a ruleset",
            Kind::Text(form) => form.about,
            Kind::Bpf => "A raw program: struct sock_filter[] without a header",
        }
    }

    /// Reads the value of `--from` and lists the kinds in the help.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Kind> {
        let values = Kind::all().map(|kind| PossibleValue::new(kind.name()).help(kind.about()));
        PossibleValuesParser::new(values).map(|name| {
            let found = Kind::all().find(|kind| kind.name() == name);
            found.expect("the parser takes no other value")
        })
    }

    /// Whether a text looks like this.
    pub(crate) fn recognises(self, text: &str) -> bool {
        match self {
            Kind::Policy(front_end) => (front_end.recognises)(text),
            Kind::Rules => front_end::first_word(text) == Kind::RULESET,
            Kind::Text(form) => (form.recognises)(text),
            // Zeros are letters, but no language has them.
            Kind::Bpf => text.contains('\0'),
        }
    }

    /// What a text looks like, if it looks like anything.
    pub(crate) fn of_text(text: &str) -> Option<Kind> {
        if Kind::Bpf.recognises(text) {
            return Some(Kind::Bpf);
        }
        let mut text_kinds = [Kind::Rules].into_iter().chain(Kind::all());
        text_kinds.find(|kind| kind.recognises(text))
    }
}

/// An input as read, before it is understood.
pub(crate) struct Input {
    /// What to call it in messages: the path, `<stdin>`, or the name of the embedded policy.
    pub(crate) name: String,
    /// The content.
    pub(crate) bytes: Vec<u8>,
}

/// Why an input could not be read.
pub(crate) enum ReadError {
    /// It has more than [`MAX_SOURCE_BYTES`].
    TooLarge,
    /// The system says why.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::TooLarge => write!(f, "it has more than {MAX_SOURCE_BYTES} bytes"),
            ReadError::Io(error) => error.fmt(f),
        }
    }
}

impl Input {
    /// Reads a path; `-` is standard input, the name of an embedded policy is that policy. A file of
    /// such a name is `./NAME`: what a folder holds must not change what a name means.
    pub(crate) fn read(path: &str) -> Result<Input, Failure> {
        if let Some(policy) = tamis_policy::embedded(path) {
            return Ok(Input {
                name: policy.name.to_owned(),
                bytes: policy.text.as_bytes().to_vec(),
            });
        }
        let read = if path == "-" {
            read_bounded(io::stdin().lock()).map(|bytes| Input {
                name: "<stdin>".to_owned(),
                bytes,
            })
        } else {
            Input::read_file(Path::new(path))
        };
        read.map_err(|error| match error {
            ReadError::TooLarge => too_large(path),
            ReadError::Io(error) => unreadable(path, &error),
        })
    }

    /// Reads a file.
    pub(crate) fn read_file(path: &Path) -> Result<Input, ReadError> {
        let bytes = read_bounded(File::open(path).map_err(ReadError::Io)?)?;
        let name = path.display().to_string();
        Ok(Input { name, bytes })
    }

    /// What the input is: what its extension says, if it has one of ours, else what its content looks
    /// like. Text that looks like nothing else is taken for the tamis language, whose parser then says
    /// what it expected.
    pub(crate) fn kind(&self) -> Kind {
        let text = match std::str::from_utf8(&self.bytes) {
            Ok(text) if !self.bytes.contains(&0) => Some(text),
            _ => None,
        };
        let extension = Path::new(&self.name).extension();
        match extension.and_then(|extension| extension.to_str()) {
            Some("rules") => return Kind::Rules,
            Some("bpf") => return Kind::Bpf,
            _ => {}
        }
        if let Some(front_end) = front_end::of_file(&self.name, text.unwrap_or_default()) {
            return Kind::Policy(front_end);
        }
        let Some(text) = text else {
            return Kind::Bpf;
        };
        if let Some(form) = forms::of_file(&self.name) {
            return Kind::Text(form);
        }
        Kind::of_text(text).unwrap_or(Kind::Policy(front_end::ALL[0]))
    }

    /// Adds the input to the sources as text.
    pub(crate) fn add_to(self, sources: &mut Sources) -> Result<SourceId, Failure> {
        match String::from_utf8(self.bytes) {
            // Some editors begin a text with a byte order mark; it means nothing in UTF-8.
            Ok(text) => Ok(sources.add(self.name, text.trim_start_matches('\u{feff}'))),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                Err(not_utf8(self.name, &text, at))
            }
        }
    }
}

/// How long to wait for a first byte on a pipe that nobody asked to read.
const UNREAD_INPUT_WAIT: Duration = Duration::from_millis(50);

/// Fails if a file or a pipe with something in it is on standard input although no input was named:
/// the user surely meant it, and something else would be used silently.
pub(crate) fn refuse_unread_input() -> Result<(), Failure> {
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

/// Whether a byte can be read soon. The reading thread is left behind if not; the process ends
/// without it.
fn has_first_byte(stdin: Stdin) -> bool {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let count = stdin.lock().read(&mut [0]);
        // Nobody listens any more after the wait.
        let _ = sender.send(matches!(count, Ok(1)));
    });
    receiver.recv_timeout(UNREAD_INPUT_WAIT).unwrap_or(false)
}

fn read_bounded(reader: impl Read) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let mut bounded = reader.take(MAX_SOURCE_BYTES as u64 + 1);
    bounded.read_to_end(&mut bytes).map_err(ReadError::Io)?;
    if bytes.len() > MAX_SOURCE_BYTES {
        Err(ReadError::TooLarge)
    } else {
        Ok(bytes)
    }
}

fn unreadable(path: &str, error: &io::Error) -> Failure {
    let message = format!("cannot read {path}: {error}");
    let embedded = tamis_policy::embedded::ALL.map(|policy| policy.name);
    match suggest::nearest(path, embedded) {
        Some(name) if error.kind() == ErrorKind::NotFound => Failure::usage(
            message,
            format!("did you mean the embedded policy `{name}`?"),
        ),
        _ => Failure::input(message),
    }
}

fn too_large(path: &str) -> Failure {
    let message = format!("{path} has more than {MAX_SOURCE_BYTES} bytes");
    let diagnostic =
        Diagnostic::error(code::FILE_TOO_LARGE, message).help("check the path: policies are small");
    Failure::Diagnostics(vec![diagnostic], Sources::new())
}

/// The diagnostic points into the text with every broken byte replaced; what stands before the first
/// one is unchanged, so its offset is right.
fn not_utf8(name: String, lossy: &str, at: usize) -> Failure {
    let mut sources = Sources::new();
    let source = sources.add(name, lossy);
    let end = at + lossy[at..].chars().next().map_or(0, char::len_utf8);
    let span = Span::new(source, at, end);
    let help = match lossy.starts_with("\u{fffd}\u{fffd}") {
        true => "it looks like UTF-16: save it as UTF-8",
        false => "a raw program is read with `--from bpf`",
    };
    let diagnostic = Diagnostic::error(code::NOT_UTF8, "the text is not UTF-8")
        .label(span, format!("byte {at} is not part of a valid character"))
        .help(help);
    Failure::Diagnostics(vec![diagnostic], sources)
}

#[cfg(test)]
mod tests {
    use tamis_testkit::corpus;

    use super::super::load::LoadArgs;
    use super::*;

    fn kind(name: &str, text: &str) -> &'static str {
        let (name, bytes) = (name.to_owned(), text.as_bytes().to_vec());
        Input { name, bytes }.kind().name()
    }

    #[test]
    fn kinds_are_told_by_content_where_the_name_is_silent() {
        assert_eq!(kind("x", "# comment\n\nallow read\n"), "tamis");
        assert_eq!(kind("x", "  {\"defaultAction\": 1\n"), "oci");
        assert_eq!(
            kind("x", "{\"vmm\": {\"filter_action\": \"allow\"}}"),
            "firecracker"
        );
        assert_eq!(kind("x", "# comment\n@include ./y\n"), "minijail");
        assert_eq!(kind("x", "read: 1\n"), "minijail");
        assert_eq!(kind("x", "{open, openat}: return ENOENT\n"), "minijail");
        assert_eq!(
            kind("x", "/* a */ #define X 1\nPOLICY a { ALLOW { read } }"),
            "kafel"
        );
        assert_eq!(kind("x", "; a\n# b\n[Service]\nUser=a\n"), "systemd");
        assert_eq!(kind("x", "ruleset bad-arch allow\n"), "rules");
        assert_eq!(kind("x", "; comment\n ld [4]\n"), "asm");
        assert_eq!(kind("x", "start: ret #0\n"), "asm");
        assert_eq!(kind("x", "{ 0x20, 0, 0, 0x00000004 },\n"), "c-array");
        assert_eq!(kind("x", "{\n  {6, 0, 0, 0},\n}\n"), "c-array");
        assert_eq!(kind("x", "1\n6 0 0 0\n"), "decimal");
        assert_eq!(kind("x", "0600000000000000\n"), "hex");
        assert_eq!(kind("x", "A = sys_number\n"), "seccomp-tools");
        assert_eq!(kind("x", "\u{6}\0\0\0\0\0\0\0"), "bpf");
    }

    /// A text in every kind.
    const SAMPLES: [(&str, &str); 14] = [
        ("tamis", "default errno(EPERM)\nallow read\n"),
        ("systemd", "[Service]\nSystemCallFilter=read\n"),
        ("oci", "{\"defaultAction\": \"SCMP_ACT_ERRNO\"}"),
        (
            "spo",
            "apiVersion: security-profiles-operator.x-k8s.io/v1\nkind: SeccompProfile\nspec:\n  \
             defaultAction: SCMP_ACT_ERRNO\n",
        ),
        (
            "firecracker",
            "{\"a\": {\"mismatch_action\": \"trap\", \"match_action\": \"allow\", \"filter\": []}}",
        ),
        ("minijail", "read: 1\nwrite: arg0 == 1\n"),
        ("kafel", "ALLOW { read } DEFAULT KILL\n"),
        (
            "rules",
            "ruleset bad-arch allow\nsection x86_64 default allow\n",
        ),
        ("c-array", "{ 0x06, 0, 0, 0x7fff0000 },\n"),
        ("asm", "ld [4]\nret #allow\n"),
        ("seccomp-tools", "A = sys_number\nreturn ALLOW\n"),
        ("decimal", "1\n6 0 0 2147418112\n"),
        ("hex", "060000000000ff7f\n"),
        ("bpf", "\u{6}\0\0\0\0\0\0\0"),
    ];

    /// What an input that is given as something is said to be; `None` if it is taken.
    fn mistaken(given_as: Kind, name: &str, bytes: &[u8]) -> Option<String> {
        let input = Input {
            name: name.to_owned(),
            bytes: bytes.to_vec(),
        };
        match LoadArgs::of_kind(given_as).understand(input) {
            Ok(_) => None,
            Err(Failure::Diagnostics(diagnostics, _)) => {
                let first = &diagnostics[0];
                let is_named = [code::WRONG_KIND, code::NOT_UTF8].contains(&first.code);
                Some(format!("{is_named}: {} {:?}", first.message, first.help))
            }
            Err(_) => Some("no diagnostics".to_owned()),
        }
    }

    /// Everything that is wrong with how an input of a kind is taken for the others.
    fn confusions(kind: &str, name: &str, bytes: &[u8]) -> Vec<String> {
        let mut wrong = Vec::new();
        for other in Kind::all() {
            let answer = mistaken(other, name, bytes);
            let is_right = match &answer {
                // It may want for other files, or for an option.
                _ if other.name() == kind => {
                    !answer.as_ref().is_some_and(|text| text.starts_with("true"))
                }
                Some(text) => text.starts_with("true") && text.contains(&format!("--from {kind}`")),
                None => false,
            };
            if !is_right {
                wrong.push(format!("{name}: {kind} as {}: {answer:?}", other.name()));
            }
        }
        wrong
    }

    #[test]
    fn every_kind_given_as_any_other_is_named() {
        let mut wrong = Vec::new();
        for kind in Kind::all() {
            let sample = SAMPLES.iter().find(|(name, _)| *name == kind.name());
            let (name, text) = sample.expect("every kind has a sample");
            assert_eq!(self::kind("x", text), *name);
            wrong.extend(confusions(name, "x", text.as_bytes()));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_file_of_the_corpus_given_as_another_kind_is_named() {
        let folders = [
            ("docker", ".json", "oci"),
            ("firecracker", ".json", "firecracker"),
            ("minijail", ".policy", "minijail"),
            ("kafel", ".policy", "kafel"),
            ("systemd/stack", ".bpf", "bpf"),
        ];
        let mut wrong = Vec::new();
        for (folder, suffix, kind) in folders {
            let Some(files) = corpus::files(folder, suffix) else {
                return;
            };
            for file in files {
                let path = corpus::path(&file).expect("the file is there");
                let bytes = std::fs::read(path).expect("it can be read");
                wrong.extend(confusions(kind, &file, &bytes));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn an_extension_of_ours_is_believed() {
        assert_eq!(kind("x.json", "\u{6}\0\0\0\0\0\0\0"), "oci");
        assert_eq!(
            kind("x.json", "{\"vmm\": {\"filter_action\": 1}}"),
            "firecracker"
        );
        assert_eq!(kind("x.policy", "not a policy"), "minijail");
        assert_eq!(kind("x.policy", "ALLOW { read }"), "kafel");
        assert_eq!(kind("x.bpf", "allow read\n"), "bpf");
        assert_eq!(kind("x.txt", "allow read\n"), "tamis");
    }
}

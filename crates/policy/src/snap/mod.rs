//! Profiles of snaps, as snapd writes them to `/var/lib/snapd/seccomp/bpf/*.src` for its program `snap-seccomp`.
//!
//! ```text
//! # A comment in the first column.
//! read
//! socket AF_NETLINK - NETLINK_ROUTE
//! setpriority PRIO_PROCESS 0 <=19
//! ~ioctl - TIOCSTI
//! ```
//!
//! A line allows a call under conditions on its arguments, by position; all other calls fail with EPERM. `~` denies
//! instead, whatever other lines allow (snapd 2.61). snap-seccomp gives each line to libseccomp, for the machine and
//! its 32-bit calls, and ignores calls that it doesn't know: they are warnings here. `@unrestricted` stands for no
//! filter, and `@complain` for a filter that logs instead of denying.

pub mod code;
mod constant;

use tamis_abi::{Action, ActionKind, Arch, ArgIndex, syscall};
use tamis_diag::{Diagnostic, SourceId, Sources, Span, suggest};
use tamis_rules::{Ruleset, Section};
use tamis_scmp::{Comparison, Condition, Db, Exactness, number};

use crate::exact::{self, refused, unknown};
use crate::front_end::{FrontEnd, ParseOptions, ParsedPolicy};
use crate::sink::Sink;
use crate::{Parsed, limits, origin};

/// The language in the registry.
pub static FRONT_END: FrontEnd = FrontEnd {
    name: "snap",
    title: "a profile of a snap",
    plural: "profiles of snaps",
    about: "A profile of a snap, as `snap-seccomp` compiles it",
    extensions: &["src"],
    codes: code::SNAP,
    options: &[],
    uses_kernel: false,
    has_separate_default: true,
    ignores_byte_order_mark: false,
    recognises,
    parse: |sources, root, _, common| parse(sources, root, common),
};

/// The answer to calls that no line allows, EPERM.
const NOT_ALLOWED: Action = Action::errno(1);
/// The answer to calls that a line with `~` denies, EACCES.
const DENIED: Action = Action::errno(13);
/// The action of a filter of libseccomp for other architectures.
const BAD_ARCH: Action = Action::KILL_THREAD;

const UNRESTRICTED: &str = "@unrestricted";
const COMPLAIN: &str = "@complain";

/// The calls whose arguments may be negative: the lower 32 bits are compared.
const SIGNED: [&str; 20] = [
    "chown",
    "chown32",
    "copy_file_range",
    "fchown",
    "fchown32",
    "fchownat",
    "lchown",
    "lchown32",
    "setgid",
    "setgid32",
    "setregid",
    "setregid32",
    "setresgid",
    "setresgid32",
    "setresuid",
    "setresuid32",
    "setreuid",
    "setreuid32",
    "setuid",
    "setuid32",
];

/// Whether a text has one of the words for whole profiles, or some line has a call and `-` for an argument, and no line
/// has punctuation that profiles lack. A mere list of calls is not recognised.
fn recognises(text: &str) -> bool {
    let is_rule = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        syscall::is_known(name.trim_start_matches('~')) && words.any(|word| word == "-")
    };
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let is_foreign = |line: &str| line.contains(['(', '{', '[', ';', ',', '"']);
    let is_own = lines
        .clone()
        .any(|line| matches!(line.trim(), UNRESTRICTED | COMPLAIN) || is_rule(line));
    is_own && !lines.any(is_foreign)
}

/// The other architecture of a machine's filter.
const fn compatible(native: Arch) -> Option<Arch> {
    match native {
        Arch::X86_64 => Some(Arch::X86),
        Arch::Aarch64 => Some(Arch::Arm),
        Arch::Ppc64 => Some(Arch::Ppc),
        _ => None,
    }
}

type Read<T> = Result<T, Box<Diagnostic>>;

/// A word of a line, and its place.
#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    span: Span,
}

/// A line that is neither blank nor a comment, as words.
fn words(source: SourceId, start: usize, line: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut at = 0;
    for part in line.split_inclusive(char::is_whitespace) {
        let text = part.trim_end();
        if !text.is_empty() {
            let begin = start + at;
            words.push(Word {
                text,
                span: Span::new(source, begin, begin + text.len()),
            });
        }
        at += part.len();
    }
    words
}

fn parse(sources: &Sources, root: SourceId, common: &ParseOptions) -> ParsedPolicy {
    let text = sources.get(root).text.clone();
    let mut sink = Sink::new(common.strict);
    let has = |word: &str| text.lines().any(|line| line.trim() == word);
    let (complains, is_unrestricted) = (has(COMPLAIN), has(UNRESTRICTED));
    let sections = exact::sections(common.arches_one_by_one(), |native| {
        let mut profile = Profile::new(native, complains);
        if !is_unrestricted {
            profile.read(root, &text, &mut sink);
        }
        profile.finish(sources, root, &mut sink)
    });
    let ruleset = match is_unrestricted {
        true => unrestricted(&sections),
        false => Ruleset::new(sections, BAD_ARCH).ok(),
    };
    Parsed::new(ruleset, sink.into_diagnostics()).into()
}

/// The meaning of no filter.
fn unrestricted(sections: &[Section]) -> Option<Ruleset> {
    let open = sections.iter().map(|section| Section {
        arch: section.arch,
        rules: Vec::new(),
        default: Action::ALLOW,
    });
    Ruleset::new(open.collect(), Action::ALLOW).ok()
}

/// A profile being read.
struct Profile {
    native: Arch,
    /// What lines allow.
    allowed: Db<Span>,
    /// What lines with `~` deny: a filter of its own, in which other calls are allowed, or logged with `@complain`.
    denied: Db<Span>,
}

impl Profile {
    fn new(native: Arch, complains: bool) -> Profile {
        let others: Vec<Arch> = compatible(native).into_iter().collect();
        let log = Action::new(ActionKind::Log, 0);
        let [not_allowed, not_denied] = match complains {
            true => [log, log],
            false => [NOT_ALLOWED, Action::ALLOW],
        };
        Profile {
            native,
            allowed: Db::new(not_allowed, native, &others),
            denied: Db::new(not_denied, native, &others),
        }
    }

    fn read(&mut self, source: SourceId, text: &str, sink: &mut Sink) {
        let (mut start, mut rules) = (0, 0);
        for line in text.split_inclusive('\n') {
            if !line.trim_start().starts_with('#') && line.trim() != COMPLAIN {
                rules += 1;
                if let Err(diagnostic) = self.line(&words(source, start, line), sink) {
                    sink.report(*diagnostic);
                }
            }
            if rules > limits::MAX_RULES {
                let message = format!("more than {} lines", limits::MAX_RULES);
                let place = Span::new(source, start, start);
                sink.stop(Diagnostic::error(code::SNAP_REFUSED, message).label(place, ""));
            }
            if sink.is_finished() {
                return;
            }
            start += line.len();
        }
    }

    fn line(&mut self, words: &[Word<'_>], sink: &mut Sink) -> Read<()> {
        let [first, arguments @ ..] = words else {
            return Ok(());
        };
        let (name, is_denied) = match first.text.strip_prefix('~') {
            Some(name) => (name, true),
            None => (first.text, false),
        };
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !name.bytes().all(is_part) {
            let help = "a line is a name and arguments, with spaces between them";
            return Err(mistake(first.span, "the name of a call is expected", help));
        }
        if let Some(seventh) = arguments.get(ArgIndex::ALL.len()) {
            let message = "more than six arguments";
            let help = "comments begin a line";
            return Err(mistake(seventh.span, message, help));
        }
        let Some(call) = number::resolve_name(self.native, name) else {
            sink.report(unknown(
                code::SNAP_SYSCALL,
                "snap-seccomp",
                name,
                first.span,
            ));
            return Ok(());
        };
        let conditions = conditions(self.native, name, arguments)?;
        let (filter, action) = match is_denied {
            true => (&mut self.denied, DENIED),
            false => (&mut self.allowed, Action::ALLOW),
        };
        let mut add = |exactness| filter.add_rule(exactness, action, call, &conditions, first.span);
        add(Exactness::Exact)
            .or_else(|_| add(Exactness::Adjusted))
            .map_err(|error| refused(code::SNAP_REFUSED, &error, first.span))
    }

    /// The sections of both filters together.
    fn finish(self, sources: &Sources, root: SourceId, sink: &mut Sink) -> Option<Vec<Section>> {
        let place = |span: Span| Some(origin(sources, span));
        let of = |filter: &Db<Span>| filter.ruleset_with_origins(BAD_ARCH, &place);
        let (Ok(allowed), Ok(denied)) = (of(&self.allowed), of(&self.denied)) else {
            sink.report(exact::too_complex(code::SNAP_REFUSED, root));
            return None;
        };
        // With `@complain` the filter of denials logs whatever it doesn't deny; without denials there is none.
        let denies = self
            .denied
            .filters()
            .iter()
            .any(|own| own.calls().next().is_some());
        let logs_all = denies && self.denied.default_action() != Action::ALLOW;
        // A denial has precedence over whatever the other filter allows.
        let sections = allowed.sections().iter().map(|section| {
            let earlier = denied.section(section.arch);
            let earlier = earlier.map_or(&[][..], |section| &section.rules);
            let later = if logs_all { &[][..] } else { &section.rules };
            Section {
                rules: earlier.iter().chain(later).cloned().collect(),
                ..section.clone()
            }
        });
        Some(sections.collect())
    }
}

/// The conditions of a line, by position.
fn conditions(native: Arch, call: &str, arguments: &[Word<'_>]) -> Read<Vec<Condition>> {
    let is_signed = SIGNED.contains(&call);
    let mut conditions = Vec::new();
    for (arg, word) in ArgIndex::ALL.into_iter().zip(arguments) {
        if word.text == "-" {
            continue;
        }
        let (operator, operand) = split(word.text);
        let value = match operand
            .strip_prefix("u:")
            .or_else(|| operand.strip_prefix("g:"))
        {
            Some(name) if operator.is_empty() => identity(name, word.span)?,
            _ => value(native, operand, is_signed, word.span)?,
        };
        if is_signed && !operator.is_empty() {
            let message = format!("arguments of `{call}` are only compared for equality");
            return Err(mistake(word.span, message, "remove the operator"));
        }
        let comparison = match operator {
            ">=" => Comparison::Ge,
            "<=" => Comparison::Le,
            "!" => Comparison::Ne,
            "<" => Comparison::Lt,
            ">" => Comparison::Gt,
            "|" => Comparison::Masked { mask: value },
            _ if is_signed => Comparison::Masked {
                mask: u32::MAX.into(),
            },
            _ => Comparison::Eq,
        };
        conditions.push(Condition {
            arg,
            comparison,
            value,
        });
    }
    Ok(conditions)
}

/// The operator before a value, and the value.
fn split(word: &str) -> (&str, &str) {
    let len = match word.as_bytes() {
        [b'<' | b'>', b'=', ..] => 2,
        [b'<' | b'>' | b'!' | b'|', ..] => 1,
        _ => 0,
    };
    word.split_at(len)
}

fn identity(name: &str, place: Span) -> Read<u64> {
    if name == "root" {
        return Ok(0);
    }
    let message = format!("`{name}` has another number on each machine");
    let diagnostic = Diagnostic::error(code::SNAP_USER, message).label(place, "");
    Err(Box::new(diagnostic.help("write the number")))
}

fn value(native: Arch, text: &str, is_signed: bool, place: Span) -> Read<u64> {
    if let Some(value) = constant::value(native, text) {
        return Ok(value);
    }
    if text.starts_with(|first: char| first.is_ascii_uppercase()) {
        let known: Vec<String> = constant::names().collect();
        let near = suggest::nearest(text, known.iter().map(String::as_str));
        let help = near.map_or_else(
            || "write the number".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(mistake(place, format!("unknown constant `{text}`"), &help));
    }
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits(text)
        && let Ok(value) = text.parse::<u32>()
    {
        return Ok(value.into());
    }
    match text.strip_prefix('-').filter(|digits| is_digits(digits)) {
        Some(_) if is_signed && text.parse::<i32>().is_ok() => {
            let value: i32 = text.parse().unwrap_or_default();
            Ok(value.cast_unsigned().into())
        }
        Some(_) if !is_signed => Err(mistake(
            place,
            "a negative number",
            "only calls that change owners and identities have them",
        )),
        _ => Err(mistake(
            place,
            format!("`{text}` is no value"),
            "write `-`, a decimal number below 2^32 or a constant",
        )),
    }
}

fn mistake(place: Span, message: impl Into<String>, help: &str) -> Box<Diagnostic> {
    let diagnostic = Diagnostic::error(code::SNAP_ARGUMENT, message).label(place, "");
    Box::new(diagnostic.help(help))
}

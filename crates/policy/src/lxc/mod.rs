//! Policies of LXC, `lxc.seccomp.profile`: a version, the kind of list, and a rule on each line.
//!
//! ```text
//! 2
//! denylist
//! reject_force_umount
//! [all]
//! kexec_load errno 1
//! ioctl errno 1 [1,0x5412,==]
//! ```
//!
//! LXC gives each line to libseccomp, as an exact rule for each architecture of the machine; the meaning is that of
//! [`tamis_scmp`]. Calls that an architecture lacks are left out there. A line that LXC ignores in silence is a warning
//! here. `src/lxc/seccomp.c` of LXC 5.0 and 6.0 has the format. Spellings that it reads by
//! accident, such as `killall` for `kill`, are errors.

mod arch;
pub mod code;
mod rule;

use std::collections::BTreeMap;
use std::ops::Range;

use tamis_abi::{Action, ActionKind, Arch};
use tamis_diag::{Diagnostic, SourceId, Sources, Span, suggest};
use tamis_rules::{Ruleset, Section};
use tamis_scmp::{Condition, Db, Exactness, number};

use crate::exact::{self, refused, unknown};
use crate::front_end::{FrontEnd, ParseOptions, ParsedPolicy};
use crate::sink::Sink;
use crate::{Parsed, limits, origin};
use rule::Rule;

/// The language in the registry.
pub static FRONT_END: FrontEnd = FrontEnd {
    name: "lxc",
    title: "a policy of LXC",
    plural: "policies of LXC",
    about: "A policy of LXC, which `lxc.seccomp.profile` names",
    extensions: &[],
    codes: code::LXC,
    options: &[],
    uses_kernel: false,
    has_separate_default: true,
    ignores_byte_order_mark: false,
    recognises,
    parse: |sources, root, _, common| parse(sources, root, common),
};

/// The action of a filter of libseccomp for other architectures, and LXC's `kill`.
const KILL: Action = Action::KILL_THREAD;

/// Whether a text begins with a version and the kind of list.
fn recognises(text: &str) -> bool {
    let mut words = text.split_whitespace();
    matches!(words.next(), Some("1" | "2")) && words.next().is_some_and(|word| list(word).is_some())
}

/// Whether calls without a rule are denied, by the kind of list.
fn list(line: &str) -> Option<bool> {
    let begins = |names: [&str; 2]| names.iter().any(|name| line.starts_with(name));
    if begins(["allowlist", "whitelist"]) {
        return Some(true);
    }
    begins(["denylist", "blacklist"]).then_some(false)
}

/// The place of a rule.
type Tag = Span;

/// A line without its end, and its place.
#[derive(Clone, Copy)]
struct Line<'t> {
    text: &'t str,
    source: SourceId,
    start: usize,
}

impl Line<'_> {
    /// The place of a part of the line, in bytes.
    fn span(&self, part: Range<usize>) -> Span {
        Span::new(self.source, self.start + part.start, self.start + part.end)
    }

    fn whole(&self) -> Span {
        self.span(0..self.text.len())
    }
}

/// The lines of a text.
fn lines(source: SourceId, text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        Line {
            text: line.trim_end_matches('\n'),
            source,
            start: at,
        }
    })
}

fn parse(sources: &Sources, root: SourceId, common: &ParseOptions) -> ParsedPolicy {
    let text = sources.get(root).text.clone();
    let mut sink = Sink::new(common.strict);
    let mut lines = lines(root, &text);
    let header = match Header::read(root, &mut lines) {
        Ok(header) => header,
        Err(diagnostic) => return Parsed::new(None, vec![*diagnostic]).into(),
    };
    let rest: Vec<Line<'_>> = lines.collect();
    let sections = exact::sections(common.arches_one_by_one(), |native| {
        let mut policy = Policy::new(&header, native);
        policy.read(&header, &rest, &mut sink);
        policy.finish(sources, root, &mut sink)
    });
    let ruleset = Ruleset::new(sections, KILL).ok();
    Parsed::new(ruleset, sink.into_diagnostics()).into()
}

type Read<T> = Result<T, Box<Diagnostic>>;

/// The first two lines.
struct Header {
    /// Version 1: lines are numbers.
    is_numbered: bool,
    /// The action of calls without a rule.
    default: Action,
    /// The action of a rule that states none.
    listed: Action,
}

impl Header {
    fn read<'t>(source: SourceId, lines: &mut impl Iterator<Item = Line<'t>>) -> Read<Header> {
        let nothing = Line {
            text: "",
            source,
            start: 0,
        };
        let version = lines.find(|line| !line.text.trim().is_empty());
        let version = version.unwrap_or(nothing);
        let is_numbered = match version.text.trim() {
            "1" => true,
            "2" => false,
            _ => return Err(header(version, "the version, 1 or 2, is expected")),
        };
        let kind = lines.find(|line| !line.text.trim().is_empty());
        let kind = kind.ok_or_else(|| header(version, "no kind of list follows"))?;
        let Some(denies) = list(kind.text) else {
            return Err(header(kind, "`allowlist` or `denylist` is expected"));
        };
        if is_numbered && !kind.text.contains("allowlist") {
            return Err(header(kind, "version 1 has only an `allowlist`"));
        }
        if kind.text.contains("debug") {
            return Err(header(kind, "LXC has no `debug`"));
        }
        let stated = kind.text.split_once(' ').map(|(word, _)| word.len() + 1);
        let stated = match stated {
            Some(at)
                if kind.text[at..].trim_start().is_empty() || kind.text[at..].contains('#') =>
            {
                return Err(header(
                    kind,
                    "nothing but an action stands behind the kind of list",
                ));
            }
            Some(at) if !is_numbered => rule::action(kind, at)?,
            _ => None,
        };
        let (default, listed) = match denies {
            true => (KILL, Action::ALLOW),
            false => (Action::ALLOW, KILL),
        };
        Ok(Header {
            is_numbered,
            default: stated.unwrap_or(default),
            listed,
        })
    }
}

fn header(line: Line<'_>, message: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::error(code::LXC_HEADER, message)
            .label(line.whole(), "")
            .help("write the version in the first line and the kind of list in the second"),
    )
}

/// A policy being read.
struct Policy {
    native: Arch,
    listed: Action,
    /// A filter of each architecture, the native one first.
    filters: Vec<Db<Tag>>,
    /// Whether the lines of the section are for another machine.
    is_foreign: bool,
    rules: usize,
    /// The lines of sections that name an architecture, by that line, with the number of their rules.
    sections: BTreeMap<Span, usize>,
    section: Option<Span>,
}

impl Policy {
    fn new(header: &Header, native: Arch) -> Policy {
        let others = if header.is_numbered {
            &[]
        } else {
            arch::others(native)
        };
        let arches = [native].into_iter().chain(others.iter().copied());
        Policy {
            native,
            listed: header.listed,
            filters: arches
                .map(|arch| Db::new(header.default, arch, &[]))
                .collect(),
            is_foreign: false,
            rules: 0,
            sections: BTreeMap::new(),
            section: None,
        }
    }

    fn read(&mut self, header: &Header, lines: &[Line<'_>], sink: &mut Sink) {
        for line in lines {
            let result = match header.is_numbered {
                true => self.numbered(*line),
                false => self.line(*line, sink),
            };
            if let Err(diagnostic) = result {
                sink.report(*diagnostic);
            }
            if sink.is_finished() {
                return;
            }
        }
    }

    /// A line of version 1.
    fn numbered(&mut self, line: Line<'_>) -> Read<()> {
        let word = line.text.split_whitespace().next().unwrap_or_default();
        let Some(number) = word.parse().ok().filter(|number: &i32| *number >= 0) else {
            let message = "the number of a call is expected";
            let diagnostic = Diagnostic::error(code::LXC_RULE, message).label(line.whole(), "");
            return Err(Box::new(
                diagnostic.help("version 2 has names and comments"),
            ));
        };
        self.add(0, number, Action::ALLOW, &[], line.whole())
    }

    /// A line of version 2.
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) -> Read<()> {
        if line.text.trim_matches(' ').is_empty() || line.text.starts_with('#') {
            return Ok(());
        }
        if line.text.starts_with('[') {
            return self.begin_section(line);
        }
        if self.is_foreign {
            return Ok(());
        }
        let rule = Rule::parse(line, self.listed)?;
        self.rules += 1;
        if self.rules > limits::MAX_RULES {
            let message = format!("more than {} rules", limits::MAX_RULES);
            sink.stop(Diagnostic::error(code::LXC_RULE, message).label(line.whole(), ""));
            return Ok(());
        }
        if let Some(rules) = self.section.and_then(|place| self.sections.get_mut(&place)) {
            *rules += 1;
        }
        self.rule(&rule, line, sink)
    }

    fn begin_section(&mut self, line: Line<'_>) -> Read<()> {
        let name = line
            .text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        self.section = None;
        if matches!(name, Some("all" | "ALL")) {
            self.is_foreign = false;
            return Ok(());
        }
        let Some(named) = name.and_then(arch::named) else {
            let message = format!("unknown architecture `{}`", name.unwrap_or(line.text));
            let diagnostic = Diagnostic::error(code::LXC_ARCH, message).label(line.whole(), "");
            let near = suggest::nearest(name.unwrap_or_default(), arch::names());
            let names: Vec<&str> = arch::names().collect();
            let help = near.map_or_else(
                || format!("the names are {}", names.join(", ")),
                |near| format!("did you mean `[{near}]`?"),
            );
            return Err(Box::new(diagnostic.help(help)));
        };
        self.is_foreign = named != self.native && !arch::others(self.native).contains(&named);
        if !self.is_foreign {
            self.section = Some(line.whole());
            self.sections.insert(line.whole(), 0);
        }
        Ok(())
    }

    /// Adds a rule as LXC does: for each architecture that makes the call by a number of its own.
    fn rule(&mut self, rule: &Rule<'_>, line: Line<'_>, sink: &mut Sink) -> Read<()> {
        if number::resolve_name(self.native, rule.name).is_none() {
            let place = line.span(0..rule.name.len());
            sink.report(unknown(code::LXC_SYSCALL, "LXC", rule.name, place));
            return Ok(());
        }
        let mut is_silent = true;
        for index in 0..self.filters.len() {
            let arch = self.filters[index].filters()[0].arch();
            match number::resolve_name(arch, rule.name) {
                Some(own @ 0..) => {
                    is_silent = false;
                    self.add(index, own, rule.action, &rule.conditions, line.whole())?;
                }
                Some(pseudo) if number::rewrite(arch, pseudo).is_ok() => {
                    is_silent = false;
                    sink.report(multiplexed(rule, arch, line));
                }
                _ => {}
            }
        }
        if is_silent {
            let message = format!("{} has no call `{}`", self.native, rule.name);
            let place = line.span(0..rule.name.len());
            let diagnostic = Diagnostic::warning(code::LXC_SYSCALL, message);
            sink.report(diagnostic.label(place, "LXC ignores the line"));
        }
        Ok(())
    }

    /// Adds a rule for a number of one architecture.
    fn add(
        &mut self,
        index: usize,
        number: i32,
        action: Action,
        conditions: &[Condition],
        place: Tag,
    ) -> Read<()> {
        self.filters[index]
            .add_rule(Exactness::Exact, action, number, conditions, place)
            .map_err(|error| refused(code::LXC_REFUSED, &error, place))
    }

    fn finish(self, sources: &Sources, root: SourceId, sink: &mut Sink) -> Option<Vec<Section>> {
        for (place, rules) in self.sections {
            if rules > 0 && self.filters.len() > 1 {
                sink.report(
                    Diagnostic::warning(
                        code::LXC_SECTION,
                        "the rules of this section hold for all architectures of the machine",
                    )
                    .label(place, "")
                    .note("LXC leaves out only the sections of other machines")
                    .help("write `[all]`, which means the same"),
                );
            }
        }
        let mut filters = self.filters.into_iter();
        let mut whole = filters.next()?;
        for filter in filters {
            whole.merge(filter).ok()?;
        }
        let place = |span: Tag| Some(origin(sources, span));
        let Ok(ruleset) = whole.ruleset_with_origins(KILL, &place) else {
            sink.report(exact::too_complex(code::LXC_REFUSED, root));
            return None;
        };
        Some(ruleset.sections().to_vec())
    }
}

/// The warning for a call that an architecture makes through a multiplexer, too.
fn multiplexed(rule: &Rule<'_>, arch: Arch, line: Line<'_>) -> Diagnostic {
    let message = format!("the rule for `{}` has no effect on {arch}", rule.name);
    Diagnostic::warning(code::LXC_MULTIPLEXED, message)
        .label(line.span(0..rule.name.len()), "")
        .note("LXC leaves out calls behind `socketcall` or `ipc`, even where they also have numbers of their own")
}

/// The kind of action with this name in a policy.
const fn kind(name: &str) -> Option<ActionKind> {
    Some(match name.as_bytes() {
        b"kill" => ActionKind::KillThread,
        b"errno" => ActionKind::Errno,
        b"allow" => ActionKind::Allow,
        b"trap" => ActionKind::Trap,
        b"notify" => ActionKind::Notify,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Parsed {
        let mut sources = Sources::new();
        let root = sources.add("a.seccomp", text);
        parse(&sources, root, &ParseOptions::new(Arch::X86_64)).parsed
    }

    /// To LXC a carriage return belongs to the name, so that the line has no effect.
    #[test]
    fn lines_of_windows_are_mistakes() {
        for rule in ["ptrace\r", "[all]\r"] {
            let text = format!("2\r\nallowlist errno 1\r\n{rule}\nread\n");
            assert_eq!(parsed(&text).ruleset, None, "{rule:?}");
        }
        assert!(parsed("2\nallowlist errno 1\nptrace\n").ruleset.is_some());
    }

    #[test]
    fn what_libseccomp_or_lxc_refuses_is_a_mistake() {
        let rules = [
            "read errno 4095",
            "read errno 1 [0,0x000000000000000000000010,==]",
            "reject_force_umount foo",
        ];
        for rule in rules {
            let text = format!("2\ndenylist\n{rule}\n");
            assert_eq!(parsed(&text).ruleset, None, "{rule}");
        }
        for header in ["denylist ", "denylist debug", "denylist # all"] {
            let text = format!("2\n{header}\nread\n");
            assert_eq!(parsed(&text).ruleset, None, "{header:?}");
        }
        assert_eq!(parsed("1\nwhitelist\n0\n").ruleset, None);
    }
}

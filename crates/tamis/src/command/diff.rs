//! `tamis diff`: what changes from one filter to another, as a reviewer wants to see it.

use std::fmt::Write;

use serde::Serialize;
use tamis_analysis::{CaseLimits, differences_of};
use tamis_prover::{Pair, Scope, Verdict};

use crate::cli::changes::{self, Change, Kind};
use crate::cli::compare::{Compared, Gaps, ScopeArgs};
use crate::cli::load::LoadArgs;
use crate::cli::output::{OutputArgs, json};
use crate::cli::{Failure, Global, exit};

/// Show the calls for which two filters differ
#[derive(clap::Args)]
#[command(after_help = "\
OLD and NEW are policies, programs or stacks, as for `tamis prove`. Every change has an example call \
that was evaluated on both filters. Looser means that the new action comes later in the order \
kill_process, \
kill_thread, trap, errno, notify, trace, log, allow.
Examples:
  tamis diff old.json new.json
  tamis diff old.bpf new.tamis --arch x86_64 --actions-only
  tamis diff main.json branch.json --fail-on-looser --markdown
Exit status: 0 nothing listed; 1 something is listed, or with --fail-on-looser something is looser; \
3 gave up.")]
pub(crate) struct Args {
    /// The old filter
    old: String,
    /// The new filter
    new: String,
    /// List only what is looser in NEW
    #[arg(long)]
    only_looser: bool,
    /// For continuous integration: exit with status 1 only if something is looser in NEW
    #[arg(long)]
    fail_on_looser: bool,
    /// Show all calls of a change, and conditions of any length
    #[arg(long)]
    all: bool,
    /// Print Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The document for programs.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    old: &'a str,
    new: &'a str,
    is_complete: bool,
    changes: Vec<Entry>,
}

/// Calls that changed in the same way.
#[derive(Serialize)]
struct Entry {
    kind: &'static str,
    is_looser: bool,
    arches: Vec<String>,
    calls: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    condition: String,
    old: String,
    new: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<String>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let scope = args.scope.scope(&args.load);
    let mut compared = Compared::read([&args.old, &args.new], args.scope, &args.load, global)?;
    let listing = list(args, &mut compared, &scope)?;
    let mut changes = listing.changes;
    changes.retain(|change| change.is_looser || !args.only_looser);
    for change in &changes {
        if let Some((data, pair)) = &change.example {
            compared.confirm(data, pair)?;
        }
    }
    let (old, new) = (&compared.left.name, &compared.right.name);
    let is_complete = listing.is_complete;
    let text = if global.json {
        json(&Document {
            schema: "tamis.diff/1",
            old,
            new,
            is_complete,
            changes: changes.into_iter().map(entry).collect(),
        })?
    } else if args.markdown {
        markdown(old, new, &changes, is_complete, args.max_calls())
    } else {
        let is_coloured = args.output.output.is_none() && global.colours_results();
        let body = text(&changes, args.max_calls(), is_coloured);
        match (body.is_empty(), is_complete) {
            (true, true) if args.only_looser => format!("nothing is looser in {new}\n"),
            (true, true) => format!("{old} and {new}: no changes\n"),
            (_, true) => body,
            (_, false) => body + CUT,
        }
    };
    args.output.text(&text)?;
    Ok(code(args, &listing.pairs, listing.gaps))
}

/// How many tests a condition may have without `--all`; more than anybody reads.
const MAX_TESTS: usize = 60;
/// How many calls of a change are listed without `--all`.
const MAX_CALLS: usize = 30;

impl Args {
    fn limits(&self) -> CaseLimits {
        let limits = CaseLimits::default();
        match self.all {
            true => limits,
            false => CaseLimits {
                max_tests: MAX_TESTS,
                ..limits
            },
        }
    }

    fn max_calls(&self) -> usize {
        if self.all { usize::MAX } else { MAX_CALLS }
    }
}

/// What ends a list that isn't complete.
const CUT: &str = "and perhaps more: the list was truncated at a limit\n";

/// What changed, as far as it was found out.
struct Listing {
    changes: Vec<Change>,
    is_complete: bool,
    /// Different answers: if there are no gaps, at least one of each strictness that there is.
    pairs: Vec<Pair>,
    gaps: Option<Gaps>,
}

/// Finds what changed: all by diagrams; where they don't do, an example of each strictness by gates.
fn list(args: &Args, compared: &mut Compared, scope: &Scope) -> Result<Listing, Failure> {
    let found = compared.find(scope);
    let is_equal = found.verdict == Some(Verdict::Equal);
    let comparison = found.comparison.filter(|_| !is_equal);
    let differences = comparison.and_then(|comparison| {
        let limits = args.limits();
        let differences = differences_of(&mut compared.space, &comparison, &limits);
        differences.ok()
    });
    if let (None, Some(gaps)) = (&differences, found.gaps)
        && found.pairs.is_empty()
    {
        return Err(compared.gave_up(gaps));
    }
    let (changes, is_complete) = match differences {
        Some(differences) => (changes::group(&differences.list), differences.is_complete),
        None => (changes::of_examples(&found.pairs), is_equal),
    };
    Ok(Listing {
        changes,
        is_complete,
        pairs: found.pairs,
        gaps: found.gaps,
    })
}

/// The exit code.
fn code(args: &Args, pairs: &[Pair], gaps: Option<Gaps>) -> u8 {
    let only_looser = args.only_looser || args.fail_on_looser;
    let mut counted = pairs
        .iter()
        .filter(|pair| pair.strictness().is_lt() || !only_looser)
        .peekable();
    if counted.peek().is_none() && gaps.is_none() {
        exit::OK
    } else if counted.any(|pair| pair.example.is_some()) {
        exit::NO
    } else {
        exit::GAVE_UP
    }
}

fn entry(change: Change) -> Entry {
    Entry {
        kind: match change.kind {
            Kind::NewlyAllowed => "newly_allowed",
            Kind::NewlyDenied => "newly_denied",
            Kind::ActionChanged => "action_changed",
        },
        is_looser: change.is_looser,
        example: example(&change),
        arches: change.arches,
        calls: change.calls,
        condition: change.condition,
        old: change.old.to_string(),
        new: change.new.to_string(),
    }
}

fn example(change: &Change) -> Option<String> {
    let (input, _) = change.example.as_ref()?;
    Some(input.describe_briefly())
}

/// The changes by kind, with a heading for each kind.
const KINDS: [(Kind, &str, char, &str); 3] = [
    (Kind::NewlyAllowed, "newly allowed", '+', "\x1b[31m"),
    (Kind::NewlyDenied, "newly denied", '-', "\x1b[32m"),
    (Kind::ActionChanged, "action changed", '~', "\x1b[33m"),
];

fn text(changes: &[Change], max_calls: usize, is_coloured: bool) -> String {
    let mut text = String::new();
    for (kind, heading, sign, colour) in KINDS {
        let of_kind: Vec<&Change> = changes
            .iter()
            .filter(|change| change.kind == kind)
            .collect();
        if of_kind.is_empty() {
            continue;
        }
        let (colour, reset) = if is_coloured {
            (colour, "\x1b[0m")
        } else {
            ("", "")
        };
        let _ = writeln!(text, "{colour}{heading}{reset}");
        for change in of_kind {
            let Change { old, new, .. } = change;
            let arches = change.arches.join(", ");
            let calls = calls_in_words(change, max_calls);
            let _ = writeln!(
                text,
                "{colour}{sign}{reset} {arches}: {calls}: {old} -> {new}"
            );
            let example = example(change)
                .unwrap_or_else(|| "no such call was found; there may be none".to_owned());
            let _ = writeln!(text, "    {example}");
        }
    }
    text
}

/// `read, write` or `socket(family == AF_INET)`.
fn calls_in_words(change: &Change, max_calls: usize) -> String {
    let shown = change.calls.len().min(max_calls);
    let mut calls = change.calls[..shown].join(", ");
    if shown < change.calls.len() {
        let rest = change.calls.len() - shown;
        let _ = write!(calls, " and {rest} more (--all)");
    }
    if change.condition.is_empty() {
        calls
    } else if change.calls.len() == 1 {
        format!("{calls}({})", change.condition)
    } else {
        format!("{calls}, each with ({})", change.condition)
    }
}

fn markdown(
    old: &str,
    new: &str,
    changes: &[Change],
    is_complete: bool,
    max_calls: usize,
) -> String {
    let mut text = format!("### Seccomp: {} → {}\n\n", code_span(old), code_span(new));
    if changes.is_empty() && is_complete {
        text.push_str("No changes.\n");
        return text;
    }
    let counts = KINDS.map(|(kind, heading, ..)| {
        let count = changes.iter().filter(|change| change.kind == kind).count();
        format!("{count} {heading}")
    });
    let _ = writeln!(text, "{}\n", counts.join(", "));
    text.push_str("| | architectures | calls | before | after | for example |\n");
    text.push_str("|---|---|---|---|---|---|\n");
    for (kind, heading, ..) in KINDS {
        for change in changes.iter().filter(|change| change.kind == kind) {
            let _ = writeln!(
                text,
                "| {heading} | {} | {} | {} | {} | {} |",
                change.arches.join(", "),
                code_span(&calls_in_words(change, max_calls)),
                code_span(&change.old.to_string()),
                code_span(&change.new.to_string()),
                example(change).map_or_else(String::new, |example| code_span(&example)),
            );
        }
    }
    if !is_complete {
        text.push_str("\nAnd perhaps more: the list was truncated at a limit.\n");
    }
    text
}

/// Text as it stands, also in a table.
fn code_span(text: &str) -> String {
    let text = text.replace('|', "\\|").replace(['\n', '`'], " ");
    format!("`{text}`")
}

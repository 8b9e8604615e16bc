//! `tamis prove`: whether two filters mean the same, or one is at least as strict as the other.

use std::fmt::Write;

use serde::Serialize;
use tamis_abi::Arch;
use tamis_prover::{Pair, Scope, Verdict};

use crate::cli::compare::{Compared, Finding, ScopeArgs};
use crate::cli::load::LoadArgs;
use crate::cli::output::{print, print_json};
use crate::cli::witness::Witness;
use crate::cli::{Failure, Global, exit};

/// Prove that two filters are equivalent for every call, or show calls for which they differ
#[derive(clap::Args)]
#[command(after_help = "\
A side is a policy, a program, or a stack: a comma-separated list, the oldest filter first \
(`a.bpf,b.bpf`), or a directory with .bpf files, ordered by name. A policy is compared by its meaning, \
not by its compiled program. With --arch, only calls of these architectures are compared.
Examples:
  tamis prove policy.tamis filter.bpf
  tamis prove new.json old.json --stricter
  tamis prove filters/ fused.bpf --arch x86_64 --native
Exit status: 0 yes; 1 no; 3 gave up.")]
pub(crate) struct Args {
    /// One side
    left: String,
    /// The other
    right: String,
    /// Prove instead that LEFT is at least as strict as RIGHT: its action never comes later in the order
    /// kill_process, kill_thread, trap, errno, notify, trace, log, allow
    #[arg(long)]
    stricter: bool,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    load: LoadArgs,
}

/// The document for programs.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    left: &'a str,
    right: &'a str,
    question: &'static str,
    answer: &'static str,
    verdict: &'static str,
    scope: ScopeEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    witnesses: Vec<Witness>,
    yes_within: Vec<ScopeEntry>,
}

/// What was compared.
#[derive(Serialize)]
struct ScopeEntry {
    arches: Vec<&'static str>,
    native: bool,
    actions_only: bool,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Equal,
    AtLeastAsStrict,
}

impl Question {
    /// Whether two answers to a call speak against it.
    fn is_contradicted_by(self, pair: &Pair) -> bool {
        match self {
            Question::Equal => true,
            Question::AtLeastAsStrict => pair.strictness().is_gt(),
        }
    }

    /// The answer; `None` if it depends on calls of which none was found.
    fn answer(self, found: &Finding) -> Option<bool> {
        let mut against = found
            .pairs
            .iter()
            .filter(|pair| self.is_contradicted_by(pair))
            .peekable();
        if against.peek().is_none() && found.gaps.is_none() {
            return Some(true);
        }
        against.any(|pair| pair.example.is_some()).then_some(false)
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let question = match args.stricter {
        true => Question::AtLeastAsStrict,
        false => Question::Equal,
    };
    let scope = args.scope.scope(&args.load);
    let mut compared = Compared::read([&args.left, &args.right], args.scope, &args.load, global)?;
    let found = compared.find(&scope);
    let answer = question.answer(&found);
    let witnesses = witnesses(&compared, &found.pairs, question)?;
    let yes_within = match answer {
        Some(false) => narrower(&mut compared, question, &scope),
        _ => Narrower::default(),
    };
    let (left, right) = (&compared.left.name, &compared.right.name);
    if global.json {
        print_json(&Document {
            schema: "tamis.prove/1",
            left,
            right,
            question: match question {
                Question::Equal => "equal",
                Question::AtLeastAsStrict => "at_least_as_strict",
            },
            answer: match answer {
                Some(true) => "yes",
                Some(false) => "no",
                None => "unknown",
            },
            verdict: verdict_name(found.verdict),
            scope: scope_entry(&scope),
            limit: found.gaps.map(|gaps| gaps.to_string()),
            witnesses,
            yes_within: yes_within.scopes.iter().map(scope_entry).collect(),
        })?;
    } else {
        let mut text = first_line(answer, found.verdict, left, right, &scope);
        for witness in &witnesses {
            let Witness {
                call, left, right, ..
            } = witness;
            let _ = writeln!(text, "  {call}: left {left}, right {right}");
        }
        text.push_str(&match (answer, found.gaps) {
            (Some(true), _) => String::new(),
            (Some(false), _) => last_lines(&scope, &yes_within),
            (None, None) => String::new(),
            (None, Some(gaps)) => match compared.advice(gaps) {
                Some(options) => format!("  {gaps}\nto raise the limits: {options}\n"),
                None => format!("  {gaps}\n"),
            },
        });
        print(text.as_bytes())?;
    }
    Ok(match answer {
        Some(true) => exit::OK,
        Some(false) => exit::NO,
        None => exit::GAVE_UP,
    })
}

/// A confirmed call for every pair of answers that speaks against the question; if none does, for every
/// pair of different answers.
fn witnesses(
    compared: &Compared,
    pairs: &[Pair],
    question: Question,
) -> Result<Vec<Witness>, Failure> {
    let against = |pair: &&&Pair| question.is_contradicted_by(pair);
    let all: Vec<&Pair> = pairs.iter().collect();
    let mut shown: Vec<&Pair> = all.iter().filter(against).copied().collect();
    if shown.is_empty() {
        shown = all;
    }
    let mut witnesses = Vec::new();
    for pair in shown {
        let Some(data) = &pair.example else {
            continue;
        };
        compared.confirm(data, pair)?;
        witnesses.push(Witness::new(data, pair.left, pair.right));
    }
    Ok(witnesses)
}

/// Narrower scopes in which the answer is yes.
#[derive(Default)]
struct Narrower {
    scopes: Vec<Scope>,
    /// Whether some were left open at a limit.
    has_gaps: bool,
}

/// The widest narrower scopes in which the answer is yes: by numbers and actions, and then by
/// architecture.
fn narrower(compared: &mut Compared, question: Question, scope: &Scope) -> Narrower {
    let arches = match scope.arches.as_slice() {
        [] => {
            // Few mean to compare x32 alone, and it shares its audit value with x86_64.
            let arches = compared.arches().into_iter();
            arches.filter(|arch| *arch != Arch::X32).collect()
        }
        arches => arches.to_vec(),
    };
    let mut has_gaps = false;
    let mut is_yes = |scope: &Scope| {
        let answer = question.answer(&compared.find_briefly(scope));
        has_gaps |= answer.is_none();
        answer == Some(true)
    };
    let mut found: Vec<Scope> = Vec::new();
    for (native, actions) in [(false, false), (true, false), (false, true), (true, true)] {
        let projected = Scope {
            arches: scope.arches.clone(),
            native_only: scope.native_only || native,
            actions_only: scope.actions_only || actions,
        };
        let is_new = native <= !scope.native_only && actions <= !scope.actions_only;
        if !is_new || found.iter().any(|wider| contains(wider, &projected)) {
            continue;
        }
        if is_yes(&projected) {
            found.push(projected);
            continue;
        }
        let mut narrowed = projected.clone();
        narrowed.arches.clear();
        // x32 has no numbers below 2^30.
        let has_calls = |arch: &&Arch| !projected.native_only || **arch != Arch::X32;
        for arch in arches.iter().filter(has_calls) {
            let alone = Scope {
                arches: vec![*arch],
                ..projected.clone()
            };
            if is_yes(&alone) {
                narrowed.arches.push(*arch);
            }
        }
        if !narrowed.arches.is_empty() && !found.iter().any(|wider| contains(wider, &narrowed)) {
            found.push(narrowed);
        }
    }
    Narrower {
        scopes: found,
        has_gaps,
    }
}

/// Whether one scope compares all that another does.
fn contains(wider: &Scope, narrower: &Scope) -> bool {
    let has = |arch: &Arch| wider.arches.contains(arch);
    let has_arches =
        wider.arches.is_empty() || !narrower.arches.is_empty() && narrower.arches.iter().all(has);
    has_arches
        && wider.native_only <= narrower.native_only
        && wider.actions_only <= narrower.actions_only
}

fn scope_entry(scope: &Scope) -> ScopeEntry {
    ScopeEntry {
        arches: scope.arches.iter().map(|arch| arch.name()).collect(),
        native: scope.native_only,
        actions_only: scope.actions_only,
    }
}

fn verdict_name(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        None => "unknown",
        Some(Verdict::Equal) => "equal",
        Some(Verdict::SameActions) => "same_actions",
        Some(Verdict::Stricter) => "stricter",
        Some(Verdict::Looser) => "looser",
        Some(Verdict::Incomparable) => "incomparable",
    }
}

fn first_line(
    answer: Option<bool>,
    verdict: Option<Verdict>,
    left: &str,
    right: &str,
    scope: &Scope,
) -> String {
    let answer = match answer {
        Some(true) => "yes",
        Some(false) => "no",
        None => return format!("unknown: no difference between {left} and {right} was found\n"),
    };
    let text = match verdict {
        None => format!("{left} and {right} differ"),
        Some(Verdict::Equal) => format!("{left} and {right} are equivalent"),
        Some(Verdict::SameActions) => {
            format!("{left} and {right} have the same actions, with different data")
        }
        Some(Verdict::Stricter) => format!("{left} is stricter than {right}"),
        Some(Verdict::Looser) => format!("{left} is looser than {right}"),
        Some(Verdict::Incomparable) => {
            format!("{left} and {right} differ, and neither is stricter")
        }
    };
    let scope = match (in_words(scope), verdict) {
        (Some(scope), _) => format!(", comparing only {scope}"),
        (None, Some(Verdict::Equal)) => " for every call".to_owned(),
        (None, _) => String::new(),
    };
    format!("{answer}: {text}{scope}\n")
}

/// What was compared, for a person; `None` if everything was.
fn in_words(scope: &Scope) -> Option<String> {
    let mut parts = Vec::new();
    if !scope.arches.is_empty() {
        let arches: Vec<&str> = scope.arches.iter().map(|arch| arch.name()).collect();
        parts.push(format!("calls of {}", arches.join(", ")));
    }
    if scope.native_only {
        parts.push("numbers below 2^30".to_owned());
    }
    if scope.actions_only {
        parts.push("actions without their data".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn last_lines(scope: &Scope, yes_within: &Narrower) -> String {
    const OPTIONS: &str = "--native, --actions-only or for one --arch";
    if yes_within.scopes.is_empty() {
        return match yes_within.has_gaps {
            false => format!("the answer is also no with {OPTIONS}\n"),
            true => {
                format!("the answer with {OPTIONS} was not found within the limits\n")
            }
        };
    }
    let lines = yes_within.scopes.iter().map(|found| {
        let mut options: Vec<String> = Vec::new();
        if found.arches != scope.arches {
            options.extend(found.arches.iter().map(|arch| format!("--arch {arch}")));
        }
        if found.native_only && !scope.native_only {
            options.push("--native".to_owned());
        }
        if found.actions_only && !scope.actions_only {
            options.push("--actions-only".to_owned());
        }
        format!("yes with {}\n", options.join(" "))
    });
    lines.collect()
}

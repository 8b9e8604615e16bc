//! `tamis prove`: whether two filters mean the same, or one is at least as strict as the other.

use std::fmt::Write;

use serde::Serialize;
use tamis_abi::{Action, Arch, call};
use tamis_prover::{Comparison, Pair, Scope, Verdict};

use crate::cli::compare::{Compared, ScopeArgs};
use crate::cli::load::LoadArgs;
use crate::cli::output::{print, print_json};
use crate::cli::{Failure, Global, exit};

/// Prove that two filters mean the same for every call, or show calls for which they don't
#[derive(clap::Args)]
#[command(after_help = "\
A side is a policy, a program, or a stack: a list with commas, the oldest filter first (`a.bpf,b.bpf`), or a \
folder, whose .bpf files are taken in the order of their names. A policy stands for what it means, not for \
what it compiles to. With --arch, only calls of these architectures are compared.
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
    /// Ask instead whether LEFT is at least as strict as RIGHT: never takes an action that comes later in
    /// the order kill_process, kill_thread, trap, errno, notify, trace, log, allow
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

/// A call that is answered differently.
#[derive(Serialize)]
struct Witness {
    call: String,
    left: String,
    right: String,
    left_ret: u32,
    right_ret: u32,
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
    fn answer(self, comparison: &Comparison) -> Option<bool> {
        let mut against = comparison
            .pairs()
            .iter()
            .filter(|pair| self.is_contradicted_by(pair))
            .peekable();
        if against.peek().is_none() {
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
    let mut compared = Compared::read([&args.left, &args.right], &args.load, global)?;
    let comparison = compared.within(&scope)?;
    let answer = question.answer(&comparison);
    let witnesses = witnesses(&compared, &comparison, question)?;
    let yes_within = match answer {
        Some(false) => narrower(&mut compared, question, &scope)?,
        _ => Vec::new(),
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
            verdict: verdict_name(comparison.verdict()),
            scope: scope_entry(&scope),
            witnesses,
            yes_within: yes_within.iter().map(scope_entry).collect(),
        })?;
    } else {
        let mut text = first_line(answer, comparison.verdict(), left, right, &scope);
        for witness in &witnesses {
            let Witness {
                call, left, right, ..
            } = witness;
            let _ = writeln!(text, "  {call}: left {left}, right {right}");
        }
        text.push_str(&last_lines(answer, &scope, &yes_within));
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
    comparison: &Comparison,
    question: Question,
) -> Result<Vec<Witness>, Failure> {
    let against = |pair: &&&Pair| question.is_contradicted_by(pair);
    let all: Vec<&Pair> = comparison.pairs().iter().collect();
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
        witnesses.push(Witness {
            call: call::describe_briefly(data),
            left: Action::from_ret(pair.left).to_string(),
            right: Action::from_ret(pair.right).to_string(),
            left_ret: pair.left,
            right_ret: pair.right,
        });
    }
    Ok(witnesses)
}

/// The widest narrower scopes in which the answer is yes: by numbers and actions, and then by
/// architecture.
fn narrower(
    compared: &mut Compared,
    question: Question,
    scope: &Scope,
) -> Result<Vec<Scope>, Failure> {
    let arches = match scope.arches.as_slice() {
        [] => {
            // Few mean to compare x32 alone, and it shares its audit value with x86_64.
            let arches = compared.arches().into_iter();
            arches.filter(|arch| *arch != Arch::X32).collect()
        }
        arches => arches.to_vec(),
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
        if question.answer(&compared.within(&projected)?) == Some(true) {
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
            if question.answer(&compared.within(&alone)?) == Some(true) {
                narrowed.arches.push(*arch);
            }
        }
        if !narrowed.arches.is_empty() && !found.iter().any(|wider| contains(wider, &narrowed)) {
            found.push(narrowed);
        }
    }
    Ok(found)
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
        None => return format!("unknown: {left} and {right} could not be told apart\n"),
    };
    let text = match verdict {
        None => format!("{left} and {right} differ"),
        Some(Verdict::Equal) => format!("{left} and {right} mean the same for every call"),
        Some(Verdict::SameActions) => {
            format!("{left} and {right} take the same actions, with different data")
        }
        Some(Verdict::Stricter) => format!("{left} is stricter than {right}"),
        Some(Verdict::Looser) => format!("{left} is looser than {right}"),
        Some(Verdict::Incomparable) => {
            format!("{left} and {right} differ, and neither is stricter")
        }
    };
    format!("{answer}: {text}{}\n", in_words(scope))
}

/// What was compared, for a person; nothing if everything was.
fn in_words(scope: &Scope) -> String {
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
    match parts.is_empty() {
        true => String::new(),
        false => format!(" (comparing {})", parts.join(", ")),
    }
}

fn last_lines(answer: Option<bool>, scope: &Scope, yes_within: &[Scope]) -> String {
    if answer.is_none() {
        return "  the filters compare words of a call with each other in a way that was left open\n"
            .to_owned();
    }
    if answer == Some(true) {
        return String::new();
    }
    if yes_within.is_empty() {
        return "nor is it yes with --native, --actions-only or for one --arch\n".to_owned();
    }
    let lines = yes_within.iter().map(|found| {
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

//! `tamis prove`: whether two filters are equivalent, or one is at least as strict as the other.

use tamis_abi::Arch;
use tamis_prover::{Pair, Scope};
use tamis_report::entry::{ComparisonResultEntry, WitnessEntry};
use tamis_report::prove::{Answer, ProveReport, Question, ScopeEntry};

use crate::cli::certify::CertifyArgs;
use crate::cli::compare::{ComparedSides, Finding, ScopeArgs};
use crate::cli::load::LoadArgs;
use crate::cli::output::show;
use crate::cli::{Failure, Global, budget, exit, input};

/// Prove two filters equivalent, or show calls that differ
#[derive(clap::Args)]
#[command(after_help = "\
A side is a policy, a program, or a stack: a comma-separated list, the oldest filter first \
(`a.bpf,b.bpf`), or a directory with .bpf files, ordered by name. A policy is compared by its meaning, \
not by its compiled program. With --arch, only calls of these architectures are compared. -O and the other \
options are for both sides, --left and --right for one.
Examples:
  tamis prove policy.tamis filter.bpf
  tamis prove new.json old.json --stricter
  tamis prove filters/ fused.bpf --arch x86_64 --native
  tamis prove large.policy policy.tamis --left dialect=python --left default-action='return EPERM'
Exit status: 0 yes; 1 no; 3 gave up.")]
pub(crate) struct Args {
    /// One side
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    left: String,
    /// The other
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    right: String,
    /// Prove instead that LEFT is at least as strict as RIGHT
    ///
    /// Its action never comes later in the order kill_process, kill_thread, trap, errno, notify, trace, log, allow
    #[arg(long)]
    stricter: bool,
    /// An option for LEFT alone: of its language, or `from`, `include-dir` or `kernel`; may be repeated
    #[arg(long = "left", value_name = "NAME=VALUE", hide_short_help = true)]
    left_options: Vec<String>,
    /// An option for RIGHT alone: of its language, or `from`, `include-dir` or `kernel`; may be repeated
    #[arg(long = "right", value_name = "NAME=VALUE", hide_short_help = true)]
    right_options: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    certify: CertifyArgs,
    #[command(flatten)]
    load: LoadArgs,
}

/// Whether a pair of actions for a call is a counterexample.
fn is_contradicted(question: Question, pair: &Pair) -> bool {
    match question {
        Question::Equal => true,
        Question::AtLeastAsStrict => pair.strictness().is_gt(),
    }
}

/// Fails if a certificate is wanted of something else than equivalence, or can't be written.
fn check_certifiable(args: &Args) -> Result<(), Failure> {
    if args.certify.is_given() && (args.stricter || !args.scope.is_of_all_values()) {
        return Err(Failure::usage(
            "--certify is for equivalence of all calls",
            "leave out --stricter, --native and --actions-only",
        ));
    }
    args.certify.check_folder()
}

fn answer(question: Question, found: &Finding) -> Answer {
    let pairs = found.pairs.iter();
    let mut against = pairs
        .filter(|pair| is_contradicted(question, pair))
        .peekable();
    if against.peek().is_none() && found.gaps.is_none() {
        return Answer::Yes;
    }
    match against.any(|pair| pair.example.is_some()) {
        true => Answer::No,
        false => Answer::Unknown,
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let question = match args.stricter {
        true => Question::AtLeastAsStrict,
        false => Question::Equal,
    };
    let scope = args.scope.scope(&args.load);
    check_certifiable(args)?;
    let sides = [
        (args.left.as_str(), args.left_options.as_slice()),
        (&args.right, &args.right_options),
    ];
    let mut compared = ComparedSides::read(sides, args.scope, &args.load, global)?;
    let found = compared.find(&scope, |pair| is_contradicted(question, pair));
    let answer = answer(question, &found);
    let mut result = Outcome {
        answer,
        witnesses: witnesses(&compared, &found.pairs, question)?,
        found,
        elsewhere: None,
    };
    let yes_within = match answer {
        Answer::No => narrower(&mut compared, question, &scope, args)?,
        Answer::Yes | Answer::Unknown => NarrowerScopes::default(),
    };
    let goes_on = answer == Answer::Yes;
    if goes_on && let Some(other) = elsewhere(&compared, question, &scope)? {
        result = other;
    }
    let extent = compared.coverage.extent(
        &[compared.left.filters(), compared.right.filters()],
        goes_on,
    );
    let Outcome {
        answer,
        found,
        witnesses,
        elsewhere,
    } = result;
    if answer == Answer::Yes {
        compared.certify(&args.certify, global)?;
    }
    let report = ProveReport {
        advice: found.gaps.and_then(|gaps| compared.advice(gaps)),
        left: compared.left.name,
        right: compared.right.name,
        question,
        answer,
        verdict: ComparisonResultEntry(found.result),
        scope: ScopeEntry::from_scope(&scope),
        limit: found.gaps.map(|gaps| gaps.to_string()),
        witnesses,
        yes_within: yes_within
            .scopes
            .iter()
            .map(ScopeEntry::from_scope)
            .collect(),
        has_gaps_within: yes_within.has_gaps,
        compared: extent,
        elsewhere,
    };
    show(&report, global)?;
    Ok(match answer {
        Answer::Yes => exit::OK,
        Answer::No => exit::NO,
        Answer::Unknown => exit::GAVE_UP,
    })
}

/// The result for one reading of the sides.
struct Outcome {
    answer: Answer,
    found: Finding,
    witnesses: Vec<WitnessEntry>,
    /// The title of the reading, unless it is the first.
    elsewhere: Option<String>,
}

/// The first other reading with the answer no, or else with an unknown answer.
fn elsewhere(
    first: &ComparedSides,
    question: Question,
    scope: &Scope,
) -> Result<Option<Outcome>, Failure> {
    let mut outcome: Option<Outcome> = None;
    first.other_readings(scope, |reading, scope, mut compared| {
        let found = compared.find(scope, |pair| is_contradicted(question, pair));
        let answer = answer(question, &found);
        if answer == Answer::Yes || answer == Answer::Unknown && outcome.is_some() {
            return Ok(true);
        }
        outcome = Some(Outcome {
            answer,
            witnesses: witnesses(&compared, &found.pairs, question)?,
            found,
            elsewhere: Some(reading.to_owned()),
        });
        Ok(answer != Answer::No)
    })?;
    Ok(outcome)
}

/// A confirmed call for each pair of actions that is a counterexample or, without any, for each pair of different
/// actions.
fn witnesses(
    compared: &ComparedSides,
    pairs: &[Pair],
    question: Question,
) -> Result<Vec<WitnessEntry>, Failure> {
    let against = |pair: &&&Pair| is_contradicted(question, pair);
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
        witnesses.push(WitnessEntry::new(data, pair.left, pair.right));
    }
    Ok(witnesses)
}

/// Narrower scopes with the answer yes.
#[derive(Default)]
struct NarrowerScopes {
    scopes: Vec<Scope>,
    /// Whether some scopes were not decided within the limits.
    has_gaps: bool,
}

/// The widest narrower scopes with the answer yes: by numbers and actions, then by architecture.
fn narrower(
    compared: &mut ComparedSides,
    question: Question,
    scope: &Scope,
    args: &Args,
) -> Result<NarrowerScopes, Failure> {
    let arches = match scope.arches.as_slice() {
        [] => {
            // Comparing x32 alone is rarely useful, and x32 shares its audit value with x86_64.
            let arches = compared.arches().into_iter();
            arches.filter(|arch| *arch != Arch::X32).collect()
        }
        arches => arches.to_vec(),
    };
    budget::leave_share();
    let mut has_gaps = false;
    let mut is_yes = |scope: &Scope| {
        let mut known = compared.known_within(scope);
        if known.any(|pair| is_contradicted(question, pair)) {
            return false;
        }
        drop(known);
        let answer = answer(question, &compared.find_briefly(scope));
        has_gaps |= answer == Answer::Unknown;
        answer == Answer::Yes
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
    let mut scopes = Vec::new();
    for scope in found {
        scopes.extend(selectable_parts(compared, question, scope, args));
    }
    Ok(NarrowerScopes { scopes, has_gaps })
}

/// The parts of a narrower scope with the answer yes under `--arch`, which also selects the reading of profiles. If
/// that holds only for some architectures, or they can't be read together, each is listed alone.
fn selectable_parts(
    first: &ComparedSides,
    question: Question,
    scope: Scope,
    args: &Args,
) -> Vec<Scope> {
    if scope.arches == *args.load.arches {
        return vec![scope];
    }
    let is_yes = |scope: &Scope| {
        let load = args.load.for_arches(&scope.arches);
        first.loaded_by(&load).is_ok_and(|mut compared| {
            answer(question, &compared.find_briefly(scope)) == Answer::Yes
        })
    };
    if is_yes(&scope) {
        return vec![scope];
    }
    let alone = scope.arches.iter().map(|arch| Scope {
        arches: vec![*arch],
        ..scope.clone()
    });
    alone
        .filter(|alone| scope.arches.len() > 1 && is_yes(alone))
        .collect()
}

/// Whether a scope includes another one.
fn contains(wider: &Scope, narrower: &Scope) -> bool {
    let has = |arch: &Arch| wider.arches.contains(arch);
    let has_arches =
        wider.arches.is_empty() || !narrower.arches.is_empty() && narrower.arches.iter().all(has);
    has_arches
        && wider.native_only <= narrower.native_only
        && wider.actions_only <= narrower.actions_only
}

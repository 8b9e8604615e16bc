//! `tamis diff`: the changes from one filter to another, for a reviewer.

use tamis_analysis::{CaseLimits, differences_of};
use tamis_prover::{ComparisonResult, Pair, Scope};
use tamis_report::change::{self, Change};
use tamis_report::diff::{DiffReport, OtherReadings};

use crate::cli::compare::{ComparedSides, ReachedLimits, ScopeArgs};
use crate::cli::load::LoadArgs;
use crate::cli::output::{OutputArgs, document_json};
use crate::cli::{Failure, Global, exit, input};

/// Show the calls for which two filters differ
#[derive(clap::Args)]
#[command(after_help = "\
OLD and NEW are policies, programs or stacks, as for `tamis prove`. Every change has an example call \
that was evaluated on both filters. Looser means that the new action comes later in the order \
kill_process, \
kill_thread, trap, errno, notify, trace, log, allow. -O and the other options are for both sides, --old and \
--new for one.
Examples:
  tamis diff old.json new.json
  tamis diff old.bpf new.tamis --arch x86_64 --actions-only
  tamis diff main.json branch.json --fail-on-looser --markdown
  tamis diff profile.json profile.json --new cap=SYS_ADMIN
Exit status: 0 nothing listed; 1 something is listed, or with --fail-on-looser something is looser; \
3 gave up.")]
pub(crate) struct Args {
    /// The old filter
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    old: String,
    /// The new filter
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    new: String,
    /// List only what is looser in NEW
    #[arg(long)]
    only_looser: bool,
    /// Exit with status 1 only if something is looser in NEW
    #[arg(long)]
    fail_on_looser: bool,
    /// Show all calls of a change, and conditions of any length
    #[arg(long)]
    all: bool,
    /// Print Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// An option for OLD alone: of its language, or `from`, `include-dir` or `kernel`; may be repeated
    #[arg(long = "old", value_name = "NAME=VALUE", hide_short_help = true)]
    old_options: Vec<String>,
    /// An option for NEW alone: of its language, or `from`, `include-dir` or `kernel`; may be repeated
    #[arg(long = "new", value_name = "NAME=VALUE", hide_short_help = true)]
    new_options: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    for input in [&args.old, &args.new] {
        args.output.refuse_to_replace(input)?;
    }
    let scope = args.scope.scope(&args.load);
    let sides = [
        (args.old.as_str(), args.old_options.as_slice()),
        (&args.new, &args.new_options),
    ];
    let mut compared = ComparedSides::read(sides, args.scope, &args.load, global)?;
    let mut listing = list(args, &mut compared, &scope)?;
    let goes_on = compared.coverage.is_requested || code(args, &listing) == exit::OK;
    let has_changes = code(args, &listing) == exit::NO;
    let (elsewhere, goes_on) = match goes_on {
        true => match list_elsewhere(args, &compared, &scope, &mut listing) {
            // The changes that were found are shown nevertheless.
            Err(_) if has_changes => (Vec::new(), false),
            elsewhere => (elsewhere?, true),
        },
        false => (Vec::new(), false),
    };
    let extent = compared.coverage.extent(
        &[compared.left.filters(), compared.right.filters()],
        goes_on,
    );
    let code = code(args, &listing);
    let report = DiffReport {
        old: compared.left.name,
        new: compared.right.name,
        is_complete: listing.is_complete,
        changes: listing.changes,
        compared: extent,
        elsewhere,
        only_looser: args.only_looser,
    };
    let text = if global.json {
        document_json(&report)?
    } else if args.markdown {
        report.markdown(args.max_calls())
    } else {
        let is_coloured = args.output.output.is_none() && global.colours_results();
        report.text(args.max_calls(), is_coloured)
    };
    args.output.text(&text)?;
    Ok(code)
}

/// Adds the changes, pairs and gaps of the other readings to the listing.
fn list_elsewhere(
    args: &Args,
    first: &ComparedSides,
    scope: &Scope,
    listing: &mut Listing,
) -> Result<Vec<OtherReadings>, Failure> {
    let mut found: Vec<OtherReadings> = Vec::new();
    first.other_readings(scope, |reading, scope, mut compared| {
        let own = list(args, &mut compared, scope)?;
        listing.pairs.extend(own.pairs);
        listing.gaps = listing.gaps.or(own.gaps);
        listing.is_complete &= own.is_complete;
        let is_known = |changes: &[Change]| change::is_same_list(changes, &own.changes);
        if own.changes.is_empty() || is_known(&listing.changes) {
            return Ok(true);
        }
        match found.iter_mut().find(|before| is_known(&before.changes)) {
            Some(before) => before.more_readings += 1,
            None => found.push(OtherReadings {
                reading: reading.to_owned(),
                more_readings: 0,
                changes: own.changes,
            }),
        }
        Ok(true)
    })?;
    Ok(found)
}

/// The most tests in a condition without `--all`.
const MAX_TESTS: usize = 60;
/// The most calls of a change without `--all`.
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

/// The changes that were found.
struct Listing {
    changes: Vec<Change>,
    is_complete: bool,
    /// Differing actions: without gaps, at least one of each strictness that occurs.
    pairs: Vec<Pair>,
    gaps: Option<ReachedLimits>,
}

/// Lists all changes by diagrams or, where they fail, an example of each strictness by SAT.
fn list(args: &Args, compared: &mut ComparedSides, scope: &Scope) -> Result<Listing, Failure> {
    let found = compared.find(scope, |_| false);
    let is_equal = found.result == Some(ComparisonResult::Equal);
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
        Some(differences) => (change::group(&differences.list), differences.is_complete),
        None => (change::of_examples(&found.pairs), is_equal),
    };
    let mut changes = changes;
    changes.retain(|change| change.is_looser || !args.only_looser);
    for change in &changes {
        if let Some((data, pair)) = &change.example {
            compared.confirm(data, pair)?;
        }
    }
    Ok(Listing {
        changes,
        is_complete,
        pairs: found.pairs,
        gaps: found.gaps,
    })
}

fn code(args: &Args, listing: &Listing) -> u8 {
    let Listing { pairs, gaps, .. } = listing;
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

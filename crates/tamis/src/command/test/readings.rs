//! The readings of a policy: a profile of containers is tested for each machine, set of capabilities and kernel that its
//! entries distinguish, unless the options choose these.
//!
//! A check holds if it holds in all readings. The result of one that doesn't is that of the first such reading.

use std::collections::BTreeMap;

use tamis_assertions::Shared;
use tamis_cli::side::SideInputs;
use tamis_report::extent::Extent;
use tamis_report::test::{CheckEntry, TestedEntry};
use tamis_session::bindings::match_variables;
use tamis_session::{Loaded, Side, SideOptions};

use super::{Args, CheckFile, Place, Reading, places};
use crate::cli::load::LoadArgs;
use crate::cli::settings::Coverage;
use crate::cli::{Failure, Global, budget};

/// The results for a policy in all of its readings.
pub(super) fn test(
    args: &Args,
    files: &[CheckFile],
    policy: &str,
    global: &Global,
) -> Result<TestedEntry, Failure> {
    let inputs = SideInputs::read(policy, global)?;
    let coverage = Coverage::new(&args.load, &[]);
    let load = coverage.first.keeping_variables();
    let mut side = load_side(&inputs, &load, global)?;
    load.check_options(side.filters())?;
    let references = matched(&mut side, first_references(files))?;
    let mut first = test_first(args, files, (&side, &references), &load, global)?;
    let mut compared = vec![side.filters()];
    compared.extend(
        references
            .values()
            .map(Side::filters)
            .filter(|own| is_profile(own)),
    );
    let others = coverage.others(&compared)?;
    first.tested.compared = coverage.extent(&[side.filters()], true);
    let mut seen = vec![side];
    for other in others {
        let open = first.open();
        if open.is_empty() {
            break;
        }
        let load = other.load.keeping_variables();
        let mut side = match load_side(&inputs, &load, &Global::silent()) {
            Ok(side) => side,
            // A profile that is no filter on a machine.
            Err(Failure::Diagnostics(..)) => continue,
            Err(failure) => return Err(failure),
        };
        let references = matched(&mut side, other_references(files, &open, &load)?)?;
        if references.is_empty() && seen.iter().any(|before| before.is_identical(&side)) {
            continue;
        }
        let reading = Reading {
            side: &side,
            load: &load,
            references: &references,
            is_covered: false,
        };
        let is_wanted = |place| open.contains(&place);
        let silent = Global::silent();
        let results = args.test_reading(files, &reading, first.shared, &is_wanted, &silent)?;
        first.shared = results.shared;
        first.add(results.checks, &other.title);
        seen.push(side);
    }
    Ok(first.tested)
}

/// The results for the filters of a process, which have one reading.
pub(super) fn test_only(
    args: &Args,
    files: &[CheckFile],
    mut side: Side,
    global: &Global,
) -> Result<TestedEntry, Failure> {
    let references = matched(&mut side, first_references(files))?;
    Ok(test_first(args, files, (&side, &references), &args.load, global)?.tested)
}

/// The results so far.
struct Results {
    tested: TestedEntry,
    /// The places of its checks.
    at: Vec<Place>,
    shared: Shared,
}

fn test_first(
    args: &Args,
    files: &[CheckFile],
    (side, references): (&Side, &BTreeMap<Place, Side>),
    load: &LoadArgs,
    global: &Global,
) -> Result<Results, Failure> {
    let reading = Reading {
        side,
        load,
        references,
        is_covered: true,
    };
    let shared = Shared::new(args.limits.limits(), budget::stop());
    let results = args.test_reading(files, &reading, shared, &|_| true, global)?;
    let (at, checks): (Vec<Place>, Vec<_>) = results.checks.into_iter().unzip();
    Ok(Results {
        tested: TestedEntry {
            policy: side.name.clone(),
            checks,
            compared: Extent::only(),
            uncovered: results.uncovered,
        },
        at,
        shared: results.shared,
    })
}

impl Results {
    /// The checks that have not failed yet.
    fn open(&self) -> Vec<Place> {
        let checks = self.at.iter().zip(&self.tested.checks);
        let open = checks.filter(|(_, entry)| !entry.is_failure());
        open.map(|(place, _)| *place).collect()
    }

    /// Adds the results of another reading for checks that have not failed yet.
    fn add(&mut self, found: Vec<(Place, CheckEntry)>, title: &str) {
        for (place, mut entry) in found {
            let index = self.at.iter().position(|known| *known == place);
            let Some(known) = index.map(|index| &mut self.tested.checks[index]) else {
                continue;
            };
            if entry.is_failure() || entry.is_undecided() && !known.is_undecided() {
                entry.reading = Some(title.to_owned());
                *known = entry;
            }
        }
    }
}

fn load_side(inputs: &SideInputs, load: &LoadArgs, global: &Global) -> Result<Side, Failure> {
    inputs.clone().load(&SideOptions::default(), load, global)
}

/// Whether one of the filters is a profile of containers.
fn is_profile(filters: &[Loaded]) -> bool {
    let mut policies = filters.iter().filter_map(Loaded::policy);
    policies.any(|policy| policy.selection.is_some())
}

/// The references, with the variables of the policy: those of one name are one.
fn matched(
    side: &mut Side,
    mut references: BTreeMap<Place, Side>,
) -> Result<BTreeMap<Place, Side>, Failure> {
    if !references.is_empty() {
        let others = references.values_mut().flat_map(Side::filters_mut);
        match_variables(side.filters_mut().chain(others))?;
    }
    Ok(references)
}

/// The references in their first reading.
fn first_references(files: &[CheckFile]) -> BTreeMap<Place, Side> {
    let references = places(files).filter_map(|(place, file, _)| {
        let reference = file.references.get(&place.1)?;
        Some((place, reference.first.clone()))
    });
    references.collect()
}

/// The references of these checks, read as the policy is; profiles that are no filter on the machine stay in their first
/// reading.
fn other_references(
    files: &[CheckFile],
    open: &[Place],
    load: &LoadArgs,
) -> Result<BTreeMap<Place, Side>, Failure> {
    let mut references = first_references(files);
    references.retain(|place, _| open.contains(place));
    for (place, side) in &mut references {
        if !is_profile(side.filters()) {
            continue;
        }
        let reference = &files[place.0].references[&place.1];
        match load_side(&reference.inputs, load, &Global::silent()) {
            Ok(own) => *side = own,
            Err(Failure::Diagnostics(..)) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(references)
}

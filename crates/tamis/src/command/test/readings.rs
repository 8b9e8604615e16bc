//! The readings of a policy: a profile of containers is tested for each machine, set of capabilities and kernel that its
//! entries distinguish, unless the options choose these.
//!
//! A check holds if it holds in all readings. The result of one that doesn't is that of the first such reading.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use tamis_assertions::Shared;
use tamis_cli::side::SideInputs;
use tamis_report::extent::Extent;
use tamis_report::test::{CheckEntry, TestedEntry};
use tamis_session::bindings::match_variables;
use tamis_session::{InputKind, Loaded, Side, SideOptions};

use super::mend::ReadSide;
use super::{Args, CheckFile, Place, Reading, places};
use crate::cli::load::LoadArgs;
use crate::cli::settings::{Coverage, OtherReading};
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
    let side = load_side(&inputs, &load, global)?;
    load.check_options(side.filters())?;
    let readings = Readings::new(inputs, coverage, ReadSide::new(side, load));
    let (side, references) = readings.first.matched(first_references(files))?;
    let mended = Some((&readings.first, &readings));
    let load = &readings.first.load;
    let mut first = test_first(args, files, (&side, &references), (load, mended), global)?;
    let mut compared = vec![side.filters()];
    compared.extend(
        references
            .values()
            .map(Side::filters)
            .filter(|own| is_profile(own)),
    );
    let all = readings.coverage.others(&compared)?;
    first.tested.compared = readings.coverage.extent(&[side.filters()], true);
    let mut seen = vec![side];
    for other in all {
        let open = first.open();
        if open.is_empty() {
            break;
        }
        let Some(own) = readings.read(&other, false)? else {
            continue;
        };
        let (side, references) = own.matched(other_references(files, &open, &own.load)?)?;
        if references.is_empty() && seen.iter().any(|before| before.is_identical(&side)) {
            continue;
        }
        let reading = Reading {
            side: &side,
            load: &own.load,
            references: &references,
            is_covered: false,
            mended: Some((&own, &readings)),
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

/// A reading beside the first; `None` if it is no filter.
type Other = Option<Rc<ReadSide>>;

/// A policy in its readings, each read once.
pub(super) struct Readings {
    inputs: SideInputs,
    coverage: Coverage,
    /// The coverage of all readings, whatever the options choose.
    all: Coverage,
    first: Rc<ReadSide>,
    /// The kind of the policy, if it is the only filter.
    kind: Option<InputKind>,
    /// By whether they are untested, and by their titles, which are unique; `None` for a profile that is no filter on a
    /// machine.
    others: RefCell<HashMap<(bool, String), Other>>,
}

impl Readings {
    fn new(inputs: SideInputs, coverage: Coverage, first: ReadSide) -> Readings {
        let kind = match first.side.filters() {
            [Loaded::Policy(policy)] => Some(policy.kind),
            _ => None,
        };
        Readings {
            inputs,
            all: coverage.of_all(),
            coverage,
            first: Rc::new(first),
            kind,
            others: RefCell::default(),
        }
    }

    /// A reading; `None` if the profile is no filter on a machine.
    fn read(
        &self,
        reading: &OtherReading,
        is_untested: bool,
    ) -> Result<Option<Rc<ReadSide>>, Failure> {
        let key = (is_untested, reading.title.clone());
        if let Some(known) = self.others.borrow().get(&key) {
            return Ok(known.clone());
        }
        let load = reading.load.keeping_variables();
        let load = match self.kind {
            Some(kind) => load.with_kind(Some(kind)),
            None => load,
        };
        let own = match load_side(&self.inputs, &load, &Global::silent()) {
            Ok(side) => Some(Rc::new(ReadSide::new(side, load))),
            Err(Failure::Diagnostics(..)) => None,
            Err(failure) => return Err(failure),
        };
        let mut others = self.others.borrow_mut();
        others.insert(key, own.clone());
        Ok(own)
    }

    /// The readings that are tested in which calls with these names may have other actions; `None` if one can't be read.
    pub(super) fn tested(&self, calls: &BTreeSet<&'static str>) -> Option<Vec<Rc<ReadSide>>> {
        let mut all = vec![self.first.clone()];
        self.add(&self.coverage, calls, false, &mut all)?;
        Some(all)
    }

    /// The readings that aren't tested, as the options choose others, in which calls with these names may have other
    /// actions; `None` if one can't be read.
    pub(super) fn untested(&self, calls: &BTreeSet<&'static str>) -> Option<Vec<Rc<ReadSide>>> {
        let mut all = Vec::new();
        if !self.coverage.has_choices() {
            return Some(all);
        }
        self.add(&self.all, calls, true, &mut all)?;
        if !all.is_empty() {
            let first = OtherReading::first(&self.all);
            all.extend(self.read(&first, true).ok()?);
        }
        Some(all)
    }

    fn add(
        &self,
        coverage: &Coverage,
        calls: &BTreeSet<&'static str>,
        is_untested: bool,
        all: &mut Vec<Rc<ReadSide>>,
    ) -> Option<()> {
        let filters = [self.first.side.filters()];
        for other in coverage.others_of_calls(&filters, calls).ok()? {
            all.extend(self.read(&other, is_untested).ok()?);
        }
        Some(())
    }
}

impl ReadSide {
    /// The side and the references, with the variables of the policy: those of one name are one.
    fn matched(
        &self,
        mut references: BTreeMap<Place, Side>,
    ) -> Result<(Side, BTreeMap<Place, Side>), Failure> {
        let mut side = self.side.clone();
        if !references.is_empty() {
            let others = references.values_mut().flat_map(Side::filters_mut);
            match_variables(side.filters_mut().chain(others))?;
        }
        Ok((side, references))
    }
}

/// The results for the filters of a process, which have one reading.
pub(super) fn test_only(
    args: &Args,
    files: &[CheckFile],
    side: Side,
    global: &Global,
) -> Result<TestedEntry, Failure> {
    let own = ReadSide::new(side, args.load.clone());
    let (side, references) = own.matched(first_references(files))?;
    let first = test_first(args, files, (&side, &references), (&own.load, None), global)?;
    Ok(first.tested)
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
    (load, mended): (&LoadArgs, Option<(&Rc<ReadSide>, &Readings)>),
    global: &Global,
) -> Result<Results, Failure> {
    let reading = Reading {
        side,
        load,
        references,
        is_covered: true,
        mended,
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

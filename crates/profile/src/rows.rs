//! Profiles as rows of one table that any database can aggregate.
//!
//! A row is a count: of calls, of a value of an argument, of an error. Rows with the same [`Key`] are aggregated:
//! counts are added, the minimum and the maximum of times are taken, and `runs` adds up to the number of runs with the
//! row. A sum is again a set of rows; only those of kind [`Kind::Run`] name a run.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::{Arch, Nr, errno};

use crate::fleet::{Fleet, Overlap};
use crate::profile::{Args, Call, Profile, Times};
use crate::runs::{Origin, RunId, Runs, is_name};

/// The counted event of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A run by its id, or a number of runs without one.
    Run,
    /// Calls that the kernel executed.
    Made,
    /// Calls that a filter or a tracer answered.
    Denied,
    /// Calls with this value of this argument.
    Value,
    /// Calls whose value of this argument was lost.
    LostValue,
    /// Calls with these arguments.
    Sample,
    /// Calls that failed with this error number.
    Error,
    /// The sum of the calls' times, in nanoseconds.
    TotalTime,
    /// The minimum time.
    MinTime,
    /// The maximum time.
    MaxTime,
    /// Calls with a time of this bit length.
    TimeBits,
}

impl Kind {
    /// All kinds, in the order of the rows of a call.
    pub const ALL: [Kind; 11] = [
        Kind::Run,
        Kind::Made,
        Kind::Denied,
        Kind::Value,
        Kind::LostValue,
        Kind::Sample,
        Kind::Error,
        Kind::TotalTime,
        Kind::MinTime,
        Kind::MaxTime,
        Kind::TimeBits,
    ];

    /// The name in a table.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Made => "made",
            Kind::Denied => "denied",
            Kind::Value => "value",
            Kind::LostValue => "lost_value",
            Kind::Sample => "sample",
            Kind::Error => "error",
            Kind::TotalTime => "total_ns",
            Kind::MinTime => "min_ns",
            Kind::MaxTime => "max_ns",
            Kind::TimeBits => "time_bits",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The key of aggregation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The counted event.
    pub kind: Kind,
    /// The call; `None` for [`Kind::Run`].
    pub call: Option<(Arch, Nr)>,
    /// The argument of [`Kind::Value`] or [`Kind::LostValue`].
    pub arg: Option<u8>,
    /// The argument's value, the error number, or the bits of a time.
    pub value: Option<u64>,
    /// The arguments of a [`Kind::Sample`].
    pub args: Option<Args>,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'r> {
    /// The run and its origin; in a sum only for [`Kind::Run`].
    pub run: Option<(&'r RunId, &'r Origin)>,
    /// The key.
    pub key: Key,
    /// The count.
    pub count: u64,
    /// The number of runs with this row.
    pub runs: u64,
}

/// The reason why rows aren't a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowError {
    /// The name of a run is invalid.
    Run,
    /// The kind is unknown.
    Kind,
    /// The architecture is unknown, or missing.
    Arch,
    /// The number is missing, or not one of the architecture.
    Number,
    /// The kind needs an argument, a value or a list of arguments that is missing or too large.
    Place,
    /// The count, or the number of runs, is missing or not a number of 64 bits.
    Count,
    /// A run, or the sum, has two rows with the same key.
    Twice,
    /// The calls with some value exceed the calls.
    Parts,
}

impl RowError {
    /// The message.
    pub const fn message(&self) -> &'static str {
        match self {
            RowError::Run => {
                "the run's id is not text of 1 to 128 bytes without control characters"
            }
            RowError::Kind => "there is no such kind of row",
            RowError::Arch => "the architecture is missing or unknown",
            RowError::Number => "the call's number is missing, or not one of the architecture",
            RowError::Place => {
                "an argument, its value or the list of arguments is missing, or too large"
            }
            RowError::Count => "the count is missing, or not a whole number of 64 bits",
            RowError::Twice => "a run has two rows for the same count",
            RowError::Parts => "a call has more values, errors or denials than calls",
        }
    }
}

impl Key {
    const fn of_call(kind: Kind, call: (Arch, Nr)) -> Key {
        Key {
            kind,
            call: Some(call),
            arg: None,
            value: None,
            args: None,
        }
    }
}

impl Fleet {
    /// Writes the fleet as rows: those of every single run, then those of the sum of all others.
    ///
    /// # Errors
    /// As [`parts`](Self::parts), or the error of `each`.
    pub fn rows<E: From<Overlap>>(
        &self,
        mut each: impl FnMut(Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (singles, sum) = self.parts()?;
        for single in singles {
            profile_rows(single, &mut each)?;
        }
        profile_rows(&sum, &mut each)
    }
}

/// Passes on the rows of a profile.
fn profile_rows<E>(
    profile: &Profile,
    each: &mut impl FnMut(Row<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let runs = profile.runs();
    let mut run_row = |run: Option<(&RunId, &Origin)>, count: u64| {
        each(Row {
            run,
            key: Key {
                kind: Kind::Run,
                call: None,
                arg: None,
                value: None,
                args: None,
            },
            count,
            runs: count,
        })
    };
    for run in &runs.named {
        run_row(Some(run), 1)?;
    }
    let unnamed = profile.run_count() - runs.named.len() as u64;
    if unnamed > 0 {
        run_row(None, unnamed)?;
    }
    let only = runs.named.iter().next();
    let run = only.filter(|_| profile.run_count() == 1);
    for (arch, nr, call) in profile.calls() {
        call_rows(profile, (arch, nr), call, &mut |key, count, runs| {
            each(Row {
                run,
                key,
                count,
                runs,
            })
        })?;
    }
    Ok(())
}

fn call_rows<E>(
    profile: &Profile,
    place: (Arch, Nr),
    call: &Call,
    row: &mut impl FnMut(Key, u64, u64) -> Result<(), E>,
) -> Result<(), E> {
    let coverage = profile.coverage(call);
    let key = |kind| Key::of_call(kind, place);
    row(key(Kind::Made), call.made(), coverage.runs)?;
    if call.denied > 0 {
        row(key(Kind::Denied), call.denied, 1)?;
    }
    for (arg, values) in &call.values {
        for (value, count) in values {
            let runs = coverage.values.get(&(*arg, *value));
            let mut key = key(Kind::Value);
            (key.arg, key.value) = (Some(*arg), Some(*value));
            row(key, *count, runs.copied().unwrap_or_default())?;
        }
    }
    for (arg, count) in &call.lost_values {
        let mut key = key(Kind::LostValue);
        key.arg = Some(*arg);
        row(key, *count, 1)?;
    }
    for (args, count) in &call.samples {
        let mut key = key(Kind::Sample);
        key.args = Some(*args);
        row(key, *count, 1)?;
    }
    for (errno, count) in &call.errors {
        let mut key = key(Kind::Error);
        key.value = Some(u64::from(*errno));
        row(key, *count, 1)?;
    }
    if let Some(times) = &call.times {
        row(key(Kind::TotalTime), times.total_ns, 1)?;
        row(key(Kind::MinTime), times.min_ns, 1)?;
        row(key(Kind::MaxTime), times.max_ns, 1)?;
        for (bits, count) in times
            .buckets
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            let mut key = key(Kind::TimeBits);
            key.value = Some(bits as u64);
            row(key, *count, 1)?;
        }
    }
    Ok(())
}

/// Collects rows into a fleet.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// By the id of the run; `None` is the sum.
    parts: BTreeMap<Option<RunId>, Partial>,
    /// The run of the last row, kept separately: most rows belong to the same run as the previous one.
    last: Option<(Option<RunId>, Partial)>,
    runs: Runs,
}

/// The collected rows of a run or of the sum.
#[derive(Clone, Debug, Default)]
struct Partial {
    profile: Profile,
    /// The rows with counts of executed or denied calls.
    seen: BTreeSet<(Arch, Nr, Kind)>,
}

impl Collected {
    /// Adds a row.
    ///
    /// # Errors
    /// If it isn't a valid row of a profile.
    pub fn add(&mut self, row: &Row<'_>) -> Result<(), RowError> {
        if let Some((id, origin)) = row.run
            && self.runs.named.get(id) != Some(origin)
        {
            self.runs.join(&Runs::one(id.clone(), origin.clone()));
        }
        if row.key.kind == Kind::Run {
            if row.run.is_none() {
                self.runs.unnamed = self.runs.unnamed.saturating_add(row.count);
            }
            return Ok(());
        }
        let id = row.run.map(|(id, _)| id);
        if self.last.as_ref().map(|(last, _)| last.as_ref()) != Some(id) {
            self.keep_last();
            let id = id.cloned();
            let part = self.parts.remove(&id).unwrap_or_default();
            self.last = Some((id, part));
        }
        match &mut self.last {
            Some((_, part)) => part.add(&row.key, row.count, row.runs),
            None => Ok(()),
        }
    }

    fn keep_last(&mut self) {
        if let Some((id, part)) = self.last.take() {
            self.parts.insert(id, part);
        }
    }

    /// The fleet of all rows.
    ///
    /// # Errors
    /// If a run's counts are inconsistent.
    pub fn finish(mut self) -> Result<Fleet, RowError> {
        self.keep_last();
        let mut fleet = Fleet::default();
        let sum = self.parts.remove(&None);
        for (id, part) in self.parts {
            let Some(id) = id else { continue };
            let origin = self.runs.named.remove(&id).unwrap_or_default();
            fleet.add(part.finish(Runs::one(id, origin))?);
        }
        // Runs without rows belong to the sum.
        if sum.is_some() || self.runs.count() > 0 {
            fleet.add(sum.unwrap_or_default().finish(self.runs)?);
        }
        Ok(fleet)
    }
}

impl Partial {
    fn add(&mut self, key: &Key, count: u64, runs: u64) -> Result<(), RowError> {
        let (arch, nr) = key.call.ok_or(RowError::Arch)?;
        let call = self.profile.call_mut(arch, nr);
        let once = |is_new: bool| is_new.then_some(()).ok_or(RowError::Twice);
        match key.kind {
            // It has no call.
            Kind::Run => return Err(RowError::Kind),
            Kind::Made => {
                call.count = call.count.saturating_add(count);
                call.coverage.runs = runs;
            }
            Kind::Denied => {
                call.denied = count;
                call.count = call.count.saturating_add(count);
            }
            Kind::Value => {
                let arg = key.arg.filter(|arg| *arg <= 5).ok_or(RowError::Place)?;
                let value = key.value.ok_or(RowError::Place)?;
                let values = call.values.entry(arg).or_default();
                once(values.insert(value, count).is_none())?;
                if runs > 0 {
                    call.coverage.values.insert((arg, value), runs);
                }
            }
            Kind::LostValue => {
                let arg = key.arg.filter(|arg| *arg <= 5).ok_or(RowError::Place)?;
                once(call.lost_values.insert(arg, count).is_none())?;
            }
            Kind::Sample => {
                let args = key.args.ok_or(RowError::Place)?;
                once(call.samples.insert(args, count).is_none())?;
            }
            Kind::Error => {
                let error = key.value.and_then(|error| u16::try_from(error).ok());
                let error = error
                    .filter(|error| *error <= errno::MAX)
                    .ok_or(RowError::Place)?;
                once(call.errors.insert(error, count).is_none())?;
            }
            kind => return add_time(&mut call.times, kind, key.value, count),
        }
        if matches!(key.kind, Kind::Made | Kind::Denied) {
            once(self.seen.insert((arch, nr, key.kind)))?;
        }
        Ok(())
    }

    /// The profile of these runs.
    fn finish(mut self, runs: Runs) -> Result<Profile, RowError> {
        let is_single = runs.count() <= 1;
        self.profile.set_runs(runs);
        for call in self.profile.calls_mut() {
            if is_single {
                call.coverage = Default::default();
            }
            let sum = |counts: &mut dyn Iterator<Item = &u64>| -> u128 {
                counts.map(|count| u128::from(*count)).sum()
            };
            let most = [
                sum(&mut call.samples.values()),
                sum(&mut call.errors.values()),
                u128::from(call.denied),
                call.lost_values
                    .values()
                    .copied()
                    .max()
                    .unwrap_or_default()
                    .into(),
            ];
            let of_values = call.values.values().map(|values| sum(&mut values.values()));
            let most = most.into_iter().chain(of_values).max().unwrap_or_default();
            // Saturated counts may be less than the sum of their parts.
            if most > u128::from(call.count) && call.count != u64::MAX {
                return Err(RowError::Parts);
            }
        }
        Ok(self.profile)
    }
}

fn add_time(
    times: &mut Option<Box<Times>>,
    kind: Kind,
    bits: Option<u64>,
    count: u64,
) -> Result<(), RowError> {
    let times = times.get_or_insert_with(|| {
        Box::new(Times {
            total_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            buckets: [0; Times::BUCKETS],
        })
    });
    let place = match kind {
        Kind::TotalTime => &mut times.total_ns,
        Kind::MinTime => &mut times.min_ns,
        Kind::MaxTime => &mut times.max_ns,
        _ => {
            let bits = bits.and_then(|bits| usize::try_from(bits).ok());
            let place = bits.and_then(|bits| times.buckets.get_mut(bits));
            place.ok_or(RowError::Place)?
        }
    };
    *place = count;
    Ok(())
}

/// The id and the origin of a run, from their columns.
///
/// # Errors
/// If the id is invalid, or a name is too long.
pub fn run_of(id: &str, machine: &str, program: &str) -> Result<(RunId, Origin), RowError> {
    let id = RunId::new(id).ok_or(RowError::Run)?;
    match is_name(machine) && is_name(program) {
        true => Ok((id, Origin::new(machine, program))),
        false => Err(RowError::Run),
    }
}

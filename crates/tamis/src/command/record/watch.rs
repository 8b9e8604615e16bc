//! Comparing a running recording with a policy.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tamis_abi::{Arch, Nr, call, syscall};
use tamis_kernel::errno::Errno;
use tamis_learn::{Drift, drift};
use tamis_recorder::Recording;
use tamis_recorder::caught::Counting;
use tamis_recorder::ebpf::Recorder;
use tamis_report::record::DriftEntry;
use tamis_session::Policy;
use tamis_session::profile::call_name;

use super::live::TableScreen;
use crate::cli::{Failure, Global};

/// The interval between checks whether all tasks have ended.
const PACE: Duration = Duration::from_millis(20);

/// The source of the recording.
#[derive(Clone, Copy)]
pub(super) enum Source<'s> {
    Kernel(&'s Recorder),
    Caught(&'s Counting),
}

impl Source<'_> {
    /// The recording so far.
    pub(super) fn recording(self) -> Result<Recording, Errno> {
        match self {
            Source::Kernel(recorder) => recorder.recording(),
            Source::Caught(counting) => Ok(counting.recording()),
        }
    }
}

/// A running recording, with the policy for comparison.
pub(super) struct RecordingView<'w> {
    source: Source<'w>,
    policy: Option<&'w Policy>,
    /// The denied calls that were reported.
    told: Mutex<BTreeSet<(Arch, Nr)>>,
    live: Mutex<Option<TableScreen>>,
    global: &'w Global,
}

impl<'w> RecordingView<'w> {
    pub(super) fn new(
        source: Source<'w>,
        policy: Option<&'w Policy>,
        live: Option<TableScreen>,
        global: &'w Global,
    ) -> RecordingView<'w> {
        RecordingView {
            source,
            policy,
            told: Mutex::default(),
            live: Mutex::new(live),
            global,
        }
    }

    /// The whole recording, with the calls that the policy denies or may deny.
    pub(super) fn finish(&self) -> Result<(Recording, Vec<Drift>), Failure> {
        drop(self.live().take());
        let recording = self
            .source
            .recording()
            .map_err(|errno| Failure::environment(format!("the counts can't be read: {errno}")))?;
        let drift = self.tell(&recording);
        Ok((recording, drift))
    }

    fn live(&self) -> MutexGuard<'_, Option<TableScreen>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports each call that the policy would deny once. Returns all calls that it denies or may deny.
    fn tell(&self, recording: &Recording) -> Vec<Drift> {
        let Some(policy) = self.policy else {
            return Vec::new();
        };
        let drift = drift(&recording.profile, &policy.ruleset);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // A running call may be counted before its values.
        for entry in drift.iter().filter(|entry| entry.is_certain) {
            // A document contains all of them at the end.
            if told.insert((entry.arch, entry.nr)) && !self.global.json {
                self.global
                    .notice(&format!("tamis: {}", drift_entry(entry)));
            }
        }
        drift
    }

    /// Does some work and compares meanwhile, if there is a policy.
    pub(super) fn during<R>(&self, work: impl FnOnce() -> R) -> R {
        if self.policy.is_none() && self.live().is_none() {
            return work();
        }
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| self.watch_until(|| is_over.load(Ordering::Acquire)));
            let result = work();
            is_over.store(true, Ordering::Release);
            result
        })
    }

    /// Compares and draws repeatedly until the function returns true.
    pub(super) fn watch_until(&self, is_over: impl Fn() -> bool) {
        while !is_over() {
            if self.policy.is_some()
                && let Ok(recording) = self.source.recording()
            {
                self.tell(&recording);
            }
            self.draw();
            thread::sleep(PACE);
        }
    }
}

impl RecordingView<'_> {
    /// Draws the table if its interval has passed.
    fn draw(&self) {
        let mut live = self.live();
        if let Some(live) = live.as_mut().filter(|live| live.is_due())
            && let Ok(recording) = self.source.recording()
        {
            live.draw(&recording.profile);
        }
    }
}

pub(super) fn drift_entry(drift: &Drift) -> DriftEntry {
    let name = syscall::name(drift.arch, drift.nr).unwrap_or_default();
    let values = drift.values.iter();
    let arguments =
        values.map(|(place, value)| call::describe_argument(drift.arch, name, *place, *value));
    DriftEntry {
        arch: drift.arch.name(),
        call: call_name(drift.arch, drift.nr),
        count: drift.count,
        action: drift.action.to_string(),
        is_certain: drift.is_certain,
        arguments: arguments.collect(),
    }
}

//! Recording by a platform that catches every call: without privileges, for commands that are started.
//!
//! [`Counting`] is the supervisor of such a guest. It forwards all calls and counts them on entry; platforms that see
//! results also give their errors. Calls that a filter of the guest itself denies are not seen: the kernel takes the
//! strictest action of all filters, and doesn't notify the supervisor. The platform `patched` has the guest count most
//! of its calls itself, in its [tally](Counting::tally); their errors are unknown.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tamis_abi::{Action, ActionKind, Arch, Nr, SeccompData, syscall};
use tamis_bpf::{Insn, Op, Program};
use tamis_kernel::NATIVE_ENDIAN;
use tamis_platform::{Answer, Supervisor, Tally, Task};
use tamis_profile::interest::{self, Interesting};

use crate::recording::{MAX_VALUES, Recording};

/// The supervisor of a guest whose calls are counted.
///
/// ```
/// use tamis_recorder::caught::Counting;
/// let counting = Counting::new(false);
/// assert!(counting.recording().profile.is_empty());
/// ```
#[derive(Debug)]
pub struct Counting {
    has_values: bool,
    /// The counts of a guest that counts its own calls.
    tally: Tally,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    recording: Recording,
    /// The arguments of interest of each recorded call.
    interesting: BTreeMap<(Arch, Nr), Vec<Interesting>>,
    /// The number of pairs of an argument and its value.
    values: u32,
}

impl Counting {
    /// Counts calls and, optionally, the values of arguments that are constants or flags.
    pub fn new(has_values: bool) -> Counting {
        // Values need a caught call.
        let is_counted = |nr| {
            let of_interest = || {
                let name = syscall::name(Arch::X86_64, Nr(nr)).unwrap_or_default();
                interest::arguments(Arch::X86_64, name)
            };
            !has_values || of_interest().is_empty()
        };
        Counting {
            has_values,
            tally: Tally::new(is_counted),
            state: Mutex::default(),
        }
    }

    /// The filter of the guest, which returns `notify` for every call.
    #[expect(clippy::missing_panics_doc, reason = "the program is valid")]
    pub fn filter() -> Program {
        let insn = Insn::from(Op::RetImm(Action::new(ActionKind::Notify, 0).ret()));
        Program::new(vec![insn], NATIVE_ENDIAN).expect("one instruction that returns is a program")
    }

    /// The calls that a platform may have the guest count, for [`Options::tally`](tamis_platform::Options).
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The recording so far.
    pub fn recording(&self) -> Recording {
        let mut recording = self.state().recording.clone();
        for (nr, count) in self.tally.counts() {
            let counts = recording.profile.call_mut(Arch::X86_64, Nr(nr));
            counts.count = counts.count.saturating_add(count);
        }
        recording
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Supervisor for Counting {
    fn call(&self, _task: &mut dyn Task, call: &SeccompData) -> Answer {
        let mut state = self.state();
        let State {
            recording,
            interesting,
            values: known,
        } = &mut *state;
        let nr = Nr(call.nr);
        let Some(arch) = Arch::of_call(call.arch, call.nr) else {
            *recording.unknown.entry((call.arch, call.nr)).or_default() += 1;
            return Answer::Forward;
        };
        let counts = recording.profile.call_mut(arch, nr);
        counts.count = counts.count.saturating_add(1);
        if self.has_values {
            let arguments = interesting.entry((arch, nr)).or_insert_with(|| {
                let name = syscall::name(arch, nr).unwrap_or_default();
                interest::arguments(arch, name)
            });
            for argument in arguments {
                let index = argument.index.index();
                let value = call.args[index];
                let values = counts.values.entry(index as u8).or_default();
                if let Some(count) = values.get_mut(&value) {
                    *count += 1;
                } else if *known < MAX_VALUES {
                    *known += 1;
                    values.insert(value, 1);
                } else {
                    *counts.lost_values.entry(index as u8).or_default() += 1;
                    recording.lost.counts += 1;
                }
            }
        }
        Answer::Forward
    }

    fn result(&self, _task: &mut dyn Task, call: &SeccompData, result: i64) -> i64 {
        const MAX_ERRNO: i64 = 4095;
        if (-MAX_ERRNO..0).contains(&result)
            && let Some(arch) = Arch::of_call(call.arch, call.nr)
        {
            let mut state = self.state();
            let counts = state.recording.profile.call_mut(arch, Nr(call.nr));
            *counts.errors.entry(-result as u16).or_default() += 1;
        }
        result
    }
}

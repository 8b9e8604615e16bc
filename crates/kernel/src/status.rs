//! `/proc/…/status`: the fields on seccomp, signals and capabilities of a task.

use std::fs;

/// The content of a task's status file.
pub struct Status(String);

impl Status {
    /// The status of the calling thread; `None` without `/proc`.
    pub fn of_this_thread() -> Option<Status> {
        fs::read_to_string("/proc/thread-self/status")
            .ok()
            .map(Status)
    }

    /// The status of any task; `None` if it is gone or without `/proc`.
    pub fn read(tid: i32) -> Option<Status> {
        fs::read_to_string(format!("/proc/{tid}/status"))
            .ok()
            .map(Status)
    }

    /// The value of a field, without its name and surrounding space.
    fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            (found == name).then(|| value.trim())
        })
    }

    /// Whether the task has ended and hasn't been reaped yet.
    pub fn is_dead(&self) -> bool {
        let state = self.field("State");
        state.is_some_and(|state| state.starts_with(['Z', 'X']))
    }

    /// The value of a decimal field, such as `Tgid`; `None` if the kernel doesn't have it.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.field(name)?.parse().ok()
    }

    /// How many filters the task has. `None` before kernel 5.9.
    pub fn filters(&self) -> Option<u32> {
        self.number("Seccomp_filters")
    }

    /// The value of a hexadecimal field, such as a set of signals: bit 0 is signal 1.
    pub fn mask(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.field(name)?, 16).ok()
    }

    /// Whether a bit of a hexadecimal field is set.
    pub fn bit(&self, name: &str, bit: u32) -> Option<bool> {
        Some(self.mask(name)? >> bit & 1 == 1)
    }

    /// Whether the task is about to get a signal that it doesn't block.
    pub fn has_pending_signal(&self) -> bool {
        let set = |name| self.mask(name).unwrap_or(0);
        (set("SigPnd") | set("ShdPnd")) & !set("SigBlk") != 0
    }

    /// Whether a signal is in a set such as `SigCgt`.
    pub fn has_signal(&self, set: &str, signal: i32) -> Option<bool> {
        self.bit(set, u32::try_from(signal - 1).ok()?)
    }
}

/// Whether there is a task of this number that hasn't ended: one that is only waited for has.
pub fn lives(task: i32) -> bool {
    Status::read(task).is_some_and(|status| !status.is_dead())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = Status(
            "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t7\nSigCgt:\t0000000000000402\n".into(),
        );
        assert_eq!(status.number("Seccomp"), Some(2));
        assert_eq!(status.filters(), Some(7));
        assert_eq!(status.number("Secc"), None);
        assert_eq!(status.has_signal("SigCgt", 2), Some(true));
        assert_eq!(status.has_signal("SigCgt", 3), Some(false));
        assert!(!status.is_dead());
        assert!(Status("Name:\tZ\nState:\tZ (zombie)\n".into()).is_dead());
    }
}

//! A line on standard error that says how far a command is; on a terminal only.
//!
//! Nothing runs beside the command: the line changes when the command says so, and no timer disturbs what
//! is being measured.

use std::io::{self, IsTerminal, Write};

use super::Global;

/// How wide the bar is.
const BAR_CHARS: usize = 24;

/// The line; it is removed when this is dropped.
pub struct Progress {
    is_shown: bool,
    is_dirty: bool,
}

impl Progress {
    /// A line that is not there yet.
    pub fn new(global: &Global) -> Progress {
        Progress {
            is_shown: !global.quiet && io::stderr().is_terminal(),
            is_dirty: false,
        }
    }

    /// Shows which part, from 0 to 1, is done, and some words of less than fifty characters.
    pub fn show(&mut self, done: f64, words: &str) {
        if self.is_shown {
            self.is_dirty = true;
            // There is nobody to tell if that fails.
            let _ = write!(io::stderr(), "\r{} {words}\x1b[K", bar(done));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_dirty {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn bar(done: f64) -> String {
    let full = (done.clamp(0.0, 1.0) * BAR_CHARS as f64).round() as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(BAR_CHARS - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_wide_whatever_is_done() {
        for done in [-1.0, 0.0, 0.5, 1.0, 7.0, f64::NAN] {
            assert_eq!(bar(done).len(), BAR_CHARS + 2, "{done}");
        }
        assert_eq!(bar(0.5), "[############............]");
    }
}

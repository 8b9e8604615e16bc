//! A progress bar on standard error, on a terminal only.
//!
//! It has neither a thread nor a timer, which would disturb measurements.

use std::io::{self, IsTerminal, Write};

use super::Global;

const BAR_CHARS: usize = 24;

/// The bar; dropping it removes it.
pub struct Progress {
    is_shown: bool,
    is_dirty: bool,
}

impl Progress {
    /// A bar that isn't shown yet.
    pub fn new(global: &Global) -> Progress {
        Progress {
            is_shown: !global.quiet && io::stderr().is_terminal(),
            is_dirty: false,
        }
    }

    /// Shows the fraction done, from 0 to 1, and a text of fewer than 50 characters.
    pub fn show(&mut self, done: f64, words: &str) {
        if self.is_shown {
            self.is_dirty = true;
            // Failures are ignored.
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

//! The table of a running recording, on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use tamis_profile::Profile;
use tamis_report::live::LiveTable;

/// The interval between drawings.
const PACE: Duration = Duration::from_millis(250);

/// When to show the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LiveMode {
    /// If standard error is a terminal, and standard output isn't one that a command writes to
    Auto,
    Always,
    Never,
}

impl LiveMode {
    pub(super) fn is_now(self, has_command: bool) -> bool {
        match self {
            LiveMode::Always => true,
            LiveMode::Never => false,
            LiveMode::Auto => {
                io::stderr().is_terminal() && !(has_command && io::stdout().is_terminal())
            }
        }
    }
}

/// Draws the table in place of the previous one.
pub(super) struct TableScreen {
    table: LiveTable,
    began: Instant,
    drawn: Option<Instant>,
    lines: usize,
    top: usize,
}

impl TableScreen {
    pub(super) fn new(top: usize) -> TableScreen {
        TableScreen {
            table: LiveTable::default(),
            began: Instant::now(),
            drawn: None,
            lines: 0,
            top,
        }
    }

    /// Whether the interval has passed.
    pub(super) fn is_due(&self) -> bool {
        self.drawn.is_none_or(|drawn| drawn.elapsed() >= PACE)
    }

    pub(super) fn draw(&mut self, profile: &Profile) {
        let passed_ms = self.began.elapsed().as_millis() as u64;
        let lines = self.table.lines(profile, passed_ms, self.top);
        let mut text = self.back();
        for line in &lines {
            // Erases the rest of the previous line.
            text += &format!("{line}\x1b[K\n");
        }
        self.lines = lines.len();
        self.drawn = Some(Instant::now());
        put(&text);
    }

    /// The escapes that move to the start of the previous table and erase it.
    fn back(&self) -> String {
        match self.lines {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\x1b[J"),
        }
    }
}

impl Drop for TableScreen {
    fn drop(&mut self) {
        put(&self.back());
    }
}

/// Writes to the terminal; failures are ignored.
fn put(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

//! Events as lines of text, in the form of strace.
//!
//! A line is written when its call returns. If another event or a timeout comes first, the known part is written, with
//! `<unfinished ...>` if another line follows.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use tamis_abi::{Arch, consts, host};
use tamis_kernel::Ended;
use tamis_kernel::tracee::SignalInfo;

use super::decode::Argument;
use super::follow::{EnteredCall, Outcome, Sink};
use super::structure;
use super::symbols::signal_name;
use super::text;

/// The column of results.
const RESULT_COLUMN: usize = 40;

/// The condition for the number of the task at the beginning of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// If there are several tasks: `[pid 17] `.
    IfSeveral,
    /// Always: `17 `.
    Always,
}

/// A writer of lines. The first error of writing is kept and ends the output.
#[derive(Debug)]
pub struct Lines<W> {
    out: W,
    prefix: Prefix,
    /// Whether each line is flushed.
    is_live: bool,
    tasks: BTreeSet<i32>,
    open: Option<PendingLine>,
    error: Option<std::io::Error>,
}

/// The line of a call in progress.
#[derive(Debug)]
struct PendingLine {
    task: i32,
    text: String,
    /// The length of the written text.
    written: usize,
}

impl<W: Write> Lines<W> {
    /// Writes to `out`, and flushes each line if `is_live`.
    pub const fn new(out: W, prefix: Prefix, is_live: bool) -> Lines<W> {
        Lines {
            out,
            prefix,
            is_live,
            tasks: BTreeSet::new(),
            open: None,
            error: None,
        }
    }

    fn begin(&self, task: i32) -> String {
        match self.prefix {
            Prefix::Always => format!("{task:<5} "),
            Prefix::IfSeveral if self.tasks.len() > 1 => format!("[pid {task:>5}] "),
            Prefix::IfSeveral => String::new(),
        }
    }

    /// A call with the arguments that are known on entry.
    fn start(&self, task: i32, call: &EnteredCall) -> String {
        let (known, _) = shown(call);
        // The rest of `clone` begins with a comma.
        let has_more = call.known > 0 && call.known < call.args.len();
        let separator = if has_more && !is_clone(call) {
            ", "
        } else {
            ""
        };
        format!("{}{}({known}{separator}", self.begin(task), name(call))
    }

    /// Ends the line of the call in progress.
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.put(&open.text[open.written..]);
            self.put(" <unfinished ...>\n");
        }
    }

    fn line(&mut self, task: i32, text: &str) {
        self.close();
        let line = format!("{}{text}\n", self.begin(task));
        self.put(&line);
        self.at_end();
    }

    fn put(&mut self, text: &str) {
        if self.error.is_none() {
            self.error = self.out.write_all(text.as_bytes()).err();
        }
    }

    fn at_end(&mut self) {
        if self.is_live {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.out.flush().err();
        }
    }
}

/// The arguments known on entry, and the others.
fn shown(call: &EnteredCall) -> (String, String) {
    match is_clone(call) {
        true => clone(&call.args),
        false => {
            let (known, rest) = call.args.split_at(call.known);
            (joined(known), joined(rest))
        }
    }
}

fn is_clone(call: &EnteredCall) -> bool {
    &*call.name == "clone" && call.data.arch == Arch::X86_64.audit() && call.args.len() == 5
}

/// The arguments of `clone`, with names; only those that its flags require.
fn clone(args: &[Argument]) -> (String, String) {
    let has =
        |name: &str| consts::value(Arch::X86_64, name).is_some_and(|flag| args[0].raw & flag != 0);
    let text = |place: usize| args[place].shown.text();
    let known = format!("child_stack={}, flags={}", text(1), text(0));
    let mut rest = String::new();
    for (place, name, is_used) in [
        (2, "parent_tid", has("CLONE_PARENT_SETTID")),
        (4, "tls", has("CLONE_SETTLS")),
        (
            3,
            "child_tidptr",
            has("CLONE_CHILD_SETTID") || has("CLONE_CHILD_CLEARTID"),
        ),
    ] {
        if is_used {
            let _ = write!(rest, ", {name}={}", text(place));
        }
    }
    (known, rest)
}

fn joined(args: &[Argument]) -> String {
    let mut text = String::new();
    for (at, arg) in args.iter().enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        text.push_str(&arg.shown.text());
    }
    text
}

/// The name of a call, with its architecture if that isn't this machine's.
fn name(call: &EnteredCall) -> String {
    match Arch::of_call(call.data.arch, call.data.nr) {
        arch if arch.is_some() && arch == host::arch() => call.name.to_string(),
        Some(arch) => format!("{arch}:{}", call.name),
        None => format!("{:#x}:{}", call.data.arch, call.name),
    }
}

/// A line, padded to the column of results.
fn padded(mut line: String) -> String {
    while line.chars().count() < RESULT_COLUMN {
        line.push(' ');
    }
    line
}

impl<W: Write> Sink for Lines<W> {
    fn entered(&mut self, task: i32, call: &EnteredCall) {
        self.close();
        self.tasks.insert(task);
        let text = self.start(task, call);
        self.open = Some(PendingLine {
            task,
            text,
            written: 0,
        });
    }

    fn left(&mut self, task: i32, call: &EnteredCall, outcome: Outcome, _took: Duration) {
        let arch = Arch::of_call(call.data.arch, call.data.nr);
        let are_flags = call
            .note
            .as_ref()
            .is_some_and(|note| note.starts_with("flags "));
        let outcome = match outcome {
            Outcome::Returned(flags) if are_flags => format!("{flags:#x}"),
            outcome => text::outcome(arch, &call.name, outcome),
        };
        let (_, rest) = shown(call);
        let (start, begun) = match self.open.take_if(|open| open.task == task) {
            // More arguments may be known now.
            Some(open) if open.written == 0 => (self.start(task, call), 0),
            Some(open) => (open.text, open.written),
            None => {
                self.close();
                let start = format!("{}<... {} resumed>", self.begin(task), name(call));
                (start, 0)
            }
        };
        let mut line = padded(format!("{start}{rest}) "));
        let _ = match &call.note {
            Some(note) => writeln!(line, "= {outcome} ({note})"),
            None => writeln!(line, "= {outcome}"),
        };
        self.put(&line[begun..]);
        self.at_end();
    }

    fn created(&mut self, task: i32) {
        self.tasks.insert(task);
    }

    fn signalled(&mut self, task: i32, signal: &SignalInfo) {
        let name = signal_name(signal.signal());
        let text = format!("--- {name} {} ---", structure::signal_info(signal));
        self.line(task, &text);
    }

    fn ended(&mut self, task: i32, how: Ended) {
        let text = match how {
            Ended::Exited(code) => format!("+++ exited with {code} +++"),
            Ended::Signalled {
                signal,
                core_dumped,
            } => {
                let core = if core_dumped { " (core dumped)" } else { "" };
                format!("+++ killed by {}{core} +++", signal_name(signal))
            }
        };
        self.line(task, &text);
        self.tasks.remove(&task);
    }

    fn superseded(&mut self, task: i32, by: i32) {
        self.line(task, &format!("+++ superseded by execve in pid {by} +++"));
        self.tasks.remove(&by);
        self.tasks.insert(task);
    }

    fn lost(&mut self, count: u64) {
        self.close();
        self.put(&format!("tamis: {count} events were lost\n"));
        self.at_end();
    }

    fn tick(&mut self) {
        if let Some(open) = &mut self.open
            && self.error.is_none()
        {
            self.error = self
                .out
                .write_all(&open.text.as_bytes()[open.written..])
                .err();
            open.written = open.text.len();
        }
        self.flush();
    }

    fn finish(&mut self) -> std::io::Result<()> {
        self.close();
        self.flush();
        self.error.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{CallTracker, Decoder};
    use tamis_abi::{SeccompData, call};

    fn parsed(text: &str) -> SeccompData {
        call::parse(text, Arch::X86_64).expect("a call")
    }

    /// The output for these events.
    fn written(
        prefix: Prefix,
        events: impl FnOnce(&mut CallTracker<Lines<&mut Vec<u8>>>),
    ) -> String {
        let mut out = Vec::new();
        let mut following = CallTracker::new(Decoder::new(32), Lines::new(&mut out, prefix, false));
        events(&mut following);
        following.sink().finish().expect("it is written");
        drop(following);
        String::from_utf8(out).expect("text")
    }

    const NOTHING: fn(u64, &mut [u8]) -> usize = |_, _| 0;

    #[test]
    fn calls_of_several_tasks_are_taken_apart() {
        let text = written(Prefix::IfSeveral, |following| {
            following.entered(7, &parsed("socket(AF_UNIX, SOCK_DGRAM)"), &NOTHING);
            following.left(7, Outcome::Returned(3), None);
            following.created(8);
            following.entered(7, &parsed("read(3, 0x1000, 9)"), &NOTHING);
            following.entered(8, &parsed("close(5)"), &NOTHING);
            following.left(8, Outcome::Returned(-9), None);
            following.signalled(7, &SignalInfo::sent_by(17, 8, 0));
            following.left(7, Outcome::Interrupted(-512), None);
            following.ended(8, Ended::Exited(1));
            following.entered(7, &parsed("exit_group(2)"), &NOTHING);
            following.ended(7, Ended::Exited(2));
        });
        let expected = "\
socket(AF_UNIX, SOCK_DGRAM, 0)          = 3
[pid     7] read(3,  <unfinished ...>
[pid     8] close(5)                    = -1 EBADF (Bad file descriptor)
[pid     7] --- SIGCHLD {si_signo=SIGCHLD, si_code=SI_USER, si_pid=8, si_uid=0} ---
[pid     7] <... read resumed>0x1000, 9) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)
[pid     8] +++ exited with 1 +++
exit_group(2)                           = ?
+++ exited with 2 +++
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_call_that_waits_is_shown_as_far_as_it_is_known() {
        let text = written(Prefix::Always, |following| {
            following.entered(7, &parsed("x86 pause"), &NOTHING);
            following.sink().tick();
            following.left(7, Outcome::Returned(0), None);
            following.entered(7, &parsed("nanosleep(0x10)"), &NOTHING);
            following.sink().tick();
        });
        let expected = "\
7     x86:pause()                       = 0
7     nanosleep(0x10,  <unfinished ...>
";
        assert_eq!(text, expected);
    }
}

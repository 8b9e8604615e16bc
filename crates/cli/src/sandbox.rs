//! `tamis sandbox`: run a command whose calls are caught.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

use tamis_abi::{Action, ActionKind, SeccompData, call, consts};
use tamis_bpf::{Op, Program};
use tamis_kernel::Ended;
use tamis_platform::{Answer, Supervisor, Task, TaskId};
use tamis_report::sandbox::{AskedEntry, SandboxReport};

use crate::load::{self, LoadArgs};
use crate::output::ReportArgs;
use crate::platform::{self, PlatformArgs};
use crate::target::TargetArgs;
use crate::{Failure, Global, input};

/// Run a command whose system calls are caught, under a policy
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis sandbox -p policy.tamis -- ./server
  tamis sandbox -p policy.tamis --notify allow --stats -- make
  tamis sandbox --platform ptrace-seccomp -p policy.tamis -- ./server
The policy means what it means to the kernel, which enforces it, whatever the platform. A call with the action notify is \
handed to tamis, which answers it as --notify says and counts it. If tamis ends, by whatever signal, the command and all \
that it has started are killed.
Exit status: that of the command, as of `tamis run`.")]
pub struct Args {
    /// The policy or program [default: container-default]
    #[arg(short, long = "policy", visible_alias = "filter", value_name = "INPUT", value_parser = input::PolicyParser, hide_possible_values = true)]
    policy: Option<String>,
    /// How calls with the action notify are answered
    ///
    /// `allow`, or an error such as `errno(EPERM)`.
    #[arg(long, value_name = "ANSWER", default_value = "errno(ENOSYS)", value_parser = parse_answer)]
    notify: Notify,
    /// Print at the end which calls were handed to tamis
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    platform: PlatformArgs,
    #[command(flatten)]
    output: ReportArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    target: TargetArgs,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The answer to calls with the action notify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notify {
    Allow,
    Errno(u16),
}

fn parse_answer(text: &str) -> Result<Notify, String> {
    if text == "allow" {
        return Ok(Notify::Allow);
    }
    let name = text
        .strip_prefix("errno(")
        .and_then(|rest| rest.strip_suffix(')'));
    name.and_then(errno)
        .map(Notify::Errno)
        .ok_or_else(|| "write `allow`, or `errno(NAME)` with an error's name or number".to_owned())
}

/// An error by its name or number, 1 to 4095.
pub fn errno(text: &str) -> Option<u16> {
    let number = match text.starts_with('E') {
        true => consts::value(load::native_arch(), text)?,
        false => text.parse().ok()?,
    };
    u16::try_from(number)
        .ok()
        .filter(|number| (1..=4095).contains(number))
}

/// Runs the command and returns its exit code.
pub fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    args.output.check_folder()?;
    let load = args.load.for_installed_filter();
    let input = args.policy.as_deref().unwrap_or(load::DEFAULT_POLICY);
    if args.policy.is_none() {
        load::note_default_policy(global);
    }
    let loaded = load.load(input, global)?;
    args.target.check_use([&loaded].into_iter())?;
    let options = args.target.options(&load.options(), global)?;
    let filter = loaded.into_program(&options)?.program;
    let platform = args.platform.choose()?;
    let counts = Counts {
        notify: args.notify,
        calls: Mutex::default(),
    };
    let ended = platform::run(platform, &args.command, &filter, &counts)?;
    if is_of_a_filter(ended) && !global.json {
        global.notice(&death_by_filter(input, &filter));
    }
    if args.stats || global.json || args.output.is_given() {
        let report = counts.report(platform.name(), platform.caps().sees_tasks, ended);
        args.output.show(&report, global)?;
    }
    Ok(ended.pass_on())
}

/// The message about a command that a filter may have killed. `tamis run` has no supervisor, and the policy can't be
/// read again from standard input.
fn death_by_filter(input: &str, filter: &Program) -> String {
    const NOTICE: &str = "tamis: the command died of SIGSYS, by which filters kill and trap";
    let is_notify =
        |op| matches!(op, Op::RetImm(ret) if Action::from_ret(ret).kind == ActionKind::Notify);
    if input == "-" || filter.ops().any(is_notify) {
        return NOTICE.to_owned();
    }
    let input = input::shell_word(input);
    format!(
        "{NOTICE}\nhelp: `tamis run -p {input}` may tell for which call, and by which rule: the command may have a filter of its own, too"
    )
}

/// Whether a command ended by the signal that filters send.
fn is_of_a_filter(ended: Ended) -> bool {
    let sigsys = consts::value(load::native_arch(), "SIGSYS");
    match ended {
        Ended::Signalled { signal, .. } => u64::try_from(signal).ok() == sigsys,
        Ended::Exited(_) => false,
    }
}

/// Answers calls and counts them.
struct Counts {
    notify: Notify,
    calls: Mutex<CallCounts>,
}

/// The counts of calls by architecture and number, and of tasks.
#[derive(Default)]
struct CallCounts {
    calls: BTreeMap<(u32, u32), u64>,
    tasks: u64,
}

impl Supervisor for Counts {
    fn call(&self, _task: &mut dyn Task, call: &SeccompData) -> Answer {
        let mut counted = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *counted.calls.entry((call.arch, call.nr)).or_default() += 1;
        match self.notify {
            Notify::Allow => Answer::Forward,
            Notify::Errno(errno) => Answer::Errno(errno),
        }
    }

    fn started(&self, _task: TaskId, _parent: Option<TaskId>) {
        let mut counted = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        counted.tasks += 1;
    }
}

impl Counts {
    fn report(&self, platform: &str, sees_tasks: bool, ended: Ended) -> SandboxReport {
        let counted = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let mut asked: Vec<AskedEntry> = counted
            .calls
            .iter()
            .map(|((arch, nr), count)| AskedEntry {
                call: name(*arch, *nr),
                count: *count,
            })
            .collect();
        asked.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.call.cmp(&b.call)));
        SandboxReport {
            platform: platform.to_owned(),
            ended: platform::end(ended),
            asked,
            tasks: sees_tasks.then_some(counted.tasks),
        }
    }
}

/// A call without its arguments.
fn name(arch: u32, nr: u32) -> String {
    let call = SeccompData {
        nr,
        arch,
        ..SeccompData::default()
    };
    let described = call::describe(&call);
    let end = described.find('(').unwrap_or(described.len());
    described[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_a_command_that_tells() {
        let program = |kind| {
            let ops = [Op::RetImm(Action::new(kind, 0).ret())];
            Program::from_ops(&ops, load::native_arch().endian()).unwrap()
        };
        let kills = program(ActionKind::KillProcess);
        let said = death_by_filter("we ird.tamis", &kills);
        assert!(said.contains("`tamis run -p 'we ird.tamis'` may tell"));
        assert!(!death_by_filter("-", &kills).contains("help:"));
        let notifies = program(ActionKind::Notify);
        assert!(!death_by_filter("p.tamis", &notifies).contains("help:"));
    }

    #[test]
    fn answers_have_names_and_numbers() {
        assert_eq!(parse_answer("allow"), Ok(Notify::Allow));
        assert_eq!(parse_answer("errno(EPERM)"), Ok(Notify::Errno(1)));
        assert_eq!(parse_answer("errno(4095)"), Ok(Notify::Errno(4095)));
        for wrong in [
            "errno(0)",
            "errno(4096)",
            "errno(EMISSPELT)",
            "deny",
            "errno(5",
        ] {
            assert!(parse_answer(wrong).is_err(), "{wrong}");
        }
    }
}

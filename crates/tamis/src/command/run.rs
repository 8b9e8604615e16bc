//! `tamis run`: run a command under filters.

mod denied;
mod lines;

use std::ffi::OsString;

use tamis_abi::{Action, SeccompData, call};
use tamis_bpf::Stack;
use tamis_deploy::denied::{Decider, Denials, notifying};
use tamis_kernel::errno::Errno;
use tamis_kernel::flags::{Flag, Flags};
use tamis_kernel::install::InstallError;
use tamis_kernel::run::{self, Command, Ended, Killed, RunError, RunResult, Trapped};
use tamis_recorder::view::signal_name;
use tamis_report::explain;
use tamis_report::run::{KilledEntry, MUST_ALLOW_EXECVE, RunReport, TrappedEntry};
use tamis_scmp::Release;
use tamis_session::path_text::PathText;
use tamis_session::{Loaded, NamedProgram, Policy};

use crate::cli::library::{self, LinkerFolder, PrivateCopy};
use crate::cli::load::{self, LoadArgs};
use crate::cli::output::ReportArgs;
use crate::cli::side;
use crate::cli::target::{self, FlagArgs, TargetArgs};
use crate::cli::{Failure, Global, budget, exit, input, message};
use lines::DenialLines;

/// Run a command under one or more filters
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis run -- ls -l                       under container-default
  tamis run -p profile.json -- python3 app.py
  tamis run -p base.bpf -p extra.tamis -- sh
  tamis run -p server.tamis --explain-denied -- ./server
  tamis run -p agent --explain-denied --json-lines -o denied.jsonl -- ./agent
  tamis run --libseccomp -- ls             with tamis's library in place of libseccomp
Every filter must allow execve, and seccomp if another filter follows. The embedded policies \
network-service and pure-compute don't: they are for programs that install their own filter.
The flags of an OCI profile apply to its filter. `tamis run` is not a supervisor: calls with the action \
notify fail with ENOSYS; `tamis sandbox` answers them.
Signals from other processes are forwarded to the command, except SIGKILL: the command continues \
without tamis, unless --die-with-parent is given.
Exit status: that of the command; if a signal kills it, tamis dies by the same signal. 126 if the \
command could not be executed, 127 if it was not found, 4 if the filter could not be installed.")]
pub(crate) struct Args {
    /// A policy or program; may be repeated [default: container-default]
    ///
    /// The first is installed first.
    #[arg(short, long = "policy", visible_alias = "filter", value_name = "INPUT", value_parser = input::PolicyParser, hide_possible_values = true)]
    policies: Vec<String>,
    /// Let the command use tamis's library in place of libseccomp
    ///
    /// Without a policy, it runs under no filter of tamis.
    #[arg(long)]
    libseccomp: bool,
    /// Don't trace the command to explain kills, so that debuggers can attach to it
    #[arg(long, hide_short_help = true)]
    no_explain: bool,
    /// Also say which calls got an error from a filter, and what line allows them
    ///
    /// It names the rule, too. Only these calls become slower. Programs that have listeners of their own fail under it
    #[arg(long)]
    explain_denied: bool,
    /// Write each denied call at once, as a line of JSON, and at the end kills, traps and the exit status
    ///
    /// To standard error, or to the file of `--output`, in place of the report.
    #[arg(long, requires = "explain_denied", conflicts_with = "no_explain")]
    json_lines: bool,
    #[command(flatten)]
    output: ReportArgs,
    /// Don't set no_new_privs; needs CAP_SYS_ADMIN, keeps set-user-ID programs working
    #[arg(long, hide_short_help = true)]
    keep_privs: bool,
    #[command(flatten)]
    flags: FlagArgs,
    /// Kill the command if tamis is killed; its descendants continue
    #[arg(long, hide_short_help = true)]
    die_with_parent: bool,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    target: TargetArgs,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let default = [load::DEFAULT_POLICY.to_owned()];
    let inputs = match args.policies.as_slice() {
        [] if args.libseccomp => &[],
        [] => &default[..],
        policies => policies,
    };
    args.output.check_folder()?;
    if args.policies.is_empty() && !args.libseccomp {
        load::note_default_policy(global);
    }
    let load = args.load.for_installed_filter();
    let (policies, filters) = args.filters(inputs, &load, global)?;
    let words = args.words(global)?;
    let [program, arguments @ ..] = words.as_slice() else {
        unreachable!("clap requires a command");
    };
    let is_filtered = !inputs.is_empty();
    let mut command = Command::new(program);
    command.args = arguments.to_vec();
    command.flags = args.flags.flags();
    command.filter_flags = policies
        .iter()
        .map(|policy| target::wanted_flags(policy.as_ref()))
        .collect();
    command.die_with_parent = args.die_with_parent;
    command.no_new_privs = !args.keep_privs && is_filtered;
    command.explain = !args.no_explain && is_filtered;
    command.forward_signals = true;
    let stack = side::stack(filters)?;
    let explains_denied = args.explain_denied && is_filtered && allows_execve(&stack);
    if explains_denied {
        command.filters = notifying(&stack, &budget::compile_options())?;
        let all = command.filter_flags.iter();
        let all = all.fold(Flags::NONE, |all, own| all | *own);
        // The program has one thread, and the kernel rejects this flag with a listener.
        command.filter_flags = vec![all.without(Flag::Tsync.into())];
    } else {
        command.filters = stack.clone();
    }
    budget::answered();
    let lines = args.lines()?;
    let result = match explains_denied {
        true => denied::run(&command, &stack, &policies, lines.as_ref()),
        false => run::run(&command).map(|result| (result, Denials::default())),
    };
    match result {
        Ok((report, denials)) => {
            let mut document = document(&report, &policies, &stack);
            if let Some(lines) = lines {
                lines.end(&document, &report)?;
                return Ok(report.ended.pass_on());
            }
            document.denied = denials.entries(
                |data| Decider::in_stack(&stack, &policies, data),
                &|input, kind| load.reload(input, kind),
            );
            document.notes.extend(denials.note());
            let crash = crash(&report).filter(|_| command.explain && !explains_denied);
            document.notes.extend(crash);
            if args.explain_denied && is_filtered && !explains_denied {
                let why = "denied calls are not explained: the filters deny some ways of executing a command";
                document.notes.push(why.to_owned());
            }
            args.print_report(&document, global)?;
            Ok(report.ended.pass_on())
        }
        Err(error) => Err(refuse(&error, &program.text(), &policies)),
    }
}

/// A hint for a crash that a denied call for memory may explain, because C libraries don't report it.
fn crash(report: &RunResult) -> Option<String> {
    const CRASHES: [&str; 5] = ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGTRAP"];
    let Ended::Signalled { signal, .. } = report.ended else {
        return None;
    };
    let name = signal_name(signal);
    let is_explained = !report.killed.is_empty() || !report.trapped.is_empty();
    (!is_explained && CRASHES.contains(&&*name)).then(|| {
        format!(
            "{name} ended the command; `--explain-denied` shows the calls that got an error from a filter"
        )
    })
}

/// The folder with the library for a command. Prints a note if the command would not use the library, or another
/// module.
fn library_for(command: &[OsString], global: &Global) -> Result<LinkerFolder, Failure> {
    let mut folder = LinkerFolder::new(&library::find(None, Release::Reference)?)?;
    let copy = command
        .first()
        .and_then(|program| library::private_copy(program));
    match copy {
        Some(PrivateCopy::Program(path)) => global.notice(&format!(
            "tamis: {} has a copy of libseccomp of its own, which stays as it is",
            path.text()
        )),
        Some(PrivateCopy::PythonModule(path)) => {
            folder.add_python_module();
            global.notice(&format!(
                "tamis: Python gets tamis's module `seccomp`; {} has a copy of libseccomp of its own",
                path.text()
            ));
        }
        None => {}
    }
    Ok(folder)
}

impl Args {
    /// The command, with tamis's library in place of libseccomp if that is wanted.
    fn words(&self, global: &Global) -> Result<Vec<OsString>, Failure> {
        match self.libseccomp {
            true => Ok(library_for(&self.command, global)?.around(&self.command)),
            false => Ok(self.command.clone()),
        }
    }

    /// The writer of denied calls, if they are wanted as lines.
    fn lines(&self) -> Result<Option<DenialLines>, Failure> {
        match self.json_lines {
            true => Ok(Some(DenialLines::new(self.output.writer()?))),
            false => Ok(None),
        }
    }

    /// The filters of the inputs, with the policies of those that are policies.
    fn filters(
        &self,
        inputs: &[String],
        load: &LoadArgs,
        global: &Global,
    ) -> Result<(Vec<Option<Policy>>, Vec<NamedProgram>), Failure> {
        let (loaded, options) = self.target.load_stack(inputs, load, global)?;
        let mut policies = Vec::new();
        let mut filters = Vec::new();
        for loaded in loaded {
            policies.push(match &loaded {
                Loaded::Policy(policy) => {
                    target::warn_profile_mismatch(&options, policy, global);
                    Some(Policy::clone(policy))
                }
                Loaded::Program(_) => None,
            });
            filters.push(loaded.into_program(&options)?);
        }
        for policy in policies.iter().flatten() {
            note_missing_supervisor(policy, global);
        }
        Ok((policies, filters))
    }

    /// Prints the results that the command's exit status doesn't show.
    fn print_report(&self, report: &RunReport, global: &Global) -> Result<(), Failure> {
        if self.output.is_given() || global.json {
            return self.output.show(report, global);
        }
        let text = report.to_string();
        if !text.is_empty() {
            message(text.trim_end());
        }
        for note in &report.notes {
            global.notice(&format!("tamis: {note}"));
        }
        Ok(())
    }
}

/// Whether the filters allow the command to be executed.
fn allows_execve(stack: &Stack) -> bool {
    let execve = call::parse("execve", load::native_arch()).ok();
    let verdict = execve.map(|execve| Action::from_ret(stack.run(&execve).ret));
    verdict.is_some_and(|action| action.kind != tamis_abi::ActionKind::Errno)
}

fn document(report: &RunResult, policies: &[Option<Policy>], stack: &Stack) -> RunReport {
    let execve = call::parse("execve", load::native_arch()).ok();
    let is_execve = |call: &SeccompData| {
        execve.is_some_and(|execve| (call.arch, call.nr) == (execve.arch, execve.nr))
    };
    let (exit_code, signal) = match report.ended {
        Ended::Exited(code) => (Some(code), None),
        Ended::Signalled { signal, .. } => (None, Some(signal)),
    };
    let killed = |killed: &Killed| KilledEntry {
        process: killed.process,
        thread: killed.thread,
        whole_process: killed.scope == run::Scope::Process,
        call: killed.call.as_ref().map(|call| shown(call, stack)),
        filter: killed
            .call
            .as_ref()
            .and_then(|call| stack.run(call).decided_by),
        action: killed.decided_by.map(|(_, action)| action.to_string()),
        reason: killed.call.as_ref().and_then(|call| {
            let filter = stack.run(call).decided_by?;
            reason(policies[filter].as_ref(), call)
        }),
        is_execve: killed.call.as_ref().is_some_and(is_execve),
    };
    let trapped = |trapped: &Trapped| TrappedEntry {
        process: trapped.process,
        thread: trapped.thread,
        call: shown(&trapped.call, stack),
        data: trapped.data,
        is_caught: trapped.is_caught,
        reason: reason(trapping_policy(trapped, policies), &trapped.call),
    };
    RunReport {
        exit_code,
        signal,
        killed: report.killed.iter().map(killed).collect(),
        trapped: report.trapped.iter().map(trapped).collect(),
        denied: Vec::new(),
        notes: report.notes.iter().map(ToString::to_string).collect(),
    }
}

/// A call as text, without arguments that the call doesn't have, unless a filter tests them.
fn shown(call: &SeccompData, stack: &Stack) -> String {
    let own = call::without_leftovers(call);
    match stack.run(&own).ret == stack.run(call).ret {
        true => call::describe(&own),
        false => call::describe(call),
    }
}

/// The policy of the newest filter with this trap action for a call.
fn trapping_policy<'a>(trapped: &Trapped, policies: &'a [Option<Policy>]) -> Option<&'a Policy> {
    let trap = Action::new(tamis_abi::ActionKind::Trap, trapped.data);
    let mut newest_first = policies.iter().rev().flatten();
    newest_first.find(|policy| policy.ruleset.decide(&trapped.call).action == trap)
}

/// The part of a policy that decides a call.
fn reason(policy: Option<&Policy>, call: &SeccompData) -> Option<String> {
    let policy = policy?;
    let (ruleset, sources) = (&policy.ruleset, &policy.sources);
    Some(explain::reason(&policy.name, ruleset, sources, call))
}

/// Prints a note that a policy's `notify` needs a supervisor, which is missing.
fn note_missing_supervisor(policy: &Policy, global: &Global) {
    let is_notify = |action: Action| action.kind == tamis_abi::ActionKind::Notify;
    let has_notify = policy.ruleset.sections().iter().any(|section| {
        let mut rules = section.rules.iter();
        is_notify(section.default) || rules.any(|rule| is_notify(rule.action))
    });
    let name = &policy.name;
    if has_notify {
        global.notice(&format!(
            "tamis: {name} has calls with the action notify, and `tamis run` is not a supervisor: they fail \
             with ENOSYS"
        ));
    } else if let Some(path) = &policy.installation.listener_path {
        global.notice(&format!(
            "tamis: {name} names the listener {path}, but no call has the action notify"
        ));
    }
}

fn refuse(error: &RunError, program: &str, policies: &[Option<Policy>]) -> Failure {
    match error {
        RunError::Install { error, .. } => {
            let message = format!("the filter could not be installed: {error}");
            let hint = match error {
                InstallError::NotPermitted => "leave `--keep-privs` out, or run as root".to_owned(),
                error => error.hint(),
            };
            Failure::new(exit::ENVIRONMENT, message, Some(hint))
        }
        RunError::Exec { errno, denied_by } => {
            let mut text = format!("{program}: {error}");
            if let Some((filter, _)) = denied_by
                && let Ok(execve) = call::parse("execve", load::native_arch())
                && let Some(reason) = reason(policies[*filter].as_ref(), &execve)
            {
                text = format!("{text}, {reason}");
            }
            let help = denied_by.map(|_| MUST_ALLOW_EXECVE.to_owned());
            let help = help.or_else(|| input::policy_as_command(program));
            let code = match *errno == Errno::ENOENT && denied_by.is_none() {
                true => exit::NOT_FOUND,
                false => exit::CANNOT_EXECUTE,
            };
            Failure::new(code, text, help)
        }
        other => Failure::environment(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Arch;
    use tamis_bpf::{Op, Program};

    use super::*;

    #[test]
    fn what_other_registers_held_is_shown_if_a_filter_looks_at_it() {
        let first_argument =
            Program::from_ops(&[Op::LoadData(16), Op::RetA], Arch::X86_64.endian());
        let stack = Stack::new(vec![first_argument.unwrap()]).unwrap();
        let shown = |text| shown(&call::parse(text, Arch::X86_64).unwrap(), &stack);
        assert_eq!(shown("x86_64 getpid(7)"), "x86_64 getpid(0x7)");
        assert_eq!(shown("x86_64 close(7, 7)"), "x86_64 close(fd=0x7)");
    }
}

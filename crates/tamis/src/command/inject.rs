//! `tamis inject`: change the calls of a command by rules.

mod rules;

use std::ffi::OsString;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tamis_abi::{ActionKind, SeccompData};
use tamis_kernel::Ended;
use tamis_platform::{Answer, Supervisor, Task};
use tamis_report::inject::{InjectReport, InjectedEntry};
use tamis_session::path_text::path_of;
use tamis_session::{InputKind, Loaded, Policy, files};

use crate::cli::fragment::Fragment;
use crate::cli::load::{self, LoadArgs};
use crate::cli::output::ReportArgs;
use crate::cli::platform::{self, PlatformArgs};
use crate::cli::target::TargetArgs;
use crate::cli::{Failure, Global, input};
use rules::{Effect, RuleText};

/// Run a command and change some of its system calls
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis inject 'openat errno(ENOSPC) every 3' -- ./program
  tamis inject 'read(fd == 0) delay 10ms; getpid return 5' -- ./program
  tamis inject rules.txt -- make test
A rule is a call, what becomes of it, and when. The call is written as in the tamis language, with a condition on its \
arguments or without; sets such as @network-io are possible. What becomes of it: `errno(NAME)`, `return N`, `delay TIME`, `kill`. \
When: `first N`, `after N`, `every N`, `at N`, also together; without, always.
Each rule counts all calls that it matches, also those that an earlier rule changes, of all threads and processes of the \
command together, in the order in which they are caught; `every 3` changes the third, the sixth and so on. With one thread this is the same in each run. The rules are tried in \
their order: the first that changes the call decides, and a delay goes on to the next. The call that executes the command \
itself is not counted. A delay is for the task that calls alone, except on platforms that trace: there other calls that \
rules name wait as well.
Calls that no rule names run at full speed: the kernel's filter lets them pass. Only calls of this machine's own \
architecture are caught.
Exit status: that of the command, as of `tamis run`.")]
pub(crate) struct Args {
    /// The rules, separated by semicolons, or a file with a rule on each line
    #[arg(value_name = "RULES", value_parser = input::path_parser())]
    rules: String,
    #[command(flatten)]
    platform: PlatformArgs,
    #[command(flatten)]
    output: ReportArgs,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    args.output.check_folder()?;
    let (name, text) = read(&args.rules)?;
    let texts = rules::parse(&text)?;
    let load = LoadArgs::of_kind(InputKind::named("tamis")?).for_filter();
    let mut statements = Vec::new();
    let mut rules = Vec::new();
    for rule in texts {
        let target = Fragment::new(name, &text, rule.target.clone());
        let statement = target.statement();
        match load.load_one(rules::policy(&statement), global) {
            Ok(Loaded::Policy(policy)) => rules.push(Rule::new(rule, Policy::clone(&policy))),
            Ok(Loaded::Program(_)) => unreachable!("the kind is that of a language"),
            Err(Failure::Diagnostics(mistakes, _)) => return Err(target.failure(mistakes)),
            Err(other) => return Err(other),
        }
        statements.push(statement);
    }
    // The warnings were printed for each rule alone; rules may overlap.
    let loaded = load.load_input(rules::policy(&statements.join("\n")))?;
    let options = TargetArgs::default().options(&load.options(), global)?;
    let filter = loaded.into_program(&options)?.program;
    let platform = args.platform.choose()?;
    let injector = Injector {
        rules,
        is_started: AtomicBool::new(false),
    };
    let ended = platform::run(platform, &args.command, &filter, &injector)?;
    let report = injector.report(platform.name(), ended);
    if global.json || !global.quiet || args.output.is_given() {
        args.output.show(&report, global)?;
    }
    Ok(ended.pass_on())
}

/// The most bytes of a file of rules, because each rule is loaded as a policy.
const MAX_BYTES: usize = 1 << 16;

/// The rules in a file, or in the argument itself if it contains a space, with their name in messages.
fn read(rules: &str) -> Result<(&str, String), Failure> {
    let path = path_of(rules);
    if rules.contains([' ', ';']) && !path.exists() {
        // In the path's text, line feeds are encoded.
        let text = path.into_os_string().into_string();
        let text = text.map_err(|_| Failure::input("the rules are not UTF-8"))?;
        return Ok((rules::NAME, text));
    }
    let cannot =
        |why: &dyn Display| Failure::input(format!("cannot read the rules of {rules}: {why}"));
    let input = files::read_file(&path).map_err(|error| cannot(&error))?;
    if input.bytes.len() > MAX_BYTES {
        return Err(cannot(&format!("they have more than {MAX_BYTES} bytes")));
    }
    let text = String::from_utf8(input.bytes).map_err(|_| cannot(&"they are not UTF-8"))?;
    Ok((rules, text))
}

/// A rule with its counters.
struct Rule {
    rule: RuleText,
    /// A policy with the action `notify` for the calls of the rule.
    policy: Policy,
    matched: AtomicU64,
    fired: AtomicU64,
}

impl Rule {
    fn new(rule: RuleText, policy: Policy) -> Rule {
        Rule {
            rule,
            policy,
            matched: AtomicU64::new(0),
            fired: AtomicU64::new(0),
        }
    }

    /// Counts a matching call, and returns whether the rule changes it.
    fn counts(&self, call: &SeccompData) -> bool {
        let decision = self.policy.ruleset.decide(call);
        if decision.action.kind != ActionKind::Notify {
            return false;
        }
        let number = self.matched.fetch_add(1, Ordering::Relaxed) + 1;
        self.rule.when.fires(number)
    }
}

/// The supervisor that changes calls by rules.
struct Injector {
    rules: Vec<Rule>,
    /// Whether the command has been executed.
    is_started: AtomicBool,
}

impl Supervisor for Injector {
    fn loaded(&self) {
        self.is_started.store(true, Ordering::Relaxed);
    }

    fn call(&self, _task: &mut dyn Task, call: &SeccompData) -> Answer {
        // The first call that executes a program is that of the command.
        if is_execve(call) && !self.is_started.swap(true, Ordering::Relaxed) {
            return Answer::Forward;
        }
        let mut delay = Duration::ZERO;
        let mut answer = None;
        for rule in &self.rules {
            // Each rule counts all its calls, so that `at 1` and `at 2` for one call are its first and second.
            if !rule.counts(call) || answer.is_some() {
                continue;
            }
            rule.fired.fetch_add(1, Ordering::Relaxed);
            match rule.rule.effect {
                Effect::Delay(time) => delay += time,
                Effect::Return(value) => answer = Some(Answer::Return(value)),
                Effect::Errno(errno) => answer = Some(Answer::Errno(errno)),
                Effect::Kill => answer = Some(Answer::Kill),
            }
        }
        let answer = answer.unwrap_or(Answer::Forward);
        match delay.is_zero() {
            true => answer,
            false => Answer::Later(delay, Box::new(answer)),
        }
    }
}

fn is_execve(call: &SeccompData) -> bool {
    let execve = tamis_abi::call::parse("execve", load::native_arch());
    execve.is_ok_and(|execve| (execve.arch, execve.nr) == (call.arch, call.nr))
}

impl Injector {
    fn report(&self, platform: &str, ended: Ended) -> InjectReport {
        let rules = self.rules.iter().map(|rule| InjectedEntry {
            rule: rule.rule.text.clone(),
            matched: rule.matched.load(Ordering::Relaxed),
            fired: rule.fired.load(Ordering::Relaxed),
        });
        InjectReport {
            platform: platform.to_owned(),
            ended: platform::end(ended),
            rules: rules.collect(),
        }
    }
}

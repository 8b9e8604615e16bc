//! `tamis lint`: probable mistakes in valid policies and programs.
//!
//! The report includes the warnings of front ends, and omits findings that repeat one of them.

use std::io::{self, IsTerminal};

use tamis_diag::{Code, Diagnostic, Severity};
use tamis_lint::{
    Check, LintInput, Meaning, Relevance, Statements, Target, UnknownTarget, registry,
};
use tamis_policy::systemd::{self, SystemdVersion};
use tamis_report::entry::counted;
use tamis_report::extent::Extent;
use tamis_report::lint::{FindingEntry, InputFindings, LintChecksReport, LintReport, sarif};
use tamis_rules::Origin;
use tamis_session::{Input, Loaded, NamedProgram, Policy, Side};

use crate::cli::limits::LimitArgs;
use crate::cli::load::{LoadArgs, read_input, reading};
use crate::cli::output::{document_json, print, show};
use crate::cli::settings::Coverage;
use crate::cli::side;
use crate::cli::{Failure, Global, budget, exit, input, message};
use crate::code;

/// Find probable mistakes in valid policies and programs
#[derive(clap::Args)]
#[command(after_help = "\
Checks use the meaning of a filter, so programs and policies are equally good inputs. The example calls \
were evaluated on the filter. `tamis explain TM0706` explains a code.
Examples:
  tamis lint policy.tamis
  tamis lint default.json --arch x86_64 --min-severity warning
  tamis lint --stack first.bpf second.bpf third.bpf
  tamis lint profile.json --runtime runc --target glibc-2.42,linux-7.2
  tamis lint profile.json --arch all --cap all
  tamis lint profile.json --sarif > lint.sarif
Exit status: 1 if there is a warning, 2 if an input can't be read, 3 if there is none and something wasn't checked.")]
pub(crate) struct Args {
    /// Policies and programs: paths, `-`, or names of embedded policies
    #[arg(value_name = "INPUT", required_unless_present = "list", value_parser = input::PolicyParser, hide_possible_values = true)]
    inputs: Vec<String>,
    /// Treat all inputs, which must be programs, as the filters of one task, the oldest first
    #[arg(long, hide_short_help = true)]
    stack: bool,
    /// Omit less severe findings than `warning`
    ///
    /// Without it, or with `note`, all are shown.
    #[arg(
        long,
        value_name = "LEAST",
        default_value = "note",
        hide_default_value = true,
        hide_possible_values = true
    )]
    min_severity: MinSeverity,
    /// Show also what a list of denied calls leaves out
    ///
    /// These are dangerous calls and families for which the policy's own rules give no reason.
    #[arg(long)]
    all: bool,
    /// Omit the findings of a check, by name or code; may be repeated
    #[arg(long, value_name = "CHECK", hide_short_help = true)]
    allow: Vec<String>,
    /// Run only this check, by name or code
    ///
    /// May be repeated. The warnings of front ends are omitted, too.
    #[arg(long, value_name = "CHECK")]
    only: Vec<String>,
    /// Print a SARIF 2.1.0 log instead of text
    #[arg(long, conflicts_with = "json", hide_short_help = true)]
    sarif: bool,
    /// Check also that `runc` or `crun` can start
    ///
    /// The filter is in force for the runtime's last steps, without no_new_privs for more of them: dropping capabilities, changing the user.
    #[arg(long, value_name = "RUNTIME", hide_possible_values = true)]
    runtime: Option<Runtime>,
    /// Check also what `glibc-2.42`, … need
    ///
    /// Further names are `musl-1.2`, `systemd-258`, `runc-1.5`, `linux-7.2` and others.
    /// Calls that they make since a version and that the filter denies, with the error that they survive. A kernel also
    /// dates deny lists. A release of systemd is the one that reads units.
    #[arg(long = "target", value_name = "NAME", value_delimiter = ',', value_parser = parse_target)]
    targets: Vec<Target>,
    /// List the checks
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    load: LoadArgs,
}

/// The gap of a profile whose readings are too many to check.
const TOO_MANY_READINGS: &str = "only the first reading was checked: entries depend on too many capabilities; choose some with `--cap`";

/// The language of units.
const UNIT: &str = "systemd";
/// Languages with entries for capabilities, kernels or architectures.
const PROFILES: [&str; 2] = ["oci", "spo"];

/// The least severe findings to show.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum MinSeverity {
    Note,
    Warning,
}

/// A container runtime.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Runtime {
    /// Docker's, containerd's and Kubernetes'
    Runc,
    /// Podman's on many systems
    Crun,
}

impl From<Runtime> for tamis_lint::Runtime {
    fn from(runtime: Runtime) -> tamis_lint::Runtime {
        match runtime {
            Runtime::Runc => tamis_lint::Runtime::Runc,
            Runtime::Crun => tamis_lint::Runtime::Crun,
        }
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if args.list {
        show(&LintChecksReport::of_registry(), global)?;
        return Ok(exit::OK);
    }
    let checks = args.checks()?;
    let load = match args.targets.iter().rfind(|target| target.name == UNIT) {
        Some(target) => args
            .load
            .with_systemd(SystemdVersion::branch(target.version.major())),
        None => args.load.clone(),
    };
    let coverage = Coverage::new(&load, &[]);
    let mut texts = Vec::new();
    let mut loaded = Vec::new();
    for path in &args.inputs {
        let _stage = reading(path);
        let input = read_input(path, global)?;
        loaded.push(coverage.first.load_input(input.clone())?);
        texts.push(input);
    }
    coverage.first.check_options(&loaded)?;
    let inputs: Vec<InputFindings> = match args.stack {
        true => vec![args.stack_report(loaded, &coverage.first, &checks)?],
        false => {
            let inputs = texts.iter().zip(loaded);
            let reports = inputs.map(|(text, input)| args.report(text, input, &coverage, &checks));
            reports.collect::<Result<_, _>>()?
        }
    };
    let worst = inputs.iter().filter_map(InputFindings::worst).max();
    let has_gaps = inputs.iter().any(|input| !input.gaps.is_empty());
    let report = LintReport { inputs };
    if args.sarif {
        print(format!("{:#}\n", sarif::log(&report)).as_bytes())?;
    } else if global.json {
        print(document_json(&report)?.as_bytes())?;
    } else {
        print_findings(&report, global)?;
    }
    Ok(match worst {
        Some(Severity::Warning | Severity::Error) => exit::NO,
        Some(Severity::Note) | None if has_gaps => exit::GAVE_UP,
        Some(Severity::Note) | None => exit::OK,
    })
}

/// Prints each finding with its place on standard output, and the count on standard error.
fn print_findings(report: &LintReport, global: &Global) -> Result<(), Failure> {
    let colour = global.colours_messages() && io::stdout().is_terminal();
    for input in &report.inputs {
        print(input.text(colour).as_bytes())?;
        for gap in &input.gaps {
            message(&format!("{}: {gap}", input.input));
        }
        global.notice(&format!("{}: {}", input.input, input.counts()));
        if let Some(others) = input.extent.other_readings("checked", "checks") {
            global.notice(&format!("{}: {others}", input.input));
        }
        if input.folded > 0 {
            let findings = counted(input.folded, "more finding");
            let about = "about calls that no rule of it concerns: `--all` shows them";
            global.notice(&format!("{}: {findings} {about}", input.input));
        }
    }
    Ok(())
}

impl Args {
    /// The selected checks.
    fn checks(&self) -> Result<Vec<Check>, Failure> {
        let only = self.only.iter().map(|name| known_check(name));
        let mut checks: Vec<Check> = only.collect::<Result<_, _>>()?;
        if checks.is_empty() {
            checks = registry::ALL.to_vec();
        }
        let allowed = self.allow.iter().map(|name| known_code(name));
        let allowed: Vec<Code> = allowed.collect::<Result<_, _>>()?;
        checks.retain(|check| !allowed.contains(&check.code));
        let needs_target = |name: &&String| {
            let check = registry::from_name(name).map(|check| check.code);
            check.is_some_and(|code| {
                [code::LINT_TARGET_NEEDS, code::LINT_OUTDATED_LIST].contains(&code)
            })
        };
        if self.targets.is_empty()
            && let Some(name) = self.only.iter().find(needs_target)
        {
            return Err(Failure::usage(
                format!("`{name}` checks what a target needs, and none is named"),
                "name it: `--target glibc-2.42`, `--target linux-7.2`",
            ));
        }
        if self.runtime.is_none() && self.only.iter().any(|name| is_runtime(name)) {
            return Err(Failure::usage(
                "`runtime` checks the steps of a runtime, and none is named",
                "name it: `--runtime runc` or `--runtime crun`",
            ));
        }
        Ok(checks)
    }

    /// The checks for a policy. The settings of a unit are separate filters that may overlap on purpose, so the check
    /// for idle rules needs a request.
    fn checks_of(&self, policy: &Policy, checks: &[Check]) -> Vec<Check> {
        let is_unit = policy.kind.name() == UNIT && self.only.is_empty();
        let is_made = |check: &&Check| !is_unit || check.code != code::LINT_IDLE_RULE;
        checks.iter().filter(is_made).copied().collect()
    }

    /// The findings in the first reading of an input, and those of other readings: all if these are requested, or those
    /// about entries if no option selects a reading and the first one has no warning. Calls that the machine of another
    /// reading lacks are not reported, because profiles are rarely written for it.
    fn report(
        &self,
        text: &Input,
        input: Loaded,
        coverage: &Coverage,
        checks: &[Check],
    ) -> Result<InputFindings, Failure> {
        let mut report = self.reading_report(input.clone(), &coverage.first, checks)?;
        let first = Side::new(text.name.as_str(), vec![input], false);
        let inputs = [first.filters()];
        let mut goes_on = coverage.is_requested || report.worst() < Some(Severity::Warning);
        let others = match goes_on.then(|| coverage.others(&inputs)) {
            Some(Ok(others)) => others,
            Some(Err(_)) => {
                goes_on = false;
                report.gaps.push(TOO_MANY_READINGS.to_owned());
                Vec::new()
            }
            None => Vec::new(),
        };
        let mut known = vec![first.clone()];
        for other in others {
            let reading = match other.load.load_input(text.clone()) {
                Ok(reading) => reading,
                // A profile that is no filter on a machine.
                Err(Failure::Diagnostics(..)) => continue,
                Err(failure) => return Err(failure),
            };
            let side = Side::new(text.name.as_str(), vec![reading.clone()], false);
            if !known.iter().any(|known| known.is_identical(&side)) {
                known.push(side);
                let mut own = self.reading_report(reading, &other.load, checks)?;
                if !coverage.is_requested {
                    own.findings.retain(FindingEntry::has_place);
                }
                report.add_reading(&other.title, own);
            }
        }
        report.extent = coverage.extent(&inputs, goes_on);
        Ok(report)
    }

    /// The findings in one reading of an input.
    fn reading_report(
        &self,
        input: Loaded,
        load: &LoadArgs,
        checks: &[Check],
    ) -> Result<InputFindings, Failure> {
        match input {
            Loaded::Policy(policy) => {
                let checks = self.checks_of(&policy, checks);
                let kept = kept(&policy);
                let statements = match policy.kind.name() {
                    UNIT => Statements::Settings { kept: &kept },
                    _ if is_selected(&policy, load) => Statements::Selected,
                    _ => Statements::Rules,
                };
                let meaning = Meaning::Policy(&policy.ruleset);
                let subject = LintInput {
                    statements,
                    known_until: policy.known_until,
                    ..self.subject(meaning, load)
                };
                let found = self.found(&policy.name, &subject, &checks)?;
                Ok(self.policy_report(*policy, found))
            }
            Loaded::Program(raw) => self.program_report(raw.name.clone(), vec![raw], load, checks),
        }
    }

    /// The findings for all inputs as one stack.
    fn stack_report(
        &self,
        inputs: Vec<Loaded>,
        load: &LoadArgs,
        checks: &[Check],
    ) -> Result<InputFindings, Failure> {
        let help = "compile it first: `tamis compile POLICY -o FILTER`";
        let programs = inputs
            .into_iter()
            .map(|input| input.into_named_program(help))
            .collect::<Result<_, _>>()?;
        self.program_report("the stack".to_owned(), programs, load, checks)
    }

    /// The subject of the checks; a program has no statements.
    fn subject<'a>(&'a self, meaning: Meaning<'a>, load: &LoadArgs) -> LintInput<'a> {
        LintInput {
            meaning,
            statements: Statements::default(),
            known_until: None,
            assumed_arch: load.call_arch(),
            runtime: self.runtime.map(Into::into),
            kernel: self.targets.iter().find_map(Target::kernel),
            targets: &self.targets,
        }
    }

    fn found(
        &self,
        name: &str,
        subject: &LintInput,
        checks: &[Check],
    ) -> Result<tamis_lint::Findings, Failure> {
        let (limits, stop) = (self.limits.limits(), budget::stop());
        tamis_lint::run(subject, checks, limits, stop)
            .map_err(|limit| self.limits.gave_up(name, limit))
    }

    fn policy_report(&self, policy: Policy, found: tamis_lint::Findings) -> InputFindings {
        let mut findings: Vec<FindingEntry> = Vec::new();
        if self.only.is_empty() {
            let warnings = policy.warnings.iter();
            let is_shown = |warning: &&Diagnostic| !self.is_allowed(warning.code);
            findings.extend(
                warnings
                    .filter(is_shown)
                    .cloned()
                    .map(FindingEntry::of_front_end),
            );
        }
        for finding in found.findings {
            let finding = FindingEntry::of_policy(&finding, &policy.sources);
            if !finding.is_among(&policy.warnings, &policy.sources) {
                findings.push(finding);
            }
        }
        self.finish(policy.name, policy.sources, findings, found.gaps)
    }

    fn program_report(
        &self,
        input: String,
        programs: Vec<NamedProgram>,
        load: &LoadArgs,
        checks: &[Check],
    ) -> Result<InputFindings, Failure> {
        let names: Vec<String> = programs.iter().map(|raw| raw.name.clone()).collect();
        let stack = side::stack(programs)?;
        let subject = self.subject(Meaning::Filters(&stack), load);
        let found = self.found(&input, &subject, checks)?;
        let findings = found.findings.iter();
        let findings = findings
            .map(|finding| FindingEntry::of_program(finding, &names))
            .collect();
        Ok(self.finish(input, tamis_diag::Sources::new(), findings, found.gaps))
    }

    fn finish(
        &self,
        input: String,
        sources: tamis_diag::Sources,
        mut findings: Vec<FindingEntry>,
        gaps: Vec<String>,
    ) -> InputFindings {
        if matches!(self.min_severity, MinSeverity::Warning) {
            findings.retain(|finding| finding.diagnostic.severity >= Severity::Warning);
        }
        let before = findings.len();
        if !self.all && self.only.is_empty() {
            findings.retain(|finding| finding.relevance != Relevance::Aside);
        }
        let folded = before - findings.len();
        for finding in &mut findings {
            finding.name_input(&input);
        }
        // The sort is stable: warnings of front ends precede other findings of the same severity.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.diagnostic.severity));
        InputFindings {
            input,
            sources,
            findings,
            folded,
            gaps,
            extent: Extent::only(),
        }
    }

    fn is_allowed(&self, code: Code) -> bool {
        let mut allowed = self.allow.iter();
        allowed.any(|name| name.eq_ignore_ascii_case(code.id))
    }
}

/// Whether a policy was read for one of several machines: its text may have statements for the others.
fn is_selected(policy: &Policy, load: &LoadArgs) -> bool {
    let is_profile = PROFILES.contains(&policy.kind.name());
    is_profile || !policy.states_arches || !load.arches.is_empty()
}

/// The places of a unit's settings that have other effects besides a filter.
fn kept(policy: &Policy) -> Vec<Origin> {
    let is_unit = policy.kind.name() == UNIT;
    let sources = policy.sources.with_ids().filter(|_| is_unit);
    let kept = |(id, _)| systemd::settings_beyond_filters(&policy.sources, id);
    sources.flat_map(kept).collect()
}

/// Parses `NAME-VERSION`.
fn parse_target(text: &str) -> Result<Target, String> {
    text.parse()
        .map_err(|UnknownTarget { message, help }| format!("{message}; {help}"))
}

fn is_runtime(name: &str) -> bool {
    registry::from_name(name).is_some_and(|check| check.code == code::LINT_RUNTIME)
}

fn known_check(name: &str) -> Result<Check, Failure> {
    registry::from_name(name).ok_or_else(|| unknown(name))
}

/// The code of a check, or of another diagnostic.
fn known_code(name: &str) -> Result<Code, Failure> {
    let check = registry::from_name(name).map(|check| check.code);
    check
        .or_else(|| code::from_id(name))
        .ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Failure {
    let names = registry::ALL.iter().map(|check| check.name);
    let help = match tamis_diag::suggest::nearest(name, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`tamis lint --list` lists the checks".to_owned(),
    };
    Failure::usage(format!("there is no check `{name}`"), help)
}

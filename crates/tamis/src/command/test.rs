//! `tamis test`: whether policies do what checks demand.
//!
//! The checks are read first, with everything that is wrong about them; then each policy is read and judged, a profile of
//! containers in each of its [`readings`].

mod mend;
mod readings;

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tamis_assertions::{
    Check, Checks, Claim, Constraint, Judge, Resources, Setting, Shared, Uncovered, standard,
};
use tamis_bpf::Program;
use tamis_cli::side::SideInputs;
use tamis_deploy::audit::{TaskFilters, Tasks};
use tamis_diag::{Diagnostic, Sources, suggest};
use tamis_prover::{LimitReached, Subject};
use tamis_report::test::{CheckEntry, TestReport, UncoveredEntry, junit, sarif};
use tamis_session::files::{self, FileLoader};
use tamis_session::path_text::{PathText, path_of};
use tamis_session::{Input, Loaded, Policy, Side, SideOptions};

use crate::cli::limits::LimitArgs;
use crate::cli::load::{LoadArgs, reading};
use crate::cli::output::{OutputArgs, print, refuse_to_replace, refuse_to_replace_any, show};
use crate::cli::settings::Coverage;
use crate::cli::{Failure, Global, budget, exit, input};
use crate::code;
use mend::{Mender, ReadSide};
use readings::Readings;

/// Check what policies must and mustn't allow
#[derive(clap::Args)]
#[command(after_help = "\
A file of checks states what policies must and mustn't allow, in the words of the policy language:
  never allow socket(family == AF_ALG)
  always allow read, write
  expect openat2 -> errno(ENOSYS)
Every call counts, also those of x32 and 32-bit programs; docs/book/assertions.md has the language.
Examples:
  tamis test server.checks --policy server.tamis
  tamis test af-alg io-uring --policy docker.json --group AF_ALG
  tamis test server.checks --policy server.tamis --param FAMILY=AF_VSOCK --json
  tamis test container --policy docker.json --coverage
Exit status: 0 if all checks hold, 1 if one fails, 2 if an input can't be read, 3 if one is undecided.")]
pub(crate) struct Args {
    /// Files of checks: paths, `-`, or names of embedded checks
    #[arg(value_name = "CHECKS", required_unless_present = "list", value_parser = input::path_parser())]
    checks: Vec<String>,
    /// Policies and programs; `a.bpf,b.bpf` is a stack
    #[arg(long = "policy", value_name = "INPUT", num_args = 1.., required_unless_present_any = ["list", "pid"], value_parser = input::PolicyParser, hide_possible_values = true)]
    policies: Vec<String>,
    /// Make only the checks of this group; may be repeated
    #[arg(long = "group", value_name = "TITLE")]
    groups: Vec<String>,
    /// Give a parameter of the checks another value
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_setting)]
    settings: Vec<Setting>,
    /// The filters of a process, and of threads with others
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Vec<i32>,
    /// Show also which rules no check constrains
    ///
    /// Each rule is relaxed and tightened for each of its calls: a rule is constrained if a check would then fail.
    #[arg(long)]
    coverage: bool,
    /// Write the results as JUnit's XML to this file, or to standard output (`-`) instead of text
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    junit: Option<PathBuf>,
    /// Print a SARIF 2.1.0 log instead of text
    #[arg(long, conflicts_with = "json", hide_short_help = true)]
    sarif: bool,
    /// List the embedded checks
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    load: LoadArgs,
}

fn parse_setting(text: &str) -> Result<Setting, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("expected a name and a value, such as FAMILY=AF_VSOCK")?;
    Ok(Setting {
        name: name.to_owned(),
        value: value.to_owned(),
    })
}

/// A file of checks with the policies that it refers to.
struct CheckFile {
    checks: Checks,
    /// The checks to make, by index.
    selected: Vec<usize>,
    /// The references of checks that compare.
    references: HashMap<usize, Reference>,
}

/// The reference of a check that compares.
struct Reference {
    inputs: SideInputs,
    /// Its first reading.
    first: Side,
}

/// A file of checks and a check of it, by index.
type Place = (usize, usize);

/// One reading of a policy, a program or a stack.
struct Reading<'r> {
    side: &'r Side,
    load: &'r LoadArgs,
    /// The texts for mends, if the side is a policy.
    mended: Option<(&'r Rc<ReadSide>, &'r Readings)>,
    /// The references of checks that compare.
    references: &'r BTreeMap<Place, Side>,
    /// Whether the rules that no check constrains are sought, if that is wanted.
    is_covered: bool,
}

/// The results for one reading.
struct Results {
    checks: Vec<(Place, CheckEntry)>,
    /// The rules that no check constrains, if they were sought.
    uncovered: Option<Vec<UncoveredEntry>>,
    shared: Shared,
}

/// The selected checks of all files, each with its place.
fn places(files: &[CheckFile]) -> impl Iterator<Item = (Place, &CheckFile, &Check)> {
    files.iter().enumerate().flat_map(|(number, file)| {
        let selected = file.selected.iter();
        selected.map(move |index| ((number, *index), file, &file.checks.all[*index]))
    })
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if args.list {
        return list(global);
    }
    args.refuse_to_replace_inputs()?;
    let files = args.read_checks(global)?;
    let mut tested = Vec::new();
    for policy in &args.policies {
        tested.push(readings::test(args, &files, policy, global)?);
    }
    for side in args.processes()? {
        tested.push(readings::test_only(args, &files, side, global)?);
    }
    let report = TestReport::new(tested, global.quiet);
    args.print(&report, global)?;
    Ok(match (report.fails, report.undecided) {
        (0, 0) => exit::OK,
        (0, _) => exit::GAVE_UP,
        _ => exit::NO,
    })
}

/// Lists the embedded checks.
fn list(global: &Global) -> Result<u8, Failure> {
    global.refuse_document("the list of embedded checks")?;
    for file in standard::ALL {
        print(format!("{}\n", file.name).as_bytes())?;
    }
    Ok(exit::OK)
}

impl Args {
    /// Rejects a policy or a file of checks as the file for the results.
    fn refuse_to_replace_inputs(&self) -> Result<(), Failure> {
        let Some(file) = self.junit.as_ref().filter(|file| *file != Path::new("-")) else {
            return Ok(());
        };
        for policy in &self.policies {
            refuse_to_replace_any(file, "--junit", policy)?;
        }
        let mut checks = self.checks.iter();
        checks.try_for_each(|checks| refuse_to_replace(file, "--junit", checks))
    }

    fn read_checks(&self, global: &Global) -> Result<Vec<CheckFile>, Failure> {
        let mut files = Vec::new();
        let mut used = Vec::new();
        let mut parameters = Vec::new();
        for path in &self.checks {
            let _stage = reading(path);
            let mut sources = Sources::new();
            let root = read_input(path, global)?.add_to(&mut sources)?;
            let mut loader = FileLoader::new(self.load.include_dirs());
            tamis_policy::loader::Loader::begin(&mut loader, path);
            let loaded = tamis_assertions::load(&mut sources, root, &mut loader, &self.settings);
            let Some(checks) = loaded.checks else {
                return Err(Failure::Diagnostics(loaded.diagnostics, sources));
            };
            global.warn(&loaded.diagnostics, &sources);
            used.extend(loaded.used_settings);
            parameters.extend(loaded.parameters);
            let selected = self.selected(&checks);
            let references = self.references(&checks, &selected, &sources, global)?;
            files.push(CheckFile {
                checks,
                selected,
                references,
            });
        }
        for (index, setting) in self.settings.iter().enumerate() {
            if !used.contains(&index) {
                return Err(unknown_parameter(&setting.name, &parameters));
            }
        }
        for group in &self.groups {
            let mut titles = files.iter().flat_map(|file| &file.checks.groups);
            if !titles.any(|own| own.title == *group) {
                return Err(unknown_group(group, &files));
            }
        }
        Ok(files)
    }

    fn selected(&self, checks: &Checks) -> Vec<usize> {
        let is_selected = |check: &Check| {
            self.groups.is_empty()
                || check
                    .group
                    .is_some_and(|group| self.groups.contains(&checks.groups[group].title))
        };
        let all = checks.all.iter().enumerate();
        all.filter(|(_, check)| is_selected(check))
            .map(|(index, _)| index)
            .collect()
    }

    /// The references of the selected checks, found relative to the file of each check.
    fn references(
        &self,
        checks: &Checks,
        selected: &[usize],
        sources: &Sources,
        global: &Global,
    ) -> Result<HashMap<usize, Reference>, Failure> {
        let mut references = HashMap::new();
        let load = Coverage::new(&self.load, &[]).first.keeping_variables();
        for &index in selected {
            let check = &checks.all[index];
            let Claim::Compare(_, name) = &check.claim else {
                continue;
            };
            let path = relative_to(name, &check.origin.file);
            let reference = SideInputs::read(&path, global).and_then(|inputs| {
                let first = inputs
                    .clone()
                    .load(&SideOptions::default(), &load, global)?;
                Ok(Reference { inputs, first })
            });
            let reference =
                reference.map_err(|failure| unreadable(check, name, &failure, sources))?;
            references.insert(index, reference);
        }
        Ok(references)
    }

    /// The filters of the processes, each with its threads that have others.
    fn processes(&self) -> Result<Vec<Side>, Failure> {
        let (tasks, unreadable) = Tasks::requested(&self.pid)?.into_parts();
        if let Some(unreadable) = unreadable.first() {
            let message = format!("cannot read the filters of {unreadable}");
            return Err(Failure::environment(message));
        }
        let side = |task: TaskFilters| {
            Side::of_programs(format!("process {} {}", task.tid, task.name), task.filters)
        };
        Ok(tasks.into_iter().map(side).collect())
    }

    /// Writes the results in the requested forms.
    fn print(&self, report: &TestReport, global: &Global) -> Result<(), Failure> {
        if let Some(file) = &self.junit {
            OutputArgs::to(file.clone()).text(&junit::document(report))?;
            if file == Path::new("-") {
                return Ok(());
            }
        }
        match self.sarif {
            true => print(format!("{:#}\n", sarif::log(report)).as_bytes()),
            false => show(report, global),
        }
    }

    /// The results of the checks at these places for one reading, each with its place; and, if they are wanted, the rules
    /// that no check constrains.
    fn test_reading(
        &self,
        files: &[CheckFile],
        reading: &Reading<'_>,
        shared: Shared,
        is_wanted: &dyn Fn(Place) -> bool,
        global: &Global,
    ) -> Result<Results, Failure> {
        let assumed = reading.load.call_arch();
        let side = reading.side;
        side.with_subject(|subject| {
            let judge = Judge::among(*subject, assumed, shared);
            let mut judge = judge.map_err(|limit| self.limits.gave_up(&side.name, limit))?;
            let sources = sources(side);
            let mender = reading.mended;
            let mender = mender.and_then(|(own, all)| Mender::new(own, all, &self.limits));
            let compiled = OnceCell::new();
            let programs = || match compiled.get_or_init(|| self.programs(side)) {
                Ok(programs) => Ok(Vec::as_slice(programs)),
                Err(reason) => Err(String::clone(reason)),
            };
            let mut entries = Vec::new();
            for (place, file, check) in places(files).filter(|(place, ..)| is_wanted(*place)) {
                let mut decide = |reference: Option<&Subject<'_>>| {
                    let resources = Resources {
                        reference,
                        programs: &programs,
                    };
                    judge.check(&file.checks, check, &resources)
                };
                let outcome = match reading.references.get(&place) {
                    Some(side) => side.with_subject(|reference| decide(Some(reference))),
                    None => decide(None),
                };
                let mut entry = CheckEntry::new(&file.checks, check, &outcome, &sources);
                if entry.is_failure()
                    && !check.claim.targets().is_empty()
                    && let Some(mender) = &mender
                {
                    let mend = mender.mend(&mut judge, &file.checks, check);
                    entry.add_mend(mend.as_ref());
                }
                entries.push((place, entry));
            }
            let uncovered = match (self.coverage && reading.is_covered, side.filters()) {
                (false, _) => None,
                (true, [Loaded::Policy(policy)]) => {
                    let found = uncovered(&mut judge, files, policy, reading);
                    let found = found.map_err(|limit| self.limits.gave_up(&side.name, limit))?;
                    let entries = found.iter().map(|own| UncoveredEntry::new(own, &sources));
                    Some(entries.collect())
                }
                (true, _) => {
                    let name = &side.name;
                    global.notice(&format!("{name} has no rules that checks could constrain"));
                    None
                }
            };
            Ok(Results {
                checks: entries,
                uncovered,
                shared: judge.into_shared(),
            })
        })
    }

    /// The programs that the kernel runs for a side.
    fn programs(&self, side: &Side) -> Result<Vec<Program>, String> {
        let options = tamis_compiler::CompileOptions {
            kernel: self.load.kernel,
            ..budget::compile_options()
        };
        let filters = side.filters().iter().cloned();
        let programs = filters.map(|filter| Ok(filter.into_program(&options)?.program));
        let programs: Result<Vec<Program>, Failure> = programs.collect();
        programs.map_err(|failure| format!("not checked: {}", failure.message()))
    }
}

/// The rules of a policy that no check constrains.
fn uncovered(
    judge: &mut Judge<'_>,
    files: &[CheckFile],
    policy: &Policy,
    reading: &Reading<'_>,
) -> Result<Vec<Uncovered>, LimitReached> {
    let mut constraints = Vec::new();
    for (place, file, check) in places(files) {
        let reference = reading.references.get(&place);
        let reference = reference.map(|side| side.with_subject(|own| judge.reference(own)));
        constraints.push(Constraint {
            checks: &file.checks,
            check,
            reference: reference.transpose()?,
        });
    }
    judge.coverage(&policy.ruleset, &constraints)
}

/// Reads a file of checks. Embedded checks take precedence over a file of the same name, with a note.
fn read_input(path: &str, global: &Global) -> Result<Input, Failure> {
    let Some(file) = standard::standard(path) else {
        return Ok(files::read(path)?);
    };
    if Path::new(path).is_file() {
        global.notice(&format!(
            "note: {path} are embedded checks; the file of that name here is `./{path}`"
        ));
    }
    Ok(Input::new(file.name, file.text))
}

/// The path of a reference: names of embedded policies stand for themselves, others are relative to the file.
fn relative_to(reference: &str, file: &str) -> String {
    if Input::embedded(reference).is_some() {
        return reference.to_owned();
    }
    let folder = path_of(file).parent().map(Path::to_path_buf);
    folder.unwrap_or_default().join(path_of(reference)).text()
}

fn unreadable(check: &Check, reference: &str, failure: &Failure, sources: &Sources) -> Failure {
    let message = format!("cannot read the reference `{reference}`");
    let diagnostic = Diagnostic::error(code::CHECKS_REFERENCE, message)
        .label(check.span, "compared here")
        .note(failure.message());
    Failure::Diagnostics(vec![diagnostic], sources.clone())
}

fn unknown_parameter(name: &str, parameters: &[String]) -> Failure {
    let message = format!("no file of checks has a parameter `{name}`");
    let near = suggest::nearest(name, parameters.iter().map(String::as_str));
    Failure::usage(message, help_to_choose(near, "parameters", parameters))
}

fn unknown_group(group: &str, files: &[CheckFile]) -> Failure {
    let groups = files.iter().flat_map(|file| &file.checks.groups);
    let titles: Vec<String> = groups.map(|group| group.title.clone()).collect();
    let message = format!("no file of checks has a group `{group}`");
    let near = suggest::nearest(group, titles.iter().map(String::as_str));
    Failure::usage(message, help_to_choose(near, "groups", &titles))
}

fn help_to_choose(near: Option<&str>, what: &str, all: &[String]) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if all.is_empty() => format!("there are no {what}"),
        None => {
            let all: Vec<String> = all.iter().map(|own| format!("`{own}`")).collect();
            format!("the {what} are {}", all.join(", "))
        }
    }
}

/// The texts of all filters of a side.
fn sources(side: &Side) -> Sources {
    let mut all = Sources::new();
    for filter in side.filters() {
        if let Loaded::Policy(policy) = filter {
            for source in policy.sources.iter() {
                all.add(source.name.clone(), source.text.clone());
            }
        }
    }
    all
}

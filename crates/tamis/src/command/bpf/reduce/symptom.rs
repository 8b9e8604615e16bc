//! The symptoms that `tamis bpf reduce` preserves.

use std::cell::Cell;
use std::fs;
use std::mem::{Discriminant, discriminant};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use tamis_abi::{Arch, SeccompData};
use tamis_bpf::Stack;
use tamis_compiler::{CompileError, CompileOptions, compile};
use tamis_diag::{Code, Diagnostic, suggest};
use tamis_fuzz::Campaign;
use tamis_lint::{LintInput, Meaning, Statements, registry};
use tamis_prover::{Answer, Limits, Stop, decide};
use tamis_session::path_text::PathText;
use tamis_session::{Input, Loaded, Side, SideOptions};

use super::{Args, file_name};
use crate::cli::input::shell_word;
use crate::cli::load::LoadArgs;
use crate::cli::private::Scratch;
use crate::cli::side;
use crate::cli::{Failure, Global, call, quietly};
use crate::code;

/// The number of random calls to try if the prover finds none.
const EVALUATIONS: u64 = 1_000_000;

/// A symptom.
pub(super) enum Symptom {
    /// The actions for these calls; for the first one the other side's action differs.
    Answers(Vec<(SeccompData, u32)>),
    /// The policy can't be compiled, for this reason.
    Uncompiled(Reason),
    /// This code is reported; a program that doesn't test the architecture is for this one.
    Reports(Code, Arch),
    /// A command exits with 0.
    Test(TestCommand),
}

/// The reason why a policy can't be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Error(Discriminant<CompileError>),
    /// A bug of tamis.
    Panic,
}

/// A text or program that may have the symptom.
pub(super) struct Candidate<'c> {
    /// The content of the file.
    pub(super) bytes: &'c [u8],
    /// The loaded input; `None` if loading panicked.
    pub(super) loaded: Option<&'c Result<Loaded, Failure>>,
}

/// A shell command and its input file, which is removed at the end.
pub(super) struct TestCommand {
    command: String,
    _folder: Scratch,
    file: PathBuf,
    /// Its last exit status.
    ended: Cell<Option<ExitStatus>>,
}

impl Symptom {
    /// The requested symptom of the input.
    pub(super) fn requested(
        args: &Args,
        load: &LoadArgs,
        input: &Input,
        global: &Global,
    ) -> Result<Symptom, Failure> {
        if args.differs.is_none() {
            load.check_kind(input)?;
        }
        if let Some(command) = &args.test {
            return TestCommand::new(command, input).map(Symptom::Test);
        }
        if let Some(code) = &args.reports {
            return known_code(code).map(|code| Symptom::Reports(code, load.call_arch()));
        }
        let copy = Input {
            name: input.name.clone(),
            bytes: input.bytes.clone(),
        };
        let given = load.load_input(copy)?;
        match &args.differs {
            Some(other) => {
                let load = load.with_kind(args.load.from);
                let own = SideOptions::parse(&args.other_options)?;
                let other = side::read_alone(other, &own, &load, global)?;
                load.check_options([&given].into_iter().chain(other.filters()))?;
                differing_call(args, load.call_arch(), &given, &other)
            }
            None => match reason(&given)? {
                Some(reason) => Ok(Symptom::Uncompiled(reason)),
                None => Err(super::no_failure(&input.name)),
            },
        }
    }

    /// The failure for an input without the symptom.
    pub(super) fn not_shown_by(&self, name: &str) -> Failure {
        let ended = match self {
            Symptom::Test(test) => test.ended.get(),
            _ => None,
        };
        match ended {
            Some(status) => Failure::usage(
                format!(
                    "{name} doesn't show the failure: the command of --test ended with {status}"
                ),
                "it must end with 0 for the input as it is, and is run by `/bin/sh -c`",
            ),
            None => super::no_failure(name),
        }
    }

    /// Whether a candidate has the symptom.
    pub(super) fn is_shown_by(&self, candidate: &Candidate<'_>) -> Result<bool, Failure> {
        let loaded = match candidate.loaded {
            Some(Ok(loaded)) => Some(loaded),
            _ => None,
        };
        match self {
            Symptom::Answers(calls) => Ok(loaded.is_some_and(|loaded| {
                let subject = loaded.subject();
                let mut calls = calls.iter();
                calls.all(|(data, ret)| subject.answer(&(*data).into()) == *ret)
            })),
            Symptom::Uncompiled(wanted) => {
                let found = loaded.map_or(Ok(None), reason)?;
                Ok(found == Some(*wanted))
            }
            Symptom::Reports(code, arch) => Ok(reports(candidate.loaded, *code, *arch)),
            Symptom::Test(test) => test.run(candidate.bytes),
        }
    }
}

/// A call for which two sides differ.
fn differing_call(
    args: &Args,
    arch: Arch,
    given: &Loaded,
    other: &Side,
) -> Result<Symptom, Failure> {
    let subject = given.subject();
    let data = match &args.call {
        Some(text) => Some(call::parse(text, arch)?),
        None => other.with_subject(|other| match decide(&subject, other, &Limits::default()) {
            Answer::Different { input, .. } => Some(input.data),
            Answer::Equal(_) => None,
            Answer::Unknown(_) => {
                let mut campaign = Campaign::new([&subject, other], 0).ok()?;
                campaign.run(EVALUATIONS).map(|found| found.data)
            }
        }),
    };
    let answers = data.map(|data| {
        let input = data.into();
        (data, subject.answer(&input), other.answer(&input))
    });
    match answers {
        Some((data, left, right)) if left != right => {
            let mut calls = vec![(data, left)];
            for text in &args.keep {
                let data = call::parse(text, arch)?;
                calls.push((data, subject.answer(&data.into())));
            }
            Ok(Symptom::Answers(calls))
        }
        _ => Err(Failure::usage(
            format!("no call is known for which {} differs", other.name),
            "`tamis prove` finds out whether there is one",
        )),
    }
}

/// The reason why a policy can't be compiled; `None` if it can.
fn reason(loaded: &Loaded) -> Result<Option<Reason>, Failure> {
    let Loaded::Policy(policy) = loaded else {
        return Err(Failure::usage(
            "--compile-fails is for policies, and the input is a program",
            "`--test` takes any command",
        ));
    };
    let compiled = quietly(|| compile(&policy.ruleset, &CompileOptions::default()));
    Ok(match compiled {
        None => Some(Reason::Panic),
        Some(Ok(_)) => None,
        Some(Err(error)) => Some(Reason::Error(discriminant(&error))),
    })
}

/// Whether reading or linting reports a code.
fn reports(loaded: Option<&Result<Loaded, Failure>>, code: Code, arch: Arch) -> bool {
    let is_among = |told: &[Diagnostic]| told.iter().any(|diagnostic| diagnostic.code == code);
    match loaded {
        Some(Err(Failure::Diagnostics(told, _))) => is_among(told),
        None | Some(Err(Failure::Message { .. })) => false,
        Some(Ok(Loaded::Policy(policy))) => {
            is_among(&policy.warnings) || finds(Meaning::Policy(&policy.ruleset), code, arch)
        }
        Some(Ok(Loaded::Program(raw))) => {
            let stack = Stack::from(raw.program.clone());
            finds(Meaning::Filters(&stack), code, arch)
        }
    }
}

/// Whether a check with this code has findings; beyond the prover's limits it has none.
fn finds(meaning: Meaning, code: Code, assumed_arch: Arch) -> bool {
    let Some(check) = registry::of_code(code) else {
        return false;
    };
    let subject = LintInput {
        meaning,
        statements: Statements::default(),
        known_until: None,
        assumed_arch,
        runtime: None,
        kernel: None,
        targets: &[],
    };
    let found = tamis_lint::run(&subject, &[check], Limits::default(), Stop::default());
    found.is_ok_and(|found| !found.findings.is_empty())
}

fn known_code(id: &str) -> Result<Code, Failure> {
    code::from_id(id).ok_or_else(|| {
        let upper = id.to_ascii_uppercase();
        let known = code::all().into_iter().map(|code| code.id);
        let help = match suggest::nearest(&upper, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "codes are those of diagnostics, such as TM0706; `tamis lint --list` lists the \
                     checks"
                    .to_owned()
            }
        };
        Failure::usage(format!("there is no code `{id}`"), help)
    })
}

impl TestCommand {
    fn new(command: &str, input: &Input) -> Result<TestCommand, Failure> {
        let folder = Scratch::new("reduce")?;
        let file = folder.path().join(file_name(input));
        let quoted = shell_word(&file.text());
        let command = match command.contains("{}") {
            true => command.replace("{}", &quoted),
            false => format!("{command} {quoted}"),
        };
        Ok(TestCommand {
            command,
            _folder: folder,
            file,
            ended: Cell::new(None),
        })
    }

    /// Whether the command exits with 0 for a file with these bytes.
    fn run(&self, bytes: &[u8]) -> Result<bool, Failure> {
        let cannot = |what: &str, error| {
            Failure::environment(format!("cannot {what} {}: {error}", self.file.text()))
        };
        fs::write(&self.file, bytes).map_err(|error| cannot("write", error))?;
        let status = Command::new("/bin/sh")
            .args(["-c", &self.command])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status
            .map(|status| {
                self.ended.set(Some(status));
                status.success()
            })
            .map_err(|error| cannot("run a test of", error))
    }
}

//! A check of a golden: runs its commands and compares the results with its sections.
//!
//! A step is a `run` or `pass` section and the sections up to the next one. Its standard input is the step's own
//! unnamed `input`, else the nearest one before it; named inputs are files in the working directory from the start.
//! Output without a section that expects it is a failure, except that standard output needs no `output` section if
//! `stats` or `eval` checks it; a pass always needs one.
//! output needs no `output` section where `stats` or `eval` judges it; a pass always needs one.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::process::ExitStatus;

use super::eval::{self, Row};
use super::file::{Golden, Section, SectionKind, normal};
use super::pass;
use super::subject::Artifact;
use crate::command::{self, CommandOutput};
use crate::diff;

/// The result of a check.
#[derive(Debug)]
pub(super) struct CheckResult {
    /// The differences, ready to be printed.
    pub(super) failures: Vec<String>,
    /// The golden with the actual texts.
    pub(super) blessed: Golden,
}

/// Runs a golden in the directory `work`, which is created anew. When blessing, different texts are not failures.
///
/// # Errors
/// If the golden is malformed or its commands cannot be run, as a sentence.
pub(super) fn check(
    golden: &Golden,
    (program, binary): (&str, &Path),
    work: &Path,
    is_blessing: bool,
) -> Result<CheckResult, String> {
    write_files(golden, work).map_err(|error| format!("in {}: {error}", work.display()))?;
    let rows: Vec<Vec<Row>> = golden
        .sections_of(SectionKind::Eval)
        .map(|section| eval::parse(&section.body, section.line + 1))
        .collect::<Result<_, _>>()?;
    let mut checker = Checker {
        golden,
        program,
        binary,
        work,
        is_blessing,
        rows: rows.concat(),
        subjects: Vec::new(),
        failures: Vec::new(),
        rewritten: Vec::new(),
        added: Vec::new(),
    };
    for step in steps(golden)? {
        checker.check_step(&step)?;
    }
    if checker.subjects.is_empty() && !checker.rows.is_empty() {
        return Err("no command wrote a program or a ruleset that `-- eval` could judge".into());
    }
    if golden.sections_of(SectionKind::Same).next().is_some() {
        checker.check_same()?;
    }
    Ok(checker.into_verdict())
}

/// One command or pass with its sections.
struct Step {
    line: usize,
    work: Work,
    /// The indices of the section that begins the step and of those that follow it.
    sections: Range<usize>,
}

/// The action of a step.
enum Work {
    /// Runs a command line.
    Run(String),
    /// Runs the pass of this name on standard input.
    Pass(String),
}

struct Checker<'a> {
    golden: &'a Golden,
    /// What the commands call the program.
    program: &'a str,
    binary: &'a Path,
    work: &'a Path,
    is_blessing: bool,
    rows: Vec<Row>,
    /// Outputs that are programs or rulesets, with the lines of their commands.
    subjects: Vec<(usize, Artifact)>,
    failures: Vec<String>,
    /// New bodies of sections, by index.
    rewritten: Vec<(usize, String)>,
    /// New sections, each with the index of the section that follows it, ascending.
    added: Vec<(usize, Section)>,
}

impl Checker<'_> {
    fn check_step(&mut self, step: &Step) -> Result<(), String> {
        let at_line = |problem: String| format!("line {}: {problem}", step.line);
        let stdin = self.write_stdin(step);
        let stdin = stdin.map_err(|error| at_line(error.to_string()))?;
        let mut failures = Vec::new();
        let outcome = match &step.work {
            Work::Run(command) => command::split(command, self.program)
                .and_then(|split| command::run(self.binary, &split, self.work, stdin.as_deref())),
            Work::Pass(name) => self.run_pass(name, step, &mut failures),
        };
        let outcome = outcome.map_err(at_line)?;
        failures.extend(self.check_exit(step, &outcome));
        let subject = Artifact::from_output(&outcome.stdout);
        if let Some(subject) = &subject {
            failures.extend(eval::check(&self.rows, subject));
        }
        let texts = self.texts(step, &outcome, subject.as_ref());
        failures.extend(self.check_texts(step, texts.map_err(at_line)?));
        self.subjects
            .extend(subject.map(|subject| (step.line, subject)));
        let by_hand = match &step.work {
            Work::Run(command) => {
                let redirection =
                    stdin.map_or(String::new(), |path| format!(" < {}", path.display()));
                let folder = self.work.display();
                format!("\nby hand: cd {folder} && {command}{redirection}")
            }
            Work::Pass(_) => String::new(),
        };
        let failures = failures.into_iter();
        self.failures
            .extend(failures.map(|failure| at_line(format!("{failure}{by_hand}"))));
        Ok(())
    }

    /// Runs a pass as if it were a command that prints the pass's result for standard input.
    fn run_pass(
        &self,
        name: &str,
        step: &Step,
        failures: &mut Vec<String>,
    ) -> Result<CommandOutput, String> {
        let input = self.stdin(step).map_or("", |input| input.body.as_str());
        let run = pass::run(name, input)?;
        failures.extend(eval::check(&self.rows, &run.before));
        failures.extend(run.broken_promises(&self.rows)?);
        Ok(CommandOutput {
            stdout: run.text.into_bytes(),
            stderr: String::new(),
            status: ExitStatus::default(),
        })
    }

    /// The standard input of a step: its own, else the nearest one before it.
    fn stdin(&self, step: &Step) -> Option<&Section> {
        let is_stdin =
            |section: &&Section| section.kind == SectionKind::Input && section.argument.is_empty();
        let sections = &self.golden.sections;
        let own = sections[step.sections.clone()].iter().find(is_stdin);
        let earlier = sections[..step.sections.start].iter().rfind(is_stdin);
        own.or(earlier)
    }

    fn write_stdin(&self, step: &Step) -> io::Result<Option<PathBuf>> {
        let Some(input) = self.stdin(step) else {
            return Ok(None);
        };
        let path = self.work.join(format!("stdin.{}", input.line));
        fs::write(&path, &input.body)?;
        Ok(Some(path))
    }

    fn find(&self, step: &Step, kind: SectionKind) -> Option<usize> {
        let mut indices = step.sections.clone();
        indices.find(|index| self.golden.sections[*index].kind == kind)
    }

    fn check_exit(&self, step: &Step, outcome: &CommandOutput) -> Vec<String> {
        let actual = outcome.status.code();
        let (is_right, expected) = match self.find(step, SectionKind::Exit) {
            Some(index) => {
                let code = &self.golden.sections[index].argument;
                (actual == code.parse().ok(), format!("exit code {code}"))
            }
            None if self.find(step, SectionKind::Error).is_some() => (
                actual.is_some_and(|code| code != 0),
                "an exit code other than 0 (if this is a warning, write `-- exit 0`)".to_owned(),
            ),
            None => (actual == Some(0), "exit code 0".to_owned()),
        };
        if is_right {
            return Vec::new();
        }
        let CommandOutput { status, stderr, .. } = outcome;
        vec![format!(
            "expected {expected}, got {status}\nstandard error:\n{stderr}"
        )]
    }

    /// The texts of a result that have a section or need one.
    fn texts(
        &self,
        step: &Step,
        outcome: &CommandOutput,
        subject: Option<&Artifact>,
    ) -> Result<Vec<(SectionKind, String)>, String> {
        let mut texts = Vec::new();
        let has_stats = self.find(step, SectionKind::Stats).is_some();
        let is_judged = has_stats || subject.is_some() && !self.rows.is_empty();
        let is_command = matches!(step.work, Work::Run(_));
        if !(is_judged && is_command) || self.find(step, SectionKind::Output).is_some() {
            let text = str::from_utf8(&outcome.stdout).map_err(
                |_| "standard output is not text: add `| tamis bpf disasm`, `-- stats` or `-- eval`",
            )?;
            texts.push((SectionKind::Output, text.to_owned()));
        }
        if has_stats {
            let stats = subject.and_then(Artifact::stats);
            let stats = stats.ok_or("`-- stats` needs a program on standard output")?;
            texts.push((SectionKind::Stats, stats));
        }
        texts.push((SectionKind::Error, outcome.stderr.clone()));
        Ok(texts)
    }

    /// Compares texts with their sections; when blessing, records the replacements.
    fn check_texts(&mut self, step: &Step, texts: Vec<(SectionKind, String)>) -> Vec<String> {
        let mut failures = Vec::new();
        for (kind, text) in texts {
            let actual = normal(&text);
            let index = self.find(step, kind);
            let expected = index.map_or("", |index| self.golden.sections[index].body.as_str());
            let difference = diff::unified(expected, &actual);
            match index {
                _ if difference.is_empty() => {}
                _ if !self.is_blessing => {
                    let name = kind.name();
                    failures.push(format!("`-- {name}` differs:\n{difference}"));
                }
                Some(index) => self.rewritten.push((index, actual)),
                None => {
                    let is_about_the_file =
                        |index: &usize| self.golden.sections[*index].kind.is_about_the_file();
                    let position = step.sections.clone().find(is_about_the_file);
                    let position = position.unwrap_or(step.sections.end);
                    self.added.push((position, Section::new(kind, actual)));
                }
            }
        }
        failures
    }

    /// Proves that all programs and rulesets are equivalent.
    fn check_same(&mut self) -> Result<(), String> {
        let [(first_line, first), others @ ..] = self.subjects.as_slice() else {
            return Err("no command wrote a program or a ruleset to compare".to_owned());
        };
        if others.is_empty() {
            return Err("`-- same` compares two or more programs or rulesets".to_owned());
        }
        for (line, other) in others {
            if let Some(difference) = first.difference(other)? {
                self.failures.push(format!(
                    "lines {first_line} and {line} are not the same: {difference}"
                ));
            }
        }
        Ok(())
    }

    fn into_verdict(self) -> CheckResult {
        let mut blessed = self.golden.clone();
        for (index, body) in self.rewritten {
            blessed.sections[index].body = body;
        }
        for (index, section) in self.added.into_iter().rev() {
            blessed.sections.insert(index, section);
        }
        CheckResult {
            failures: self.failures,
            blessed,
        }
    }
}

fn steps(golden: &Golden) -> Result<Vec<Step>, String> {
    let begins_step = |index: &usize| golden.sections[*index].kind.begins_step();
    let mut starts: Vec<usize> = (0..golden.sections.len()).filter(begins_step).collect();
    starts.push(golden.sections.len());
    let step = |bounds: &[usize]| {
        let first = &golden.sections[bounds[0]];
        let mut lines = first.body.lines();
        let work = match (first.kind, lines.next(), lines.next()) {
            (SectionKind::Pass, None, _) => Work::Pass(first.argument.clone()),
            (SectionKind::Run, Some(command), None) => Work::Run(command.to_owned()),
            (SectionKind::Pass, ..) => {
                return Err(format!("line {}: `-- pass` holds nothing", first.line));
            }
            _ => return Err(format!("line {}: `-- run` holds one line", first.line)),
        };
        Ok(Step {
            line: first.line,
            work,
            sections: bounds[0]..bounds[1],
        })
    };
    starts.windows(2).map(step).collect()
}

/// Creates the working directory and the named inputs in it.
fn write_files(golden: &Golden, work: &Path) -> io::Result<()> {
    if work.exists() {
        fs::remove_dir_all(work)?;
    }
    fs::create_dir_all(work)?;
    for input in golden.sections_of(SectionKind::Input) {
        let name = Path::new(&input.argument);
        let is_inside = name
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !is_inside {
            let message = format!("input `{}` is not inside the folder", name.display());
            return Err(io::Error::other(message));
        }
        if !input.argument.is_empty() {
            let path = work.join(name);
            fs::create_dir_all(path.parent().unwrap_or(work))?;
            fs::write(path, &input.body)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    /// Checks a golden with `cat` instead of `tamis`.
    fn check_with_cat(name: &str, text: &str, is_blessing: bool) -> Result<CheckResult, String> {
        let scratch = Scratch::new(name).map_err(|error| error.to_string())?;
        let golden = Golden::parse(text)?;
        check(
            &golden,
            ("tamis", Path::new("/bin/cat")),
            &scratch.path().join("work"),
            is_blessing,
        )
    }

    #[test]
    fn a_step_reads_its_own_input_else_the_nearest_before_it() {
        let text = "-- input\na\n-- run\ntamis\n-- output\na\n\
                    -- run\ntamis - f\n-- input\nb\n-- output\nb\nc\n-- input f\nc\n\
                    -- run\ntamis | tamis\n-- output\nb\n";
        let checked = check_with_cat("input", text, false).unwrap();
        assert!(checked.failures.is_empty(), "{:?}", checked.failures);
    }

    #[test]
    fn unexpected_output_exit_code_and_error_text_are_failures() {
        let output = check_with_cat("output", "-- run\ntamis\n-- input\na\n", false).unwrap();
        assert_eq!(output.failures.len(), 1);
        assert!(output.failures[0].contains("`-- output` differs:\n@@ "));
        assert!(output.failures[0].contains("@@\n+a\n"));
        let exit = check_with_cat("exit", "-- run\ntamis missing\n", false).unwrap();
        assert_eq!(exit.failures.len(), 2, "exit code and standard error");
        let wrong_code = "-- run\ntamis\n-- exit 1\n";
        let exit = check_with_cat("code", wrong_code, false).unwrap();
        assert!(exit.failures[0].contains("expected exit code 1"));
    }

    #[test]
    fn blessing_writes_texts_but_not_meaning() {
        let text = "-- run\ntamis\n\n-- input\na\n\n-- output\nb\n\n-- exit 1\n\n-- run\ntamis\n";
        let checked = check_with_cat("bless", text, true).unwrap();
        let expected = "-- run\ntamis\n\n-- input\na\n\n-- output\na\n\n-- exit 1\n\n\
                        -- run\ntamis\n\n-- output\na\n";
        assert_eq!(checked.blessed.to_string(), expected);
        assert_eq!(checked.failures.len(), 1, "the exit code still differs");
    }

    #[test]
    fn rows_judge_a_ruleset_and_replace_its_output() {
        let ruleset = "ruleset bad-arch kill_thread\nsection x86_64 default errno(1)\n  0: allow\n";
        let text = format!(
            "-- run\ntamis\n-- input\n{ruleset}-- eval\nx86_64 read(3) -> allow\n\
             x86_64 1 -> allow\n0x28 0 -> kill_thread\n"
        );
        let checked = check_with_cat("eval", &text, false).unwrap();
        assert_eq!(checked.failures.len(), 1);
        let expected = "line 1: the ruleset answers errno(1) to line 9: x86_64 1 -> allow";
        assert!(
            checked.failures[0].starts_with(expected),
            "{:?}",
            checked.failures
        );
    }

    #[test]
    fn a_pass_is_held_to_its_promises_and_its_output_to_the_text() {
        let text = "-- pass drop-unreachable\n-- input\nld [0]\nret #0\n\
                    -- output\n        ld [0]\n        ret #0x0\n-- eval\nx86_64 0 -> kill_thread\n";
        let checked = check_with_cat("pass", text, false).unwrap();
        assert!(checked.failures.is_empty(), "{:?}", checked.failures);
        let unknown = check_with_cat("nopass", "-- pass frobnicate\n", false).unwrap_err();
        assert_eq!(unknown, "line 1: there is no pass `frobnicate`");
    }

    #[test]
    fn differing_rulesets_are_told_apart_by_a_call() {
        let ruleset = |nr: u32| {
            format!("ruleset bad-arch allow\nsection x86_64 default allow\n  {nr}: errno(1)\n")
        };
        let step = |nr: u32| format!("-- run\ntamis\n-- input\n{}", ruleset(nr));
        let eval = "-- same\n-- eval\nx86_64 0 -> allow\n";
        let same = check_with_cat("same", &(step(1) + &step(1) + eval), false).unwrap();
        assert!(same.failures.is_empty(), "{:?}", same.failures);
        let other = check_with_cat("other", &(step(1) + &step(2) + eval), false).unwrap();
        assert_eq!(other.failures.len(), 1);
        let failure = &other.failures[0];
        assert!(
            failure.contains("errno(1)") && failure.contains("allow"),
            "{failure}"
        );
    }

    #[test]
    fn rows_without_anything_to_judge_are_a_mistake() {
        let text = "-- run\ntamis\n-- input\nx\n-- output\nx\n-- eval\nx86_64 0 -> allow\n";
        let error = check_with_cat("nothing", text, false).unwrap_err();
        assert!(
            error.contains("no command wrote a program or a ruleset"),
            "{error}"
        );
    }

    #[test]
    fn inputs_stay_inside_the_folder() {
        for name in ["../x", "/tmp/x"] {
            let text = format!("-- run\ntamis\n-- input {name}\nx\n");
            assert!(check_with_cat("escape", &text, false).is_err());
        }
    }
}

//! The results of suites, read from their output: how many tests passed, failed and were skipped, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::machine::BEGIN;
use super::suite::Suite;

/// The result of one suite on one kernel.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SuiteResult {
    name: &'static str,
    passed: u32,
    /// The tests that failed, and runs of an executable that ended without a result.
    failures: Vec<String>,
    /// The reasons why tests were ignored, with the number of tests.
    ignored: BTreeMap<String, u32>,
    /// The tests of the present run that have ended.
    ended: BTreeSet<String>,
    /// The test whose outcome is still to come.
    begun: Option<String>,
    /// Whether a test of the present run has failed.
    has_named_failure: bool,
}

impl SuiteResult {
    /// Whether all tests passed, and there were some.
    pub(super) fn is_passed(&self) -> bool {
        self.failures.is_empty() && self.passed > 0
    }

    fn read_line(&mut self, line: &str) {
        let test = line.strip_prefix("test ");
        if let Some((name, outcome)) = test.and_then(|test| test.rsplit_once(" ... ")) {
            let name = name.trim_end();
            // A program of the test may print before the outcome, which then has a line of its own.
            self.begun = outcome.is_empty().then(|| name.to_owned());
            self.read_outcome(name, outcome);
        } else if let Some(name) = self.begun.take_if(|_| matches!(line, "ok" | "FAILED")) {
            self.read_outcome(&name, line);
        } else if let Some(name) = line.strip_prefix("@lab test ")
            && !self.ended.contains(name)
        {
            self.failures
                .push(format!("{name}: it hasn't ended within the run's limit"));
        }
    }

    fn read_outcome(&mut self, name: &str, outcome: &str) {
        match outcome.split_once(" (").unwrap_or((outcome, "")) {
            ("ok", "") => self.passed += 1,
            ("FAILED", "") => {
                self.failures.push(name.to_owned());
                self.has_named_failure = true;
            }
            ("ignored", reason) => {
                let reason = reason.strip_suffix(')').unwrap_or(reason);
                *self.ignored.entry(reason.to_owned()).or_default() += 1;
            }
            _ => return,
        }
        self.ended.insert(name.to_owned());
    }

    /// Reads the exit code of a run.
    fn end(&mut self, code: &str) {
        match code {
            "0" => {}
            "101" if self.has_named_failure => {}
            "124" | "137" => self.failures.push("a run reached its limit".to_owned()),
            code => self.failures.push(format!("a run ended with {code}")),
        }
        self.ended.clear();
        self.begun = None;
        self.has_named_failure = false;
    }
}

/// The results of suites, from the lines of a console.
pub(super) fn read(suites: &[&Suite], lines: &[String]) -> Vec<SuiteResult> {
    let new = |suite: &&Suite| SuiteResult {
        name: suite.name,
        ..SuiteResult::default()
    };
    let mut results: Vec<SuiteResult> = suites.iter().map(new).collect();
    let mut open = None;
    let mut runs = vec![0; suites.len()];
    for line in lines {
        if let Some(name) = line.strip_prefix(BEGIN) {
            let name = name.split(' ').next();
            open = suites.iter().position(|suite| Some(suite.name) == name);
        } else if let Some(end) = line.strip_prefix("@lab end ") {
            if let Some(index) = open.take() {
                runs[index] += 1;
                results[index].end(end.rsplit(' ').next().unwrap_or_default());
            }
        } else if let Some(index) = open {
            results[index].read_line(line);
        }
    }
    for (index, suite) in suites.iter().enumerate() {
        if runs[index] < suite.filters.len() {
            results[index]
                .failures
                .push("the machine stopped before its end".to_owned());
        }
    }
    results
}

/// Prints what failed and what skipped.
pub(super) fn print(results: &[SuiteResult]) {
    for result in results {
        println!(
            "{}: {} passed, {} failed, {} ignored",
            result.name,
            result.passed,
            result.failures.len(),
            result.ignored.values().sum::<u32>()
        );
        for failure in &result.failures {
            println!("  failed: {failure}");
        }
        for (reason, count) in &result.ignored {
            println!("  ignored ({count}): {reason}");
        }
    }
}

/// Kernels and suites.
pub(super) struct Table {
    suites: Vec<&'static str>,
    rows: Vec<(&'static str, Vec<SuiteResult>)>,
}

impl Table {
    /// A table without kernels.
    pub(super) fn new(suites: &[&Suite]) -> Table {
        Table {
            suites: suites.iter().map(|suite| suite.name).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a kernel.
    pub(super) fn add(&mut self, kernel: &'static str, results: Vec<SuiteResult>) {
        self.rows.push((kernel, results));
    }

    /// Whether all suites passed on all kernels.
    pub(super) fn is_passed(&self) -> bool {
        self.rows
            .iter()
            .flat_map(|(_, results)| results)
            .all(SuiteResult::is_passed)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:16}", "passed/failed")?;
        for suite in &self.suites {
            write!(f, "{suite:>11}")?;
        }
        for (kernel, results) in &self.rows {
            write!(f, "\n{kernel:16}")?;
            for suite in &self.suites {
                let cell = results.iter().find(|result| result.name == *suite);
                let cell = cell.map_or("-".to_owned(), |result| match result.is_passed() {
                    true => result.passed.to_string(),
                    false => format!("{}/{}", result.passed, result.failures.len()),
                });
                write!(f, "{cell:>11}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::suite;
    use super::*;

    fn results(text: &str) -> Vec<SuiteResult> {
        let suites = [
            suite::by_name("exec").expect("a suite"),
            suite::by_name("filters").expect("a suite"),
        ];
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        read(&suites, &lines)
    }

    #[test]
    fn runs_of_a_suite_are_added_and_reasons_counted() {
        let tests =
            "test a  ... ok\ntest b  ... ok\ntest c: d ... ignored (live: no room (none))\n";
        let run = format!("@lab begin filters x::\n{tests}\n@lab end filters 0\n");
        assert!(!results(&run.repeat(3))[1].is_passed(), "it has four runs");
        let all = results(&run.repeat(4));
        assert_eq!(all[1].passed, 8);
        assert_eq!(all[1].ignored.get("live: no room (none)"), Some(&4));
        assert!(all[1].is_passed(), "{:?}", all[1]);
    }

    #[test]
    fn what_did_not_end_did_not_pass() {
        let passed = "@lab begin exec \ntest a ... ok\n";
        let hangs = format!("{passed}@lab test a\n@lab test b: c\n@lab end exec 124\n");
        for (text, says) in [
            (passed.to_owned(), "stopped"),
            (String::new(), "stopped"),
            (
                hangs,
                "b: c: it hasn't ended within the run's limit\na run reached its limit",
            ),
            (format!("{passed}@lab end exec 139\n"), "139"),
            (format!("{passed}@lab end exec 101\n"), "101"),
            (
                format!("{passed}test b  ... \nit panicked\nFAILED\n@lab end exec 101\n"),
                "b",
            ),
            (
                format!("{passed}test a::b ... FAILED\n@lab end exec 101\n"),
                "a::b",
            ),
        ] {
            let all = results(&text);
            assert!(!all[0].is_passed(), "{text}");
            let failures = all[0].failures.join("\n");
            assert!(failures.contains(says), "{text}: {failures}");
            assert!(!failures.contains("a: it hasn't"), "{text}: {failures}");
        }
        let none = results("@lab begin exec \n@lab end exec 0\n");
        assert!(!none[0].is_passed(), "a filter that selects nothing");
    }
}

//! The results of suites, read from their output: how many tests passed, failed and were skipped, and why.

use std::collections::BTreeMap;
use std::fmt;

use super::suite::Suite;

/// The result of one suite on one kernel.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SuiteResult {
    name: &'static str,
    passed: u32,
    failed: u32,
    ignored: u32,
    /// The tests that failed, and runs of an executable that ended without a result.
    failures: Vec<String>,
    /// The reasons why tests were skipped, with the number of tests.
    skipped: BTreeMap<String, u32>,
}

impl SuiteResult {
    /// Whether all tests passed, and there were some.
    pub(super) fn is_passed(&self) -> bool {
        self.failures.is_empty() && self.failed == 0 && self.passed > 0
    }

    fn read_line(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            for part in counts.split(['.', ';']) {
                let count = match part.trim().split_once(' ') {
                    Some((number, "passed")) => (&mut self.passed, number),
                    Some((number, "failed")) => (&mut self.failed, number),
                    Some((number, "ignored")) => (&mut self.ignored, number),
                    _ => continue,
                };
                *count.0 += count.1.parse::<u32>().unwrap_or(0);
            }
        } else if let Some(test) = line
            .strip_prefix("test ")
            .filter(|line| line.ends_with("FAILED"))
        {
            let name = test
                .trim_end_matches("FAILED")
                .trim_end()
                .trim_end_matches("...");
            self.failures.push(name.trim_end().to_owned());
        } else if let Some((_, reason)) = line
            .split_once("skipped: ")
            .or_else(|| line.split_once("... ignored, "))
        {
            *self.skipped.entry(reason.to_owned()).or_default() += 1;
        }
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
        if let Some(name) = line.strip_prefix("@lab begin ") {
            let name = name.split(' ').next();
            open = suites.iter().position(|suite| Some(suite.name) == name);
        } else if let Some(end) = line.strip_prefix("@lab end ") {
            if let Some(index) = open.take() {
                runs[index] += 1;
                match end.rsplit(' ').next() {
                    Some("0" | "101") => {}
                    Some("124" | "137") => results[index]
                        .failures
                        .push("the time of a run was up".to_owned()),
                    code => results[index]
                        .failures
                        .push(format!("a run ended with {}", code.unwrap_or("nothing"))),
                }
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
        let (passed, failed, ignored) = (result.passed, result.failed, result.ignored);
        println!(
            "{}: {passed} passed, {failed} failed, {ignored} ignored",
            result.name
        );
        for failure in &result.failures {
            println!("  failed: {failure}");
        }
        for (reason, count) in &result.skipped {
            println!("  skipped ({count}): {reason}");
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
    pub(super) fn new(suites: &[&'static Suite]) -> Table {
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
        let end = "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out\n\n@lab end filters 0\n";
        let run = format!("@lab begin filters x::\nskipped: no room\nskipped: no room\n{end}");
        let all = results(&run.repeat(5));
        assert_eq!((all[1].passed, all[1].ignored), (10, 5));
        assert_eq!(all[1].skipped.get("no room"), Some(&10));
        assert!(all[1].is_passed());
    }

    #[test]
    fn what_did_not_end_did_not_pass() {
        let passed = "@lab begin exec \ntest result: ok. 2 passed; 0 failed\n";
        for (text, says) in [
            (passed.to_owned(), "stopped"),
            (String::new(), "stopped"),
            (format!("{passed}@lab end exec 124\n"), "time"),
            (format!("{passed}@lab end exec 139\n"), "139"),
            ("@lab begin exec \ntest a::b ... FAILED\ntest result: FAILED. 0 passed; 1 failed\n@lab end exec 101\n".to_owned(), "a::b"),
        ] {
            let all = results(&text);
            assert!(!all[0].is_passed(), "{text}");
            assert!(all[0].failures.iter().any(|failure| failure.contains(says)), "{text}: {:?}", all[0]);
        }
        let none =
            results("@lab begin exec \ntest result: ok. 0 passed; 0 failed\n@lab end exec 0\n");
        assert!(!none[0].is_passed(), "a filter that selects nothing");
    }
}

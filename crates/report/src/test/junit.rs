//! Results of checks as JUnit's XML, which systems for continuous integration show: a suite per policy, a case per check.

use std::fmt::Write as _;

use super::{CheckEntry, TestReport, TestedEntry};

/// The document.
pub fn document(report: &TestReport) -> String {
    let tests = report.holds + report.fails + report.undecided;
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuites name=\"tamis test\" tests=\"{tests}\" failures=\"{}\" errors=\"{}\">",
        report.fails, report.undecided
    );
    for tested in &report.policies {
        suite(&mut text, tested);
    }
    text + "</testsuites>\n"
}

fn suite(text: &mut String, tested: &TestedEntry) {
    let count = |is_counted: fn(&CheckEntry) -> bool| {
        tested.checks.iter().filter(|own| is_counted(own)).count()
    };
    let _ = writeln!(
        text,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">",
        escaped(&tested.policy),
        tested.checks.len(),
        count(CheckEntry::is_failure),
        count(CheckEntry::is_undecided)
    );
    for check in &tested.checks {
        case(text, check);
    }
    text.push_str("  </testsuite>\n");
}

fn case(text: &mut String, check: &CheckEntry) {
    let group = check.group.as_deref().unwrap_or(&check.file);
    let _ = write!(
        text,
        "    <testcase name=\"{}\" classname=\"{}\" file=\"{}\" line=\"{}\"",
        escaped(&check.check),
        escaped(group),
        escaped(&check.file),
        check.line
    );
    let (element, message) = match (check.is_failure(), &check.limit) {
        (true, _) => ("failure", check.code.title),
        (false, Some(limit)) => ("error", limit.as_str()),
        (false, None) => {
            text.push_str("/>\n");
            return;
        }
    };
    let _ = writeln!(
        text,
        ">\n      <{element} message=\"{}\">{}</{element}>\n    </testcase>",
        escaped(message),
        escaped(check.details("").trim_end())
    );
}

/// A text in XML: with references for its signs, and without control characters, which XML can't express.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push(sign),
            _ if sign.is_control() || matches!(sign, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            _ => escaped.push(sign),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn signs_of_xml_and_control_characters_are_escaped() {
        assert_eq!(
            escaped("a<b>&\"\u{1b}\n"),
            "a&lt;b&gt;&amp;&quot;\u{fffd}\n"
        );
    }
}

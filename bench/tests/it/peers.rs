//! The comparison with other compilers, without times: each compiler's input is equivalent to the policy, its
//! programs are too, and the document has the form described in the book.

use std::process::{Command, Output};

use serde_json::Value;
use tamis_abi::{Arch, Endian};
use tamis_bench::gvisor::Compiler;
use tamis_bench::peers::builders;
use tamis_bench::peers::cases::{allow, cases, unclaimed};
use tamis_bench::peers::comparison::{Compared, Origin, Row, compared};
use tamis_bench::peers::judge::Meaning;
use tamis_bench::peers::plain::{Comparison, Condition, PlainRule, plain_rules};
use tamis_bench::peers::rfc::experiment;
use tamis_bench::peers::tools::Compilers;
use tamis_prover::{ComparisonResult, Limits, Scope, Subject, prove};
use tamis_rules::{IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Test};
use tamis_testkit::corpus;
use tamis_testkit::generate::ruleset::{Size, ruleset};
use tamis_testkit::libseccomp::Library;
use tamis_testkit::rng::Rng;
use tamis_testkit::skip::{self, Need};

/// Stored programs that are not equivalent to the policy of their case, with the reason.
const DIFFERING: [(&str, &str); 17] = [
    // It denies x32 numbers with an error of their own, and also -1.
    ("306 numbers", "go-seccomp-bpf"),
    ("302 numbers with gaps", "go-seccomp-bpf"),
    ("docker x86_64", "go-seccomp-bpf"),
    ("docker x86_64, allow only", "go-seccomp-bpf"),
    ("firecracker vmm", "go-seccomp-bpf"),
    // It kills for numbers that are not in the list.
    ("306 numbers", "minijail-c"),
    ("firecracker vmm", "minijail-c"),
    // It compares 64 bits where the policy compares 32.
    ("firecracker vmm", "minijail-bst"),
    ("firecracker vmm", "minijail-bst-freq"),
    ("firecracker vmm", "minijail-linear"),
    ("firecracker vmm", "minijail-linear-freq"),
    // The rules of that version were different.
    ("gvisor sentry systrap", "gvisor 2023-09"),
    ("gvisor sentry systrap", "gvisor 2024-02.opt"),
    ("gvisor sentry systrap", "gvisor 2024-02.unopt"),
    ("gvisor sentry nvproxy", "gvisor 2023-09"),
    ("gvisor sentry nvproxy", "gvisor 2024-02.opt"),
    ("gvisor sentry nvproxy", "gvisor 2024-02.unopt"),
];

/// A case in which the libraries know fewer calls than Docker's profile names.
const OLD_TABLES: &str = "docker, three architectures";

/// The cases of the corpus with the results of all tools, of these two if they are given; nothing is timed.
fn all_compared(libseccomp: Option<Library>, gvisor: Option<Compiler>) -> Vec<Compared> {
    corpus::path("");
    let compilers = Compilers { libseccomp, gvisor };
    let cases = cases().into_iter();
    cases
        .map(|case| compared(&case, &compilers, None))
        .collect()
}

fn library() -> Library {
    Library::open().unwrap_or_else(|reason| skip::because(Need::Peers, reason))
}

fn gvisor() -> Compiler {
    Compiler::open().unwrap_or_else(|reason| skip::because(Need::Gvisor, reason))
}

/// A ruleset of plain rules, with everything else as in another ruleset.
fn reassembled(ruleset: &Ruleset, section: &Section, rules: &[PlainRule]) -> Ruleset {
    let rule = |rule: &PlainRule| Rule {
        syscalls: IntervalSet::single(rule.nr),
        when: Predicate::All(rule.conditions.iter().map(predicate).collect()),
        action: rule.action,
        origin: None,
    };
    let section = Section {
        rules: rules.iter().map(rule).collect(),
        ..section.clone()
    };
    Ruleset::new(vec![section], ruleset.bad_arch).expect("one section")
}

fn predicate(condition: &Condition) -> Predicate {
    let operand = match condition.is_low {
        true => Operand::arg_low(condition.arg),
        false => Operand::arg(condition.arg),
    };
    match condition.test {
        Comparison::With(op, value) => Predicate::compare(operand, op, value),
        Comparison::Masked { mask, value } => Predicate::Test(Test::Masked {
            operand,
            mask,
            value,
        }),
    }
}

/// Whether the plain rules of a section are equivalent to the section; `None` if they cannot express it.
fn is_said(ruleset: &Ruleset, section: &Section) -> Option<bool> {
    let plain = reassembled(ruleset, section, &plain_rules(section).ok()?);
    let scope = Scope {
        arches: vec![section.arch],
        ..Scope::default()
    };
    let subjects = [Subject::Ruleset(ruleset), Subject::Ruleset(&plain)];
    let report = prove(&subjects[0], &subjects[1], &scope, &Limits::default());
    Some(report.result == Ok(ComparisonResult::Equal))
}

#[test]
fn what_other_compilers_are_fed_means_the_policy() {
    let mut rng = Rng::new(0);
    let random = (0..400).map(|_| ruleset(&mut rng, Size::SMALL, Endian::Little));
    let said = said(random);
    assert!(said > 90, "only {said} sections could be said");
}

#[test]
fn what_other_compilers_are_fed_means_the_policy_of_the_corpus() {
    corpus::path("");
    let cases = cases().into_iter();
    let said = said(cases.filter_map(|case| case.ruleset().cloned()));
    assert!(said > 5, "only {said} sections could be said");
}

/// The number of sections that plain rules can express, which must be equivalent.
fn said(rulesets: impl Iterator<Item = Ruleset>) -> usize {
    let mut said = 0;
    for ruleset in rulesets {
        for section in ruleset.sections() {
            if let Some(is_same) = is_said(&ruleset, section) {
                assert!(is_same, "{ruleset:?}");
                said += 1;
            }
        }
    }
    said
}

#[test]
fn every_stored_program_belongs_to_a_case() {
    assert_eq!(unclaimed(), Vec::<String>::new());
}

/// Programs do what the policy says, but for the known ones that were made elsewhere.
fn assert_meaning(compared: &[Compared]) {
    let mut differing = Vec::new();
    for policy in compared {
        for row in &policy.rows {
            let Some(filters) = row.filters() else {
                assert!(!row.tool.starts_with("tamis"), "{}: {row:?}", policy.policy);
                continue;
            };
            match filters.meaning {
                Meaning::Equal => {}
                _ if row.tool.starts_with("tamis") => panic!("{}: {row:?}", policy.policy),
                Meaning::EqualForItsArchitectures { .. } => {}
                _ if row.from == Origin::Here && policy.policy == OLD_TABLES => {}
                _ => differing.push((policy.policy, row.tool.as_str())),
            }
        }
    }
    let mut expected = DIFFERING.to_vec();
    expected.sort_unstable();
    differing.sort_unstable();
    assert_eq!(differing, expected);
}

/// The number of programs made here by a tool that cost what its stored program for the same policy costs.
fn equally_expensive(compared: &[Compared], here: &str, file: &str) -> usize {
    let mut pairs = 0;
    for policy in compared {
        let find = |from: Origin, tool: &str| {
            let matches = |row: &&Row| row.from == from && row.tool == tool;
            policy.rows.iter().find(matches).and_then(Row::filters)
        };
        // Its stored program has an additional rule.
        let is_different = here == "seccompiler" && policy.policy == "docker x86_64, allow only";
        if let (Some(here), Some(file)) = (find(Origin::Here, here), find(Origin::File, file))
            && !is_different
        {
            assert_eq!(here.counts, file.counts, "{}", policy.policy);
            pairs += 1;
        }
    }
    pairs
}

#[test]
fn what_was_made_elsewhere_and_by_crates_does_what_the_policy_says() {
    let compared = all_compared(None, None);
    assert_meaning(&compared);
    assert!(equally_expensive(&compared, "seccompiler", "seccompiler") > 0);
}

#[test]
fn what_libseccomp_makes_does_what_the_policy_says_and_costs_what_it_made_elsewhere() {
    let library = library();
    let version = library.version();
    let compared = all_compared(Some(library), None);
    assert_meaning(&compared);
    if version == (2, 5, 4) {
        for (level, file) in [("1", ""), ("2", "-opt2")] {
            let here = format!("libseccomp 2.5.4 level {level}");
            let file = format!("libseccomp-2.5.4{file}");
            assert!(equally_expensive(&compared, &here, &file) > 0, "{here}");
        }
    }
}

#[test]
fn what_gvisor_makes_does_what_the_policy_says_and_costs_what_it_made_elsewhere() {
    let compared = all_compared(None, Some(gvisor()));
    assert_meaning(&compared);
    assert!(equally_expensive(&compared, "gvisor", "gvisor opt") > 0);
}

#[test]
fn without_the_corpus_a_list_of_numbers_is_left() {
    let ruleset = allow([0, 1, 5]);
    let section = ruleset.section(Arch::X86_64).expect("a section");
    let rules = plain_rules(section).expect("numbers are plain");
    let made = builders::seccompiler(&ruleset, &rules).expect("it compiles");
    let policy = Subject::Ruleset(&ruleset);
    let made = Subject::Program(&made);
    let scope = Scope {
        arches: vec![Arch::X86_64],
        ..Scope::default()
    };
    let report = prove(&policy, &made, &scope, &Limits::default());
    assert_eq!(report.result, Ok(ComparisonResult::Equal));
}

#[test]
fn the_experiment_puts_getppid_where_it_says() {
    let library = library();
    let experiment = experiment(Some(&library), None).expect("all tools take a list");
    let steps = |list: &str, filter: &str| {
        let line = experiment
            .lines
            .iter()
            .find(|line| line.list == list && line.filter.ends_with(filter));
        line.expect("the filter is there").steps
    };
    for list in ["consecutive", "with gaps"] {
        // Architecture, number, x32, then one comparison per number, and the return.
        assert_eq!(steps(list, "front"), 6);
        assert_eq!(steps(list, "end"), 6 + 305);
        assert!(
            (6 + 150..=6 + 155).contains(&steps(list, "middle")),
            "{list}"
        );
        assert!(steps(list, "tree") < 20);
        assert!(steps(list, "tamis") <= steps(list, "tree"));
    }
}

fn run(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_peers"))
        .args(arguments)
        .output();
    command.expect("the command can be run")
}

#[test]
fn the_document_has_the_fields_that_the_book_names() {
    let output = run(&["--counts", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let document: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    assert_eq!(document["schema"], "tamis.peers/1");
    assert_eq!(document["rounds"], Value::Null);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/book/peers.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let named = |value: &Value| {
        for name in value.as_object().expect("an object").keys() {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    };
    named(&document);
    for policy in document["policies"].as_array().expect("a list") {
        named(policy);
        let rows = policy["rows"].as_array().expect("a list");
        assert_eq!(rows[0]["tool"], "tamis");
        for row in rows {
            let Some(filters) = row.get("filters") else {
                assert!(row["refused"].is_string(), "{row}");
                continue;
            };
            named(filters);
            named(&filters["counts"]);
            assert!(filters["counts"]["length_insns"].as_u64() > Some(0));
            assert!(filters["meaning"]["verdict"].is_string());
        }
    }
    let lines = document["rfc"]["lines"].as_array().expect("a list");
    assert!(lines.len() >= 2 + 2 * 3);
}

#[test]
fn the_tables_of_the_book_are_those_that_are_printed() {
    corpus::path("");
    let output = run(&["--counts"]);
    let printed = String::from_utf8(output.stdout).expect("the tables are text");
    let titles = |text: &str| {
        let tables = text.split("\n\n").map(|table| {
            let title = table.lines().next().unwrap_or_default();
            title.split(':').next().unwrap_or_default().to_owned()
        });
        tables.collect::<Vec<String>>()
    };
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/book/peers.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let blocks = page.split("```text\n").skip(1);
    let blocks: Vec<&str> = blocks.filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty());
    let printed = titles(&printed);
    for title in blocks.into_iter().flat_map(titles) {
        assert!(printed.contains(&title), "{title}");
    }
}

#[test]
fn wrong_usage_is_said_and_has_its_exit_code() {
    for arguments in [
        &["--rounds", "0"][..],
        &["--rounds"],
        &["--fast"],
        &["--counts", "--book"],
        &["a.bpf"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "));
        assert_eq!(output.stdout, b"");
    }
    assert_eq!(run(&["--help"]).status.code(), Some(0));
}

#[test]
fn filters_are_timed_where_the_kernel_lets_us() {
    skip::unless_live();
    let experiment = experiment(None, Some(1)).expect("all tools take a list");
    assert_eq!(experiment.not_timed, None);
    for line in experiment.lines {
        assert!(line.cached_ns > Some(1.0), "{line:?}");
        assert!(line.run_ns > Some(1.0), "{line:?}");
    }
}

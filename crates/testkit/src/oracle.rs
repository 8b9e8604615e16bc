//! The classes of files that a front end and the tool of their format have read, and the rows of the book's table.
//!
//! The tool is the oracle: a front end must reject the files that the tool rejects, and read all others as the same
//! function. It may be stricter for a reason that the test lists. Everything else is [`Class::Wrong`] and fails the
//! test: a looser filter, a file that only the front end accepts, a stricter one without a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use tamis_abi::Word;
use tamis_bpf::{Op, Program};
use tamis_prover::{ComparisonResult, Limits, Report, Scope, Subject, prove};
use tamis_rules::Ruleset;

use crate::{corpus, seeds};

/// The page with the table.
const PAGE: &str = "docs/book/formats.md";

/// The class of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Both refuse it.
    BothRefuse,
    /// Both read the same function.
    Equal,
    /// The front end is stricter or refuses it, for this reason.
    Stricter(&'static str),
    /// There is nothing to compare with, for this reason.
    NotComparable(&'static str),
    /// The front end is wrong, as this shows.
    Wrong(String),
}

/// The number of files of each class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes(BTreeMap<Class, usize>);

impl Class {
    /// The class of a file, given the results of both; `None` is a rejection.
    ///
    /// `reason` is the reason for which the front end may reject a file that the tool accepts, if there is one.
    pub fn from_results(
        ours: Option<&Ruleset>,
        theirs: Option<&Program>,
        reason: impl FnOnce() -> Option<&'static str>,
    ) -> Class {
        let (ruleset, program) = match (ours, theirs) {
            (None, None) => return Class::BothRefuse,
            (Some(_), None) => return Class::Wrong("the tool refuses it".to_owned()),
            (None, Some(_)) => {
                let wrong = || Class::Wrong("the tool accepts it".to_owned());
                return reason().map_or_else(wrong, Class::Stricter);
            }
            (Some(ruleset), Some(program)) => (ruleset, program),
        };
        if contradicts_its_rules(program) {
            return Class::NotComparable("the program contradicts its rules");
        }
        let report = compared(ruleset, program, &Scope::default());
        match report.result {
            Ok(ComparisonResult::Equal) => Class::Equal,
            Ok(_) => Class::Wrong(format!("{report:x?}")),
            Err(_) => Class::NotComparable("the prover reached a limit"),
        }
    }
}

/// Compares a ruleset with a program for the calls of a scope.
pub fn compared(ruleset: &Ruleset, program: &Program, scope: &Scope) -> Report {
    let sides = (Subject::Ruleset(ruleset), Subject::Program(program));
    prove(&sides.0, &sides.1, scope, &Limits::default())
}

/// Whether a program reads an argument of calls without having tested their number, contrary to all rules.
pub fn contradicts_its_rules(program: &Program) -> bool {
    let loads = program.ops().filter_map(|op| match op {
        Op::LoadData(offset) => Word::from_offset(offset, program.endian()),
        _ => None,
    });
    let loads: BTreeSet<Word> = loads.collect();
    let reads_args = loads.iter().any(|word| *word > Word::IP_HIGH);
    reads_args && !loads.contains(&Word::NR)
}

impl Classes {
    /// Counts a file; prints it if it is wrong.
    pub fn add(&mut self, class: Class, file: &str) {
        if let Class::Wrong(why) = &class {
            crate::println!("{why:.2000}\n{file:.2000}\n");
        }
        *self.0.entry(class).or_default() += 1;
    }

    /// The classes and the number of files in each.
    pub fn iter(&self) -> impl Iterator<Item = (&Class, usize)> {
        self.0.iter().map(|(class, count)| (class, *count))
    }

    /// The number of files of the classes with a property.
    pub fn count(&self, holds: impl Fn(&Class) -> bool) -> usize {
        let counted = self.iter().filter(|(class, _)| holds(class));
        counted.map(|(_, count)| count).sum()
    }

    /// Asserts that none is wrong and that nearly all could be compared.
    ///
    /// # Panics
    /// If that isn't so; the files that are wrong have been printed.
    pub fn check(&self) {
        for (class, count) in self.iter() {
            crate::println!("{count} × {class:.100?}");
        }
        let [tried, .., wrong, unknown] = self.columns();
        assert_eq!(wrong, 0, "the files are above");
        assert!(unknown * 20 <= tried, "too few could be compared");
    }

    /// The columns of the table: tried, both refuse, equal, stricter, looser, not comparable.
    pub fn columns(&self) -> [usize; 6] {
        [
            self.count(|_| true),
            self.count(|class| *class == Class::BothRefuse),
            self.count(|class| *class == Class::Equal),
            self.count(|class| matches!(class, Class::Stricter(_))),
            self.count(|class| matches!(class, Class::Wrong(_))),
            self.count(|class| matches!(class, Class::NotComparable(_))),
        ]
    }

    /// Compares the columns with the row of a format and tool in the book if all seeds were tried: each count may be
    /// off by `tolerance`, but the first and the looser ones. `TAMIS_BLESS` writes the row.
    ///
    /// # Panics
    /// If they differ.
    pub fn check_row(&self, format: &str, tool: &str, tolerance: usize) {
        let start = format!("| {format} | {tool} | ");
        let found = self.columns();
        let columns = found.map(|count| count.to_string()).join(" | ");
        crate::println!("{start}{columns} |");
        if !seeds::is_full() {
            return;
        }
        let row = |page: &str| {
            let row = page.lines().find(|line| line.starts_with(&start));
            row.unwrap_or_else(|| panic!("{PAGE} has no row `{start}…`"))
                .to_owned()
        };
        if std::env::var_os("TAMIS_BLESS").is_some() {
            return edit_page(|page| page.replace(&row(page), &format!("{start}{columns} |")));
        }
        let row = row(&fs::read_to_string(page_path()).expect("the page is there"));
        let told = row[start.len()..].trim_end_matches(" |").split(" | ");
        let told: Vec<usize> = told.map(|count| count.parse().expect("a number")).collect();
        assert_eq!(told.len(), found.len(), "{row}");
        let is_near = |(told, found): (&usize, usize)| told.abs_diff(found) <= tolerance;
        let is_told = told.iter().zip(found).all(is_near) && told[0] == found[0];
        assert!(
            is_told && told[4] == 0,
            "{PAGE} has {row}: TAMIS_BLESS=1 writes it"
        );
    }
}

/// Writes the page with the tables anew. Tests run at the same time, so one after the other.
///
/// # Panics
/// If it can't be read or written.
pub fn edit_page(edited: impl FnOnce(&str) -> String) {
    static EDITED: Mutex<()> = Mutex::new(());
    // It guards no data that a panic could leave half written.
    let _edited = EDITED.lock().unwrap_or_else(PoisonError::into_inner);
    let page = fs::read_to_string(page_path()).expect("the page is there");
    fs::write(page_path(), edited(&page)).expect("the page can be written");
}

fn page_path() -> PathBuf {
    corpus::repository().join(PAGE)
}

//! The examples of the documents: every command produces the output that is shown.

use std::fs;
use std::path::Path;

use tamis_testkit::console;
use tamis_testkit::corpus::repository;
use tamis_testkit::skip::{self, Need};

#[test]
fn documented_commands_do_what_is_shown() {
    check("examples", false);
}

#[test]
fn documented_commands_that_install_filters_do_what_is_shown() {
    skip::unless_live();
    // The program whose calls the first chapter records.
    skip::unless_runs(Need::Peers, "python3", &["--version"]);
    check("live-examples", true);
}

/// Checks the README and the pages of the book; with live examples only the pages that have some.
fn check(folder: &str, with_live: bool) {
    let book = repository().join("docs/book");
    let mut documents = vec![repository().join("README.md")];
    for entry in fs::read_dir(&book).unwrap() {
        documents.push(entry.unwrap().path());
    }
    let mut failures = Vec::new();
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        if with_live && !text.contains("```console live") {
            continue;
        }
        let name = document.file_name().unwrap();
        let work = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(folder)
            .join(name);
        let found = console::check(&text, Path::new(crate::TAMIS), &work, with_live).unwrap();
        let place = document.display();
        failures.extend(
            found
                .into_iter()
                .map(|failure| format!("{place}: {failure}")),
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

//! The examples in the book's page about the language are correct.

use std::fs;

use tamis_abi::Arch;
use tamis_testkit::corpus::repository;

use crate::parse;

fn page() -> String {
    let path = repository().join("docs/book/language.md");
    fs::read_to_string(path).expect("the page is part of the repository")
}

#[test]
fn its_examples_are_policies() {
    let page = page();
    let examples: Vec<&str> = page
        .split("```tamis\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect();
    assert!(examples.len() > 3);
    for example in examples {
        let (parsed, sources) = parse(example, &[Arch::X86_64, Arch::X32]);
        let told = tamis_diag::render::render(&parsed.diagnostics, &sources, false);
        assert!(told.is_empty(), "{example}\n{told}");
    }
}

#[test]
fn it_lists_every_built_in_set() {
    let page = page();
    let source = fs::read_to_string(repository().join("crates/policy/policies/sets.tamis"));
    let source = source.expect("the sets are part of the repository");
    let sets = source
        .lines()
        .filter_map(|line| line.strip_prefix("set "))
        .filter_map(|rest| rest.split(' ').next());
    for set in sets.chain(["@known"]) {
        assert!(page.contains(&format!("`{set}`")), "{set}");
    }
}

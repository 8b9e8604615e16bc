//! The compiler returns proved programs as such, and all others as `Unproven`.
//!
//! A public function of the compiler that returns a program, a graph or a ruleset, or changes one in place, must be
//! in one of the files of the proof, or return `Unproven`. The check reads signatures, not types: it does not detect
//! a type of another name that contains a program.

use super::Problem;
use super::rust::{line_of, words};
use super::tree::Tree;

/// The crates whose results are filters.
const COMPILERS: [&str; 2] = ["crates/compiler/src/", "crates/optimize/src/"];
/// The files that return proved programs.
const PROVED: [&str; 3] = ["binding.rs", "proved.rs", "verify.rs"];
/// The types of filters and of their intermediate forms.
const FILTERS: [&str; 7] = [
    "Program", "Template", "Cfg", "Insn", "Op", "Layout", "Ruleset",
];

/// Public functions that return a filter as if it were a result.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let files = tree.rust().filter_map(|(path, file)| {
        let name = COMPILERS
            .iter()
            .find_map(|folder| path.strip_prefix(folder))?;
        (!PROVED.contains(&name)).then_some((path, file))
    });
    let mut problems = Vec::new();
    for (path, file) in files {
        let code = file.product_code();
        for at in words(&code, "pub") {
            if let Some(name) = careless(&code[at..]) {
                let message = format!(
                    "`{name}` hands out a filter that nobody proved: put it behind `Unproven` in stages.rs"
                );
                problems.push(Problem::new(path, line_of(&code, at), message));
            }
        }
    }
    problems
}

/// The name of the public function that begins here, if it returns a filter.
fn careless(code: &str) -> Option<&str> {
    let after = code.strip_prefix("pub ")?.trim_start_matches("const ");
    let signature = &after.strip_prefix("fn ")?[..after.find(['{', ';'])? - "fn ".len()];
    let name = signature.split(['(', '<']).next()?;
    let (taken, returned) = signature.rsplit_once("->").unwrap_or((signature, ""));
    let names = |text: &str, filter: &str| words(text, filter).next().is_some();
    let is_result = !names(returned, "Unproven") && FILTERS.iter().any(|it| names(returned, it));
    let is_changed = FILTERS
        .iter()
        .any(|it| taken.contains(&format!("&mut {it}")));
    (is_result || is_changed).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn filters_are_handed_out_as_unproven_or_by_the_proof() {
        let text = "pub fn a(program: &Program) -> u32 {}\n\
            pub fn b<T>(rules: &[T]) -> Result<Program, Error> {}\n\
            pub(crate) fn c() -> Program {}\n\
            pub fn d() -> Unproven<Program> {}\n\
            pub fn e(graph: &mut Cfg) {}\n\
            pub fn f() -> Unproven<Cfg> where Cfg: Clone {}\n";
        let file = |path: &str| (path.to_owned(), text.to_owned());
        let paths = [
            "crates/compiler/src/x.rs",
            "crates/compiler/src/verify.rs",
            "crates/vm/src/x.rs",
        ];
        let problems = check(&Tree::new(BTreeMap::from(paths.map(file))));
        let places: Vec<_> = problems
            .iter()
            .map(|it| (it.path.as_str(), it.line))
            .collect();
        assert_eq!(
            places,
            [
                ("crates/compiler/src/x.rs", 2),
                ("crates/compiler/src/x.rs", 5)
            ]
        );
    }
}

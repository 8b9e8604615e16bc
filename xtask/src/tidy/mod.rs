//! `cargo xtask tidy`: rules of the project that neither the compiler nor clippy checks.
//!
//! Each check is one file and reads the [`Tree`] of text files; all of them also run as a test. A check reports
//! [`Problem`]s with a place and the correction. `--bless` rewrites the files that a check compares with the tree.

mod checker;
mod codes;
mod documents;
mod edges;
mod executables;
mod packages;
mod purity;
mod rust;
mod size;
mod tree;
mod trust;
mod unproven;
mod wording;
mod words;

use std::fmt;

use anyhow::{Context, Result, bail, ensure};

use tree::Tree;
pub(crate) use tree::root;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    /// The file, relative to the root of the repository.
    path: String,
    /// The line, from 1; 0 for the whole file.
    line: usize,
    /// The problem and its correction.
    message: String,
}

impl Problem {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Problem {
        Problem {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Prints all problems, with `--bless` after rewriting the list of trusted files.
///
/// # Errors
/// If there are problems, or the repository cannot be read.
pub(crate) fn run(args: impl Iterator<Item = String>) -> Result<()> {
    let args: Vec<String> = args.collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {}
        ["--bless"] => bless()?,
        _ => bail!("usage: cargo xtask tidy [--bless]"),
    }
    let problems = problems()?;
    for problem in &problems {
        println!("{problem}");
    }
    ensure!(problems.is_empty(), "{} problems", problems.len());
    println!("tidy");
    Ok(())
}

fn bless() -> Result<()> {
    if let Some((path, text)) = trust::blessed(&Tree::read()?) {
        std::fs::write(root().join(path), text).with_context(|| path.to_owned())?;
    }
    Ok(())
}

fn problems() -> Result<Vec<Problem>> {
    let tree = Tree::read()?;
    let packages = edges::packages()?;
    let mut problems = edges::check(&tree, &packages);
    problems.extend(executables::check(&tree, &packages));
    problems.extend(packages::check(&tree, &packages));
    problems.extend(checker::check(&tree, &packages));
    for check in [
        size::check,
        purity::check,
        words::check,
        documents::check,
        codes::check,
        trust::check,
        unproven::check,
        wording::check,
    ] {
        problems.extend(check(&tree));
    }
    problems.sort();
    Ok(problems)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_is_tidy() {
        let problems = super::problems().unwrap();
        let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(list.is_empty(), "{}", list.join("\n"));
    }
}

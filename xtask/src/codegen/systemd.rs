//! Data from systemd: its sets of system calls and the directives of its units.
//!
//! Both are printed by the systemd of Debian 12, and stored as plain lists, which the front end reads directly.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::{abi_dir, sources};

const HEADER: &str = "# Made by `cargo xtask codegen --refresh`; see README.md.\n";

/// Rewrites both lists.
pub(super) fn refresh() -> Result<()> {
    let sets =
        sources::output(Command::new("systemd-analyze").args(["syscall-filter", "--no-pager"]))?;
    write(
        "systemd-sets.txt",
        &blocks(&sets, '@', |line| {
            line.strip_prefix("    ")
                .filter(|call| !call.starts_with('#'))
        }),
    )?;
    let directives =
        sources::output(Command::new("/lib/systemd/systemd").arg("--dump-configuration-items"))?;
    write(
        "systemd-directives.txt",
        &blocks(&directives, '[', |line| {
            line.split_once('=').map(|(directive, _)| directive)
        }),
    )
}

/// One line per block of a text: its title, which begins with a mark, and the results of `element` for the lines
/// below it.
fn blocks<'t>(text: &'t str, mark: char, element: impl Fn(&'t str) -> Option<&'t str>) -> String {
    let mut list = String::from(HEADER);
    let mut is_in_block = false;
    for line in text.lines() {
        if line.starts_with(mark) {
            if is_in_block {
                list.push('\n');
            }
            is_in_block = true;
            list.push_str(line.trim_matches(['[', ']']));
        } else if let Some(element) = element(line).filter(|_| is_in_block) {
            write!(list, " {element}").expect("a string takes everything");
        }
    }
    list.push('\n');
    list
}

fn write(file: &str, text: &str) -> Result<()> {
    let path = abi_dir().join("../policy/data").join(file);
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}

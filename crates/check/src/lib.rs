//! Checks a certificate of `tamis --certify`: that two seccomp filters return the same value for every call.
//!
//! A certificate is a folder. Its `table.txt` names the programs of both sides and divides all calls, sixteen 32-bit
//! words, into cubes, each with one return value. The checker
//!
//! 1. compares the files with the hashes in `manifest`;
//! 2. checks that the cubes are the leaves of a decision tree, so that each call is in exactly one ([`table`]);
//! 3. runs the programs of each side on each cube, with the bits that the cube leaves open as unknowns, and compares
//!    the results with that of the cube ([`machine`]). If a program needs an unknown bit, the cube is split into two.
//!
//! It shares no code with tamis and uses only the standard library. It does not check `claim.smt2` and `claim.lrat`,
//! for which there are public programs, nor that the programs are those in use: compare them.
#![forbid(unsafe_code)]

pub mod machine;
mod sha256;
pub mod table;

use machine::{Machine, Program};
use table::{Row, Table};

pub use sha256::sha256;

/// The version of the format; the first line of `manifest` has it.
pub const FORMAT: u32 = 1;
/// The start of that line.
pub const TITLE: &str = "# tamis certificate, format ";
/// The most instructions that are run for all cubes together, some ten seconds.
const MAX_STEPS: u64 = 1 << 30;
/// The programs that check the other files.
const COMMANDS: [(&str, &str); 2] = [
    ("claim.smt2", "z3 claim.smt2"),
    ("claim.lrat", "lrat-check claim.cnf claim.lrat"),
];

/// Why a certificate is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A hash, the division into cubes or a return value is wrong, or there is no table.
    Rejected(String),
    /// A program needs more cases than are tried.
    Unfollowed(String),
    /// A file is missing, has another form, or is of another version.
    Bad(String),
}

/// The programs of one side. One program is a function of its own; several are the filters of a task.
struct Side {
    title: String,
    programs: Vec<Program>,
}

/// Checks a certificate, whose files `read` returns. Returns what was checked, as text.
///
/// # Errors
/// If the certificate is not accepted.
pub fn check(read: &dyn Fn(&str) -> Result<Vec<u8>, String>) -> Result<String, Refusal> {
    let files = hashed(read)?;
    let file = |name: &str| {
        files
            .iter()
            .find(|(known, _)| known == name)
            .map(|found| &found.1)
    };
    let Some(table) = file("table.txt") else {
        let text = "manifest: it lists no table.txt, so there is nothing to check here";
        return Err(Refusal::Rejected(text.into()));
    };
    let bad = |name: &str, why: String| Refusal::Bad(format!("{name}:{why}"));
    let table = Table::parse(&String::from_utf8_lossy(table));
    let table = table.map_err(|why| bad("table.txt", why))?;
    let mut sides = Vec::new();
    for names in [&table.left, &table.right] {
        let mut programs = Vec::new();
        for name in names {
            let bytes = file(name).ok_or(bad("manifest", format!(" it doesn't list {name}")))?;
            let program = Program::parse(bytes, table.is_big_endian);
            programs.push(program.map_err(|why| bad(name, why))?);
        }
        let length: usize = programs.iter().map(Program::len).sum();
        let name = if names.len() == 1 {
            names[0].clone()
        } else {
            format!("{} filters", names.len())
        };
        let title = format!("{name} ({length} instructions)");
        sides.push(Side { title, programs });
    }
    let cover = table.cover();
    cover.map_err(|why| Refusal::Rejected(format!("table.txt:{why}")))?;
    let mut steps_left = MAX_STEPS;
    for row in &table.rows {
        sides
            .iter()
            .try_for_each(|side| side.agrees(row, &mut steps_left))?;
    }
    let (left, right, cubes) = (&sides[0].title, &sides[1].title, table.rows.len());
    let mut text = format!("accepted: {left} and {right} return the same for every call\n");
    text += &format!(
        "table.txt: {cubes} cubes; each call is in one, and both sides return its value\n"
    );
    for (name, command) in COMMANDS.iter().filter(|(name, _)| file(name).is_some()) {
        text += &format!("{name}: not checked here; run `{command}`\n");
    }
    Ok(text)
}

/// The files that the manifest lists, each with the hash that it states.
fn hashed(
    read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<Vec<(String, Vec<u8>)>, Refusal> {
    let manifest = read("manifest").map_err(Refusal::Bad)?;
    let manifest = String::from_utf8_lossy(&manifest);
    let mut lines = manifest.lines().zip(1..);
    let title = lines.next().map_or("", |(line, _)| line);
    let version = title.strip_prefix(TITLE).unwrap_or("of another kind");
    if version.split(',').next() != Some(&FORMAT.to_string()) {
        let text = format!("format {version}; this program checks format {FORMAT}");
        return Err(Refusal::Bad(format!(
            "manifest:1: the certificate has {text}"
        )));
    }
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for (line, number) in lines {
        let (hash, name) = line.split_once("  ").unwrap_or_default();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
        let is_new = files.iter().all(|(known, _)| known != name);
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(is_plain) || !is_new {
            let text = format!("manifest:{number}: no hash and name of another file of the folder");
            return Err(Refusal::Bad(text));
        }
        let bytes = read(name).map_err(Refusal::Bad)?;
        if sha256(&bytes) != hash {
            let text = format!("manifest:{number}: {name} has another hash");
            return Err(Refusal::Rejected(text));
        }
        files.push((name.into(), bytes));
    }
    Ok(files)
}

impl Side {
    /// Checks that every call of a row's cube gets its return value.
    ///
    /// The kernel runs the filters from the newest to the oldest, and keeps a value whose action, the upper half as a
    /// signed number, is smaller than that kept so far. At first that is `SECCOMP_RET_ALLOW`.
    fn agrees(&self, row: &Row, steps_left: &mut u64) -> Result<(), Refusal> {
        let (name, line, ret) = (&self.title, row.line, row.ret);
        let newest = self.programs.len() - 1;
        let mut open = vec![(row.cube, newest, 0x7fff_0000, Machine::start())];
        while let Some((cube, filter, kept, mut machine)) = open.pop() {
            match self.programs[filter].run(&mut machine, &cube, steps_left) {
                Ok(found) => {
                    let action = |ret: u32| (ret & 0xffff_0000).cast_signed();
                    let replaces = newest == 0 || action(found) < action(kept);
                    let found = if replaces { found } else { kept };
                    if filter > 0 {
                        open.push((cube, filter - 1, found, Machine::start()));
                    } else if found != ret {
                        let call = cube.example();
                        let why = format!("{name} returns {found:08x}, not {ret:08x}, for {call}");
                        return Err(Refusal::Rejected(format!("table.txt:{line}: {why}")));
                    }
                }
                Err(_) if *steps_left == 0 => {
                    let why = format!("{name} can't be followed: too many cases");
                    return Err(Refusal::Unfollowed(format!("table.txt:{line}: {why}")));
                }
                Err(bit) => {
                    for (half, is_set) in cube.split(bit).into_iter().zip([true, false]) {
                        let mut machine = machine.clone();
                        machine.learn(bit, is_set);
                        open.push((half, filter, kept, machine));
                    }
                }
            }
        }
        Ok(())
    }
}

//! The decision table for `tamis-check`, from the prover's diagram of both sides.
//!
//! Equal functions have one diagram. Its paths are the cubes: each is the bits that a path tests. A comparison of two
//! words is one test in the diagram and no bit, so functions with such comparisons have no table.

use std::fmt::Write as _;

use tamis_abi::hash::WordHashMap;
use tamis_abi::{Endian, Word};
use tamis_prover::{Function, Space, VariableKind, View};

use crate::Gap;

/// The most cubes of a table; about 8 MB.
const MAX_CUBES: u64 = 100_000;

/// The bits on a path: each word with its mask and value, in the order of tests.
type Path = Vec<(Word, u32, u32)>;

struct Writer<'a> {
    space: &'a Space,
    endian: Endian,
    path: Path,
    text: String,
    /// The count of cubes.
    cubes: usize,
}

/// The lines of a function's table, with their count.
///
/// # Errors
/// If there are too many cubes, or two words are compared.
pub(crate) fn rows(
    space: &Space,
    function: Function,
    endian: Endian,
) -> Result<(String, usize), Gap> {
    let cubes = count(space, function, &mut WordHashMap::default())?;
    if cubes > MAX_CUBES {
        return Err(Gap::Cubes(cubes));
    }
    let mut writer = Writer {
        space,
        endian,
        path: Vec::new(),
        text: String::new(),
        cubes: 0,
    };
    writer.write(function);
    Ok((writer.text, writer.cubes))
}

/// The count of paths of a function.
fn count(
    space: &Space,
    function: Function,
    known: &mut WordHashMap<Function, u64>,
) -> Result<u64, Gap> {
    let View::Branch {
        variable,
        low,
        high,
    } = space.view(function)
    else {
        return Ok(1);
    };
    if let VariableKind::Relation(_) = space.kind(variable) {
        return Err(Gap::Relation);
    }
    if let Some(count) = known.get(&function) {
        return Ok(*count);
    }
    let paths = count(space, low, known)?.saturating_add(count(space, high, known)?);
    known.insert(function, paths);
    Ok(paths)
}

impl Writer<'_> {
    /// Writes the paths of a function below the present one.
    fn write(&mut self, function: Function) {
        let (variable, low, high) = match self.space.view(function) {
            View::Leaf(ret) => return self.line(ret),
            View::Branch {
                variable,
                low,
                high,
            } => (variable, low, high),
        };
        let VariableKind::Bit(word, bit) = self.space.kind(variable) else {
            unreachable!("functions with comparisons of words are not written");
        };
        let is_new = self.path.last().is_none_or(|last| last.0 != word);
        if is_new {
            self.path.push((word, 0, 0));
        }
        let at = self.path.len() - 1;
        let before = self.path[at];
        self.path[at].1 |= 1 << bit;
        self.write(low);
        self.path[at].2 |= 1 << bit;
        self.write(high);
        self.path[at] = before;
        if is_new {
            self.path.pop();
        }
    }

    fn line(&mut self, ret: u32) {
        self.cubes += 1;
        for (word, mask, value) in &self.path {
            let offset = word.offset(self.endian);
            let _ = match *mask {
                u32::MAX => write!(self.text, "[{offset}]={value:08x} "),
                mask => write!(self.text, "[{offset}]={value:08x}/{mask:08x} "),
            };
        }
        let _ = writeln!(self.text, "-> {ret:08x}");
    }
}

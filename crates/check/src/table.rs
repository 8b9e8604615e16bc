//! The table: a line for each cube of calls, with the value that both sides return for it.
//!
//! ```text
//! endian little
//! left left.bpf
//! right right.1.bpf right.2.bpf
//! [4]=c000003e [0]=00000008/fffffff8 -> 7fff0000
//! ```
//!
//! `[0]` is the word at this byte of `struct seccomp_data`, then come its value and the mask of the bits that are
//! compared, without a mask all. `endian` is the byte order of the programs' files. Several programs of a side are the
//! filters of a task, the oldest first.
//!
//! The lines are the leaves of a decision tree, from left to right. It tests bits in the order in which a line names
//! them, each word from its highest bit, and 0 comes before 1. So cover is evident: a region of calls is one cube, or
//! is divided at a bit that all its lines name.

/// The words of `struct seccomp_data`.
pub const WORDS: usize = 16;

/// The calls whose words have given bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cube {
    /// The bits that are fixed.
    pub mask: [u32; WORDS],
    /// Their values; 0 for all others.
    pub value: [u32; WORDS],
}

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number of the line.
    pub line: usize,
    /// The cube.
    pub cube: Cube,
    /// The words that it names, in this order.
    order: Vec<usize>,
    /// The value that both sides return.
    pub ret: u32,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Whether the programs' files are of a machine with the highest byte first.
    pub is_big_endian: bool,
    /// The files of one side.
    pub left: Vec<String>,
    /// The files of the other.
    pub right: Vec<String>,
    /// The lines.
    pub rows: Vec<Row>,
}

impl Cube {
    /// Both halves, for a bit of the input that is open: 32 times the word, plus the bit.
    #[must_use]
    pub fn split(self, bit: u16) -> [Cube; 2] {
        let (word, flag) = (usize::from(bit) / 32, 1 << (bit % 32));
        let mut low = self;
        low.mask[word] |= flag;
        let mut high = low;
        high.value[word] |= flag;
        [high, low]
    }

    /// A call of the cube, as text.
    #[must_use]
    pub fn example(&self) -> String {
        let words = self.value.iter().zip(0..).filter(|(value, _)| **value != 0);
        let words = words.map(|(value, word)| format!("[{}]={value:08x}, ", 4 * word));
        format!("the call with {}all else 0", words.collect::<String>())
    }
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// If a line has another form: its number and the reason.
    pub fn parse(text: &str) -> Result<Table, String> {
        let mut lines = text.lines().zip(1..);
        let mut header = |name: &str| {
            let line = lines.next().map_or("", |(line, _)| line);
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            match words.as_slice() {
                [first, rest @ ..] if first == name && !rest.is_empty() => Ok(rest.to_vec()),
                _ => Err(format!("the line `{name} …` is missing before `{line}`")),
            }
        };
        let [order, left, right] = [header("endian")?, header("left")?, header("right")?];
        let is_big_endian = order == ["big"];
        if !is_big_endian && order != ["little"] {
            return Err("1: the order of bytes is neither `little` nor `big`".into());
        }
        let form = "it has another form than `[0]=00000001/000000ff -> 7fff0000`";
        let rows = lines.map(|(line, number)| row(line, number).ok_or(format!("{number}: {form}")));
        let rows = rows.collect::<Result<_, _>>()?;
        Ok(Table {
            is_big_endian,
            left,
            right,
            rows,
        })
    }

    /// Checks that every call is in exactly one cube.
    ///
    /// # Errors
    /// If it isn't so: the line and the reason.
    pub fn cover(&self) -> Result<(), String> {
        cover(&self.rows, Cube::default())
    }
}

/// Checks that the cubes of lines divide a region: all calls at first, then each half of a region that is divided at a
/// bit of its first line.
fn cover(rows: &[Row], region: Cube) -> Result<(), String> {
    let Some(first) = rows.first() else {
        return Err(format!(" no line has {}", region.example()));
    };
    let line = first.line;
    let wrong = |row: &Row, why: &str| Err(format!("{}: it {why} line {line}", row.line));
    let missing = |word: &usize| first.cube.mask[*word] & !region.mask[*word];
    let Some(word) = first.order.iter().find(|word| missing(word) != 0) else {
        return rows.get(1).map_or(Ok(()), |row| wrong(row, "has calls of"));
    };
    let bit = missing(word).ilog2();
    if let Some(row) = rows.iter().find(|row| row.cube.mask[*word] >> bit & 1 == 0) {
        return wrong(
            row,
            &format!("leaves bit {bit} of [{}] open, unlike", 4 * word),
        );
    }
    let is_set = |row: &Row| row.cube.value[*word] >> bit & 1 == 1;
    let (low, high) = rows.split_at(rows.iter().position(is_set).unwrap_or(rows.len()));
    if let Some(row) = high.iter().find(|row| !is_set(row)) {
        return wrong(
            row,
            &format!("has 0 in bit {bit} of [{}] and must come before", 4 * word),
        );
    }
    let [high_half, low_half] = region.split((word * 32) as u16 + bit as u16);
    cover(low, low_half)?;
    cover(high, high_half)
}

/// A line with this number; `None` if it has another form.
fn row(line: &str, number: usize) -> Option<Row> {
    let hex = |text: &str| {
        let digits = Some(text).filter(|text| text.len() == 8 && !text.starts_with('+'));
        u32::from_str_radix(digits?, 16).ok()
    };
    let (conditions, ret) = line.split_once("-> ")?;
    let (mut cube, mut order) = (Cube::default(), Vec::new());
    for condition in conditions.split_terminator(' ') {
        let (byte, test) = condition.strip_prefix('[')?.split_once("]=")?;
        let (value, mask) = test.split_once('/').unwrap_or((test, "ffffffff"));
        let (byte, value, mask) = (byte.parse::<usize>().ok()?, hex(value)?, hex(mask)?);
        let word = byte / 4;
        let is_new = byte % 4 == 0 && word < WORDS && !order.contains(&word);
        if !is_new || mask == 0 || value & !mask != 0 {
            return None;
        }
        (cube.mask[word], cube.value[word]) = (mask, value);
        order.push(word);
    }
    let (line, ret) = (number, hex(ret)?);
    Some(Row {
        line,
        cube,
        order,
        ret,
    })
}

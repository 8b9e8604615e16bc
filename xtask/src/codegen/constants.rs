//! Symbolic constants of arguments: sources → `constants.csv` → `constants.rs`.
//!
//! A row has the value for all architectures, followed by the columns that differ: `column=value`, or `column=-` if
//! the name does not exist. A row without a common value lists all its columns.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result, ensure};

use super::columns::{COLUMNS, Column, attribute, table_of_arch};
use super::headers::{self, Values, is_constant_name};
use super::sources::linux_raw_sys;
use super::{Output, read_data, write_data};

/// The data file.
pub(super) const DATA: &str = "constants.csv";

/// Rows without a header in the sources.
const HAND_ROWS: &str = "constants-hand.csv";

/// The modules of linux-raw-sys whose names are values of arguments.
const MODULES: [&str; 17] = [
    "errno",
    "general",
    "if_ether",
    "if_packet",
    "if_tun",
    "io_uring",
    "ioctl",
    "landlock",
    "loop_device",
    "mempolicy",
    "net",
    "prctl",
    "ptrace",
    "system",
    "vm_sockets",
    "xdp",
    "netlink",
];

/// Of the thousands of names in netlink only these are arguments of system calls.
const NETLINK_PREFIX: &str = "NETLINK_";

/// Families of names that are not arguments of calls: types of the compiler, contents of structures, registers,
/// device data. Ioctl numbers among them are kept.
const NOT_FOR_CALLS: &str = "\
    ABS APM AUDIT BIG BOND BRIDGE BTN BTRFS BUS BYTE DEVCONF DRM DVD EM ETHTOOL FF FIEMAP FUSE FW GICD GICR \
    GPCMD HWCAP HWCAP2 HWTSTAMP I2C ICMPV6 IFA IFLA INT IP6T KEY KVM LED LITTLE LPA MDBA MEDIA MII MODE \
    MSC MTD NBD NDA NF NL NULL NVME PDP PPC PPP PSCI PSR PT PTRDIFF R REG REL RIO RTNH SC SIZE SND SNDRV SSIZE SW \
    TCM TLS UAC UINT V4L2 VIRTIO WCHAR WIN WINT X86";

/// Names that are not arguments, in families of arguments: words of headers in network byte order, whose values
/// differ between architectures that share a column.
const NOT_FOR_CALLS_EITHER: [&str; 3] = ["TCP_FLAG_", "TCP_RESERVED_BITS", "TCP_DATA_OFFSET"];

/// Names that are arguments, in families that are not.
const FOR_CALLS: [&str; 5] = ["AUDIT_ARCH_", "KVM_CAP_", "R_OK", "TLS_TX", "TLS_RX"];

/// Values of one constant by column.
type Row = BTreeMap<&'static str, u64>;

/// Reads the sources into the data file.
pub(super) fn refresh() -> Result<()> {
    let mut ioctls = raw_ioctls()?;
    let mut sources = Vec::new();
    for column in &COLUMNS {
        let raw = column.raw.map(raw_values).transpose()?.unwrap_or_default();
        let headers = headers::read(column.name)?;
        ioctls.extend(headers.ioctls);
        sources.push((column, raw, headers.values));
    }
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut disagreements = Vec::new();
    for (column, raw, compiled) in &sources {
        let names: BTreeSet<&String> = raw.keys().chain(compiled.keys()).collect();
        for name in names.into_iter().filter(|name| is_for_calls(name, &ioctls)) {
            let (raw, compiled) = (raw.get(name).copied(), compiled.get(name).copied());
            if let (Some(raw), Some(compiled)) = (raw, compiled)
                && raw != compiled
            {
                disagreements.push(format!(
                    "{} {name}: {raw:#x} and {compiled:#x}",
                    column.name
                ));
            }
            if let Some(value) = better(column, raw, compiled) {
                rows.entry(name.clone())
                    .or_default()
                    .insert(column.name, value);
            }
        }
    }
    add_hand_rows(&mut rows)?;
    eprintln!(
        "{} values differ between linux-raw-sys and the headers:",
        disagreements.len()
    );
    for disagreement in disagreements {
        eprintln!("  {disagreement}");
    }
    fill_generic(&mut rows);
    write_data(DATA, &to_csv(&rows))
}

/// The more reliable value. linux-raw-sys is newer, but evaluates `~0U` as a signed number, and computes x32's ioctl
/// numbers with the structures of x86_64.
fn better(column: &Column, raw: Option<u64>, compiled: Option<u64>) -> Option<u64> {
    let (Some(raw), Some(compiled)) = (raw, compiled) else {
        return raw.or(compiled);
    };
    let is_sign_extended = raw >> 32 == 0xffff_ffff && compiled == raw & 0xffff_ffff;
    Some(if column.name == "x32" || is_sign_extended {
        compiled
    } else {
        raw
    })
}

/// The names of linux-raw-sys' ioctl module on any architecture.
fn raw_ioctls() -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for column in COLUMNS.iter().filter_map(|column| column.raw) {
        let text = fs::read_to_string(linux_raw_sys()?.join(column).join("ioctl.rs"))?;
        names.extend(
            text.lines()
                .filter_map(raw_constant)
                .map(|(name, _)| name.to_owned()),
        );
    }
    Ok(names)
}

/// The integer constants and enumerators of a module directory of linux-raw-sys.
pub(super) fn raw_values(arch: &str) -> Result<Values> {
    let mut values = Values::new();
    for module in MODULES {
        let path = linux_raw_sys()?
            .join(arch)
            .join(module)
            .with_extension("rs");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for line in text.lines() {
            let Some((name, value)) = raw_constant(line) else {
                continue;
            };
            if module != "netlink" || name.starts_with(NETLINK_PREFIX) {
                values.insert(name.to_owned(), value);
            }
        }
    }
    Ok(values)
}

/// Reads `pub const NAME: u32 = 1;` or the enumerator `NAME = 1,`.
fn raw_constant(line: &str) -> Option<(&str, u64)> {
    let (name, value) = match line.strip_prefix("pub const ") {
        Some(rest) => {
            let (name, rest) = rest.split_once(": ")?;
            (name, rest.strip_suffix(';')?.split_once(" = ")?.1)
        }
        None => line.strip_suffix(',')?.split_once(" = ")?,
    };
    let value: i128 = value.trim_end_matches("u8").parse().ok()?;
    is_constant_name(name).then_some((name, value as u64))
}

fn is_for_calls(name: &str, ioctls: &BTreeSet<String>) -> bool {
    let is_ioctl = name.contains("IOC") || ioctls.contains(name);
    let is_excepted = FOR_CALLS.iter().any(|prefix| name.starts_with(prefix));
    let is_excluded = NOT_FOR_CALLS
        .split_whitespace()
        .any(|excluded| excluded == family(name));
    let is_word = NOT_FOR_CALLS_EITHER
        .iter()
        .any(|prefix| name.starts_with(prefix));
    is_ioctl || is_excepted || !is_excluded && !is_word
}

/// The part of a name before its first underscore.
fn family(name: &str) -> &str {
    name.split('_').next().unwrap_or(name)
}

/// Adds the rows `name,value,columns…,source` where the sources have no value.
fn add_hand_rows(rows: &mut BTreeMap<String, Row>) -> Result<()> {
    for fields in super::csv_rows(&read_data(HAND_ROWS)?) {
        ensure!(
            fields.len() == 4,
            "{HAND_ROWS}: {fields:?} has not four fields"
        );
        let value = number(fields[1])?;
        for column in &COLUMNS {
            if fields[2] == "*" || fields[2].split(' ').any(|name| name == column.name) {
                let row = rows.entry(fields[0].to_owned()).or_default();
                row.entry(column.name).or_insert(value);
            }
        }
    }
    Ok(())
}

/// Columns whose value equals that of two others if these agree: users of the kernel's generic headers, and ABIs
/// between two others in word size.
const SIBLINGS: [(&str, [&str; 2]); 4] = [
    ("loongarch64", ["aarch64", "riscv64"]),
    ("riscv32", ["riscv64", "arm"]),
    ("mips64n32", ["mips", "mips64"]),
    ("s390", ["s390x", "arm"]),
];

/// Fills gaps in columns with older or missing sources, if the value is certain: the name and every name of its
/// family have one value on all columns that have it, including architectures with their own numbering (mips, ppc),
/// or two [`SIBLINGS`] agree.
fn fill_generic(rows: &mut BTreeMap<String, Row>) {
    let is_uniform = |row: &Row| row.values().all(|value| Some(value) == row.values().next());
    let diverse: BTreeSet<String> = rows
        .iter()
        .filter(|(_, row)| !is_uniform(row))
        .map(|(name, _)| family(name).to_owned())
        .collect();
    for (name, row) in rows {
        let is_widespread = ["x86_64", "mips", "ppc64", "arm"]
            .iter()
            .all(|column| row.contains_key(column));
        let common = row.values().next().copied();
        if is_widespread && is_uniform(row) && !diverse.contains(family(name)) {
            for column in &COLUMNS {
                row.entry(column.name).or_insert(common.unwrap_or_default());
            }
        }
        for (column, siblings) in SIBLINGS {
            let values = siblings.map(|sibling| row.get(sibling).copied());
            if let [Some(a), Some(b)] = values
                && a == b
            {
                row.entry(column).or_insert(a);
            }
        }
    }
}

fn to_csv(rows: &BTreeMap<String, Row>) -> String {
    let mut text = String::from("name,value,differing columns\n");
    for (name, row) in rows {
        let (common, differing) = split(row);
        write!(text, "{name},").unwrap();
        if let Some(common) = common {
            write!(text, "{}", in_text(common)).unwrap();
        }
        let differing: Vec<String> = differing
            .iter()
            .map(|(column, value)| match value {
                Some(value) => format!("{column}={}", in_text(*value)),
                None => format!("{column}=-"),
            })
            .collect();
        writeln!(text, ",{}", differing.join(" ")).unwrap();
    }
    text
}

/// The common value of a row, if listing the exceptions to it is shorter than listing all columns.
fn split(row: &Row) -> (Option<u64>, Vec<(&'static str, Option<u64>)>) {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for &value in row.values() {
        *counts.entry(value).or_default() += 1;
    }
    let exceptions = |common: Option<u64>| -> Vec<_> {
        COLUMNS
            .iter()
            .map(|column| (column.name, row.get(column.name).copied()))
            .filter(|&(_, value)| value != common)
            .collect()
    };
    let (common, _) = counts
        .into_iter()
        .max_by_key(|&(_, count)| count)
        .unwrap_or_default();
    let with_common = exceptions(Some(common));
    if with_common.len() < row.len() {
        (Some(common), with_common)
    } else {
        (None, exceptions(None))
    }
}

/// A value as text: small and negative values in decimal, the rest in hexadecimal.
fn in_text(value: u64) -> String {
    let signed = value as i64;
    if (-4096..1024).contains(&signed) {
        signed.to_string()
    } else {
        format!("{value:#x}")
    }
}

fn number(text: &str) -> Result<u64> {
    let value = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse::<i64>().map(|value| value as u64),
    };
    value.with_context(|| format!("value `{text}`"))
}

/// How many names share an entry of the tables of starts, as in `crates/abi/src/consts.rs`.
const BLOCK: usize = 32;

/// Values as bytes, with the start of each block of names.
#[derive(Default)]
struct Packed {
    starts: Vec<usize>,
    bytes: Vec<u8>,
}

impl Packed {
    /// Begins the blocks up to that of a name.
    fn begin(&mut self, index: usize) {
        while self.starts.len() <= index / BLOCK {
            self.starts.push(self.bytes.len());
        }
    }

    /// Appends a number: seven bits a byte, the lowest first; all bytes but the last have the highest bit.
    fn number(&mut self, mut number: u128) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Appends an optional value: 0 if there is none, else one more than the value with its sign in the lowest bit.
    fn value(&mut self, value: Option<u64>) {
        self.number(match value {
            None => 0,
            Some(value) => {
                let signed = value.cast_signed();
                u128::from(((signed << 1) ^ (signed >> 63)).cast_unsigned()) + 1
            }
        });
    }

    /// The Rust expression, a `Packed` of `crates/abi/src/consts.rs`.
    fn in_rust(mut self, count: usize) -> Result<String> {
        self.begin(count);
        let last = self.bytes.len();
        ensure!(u16::try_from(last).is_ok(), "{last} bytes are too many");
        let mut text = String::from("Packed {\n    starts: &[\n");
        let starts = self.starts.iter().map(|start| format!("{start},"));
        super::wrapped(&mut text, "        ", starts);
        text.push_str("    ],\n    bytes: &[\n");
        let bytes = self.bytes.iter().map(|byte| format!("{byte},"));
        super::wrapped(&mut text, "        ", bytes);
        text.push_str("    ],\n}");
        Ok(text)
    }
}

/// What differs in a column: for each name in a block its distance from the one before, or from the block's first name
/// less one, and its value.
#[derive(Default)]
struct Differing {
    packed: Packed,
    last: Option<usize>,
}

impl Differing {
    fn add(&mut self, index: usize, value: Option<u64>) {
        self.packed.begin(index);
        let first = index - index % BLOCK;
        let after = self.last.filter(|last| *last >= first);
        let distance = after.map_or(index - first + 1, |last| index - last);
        self.packed.number(distance as u128);
        self.packed.value(value);
        self.last = Some(index);
    }
}

/// The Rust tables of the data file.
pub(super) fn generate(data: &str) -> Result<Output> {
    let (mut names, mut lengths, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    let mut values = Packed::default();
    let mut differing: BTreeMap<&str, Differing> = BTreeMap::new();
    let mut end = 0;
    for (index, fields) in super::csv_rows(data).enumerate() {
        ensure!(fields.len() == 3, "{DATA}: {fields:?}");
        let name = fields[0];
        if index % BLOCK == 0 {
            starts.push(format!("{end},"));
        }
        lengths.push(format!("{},", u8::try_from(name.len())?));
        end += name.len();
        names.push(name.to_owned());
        values.begin(index);
        values.value(optional(fields[1])?);
        for word in fields[2].split_whitespace() {
            let (column, value) = word.split_once('=').with_context(|| word.to_owned())?;
            let own = differing.entry(column).or_default();
            own.add(index, optional(value)?);
        }
    }
    let count = names.len();
    let blocks = starts.len();
    let mut text = super::header(
        "Symbolic constants of system call arguments.",
        &[DATA],
        "linux-raw-sys 0.12.1, Debian 12's linux-libc-dev and libc6-dev cross packages",
    );
    text.push_str("use crate::Arch;\nuse crate::consts::Packed;\n\n");
    text.push_str("/// All names, sorted, one after the other.\n");
    text.push_str("pub(crate) static NAMES: &str = ");
    super::literal(&mut text, names.into_iter());
    text.push_str(";\n\n/// The length of each name.\n");
    writeln!(text, "pub(crate) static LENGTHS: [u8; {count}] = [")?;
    super::wrapped(&mut text, "    ", lengths.into_iter());
    text.push_str("];\n\n/// Where the names of each block begin in `NAMES`.\n");
    writeln!(text, "pub(crate) static STARTS: [u32; {blocks}] = [")?;
    super::wrapped(&mut text, "    ", starts.into_iter());
    text.push_str("];\n\n/// The value of each name that holds where `overrides` has none.\n");
    let values = values.in_rust(count)?;
    writeln!(text, "pub(crate) static VALUES: Packed = {values};\n")?;
    text.push_str("/// What differs on an architecture: distances between names, and values.\n");
    text.push_str(&table_of_arch("overrides", "Packed"));
    for column in &COLUMNS {
        let own = differing.remove(column.name).unwrap_or_default();
        let packed = own.packed.in_rust(count)?;
        let (attribute, name) = (attribute(column), column.name.to_uppercase());
        writeln!(text, "\n{attribute}static {name}: Packed = {packed};")?;
    }
    ensure!(
        differing.is_empty(),
        "unknown columns {:?}",
        differing.keys()
    );
    Ok(Output {
        file: "constants.rs",
        text,
    })
}

/// An optional value of the data file.
fn optional(value: &str) -> Result<Option<u64>> {
    match value {
        "" | "-" => Ok(None),
        value => number(value).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_abi::{Arch, consts};

    #[test]
    fn values_are_those_of_linux_raw_sys() {
        let ioctls = raw_ioctls().unwrap();
        for column in COLUMNS.iter().filter(|column| column.name != "x32") {
            let Some(module) = column.raw else { continue };
            let arch = Arch::from_name(column.name).unwrap();
            for (name, raw) in raw_values(module).unwrap() {
                if is_for_calls(&name, &ioctls) {
                    let value = consts::value(arch, &name).unwrap();
                    let is_believed = better(column, Some(raw), Some(value)) == Some(value);
                    assert!(is_believed, "{arch} {name}: {value:#x}, but {raw:#x}");
                }
            }
        }
    }

    #[test]
    fn small_and_negative_values_are_written_in_decimal() {
        for (value, text) in [(0, "0"), (1023, "1023"), (1024, "0x400"), (u64::MAX, "-1")] {
            assert_eq!(in_text(value), text);
            assert_eq!(number(text).unwrap(), value);
        }
    }
}

//! Names and types of arguments: the running kernel's tracefs → `signatures.csv`; together with the
//! hand rows of `signatures-hand.csv` → `signatures.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::{Output, write_data};

/// The data from tracefs.
pub(super) const DATA: &str = "signatures.csv";

/// The data from other sources, for further calls.
pub(super) const HAND_ROWS: &str = "signatures-hand.csv";

const TRACEFS: &str = "/sys/kernel/tracing/events/syscalls";

/// Events with the name of the entry point instead of the x86_64 call that reaches it.
const CALL_OF_EVENT: [(&str, &str); 6] = [
    ("newstat", "stat"),
    ("newfstat", "fstat"),
    ("newlstat", "lstat"),
    ("newuname", "uname"),
    ("sendfile64", "sendfile"),
    ("umount", "umount2"),
];

/// Calls of other architectures with the name of the entry point.
const ALSO_CALLED: [&str; 1] = ["sendfile64"];

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Arg {
    name: String,
    c_type: String,
}

/// Reads tracefs into the data file.
pub(super) fn refresh() -> Result<()> {
    let mut signatures: BTreeMap<String, Vec<Arg>> = BTreeMap::new();
    let entries = fs::read_dir(TRACEFS)
        .with_context(|| format!("{TRACEFS}: mount -t tracefs none /sys/kernel/tracing"))?;
    for entry in entries {
        let entry = entry?;
        let file_name = entry.file_name();
        let Some(event) = file_name
            .to_str()
            .and_then(|name| name.strip_prefix("sys_enter_"))
        else {
            continue;
        };
        let args = event_args(&entry.path())?;
        let call = CALL_OF_EVENT.iter().find(|(known, _)| *known == event);
        let call = call.map_or(event, |(_, call)| call);
        if ALSO_CALLED.contains(&event) {
            signatures.insert(event.to_owned(), args.clone());
        }
        signatures.insert(call.to_owned(), args);
    }
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut text = format!(
        "# Arguments of system calls as tracefs of kernel {} on {} shows them.\nname,arguments as name:type\n",
        kernel.trim(),
        std::env::consts::ARCH
    );
    for (name, args) in signatures {
        text.push_str(&name);
        for arg in args {
            write!(text, ",{}:{}", arg.name, arg.c_type)?;
        }
        text.push('\n');
    }
    write_data(DATA, &text)
}

/// The fields of an event's format after the common ones.
fn event_args(event: &Path) -> Result<Vec<Arg>> {
    let format = fs::read_to_string(event.join("format"))?;
    let fields = format.lines().filter_map(|line| {
        let declaration = line.trim().strip_prefix("field:")?.split_once(';')?.0;
        let (c_type, name) = declaration.rsplit_once(' ')?;
        let is_argument = !name.starts_with("common_") && name != "__syscall_nr";
        is_argument.then(|| Arg {
            name: name.to_owned(),
            c_type: c_type.to_owned(),
        })
    });
    Ok(fields.collect())
}

/// The Rust table of both data files.
pub(super) fn generate(data: &str, hand_rows: &str) -> Result<Output> {
    let mut signatures: BTreeMap<&str, Vec<Arg>> = BTreeMap::new();
    for row in super::csv_rows(data) {
        signatures.insert(row[0], parse_args(&row[1..])?);
    }
    let hand_rows: BTreeMap<&str, Vec<&str>> = super::csv_rows(hand_rows)
        .map(|row| (row[0], row))
        .collect();
    for (name, row) in &hand_rows {
        let args = match row.get(2).and_then(|field| field.strip_prefix('=')) {
            Some(other) => match (signatures.get(other), hand_rows.get(other)) {
                (Some(args), _) => args.clone(),
                (None, Some(row)) => parse_args(&row[2..])?,
                (None, None) => bail!("{name}: no call `{other}`"),
            },
            None => parse_args(&row[2..])?,
        };
        let known = signatures.insert(name, args);
        ensure!(known.is_none(), "{name} stands in {DATA} and {HAND_ROWS}");
    }
    let mut text = super::header(
        "Names and types of system call arguments.",
        &[DATA, HAND_ROWS],
        "tracefs of Linux 6.18 on x86_64, man-pages 6.03",
    );
    text.push_str("use crate::signature::{Arg, Signature, arg, signature};\n\n");
    generate_tables(&mut text, &signatures)?;
    Ok(Output {
        file: "signatures.rs",
        text,
    })
}

/// The texts in one piece, and tables of their numbers: a table of texts would hold addresses.
fn generate_tables(text: &mut String, signatures: &BTreeMap<&str, Vec<Arg>>) -> Result<()> {
    let args = || signatures.values().flatten();
    let of_args = args().flat_map(|arg| [arg.name.as_str(), arg.c_type.as_str()]);
    let words: BTreeSet<&str> = signatures.keys().copied().chain(of_args).collect();
    let words: Vec<&str> = words.into_iter().collect();
    let place = |word: &str| words.binary_search(&word).expect("it is among the words");
    text.push_str("/// Names of calls and arguments, and types, sorted, one after the other.\n");
    text.push_str("pub(crate) static WORDS: &str = ");
    super::literal(text, words.iter().map(|word| (*word).to_owned()));
    text.push_str(";\n\n/// The end of each word in `WORDS`.\n");
    let ends = words.iter().scan(0, |end, word| {
        *end += word.len();
        Some(format!("{end},"))
    });
    writeln!(text, "pub(crate) static ENDS: [u16; {}] = [", words.len())?;
    super::wrapped(text, "    ", ends);
    text.push_str(
        "];\n\n/// The word of each call, sorted by it, and the end of its arguments in `ARGS`.\n",
    );
    let count = signatures.len();
    writeln!(
        text,
        "pub(crate) static SIGNATURES: [Signature; {count}] = ["
    )?;
    let ends = signatures.iter().scan(0, |end, (name, args)| {
        *end += args.len();
        Some(format!("signature({}, {end}),", place(name)))
    });
    super::wrapped(text, "    ", ends);
    text.push_str("];\n\n/// The words of the name and of the type of each argument.\n");
    let count = args().count();
    writeln!(text, "pub(crate) static ARGS: [Arg; {count}] = [")?;
    let entry = |arg: &Arg| format!("arg({}, {}),", place(&arg.name), place(&arg.c_type));
    super::wrapped(text, "    ", args().map(entry));
    text.push_str("];\n");
    Ok(())
}

fn parse_args(fields: &[&str]) -> Result<Vec<Arg>> {
    ensure!(fields.len() <= 6, "more than six arguments: {fields:?}");
    fields
        .iter()
        .map(|field| {
            let (name, c_type) = field
                .split_once(':')
                .with_context(|| format!("argument `{field}`"))?;
            Ok(Arg {
                name: name.to_owned(),
                c_type: c_type.to_owned(),
            })
        })
        .collect()
}

//! The table for minijail's compile tool (`--arch-json`): one architecture's calls and constants by their names,
//! and groups of calls.
//!
//! ```text
//! { "arch_nr": 3221225534, "arch_name": "x86_64", "bits": 64,
//!   "syscalls": { "read": 0, … }, "constants": { "O_RDONLY": 0, … },
//!   "syscall_groups": { "libc": { "io": ["read", "write"] } } }
//! ```
//!
//! As in the tool, a table replaces all names. Without one, names have the numbers in tamis's tables of the kernel,
//! and there are no groups.

use std::collections::BTreeMap;

use tamis_abi::Arch;
use tamis_abi::signature::Width;
use tamis_diag::document::{Object, Value};
use tamis_diag::json::{Dialect, Reader, member};
use tamis_diag::{Diagnostic, SourceId, Sources, suggest};

use crate::code;
use crate::limits;

static DIALECT: Dialect = Dialect {
    document: "a table",
    max_bytes: limits::MAX_SOURCE_BYTES,
    max_depth: limits::MAX_NESTING,
    too_large: code::FILE_TOO_LARGE,
    syntax: code::MINIJAIL_TABLE,
    nesting: code::MINIJAIL_TABLE,
    duplicate_key: code::MINIJAIL_TABLE,
    wrong_type: code::MINIJAIL_TABLE,
    range: code::MINIJAIL_TABLE,
    missing: code::MINIJAIL_TABLE,
    unknown_name: code::MINIJAIL_TABLE,
    unknown_member: code::MINIJAIL_TABLE,
    unknown_member_label: "minijail's tool ignores this",
};

/// The numbers of names on one architecture.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) arch: Arch,
    /// The architecture's name in qualifiers.
    pub(super) arch_name: String,
    syscalls: BTreeMap<String, u32>,
    constants: BTreeMap<String, u64>,
    /// By namespace and name.
    groups: BTreeMap<String, BTreeMap<String, Vec<u32>>>,
}

/// Parses a table of the sources; `None` if one of the diagnostics is an error.
pub(super) fn read(sources: &Sources, source: SourceId) -> (Option<Table>, Vec<Diagnostic>) {
    let mut reader = Reader::new(&DIALECT, source, false);
    let document = reader.parse(&sources.get(source).text);
    let table = document.and_then(|document| table(&mut reader, document.root()));
    let failed = reader.diagnostics.iter().any(Diagnostic::is_error);
    (table.filter(|_| !failed), reader.diagnostics)
}

fn table(reader: &mut Reader, document: Value<'_>) -> Option<Table> {
    let what = "a table";
    let root = reader.object(document, what)?;
    let mut part = |key: &str| {
        let value = reader.required(root, key, what)?;
        reader.object(value, &format!("`{key}`"))
    };
    let (syscalls, constants) = (part("syscalls")?, part("constants")?);
    let arch = architecture(reader, root)?;
    let arch_name = reader.required(root, "arch_name", what)?;
    let arch_name = reader.string(arch_name, "`arch_name`")?.to_string();
    let numbers: Vec<(String, u32)> = syscalls
        .members()
        .filter_map(|prop| {
            let what = format!("the number of `{}`", prop.name);
            let number = reader.unsigned(prop.value, &what, u64::from(u32::MAX))?;
            Some((prop.name.to_owned(), number as u32))
        })
        .collect();
    let syscalls: BTreeMap<String, u32> = numbers.into_iter().collect();
    let constants = constants
        .members()
        .filter_map(|prop| {
            let value = constant(reader, prop.name, prop.value, arch)?;
            Some((prop.name.to_owned(), value))
        })
        .collect();
    let groups = match member(root, "syscall_groups") {
        Some(value) => groups(reader, value, &syscalls)?,
        None => BTreeMap::new(),
    };
    Some(Table {
        arch,
        arch_name,
        syscalls,
        constants,
        groups,
    })
}

fn architecture(reader: &mut Reader, root: Object<'_>) -> Option<Arch> {
    let mut number = |key: &str, max: u64| {
        let value = reader.required(root, key, "a table")?;
        let number = reader.unsigned(value, &format!("`{key}`"), max)?;
        Some((number, value.range()))
    };
    let (audit, range) = number("arch_nr", u64::from(u32::MAX))?;
    let (bits, _) = number("bits", 64)?;
    let matches =
        |arch: &Arch| u64::from(arch.audit()) == audit && arch.is_64_bit() == (bits == 64);
    let arch = Arch::all().find(matches);
    if arch.is_none() {
        let message = format!("no {bits}-bit architecture has the number {audit:#x}");
        let label = "the kernel's AUDIT_ARCH value, in decimal";
        reader.error(code::MINIJAIL_TABLE, range, message, label);
    }
    arch
}

/// A constant, truncated to the width of a register as in minijail.
fn constant(reader: &mut Reader, name: &str, value: Value<'_>, arch: Arch) -> Option<u64> {
    let range = value.range();
    let number = value
        .as_number()
        .and_then(|literal| literal.parse::<i128>().ok())
        .filter(|number| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(number));
    if number.is_none() {
        let message = format!("the value of `{name}` must be an integer of 64 bits");
        reader.error(code::MINIJAIL_TABLE, range, message, "this is none");
    }
    number.map(|number| number as u64 & Width::of_registers(arch).max())
}

/// The groups, with their calls as numbers.
fn groups(
    reader: &mut Reader,
    value: Value<'_>,
    syscalls: &BTreeMap<String, u32>,
) -> Option<BTreeMap<String, BTreeMap<String, Vec<u32>>>> {
    let namespaces = reader.object(value, "`syscall_groups`")?;
    let mut all = BTreeMap::new();
    for namespace in namespaces.members() {
        let name = namespace.name;
        let Some(object) = reader.object(namespace.value, &format!("the namespace `{name}`"))
        else {
            continue;
        };
        let mut groups = BTreeMap::new();
        for group in object.members() {
            let group_name = group.name;
            let mut numbers = Vec::new();
            for (call, range) in reader.strings(group.value, &format!("the group `{group_name}`")) {
                match syscalls.get(call) {
                    Some(nr) => numbers.push(*nr),
                    None => {
                        let message = format!("the table has no call `{call}`");
                        let label = "a group names it";
                        reader.error(code::MINIJAIL_TABLE, range, message, label);
                    }
                }
            }
            groups.insert(group_name.to_owned(), numbers);
        }
        all.insert(name.to_owned(), groups);
    }
    Some(all)
}

impl Table {
    /// The value of a constant.
    pub(super) fn constant(&self, name: &str) -> Option<u64> {
        self.constants.get(name).copied()
    }

    /// The names of constants.
    pub(super) fn constants(&self) -> impl Iterator<Item = &str> {
        self.constants.keys().map(String::as_str)
    }

    /// The number of a call.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        self.syscalls.get(name).copied()
    }

    /// The names of calls.
    pub(super) fn calls(&self) -> impl Iterator<Item = &str> {
        self.syscalls.keys().map(String::as_str)
    }

    /// The numbers of a group's calls, by its name `group@namespace`.
    pub(super) fn group(&self, name: &str) -> Option<&[u32]> {
        let (group, namespace) = name.split_once('@')?;
        let groups = self.groups.get(namespace)?;
        groups.get(group).map(Vec::as_slice)
    }

    /// The hint for an unknown group.
    pub(super) fn other_group(&self, name: &str) -> String {
        let names = self.groups.iter().flat_map(|(namespace, groups)| {
            groups
                .keys()
                .map(move |group| format!("{group}@{namespace}"))
        });
        let names: Vec<String> = names.collect();
        match suggest::nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "the table has no `syscall_groups`".to_owned(),
            None => format!("there are {}", names.join(", ")),
        }
    }
}

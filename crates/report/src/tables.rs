//! Architectures, system calls and constants: `tamis tables`.

use std::fmt;

use serde::Serialize;
use tamis_abi::{Arch, Endian, Nr, signature, syscall};

use crate::Document;

/// Architectures.
#[derive(Serialize)]
pub struct ArchTable {
    pub entries: Vec<ArchRow>,
}

/// System calls.
#[derive(Serialize)]
pub struct SyscallTable {
    pub entries: Vec<SyscallRow>,
}

/// Constants for arguments.
#[derive(Serialize)]
pub struct ConstantTable {
    pub entries: Vec<ConstantRow>,
}

/// An architecture.
#[derive(Serialize)]
pub struct ArchRow {
    pub name: &'static str,
    pub audit: u32,
    pub word_bits: u8,
    pub endian: &'static str,
    pub syscalls: usize,
}

/// A system call of an architecture.
#[derive(Serialize)]
pub struct SyscallRow {
    pub arch: &'static str,
    pub name: &'static str,
    pub nr: u32,
    pub since: Option<String>,
    pub args: Vec<ArgEntry>,
}

/// An argument of a system call.
#[derive(Serialize)]
pub struct ArgEntry {
    pub name: &'static str,
    pub c_type: &'static str,
    pub width_bits: u32,
}

/// A constant of an architecture.
#[derive(Serialize)]
pub struct ConstantRow {
    pub arch: &'static str,
    pub name: &'static str,
    pub value: u64,
}

impl Document for ArchTable {
    const SCHEMA: &'static str = "tamis.tables.arches/1";
}

impl Document for SyscallTable {
    const SCHEMA: &'static str = "tamis.tables.syscalls/1";
}

impl Document for ConstantTable {
    const SCHEMA: &'static str = "tamis.tables.constants/1";
}

impl ArchRow {
    /// What is known of an architecture.
    pub fn of(arch: Arch) -> ArchRow {
        ArchRow {
            name: arch.name(),
            audit: arch.audit(),
            word_bits: if arch.is_64_bit() { 64 } else { 32 },
            endian: match arch.endian() {
                Endian::Little => "little",
                Endian::Big => "big",
            },
            syscalls: syscall::all(arch).count(),
        }
    }
}

impl SyscallRow {
    /// What is known of a system call.
    pub fn of(arch: Arch, nr: Nr, name: &'static str) -> SyscallRow {
        let args = signature::args(name).unwrap_or_default();
        let arg = |arg: &signature::Arg| ArgEntry {
            name: arg.name,
            c_type: arg.c_type,
            width_bits: signature::width(arch, name, arg).bits(),
        };
        SyscallRow {
            arch: arch.name(),
            name,
            nr: nr.0,
            since: syscall::since(arch, nr).map(|version| version.to_string()),
            args: args.iter().map(arg).collect(),
        }
    }
}

impl fmt::Display for ArchTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.entries {
            let ArchRow {
                name,
                audit,
                word_bits,
                endian,
                syscalls,
            } = row;
            writeln!(
                f,
                "{name:<12} {audit:#010x}  {word_bits} bit  {endian:<6}  {syscalls:>3} calls"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for SyscallTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.entries {
            let args = row.args.iter();
            let args: Vec<String> = args
                .map(|arg| format!("{} {}", arg.c_type, arg.name))
                .collect();
            let SyscallRow { arch, name, nr, .. } = row;
            write!(f, "{arch:<12} {nr:>10}  {name}({})", args.join(", "))?;
            if let Some(since) = &row.since {
                write!(f, "  since {since}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for ConstantTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ConstantRow { arch, name, value } in &self.entries {
            let signed = value.cast_signed();
            writeln!(f, "{arch:<12} {name} = {value:#x} ({signed})")?;
        }
        Ok(())
    }
}

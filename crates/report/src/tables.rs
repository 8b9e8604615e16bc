//! Architectures, system calls, constants and options of policy languages: `tamis tables`.

use std::fmt::{self, Display};

use serde::Serialize;
use tamis_abi::{Arch, ArgIndex, Endian, Nr, signature, syscall};
use tamis_diag::Code;
use tamis_policy::front_end::FrontEnd;
use tamis_policy::option::{LanguageOption, OptionChoice, OptionForm};

/// The selected rows of a table.
#[derive(Serialize)]
pub struct Table<R> {
    pub entries: Vec<R>,
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
    /// The index among the six arguments of `seccomp_data`; `None` if the argument has no single index, such as a
    /// 64-bit argument on a 32-bit architecture.
    pub index: Option<usize>,
}

/// A constant of an architecture.
#[derive(Serialize)]
pub struct ConstantRow {
    pub arch: &'static str,
    pub name: &'static str,
    pub value: u64,
}

/// An option of a policy language.
#[derive(Serialize)]
pub struct OptionRow {
    pub language: &'static str,
    pub name: &'static str,
    pub value: String,
    pub is_repeatable: bool,
    pub default: &'static str,
    pub help: &'static str,
    pub choices: Vec<ChoiceEntry>,
}

/// A value of an option with few values.
#[derive(Serialize)]
pub struct ChoiceEntry {
    pub name: &'static str,
    pub help: &'static str,
}

/// A code of diagnostics.
#[derive(Serialize)]
pub struct CodeRow {
    pub code: &'static str,
    pub title: &'static str,
}

impl CodeRow {
    /// The row of a code.
    pub fn from_code(code: &Code) -> CodeRow {
        CodeRow {
            code: code.id,
            title: code.title,
        }
    }
}

impl Display for CodeRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.title)
    }
}

impl ArchRow {
    /// The row of an architecture.
    pub fn from_arch(arch: Arch) -> ArchRow {
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
    /// The row of a system call.
    pub fn from_syscall(arch: Arch, nr: Nr, name: &'static str) -> SyscallRow {
        let args = signature::args(name).unwrap_or_default();
        let arg = |arg: &signature::Arg| ArgEntry {
            name: arg.name(),
            c_type: arg.c_type(),
            width_bits: signature::width(arch, name, arg).bits(),
            index: signature::index(arch, name, arg.name()).map(ArgIndex::index),
        };
        let mut args: Vec<ArgEntry> = args.iter().map(arg).collect();
        // The order differs between architectures; without an index for each argument, it is that of x86_64.
        if args.iter().all(|arg| arg.index.is_some()) {
            args.sort_by_key(|arg| arg.index);
        }
        SyscallRow {
            arch: arch.name(),
            name,
            nr: nr.0,
            since: syscall::since(arch, nr).map(|version| version.to_string()),
            args,
        }
    }
}

impl OptionRow {
    /// The row of an option.
    pub fn from_option(language: &FrontEnd, option: &LanguageOption) -> OptionRow {
        let choices = match &option.form {
            OptionForm::Choice(choices) => *choices,
            _ => &[],
        };
        let choice = |own: &OptionChoice| ChoiceEntry {
            name: own.name,
            help: own.help,
        };
        OptionRow {
            language: language.name,
            name: option.name,
            value: option.value_form(),
            is_repeatable: option.is_repeatable(),
            default: option.default,
            help: option.help,
            choices: choices.iter().map(choice).collect(),
        }
    }
}

impl<R: Display> Display for Table<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

impl Display for ArchRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12} {:#010x}", self.name, self.audit)?;
        let (bits, endian, calls) = (self.word_bits, self.endian, self.syscalls);
        write!(f, "  {bits} bit  {endian:<6}  {calls:>3} calls")
    }
}

impl Display for SyscallRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arg = |arg: &ArgEntry| format!("{} {}", arg.c_type, arg.name);
        let args: Vec<String> = self.args.iter().map(arg).collect();
        write!(f, "{:<12} {:>10}", self.arch, self.nr)?;
        write!(f, "  {}({})", self.name, args.join(", "))?;
        match &self.since {
            Some(since) => write!(f, "  since {since}"),
            None => Ok(()),
        }
    }
}

impl Display for ConstantRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConstantRow { arch, name, value } = self;
        let signed = value.cast_signed();
        write!(f, "{arch:<12} {name} = {value:#x} ({signed})")
    }
}

impl Display for OptionRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12} {}", self.language, self.name)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, "\n    {} [default: {}]", self.help, self.default)?;
        for ChoiceEntry { name, help } in &self.choices {
            write!(f, "\n    {name}: {help}")?;
        }
        Ok(())
    }
}

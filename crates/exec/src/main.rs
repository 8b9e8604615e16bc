//! `tamis-exec`: installs raw filters and executes a command.
//!
//! It is `tamis exec` without languages and compiler; the filters are output of `tamis compile`. It is small and can be
//! linked statically, so it can be added to an image of a container, a unit's `ExecStart=` or `inetd.conf`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use lexopt::Arg;
use tamis_bpf::{Insn, Program, program};
use tamis_kernel::execute::{Execute, ExecuteError};
use tamis_kernel::{Flag, Flags, NATIVE_ENDIAN};

tamis_kernel::note_start!();

const USAGE: u8 = 2;
const HELP: &str = "\
Execute a command under seccomp filters, in place

Usage: tamis-exec [OPTIONS] [--] COMMAND [ARGUMENTS]

  -p, --policy FILE   A raw filter, as `tamis compile -o FILE.bpf` writes it; may be
                      repeated, the first is installed first. The alias is --filter
      --argv0 NAME    Tell the command this name instead of its own
      --keep-privs    Don't set no_new_privs if the kernel takes the filters without it,
                      as it does with CAP_SYS_ADMIN
      --log           Let the kernel write an audit record for every action except allow
      --spec-allow    Don't enable the mitigation against speculative store bypass
  -h, --help          Print this
  -V, --version       Print the version

Policies in languages are for `tamis exec`, or compiled before.

Exit status: that of the command. Before it: 2 wrong usage, or a filter that denies execve or
needs a supervisor; 4 the kernel refuses a filter; 126 the command could not be executed; 127 it
was not found.
";

/// The command line.
#[derive(Default)]
struct Args {
    filters: Vec<OsString>,
    name: Option<OsString>,
    keep_privs: bool,
    flags: Flags,
    command: Vec<OsString>,
}

/// The message and the exit code.
struct Failure(String, u8);

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(Failure(message, code)) => {
            // If writing fails, only the exit code remains.
            let _ = writeln!(io::stderr(), "tamis-exec: {message}");
            ExitCode::from(code)
        }
    }
}

fn run() -> Result<ExitCode, Failure> {
    let Some(args) = parse()? else {
        return Ok(ExitCode::SUCCESS);
    };
    let programs = args.filters.iter().map(read);
    let programs = programs.collect::<Result<Vec<Program>, Failure>>()?;
    let [command, arguments @ ..] = args.command.as_slice() else {
        return Err(usage("which command?"));
    };
    let plan = Execute {
        program: command.clone(),
        name: args.name,
        args: arguments.to_vec(),
        filters: programs.iter().map(|own| (own, args.flags)).collect(),
        keep_privs: args.keep_privs,
    };
    let error = plan.execute();
    let code = error.exit_code();
    if let ExecuteError::Exec {
        may_tell: false, ..
    } = error
    {
        return Ok(ExitCode::from(code));
    }
    let about = match error.filter() {
        Some(filter) => &args.filters[filter],
        None => command,
    };
    let help = error.hint().map(|hint| format!("\nhelp: {hint}"));
    let help = help.unwrap_or_default();
    Err(Failure(
        format!("{}: {error}{help}", about.to_string_lossy()),
        code,
    ))
}

/// Parses the command line; `None` if it requested the help or the version.
fn parse() -> Result<Option<Args>, Failure> {
    let wrong = |error: lexopt::Error| usage(&error.to_string());
    let mut args = Args::default();
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next().map_err(wrong)? {
        match arg {
            Arg::Short('p') | Arg::Long("policy" | "filter") => {
                args.filters.push(parser.value().map_err(wrong)?);
            }
            Arg::Long("argv0") => args.name = Some(parser.value().map_err(wrong)?),
            Arg::Long("keep-privs") => args.keep_privs = true,
            Arg::Long("log") => args.flags = args.flags | Flag::Log,
            Arg::Long("spec-allow") => args.flags = args.flags | Flag::SpecAllow,
            Arg::Short('h') | Arg::Long("help") => return print(HELP),
            Arg::Short('V') | Arg::Long("version") => {
                return print(concat!("tamis-exec ", env!("CARGO_PKG_VERSION"), "\n"));
            }
            Arg::Value(command) => {
                args.command.push(command);
                args.command.extend(parser.raw_args().map_err(wrong)?);
            }
            other => return Err(wrong(other.unexpected())),
        }
    }
    match args.filters.is_empty() {
        true => Err(usage("which filter? Name one with -p FILE")),
        false => Ok(Some(args)),
    }
}

fn print(text: &str) -> Result<Option<Args>, Failure> {
    let printed = io::stdout().write_all(text.as_bytes());
    match printed {
        Ok(()) => Ok(None),
        Err(error) => Err(Failure(format!("standard output: {error}"), 4)),
    }
}

fn usage(message: &str) -> Failure {
    Failure(format!("{message}\nhelp: tamis-exec --help"), USAGE)
}

/// Reads a filter and validates it like the kernel.
fn read(path: &OsString) -> Result<Program, Failure> {
    let wrong = |what: &dyn std::fmt::Display| {
        Failure(format!("{}: {what}", path.to_string_lossy()), USAGE)
    };
    // One byte beyond the longest filter, to detect a longer file.
    let limit = Program::MAX_INSNS * Insn::SIZE_BYTES + 1;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limit as u64).read_to_end(&mut bytes))
        .map_err(|error| wrong(&error))?;
    if bytes.len() == limit {
        return Err(wrong(
            &"the kernel takes filters of at most 4096 instructions",
        ));
    }
    let insns = program::insns_from_bytes(&bytes, NATIVE_ENDIAN);
    let program = insns.and_then(|insns| Program::new(insns, NATIVE_ENDIAN).ok());
    program.ok_or_else(|| {
        wrong(&"no raw filter that the kernel would take\nhelp: `tamis compile` makes one of a policy, `tamis bpf disasm` \
                shows what is wrong")
    })
}

//! `bench/peers`: tamis beside other compilers, in one table.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;

use lexopt::prelude::*;
use tamis_bench::book;
use tamis_bench::peers::comparison::compared;
use tamis_bench::peers::report::{PeersReport, SCHEMA};
use tamis_bench::peers::tools::Compilers;
use tamis_bench::peers::{cases, rfc, sandbox};
use tamis_testkit::corpus;

const USAGE: &str = "\
Compares tamis with other compilers: the same policies, what each makes of them, and what that costs.

usage: bench/peers [--json] [--rounds NUMBER] [--counts | --book]

  --json           one document instead of tables
  --rounds NUMBER  how many times each filter is installed and timed [default: 6]
  --counts         only what can be counted and proved: no times
  --book           put the tables that docs/book/peers.md has into it

Exit code: 0 done, 2 wrong usage, 4 the filters could not be timed here (all else is printed).
";

const USAGE_CODE: u8 = 2;
const ENVIRONMENT_CODE: u8 = 4;
const ROUNDS: u32 = 6;
const PAGE: &str = "peers.md";

struct CommandLine {
    json: bool,
    rounds: Option<u32>,
    is_for_book: bool,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}\n\n{USAGE}");
            return ExitCode::from(USAGE_CODE);
        }
    };
    let report = report(&options);
    let text = match options.json {
        true => serde_json::to_string_pretty(&report).expect("a report is JSON") + "\n",
        false => report.text(),
    };
    // It is not an error if the reader closes the pipe.
    let _ = std::io::stdout().write_all(text.as_bytes());
    if report.not_timed().is_some() {
        return ExitCode::from(ENVIRONMENT_CODE);
    }
    if options.is_for_book {
        book::put_and_tell(PAGE, &report.tables());
    }
    ExitCode::SUCCESS
}

/// The options; `None` for help.
fn options() -> Result<Option<CommandLine>, lexopt::Error> {
    let mut options = CommandLine {
        json: false,
        rounds: Some(ROUNDS),
        is_for_book: false,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("json") => options.json = true,
            Long("counts") => options.rounds = None,
            Long("book") => options.is_for_book = true,
            Long("rounds") => options.rounds = Some(parser.value()?.parse_with(rounds)?),
            Long("help") | Short('h') => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    if options.is_for_book && options.rounds.is_none() {
        return Err("the book's tables have times: `--book` or `--counts`".into());
    }
    Ok(Some(options))
}

fn rounds(text: &str) -> Result<u32, String> {
    let rounds = text
        .parse()
        .ok()
        .filter(|rounds| (1..=1000).contains(rounds));
    rounds.ok_or_else(|| "the number of rounds is from 1 to 1000".to_owned())
}

/// Prints the present comparison on a terminal.
fn progress(what: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("{what} …");
    }
}

fn report(options: &CommandLine) -> PeersReport {
    let start = Instant::now();
    let (compilers, mut missing) = Compilers::find();
    let mut policies = Vec::new();
    for case in cases::cases() {
        progress(case.name);
        policies.push(compared(&case, &compilers, options.rounds));
    }
    if !corpus::is_there() {
        missing.push("the corpus in ../shared/corpus: policies and programs of others".to_owned());
    }
    progress("306 calls");
    let rfc = rfc::experiment(compilers.libseccomp.as_ref(), options.rounds);
    let sandbox = sandbox::sandbox(options.rounds);
    PeersReport {
        schema: SCHEMA,
        kernel: tamis_kernel::probe().release,
        rounds: options.rounds,
        rfc: rfc.map_err(|reason| missing.push(reason)).ok(),
        sandbox: sandbox
            .map_err(|reason| missing.push(reason))
            .ok()
            .flatten(),
        missing,
        policies,
        total_s: start.elapsed().as_secs_f64(),
    }
}

//! Developer tasks: `cargo xtask TASK`.

mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

  tidy     check what the compiler and clippy don't: crate edges, sizes, words, links
";

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = lexopt::Parser::from_env();
    let task = match arguments.next()? {
        Some(lexopt::Arg::Value(task)) => task.into_string().unwrap_or_default(),
        Some(lexopt::Arg::Long("help") | lexopt::Arg::Short('h')) => {
            print!("{USAGE}");
            return Ok(ExitCode::SUCCESS);
        }
        _ => String::new(),
    };
    match task.as_str() {
        "tidy" => tidy::main(),
        _ => {
            eprint!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}

//! `tamis-check DIR`: whether a certificate of `tamis --certify` is right.

use std::path::Path;
use std::process::ExitCode;

use tamis_check::{Refusal, check};

const USAGE: &str = "\
Usage: tamis-check DIR
Checks the table of a certificate that `tamis --certify DIR` wrote.
Exit status: 0 accepted; 1 rejected; 2 a file is missing, has another form, or is of another version.";

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    match args.as_slice() {
        [flag] if flag == "--help" || flag == "-h" => println!("{USAGE}"),
        [flag] if flag == "--version" || flag == "-V" => {
            println!("tamis-check {}", env!("CARGO_PKG_VERSION"));
        }
        [folder] => return run(Path::new(folder)),
        _ => return refuse(2, "wrong usage", USAGE),
    }
    ExitCode::SUCCESS
}

fn run(folder: &Path) -> ExitCode {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    match check(&read) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(Refusal::Rejected(text) | Refusal::Unfollowed(text)) => refuse(1, "rejected", &text),
        Err(Refusal::Bad(text)) => refuse(2, "bad certificate", &text),
    }
}

fn refuse(code: u8, title: &str, text: &str) -> ExitCode {
    eprintln!("{title}: {text}");
    ExitCode::from(code)
}

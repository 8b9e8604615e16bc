//! The worst use of each command's limits over all hostile inputs, with a time limit of a second: `cargo run -p
//! tamis-testkit --example limits -- target/release/tamis DIR`. DIR is for the inputs.

use std::path::{Path, PathBuf};
use std::{env, fs};

use tamis_testkit::generate::hostile::{self, texts};
use tamis_testkit::limited;

fn main() -> std::io::Result<()> {
    let mut args = env::args_os().skip(1).map(PathBuf::from);
    let program = args.next().expect("the command");
    let folder = args.next().expect("the folder for the inputs");
    fs::create_dir_all(&folder)?;
    let mut inputs = Vec::new();
    for text in texts::all(15) {
        inputs.push((text.name, text.kind, text.bytes));
    }
    for hostile in hostile::all() {
        let [left, _] = hostile.sides;
        inputs.push((hostile.name, hostile.extension, left));
    }
    println!("{} inputs", inputs.len());
    for (index, (_, kind, bytes)) in inputs.iter().enumerate() {
        fs::write(path(&folder, index, kind), bytes)?;
    }
    for command in limited::COMMANDS {
        worst_of(&program, &folder, command, &inputs);
    }
    Ok(())
}

fn path(folder: &Path, index: usize, kind: &str) -> PathBuf {
    folder.join(format!("{index}.{kind}"))
}

/// Prints the worst figures of a command, and the inputs that ended it by a signal or as a bug.
fn worst_of(program: &Path, folder: &Path, command: &[&str], inputs: &[(String, &str, Vec<u8>)]) {
    let (mut slowest, mut slowest_name, mut most_bytes, mut given_up) = (0.0, "", 0, 0);
    for (index, (name, kind, _)) in inputs.iter().enumerate() {
        let file = path(folder, index, kind);
        let args = limited::args(command, &file.display().to_string(), kind);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let outcome = limited::run(program, &[&args[..], &["--time-limit=1"]].concat());
        if outcome.cpu_s > slowest {
            (slowest, slowest_name) = (outcome.cpu_s, name);
        }
        most_bytes = most_bytes.max(outcome.stderr.len());
        given_up += usize::from(outcome.status == 3);
        if !(0..=3).contains(&outcome.status) {
            println!("exit {}: {args:?}: {}", outcome.status, outcome.stderr);
        }
    }
    let name = command[0];
    println!("{name}: {slowest:.2} s ({slowest_name}), {given_up} given up, {most_bytes} bytes");
}

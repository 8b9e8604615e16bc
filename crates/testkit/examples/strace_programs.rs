//! Programs that are given by a file, a path a line, each run under `strace -f -c` and the recorder at once: prints those whose
//! counts differ, and exits with 1 if there are any. `bench/strace-programs` gives it the programs of strace's own tests.
//!
//! A program that hasn't ended after some seconds is killed, and isn't compared.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use tamis_kernel::spawn::Spawn;

#[path = "../tests/it/recorder/against_strace.rs"]
mod against_strace;

/// How long a program may run, in seconds.
const LIMIT_S: &str = "10";

fn main() -> ExitCode {
    let (Some(list), Some(folder)) = (std::env::args().nth(1), std::env::args().nth(2)) else {
        eprintln!("usage: strace_programs LIST FOLDER");
        return ExitCode::from(2);
    };
    let list = match fs::read_to_string(&list) {
        Ok(list) => list,
        Err(error) => {
            eprintln!("{list}: {error}");
            return ExitCode::from(2);
        }
    };
    let (mut equal, mut different) = (0, 0);
    for program in list.lines() {
        let mut spawn = Spawn::new("timeout");
        let script = format!("exec >/dev/null 2>&1 </dev/null; cd {folder}; exec {program}");
        let args = ["-s", "KILL", LIMIT_S, "sh", "-c", &script];
        spawn.args = args.map(Into::into).to_vec();
        spawn.no_new_privs = false;
        match against_strace::difference(&spawn, &Path::new(&folder).join("table")) {
            None => equal += 1,
            Some(difference) => {
                different += 1;
                println!("{program}: {difference}");
            }
        }
    }
    println!("{equal} equal, {different} different");
    ExitCode::from(u8::from(different > 0))
}

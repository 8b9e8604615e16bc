//! Z3, asked by a process.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::skip::{self, Need};

/// Z3's answers to a script, one word per question.
///
/// # Panics
/// If Z3 fails.
pub fn ask_z3(script: &str) -> Vec<String> {
    let mut command = Command::new("z3");
    // A limit in Z3's own steps, which is the same on every machine; beyond it the answer is `unknown`.
    command.args(["-in", "rlimit=10000000"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        skip::because(Need::Peers, "there is no program z3");
    };
    let mut stdin = child.stdin.take().expect("it was asked for");
    let script = script.to_owned();
    // Z3 writes while it reads, so writing needs a thread of its own: a full pipe must block neither side.
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = child.wait_with_output().expect("Z3 ends");
    writer.join().expect("no panic").expect("Z3 reads all");
    let answers = String::from_utf8(output.stdout).expect("Z3 answers in ASCII");
    answers.lines().map(str::to_owned).collect()
}

/// The modules of Python that answer a script of SMT-LIB, with the statements that do so.
pub const MODULES: [(&str, &str); 2] = [
    (
        "cvc5",
        "solver = cvc5.Solver(cvc5.TermManager())
parser = cvc5.InputParser(solver)
parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, sys.stdin.read(), 'claim')
while not (command := parser.nextCommand()).isNull():
    print(command.invoke(solver, parser.getSymbolManager()), end='')
",
    ),
    (
        "bitwuzla",
        "parser = bitwuzla.Parser(bitwuzla.TermManager(), bitwuzla.Options())
parser.parse(sys.stdin.read(), False, False)
",
    ),
];

/// A module's answers to a script, one word per question.
///
/// # Panics
/// If Python fails.
pub fn ask_module(module: &str, statements: &str, script: &str) -> Vec<String> {
    let program = format!(
        "import sys\ntry:\n    import {module}\nexcept ImportError:\n    sys.exit(9)\n{statements}"
    );
    let mut command = Command::new("python3");
    command.args(["-c", &program]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|_| skip::because(Need::Solvers, "no python3"));
    let mut stdin = child.stdin.take().expect("it was asked for");
    let script = script.to_owned();
    // Without the module nobody reads.
    let writer = std::thread::spawn(move || drop(stdin.write_all(script.as_bytes())));
    let output = child.wait_with_output().expect("Python ends");
    writer.join().expect("no panic");
    if output.status.code() == Some(9) {
        skip::because(Need::Solvers, format_args!("there is no module {module}"));
    }
    let answers = String::from_utf8(output.stdout).expect("answers in ASCII");
    answers.lines().map(str::to_owned).collect()
}

//! The kernel's assembler `bpf_asm` as an oracle of assembler text: the package `bpf-asm` of PyPI has it as a module.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use tamis_bpf::Insn;

use crate::child;
use crate::scratch::Scratch;

/// The package with the assembler.
pub const PACKAGE: &str = "bpf-asm 0.1.5";
/// Reads a list of texts from a file, and prints a list of lists of instructions, or of `null`.
const SCRIPT: &str = "\
import importlib.metadata, json, sys
assert importlib.metadata.version('bpf-asm') == '0.1.5'
import bpf_asm
def made(text):
    try:
        return bpf_asm.assemble(text)
    except bpf_asm.Error:
        return None
print(json.dumps([made(text) for text in json.load(open(sys.argv[1]))]))
";

/// The instructions of texts; `None` for rejected ones.
///
/// # Errors
/// The reason why the assembler isn't available, as a sentence.
///
/// # Panics
/// If its output is invalid, or a file can't be written.
pub fn assemble(texts: &[String]) -> Result<Vec<Option<Vec<Insn>>>, String> {
    let scratch = Scratch::new("bpf-asm").expect("a folder for the texts");
    let path = scratch.path().join("texts");
    fs::write(&path, Value::from(texts.to_vec()).to_string()).expect("the file can be written");
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT]).arg(&path).stdin(Stdio::null());
    let output = child::output(&mut python);
    let output = output.map_err(|error| format!("python3: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or_default();
        return Err(format!("{PACKAGE} can't be asked: {last}"));
    }
    let answer: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let programs = answer.as_array().expect("a list").iter();
    Ok(programs.map(insns).collect())
}

fn insns(program: &Value) -> Option<Vec<Insn>> {
    let number = |value: &Value| value.as_u64().expect("a number");
    let insn = |fields: &Value| Insn {
        code: number(&fields[0]) as u16,
        jt: number(&fields[1]) as u8,
        jf: number(&fields[2]) as u8,
        k: number(&fields[3]) as u32,
    };
    Some(program.as_array()?.iter().map(insn).collect())
}

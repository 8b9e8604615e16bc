//! Misreadings of programs, each with a filter that is made for it.
//!
//! The filter does something with one instruction, or one rule of the machine, and leaves so much to gain
//! that a result is made of it. Whoever misreads that instruction takes the filter for another one, which
//! is what would come out if nobody else looked.

mod arithmetic;
mod control;
mod moves;
mod rules;

use tamis_abi::Endian;
use tamis_bpf::{Op, Program, Stack, asm};
use tamis_diag::Sources;
use tamis_prover::misreading::{Misreading, Rule};

/// A misreading and the filters that it spoils.
pub struct Case {
    /// What is misread, in kebab-case.
    pub name: &'static str,
    /// The misreading.
    pub misreading: Misreading,
    /// The filters of a task, the oldest first: one, unless the misreading is about several.
    pub filters: Stack,
}

/// Makes the filter worth compiling again: one argument is asked for ten values in a row.
const CHAIN: &str = "ld [arg5.low]|jeq #0, go|jeq #1, go|jeq #2, go|jeq #3, go|jeq #4, go|jeq #5, go|\
                     jeq #6, go|jeq #7, go|jeq #8, go|jeq #9, go|ret #errno(2)|go: ";

/// What it begins with.
const X86_64: &str = "ld [arch]|jeq #arch(x86_64), native|ret #kill_process|native: ";

/// What it ends with.
const ENDS: &str = "|allow: ret #allow|deny: ret #errno(1)";

/// All cases.
pub fn all() -> Vec<Case> {
    [
        arithmetic::cases(),
        control::cases(),
        moves::cases(),
        rules::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A case of an instruction taken for another, with what the filter does for the ten values.
fn op(name: &'static str, map: fn(Op) -> Op, core: &str) -> Case {
    case(name, Misreading::Op(map), core)
}

/// A case of a rule that is got wrong.
fn rule(name: &'static str, rule: Rule, core: &str) -> Case {
    case(name, Misreading::Rule(rule), core)
}

fn case(name: &'static str, misreading: Misreading, core: &str) -> Case {
    let filter = assembled(&format!("{X86_64}{CHAIN}{core}{ENDS}"), Endian::Little);
    Case {
        name,
        misreading,
        filters: filter.into(),
    }
}

/// The program of a text with bars for the ends of lines.
fn assembled(text: &str, endian: Endian) -> Program {
    let text = text.replace('|', "\n");
    let source = Sources::new().add("case", text.clone());
    let assembly = asm::assemble(&text, source, endian);
    let assembly = assembly.unwrap_or_else(|errors| panic!("{text}\n{errors:?}"));
    assembly.into_program().expect("the case is a program")
}

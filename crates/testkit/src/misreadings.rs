//! Misreadings of programs, each with a filter that reveals it.
//!
//! The result of the filter depends on one instruction, or one rule of the machine, and the filter can be optimised
//! so much that there is always a result. A reader with that misreading takes the filter for another function, and
//! without a second judge the result would be that function.

mod arithmetic;
mod control;
mod moves;
mod rules;

use tamis_abi::Endian;
use tamis_bpf::{Op, Program, Stack, asm};
use tamis_diag::Sources;
use tamis_prover::misreading::{Misreading, Rule};

/// A misreading, with the filters that reveal it.
pub struct Case {
    /// The name of the misreading, in kebab-case.
    pub name: &'static str,
    /// The misreading.
    pub misreading: Misreading,
    /// The filters of a task, the oldest first: one, unless the misreading concerns several.
    pub filters: Stack,
}

/// A part that makes optimisation worthwhile: one argument is compared with ten values in a row.
const CHAIN: &str = "ld [arg5.low]|jeq #0, go|jeq #1, go|jeq #2, go|jeq #3, go|jeq #4, go|jeq #5, go|\
                     jeq #6, go|jeq #7, go|jeq #8, go|jeq #9, go|ret #errno(2)|go: ";

/// The beginning of the filter.
const X86_64: &str = "ld [arch]|jeq #arch(x86_64), native|ret #kill_process|native: ";

/// The end of the filter.
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

/// A case of a misread instruction, with the filter's code for the ten values.
fn op(name: &'static str, map: fn(Op) -> Op, core: &str) -> Case {
    case(name, Misreading::Op(map), core)
}

/// A case of a misread rule.
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

/// The program of a text with bars instead of line ends.
fn assembled(text: &str, endian: Endian) -> Program {
    let text = text.replace('|', "\n");
    let source = Sources::new().add("case", text.clone());
    let assembly = asm::assemble(&text, source, endian);
    let assembly = assembly.unwrap_or_else(|errors| panic!("{text}\n{errors:?}"));
    assembly.into_program().expect("the case is a program")
}

//! The last step: does the program do what the ruleset says?
//!
//! Nothing leaves the compiler but through [`Compiled`], and only this file makes one. The comparison
//! is a directed test against the two definitions of meaning, [`Ruleset::decide`] and the reference
//! interpreter, on calls derived from the constants of the ruleset and of the program: numbers at and
//! beside every border, arguments that satisfy each rule, and those with one operand moved by one, with
//! its mask, and with the other half disturbed. It shares no code with layout, emission or passes.
//!
//! The number of calls is bounded, so this is a test and no proof.

use std::collections::BTreeSet;

use tamis_abi::{Arch, Endian, SeccompData};
use tamis_bpf::{Op, Operand, Program, interp};
use tamis_rules::{Operand as Value, Part, Predicate, Rule, Ruleset, Section, Test};

use crate::error::CompileError;
use crate::passes::Remark;
use crate::stats::Stats;

/// How many rules may be evaluated in all; bounds the time for large rulesets.
const MAX_RULE_EVALUATIONS: usize = 150_000;

/// How many calls are tried at least, however large the ruleset.
const MIN_CALLS: usize = 500;

/// How many calls are tried at most.
const MAX_CALLS: usize = 3000;

/// How many calls are derived from one rule at most.
const MAX_CALLS_PER_RULE: usize = 64;

/// A program together with the knowledge that it was compared with its ruleset.
#[derive(Clone, Debug)]
pub struct Compiled {
    program: Program,
    endian: Endian,
    remarks: Vec<Remark>,
    stats: Stats,
}

impl Compiled {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The byte order of the machines that the program is for.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// What the passes did, in order.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// Figures about the program.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

/// Compares the program with the ruleset as it was given to the compiler.
pub(crate) fn verify(
    program: Program,
    ruleset: &Ruleset,
    endian: Endian,
    remarks: Vec<Remark>,
) -> Result<Compiled, CompileError> {
    for call in calls(ruleset, &program) {
        let expected_ret = ruleset.decide(&call).action.ret();
        let actual_ret = interp::run(&program, &call.image(endian)).ret;
        if expected_ret != actual_ret {
            return Err(CompileError::Miscompiled {
                witness: call,
                expected_ret,
                actual_ret,
            });
        }
    }
    let stats = Stats::of(&program, ruleset);
    Ok(Compiled {
        program,
        endian,
        remarks,
        stats,
    })
}

/// The calls to try: evenly thinned out to what the budget allows.
fn calls(ruleset: &Ruleset, program: &Program) -> Vec<SeccompData> {
    let mut calls = Vec::new();
    let mut rules = 0;
    for section in ruleset.sections() {
        rules = rules.max(section.rules.len());
        add_borders(section, &mut calls);
        for rule in &section.rules {
            add_rule(section.arch, rule, &mut calls);
        }
    }
    add_constants(ruleset, program, &mut calls);
    let limit = (MAX_RULE_EVALUATIONS / (rules + 1)).clamp(MIN_CALLS, MAX_CALLS);
    let keep_every = calls.len().div_ceil(limit).max(1);
    calls.into_iter().step_by(keep_every).collect()
}

fn call(arch: Arch, nr: u32) -> SeccompData {
    SeccompData {
        nr,
        arch: arch.audit(),
        ..SeccompData::default()
    }
}

/// The numbers at the borders of the rules, and those beside them.
fn add_borders(section: &Section, calls: &mut Vec<SeccompData>) {
    let mut numbers: BTreeSet<u32> = [0, Arch::X32_BIT - 1, Arch::X32_BIT, u32::MAX].into();
    for rule in &section.rules {
        for (first, last) in rule.syscalls.intervals() {
            numbers.extend([first.wrapping_sub(1), *first, *last, last.wrapping_add(1)]);
        }
    }
    calls.extend(numbers.into_iter().map(|nr| call(section.arch, nr)));
}

/// The constants of the program as numbers and as architectures.
fn add_constants(ruleset: &Ruleset, program: &Program, calls: &mut Vec<SeccompData>) {
    let mut constants: BTreeSet<u32> = BTreeSet::new();
    for insn in program.insns() {
        if let Some(Op::Branch {
            operand: Operand::K(k),
            ..
        }) = insn.op()
        {
            constants.insert(k);
        }
    }
    for constant in constants {
        for arch in ruleset.sections().iter().map(|section| section.arch) {
            calls.push(call(arch, constant));
        }
        calls.push(SeccompData {
            arch: constant,
            ..SeccompData::default()
        });
        let everywhere = u64::from(constant) << 32 | u64::from(constant);
        calls.push(SeccompData {
            nr: constant,
            arch: !constant,
            ip: everywhere,
            args: [everywhere; 6],
        });
    }
}

/// A call that satisfies the rule, if that is easy to find, and calls beside it.
fn add_rule(arch: Arch, rule: &Rule, calls: &mut Vec<SeccompData>) {
    let Some((nr, _)) = rule.syscalls.intervals().first() else {
        return;
    };
    let mut tests = Vec::new();
    collect_tests(&rule.when, &mut tests);
    if tests.is_empty() {
        return;
    }
    let mut base = call(arch, *nr);
    for test in &tests {
        let (operand, values) = interesting(test, &base);
        if let Some(value) = values.first() {
            base = with_value(base, operand, *value);
        }
    }
    calls.push(base);
    let mut added = 0;
    for test in &tests {
        let (operand, values) = interesting(test, &base);
        for value in values {
            if added == MAX_CALLS_PER_RULE {
                return;
            }
            added += 1;
            calls.push(with_value(base, operand, value));
        }
    }
}

fn collect_tests<'a>(predicate: &'a Predicate, tests: &mut Vec<&'a Test>) {
    let mut open = vec![predicate];
    while let Some(predicate) = open.pop() {
        match predicate {
            Predicate::True | Predicate::False => {}
            Predicate::Not(inner) => open.push(inner),
            Predicate::All(parts) | Predicate::Any(parts) => open.extend(parts.iter().rev()),
            Predicate::Test(test) => tests.push(test),
        }
    }
}

/// Values of an operand at which a test may change its answer; the first satisfies it if any does.
fn interesting(test: &Test, data: &SeccompData) -> (Value, Vec<u64>) {
    const BEYOND_32_BITS: u64 = 1 << 32;
    let around = |value: u64| {
        [
            value,
            value.wrapping_add(1),
            value.wrapping_sub(1),
            value ^ BEYOND_32_BITS,
        ]
    };
    match test {
        Test::Compare { operand, op, value } => {
            let mut values = around(*value).to_vec();
            values.sort_by_key(|candidate| !op.holds(*candidate, *value));
            (*operand, values)
        }
        Test::Masked {
            operand,
            mask,
            value,
        } => {
            let lowest = mask & mask.wrapping_neg();
            let values = vec![*value, value | !mask, value ^ lowest, !value, value ^ mask];
            (*operand, values)
        }
        Test::In { operand, set } => {
            let borders = set.intervals().iter().flat_map(|(first, last)| {
                [
                    *first,
                    *last,
                    first.wrapping_sub(1),
                    last.wrapping_add(1),
                    first ^ BEYOND_32_BITS,
                ]
            });
            (*operand, borders.take(MAX_CALLS_PER_RULE).collect())
        }
        Test::Between { left, op, right } => {
            let other = right.read(data);
            let mut values = around(other).to_vec();
            values.sort_by_key(|candidate| !op.holds(*candidate, other));
            (*left, values)
        }
    }
}

/// The call with another value of the operand; bits that a half has no room for are left out.
fn with_value(data: SeccompData, operand: Value, value: u64) -> SeccompData {
    let (low, high) = operand.words();
    match operand.part {
        Part::Full => data
            .with_word(low, value as u32)
            .with_word(high, (value >> 32) as u32),
        Part::Low => data.with_word(low, value as u32),
        Part::High => data.with_word(high, value as u32),
    }
}

//! The compilers that are run here: the system's libseccomp, the `seccompiler` crate, tamis.
//!
//! Each gets the input of its own interface. If it rejects the input, or its interface cannot express it, the result
//! is an error as text.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use tamis_abi::{Action, ActionKind, Arch, Endian};
use tamis_bpf::{Insn, Program};
use tamis_compiler::{CompileOptions, compile};
use tamis_rules::{CmpOp, Ruleset};
use tamis_testkit::libseccomp::{self, Errno, Library, Op};

use super::plain::{Comparison, Condition, PlainRule};

/// The bits of a lower half.
const LOW: u64 = u32::MAX as u64;

/// libseccomp's program for plain rules for x86_64 at an optimisation level: 1 is a list, 2 a tree.
///
/// # Errors
/// The library's error.
pub fn libseccomp(
    library: &Library,
    ruleset: &Ruleset,
    rules: &[PlainRule],
    level: u32,
) -> Result<Program, String> {
    libseccomp_with(library, ruleset, rules, level, |_| 0)
}

/// The same with a priority for each number: the higher, the earlier it is tested.
///
/// # Errors
/// The library's error.
pub fn libseccomp_with(
    library: &Library,
    ruleset: &Ruleset,
    rules: &[PlainRule],
    level: u32,
    priority: impl Fn(u32) -> u8,
) -> Result<Program, String> {
    let default = ruleset.section(Arch::X86_64).map(|section| section.default);
    let default = default.ok_or("no section for x86_64")?;
    let filter = library.filter(default);
    let mut filter = filter.ok_or_else(|| format!("it refuses {default} as default"))?;
    let refused = |errno: Errno| errno.to_string();
    filter.set_optimize(level).map_err(refused)?;
    filter.set_bad_arch(ruleset.bad_arch).map_err(refused)?;
    for rule in rules {
        let conditions: Result<Vec<_>, String> =
            rule.conditions.iter().map(for_libseccomp).collect();
        let nr = rule.nr.cast_signed();
        let added = filter.add_rule(rule.action, nr, &conditions?);
        added.map_err(|errno| format!("it refuses a rule for number {nr}: {errno}"))?;
        if priority(rule.nr) > 0 {
            filter
                .set_priority(nr, priority(rule.nr))
                .map_err(refused)?;
        }
    }
    program(filter.export().map_err(refused)?)
}

fn for_libseccomp(condition: &Condition) -> Result<libseccomp::Condition, String> {
    let (op, value, value_two) = match (condition.test, condition.is_low) {
        (Comparison::Masked { mask, value }, _) => (Op::MaskedEq, mask, value),
        (Comparison::With(CmpOp::Eq, value), true) => (Op::MaskedEq, LOW, value),
        (Comparison::With(..), true) => {
            return Err("it can't compare lower halves by order".to_owned());
        }
        (Comparison::With(op, value), false) => {
            let op = match op {
                CmpOp::Eq => Op::Eq,
                CmpOp::Ne => Op::Ne,
                CmpOp::Lt => Op::Lt,
                CmpOp::Le => Op::Le,
                CmpOp::Gt => Op::Gt,
                CmpOp::Ge => Op::Ge,
            };
            (op, value, 0)
        }
    };
    Ok(libseccomp::Condition {
        arg: condition.arg.index() as u32,
        op,
        value,
        value_two,
    })
}

/// The `seccompiler` crate's program for plain rules for x86_64.
///
/// # Errors
/// The crate's error, or that it cannot express the rules: it has one action for matches and one for all other calls.
pub fn seccompiler(ruleset: &Ruleset, rules: &[PlainRule]) -> Result<Program, String> {
    let section = ruleset
        .section(Arch::X86_64)
        .ok_or("no section for x86_64")?;
    let Some(matching) = rules.first().map(|rule| rule.action) else {
        return Err("no rules".to_owned());
    };
    if rules.iter().any(|rule| rule.action != matching) {
        return Err("it has one answer for rules, the policy several".to_owned());
    }
    let refused = |error: seccompiler::BackendError| error.to_string();
    let mut by_number: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let is_always = |rule: &&PlainRule| rule.conditions.is_empty();
    for rule in rules {
        let conditions: Result<Vec<_>, _> = rule.conditions.iter().map(for_seccompiler).collect();
        let number = by_number.entry(i64::from(rule.nr)).or_default();
        if !is_always(&rule) {
            let conditions = conditions.map_err(refused)?;
            number.push(SeccompRule::new(conditions).map_err(refused)?);
        }
    }
    // In this crate a number with conditions cannot also match unconditionally, so an unconditional rule replaces
    // them.
    for rule in rules.iter().filter(is_always) {
        by_number.insert(i64::from(rule.nr), Vec::new());
    }
    let (other, matching) = (
        seccompiler_action(section.default)?,
        seccompiler_action(matching)?,
    );
    let filter = SeccompFilter::new(by_number, other, matching, TargetArch::x86_64);
    let instructions = BpfProgram::try_from(filter.map_err(refused)?).map_err(refused)?;
    let insns = instructions.into_iter().map(|insn| Insn {
        code: insn.code,
        jt: insn.jt,
        jf: insn.jf,
        k: insn.k,
    });
    program(insns.collect())
}

fn for_seccompiler(condition: &Condition) -> Result<SeccompCondition, seccompiler::BackendError> {
    let (op, value) = match condition.test {
        Comparison::Masked { mask, value } => (SeccompCmpOp::MaskedEq(mask), value),
        Comparison::With(op, value) => {
            let op = match op {
                CmpOp::Eq => SeccompCmpOp::Eq,
                CmpOp::Ne => SeccompCmpOp::Ne,
                CmpOp::Lt => SeccompCmpOp::Lt,
                CmpOp::Le => SeccompCmpOp::Le,
                CmpOp::Gt => SeccompCmpOp::Gt,
                CmpOp::Ge => SeccompCmpOp::Ge,
            };
            (op, value)
        }
    };
    let width = match condition.is_low {
        true => SeccompCmpArgLen::Dword,
        false => SeccompCmpArgLen::Qword,
    };
    SeccompCondition::new(condition.arg.index() as u8, width, op, value)
}

fn seccompiler_action(action: Action) -> Result<SeccompAction, String> {
    Ok(match action.kind {
        ActionKind::Allow => SeccompAction::Allow,
        ActionKind::Errno => SeccompAction::Errno(action.data.into()),
        ActionKind::KillThread => SeccompAction::KillThread,
        ActionKind::KillProcess => SeccompAction::KillProcess,
        ActionKind::Log => SeccompAction::Log,
        ActionKind::Trace => SeccompAction::Trace(action.data.into()),
        ActionKind::Trap if action.data == 0 => SeccompAction::Trap,
        _ => return Err(format!("it has no {action}")),
    })
}

/// Tamis's proved program for a ruleset.
///
/// # Errors
/// The compiler's error, or run-time variables.
pub fn tamis(ruleset: &Ruleset, options: &CompileOptions) -> Result<Program, String> {
    let compiled = compile(ruleset, options).map_err(|error| error.to_string())?;
    let program = compiled.program().map_err(|error| error.to_string())?;
    Ok(program.clone())
}

/// The program, if the kernel's checker accepts it.
fn program(insns: Vec<Insn>) -> Result<Program, String> {
    Program::new(insns, Endian::Little).map_err(|invalid| invalid.to_string())
}

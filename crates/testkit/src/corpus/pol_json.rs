//! The policies that were given to other compilers: `peers/*.pol.json`.
//!
//! A policy is a list of rules `{name, nr, action, conds}` for x86_64. The conditions of a rule are combined by AND,
//! the rules of a call by OR, and `default` is the action if no rule matches. A condition compares 32 bits of an
//! argument (its lower half) or 64. The files have no action for other architectures: here these are killed, as by
//! all the compilers measured.

use serde_json::Value;
use tamis_abi::{Action, Arch, ArgIndex};
use tamis_rules::{CmpOp, IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Test};

/// The ruleset of a policy of the corpus.
///
/// # Panics
/// If the file does not follow the schema; the corpus is fixed.
#[track_caller]
pub fn ruleset(name: &str) -> Ruleset {
    let text = super::text(name);
    let policy: Value = serde_json::from_str(&text).expect("a policy is JSON");
    let rules = list(&policy["rules"]).iter().map(rule).collect();
    let section = Section {
        arch: Arch::X86_64,
        rules,
        default: action(&policy["default"]),
    };
    let ruleset = Ruleset::new(vec![section], Action::KILL_PROCESS);
    ruleset.expect("one section")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("an unsigned number")
}

fn action(value: &Value) -> Action {
    Action::from_ret(number(value) as u32)
}

fn rule(value: &Value) -> Rule {
    Rule {
        syscalls: IntervalSet::single(number(&value["nr"]) as u32),
        when: Predicate::All(list(&value["conds"]).iter().map(condition).collect()),
        action: action(&value["action"]),
        origin: None,
    }
}

fn condition(value: &Value) -> Predicate {
    let arg = ArgIndex::new(number(&value["arg"]) as u8).expect("an argument index");
    let operand = if number(&value["width"]) == 32 {
        Operand::arg_low(arg)
    } else {
        Operand::arg(arg)
    };
    let right = number(&value["val"]);
    let op = match value["op"].as_str().expect("an operator") {
        "eq" => CmpOp::Eq,
        "ne" => CmpOp::Ne,
        "lt" => CmpOp::Lt,
        "le" => CmpOp::Le,
        "gt" => CmpOp::Gt,
        "ge" => CmpOp::Ge,
        "masked_eq" => {
            return Predicate::Test(Test::Masked {
                operand,
                mask: number(&value["mask"]),
                value: right,
            });
        }
        other => panic!("unknown operator {other}"),
    };
    Predicate::compare(operand, op, right)
}

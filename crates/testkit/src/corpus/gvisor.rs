//! gVisor's declared rule sets and their vectors: `gvisor/*.json`, `*.vectors`.
//!
//! The corpus README describes the schema. Rule sets are ordered, and the first one with a matching entry for the
//! number decides. Entries are trees of `or`, `and` and `per_arg` matchers on full 64-bit values. Rule sets for
//! vsyscalls match only if bit 63 of the instruction pointer is set.

use serde_json::Value;
use tamis_abi::{Action, Arch, ArgIndex};
use tamis_fuzz::vectors::{self, Vector};
use tamis_rules::{
    CmpOp, IntervalSet, Operand, OperandSource, Part, Predicate, Rule, Ruleset, Section, Test,
};

/// The ruleset of a policy of the corpus.
///
/// # Panics
/// If the file does not follow the schema; the corpus is fixed.
#[track_caller]
pub fn ruleset(name: &str) -> Ruleset {
    let text = super::text(name);
    let policy: Value = serde_json::from_str(&text).expect("a policy is JSON");
    let audit = hex(&policy["arch"]["audit_arch"]) as u32;
    let arch = Arch::of_call(audit, 0).expect("a known architecture");
    let section = Section {
        arch,
        rules: list(&policy["rule_sets"]).iter().flat_map(rules).collect(),
        default: action(&policy["default_action"]),
    };
    let ruleset = Ruleset::new(vec![section], action(&policy["bad_arch_action"]));
    ruleset.expect("one section")
}

/// The vectors of a policy of the corpus.
///
/// # Panics
/// If the file cannot be read or is not a whole number of records.
#[track_caller]
pub fn vectors(name: &str) -> Vec<Vector> {
    let bytes = std::fs::read(super::path(name)).expect("the file can be read");
    vectors::read(&bytes).unwrap_or_else(|| panic!("{name}: whole records"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn hex(value: &Value) -> u64 {
    let text = value.as_str().expect("a number is a string");
    let digits = text.strip_prefix("0x").expect("in hexadecimal");
    u64::from_str_radix(digits, 16).expect("in hexadecimal")
}

fn action(value: &Value) -> Action {
    Action::from_ret(hex(&value["ret"]) as u32)
}

fn rules(set: &Value) -> Vec<Rule> {
    let is_vsyscall = set["vsyscall_only"].as_bool().expect("a boolean");
    let rule = |entry: &Value| {
        let mut when = matcher(&entry["match"]);
        if is_vsyscall {
            let top_bit = Predicate::Test(Test::Masked {
                operand: ip(),
                mask: 1 << 63,
                value: 1 << 63,
            });
            when = Predicate::All(vec![top_bit, when]);
        }
        Rule {
            syscalls: IntervalSet::single(entry["nr"].as_u64().expect("a number") as u32),
            when,
            action: action(&set["action"]),
            origin: None,
        }
    };
    list(&set["syscalls"]).iter().map(rule).collect()
}

fn ip() -> Operand {
    Operand {
        source: OperandSource::Ip,
        part: Part::Full,
    }
}

fn matcher(value: &Value) -> Predicate {
    let parts = || list(&value["of"]).iter().map(matcher).collect();
    match value["rule"].as_str().expect("a kind") {
        "match_all" => Predicate::True,
        "or" => Predicate::Any(parts()),
        "and" => Predicate::All(parts()),
        "per_arg" => {
            let args = value["args"].as_array().map_or(&[][..], Vec::as_slice);
            let mut all: Vec<Predicate> = ArgIndex::ALL
                .into_iter()
                .zip(args)
                .map(|(arg, test)| value_matcher(Operand::arg(arg), test))
                .collect();
            if let Some(test) = value.get("instruction_pointer") {
                all.push(value_matcher(ip(), test));
            }
            Predicate::All(all)
        }
        other => panic!("unknown rule {other}"),
    }
}

fn value_matcher(operand: Operand, test: &Value) -> Predicate {
    let compare = |op| Predicate::compare(operand, op, hex(&test["value"]));
    match test["op"].as_str().expect("an operator") {
        "any" => Predicate::True,
        "eq" => compare(CmpOp::Eq),
        "ne" => compare(CmpOp::Ne),
        "gt" => compare(CmpOp::Gt),
        "ge" => compare(CmpOp::Ge),
        "lt" => compare(CmpOp::Lt),
        "le" => compare(CmpOp::Le),
        "non_negative_fd" => Predicate::compare(operand, CmpOp::Lt, 1 << 31),
        "masked_eq" => Predicate::Test(Test::Masked {
            operand,
            mask: hex(&test["mask"]),
            value: hex(&test["value"]),
        }),
        other => panic!("unknown operator {other}"),
    }
}

//! Rules of the machine and of stacks, misread.

use tamis_abi::Endian;
use tamis_bpf::Stack;
use tamis_prover::misreading::{Misreading, Rule};

use super::{CHAIN, Case, X86_64, assembled, rule};

pub(super) fn cases() -> Vec<Case> {
    vec![
        rule(
            "shift-beyond-31",
            Rule::ShiftDistance,
            "ldx #33|ld [arg0.low]|lsh x|jeq #8, allow, deny",
        ),
        rule(
            "shift-right-beyond-31",
            Rule::ShiftDistance,
            "ldx #33|ld [arg0.low]|rsh x|jeq #8, allow, deny",
        ),
        rule(
            "division-by-zero-goes-on",
            Rule::DivisionByZero,
            "ld [arg2.low]|and #1|tax|ld [arg0.low]|and #3|div x|jeq #1, allow, deny",
        ),
        rule(
            "jgt-signed",
            Rule::Signedness,
            "ld [arg0.low]|jgt #0x7fffffff, allow, deny",
        ),
        rule(
            "jge-signed",
            Rule::Signedness,
            "ld [arg0.low]|jge #0x80000001, allow, deny",
        ),
        rule(
            "jgt-x-signed",
            Rule::Signedness,
            "ldx #0x7fffffff|ld [arg0.low]|jgt %x, allow, deny",
        ),
        // Killing the process is the smallest value only as a signed number.
        stack(
            "stack-order-unsigned",
            Rule::StackOrder,
            ["kill_process", "errno(5)"],
        ),
        stack(
            "stack-ties-to-the-oldest",
            Rule::StackTies,
            ["errno(3)", "errno(5)"],
        ),
        stack(
            "stack-ordered-with-data",
            Rule::StackData,
            ["errno(3)", "errno(5)"],
        ),
        stack(
            "stack-allow-with-data",
            Rule::StackAllow,
            ["0x7fff0003", "allow"],
        ),
    ]
}

/// A case with two filters, the oldest first, and their return values for one number.
fn stack(name: &'static str, rule: Rule, returned: [&str; 2]) -> Case {
    let filters = returned.map(|ret| {
        let text = format!("{X86_64}{CHAIN}ld [arg0.low]|jeq #7, it|ret #allow|it: ret #{ret}");
        assembled(&text, Endian::Little)
    });
    Case {
        name,
        misreading: Misreading::Rule(rule),
        filters: Stack::new(filters.to_vec()).expect("both are little-endian"),
    }
}

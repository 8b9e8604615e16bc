//! The entries of a profile as written, without libseccomp's changes.
//!
//! An entry applies to a call if all its conditions hold, also several on one argument. The strictest of the applicable
//! entries decides, like the strictest of several filters in the kernel; of equally strict ones the first. Arguments
//! have the widths that libseccomp compares.

use tamis_abi::{Action, Arch, ArgIndex};
use tamis_rules::{CmpOp, Operand, Predicate, Test};
use tamis_scmp::{Comparison, Condition};

use super::clause::Clause;
use super::lower::{Path, Use};

/// The rules for a call with these clauses; the first match decides.
pub(super) fn rules(arch: Arch, uses: &[Use], clauses: &[Clause<'_>]) -> Vec<Path> {
    let mut paths: Vec<Path> = uses
        .iter()
        .map(|used| {
            let clause = &clauses[used.clause.0 as usize];
            Path {
                when: predicate(arch, used.selector, clause),
                action: clause.action(),
                tag: used.clause,
            }
        })
        .collect();
    paths.sort_by_key(|path| Action::precedence(path.action.kind.ret()));
    let plain = paths.iter().position(|path| path.when == Predicate::True);
    paths.truncate(plain.map_or(paths.len(), |at| at + 1));
    paths
}

/// All conditions of an entry; for a multiplexed call those on argument 0 are replaced by its selector.
fn predicate(arch: Arch, selector: Option<u32>, clause: &Clause<'_>) -> Predicate {
    let conditions = clause.entry.args.iter().map(|condition| condition.test);
    let counts = |condition: &Condition| selector.is_none() || condition.arg.index() != 0;
    let chosen = selector.map(|selector| Condition {
        arg: ArgIndex::ALL[0],
        comparison: Comparison::Eq,
        value: u64::from(selector),
    });
    let conditions = chosen.into_iter().chain(conditions.filter(counts));
    let mut tests: Vec<Predicate> = conditions
        .map(|condition| Predicate::Test(test(arch, condition)))
        .collect();
    match tests.len() {
        0 => Predicate::True,
        1 => tests.remove(0),
        _ => Predicate::All(tests),
    }
}

fn test(arch: Arch, condition: Condition) -> Test {
    // On architectures of 32 bits, x32 among them, the lower half of argument and constant is compared.
    let (operand, bits) = match arch.is_64_bit() {
        true => (Operand::arg(condition.arg), u64::MAX),
        false => (Operand::arg_low(condition.arg), u64::from(u32::MAX)),
    };
    let op = match condition.comparison {
        Comparison::Ne => CmpOp::Ne,
        Comparison::Lt => CmpOp::Lt,
        Comparison::Le => CmpOp::Le,
        Comparison::Eq => CmpOp::Eq,
        Comparison::Ge => CmpOp::Ge,
        Comparison::Gt => CmpOp::Gt,
        Comparison::Masked { mask } => {
            let mask = mask & bits;
            return Test::Masked {
                operand,
                mask,
                value: condition.value & mask,
            };
        }
    };
    Test::Compare {
        operand,
        op,
        value: condition.value & bits,
    }
}

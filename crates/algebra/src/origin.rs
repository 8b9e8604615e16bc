//! Where the calls of a combination come from: the parts that treat a call as the result does.

use std::collections::BTreeMap;

use tamis_abi::{Action, ActionKind, Arch, Word, syscall};
use tamis_prover::{Function, Space, Variable};

/// The origin of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Whether each part treats it as the result does.
    pub is_as_in: Vec<bool>,
    /// Whether the result may execute it, by the kernel or after a supervisor's or tracer's decision.
    pub may_execute: bool,
}

/// Whether the kernel, a supervisor or a tracer may execute a call after this return value.
pub fn may_execute(ret: u32) -> bool {
    let kind = Action::from_ret(ret).kind;
    kind.executes() || matches!(kind, ActionKind::Notify | ActionKind::Trace)
}

/// The origins of all calls with a name, on these architectures together.
pub fn origins(
    space: &Space,
    result: Function,
    parts: &[Function],
    arches: &[Arch],
) -> BTreeMap<&'static str, Origin> {
    let mut origins: BTreeMap<&'static str, Origin> = BTreeMap::new();
    let mut known: BTreeMap<Function, bool> = BTreeMap::new();
    let mut executes = |function| {
        let compute = || space.values(function).into_iter().any(may_execute);
        *known.entry(function).or_insert_with(compute)
    };
    for arch in arches {
        let of_arch = |function| with_top_word(space, function, Word::ARCH, arch.audit());
        let result = of_arch(result);
        let parts: Vec<Function> = parts.iter().map(|part| of_arch(*part)).collect();
        for (nr, name) in syscall::all(*arch) {
            let of_call = with_top_word(space, result, Word::NR, nr.0);
            let origin = origins.entry(name).or_insert_with(|| Origin {
                is_as_in: vec![true; parts.len()],
                may_execute: false,
            });
            origin.may_execute |= executes(of_call);
            for (part, is_as_in) in parts.iter().zip(&mut origin.is_as_in) {
                *is_as_in &= with_top_word(space, *part, Word::NR, nr.0) == of_call;
            }
        }
    }
    origins
}

/// The function for one value of the first word that it depends on.
fn with_top_word(space: &Space, function: Function, word: Word, value: u32) -> Function {
    (0..u32::BITS).rev().fold(function, |function, bit| {
        let (low, high) = space.cofactors(function, Variable::of_bit(word, bit));
        match value >> bit & 1 {
            0 => low,
            _ => high,
        }
    })
}

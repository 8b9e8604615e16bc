//! The list of passes, and selection from it.

use super::bytecode::{
    drop_implied_branches, drop_redundant_loads, drop_unreachable, drop_unused_results,
    fold_constants, join_blocks, merge_blocks, merge_equal_targets, merge_tails, skip_known_loads,
    thread_jumps,
};
use super::rules::{
    drop_default_rules, factor_alternatives, mask_value_sets, merge_masks, merge_rules,
    merge_values, simplify_predicates,
};
use super::{BytecodePass, PassInfo, RulePass};

/// The passes over rules, in order of execution.
pub const RULE_PASSES: [RulePass; 7] = [
    RulePass {
        info: simplify_predicates::INFO,
        run: simplify_predicates::run,
    },
    RulePass {
        info: merge_values::INFO,
        run: merge_values::run,
    },
    RulePass {
        info: merge_masks::INFO,
        run: merge_masks::run,
    },
    RulePass {
        info: factor_alternatives::INFO,
        run: factor_alternatives::run,
    },
    RulePass {
        info: mask_value_sets::INFO,
        run: mask_value_sets::run,
    },
    RulePass {
        info: drop_default_rules::INFO,
        run: drop_default_rules::run,
    },
    RulePass {
        info: merge_rules::INFO,
        run: merge_rules::run,
    },
];

/// The passes over blocks, in order of execution.
pub const BYTECODE_PASSES: [BytecodePass; 11] = [
    BytecodePass {
        info: merge_blocks::INFO,
        run: merge_blocks::run,
    },
    BytecodePass {
        info: merge_equal_targets::INFO,
        run: merge_equal_targets::run,
    },
    BytecodePass {
        info: fold_constants::INFO,
        run: fold_constants::run,
    },
    BytecodePass {
        info: drop_implied_branches::INFO,
        run: drop_implied_branches::run,
    },
    BytecodePass {
        info: drop_redundant_loads::INFO,
        run: drop_redundant_loads::run,
    },
    BytecodePass {
        info: thread_jumps::INFO,
        run: thread_jumps::run,
    },
    BytecodePass {
        info: drop_unused_results::INFO,
        run: drop_unused_results::run,
    },
    BytecodePass {
        info: join_blocks::INFO,
        run: join_blocks::run,
    },
    BytecodePass {
        info: skip_known_loads::INFO,
        run: skip_known_loads::run,
    },
    BytecodePass {
        info: merge_tails::INFO,
        run: merge_tails::run,
    },
    BytecodePass {
        info: drop_unreachable::INFO,
        run: drop_unreachable::run,
    },
];

/// The passes that may find more changes in a second run, with the reason. All others are idempotent.
const AGAIN: [(&str, &str); 5] = [
    (
        "factor-alternatives",
        "merged alternatives can have a part in common with others",
    ),
    (
        "merge-rules",
        "a merged rule can have the condition or the numbers of a third",
    ),
    (
        "fold-constants",
        "a comparison with a constant gives more facts about a value than one with a register",
    ),
    (
        "thread-jumps",
        "each run moves an edge past a bounded number of blocks, and an edge with fewer live values can move further",
    ),
    (
        "skip-known-loads",
        "a block entered after its loads can make the loads of its successor redundant",
    ),
];

/// The reason why a second run of a pass on its own result may change more; `None` if it never does.
///
/// ```
/// use tamis_compiler::passes::registry::why_again;
/// assert_eq!(why_again("drop-unreachable"), None);
/// ```
pub fn why_again(name: &str) -> Option<&'static str> {
    let found = AGAIN.iter().find(|(pass, _)| *pass == name);
    found.map(|(_, why)| *why)
}

/// All passes, those over rules first.
pub fn all() -> impl Iterator<Item = PassInfo> {
    let rules = RULE_PASSES.iter().map(|pass| pass.info);
    rules.chain(BYTECODE_PASSES.iter().map(|pass| pass.info))
}

/// The passes to run, and their order.
#[derive(Clone, Debug)]
pub struct Selection {
    pub(crate) rules: Vec<RulePass>,
    pub(crate) bytecode: Vec<BytecodePass>,
}

/// No pass has this name; see [`all`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPass(pub String);

impl Default for Selection {
    /// All passes.
    fn default() -> Selection {
        Selection {
            rules: RULE_PASSES.to_vec(),
            bytecode: BYTECODE_PASSES.to_vec(),
        }
    }
}

impl Selection {
    /// No passes.
    pub fn none() -> Selection {
        Selection {
            rules: Vec::new(),
            bytecode: Vec::new(),
        }
    }

    /// These passes in this order; rule passes run before bytecode passes. A name may repeat.
    ///
    /// # Errors
    /// If a name is not that of a pass.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Selection, UnknownPass> {
        let mut selection = Selection::none();
        for name in names {
            let rule = RULE_PASSES.iter().find(|pass| pass.info.name == name);
            let bytecode = BYTECODE_PASSES.iter().find(|pass| pass.info.name == name);
            if rule.is_none() && bytecode.is_none() {
                return Err(UnknownPass(name.to_owned()));
            }
            selection.rules.extend(rule);
            selection.bytecode.extend(bytecode);
        }
        Ok(selection)
    }

    /// The passes over rules, in order.
    pub fn rule_passes(&self) -> &[RulePass] {
        &self.rules
    }

    /// The passes over blocks, in order.
    pub fn bytecode_passes(&self) -> &[BytecodePass] {
        &self.bytecode
    }
}

impl std::fmt::Display for UnknownPass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no pass `{}`", self.0)
    }
}

impl std::error::Error for UnknownPass {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_in_kebab_case() {
        let mut names: Vec<&str> = all().map(|info| info.name).collect();
        for name in &names {
            let is_kebab = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
            assert!(name.bytes().all(is_kebab), "{name}");
        }
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_pass_can_be_chosen_by_name_and_no_other() {
        for info in all() {
            assert!(Selection::named([info.name]).is_ok());
        }
        let unknown = Selection::named(["frobnicate"]).unwrap_err();
        assert_eq!(unknown, UnknownPass("frobnicate".into()));
    }
}

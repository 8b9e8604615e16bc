//! Passes over rules, before layout.

pub(super) mod drop_default_rules;
pub(super) mod factor_alternatives;
pub(super) mod mask_value_sets;
pub(super) mod merge_masks;
pub(super) mod merge_rules;
pub(super) mod merge_values;
pub(super) mod simplify_predicates;

//! The filters of a file as written: the result of [`super::read`].

use tamis_abi::syscall::Name;
use tamis_abi::{Action, ArgIndex};
use tamis_diag::Span;
use tamis_rules::CmpOp;

/// The filter of one thread.
#[derive(Debug)]
pub(super) struct Filter<'t> {
    /// The thread.
    pub(super) thread: &'t str,
    /// The action if no rule matches.
    pub(super) mismatch: Action,
    /// The action if a rule matches.
    pub(super) matched: Action,
    /// The rules in order.
    pub(super) rules: Vec<Rule>,
}

/// An element of `filter`.
#[derive(Debug)]
pub(super) struct Rule {
    /// The span of the call's name.
    pub(super) span: Span,
    /// The call.
    pub(super) call: Name,
    /// Conditions that must all hold; empty if the rule matches every call of its number.
    pub(super) conditions: Vec<Condition>,
}

/// An element of `args`.
#[derive(Debug)]
pub(super) struct Condition {
    /// The argument.
    pub(super) arg: ArgIndex,
    /// The width of the comparison.
    pub(super) width: Width,
    /// The operator.
    pub(super) comparison: Comparison,
    /// The constant.
    pub(super) value: u64,
    /// The span of the constant.
    pub(super) value_span: Span,
}

/// `type` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// The lower 32 bits of argument and constant.
    Dword,
    /// All 64 bits.
    Qword,
}

/// `op` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// An unsigned comparison.
    Plain(CmpOp),
    /// `arg & mask == value & mask`
    Masked { mask: u64, span: Span },
}

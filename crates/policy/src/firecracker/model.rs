//! The filters of a file as they are written: what [`super::read`] makes of the JSON.

use std::borrow::Cow;

use tamis_abi::syscall::Name;
use tamis_abi::{Action, ArgIndex};
use tamis_diag::Span;
use tamis_rules::CmpOp;

/// The filter of one thread.
#[derive(Debug)]
pub(super) struct Filter<'t> {
    /// The thread.
    pub(super) thread: Cow<'t, str>,
    /// The answer where no rule matches.
    pub(super) mismatch: Action,
    /// The answer where one does.
    pub(super) matched: Action,
    /// The rules in order.
    pub(super) rules: Vec<Rule>,
}

/// An element of `filter`.
#[derive(Debug)]
pub(super) struct Rule {
    /// The name of its call.
    pub(super) span: Span,
    /// The call.
    pub(super) call: Name,
    /// Conditions that must all hold; none if the rule is about all calls.
    pub(super) conditions: Vec<Condition>,
}

/// An element of `args`.
#[derive(Debug)]
pub(super) struct Condition {
    /// The argument.
    pub(super) arg: ArgIndex,
    /// How much of it is compared.
    pub(super) width: Width,
    /// How.
    pub(super) comparison: Comparison,
    /// With what.
    pub(super) value: u64,
    /// Where that is written.
    pub(super) value_span: Span,
}

/// `type` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// The lower 32 bits of argument and constant.
    Dword,
    /// All 64.
    Qword,
}

/// `op` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// As numbers.
    Plain(CmpOp),
    /// `arg & mask == value & mask`
    Masked { mask: u64, span: Span },
}

//! The syntax tree of a policy. Constants are already numbers: they are defined before their use.

use tamis_abi::{Action, Arch};
use tamis_diag::Span;
use tamis_rules::CmpOp;

/// A name with its span.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) span: Span,
}

/// A text with its included files.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// The named policies, in order; each uses only earlier ones.
    pub(super) policies: Vec<Policy>,
    /// The statements outside of policies, which make up the filter.
    pub(super) main: Vec<Entry>,
    /// The action if no rule matches, with the span of its statement.
    pub(super) default: Option<(Action, Span)>,
}

/// `POLICY NAME { ENTRIES }`
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: Name,
    pub(super) entries: Vec<Entry>,
}

/// A part of a policy.
#[derive(Debug)]
pub(super) enum Entry {
    /// `USE NAME`: an index into the policies.
    Use(usize),
    /// `ACTION { RULES }`
    Block { action: Action, rules: Vec<Rule> },
}

/// `CALL(ARGUMENTS) ON ARCHITECTURES { CONDITION }`
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) call: Call,
    /// The rule's own names of the arguments, instead of the call's.
    pub(super) arguments: Option<Vec<Name>>,
    /// The architectures of the rule; `None` means all.
    pub(super) guard: Option<Vec<Arch>>,
    /// The condition; `None` means always.
    pub(super) condition: Option<Condition>,
    pub(super) span: Span,
}

/// The call of a rule.
#[derive(Debug)]
pub(super) enum Call {
    /// The call with this name.
    Named(Name),
    /// `SYSCALL[N]`, or a constant.
    Number(u32),
}

/// A condition on the arguments.
#[derive(Debug)]
pub(super) enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Not(Box<Condition>),
    Compare(Comparison),
}

/// `LEFT OP RIGHT`, unsigned.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) left: Bits,
    pub(super) op: CmpOp,
    pub(super) right: Bits,
    pub(super) span: Span,
}

/// A value: numbers and arguments combined by `&` and `|`.
#[derive(Debug)]
pub(super) enum Bits {
    Number(u64),
    Argument(Name),
    And(Vec<Bits>),
    Or(Vec<Bits>),
}

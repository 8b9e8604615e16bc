//! A policy as it is written. Constants are numbers by now: they are defined before they are used.

use tamis_abi::Action;
use tamis_diag::Span;
use tamis_rules::CmpOp;

/// A name and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) span: Span,
}

/// A text with everything that it includes.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// The policies with names, in order; one uses only earlier ones.
    pub(super) policies: Vec<Policy>,
    /// The statements outside of policies: what the filter is made of.
    pub(super) main: Vec<Entry>,
    /// The answer where no rule matches, and where that is said.
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
    /// The names that the rule gives to the arguments, instead of the call's own.
    pub(super) arguments: Option<Vec<Name>>,
    /// The architectures that the rule is for; all if it does not say.
    pub(super) guard: Option<Vec<Name>>,
    /// What must hold; always if there is none.
    pub(super) condition: Option<Condition>,
    pub(super) span: Span,
}

/// Which call a rule is about.
#[derive(Debug)]
pub(super) enum Call {
    /// The one with this name.
    Named(Name),
    /// `SYSCALL[N]`, or a constant.
    Number(u32),
}

/// What must hold of the arguments.
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

/// A value: numbers and arguments joined by `&` and `|`.
#[derive(Debug)]
pub(super) enum Bits {
    Number(u64),
    Argument(Name),
    And(Vec<Bits>),
    Or(Vec<Bits>),
}

//! A policy as it is written, line by line.

use tamis_abi::ArgIndex;
use tamis_diag::Span;
use tamis_rules::CmpOp;

/// A name and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) span: Span,
}

/// A line, continuations included.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) kind: StatementKind,
    /// The whole of it, or of what matters.
    pub(super) span: Span,
}

/// What a line says.
#[derive(Clone, Debug)]
pub(super) enum StatementKind {
    /// `@include PATH`
    Include(Name),
    /// `@frequency PATH`
    Frequency(Name),
    /// `@default ACTION`
    Default(Action),
    /// `@denylist`
    Denylist,
    /// `CALLS: FILTERS`
    Filters { calls: Calls, filters: Filters },
}

/// The calls of a line.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pub(super) list: Vec<Call>,
    /// The opening brace of several.
    pub(super) brace: Option<Span>,
}

/// A call, perhaps of some architectures only.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) name: Name,
    /// The brackets, with the names in them.
    pub(super) qualifier: Option<(Span, Vec<Name>)>,
}

/// The filters of a line, which are tried in order.
#[derive(Clone, Debug)]
pub(super) struct Filters {
    pub(super) list: Vec<Filter>,
    /// The opening brace of several.
    pub(super) brace: Option<Span>,
}

/// A condition with an answer, or one of both.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// Alternatives of conjunctions; none if the filter is about all calls.
    pub(super) condition: Option<Vec<Vec<Atom>>>,
    /// The answer as written; none stands for `allow`.
    pub(super) action: Option<Action>,
    pub(super) span: Span,
}

/// `argN OP VALUE`.
#[derive(Clone, Debug)]
pub(super) struct Atom {
    pub(super) arg: ArgIndex,
    pub(super) op: Operator,
    pub(super) value: Value,
}

/// How an argument is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// As unsigned numbers.
    Compare(CmpOp),
    /// `&`: any of the bits is set.
    AnyBit,
    /// `in`: no other bit is set.
    NoOtherBit,
}

/// A constant expression.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) kind: ValueKind,
    pub(super) span: Span,
}

/// What a constant expression is made of.
#[derive(Clone, Debug)]
pub(super) enum ValueKind {
    /// A number: its size, and whether a minus sign stands before it.
    Number { size: u64, is_negative: bool },
    /// A constant's name.
    Name(String),
    /// `~VALUE`
    Complement(Box<Value>),
    /// `VALUE|VALUE`
    Or(Vec<Value>),
}

/// An action and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Action {
    pub(super) kind: ActionKind,
    pub(super) span: Span,
}

/// What happens to a call.
#[derive(Clone, Debug)]
pub(super) enum ActionKind {
    /// `allow` or `1`
    Allow,
    /// `kill`: the thread or the process, as the caller says.
    Kill,
    KillProcess,
    KillThread,
    Trap,
    Trace,
    Log,
    UserNotify,
    /// `return ERRNO`; without a value, the library kills.
    Return(Option<Value>),
}

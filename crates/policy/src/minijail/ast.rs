//! The syntax tree of a policy: a list of lines.

use tamis_abi::ArgIndex;
use tamis_diag::Span;
use tamis_rules::CmpOp;

/// A name with its span.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) span: Span,
}

/// A line, continuations included.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) kind: StatementKind,
    /// The span of the whole line, or of its relevant part.
    pub(super) span: Span,
}

/// The kinds of lines.
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

/// A call, optionally limited to some architectures.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) name: Name,
    /// The brackets, with the names in them. Few calls have one, and a policy has a million calls.
    pub(super) qualifier: Option<Box<(Span, Vec<Name>)>>,
}

/// The filters of a line, which are tried in order.
#[derive(Clone, Debug)]
pub(super) struct Filters {
    pub(super) list: Vec<Filter>,
    /// The opening brace of several.
    pub(super) brace: Option<Span>,
}

/// A condition, an action, or both.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// Alternatives of conjunctions; `None` if the filter matches every call.
    pub(super) condition: Option<Vec<Vec<Atom>>>,
    /// The action as written; `None` means `allow`.
    pub(super) action: Option<Action>,
    pub(super) span: Span,
}

/// `argN OP VALUE`.
#[derive(Clone, Debug)]
pub(super) struct Atom {
    pub(super) arg: ArgIndex,
    pub(super) op: Operator,
    pub(super) value: Value,
    /// The spans of the argument and of the operator.
    pub(super) left: [Span; 2],
}

/// The test of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// An unsigned comparison.
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

/// The kinds of constant expressions.
#[derive(Clone, Debug)]
pub(super) enum ValueKind {
    /// A number: its magnitude and sign.
    Number { size: u64, is_negative: bool },
    /// A constant's name.
    Name(String),
    /// `~VALUE`
    Complement(Box<Value>),
    /// `VALUE|VALUE`
    Or(Vec<Value>),
}

/// An action with its span.
#[derive(Clone, Debug)]
pub(super) struct Action {
    pub(super) kind: ActionWord,
    pub(super) span: Span,
}

/// The kinds of actions.
#[derive(Clone, Debug)]
pub(super) enum ActionWord {
    /// `allow` or `1`
    Allow,
    /// `kill`: the thread or the process, selected by the caller.
    Kill,
    KillProcess,
    KillThread,
    Trap,
    Trace,
    Log,
    UserNotify,
    /// `return ERRNO`; without a value, the library kills.
    Return(Option<Box<Value>>),
}

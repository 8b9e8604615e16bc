//! The syntax tree of a policy: names are still text, includes unread.
//!
//! Comments are dropped. [`super::print`] turns a tree back into text.

use tamis_abi::{ActionKind, KernelVersion};
use tamis_diag::Span;
use tamis_rules::{CmpOp, Part, VariableWidth};

/// A word of the policy with its span.
#[derive(Clone, Debug)]
pub struct Name {
    /// The word; a set has its `@`, an include no quotes.
    pub text: String,
    /// Its span.
    pub span: Span,
}

/// The syntax of one file.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Its statements in order.
    pub statements: Vec<Statement>,
}

/// A statement with its span.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its kind.
    pub kind: StatementKind,
    /// From its first word to its last.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `arch x86_64, x86`
    Arch(Vec<Name>),
    /// `default`, `bad-arch` or `unknown` with an action.
    Fallback(Fallback, Answer),
    /// `known-until linux 6.18`: calls of later kernels get `ENOSYS` unless a rule decides them.
    KnownUntil(KernelVersion),
    /// `include "file"`
    Include(Name),
    /// `let NAME = …`
    Let(Name, Constant),
    /// `let name: u32`, with an optional range.
    Variable(Declaration),
    /// `set @name = { … }`
    Set(Name, Vec<Name>),
    /// `allow read, write(fd == 1)`
    Rule(Answer, Vec<Target>),
    /// `on x86_64 { … }`
    On(Vec<Name>, Vec<Statement>),
    /// `param network: none | full = none`
    Parameter(Parameter),
    /// `when network == none { … }`
    When(Guard, Vec<Statement>),
}

/// A parameter of a policy: a name with one of a few values, selected when the policy is read.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: Name,
    /// Its values; never empty.
    pub values: Vec<Name>,
    /// The value if the caller selects none.
    pub default: Name,
}

/// The condition of a `when` block.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The parameter.
    pub parameter: Name,
    /// Whether the block holds for the other values.
    pub is_negated: bool,
    /// The values; a negated guard has one.
    pub values: Vec<Name>,
}

/// A run-time variable, or a set of them.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Its name.
    pub name: Name,
    /// The width of its values.
    pub width: VariableWidth,
    /// The count of values of a set; `None` for a single variable.
    pub count: Option<u64>,
    /// The first and last permitted value.
    pub range: Option<(Value, Value)>,
}

/// The calls with a fallback action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// `default`: calls without a deciding rule.
    Default,
    /// `bad-arch`: calls of an architecture that the policy doesn't select.
    BadArch,
    /// `unknown`: numbers without a name in the table of the architecture.
    Unknown,
}

/// An action as written.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The verb.
    pub verb: Verb,
    /// The value in parentheses; required for `errno`, absent for actions without a value.
    pub data: Option<Value>,
    /// Its span.
    pub span: Span,
}

/// The verb of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// An action by its own name.
    Plain(ActionKind),
    /// `deny`: short for `errno(EPERM)`.
    Deny,
    /// `kill`: short for `kill-process`.
    Kill,
}

/// A target of a rule: calls and a condition.
#[derive(Clone, Debug)]
pub struct Target {
    /// The calls.
    pub kind: TargetKind,
    /// The condition in parentheses.
    pub when: Option<Condition>,
    /// Its span.
    pub span: Span,
}

/// The calls of a target.
#[derive(Clone, Debug)]
pub enum TargetKind {
    /// A call by name.
    Call(Name),
    /// The members of a set.
    Set(Name),
    /// `nr FIRST` or `nr FIRST..LAST`.
    Numbers(Value, Option<Value>),
}

/// The right-hand side of a `let`.
#[derive(Clone, Debug)]
pub enum Constant {
    /// One value.
    Value(Value),
    /// `{ … }`
    Set(Vec<Element>),
}

/// An element of a set of values.
#[derive(Clone, Debug)]
pub enum Element {
    /// One value, or the name of a set.
    Value(Value),
    /// `FIRST..LAST`, both included.
    Range(Value, Value),
}

/// A constant expression.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its form.
    pub kind: ValueKind,
    /// Its span.
    pub span: Span,
}

/// The form of a [`Value`].
#[derive(Clone, Debug)]
pub enum ValueKind {
    /// A number and its text.
    Number(u64, String),
    /// A constant of the kernel or of a `let`.
    Name(String),
    /// `-x`
    Negative(Box<Value>),
    /// `~x`
    Complement(Box<Value>),
    /// `a << b`
    Shift(Box<Value>, Box<Value>),
    /// `a & b & …`
    And(Vec<Value>),
    /// `a | b | …`
    Or(Vec<Value>),
}

/// A condition with its span.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Its kind.
    pub kind: ConditionKind,
    /// Its span.
    pub span: Span,
}

/// The form of a [`Condition`].
#[derive(Clone, Debug)]
pub enum ConditionKind {
    /// `true` or `false`.
    Literal(bool),
    /// `!x`
    Not(Box<Condition>),
    /// `a && b`, or `a, b`.
    All(Vec<Condition>),
    /// `a || b`
    Any(Vec<Condition>),
    /// `operand op value`, with an optional `& mask`.
    Compare(Operand, Option<Value>, CmpOp, Value),
    /// `operand op operand`
    Between(Operand, CmpOp, Operand),
    /// `operand in set`, with an optional `& mask`.
    In(Operand, Option<Value>, Set),
}

/// A set of values in a condition.
#[derive(Clone, Debug)]
pub enum Set {
    /// `{ … }`
    Braced(Vec<Element>, Span),
    /// The name of a `let`.
    Named(Name),
}

/// A value of the call.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Its name.
    pub name: OperandName,
    /// The bits, if the policy selects them: `low(x)`, `high(x)`, `full(x)`.
    pub part: Option<Part>,
    /// Its span.
    pub span: Span,
}

/// The name of an operand.
#[derive(Clone, Debug)]
pub enum OperandName {
    /// An argument by its name, or by `argN`.
    Named(String),
    /// `arg[N]`
    Indexed(u64),
    /// `ip`
    Ip,
}

impl Fallback {
    /// The keyword of the statement.
    pub const fn word(self) -> &'static str {
        match self {
            Fallback::Default => "default",
            Fallback::BadArch => "bad-arch",
            Fallback::Unknown => "unknown",
        }
    }
}

impl Verb {
    /// All words, as in the grammar.
    pub const ALL: [Verb; 10] = [
        Verb::Plain(ActionKind::Allow),
        Verb::Plain(ActionKind::Log),
        Verb::Plain(ActionKind::Notify),
        Verb::Plain(ActionKind::Trace),
        Verb::Plain(ActionKind::Errno),
        Verb::Plain(ActionKind::Trap),
        Verb::Plain(ActionKind::KillThread),
        Verb::Plain(ActionKind::KillProcess),
        Verb::Deny,
        Verb::Kill,
    ];

    /// The action.
    pub const fn kind(self) -> ActionKind {
        match self {
            Verb::Plain(kind) => kind,
            Verb::Deny => ActionKind::Errno,
            Verb::Kill => ActionKind::KillProcess,
        }
    }

    /// The spelling in a policy.
    pub const fn word(self) -> &'static str {
        match self {
            Verb::Plain(ActionKind::KillProcess) => "kill-process",
            Verb::Plain(ActionKind::KillThread) => "kill-thread",
            Verb::Plain(kind) => kind.name(),
            Verb::Deny => "deny",
            Verb::Kill => "kill",
        }
    }

    /// The verb with this [`word`](Self::word), or with the name of its action in other texts: `kill_process`.
    pub fn from_word(word: &str) -> Option<Verb> {
        let known = Verb::ALL.into_iter().find(|verb| verb.word() == word);
        known.or_else(|| ActionKind::from_name(word).map(Verb::Plain))
    }
}

//! The syntax of a policy as the parser leaves it: names are still text, includes unread.
//!
//! Comments are gone. [`super::print`] turns a tree back into text.

use tamis_abi::ActionKind;
use tamis_diag::Span;
use tamis_rules::{CmpOp, Part, VariableWidth};

/// A word of the policy with its place.
#[derive(Clone, Debug)]
pub struct Name {
    /// The word; of a set with `@`, of an include without quotes.
    pub text: String,
    /// Where it is.
    pub span: Span,
}

/// One file.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Its statements in order.
    pub statements: Vec<Statement>,
}

/// A statement with its place.
#[derive(Clone, Debug)]
pub struct Statement {
    /// What it says.
    pub kind: StatementKind,
    /// From its first word to its last.
    pub span: Span,
}

/// What a statement says.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `arch x86_64, x86`
    Arch(Vec<Name>),
    /// `default errno(EPERM)` and its like.
    Fallback(Fallback, Answer),
    /// `include "file"`
    Include(Name),
    /// `let NAME = …`
    Let(Name, Constant),
    /// `let name: u32`, with a range or without.
    Variable(Declaration),
    /// `set @name = { … }`
    Set(Name, Vec<Name>),
    /// `allow read, write(fd == 1)`
    Rule(Answer, Vec<Target>),
    /// `on x86_64 { … }`
    On(Vec<Name>, Vec<Statement>),
}

/// A run-time variable, or a set of them.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Its name.
    pub name: Name,
    /// The width of its values.
    pub width: VariableWidth,
    /// How many values a set has; `None` for a variable by itself.
    pub count: Option<u64>,
    /// The first and last value that it may be bound to.
    pub range: Option<(Value, Value)>,
}

/// For which calls that no rule decides an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// `default`: calls that nothing else decides.
    Default,
    /// `bad-arch`: calls of an architecture that the policy doesn't select.
    BadArch,
    /// `unknown`: numbers that the table of the architecture has no name for.
    Unknown,
}

/// An action as written.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its word.
    pub verb: Verb,
    /// The value in parentheses; present for `errno`, absent for those that take none.
    pub data: Option<Value>,
    /// Where it is.
    pub span: Span,
}

/// The word of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// An action by its own name.
    Plain(ActionKind),
    /// `deny`: short for `errno(EPERM)`.
    Deny,
    /// `kill`: short for `kill-process`.
    Kill,
}

/// What a rule is about.
#[derive(Clone, Debug)]
pub struct Target {
    /// The calls.
    pub kind: TargetKind,
    /// The condition in parentheses.
    pub when: Option<Condition>,
    /// Where it is.
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

/// An expression without arguments of the call.
#[derive(Clone, Debug)]
pub struct Value {
    /// What it is.
    pub kind: ValueKind,
    /// Where it is.
    pub span: Span,
}

/// The form of a [`Value`].
#[derive(Clone, Debug)]
pub enum ValueKind {
    /// A number and how it was written.
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

/// A condition with its place.
#[derive(Clone, Debug)]
pub struct Condition {
    /// What it says.
    pub kind: ConditionKind,
    /// Where it is.
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
    /// `operand op value`, with `& mask` or without.
    Compare(Operand, Option<Value>, CmpOp, Value),
    /// `operand op operand`
    Between(Operand, CmpOp, Operand),
    /// `operand in set`, with `& mask` or without.
    In(Operand, Option<Value>, Set),
}

/// A set of values where it is used.
#[derive(Clone, Debug)]
pub enum Set {
    /// `{ … }`
    Braced(Vec<Element>, Span),
    /// By the name that a `let` gave it.
    Named(Name),
}

/// A value of the call.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Where it comes from.
    pub subject: Subject,
    /// The bits, where the policy says so: `low(x)`, `high(x)`, `full(x)`.
    pub part: Option<Part>,
    /// Where it is.
    pub span: Span,
}

/// Where the value of an operand comes from.
#[derive(Clone, Debug)]
pub enum Subject {
    /// An argument by its name, or by `argN`.
    Named(String),
    /// `arg[N]`
    Indexed(u64),
    /// `ip`
    Ip,
}

impl Fallback {
    /// The word that introduces it.
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

    /// The verb with this [`word`](Self::word).
    pub fn from_word(word: &str) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| verb.word() == word)
    }
}

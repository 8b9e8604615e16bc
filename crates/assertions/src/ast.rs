//! The syntax tree of a file of checks: names are still text, includes unread.
//!
//! Targets, conditions, actions and definitions are those of the policy language. Comments are dropped.
//! [`print`](crate::print) turns a tree back into text.

use tamis_diag::Span;
use tamis_policy::tamis::ast::{self, Answer, Constant, Name, Target};

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
    /// `include "base.checks"`
    Include(Name),
    /// `param FAMILY = AF_ALG`: a constant that the caller may replace.
    Parameter(Name, Constant),
    /// A `let` or a `set` of the policy language.
    Definition(ast::StatementKind),
    /// `on x86_64, aarch64`: the architectures of the checks after it in its file or group.
    On(Vec<Name>),
    /// `group "kernel crypto" { … }`
    Group(Group),
    /// A check.
    Check(Check),
}

/// A group of checks.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its title.
    pub title: Name,
    /// Its reason, source, architectures and checks, in order.
    pub body: Vec<GroupStatement>,
}

/// A statement of a group.
#[derive(Clone, Debug)]
pub struct GroupStatement {
    /// Its kind.
    pub kind: GroupStatementKind,
    /// From its first word to its last.
    pub span: Span,
}

/// The kinds of statements of a group.
#[derive(Clone, Debug)]
pub enum GroupStatementKind {
    /// `reason "…"`: why the checks of the group matter.
    Reason(Text),
    /// `source "https://…"`: where that is described.
    Source(Text),
    /// `on x86_64`: the architectures of the checks after it in the group.
    On(Vec<Name>),
    /// A check.
    Check(Check),
}

/// One or more texts in quotes, joined by blanks.
#[derive(Clone, Debug)]
pub struct Text {
    /// The parts, without quotes.
    pub parts: Vec<String>,
}

impl Text {
    /// The whole text.
    pub fn whole(&self) -> String {
        self.parts.join(" ")
    }
}

/// A check.
#[derive(Clone, Debug)]
pub enum Check {
    /// `never allow socket(family == AF_ALG)`
    Never {
        /// Whether calls with the same effect count: `any way`.
        any_way: bool,
        /// The calls.
        targets: Vec<Target>,
    },
    /// `always allow read, write`
    Always(Vec<Target>),
    /// `expect openat -> errno(EPERM)`
    Expect(Vec<Target>, Answer),
    /// `stricter than "docker.json"`
    Compare(Relation, Name),
    /// `at most 300 instructions`
    AtMost(u64),
    /// `cached: read, futex`
    Cached(Vec<Name>),
}

/// The relation of a policy to a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Never looser than the reference: equal, or stricter for some calls.
    Stricter,
    /// Never stricter than the reference: equal, or looser for some calls.
    Looser,
    /// The same action for every call.
    Equal,
}

impl Relation {
    /// All relations.
    pub const ALL: [Relation; 3] = [Relation::Stricter, Relation::Looser, Relation::Equal];

    /// Its two words.
    pub const fn words(self) -> [&'static str; 2] {
        match self {
            Relation::Stricter => ["stricter", "than"],
            Relation::Looser => ["looser", "than"],
            Relation::Equal => ["equal", "to"],
        }
    }
}

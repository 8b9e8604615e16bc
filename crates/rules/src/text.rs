//! The text form of a ruleset: prints every ruleset and parses back to the same value.
//!
//! It is for tools and for inspecting stages (`tamis compile --emit rules`), not for writing policies: names of
//! arguments, constants and sets are replaced by numbers, widths are explicit.
//!
//! ```text
//! ruleset bad-arch kill_thread
//! section x86_64 default errno(1)
//!   0..2, openat: allow @ "policy.tamis":3:1
//!   socket if all(arg0.low in {0x1, 0x2}, arg1 & 0xf == 0x1): allow
//! ```
//!
//! Grammar, line by line; `#` starts a comment:
//!
//! ```text
//! ruleset   = "ruleset" "bad-arch" action NEWLINE { section }
//! section   = "section" ARCH "default" action NEWLINE { rule }
//! rule      = numbers [ "if" predicate ] ":" action [ "@" STRING ":" LINE ":" COLUMN ] NEWLINE
//! numbers   = "all" | "none" | number { "," number }
//! number    = INTEGER | INTEGER ".." INTEGER | NAME
//! predicate = "true" | "false" | "not" "(" predicate ")"
//!           | ( "all" | "any" ) "(" [ predicate { "," predicate } ] ")" | test
//! test      = operand OP ( INTEGER | operand ) | operand "&" INTEGER "==" INTEGER
//!           | operand "in" "{" [ range { "," range } ] "}"
//! operand   = ( "arg0" … "arg5" | "ip" ) [ ".low" | ".high" ]
//! action    = KIND [ "(" INTEGER ")" ]
//! ```

mod lex;
mod parse;
mod print;

pub use parse::parse;

/// The deepest nesting of a predicate that [`parse`] accepts; front ends have lower limits.
pub const MAX_DEPTH: usize = 512;

//! The languages of seccomp-tools: its assembler, and its listings of programs.
//!
//! ```text
//! A = arch                                 line  CODE  JT   JF      K
//! A == ARCH_X86_64 ? next : dead          =================================
//! A = sys_number                           0000: 0x20 0x00 0x00 0x00000004  A = arch
//! if (A >= 0x40000000) goto dead           0001: 0x15 0x00 0x08 0xc000003e  if (A != ARCH_X86_64) goto 0010
//! return ALLOW
//! dead: return KILL
//! ```
//!
//! In the assembler `next` is the following instruction, and a number is a count of instructions to skip. In a
//! listing only the four numbers are parsed, not the text after them.

use std::collections::BTreeMap;

use tamis_abi::{Action, ActionKind, Arch, Endian, syscall};
use tamis_diag::limits::MAX_DIAGNOSTICS;
use tamis_diag::{Diagnostic, SourceId, Span, suggest};

use super::{Form, decimal, first_line, words};
use crate::asm::parse::{Label, Line, Target, Template, Unit};
use crate::asm::{Assembly, Step, linked, number};
use crate::code;
use crate::insn::{AluOp, Insn, Op, Operand, Test};

/// The form in the registry.
pub(super) const FORM: Form = Form {
    name: "seccomp-tools",
    title: "text of seccomp-tools",
    about: "Assembler text of seccomp-tools, or a listing printed by it",
    extensions: &[],
    recognises,
    read,
};

/// The architectures by the names of seccomp-tools.
const ARCHES: [(&str, Arch); 5] = [
    ("ARCH_X86_64", Arch::X86_64),
    ("ARCH_I386", Arch::X86),
    ("ARCH_AARCH64", Arch::Aarch64),
    ("ARCH_RISCV64", Arch::Riscv64),
    ("ARCH_S390X", Arch::S390x),
];
/// The same before the names of calls: `amd64.read`.
const ABIS: [(&str, Arch); 5] = [
    ("amd64", Arch::X86_64),
    ("i386", Arch::X86),
    ("aarch64", Arch::Aarch64),
    ("riscv64", Arch::Riscv64),
    ("s390x", Arch::S390x),
];
const ACTIONS: [(&str, ActionKind); 9] = [
    ("KILL_PROCESS", ActionKind::KillProcess),
    ("KILL_THREAD", ActionKind::KillThread),
    ("KILL", ActionKind::KillThread),
    ("TRAP", ActionKind::Trap),
    ("ERRNO", ActionKind::Errno),
    ("USER_NOTIF", ActionKind::Notify),
    ("TRACE", ActionKind::Trace),
    ("LOG", ActionKind::Log),
    ("ALLOW", ActionKind::Allow),
];
/// Longer ones first.
const SYMBOLS: [&str; 23] = [
    "<<=", ">>=", "==", "!=", ">=", "<=", "<<", ">>", "+=", "-=", "*=", "/=", "&=", "|=", "^=",
    "=", "<", ">", "&", "(", ")", "[", "]",
];

/// Whether a line looks like one of seccomp-tools, possibly after labels.
fn recognises(text: &str) -> bool {
    let line = first_line(text);
    let words = line
        .split_whitespace()
        .skip_while(|word| word.ends_with(':'));
    let squeezed = words.collect::<Vec<_>>().join(" ");
    let begins = [
        "A = ",
        "A=",
        "X = ",
        "if (A ",
        "A == ",
        "return ",
        "line CODE",
    ];
    begins.into_iter().any(|start| squeezed.starts_with(start))
}

fn read(text: &str, source: SourceId, arch: Arch) -> Result<Assembly, Vec<Diagnostic>> {
    let is_listing = first_line(text).contains("CODE");
    match is_listing {
        true => listing(text, source, arch),
        false => assembler(text, source, arch),
    }
}

/// The rows of a listing: a number with a colon, then code, jt, jf and k.
fn listing(text: &str, source: SourceId, arch: Arch) -> Result<Assembly, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let (mut insns, mut spans) = (Vec::new(), Vec::new());
    let rows = words(text, text, |c| c == '\n', source);
    for (row, row_span) in rows.skip(1) {
        let parts: Vec<(&str, Span)> = words(text, row, char::is_whitespace, source)
            .take(5)
            .collect();
        let [(number, _), fields @ ..] = parts.as_slice() else {
            continue;
        };
        if number.starts_with("===") {
            continue;
        }
        let [first, _, _, last] = fields else {
            diagnostics.push(no_row(row_span));
            if diagnostics.len() >= MAX_DIAGNOSTICS {
                break;
            }
            continue;
        };
        if !number.ends_with(':') {
            diagnostics.push(no_row(row_span));
            continue;
        }
        spans.push(first.1.to(last.1));
        match decimal::insn(fields) {
            Ok(insn) => insns.push(insn),
            Err(diagnostic) => diagnostics.push(*diagnostic),
        }
        if diagnostics.len() >= MAX_DIAGNOSTICS {
            break;
        }
    }
    let whole = Span::new(source, 0, text.len());
    Assembly::new(insns, arch.endian(), spans, whole, diagnostics)
}

fn no_row(row: Span) -> Diagnostic {
    let message = "not a row of a listing";
    Diagnostic::error(code::PROGRAM_TEXT, message)
        .label(row, "expected `0000: 0x20 0x00 0x00 0x00000004`")
}

/// The target of a jump.
#[derive(Clone, Copy, Debug)]
enum Goal<'t> {
    /// The following instruction.
    Next,
    /// Skip this many instructions.
    Skip(u32, Span),
    Label(&'t str, Span),
}

/// A statement before its goals are resolved.
#[derive(Clone, Copy, Debug)]
enum Statement<'t> {
    Insn(Insn),
    Jump(Goal<'t>),
    Branch {
        test: Test,
        operand: Operand,
        goals: [Goal<'t>; 2],
    },
}

fn assembler(text: &str, source: SourceId, arch: Arch) -> Result<Assembly, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let mut labels = Vec::new();
    let mut statements: Vec<(Statement, Span)> = Vec::new();
    for (line, _) in words(text, text, |c| c == '\n', source) {
        let code = line.split('#').next().unwrap_or("");
        let all = tokens(text, code, source);
        let mut tokens = all.as_slice();
        while let [label, colon, rest @ ..] = tokens
            && colon.0 == ":"
        {
            let (name, span) = *label;
            let pc = statements.len();
            labels.push(Label { name, pc, span });
            tokens = rest;
        }
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            continue;
        };
        let mut parser = Parser {
            tokens,
            at: 0,
            arch,
        };
        let statement = parser.statement().unwrap_or_else(|diagnostic| {
            diagnostics.push(*diagnostic);
            // An invalid line counts too, so that distances stay correct.
            Statement::Insn(Op::RetA.into())
        });
        statements.push((statement, first.1.to(last.1)));
        if diagnostics.len() >= MAX_DIAGNOSTICS {
            break;
        }
    }
    let whole = Span::new(source, 0, text.len());
    link(&statements, &labels, arch.endian(), whole, diagnostics)
}

/// Resolves the goals. A number becomes a separate label at its target.
fn link(
    statements: &[(Statement<'_>, Span)],
    labels: &[Label<'_>],
    endian: Endian,
    text_span: Span,
    mut diagnostics: Vec<Diagnostic>,
) -> Result<Assembly, Vec<Diagnostic>> {
    let mut skips: BTreeMap<(usize, u32), (String, Span)> = BTreeMap::new();
    for (pc, (statement, _)) in statements.iter().enumerate() {
        let goals: &[Goal] = match statement {
            Statement::Insn(_) => &[],
            Statement::Jump(goal) => std::slice::from_ref(goal),
            Statement::Branch { goals, .. } => goals,
        };
        for goal in goals {
            let Goal::Skip(count, span) = *goal else {
                continue;
            };
            if pc + 1 + count as usize >= statements.len() {
                let message = format!("there is no instruction {count} further on");
                let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, message);
                diagnostics
                    .push(diagnostic.label(span, "a number is the count of instructions to skip"));
            } else {
                skips.insert((pc, count), (format!("{pc}+{count}"), span));
            }
        }
    }
    let target = |pc: usize, goal: Goal<'_>| match goal {
        Goal::Next => None,
        Goal::Label(label, span) => Some((label.to_owned(), span)),
        Goal::Skip(count, span) => {
            let (label, _) = skips.get(&(pc, count))?;
            Some((label.clone(), span))
        }
    };
    let targets: Vec<[Option<(String, Span)>; 2]> = statements
        .iter()
        .enumerate()
        .map(|(pc, (statement, _))| match statement {
            Statement::Insn(_) => [None, None],
            Statement::Jump(goal) => [target(pc, *goal), None],
            Statement::Branch { goals, .. } => goals.map(|goal| target(pc, goal)),
        })
        .collect();
    let unit = Unit {
        insns: statements
            .iter()
            .zip(&targets)
            .map(|((statement, span), targets)| Line {
                template: template(statement, targets),
                span: *span,
            })
            .collect(),
        labels: labels
            .iter()
            .map(|label| (label.name, label.pc, label.span))
            .chain(skips.iter().map(|((pc, count), (name, span))| {
                (name.as_str(), pc + 1 + *count as usize, *span)
            }))
            .map(|(name, pc, span)| Label { name, pc, span })
            .collect(),
    };
    linked(&unit, endian, text_span, diagnostics)
}

/// A statement with named targets.
fn template<'s>(
    statement: &Statement<'_>,
    targets: &'s [Option<(String, Span)>; 2],
) -> Template<'s> {
    let [first, second] = targets.each_ref().map(|target| {
        target
            .as_ref()
            .map(|(label, span)| Target { label, span: *span })
    });
    match *statement {
        Statement::Insn(insn) => Template::Insn(insn),
        // A jump to the next instruction skips nothing.
        Statement::Jump(_) => match first {
            Some(target) => Template::Jump(target),
            None => Template::Insn(Op::Jump(0).into()),
        },
        Statement::Branch { test, operand, .. } => Template::Branch {
            test,
            operand,
            if_true: first,
            if_false: second,
        },
    }
}

/// The words and symbols of a line.
fn tokens<'t>(text: &'t str, line: &'t str, source: SourceId) -> Vec<(&'t str, Span)> {
    let mut tokens = Vec::new();
    for (word, place) in words(text, line, char::is_whitespace, source) {
        let mut at = 0;
        while at < word.len() {
            let rest = &word[at..];
            let length = token_length(rest);
            let start = place.start as usize + at;
            tokens.push((&rest[..length], Span::new(source, start, start + length)));
            at += length;
        }
    }
    tokens
}

fn token_length(text: &str) -> usize {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let word = |from: usize| {
        let rest = text[from..].find(|c| !is_word(c));
        rest.map_or(text.len(), |length| from + length)
    };
    let mut chars = text.chars();
    let (first, second) = (chars.next().unwrap_or(' '), chars.next());
    let is_negative = first == '-' && second.is_some_and(|digit| digit.is_ascii_digit());
    if is_word(first) || is_negative {
        return word(1);
    }
    let symbol = SYMBOLS.into_iter().find(|symbol| text.starts_with(symbol));
    symbol.map_or(first.len_utf8(), str::len)
}

/// One line.
struct Parser<'l, 't> {
    /// At least one token.
    tokens: &'l [(&'t str, Span)],
    at: usize,
    arch: Arch,
}

impl<'t> Parser<'_, 't> {
    fn statement(&mut self) -> Step<Statement<'t>> {
        let (word, _) = self.tokens[0];
        self.at = 1;
        let statement = match word.to_ascii_lowercase().as_str() {
            "return" => self.answer()?,
            "goto" | "jmp" | "jump" => Statement::Jump(self.goal()?),
            "if" => self.condition()?,
            "a" => self.accumulator()?,
            "x" => {
                self.symbol("=")?;
                Statement::Insn(self.index_register()?.into())
            }
            "mem" => {
                let slot = self.index()?;
                self.symbol("=")?;
                let op = match self.word()?.0 {
                    "A" | "a" => Op::Store(slot),
                    "X" | "x" => Op::StoreX(slot),
                    _ => return Err(self.unexpected_before("`A` or `X`")),
                };
                Statement::Insn(op.into())
            }
            _ => {
                self.at = 0;
                return Err(self.unexpected("a statement: A = …, if (…), goto, return"));
            }
        };
        match self.at < self.tokens.len() {
            true => Err(self.unexpected("the end of the line")),
            false => Ok(statement),
        }
    }

    /// After `return`.
    fn answer(&mut self) -> Step<Statement<'t>> {
        let (word, span) = self.word()?;
        if word.eq_ignore_ascii_case("a") {
            return Ok(Statement::Insn(Op::RetA.into()));
        }
        let Some((_, kind)) = ACTIONS.iter().find(|(name, _)| *name == word) else {
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                let ret = Op::RetImm(number(word, span)?);
                return Ok(Statement::Insn(ret.into()));
            }
            let known = ACTIONS.iter().map(|(name, _)| *name);
            return Err(unknown("action", word, span, known));
        };
        let mut data = 0;
        if self.take("(") {
            let (text, span) = self.word()?;
            // Truncated to 16 bits, as in seccomp-tools.
            data = number(text, span)? as u16;
            self.symbol(")")?;
        }
        let ret = Op::RetImm(Action::new(*kind, data).ret());
        Ok(Statement::Insn(ret.into()))
    }

    /// After `if`.
    fn condition(&mut self) -> Step<Statement<'t>> {
        self.symbol("(")?;
        let is_negated = self.take("!");
        if is_negated {
            self.symbol("(")?;
        }
        self.symbol("A")?;
        let (test, operand, is_swapped) = self.comparison()?;
        self.symbol(")")?;
        if is_negated {
            self.symbol(")")?;
        }
        self.symbol("goto")?;
        let yes = self.goal()?;
        self.take(",");
        let no = match self.take("else") {
            true => {
                self.symbol("goto")?;
                self.goal()?
            }
            false => Goal::Next,
        };
        Ok(branch(test, operand, is_swapped != is_negated, [yes, no]))
    }

    /// After `A`: an assignment, arithmetic, or a comparison with `?`.
    fn accumulator(&mut self) -> Step<Statement<'t>> {
        let (symbol, _) = self.peek();
        if symbol == "=" {
            self.at += 1;
            return Ok(Statement::Insn(self.loaded()?.into()));
        }
        let arithmetic = [
            ("+=", AluOp::Add),
            ("-=", AluOp::Sub),
            ("*=", AluOp::Mul),
            ("/=", AluOp::Div),
            ("&=", AluOp::And),
            ("|=", AluOp::Or),
            ("^=", AluOp::Xor),
            ("<<=", AluOp::Lsh),
            (">>=", AluOp::Rsh),
        ];
        if let Some((_, op)) = arithmetic.iter().find(|(name, _)| *name == symbol) {
            self.at += 1;
            let operand = self.operand()?;
            return Ok(Statement::Insn(Op::Alu(*op, operand).into()));
        }
        let (test, operand, is_swapped) = self.comparison()?;
        self.symbol("?")?;
        let yes = self.goal()?;
        self.symbol(":")?;
        let no = self.goal()?;
        Ok(branch(test, operand, is_swapped, [yes, no]))
    }

    /// After `A =`.
    fn loaded(&mut self) -> Step<Op> {
        let (word, span) = self.word()?;
        Ok(match word.to_ascii_lowercase().as_str() {
            "sys_number" => Op::LoadData(0),
            "arch" => Op::LoadData(4),
            "instruction_pointer" => Op::LoadData(8 + self.upper_half()?),
            "args" => {
                let offset = self.argument()?;
                Op::LoadData(offset + self.upper_half()?)
            }
            "args_h" => Op::LoadData(self.argument()? + 4),
            "data" => Op::LoadData(self.index()?),
            "mem" => Op::LoadMem(self.index()?),
            "len" => Op::LoadLen,
            "x" => Op::Txa,
            "-" => {
                self.symbol("A")?;
                Op::Neg
            }
            _ => Op::LoadImm(constant(word, span, self.arch)?),
        })
    }

    /// After `X =`.
    fn index_register(&mut self) -> Step<Op> {
        let (word, span) = self.word()?;
        Ok(match word.to_ascii_lowercase().as_str() {
            "a" => Op::Tax,
            "mem" => Op::LoadXMem(self.index()?),
            "len" => Op::LoadXLen,
            _ => Op::LoadXImm(constant(word, span, self.arch)?),
        })
    }

    /// `>> 32` after an argument, which selects its upper half.
    fn upper_half(&mut self) -> Step<u32> {
        if !self.take(">>") {
            return Ok(0);
        }
        self.symbol("32")?;
        Ok(4)
    }

    /// The offset of the argument whose index follows.
    fn argument(&mut self) -> Step<u32> {
        match self.index()? {
            index @ 0..=5 => Ok(16 + 8 * index),
            _ => Err(self.unexpected_before("an index from 0 to 5")),
        }
    }

    /// A number in brackets.
    fn index(&mut self) -> Step<u32> {
        self.symbol("[")?;
        let (word, span) = self.word()?;
        let index = number(word, span)?;
        self.symbol("]")?;
        Ok(index)
    }

    /// An operator and its right-hand side; whether the goals are exchanged.
    fn comparison(&mut self) -> Step<(Test, Operand, bool)> {
        let (test, is_swapped) = match self.peek().0 {
            "==" => (Test::Eq, false),
            "!=" => (Test::Eq, true),
            ">" => (Test::Gt, false),
            "<=" => (Test::Gt, true),
            ">=" => (Test::Ge, false),
            "<" => (Test::Ge, true),
            "&" => (Test::Set, false),
            _ => return Err(self.unexpected("a comparison: == != > >= < <= &")),
        };
        self.at += 1;
        Ok((test, self.operand()?, is_swapped))
    }

    fn operand(&mut self) -> Step<Operand> {
        let (word, span) = self.word()?;
        if word.eq_ignore_ascii_case("x") {
            return Ok(Operand::X);
        }
        constant(word, span, self.arch).map(Operand::K)
    }

    fn goal(&mut self) -> Step<Goal<'t>> {
        let (word, span) = self.word()?;
        if word == "next" {
            return Ok(Goal::Next);
        }
        match word.starts_with(|c: char| c.is_ascii_digit()) {
            true => Ok(Goal::Skip(number(word, span)?, span)),
            false => Ok(Goal::Label(word, span)),
        }
    }

    // Tokens.

    fn peek(&self) -> (&'t str, Span) {
        let last = self.tokens[self.tokens.len() - 1].1;
        let end = last.after();
        self.tokens.get(self.at).copied().unwrap_or(("", end))
    }

    fn word(&mut self) -> Step<(&'t str, Span)> {
        let token = self.peek();
        if token.0.is_empty() {
            return Err(self.unexpected("more"));
        }
        self.at += 1;
        Ok(token)
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = self.peek().0.eq_ignore_ascii_case(text);
        self.at += usize::from(is_next);
        is_next
    }

    fn symbol(&mut self, text: &str) -> Step<()> {
        match self.take(text) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{text}`"))),
        }
    }

    fn unexpected(&self, expected: &str) -> Box<Diagnostic> {
        let (text, span) = self.peek();
        let message = match text {
            "" => "unexpected end of the line".to_owned(),
            text => format!("unexpected `{text}`"),
        };
        let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, message);
        Box::new(diagnostic.label(span, format!("expected {expected}")))
    }

    /// The same for the token just read.
    fn unexpected_before(&mut self, expected: &str) -> Box<Diagnostic> {
        self.at -= 1;
        self.unexpected(expected)
    }
}

fn branch<'t>(
    test: Test,
    operand: Operand,
    is_swapped: bool,
    [yes, no]: [Goal<'t>; 2],
) -> Statement<'t> {
    Statement::Branch {
        test,
        operand,
        goals: if is_swapped { [no, yes] } else { [yes, no] },
    }
}

/// A number, an architecture, or the number of a call.
fn constant(word: &str, span: Span, arch: Arch) -> Step<u32> {
    if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return number(word, span);
    }
    let upper = word.to_ascii_uppercase();
    if let Some((_, arch)) = ARCHES.iter().find(|(name, _)| *name == upper) {
        return Ok(arch.audit());
    }
    let (arch, call) = match word.split_once('.') {
        Some((abi, call)) => match ABIS.iter().find(|(name, _)| *name == abi) {
            Some((_, arch)) => (*arch, call),
            None => {
                let known = ABIS.iter().map(|(name, _)| *name);
                return Err(unknown("architecture", abi, span, known));
            }
        },
        None => (arch, word),
    };
    syscall::number(arch, call).map(|nr| nr.0).ok_or_else(|| {
        let known = syscall::all(arch).map(|(_, name)| name);
        unknown("call or constant", call, span, known)
    })
}

fn unknown<'k>(
    what: &str,
    name: &str,
    span: Span,
    known: impl Iterator<Item = &'k str>,
) -> Box<Diagnostic> {
    let message = format!("unknown {what} `{name}`");
    let diagnostic = Diagnostic::error(code::UNKNOWN_NAME, message).label(span, "");
    Box::new(match suggest::nearest(name, known) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    })
}

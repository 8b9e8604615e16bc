//! Tokens to instructions whose jumps still have labels.

use tamis_diag::limits::MAX_DIAGNOSTICS;
use tamis_diag::{Diagnostic, Span, suggest};

use super::lex::{Lines, Token, TokenKind};
use super::{Dialect, Step, symbols};
use crate::code;
use crate::insn::{AluOp, Insn, Op, Operand, Test};
use crate::packet::{self, Ancillary, Extra, Load, Size};

/// A parsed text.
#[derive(Debug, Default)]
pub(crate) struct Unit<'a> {
    /// One entry per instruction; a line with an error has one too, so that distances stay correct.
    pub(crate) insns: Vec<Line<'a>>,
    /// The labels in the order of the text.
    pub(crate) labels: Vec<Label<'a>>,
}

/// A label and its instruction.
#[derive(Debug)]
pub(crate) struct Label<'a> {
    pub(crate) name: &'a str,
    pub(crate) pc: usize,
    pub(crate) span: Span,
}

/// An instruction with its span.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) template: Template<'a>,
    pub(crate) span: Span,
}

/// An instruction before its labels are resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Template<'a> {
    Insn(Insn),
    Jump(Target<'a>),
    /// `None` falls through.
    Branch {
        test: Test,
        operand: Operand,
        if_true: Option<Target<'a>>,
        if_false: Option<Target<'a>>,
    },
}

/// A label used as a jump target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) label: &'a str,
    pub(crate) span: Span,
}

/// The meaning of a mnemonic.
#[derive(Clone, Copy, Debug)]
enum Mnemonic {
    Load,
    LoadX,
    LoadImm,
    LoadXImm,
    Store,
    StoreX,
    Alu(AluOp),
    /// The encoded test, and whether its sides are exchanged.
    Branch(Test, bool),
    Jump,
    Ret,
    Plain(Op),
    Raw,
    /// A load that sockets accept and seccomp rejects.
    LoadSize(Size),
    HeaderLen,
    Mod,
    /// An instruction that no filter of the kernel has.
    Refused,
}

const MNEMONICS: [(&str, Mnemonic); 35] = [
    ("ld", Mnemonic::Load),
    ("ldx", Mnemonic::LoadX),
    ("ldi", Mnemonic::LoadImm),
    ("ldxi", Mnemonic::LoadXImm),
    ("st", Mnemonic::Store),
    ("stx", Mnemonic::StoreX),
    ("add", Mnemonic::Alu(AluOp::Add)),
    ("sub", Mnemonic::Alu(AluOp::Sub)),
    ("mul", Mnemonic::Alu(AluOp::Mul)),
    ("div", Mnemonic::Alu(AluOp::Div)),
    ("and", Mnemonic::Alu(AluOp::And)),
    ("or", Mnemonic::Alu(AluOp::Or)),
    ("xor", Mnemonic::Alu(AluOp::Xor)),
    ("lsh", Mnemonic::Alu(AluOp::Lsh)),
    ("rsh", Mnemonic::Alu(AluOp::Rsh)),
    ("neg", Mnemonic::Plain(Op::Neg)),
    ("tax", Mnemonic::Plain(Op::Tax)),
    ("txa", Mnemonic::Plain(Op::Txa)),
    ("ja", Mnemonic::Jump),
    ("jmp", Mnemonic::Jump),
    ("jeq", Mnemonic::Branch(Test::Eq, false)),
    ("jne", Mnemonic::Branch(Test::Eq, true)),
    ("jneq", Mnemonic::Branch(Test::Eq, true)),
    ("jgt", Mnemonic::Branch(Test::Gt, false)),
    ("jle", Mnemonic::Branch(Test::Gt, true)),
    ("jge", Mnemonic::Branch(Test::Ge, false)),
    ("jlt", Mnemonic::Branch(Test::Ge, true)),
    ("jset", Mnemonic::Branch(Test::Set, false)),
    ("ret", Mnemonic::Ret),
    (".insn", Mnemonic::Raw),
    ("ldb", Mnemonic::LoadSize(Size::Byte)),
    ("ldh", Mnemonic::LoadSize(Size::Half)),
    ("ldxb", Mnemonic::HeaderLen),
    ("mod", Mnemonic::Mod),
    ("arsh", Mnemonic::Refused),
];

/// Whether a word is the name of an instruction.
pub(super) fn is_mnemonic(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    MNEMONICS.iter().any(|(name, _)| *name == word)
}

/// Parses all lines, up to a limit of errors. They are added to `diagnostics`, at most one per line.
pub(super) fn unit<'a>(
    lines: &mut Lines<'a>,
    dialect: Dialect,
    diagnostics: &mut Vec<Diagnostic>,
) -> Unit<'a> {
    let mut unit = Unit::default();
    while diagnostics.len() < MAX_DIAGNOSTICS
        && let Some(line) = lines.next(diagnostics)
    {
        let mut tokens = line.as_slice();
        while let [name, colon, rest @ ..] = tokens
            && let TokenKind::Word(word) = name.kind
            && colon.kind == TokenKind::Mark(':')
        {
            let (name, span) = (word, name.span);
            let pc = unit.insns.len();
            unit.labels.push(Label { name, pc, span });
            tokens = rest;
        }
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            continue;
        };
        let mut cursor = Cursor {
            tokens,
            last: *last,
            dialect,
        };
        let template = cursor.insn().unwrap_or_else(|diagnostic| {
            diagnostics.push(*diagnostic);
            Template::Insn(Insn::default())
        });
        unit.insns.push(Line {
            template,
            span: first.span.to(last.span),
        });
    }
    unit
}

/// The unread tokens of a line.
struct Cursor<'t, 'a> {
    tokens: &'t [Token<'a>],
    last: Token<'a>,
    dialect: Dialect,
}

impl<'a> Cursor<'_, 'a> {
    fn peek(&self) -> Option<TokenKind<'a>> {
        self.tokens.first().map(|token| token.kind)
    }

    /// The span of the next token; after the line if there is none.
    fn span(&self) -> Span {
        let behind = self.last.span.after();
        self.tokens.first().map_or(behind, |token| token.span)
    }

    fn advance(&mut self) {
        self.tokens = self.tokens.get(1..).unwrap_or_default();
    }

    fn eat(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(TokenKind::Mark(mark));
        if found {
            self.advance();
        }
        found
    }

    /// Consumes a keyword, in any case.
    fn eat_keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Some(TokenKind::Word(word)) if word.eq_ignore_ascii_case(keyword));
        if found {
            self.advance();
        }
        found
    }

    fn expected(&self, what: &str) -> Box<Diagnostic> {
        let found = match self.peek() {
            Some(kind) => kind.to_string(),
            None => "the end of the line".to_owned(),
        };
        let message = format!("expected {what}, found {found}");
        Box::new(Diagnostic::error(code::ASSEMBLER_SYNTAX, message).label(self.span(), ""))
    }

    fn expect(&mut self, mark: char) -> Step<()> {
        if self.eat(mark) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{mark}`")))
        }
    }

    fn word(&mut self, what: &str) -> Step<(&'a str, Span)> {
        match self.peek() {
            Some(TokenKind::Word(word)) => {
                let span = self.span();
                self.advance();
                Ok((word, span))
            }
            _ => Err(self.expected(what)),
        }
    }

    fn number(&mut self, what: &str) -> Step<u32> {
        match self.peek() {
            Some(TokenKind::Number(number)) => {
                self.advance();
                Ok(number)
            }
            _ => Err(self.expected(what)),
        }
    }

    fn insn(&mut self) -> Step<Template<'a>> {
        let (written, span) = self.word("an instruction")?;
        let mnemonic = MNEMONICS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(written))
            .map(|(_, mnemonic)| *mnemonic)
            .ok_or_else(|| unknown_mnemonic(written, span))?;
        let is_packet = self.dialect == Dialect::Packet;
        let template = match mnemonic {
            Mnemonic::LoadSize(_) | Mnemonic::HeaderLen | Mnemonic::Mod if !is_packet => {
                let refused = refused_mnemonic(written, span);
                return Err(Box::new(
                    refused.help("for a filter of a socket, use `--packet`"),
                ));
            }
            Mnemonic::Refused if is_packet => {
                let message = format!("no filter has `{written}`");
                let diagnostic = Diagnostic::error(code::INVALID_PROGRAM, message);
                return Err(Box::new(
                    diagnostic.label(span, "not an instruction of classic BPF"),
                ));
            }
            Mnemonic::Refused => return Err(Box::new(refused_mnemonic(written, span))),
            Mnemonic::LoadSize(size) => Template::Insn(self.load_sized(size)?.into()),
            Mnemonic::HeaderLen => Template::Insn(self.header_len()?.into()),
            Mnemonic::Mod => Template::Insn(packet::Op::Extra(Extra::Mod(self.operand()?)).into()),
            Mnemonic::Load => Template::Insn(self.load()?),
            Mnemonic::LoadX => Template::Insn(self.load_x()?),
            Mnemonic::LoadImm => Template::Insn(Op::LoadImm(self.immediate()?).into()),
            Mnemonic::LoadXImm => Template::Insn(Op::LoadXImm(self.immediate()?).into()),
            Mnemonic::Store => Template::Insn(Op::Store(self.slot()?).into()),
            Mnemonic::StoreX => Template::Insn(Op::StoreX(self.slot()?).into()),
            Mnemonic::Alu(alu) => Template::Insn(Op::Alu(alu, self.operand()?).into()),
            Mnemonic::Branch(test, is_exchanged) => self.branch(test, is_exchanged)?,
            Mnemonic::Jump => Template::Jump(self.target()?),
            Mnemonic::Ret => Template::Insn(self.ret()?.into()),
            Mnemonic::Plain(op) => Template::Insn(op.into()),
            Mnemonic::Raw => Template::Insn(self.raw()?),
        };
        match self.peek() {
            None => Ok(template),
            Some(_) => Err(self.expected("the end of the line")),
        }
    }

    fn load(&mut self) -> Step<Insn> {
        if self.eat_len() {
            return Ok(Op::LoadLen.into());
        }
        let is_packet = self.dialect == Dialect::Packet;
        if is_packet && (self.peek() == Some(TokenKind::Mark('[')) || self.at_ancillary()) {
            return Ok(self.load_sized(Size::Word)?.into());
        }
        let op = if self.eat('[') {
            let offset = self.data_offset()?;
            self.expect(']')?;
            Op::LoadData(offset)
        } else if self.eat('#') {
            Op::LoadImm(self.constant()?)
        } else if self.at_slot() {
            Op::LoadMem(self.slot()?)
        } else {
            return Err(self.expected("`[`, `#`, `M[` or `len`"));
        };
        Ok(op.into())
    }

    /// The offset of a load from `seccomp_data`.
    fn data_offset(&mut self) -> Step<u32> {
        match (self.peek(), self.dialect) {
            (Some(TokenKind::Word(name)), Dialect::Seccomp(endian)) => {
                let offset = symbols::field(name, self.span(), endian)?;
                self.advance();
                Ok(offset)
            }
            _ => self.number("a byte offset or the name of a field"),
        }
    }

    /// A load from a packet: `[k]`, `[x + k]` or the name of a value beside it.
    fn load_sized(&mut self, size: Size) -> Step<packet::Op> {
        let load = if self.at_ancillary() {
            let _ = self.eat('#');
            let (name, span) = self.word("the name of a value")?;
            Load::Ancillary(size, symbols::ancillary(name, span)?)
        } else {
            self.expect('[')?;
            let _ = self.eat('%');
            let load = if self.eat_keyword("x") {
                let k = match self.peek() {
                    Some(TokenKind::Mark(']')) => 0,
                    // A sign that belongs to the number has been read with it.
                    Some(TokenKind::Number(k)) => {
                        self.advance();
                        k
                    }
                    _ => {
                        self.expect('+')?;
                        self.number("an offset")?
                    }
                };
                Load::Indexed(size, k)
            } else {
                let k = self.number("an offset or `x`")?;
                Ancillary::at(k).map_or(Load::Absolute(size, k), |one| Load::Ancillary(size, one))
            };
            self.expect(']')?;
            load
        };
        Ok(packet::Op::LoadData(load))
    }

    /// Whether the name of a value beside the packet follows, with or without `#`.
    fn at_ancillary(&self) -> bool {
        let tokens = match self.tokens {
            [first, rest @ ..] if first.kind == TokenKind::Mark('#') => rest,
            tokens => tokens,
        };
        matches!(tokens.first().map(|token| token.kind), Some(TokenKind::Word(word)) if !word.eq_ignore_ascii_case("M"))
    }

    /// The length of a header after `ldx`: `4*([k]&0xf)`.
    fn header_len(&mut self) -> Step<packet::Op> {
        let four = self.number("`4*([k]&0xf)`")?;
        self.expect('*')?;
        self.expect('(')?;
        self.expect('[')?;
        let k = self.number("an offset")?;
        self.expect(']')?;
        self.expect('&')?;
        let mask = self.number("`0xf`")?;
        self.expect(')')?;
        if (four, mask) != (4, 15) {
            let message = "the length of a header is `4*([k]&0xf)`";
            let diagnostic = Diagnostic::error(code::ASSEMBLER_SYNTAX, message);
            return Err(Box::new(diagnostic.label(self.last.span, "")));
        }
        Ok(packet::Op::Extra(Extra::LoadXHeaderLen(k)))
    }

    fn load_x(&mut self) -> Step<Insn> {
        let op = if self.eat_len() {
            Op::LoadXLen
        } else if self.eat('#') {
            Op::LoadXImm(self.constant()?)
        } else if self.at_slot() {
            Op::LoadXMem(self.slot()?)
        } else if self.dialect == Dialect::Packet && self.peek().is_some() {
            return Ok(self.header_len()?.into());
        } else {
            return Err(self.expected("`#`, `M[` or `len`"));
        };
        Ok(op.into())
    }

    /// Consumes `len` or `#len`.
    fn eat_len(&mut self) -> bool {
        let before = self.tokens;
        let _ = self.eat('#');
        let found = self.eat_keyword("len");
        if !found {
            self.tokens = before;
        }
        found
    }

    fn immediate(&mut self) -> Step<u32> {
        if self.eat('#') {
            self.constant()
        } else {
            self.number("`#` or a number")
        }
    }

    fn at_slot(&self) -> bool {
        matches!(self.peek(), Some(TokenKind::Word("M" | "m")))
    }

    fn slot(&mut self) -> Step<u32> {
        if !self.eat_keyword("M") {
            return Err(self.expected("`M[`"));
        }
        self.expect('[')?;
        let slot = self.number("the number of a scratch slot")?;
        self.expect(']')?;
        Ok(slot)
    }

    fn operand(&mut self) -> Step<Operand> {
        if self.eat('#') {
            return Ok(Operand::K(self.constant()?));
        }
        let _ = self.eat('%');
        if self.eat_keyword("x") {
            Ok(Operand::X)
        } else {
            Err(self.expected("`#` or `x`"))
        }
    }

    /// A constant after its `#`.
    fn constant(&mut self) -> Step<u32> {
        let Some(TokenKind::Word(name)) = self.peek() else {
            return self.number("a number or a name");
        };
        if self.dialect == Dialect::Packet {
            return self.number("a number");
        }
        let name_span = self.span();
        self.advance();
        if !self.eat('(') {
            let kind = symbols::action(name, name_span)?;
            return symbols::action_ret(kind, 0, name_span);
        }
        let value = match name {
            "arch" => self.arch()?.audit(),
            "nr" => {
                let arch = self.arch()?;
                self.expect(',')?;
                let (call, span) = self.word("the name of a system call")?;
                symbols::nr(arch, call, span)?.0
            }
            _ => {
                let kind = symbols::action(name, name_span)?;
                let span = self.span();
                let data = self.number("the data of the action")?;
                symbols::action_ret(kind, data, span)?
            }
        };
        self.expect(')')?;
        Ok(value)
    }

    fn arch(&mut self) -> Step<tamis_abi::Arch> {
        let (name, span) = self.word("the name of an architecture")?;
        symbols::arch(name, span)
    }

    fn target(&mut self) -> Step<Target<'a>> {
        let (label, span) = self.word("a label")?;
        Ok(Target { label, span })
    }

    fn branch(&mut self, test: Test, is_exchanged: bool) -> Step<Template<'a>> {
        let operand = self.operand()?;
        self.expect(',')?;
        let first = Some(self.target()?);
        let second = if self.eat(',') {
            Some(self.target()?)
        } else {
            None
        };
        let (if_true, if_false) = if is_exchanged {
            (second, first)
        } else {
            (first, second)
        };
        Ok(Template::Branch {
            test,
            operand,
            if_true,
            if_false,
        })
    }

    fn ret(&mut self) -> Step<Op> {
        if self.eat('#') {
            return Ok(Op::RetImm(self.constant()?));
        }
        let _ = self.eat('%');
        if self.eat_keyword("a") {
            Ok(Op::RetA)
        } else {
            Err(self.expected("`#` or `a`"))
        }
    }

    fn raw(&mut self) -> Step<Insn> {
        let code = self.raw_field("code", u32::from(u16::MAX))? as u16;
        self.expect(',')?;
        let jt = self.raw_field("jt", u32::from(u8::MAX))? as u8;
        self.expect(',')?;
        let jf = self.raw_field("jf", u32::from(u8::MAX))? as u8;
        self.expect(',')?;
        let k = self.raw_field("k", u32::MAX)?;
        Ok(Insn { code, jt, jf, k })
    }

    fn raw_field(&mut self, name: &str, max: u32) -> Step<u32> {
        let span = self.span();
        let value = self.number(&format!("a number for `{name}`"))?;
        if value > max {
            let message = format!("`{value}` does not fit `{name}`");
            let diagnostic = Diagnostic::error(code::NUMBER_TOO_LARGE, message)
                .label(span, "")
                .note(format!("the largest value of `{name}` is {max}"));
            return Err(Box::new(diagnostic));
        }
        Ok(value)
    }
}

fn unknown_mnemonic(written: &str, span: Span) -> Box<Diagnostic> {
    let message = format!("unknown instruction `{written}`");
    let diagnostic = Diagnostic::error(code::UNKNOWN_MNEMONIC, message).label(span, "");
    let allowed = MNEMONICS
        .iter()
        .filter(|(_, mnemonic)| !matches!(mnemonic, Mnemonic::Refused))
        .map(|(name, _)| *name);
    Box::new(match suggest::nearest(written, allowed) {
        Some(nearest) => diagnostic.help(format!("did you mean `{nearest}`?")),
        None => diagnostic,
    })
}

fn refused_mnemonic(written: &str, span: Span) -> Diagnostic {
    let message = format!("seccomp rejects `{written}`");
    Diagnostic::error(code::INVALID_PROGRAM, message)
        .label(span, "not available to seccomp filters")
        .note("seccomp allows loads of whole words only, and no remainder or signed shift")
}

//! Tokens to instructions, in two steps: lines whose jumps may still name labels, then their distances.

use std::collections::HashMap;

use tamis_bpf::extended::Insn;
use tamis_diag::limits::MAX_DIAGNOSTICS;
use tamis_diag::{Diagnostic, Span};

use super::lex::{Token, TokenKind};
use super::print::{ALU, CONDS, EXCHANGES, FETCHES, SWAPS, TYPES};
use crate::code;
use crate::coding::Encoded;
use crate::insn::{Address, AluOp, Atomic, Bits, Cond, Op, Place, Reg, Size, Source, Width};

/// The result of a step; an error in the line prevents it.
type Step<T> = Result<T, Box<Diagnostic>>;

/// Where a jump leads.
#[derive(Clone, Copy)]
enum Target<'a> {
    Distance(i64),
    Label(&'a str, Span),
}

/// A line's instruction.
enum Template<'a> {
    /// As it is stored.
    Raw(Insn),
    Plain(Op),
    /// An instruction with a distance.
    Towards(Jump, Target<'a>, Span),
}

/// A jump without its distance.
#[derive(Clone, Copy)]
enum Jump {
    Near,
    Far,
    Branch(Width, Cond, Reg, Source),
    Call,
}

/// The instructions of a text and the span of each. Errors are added to `diagnostics`, at most one per line.
pub(super) fn unit(
    lines: &[Vec<Token<'_>>],
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<Insn>, Vec<Span>) {
    let mut templates = Vec::new();
    let mut labels: HashMap<&str, (usize, Span)> = HashMap::new();
    let mut places = 0;
    for line in lines {
        if diagnostics.len() >= MAX_DIAGNOSTICS {
            break;
        }
        let mut tokens = line.as_slice();
        while let [Token { kind, span }, rest @ ..] = tokens
            && let TokenKind::Word(word) = kind
            && let Some(name) = word.strip_suffix(':')
        {
            tokens = rest;
            let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
            if !is_number && let Some((_, first)) = labels.insert(name, (places, *span)) {
                let message = format!("label `{name}` is defined twice");
                let diagnostic = Diagnostic::error(code::DUPLICATE_LABEL, message);
                diagnostics.push(diagnostic.label(*span, "").label(first, "first here"));
            }
        }
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            continue;
        };
        let mut cursor = Cursor {
            tokens,
            last: last.span,
        };
        match cursor.line() {
            Ok(template) => {
                let start = places;
                places += template.places();
                templates.push((template, start, first.span.to(last.span)));
            }
            Err(diagnostic) => diagnostics.push(*diagnostic),
        }
    }
    if !diagnostics.is_empty() {
        return (Vec::new(), Vec::new());
    }
    link(templates, &labels, diagnostics)
}

fn link(
    templates: Vec<(Template<'_>, usize, Span)>,
    labels: &HashMap<&str, (usize, Span)>,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<Insn>, Vec<Span>) {
    let (mut insns, mut spans) = (Vec::new(), Vec::new());
    for (template, start, span) in templates {
        let linked = match template {
            Template::Raw(insn) => {
                insns.push(insn);
                spans.push(span);
                continue;
            }
            Template::Plain(op) => Ok(op),
            Template::Towards(jump, target, place) => {
                let distance = match target {
                    Target::Distance(distance) => Ok(distance),
                    Target::Label(name, span) => match labels.get(name) {
                        Some((at, _)) => Ok(*at as i64 - start as i64 - 1),
                        None => Err(undefined(name, span)),
                    },
                };
                distance.and_then(|distance| jump.with(distance, place))
            }
        };
        match linked {
            Ok(op) => {
                insns.extend(Encoded::from(op).insns());
                spans.resize(insns.len(), span);
            }
            Err(diagnostic) if diagnostics.len() < MAX_DIAGNOSTICS => diagnostics.push(*diagnostic),
            Err(_) => break,
        }
    }
    (insns, spans)
}

fn undefined(name: &str, span: Span) -> Box<Diagnostic> {
    let message = format!("label `{name}` is not defined");
    Box::new(Diagnostic::error(code::UNDEFINED_LABEL, message).label(span, ""))
}

fn too_large(what: &str, span: Span) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code::EXTENDED_NUMBER, what).label(span, ""))
}

impl Template<'_> {
    fn places(&self) -> usize {
        match self {
            Template::Plain(op) => op.places(),
            Template::Raw(_) | Template::Towards(..) => 1,
        }
    }
}

impl Jump {
    fn with(self, distance: i64, span: Span) -> Step<Op> {
        let near = || {
            i16::try_from(distance).map_err(|_| {
                let message = format!("the distance {distance} does not fit in 16 bits");
                let mut diagnostic = too_large(&message, span);
                diagnostic.help = Some("`gotol` has 32 bits".to_owned());
                diagnostic
            })
        };
        let far = || {
            let message = format!("the distance {distance} does not fit in 32 bits");
            i32::try_from(distance).map_err(|_| too_large(&message, span))
        };
        Ok(match self {
            Jump::Near => Op::Jump(near()?),
            Jump::Far => Op::JumpFar(far()?),
            Jump::Branch(width, cond, dst, source) => Op::Branch(width, cond, dst, source, near()?),
            Jump::Call => Op::CallLocal(far()?),
        })
    }
}

/// The register with this name, and the width that the name stands for.
fn register(word: &str) -> Option<(Width, Reg)> {
    let (width, number) = match word.strip_prefix('r') {
        Some(number) => (Width::W64, number),
        None => (Width::W32, word.strip_prefix('w')?),
    };
    let is_plain = number == "0" || !number.starts_with('0');
    let reg = Reg::new(number.parse().ok().filter(|_| is_plain)?)?;
    Some((width, reg))
}

/// The unread tokens of a line.
struct Cursor<'t, 'a> {
    tokens: &'t [Token<'a>],
    last: Span,
}

impl<'a> Cursor<'_, 'a> {
    fn peek(&self) -> Option<TokenKind<'a>> {
        self.tokens.first().map(|token| token.kind)
    }

    /// The span of the next token; after the line if there is none.
    fn span(&self) -> Span {
        let behind = self.last.after();
        self.tokens.first().map_or(behind, |token| token.span)
    }

    fn advance(&mut self) {
        self.tokens = self.tokens.get(1..).unwrap_or_default();
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self
            .peek()
            .is_some_and(|kind| matches!(kind, TokenKind::Sign(s) if s == sign));
        if found {
            self.advance();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(TokenKind::Word(word));
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
        Box::new(Diagnostic::error(code::EXTENDED_SYNTAX, message).label(self.span(), ""))
    }

    fn expect(&mut self, sign: &str) -> Step<()> {
        if self.eat(sign) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{sign}`")))
        }
    }

    fn register(&mut self) -> Step<(Width, Reg)> {
        if let Some(TokenKind::Word(word)) = self.peek()
            && let Some(found) = register(word)
        {
            self.advance();
            return Ok(found);
        }
        Err(self.expected("a register"))
    }

    /// A register of this width.
    fn register_of(&mut self, width: Width) -> Step<Reg> {
        match self.peek() {
            Some(TokenKind::Word(word)) if register(word).is_some_and(|(of, _)| of == width) => {
                Ok(self.register()?.1)
            }
            _ => Err(self.expected(match width {
                Width::W32 => "a register of 32 bits, `w0` to `w10`",
                Width::W64 => "a register of 64 bits, `r0` to `r10`",
            })),
        }
    }

    /// A number with its sign, in a range.
    fn number(&mut self, range: std::ops::RangeInclusive<i64>) -> Step<i64> {
        let span = self.span();
        let is_negative = self.eat("-");
        if !is_negative {
            self.eat("+");
        }
        let Some(TokenKind::Number(number)) = self.peek() else {
            return Err(self.expected("a number"));
        };
        let span = span.to(self.span());
        self.advance();
        let signed = match is_negative {
            true => 0_i64.checked_sub_unsigned(number),
            false => i64::try_from(number).ok(),
        };
        signed
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                let (low, high) = range.into_inner();
                too_large(&format!("the number is not between {low} and {high}"), span)
            })
    }

    /// The constant of an operation of a width. With 32 bits it may be written without a sign.
    fn immediate(&mut self, width: Width) -> Step<i32> {
        let most = match width {
            Width::W32 => i64::from(u32::MAX),
            Width::W64 => i64::from(i32::MAX),
        };
        Ok(self.number(i64::from(i32::MIN)..=most)? as i32)
    }

    fn source(&mut self, width: Width) -> Step<Source> {
        match self.peek() {
            Some(TokenKind::Word(_)) => Ok(Source::Reg(self.register_of(width)?)),
            _ => Ok(Source::Imm(self.immediate(width)?)),
        }
    }

    /// `(r10 - 8)`, or without parentheses.
    fn address(&mut self) -> Step<Address> {
        let has_parentheses = self.eat("(");
        let base = self.register_of(Width::W64)?;
        let offset = match self.peek() {
            Some(TokenKind::Sign("+" | "-")) => {
                self.number(i64::from(i16::MIN)..=i64::from(i16::MAX))? as i16
            }
            _ => 0,
        };
        if has_parentheses {
            self.expect(")")?;
        }
        Ok(Address { base, offset })
    }

    /// `(u32 *)`, with whether it is signed.
    fn pointer_type(&mut self) -> Step<(Size, bool)> {
        self.expect("(")?;
        let of = match self.peek() {
            Some(TokenKind::Word(word)) => TYPES.iter().find(|(name, ..)| *name == word),
            _ => None,
        };
        let Some((_, size, is_signed)) = of else {
            return Err(self.expected("a type from `u8` to `u64` or `s8` to `s32`"));
        };
        self.advance();
        self.expect("*")?;
        self.expect(")")?;
        Ok((*size, *is_signed))
    }

    fn unsigned_type(&mut self) -> Step<Size> {
        let span = self.span();
        match self.pointer_type()? {
            (size, false) => Ok(size),
            (_, true) => {
                let message = "only loads have signed types";
                let diagnostic = Diagnostic::error(code::EXTENDED_SYNTAX, message);
                Err(Box::new(diagnostic.label(span, "")))
            }
        }
    }

    fn target(&mut self) -> Step<Target<'a>> {
        // As the kernel writes distances; a label of this name is none before a sign.
        if let [pc, sign, ..] = self.tokens
            && pc.kind == TokenKind::Word("pc")
            && matches!(sign.kind, TokenKind::Sign("+" | "-"))
        {
            self.advance();
        }
        match self.peek() {
            Some(TokenKind::Word(name)) => {
                let span = self.span();
                self.advance();
                Ok(Target::Label(name, span))
            }
            _ => Ok(Target::Distance(self.number(i64::MIN..=i64::MAX)?)),
        }
    }

    fn towards(&mut self, jump: Jump) -> Step<Template<'a>> {
        let span = self.span();
        let target = self.target()?;
        Ok(Template::Towards(jump, target, span))
    }

    fn line(&mut self) -> Step<Template<'a>> {
        // The code in a listing of the kernel.
        if let [open, _, close, _, ..] = self.tokens
            && (open.kind, close.kind) == (TokenKind::Sign("("), TokenKind::Sign(")"))
        {
            self.tokens = &self.tokens[3..];
        }
        let template = self.insn()?;
        match self.peek() {
            None => Ok(template),
            Some(_) => Err(self.expected("the end of the line")),
        }
    }

    fn insn(&mut self) -> Step<Template<'a>> {
        let word = match self.peek() {
            Some(TokenKind::Sign("*")) => return self.store().map(Template::Plain),
            Some(TokenKind::Word(word)) => word,
            _ => return Err(self.expected("an instruction")),
        };
        if let Some((width, dst)) = register(word) {
            self.advance();
            return self.assignment(width, dst).map(Template::Plain);
        }
        let unknown = self.expected("an instruction");
        self.advance();
        match word {
            "exit" => Ok(Template::Plain(Op::Exit)),
            "goto" => self.towards(Jump::Near),
            "gotol" => self.towards(Jump::Far),
            "call" => self.call(),
            "if" => {
                let (width, dst) = self.register()?;
                let cond = self.cond()?;
                let source = self.source(width)?;
                if !self.eat_word("goto") {
                    return Err(self.expected("`goto`"));
                }
                self.towards(Jump::Branch(width, cond, dst, source))
            }
            "lock" => self.locked().map(Template::Plain),
            ".insn" => self.raw().map(Template::Raw),
            _ => Err(unknown),
        }
    }

    fn call(&mut self) -> Step<Template<'a>> {
        if self.eat_word("pc") {
            return self.towards(Jump::Call);
        }
        match self.peek() {
            Some(TokenKind::Word(_)) => self.towards(Jump::Call),
            _ => {
                let number = self.number(i64::from(i32::MIN)..=i64::from(i32::MAX))?;
                Ok(Template::Plain(Op::CallHelper(number as i32)))
            }
        }
    }

    /// An operator that may have an `s` before it.
    fn operator<T: Copy>(&mut self, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        let is_signed = self.peek() == Some(TokenKind::Word("s"));
        let sign = self.tokens.get(usize::from(is_signed))?;
        let TokenKind::Sign(sign) = sign.kind else {
            return None;
        };
        let found = find(&format!("{}{sign}", if is_signed { "s" } else { "" }))?;
        self.tokens = &self.tokens[1 + usize::from(is_signed)..];
        Some(found)
    }

    fn cond(&mut self) -> Step<Cond> {
        let find = |sign: &str| {
            CONDS
                .iter()
                .find(|(known, _)| *known == sign)
                .map(|(_, cond)| *cond)
        };
        let cond = self.operator(find);
        cond.ok_or_else(|| self.expected("a comparison"))
    }

    fn raw(&mut self) -> Step<Insn> {
        let code = self.number(0..=255)? as u8;
        self.expect(",")?;
        let dst = self.number(0..=15)? as u8;
        self.expect(",")?;
        let src = self.number(0..=15)? as u8;
        self.expect(",")?;
        let offset = self.number(i64::from(i16::MIN)..=i64::from(i16::MAX))? as i16;
        self.expect(",")?;
        let imm = self.immediate(Width::W32)?;
        Ok(Insn {
            code,
            dst,
            src,
            offset,
            imm,
        })
    }

    /// `*(u32 *)(r10 - 4) = …`.
    fn store(&mut self) -> Step<Op> {
        self.expect("*")?;
        let size = self.unsigned_type()?;
        let at = self.address()?;
        self.expect("=")?;
        // LLVM names the lower half of a register where it stores no more.
        let width = if size == Size::D {
            Width::W64
        } else {
            Width::W32
        };
        match self.peek() {
            Some(TokenKind::Word(_)) if size == Size::D => {
                Ok(Op::Store(size, at, self.register_of(Width::W64)?))
            }
            Some(TokenKind::Word(_)) => Ok(Op::Store(size, at, self.register()?.1)),
            _ => Ok(Op::StoreImm(size, at, self.immediate(width)?)),
        }
    }

    /// `*(u64 *)(r10 - 8) += r1` behind `lock`.
    fn locked(&mut self) -> Step<Op> {
        self.expect("*")?;
        let span = self.span();
        let width = width_of(self.unsigned_type()?, span)?;
        let at = self.address()?;
        let atomic = match self.peek() {
            Some(TokenKind::Sign("+=")) => Atomic::Add { fetch: false },
            Some(TokenKind::Sign("|=")) => Atomic::Or { fetch: false },
            Some(TokenKind::Sign("&=")) => Atomic::And { fetch: false },
            Some(TokenKind::Sign("^=")) => Atomic::Xor { fetch: false },
            _ => return Err(self.expected("`+=`, `|=`, `&=` or `^=`")),
        };
        self.advance();
        let src = self.atomic_register(width)?;
        Ok(Op::Atomic(width, atomic, at, src))
    }

    /// The register of an atomic operation; some tools print that of 64 bits for both widths.
    fn atomic_register(&mut self, width: Width) -> Step<Reg> {
        match (width, self.peek()) {
            (Width::W32, Some(TokenKind::Word(word))) if word.starts_with('r') => {
                Ok(self.register()?.1)
            }
            _ => self.register_of(width),
        }
    }

    /// The register of an atomic operation, which must be this one.
    fn atomic_same(&mut self, width: Width, reg: Reg) -> Step<()> {
        let before = self.tokens;
        if self.atomic_register(width)? == reg {
            return Ok(());
        }
        self.tokens = before;
        Err(self.expected(&format!("register {}", reg.number())))
    }

    /// The rest of a line after a register.
    fn assignment(&mut self, width: Width, dst: Reg) -> Step<Op> {
        if self.eat("=") {
            return self.value(width, dst);
        }
        let find = |sign: &str| {
            let operator = sign
                .strip_suffix('=')
                .filter(|operator| !operator.is_empty())?;
            ALU.iter()
                .find(|(known, _)| *known == operator)
                .map(|(_, alu)| *alu)
        };
        let Some(alu) = self.operator(find) else {
            return Err(self.expected("`=` or an operator such as `+=`"));
        };
        Ok(Op::Alu(width, alu, dst, self.source(width)?))
    }

    /// The rest of a line after `r1 =`.
    fn value(&mut self, width: Width, dst: Reg) -> Step<Op> {
        match self.peek() {
            Some(TokenKind::Sign("*")) => self.load(dst),
            Some(TokenKind::Sign("(")) => {
                self.advance();
                self.signed_move(width, dst)
            }
            Some(TokenKind::Sign("-"))
                if matches!(
                    self.tokens.get(1).map(|token| token.kind),
                    Some(TokenKind::Word(_))
                ) =>
            {
                self.advance();
                self.same_register(width, dst)?;
                Ok(Op::Neg(width, dst))
            }
            Some(TokenKind::Word(word)) if register(word).is_some() => {
                let src = self.register_of(width)?;
                Ok(Op::Alu(width, AluOp::Mov, dst, Source::Reg(src)))
            }
            Some(TokenKind::Word(word)) => self.named(word, width, dst),
            _ => self.constant(width, dst),
        }
    }

    fn same_register(&mut self, width: Width, dst: Reg) -> Step<()> {
        match self.peek() {
            Some(TokenKind::Word(word)) if register(word) == Some((width, dst)) => {
                self.advance();
                Ok(())
            }
            _ => Err(self.expected("the register that is assigned")),
        }
    }

    /// A constant, which is a wide one before `ll`.
    fn constant(&mut self, width: Width, dst: Reg) -> Step<Op> {
        let is_wide = self
            .tokens
            .last()
            .is_some_and(|token| token.kind == TokenKind::Word("ll"));
        if !is_wide {
            let imm = self.immediate(width)?;
            return Ok(Op::Alu(width, AluOp::Mov, dst, Source::Imm(imm)));
        }
        if width == Width::W32 {
            return Err(self.expected("a constant without `ll` for a register of 32 bits"));
        }
        let value = match self.peek() {
            Some(TokenKind::Number(number)) => {
                self.advance();
                number
            }
            _ => self.number(i64::MIN..=i64::MAX)? as u64,
        };
        self.eat_word("ll");
        Ok(Op::LoadImm64(dst, value))
    }

    /// `*(u32 *)(r1 + 4)` or `*(u8 *)skb[4]`.
    fn load(&mut self, dst: Reg) -> Step<Op> {
        self.expect("*")?;
        let span = self.span();
        let (size, is_signed) = self.pointer_type()?;
        if !self.eat_word("skb") {
            let at = self.address()?;
            return Ok(match is_signed {
                true => Op::LoadSigned(size, dst, at),
                false => Op::Load(size, dst, at),
            });
        }
        if is_signed || size == Size::D || dst != Reg::R0 {
            let message =
                "loads from the packet are `r0 = *(u8 *)skb[…]`, with `u8`, `u16` or `u32`";
            let diagnostic = Diagnostic::error(code::EXTENDED_SYNTAX, message);
            return Err(Box::new(diagnostic.label(span, "")));
        }
        self.expect("[")?;
        let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
        let place = match self.peek() {
            Some(TokenKind::Word(_)) => {
                let reg = self.register_of(Width::W64)?;
                let is_alone = self.peek() == Some(TokenKind::Sign("]"));
                let offset = if is_alone { 0 } else { self.number(range)? };
                Place::Indirect(reg, offset as i32)
            }
            _ => Place::Absolute(self.number(range)? as i32),
        };
        self.expect("]")?;
        Ok(Op::LoadPacket(size, place))
    }

    /// `(s8)r2` behind its first parenthesis.
    fn signed_move(&mut self, width: Width, dst: Reg) -> Step<Op> {
        let bits = match self.peek() {
            Some(TokenKind::Word("s8")) => Bits::B8,
            Some(TokenKind::Word("s16")) => Bits::B16,
            Some(TokenKind::Word("s32")) if width == Width::W64 => Bits::B32,
            _ => return Err(self.expected("`s8`, `s16` or, with 64 bits, `s32`")),
        };
        self.advance();
        self.expect(")")?;
        Ok(Op::MoveSigned(width, bits, dst, self.register_of(width)?))
    }

    /// A swap or an atomic operation.
    fn named(&mut self, name: &str, width: Width, dst: Reg) -> Step<Op> {
        let unknown = self.expected("a value");
        self.advance();
        for (prefix, swap) in SWAPS {
            let bits = match name.strip_prefix(prefix) {
                Some("16") => Bits::B16,
                Some("32") => Bits::B32,
                Some("64") => Bits::B64,
                _ => continue,
            };
            self.same_register(width, dst)?;
            return Ok(Op::Swap(swap, bits, dst));
        }
        if let Some((_, atomic)) = FETCHES.iter().find(|(known, _)| *known == name) {
            self.expect("(")?;
            let span = self.span();
            let of = width_of(self.unsigned_type()?, span)?;
            let at = self.address()?;
            self.expect(",")?;
            self.atomic_same(of, dst)?;
            self.expect(")")?;
            return Ok(Op::Atomic(of, *atomic, at, dst));
        }
        let Some((_, of, atomic)) = EXCHANGES.iter().find(|(known, ..)| *known == name) else {
            return Err(unknown);
        };
        self.expect("(")?;
        let at = self.address()?;
        self.expect(",")?;
        let src = match atomic {
            Atomic::CompareExchange => {
                self.atomic_same(*of, Reg::R0)?;
                self.expect(",")?;
                self.atomic_register(*of)?
            }
            _ => {
                self.atomic_same(*of, dst)?;
                dst
            }
        };
        self.expect(")")?;
        Ok(Op::Atomic(*of, *atomic, at, src))
    }
}

fn width_of(size: Size, span: Span) -> Step<Width> {
    match size {
        Size::W => Ok(Width::W32),
        Size::D => Ok(Width::W64),
        Size::B | Size::H => {
            let message = "atomic operations are for `u32` and `u64`";
            let diagnostic = Diagnostic::error(code::EXTENDED_SYNTAX, message);
            Err(Box::new(diagnostic.label(span, "")))
        }
    }
}

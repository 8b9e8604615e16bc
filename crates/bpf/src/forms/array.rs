//! Programs as C arrays: the output of `tcpdump -dd`, and hand-written ones with `BPF_STMT` and `BPF_JUMP`.
//!
//! ```text
//! { 0x20, 0, 0, 0x00000000 },
//! struct sock_filter filter[] = {
//!     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
//!     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_read, 0, 1),
//!     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA)),
//! };
//! ```
//!
//! A text is a list of elements, or has one array of them; the rest of it is skipped. Constants are those
//! of the kernel's headers, numbers of calls those of the architecture. Macros of the text itself are
//! not expanded: the C preprocessor does that.

use tamis_abi::{Arch, consts, entry_point, syscall};
use tamis_diag::limits::{MAX_DIAGNOSTICS, MAX_TOKENS, too_many_tokens};
use tamis_diag::{Diagnostic, SourceId, Span, suggest};

use super::Form;
use super::c_tokens::{Token, TokenKind, tokens};
use crate::asm::{Assembly, Step};
use crate::code;
use crate::insn::Insn;

/// The form in the registry.
pub(super) const FORM: Form = Form {
    name: "c-array",
    title: "an array of C",
    about: "A C array: numbers as printed by tcpdump -dd, or BPF_STMT and BPF_JUMP",
    extensions: &["c", "h"],
    recognises,
    read,
};

/// The deepest nesting of parentheses.
const MAX_DEPTH: usize = 64;

/// Whether a text begins with numbers in braces, or has a macro of an instruction or the declaration of a program.
fn recognises(text: &str) -> bool {
    let after = |name: &str| {
        let places = text.match_indices(name);
        let rests = places.map(|(at, name)| text[at + name.len()..].trim_start());
        rests.collect::<Vec<&str>>()
    };
    let is_macro = |name| after(name).iter().any(|rest| rest.starts_with('('));
    let begins_name = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let declared = after("struct sock_filter");
    let is_declared = text.contains('{') && declared.iter().any(begins_name);
    let opens = |c: char| c == '{' || c.is_whitespace();
    let is_braced = text.trim_start().starts_with('{');
    let inside = text.trim_start_matches(opens);
    let is_numbers = is_braced && inside.starts_with(|c: char| c.is_ascii_digit());
    is_numbers || is_macro("BPF_STMT") || is_macro("BPF_JUMP") || is_declared
}

fn read(text: &str, source: SourceId, arch: Arch) -> Result<Assembly, Vec<Diagnostic>> {
    let whole = Span::new(source, 0, text.len());
    let tokens = tokens(text, source);
    if let Some(last) = tokens.get(MAX_TOKENS) {
        let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, too_many_tokens());
        return Err(vec![diagnostic.label(last.span, "")]);
    }
    let list = list(&tokens, whole).map_err(|diagnostic| vec![*diagnostic])?;
    let mut diagnostics = Vec::new();
    let (mut insns, mut spans) = (Vec::new(), Vec::new());
    for element in split(list) {
        let (Some(first), Some(last)) = (element.first(), element.last()) else {
            continue;
        };
        spans.push(first.span.to(last.span));
        let mut reader = Element {
            tokens: element,
            at: 0,
            depth: 0,
            arch,
        };
        match reader.insn() {
            Ok(insn) => insns.push(insn),
            Err(diagnostic) => diagnostics.push(*diagnostic),
        }
        if diagnostics.len() == MAX_DIAGNOSTICS {
            break;
        }
    }
    if spans.is_empty() {
        let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, "there is no instruction").label(
            whole,
            "expected elements such as `{ 0x20, 0, 0, 0 }` or `BPF_STMT(…)`",
        );
        diagnostics.push(diagnostic);
    }
    Assembly::new(insns, arch.endian(), spans, whole, diagnostics)
}

/// The tokens inside of the braces of the one array, or all if there is no array.
fn list<'l, 't>(tokens: &'l [Token<'t>], whole: Span) -> Step<&'l [Token<'t>]> {
    let begins =
        |pair: &&[Token]| pair[0].text == "]" && pair[1].text == "=" && pair[2].text == "{";
    let mut arrays = tokens.windows(3).enumerate();
    let mut starts = arrays.by_ref().filter(|(_, window)| begins(window));
    let Some((start, _)) = starts.next() else {
        return Ok(match tokens {
            [outer, inner, ..] if outer.text == "{" && inner.text == "{" => {
                inside(tokens, 0, whole)?
            }
            _ => tokens,
        });
    };
    if let Some((_, window)) = starts.next() {
        let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, "the text has several arrays")
            .label(window[1].span, "the second begins here")
            .label(tokens[start + 1].span, "the first")
            .help("pass a text with one array");
        return Err(Box::new(diagnostic));
    }
    inside(tokens, start + 2, whole)
}

/// The tokens between a brace and its closing one.
fn inside<'l, 't>(tokens: &'l [Token<'t>], open: usize, whole: Span) -> Step<&'l [Token<'t>]> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "{" | "(" => depth += 1,
            "}" | ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Ok(&tokens[open + 1..at]);
        }
    }
    let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, "a brace is not closed").label(
        tokens.get(open).map_or(whole, |token| token.span),
        "opened here",
    );
    Err(Box::new(diagnostic))
}

/// The parts between commas outside of parentheses and braces.
fn split<'l, 't>(tokens: &'l [Token<'t>]) -> impl Iterator<Item = &'l [Token<'t>]> {
    let mut depth = 0_usize;
    tokens.split(move |token| {
        match token.text {
            "{" | "(" => depth += 1,
            "}" | ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.text == ","
    })
}

/// One element of the array.
struct Element<'l, 't> {
    /// At least one token.
    tokens: &'l [Token<'t>],
    at: usize,
    depth: usize,
    arch: Arch,
}

impl Element<'_, '_> {
    fn insn(&mut self) -> Step<Insn> {
        // `(struct sock_filter)` is redundant.
        if self.is_next("(") {
            while self.at < self.tokens.len() && !self.is_next(")") {
                self.at += 1;
            }
            self.at += 1;
        }
        let (order, close): (&[usize], &str) = match self.next_text() {
            "{" => (&[0, 1, 2, 3], "}"),
            "BPF_STMT" => (&[0, 3], ")"),
            "BPF_JUMP" => (&[0, 3, 1, 2], ")"),
            _ => return Err(self.unexpected("`{`, `BPF_STMT(` or `BPF_JUMP(`")),
        };
        self.at += 1;
        if close == ")" {
            self.symbol("(")?;
        }
        let mut fields = [0; 4];
        for (count, field) in order.iter().enumerate() {
            if count > 0 {
                self.symbol(",")?;
            }
            fields[*field] = self.field(*field)?;
        }
        if close == "}" {
            self.take(",");
        }
        self.symbol(close)?;
        if self.at < self.tokens.len() {
            return Err(self.unexpected("`,`"));
        }
        let [code, jt, jf, k] = fields;
        Ok(Insn {
            code: code as u16,
            jt: jt as u8,
            jf: jf as u8,
            k,
        })
    }

    /// A field: 0 to 3 for code, jt, jf, k.
    fn field(&mut self, field: usize) -> Step<u32> {
        const NAMES: [&str; 4] = ["code", "jt", "jf", "k"];
        if self.take(".") {
            self.symbol(NAMES[field])?;
            self.symbol("=")?;
        }
        let start = self.at;
        let value = self.or()?;
        let span = self.tokens[start].span.to(self.previous());
        let range = match field {
            0 => 0..=i64::from(u16::MAX),
            1 | 2 => 0..=i64::from(u8::MAX),
            _ => i64::from(i32::MIN)..=i64::from(u32::MAX),
        };
        if !range.contains(&value) {
            let message = format!("{value} does not fit `{}`", NAMES[field]);
            let diagnostic = Diagnostic::error(code::NUMBER_TOO_LARGE, message)
                .label(span, format!("at most {}", range.end()))
                .note("the code has 16 bits, jt and jf have 8, k has 32");
            return Err(Box::new(diagnostic));
        }
        Ok(value as u32)
    }

    // Expressions, the loosest operator first.

    fn or(&mut self) -> Step<i64> {
        self.joined(&["|"], Self::and)
    }

    fn and(&mut self) -> Step<i64> {
        self.joined(&["&"], Self::shift)
    }

    fn shift(&mut self) -> Step<i64> {
        self.joined(&["<<", ">>"], Self::sum)
    }

    fn sum(&mut self) -> Step<i64> {
        self.joined(&["+", "-"], Self::product)
    }

    fn product(&mut self) -> Step<i64> {
        self.joined(&["*"], Self::unary)
    }

    /// Operands of one level, joined from the left.
    fn joined(
        &mut self,
        operators: &[&str],
        mut operand: impl FnMut(&mut Self) -> Step<i64>,
    ) -> Step<i64> {
        let mut value = operand(self)?;
        while operators.contains(&self.next_text()) {
            let operator = self.tokens[self.at];
            self.at += 1;
            let right = operand(self)?;
            let shift = u32::try_from(right).ok().filter(|by| *by < 32);
            let result = match operator.text {
                "|" => Some(value | right),
                "&" => Some(value & right),
                "<<" => shift.map(|by| value << by),
                ">>" => shift.map(|by| value >> by),
                "+" => value.checked_add(right),
                "-" => value.checked_sub(right),
                _ => value.checked_mul(right),
            };
            // Constants have 32 bits; far larger results are errors.
            let result = result.filter(|value| value.unsigned_abs() < 1 << 40);
            value = result.ok_or_else(|| {
                let message = "the result is too large";
                let diagnostic = Diagnostic::error(code::NUMBER_TOO_LARGE, message);
                Box::new(diagnostic.label(operator.span, ""))
            })?;
        }
        Ok(value)
    }

    fn unary(&mut self) -> Step<i64> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, message);
            return Err(Box::new(diagnostic.label(self.previous(), "")));
        }
        let value = if self.take("-") {
            -self.unary()?
        } else if self.take("~") {
            !self.unary()?
        } else if self.is_cast() {
            while !self.take(")") {
                self.at += 1;
            }
            self.unary()?
        } else if self.take("(") {
            let value = self.or()?;
            self.symbol(")")?;
            value
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(value)
    }

    /// Whether a type in parentheses follows; the preprocessor leaves one before each code.
    fn is_cast(&self) -> bool {
        let types = [
            "unsigned", "short", "int", "__u16", "__u32", "uint16_t", "uint32_t",
        ];
        let rest = &self.tokens[self.at.min(self.tokens.len())..];
        let is_type = |token: &Token| types.contains(&token.text);
        matches!(rest, [open, name, ..] if open.text == "(" && is_type(name))
            && rest.iter().any(|token| token.text == ")")
    }

    fn primary(&mut self) -> Step<i64> {
        let Some(token) = self.tokens.get(self.at).copied() else {
            return Err(self.unexpected("a number or a constant"));
        };
        self.at += 1;
        match token.kind {
            TokenKind::Number => {
                let digits = token.text.trim_end_matches(['u', 'U', 'l', 'L']);
                crate::asm::number(digits, token.span).map(i64::from)
            }
            TokenKind::Name if ["offsetof", "__builtin_offsetof"].contains(&token.text) => {
                self.offset_of()
            }
            TokenKind::Name if token.text == "sizeof" => self.size_of(),
            TokenKind::Name => constant(token, self.arch),
            TokenKind::Mark => {
                self.at -= 1;
                Err(self.unexpected("a number or a constant"))
            }
        }
    }

    /// `(struct seccomp_data, FIELD)`.
    fn offset_of(&mut self) -> Step<i64> {
        for symbol in ["(", "struct", "seccomp_data", ","] {
            self.symbol(symbol)?;
        }
        let field = self.next_text().to_owned();
        let offset = match field.as_str() {
            "nr" => 0,
            "arch" => 4,
            "instruction_pointer" => 8,
            "args" => 16,
            _ => return Err(self.unexpected("a field: nr, arch, instruction_pointer or args[…]")),
        };
        self.at += 1;
        let mut index = 0;
        if field == "args" && self.take("[") {
            index = self.or()?;
            if !(0..6).contains(&index) {
                return Err(self.unexpected("an index below 6 before this"));
            }
            self.symbol("]")?;
        }
        self.symbol(")")?;
        Ok(offset + 8 * index)
    }

    /// `(TYPE)`, for the types used to select a half of an argument.
    fn size_of(&mut self) -> Step<i64> {
        self.symbol("(")?;
        let size = match self.next_text() {
            "__u32" | "uint32_t" | "int" | "unsigned" => 4,
            "__u64" | "uint64_t" => 8,
            _ => return Err(self.unexpected("a type: __u32, uint32_t, __u64 or uint64_t")),
        };
        self.at += 1;
        self.take("int");
        self.symbol(")")?;
        Ok(size)
    }

    // Tokens.

    fn next_text(&self) -> &str {
        self.tokens.get(self.at).map_or("", |token| token.text)
    }

    fn previous(&self) -> Span {
        self.tokens[self.at.saturating_sub(1).min(self.tokens.len() - 1)].span
    }

    fn is_next(&self, text: &str) -> bool {
        self.next_text() == text
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = self.is_next(text);
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
        let (place, message) = match self.tokens.get(self.at) {
            Some(token) => (token.span, format!("unexpected `{}`", token.text)),
            None => (self.previous(), "the element ends too early".to_owned()),
        };
        let diagnostic = Diagnostic::error(code::PROGRAM_TEXT, message);
        Box::new(diagnostic.label(place, format!("expected {expected}")))
    }
}

/// The value of a constant of the kernel's headers.
fn constant(token: Token<'_>, arch: Arch) -> Step<i64> {
    let name = token.text;
    let call = name
        .strip_prefix("__NR_")
        .or_else(|| name.strip_prefix("SYS_"));
    let number = call.and_then(|call| syscall::number(arch, call));
    if let Some(number) = number {
        return Ok(i64::from(number.0));
    }
    if let Some(value) = consts::value(arch, name) {
        return Ok(value as i64);
    }
    let diagnostic = Diagnostic::error(code::UNKNOWN_NAME, format!("unknown constant `{name}`"))
        .label(token.span, "")
        .note("macros of the text are not expanded");
    let near = match call {
        Some(call) => entry_point::call_of(call)
            .or_else(|| suggest::nearest(call, syscall::all(arch).map(|(_, name)| name))),
        None => suggest::nearest(name, consts::names(arch)),
    };
    Err(Box::new(diagnostic.help(match near {
        Some(near) => format!("did you mean `{near}`? `cc -E` expands macros"),
        None => "`cc -E` expands macros".to_owned(),
    })))
}

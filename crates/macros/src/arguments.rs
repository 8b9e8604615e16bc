//! The arguments of the macro: `pub mod name = "path", arch = "x86_64", strict`.

use std::iter::Peekable;

use proc_macro::{Delimiter, Ident, Span, TokenStream, TokenTree, token_stream};

/// The arguments of the macro.
pub(crate) struct Arguments {
    /// `pub`, `pub(crate)`, or nothing.
    pub(crate) visibility: TokenStream,
    /// The name of the module, if not that of the policy.
    pub(crate) module: Option<Ident>,
    /// The path of the policy.
    pub(crate) path: Text,
    /// The architectures of the filter.
    pub(crate) archs: Vec<Text>,
    /// The policy's language.
    pub(crate) from: Option<Text>,
    /// The thread of a Firecracker file.
    pub(crate) thread: Option<Text>,
    /// Options of the policy's language, `NAME=VALUE`.
    pub(crate) options: Vec<Text>,
    /// The directories of included files.
    pub(crate) include_dirs: Vec<Text>,
    /// The effort of compiling the filter.
    pub(crate) effort: Option<Text>,
    /// Treat warnings as errors.
    pub(crate) strict: bool,
}

/// A string with its span.
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// An error with its span.
pub(crate) struct Mistake {
    pub(crate) span: Span,
    pub(crate) message: String,
}

/// The rest of the arguments.
type Rest = Peekable<token_stream::IntoIter>;

const USAGE: &str = "write `include_policy!(\"server.tamis\")` or `include_policy!(pub mod name = \"server.tamis\")`";
/// The arguments with a value.
const WITH_VALUE: [&str; 6] = ["arch", "from", "thread", "option", "include_dir", "effort"];
const OPTIONS: &str = "there are `arch`, `from`, `thread`, `option`, `include_dir`, `effort`, each with `= \"…\"`, and `strict`";

impl Mistake {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Mistake {
        Mistake {
            span,
            message: message.into(),
        }
    }
}

impl Arguments {
    /// Reads the arguments.
    pub(crate) fn parse(input: TokenStream) -> Result<Arguments, Mistake> {
        let mut rest = input.into_iter().peekable();
        let (visibility, module) = module(&mut rest)?;
        let mut arguments = Arguments {
            visibility,
            module,
            path: string(&mut rest, USAGE)?,
            archs: Vec::new(),
            from: None,
            thread: None,
            options: Vec::new(),
            include_dirs: Vec::new(),
            effort: None,
            strict: false,
        };
        while let Some(comma) = rest.next() {
            if !is_punct(&comma, ',') {
                return Err(Mistake::new(
                    comma.span(),
                    format!("expected `,`: {OPTIONS}"),
                ));
            }
            match rest.next() {
                None => break,
                Some(TokenTree::Ident(name)) => arguments.option(&name, &mut rest)?,
                Some(other) => return Err(Mistake::new(other.span(), OPTIONS)),
            }
        }
        Ok(arguments)
    }

    fn option(&mut self, name: &Ident, rest: &mut Rest) -> Result<(), Mistake> {
        let word = name.to_string();
        if word == "strict" {
            self.strict = true;
            return Ok(());
        }
        if !WITH_VALUE.contains(&&*word) {
            let message = format!("there is no option `{word}`: {OPTIONS}");
            return Err(Mistake::new(name.span(), message));
        }
        match rest.next() {
            Some(token) if is_punct(&token, '=') => {}
            _ => return Err(Mistake::new(name.span(), format!("write `{word} = \"…\"`"))),
        }
        let value = string(rest, &format!("write `{word} = \"…\"`"))?;
        let single = match &*word {
            "arch" => {
                self.archs.push(value);
                return Ok(());
            }
            "include_dir" => {
                self.include_dirs.push(value);
                return Ok(());
            }
            "option" => {
                self.options.push(value);
                return Ok(());
            }
            "from" => &mut self.from,
            "effort" => &mut self.effort,
            _ => &mut self.thread,
        };
        match single.replace(value) {
            None => Ok(()),
            Some(_) => Err(Mistake::new(
                name.span(),
                format!("`{word}` is given twice"),
            )),
        }
    }
}

/// The part before the path: `pub(crate) mod name =`.
fn module(rest: &mut Rest) -> Result<(TokenStream, Option<Ident>), Mistake> {
    let mut visibility = TokenStream::new();
    while let Some(token) = rest.peek() {
        match token {
            TokenTree::Literal(_) => return Ok((visibility, None)),
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                return Ok((visibility, None));
            }
            TokenTree::Ident(word) if word.to_string() == "mod" => break,
            _ => visibility.extend(rest.next()),
        }
    }
    let span = rest.next().map_or_else(Span::call_site, |word| word.span());
    match (rest.next(), rest.next()) {
        (Some(TokenTree::Ident(name)), Some(equals)) if is_punct(&equals, '=') => {
            Ok((visibility, Some(name)))
        }
        _ => Err(Mistake::new(span, USAGE)),
    }
}

/// A string, possibly passed on by a macro.
fn string(rest: &mut Rest, usage: &str) -> Result<Text, Mistake> {
    let Some(token) = rest.next() else {
        return Err(Mistake::new(Span::call_site(), usage));
    };
    let span = token.span();
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            string(&mut group.stream().into_iter().peekable(), usage)
        }
        TokenTree::Literal(literal) => match unquoted(&literal.to_string()) {
            Some(text) => Ok(Text { text, span }),
            None => Err(Mistake::new(span, format!("not a plain string: {usage}"))),
        },
        _ => Err(Mistake::new(span, usage)),
    }
}

/// The value of a literal: `"text"` without escapes, or a raw string.
fn unquoted(literal: &str) -> Option<String> {
    let is_raw = literal.starts_with('r');
    let bare = literal.trim_start_matches('r').trim_matches('#');
    let text = bare.strip_prefix('"')?.strip_suffix('"')?;
    (is_raw || !text.contains('\\')).then(|| text.to_owned())
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

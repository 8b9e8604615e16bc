//! Policies inside Rust programs: [`include_policy!`].
//!
//! The macro reads a policy during the build of the program, compiles it, has the filter proved, and expands to a
//! module with the instructions. The program contains neither the policy nor tamis. Everything except the macro's
//! arguments (`arguments.rs`) is done by `tamis-embed`, which build scripts use as well.
#![forbid(unsafe_code)]

mod arguments;

use std::path::{Path, PathBuf};

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use tamis_embed::{Assignment, EmbedError, Embedded, PolicyFile, RUST, build, name};

use arguments::{Arguments, Mistake, Text};

/// Expands to a module with the filter of a policy.
///
/// ```ignore
/// tamis::include_policy!("server.tamis");
/// tamis::include_policy!(pub mod filter = "server.tamis", arch = "x86_64", strict);
///
/// let filter = server::bind(&server::Values { control_fd: 5 })?;
/// filter.install(0, true)?;
/// ```
///
/// The path is relative to the file with the macro, as for `include_str!`. The module has the name of the policy,
/// or the given one. It contains a `Filter` with `install`; for a policy with run-time variables typed `Values` and
/// `bind`, otherwise `Filter::new`. The arguments after the path:
///
/// | | |
/// |---|---|
/// | `arch = "x86_64"` | the architecture of the filter, instead of the policy's; may be repeated. By default the architectures of the policy or, without any, that of the compiling machine |
/// | `from = "oci"` | the policy's language, if it can't be detected |
/// | `thread = "vmm"` | the filter in a Firecracker file |
/// | `option = "dialect=c"` | an option of the policy's language; `tamis tables options` lists them; a path is relative to the file with the macro; may be repeated |
/// | `include_dir = "…"` | a further directory for included files; relative to the file with the macro; may be repeated |
/// | `effort = "quick"` | less than half the work, for about 1 % more executed instructions on average |
/// | `strict` | treat warnings that affect the filter as errors |
///
/// Errors in the policy are compiler errors, with file, line and correction; warnings are warnings. The program is
/// rebuilt when the policy or an included file changes.
#[proc_macro]
pub fn include_policy(input: TokenStream) -> TokenStream {
    match expand(input) {
        Ok(module) => module,
        Err(mistakes) => mistakes.into_iter().map(Mistake::into_tokens).collect(),
    }
}

fn expand(input: TokenStream) -> Result<TokenStream, Vec<Mistake>> {
    let arguments = Arguments::parse(input).map_err(|mistake| vec![mistake])?;
    let folder = folder();
    let policy = policy_file(&arguments, &folder).map_err(|mistake| vec![mistake])?;
    let at = arguments.path.span;
    let mistakes = |error: &EmbedError| -> Vec<Mistake> {
        let messages = error.messages().into_iter();
        messages.map(|message| Mistake::new(at, message)).collect()
    };
    let embedded = policy.compile().map_err(|error| mistakes(&error))?;
    let text = embedded.text(&RUST, "").map_err(|error| mistakes(&error))?;
    let items: TokenStream = text.parse().map_err(|error| {
        vec![Mistake::new(
            at,
            format!("bug in tamis: the module is no Rust: {error}"),
        )]
    })?;
    Ok(module(&arguments, &embedded, items))
}

/// The folder of the file with the macro, or of the package if the compiler doesn't report it.
fn folder() -> PathBuf {
    match Span::call_site().local_file() {
        Some(file) => file.parent().unwrap_or(Path::new("")).to_owned(),
        None => std::env::var_os("CARGO_MANIFEST_DIR")
            .unwrap_or_default()
            .into(),
    }
}

fn policy_file(arguments: &Arguments, folder: &Path) -> Result<PolicyFile, Mistake> {
    let mut policy = PolicyFile::new(folder.join(&arguments.path.text), build::host());
    for Text { text, span } in &arguments.archs {
        policy = policy
            .arch(text)
            .map_err(|error| Mistake::new(*span, error.to_string()))?;
    }
    if let Some(Text { text, span }) = &arguments.from {
        policy = policy
            .from(text)
            .map_err(|error| Mistake::new(*span, error.to_string()))?;
    }
    if let Some(thread) = &arguments.thread {
        policy = policy.thread(&thread.text);
    }
    for Text { text, .. } in &arguments.options {
        policy = policy.option(Assignment::parse(text).relative_to(folder));
    }
    if let Some(Text { text, span }) = &arguments.effort {
        policy = policy
            .effort(text)
            .map_err(|error| Mistake::new(*span, error.to_string()))?;
    }
    for dir in &arguments.include_dirs {
        policy = policy.include_dir(folder.join(&dir.text));
    }
    Ok(match arguments.strict {
        true => policy.strict(),
        false => policy,
    })
}

/// The items' surroundings: the module, dependencies for cargo, warnings.
fn module(arguments: &Arguments, embedded: &Embedded, items: TokenStream) -> TokenStream {
    let name = match &arguments.module {
        Some(name) => name.clone(),
        None => {
            // A default name exists for every path.
            let name = name::identifier(&RUST, None, &arguments.path.text).unwrap_or_default();
            Ident::new(&name, arguments.path.span)
        }
    };
    let allowed =
        "#[allow(dead_code, unsafe_code, unreachable_pub, clippy::all, clippy::pedantic)]";
    let about = format!(
        "#[doc = {:?}]",
        format!("The filter of `{}`.", arguments.path.text)
    );
    let mut tokens = parsed(&format!("{about} {allowed}"));
    tokens.extend(arguments.visibility.clone());
    tokens.extend([
        TokenTree::Ident(Ident::new("mod", Span::call_site())),
        TokenTree::Ident(name),
    ]);
    let mut inside = items;
    for file in embedded.files() {
        let path = file.canonicalize().unwrap_or_else(|_| file.clone());
        inside.extend(parsed(&format!(
            "const _: &[u8] = ::core::include_bytes!({:?});",
            path.display().to_string()
        )));
    }
    for (index, warning) in embedded.warnings().iter().enumerate() {
        // The only warning that works with a stable compiler: the use of a deprecated item.
        inside.extend(parsed(&format!(
            "#[deprecated(note = {warning:?})] const POLICY_WARNING_{index}: () = ();
             const _: () = POLICY_WARNING_{index};"
        )));
    }
    tokens.extend([TokenTree::Group(Group::new(Delimiter::Brace, inside))]);
    tokens
}

/// # Panics
/// If the text is not valid Rust, which is a bug in this file.
fn parsed(text: &str) -> TokenStream {
    text.parse().expect("the text is Rust")
}

impl Mistake {
    /// `compile_error!` at the span of the error.
    fn into_tokens(self) -> TokenStream {
        let mut literal = Literal::string(&self.message);
        literal.set_span(self.span);
        let argument = TokenStream::from(TokenTree::Literal(literal));
        let mut bang = Punct::new('!', Spacing::Alone);
        bang.set_span(self.span);
        let mut group = Group::new(Delimiter::Brace, argument);
        group.set_span(self.span);
        let path = [
            TokenTree::Ident(Ident::new("compile_error", self.span)),
            TokenTree::Punct(bang),
            TokenTree::Group(group),
        ];
        path.into_iter().collect()
    }
}

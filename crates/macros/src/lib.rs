//! Policies inside Rust programs: [`include_policy!`].
//!
//! The macro reads a policy when the program is built, compiles it, has the filter proved, and leaves a module
//! with the instructions. The program carries neither the policy nor tamis. Everything but the macro's own
//! arguments (`arguments.rs`) is done by `tamis-embed`, which build scripts use as well.
#![forbid(unsafe_code)]

mod arguments;

use std::path::{Path, PathBuf};

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use tamis_embed::{EmbedError, Embedded, PolicyFile, RUST, build, name};

use arguments::{Arguments, Mistake, Text};

/// Makes a module of a policy.
///
/// ```ignore
/// tamis::include_policy!("server.tamis");
/// tamis::include_policy!(pub mod filter = "server.tamis", arch = "x86_64", strict);
///
/// let filter = server::bind(&server::Values { control_fd: 5 })?;
/// filter.install(0, true)?;
/// ```
///
/// The path is relative to the file with the macro, as for `include_str!`. The module is named after the policy,
/// or as given. It holds a `Filter` with `install`; a policy with run-time variables has typed `Values` and `bind`,
/// another `Filter::new`. What follows the path says how to read the policy:
///
/// | | |
/// |---|---|
/// | `arch = "x86_64"` | make the filter for this architecture, whatever the policy says; may be repeated. Without it the filter is for what the policy says or, if it says nothing, for the machine that compiles |
/// | `from = "oci"` | the policy's language, if it can't be detected |
/// | `thread = "vmm"` | which filter of a Firecracker file |
/// | `include_dir = "…"` | where included files are looked for that are not where the policy says; relative to the file with the macro; may be repeated |
/// | `effort = "quick"` | less than half the work, for about 1 % more executed instructions on average |
/// | `strict` | warnings that change what the filter does are errors |
///
/// Mistakes in the policy are errors of the compiler, with the file, the line and what to type; warnings are
/// warnings. The program is built again when the policy or a file that it includes changes.
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

/// The folder of the file with the macro, or of the package if the compiler can't say.
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
        policy = policy.thread(&*thread.text);
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

/// What is around the items: the module, what makes cargo build again, warnings.
fn module(arguments: &Arguments, embedded: &Embedded, items: TokenStream) -> TokenStream {
    let name = match &arguments.module {
        Some(name) => name.clone(),
        None => {
            // A name that can be asked for exists for every path.
            let name = name::of(&RUST, None, &arguments.path.text).unwrap_or_default();
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
        // A warning that a stable compiler shows: the use of something that is deprecated.
        inside.extend(parsed(&format!(
            "#[deprecated(note = {warning:?})] const POLICY_WARNING_{index}: () = ();
             const _: () = POLICY_WARNING_{index};"
        )));
    }
    tokens.extend([TokenTree::Group(Group::new(Delimiter::Brace, inside))]);
    tokens
}

/// # Panics
/// If the text is no Rust, which is a mistake in this file.
fn parsed(text: &str) -> TokenStream {
    text.parse().expect("the text is Rust")
}

impl Mistake {
    /// `compile_error!` at the place of the mistake.
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

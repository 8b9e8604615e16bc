//! The attribute `#[test]` of suites that run under testkit's harness.
//!
//! The compiler's own attribute removes the function where the compiler's harness is off. This one keeps it and
//! registers it, with the path of its module, for `tamis_testkit::harness::main`. A suite gets it with testkit's other
//! macros:
//!
//! ```ignore
//! #[macro_use]
//! extern crate tamis_testkit;
//! ```
//!
//! It is tested by the suites: one that lost its tests would have no functions that use its imports.

use proc_macro::{TokenStream, TokenTree};

/// Registers a function without parameters and results as a test.
///
/// A `#[cfg]` of the function stands above the attribute.
#[proc_macro_attribute]
pub fn test(_arguments: TokenStream, function: TokenStream) -> TokenStream {
    let mut tokens = function.clone().into_iter();
    let is_keyword =
        |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn");
    let found = tokens.find(is_keyword).and_then(|_| tokens.next());
    let Some(TokenTree::Ident(name)) = found else {
        return failure("only a function can be a test");
    };
    let registered = format!(
        "::tamis_testkit::harness::submit! {{
            ::tamis_testkit::harness::Test::new(::core::module_path!(), \"{name}\", {name})
        }}"
    );
    let registered: TokenStream = match registered.parse() {
        Ok(registered) => registered,
        Err(error) => return failure(&error.to_string()),
    };
    function.into_iter().chain(registered).collect()
}

/// An error at the attribute.
fn failure(message: &str) -> TokenStream {
    let error = format!("::core::compile_error!({message:?});");
    error.parse().unwrap_or_default()
}

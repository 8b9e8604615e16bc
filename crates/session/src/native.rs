//! Loading policies in the language of tamis, for programs that read no other input.
//!
//! Nothing here reaches the readers of programs, of profiles and of other languages, and their detection: a linker then
//! leaves them out, which is half of the library.

use tamis_diag::{Diagnostic, SourceId, Sources, Span};
use tamis_policy::loader::Loader;
use tamis_policy::tamis;

use crate::code;
use crate::error::Error;
use crate::input::Input;
use crate::kind::InputKind;
use crate::load::bound;
use crate::loaded::Policy;
use crate::options::LoadOptions;

/// Loads a policy in the language of tamis, whatever its name and text resemble. The kind and the named options among
/// the options are ignored.
///
/// ```
/// use tamis_abi::Arch;
/// use tamis_policy::loader::NoIncludes;
/// use tamis_session::native::load_tamis;
/// use tamis_session::{Input, LoadOptions};
///
/// let input = Input::new("a.json", "default errno(EPERM)\nallow read");
/// let policy = load_tamis(input, &LoadOptions::new(Arch::X86_64), &mut NoIncludes)?;
/// assert_eq!(policy.arches(), [Arch::X86_64]);
/// # Ok::<(), tamis_session::Error>(())
/// ```
///
/// # Errors
/// If the text has mistakes, an included file can't be read, or a variable lacks a value.
pub fn load_tamis(
    input: Input,
    options: &LoadOptions,
    loader: &mut dyn Loader,
) -> Result<Policy, Error> {
    let name = input.name.clone();
    let mut sources = Sources::new();
    let source = input.add_to(&mut sources)?;
    loader.begin(&name);
    let read = (tamis::FRONT_END.parse)(&mut sources, source, loader, &options.policy);
    let Some(ruleset) = read.parsed.ruleset else {
        let mut diagnostics = read.parsed.diagnostics;
        if !(tamis::FRONT_END.recognises)(&sources.get(source).text) {
            diagnostics.insert(0, other_language(source));
        }
        return Err(Error::Diagnostics(diagnostics, sources));
    };
    let policy = Policy {
        name,
        kind: InputKind::TAMIS,
        frequency: None,
        ruleset,
        declared: Vec::new(),
        sources,
        warnings: read.parsed.diagnostics,
        installation: read.installation,
        states_arches: read.states_arches,
        known_until: read.known_until,
        selection: read.selection,
    };
    bound(policy, options)
}

/// The error for a text that resembles no policy of tamis.
fn other_language(source: SourceId) -> Diagnostic {
    let message = "the text is not in the language of tamis";
    Diagnostic::error(code::WRONG_KIND, message)
        .label(Span::new(source, 0, 0), "")
        .help("policies in other languages need the feature `languages` of the crate `tamis`")
}

#[cfg(test)]
mod tests {
    use tamis_abi::Arch;
    use tamis_policy::loader::NoIncludes;

    use super::*;

    #[test]
    fn a_text_in_another_language_names_the_feature() {
        let told = |text: &str| {
            let options = LoadOptions::new(Arch::X86_64);
            let loaded = load_tamis(Input::new("inline", text), &options, &mut NoIncludes);
            loaded.unwrap_err().to_string()
        };
        let json = told(r#"{"defaultAction": "SCMP_ACT_ERRNO"}"#);
        assert!(json.contains("the feature `languages`"), "{json}");
        let misspelt = told("default errno(EPERM)\nallow raed");
        assert!(!misspelt.contains("languages"), "{misspelt}");
    }
}

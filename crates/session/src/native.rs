//! Loading policies in the language of tamis, for programs that read no other input.
//!
//! Nothing here reaches the readers of programs, of profiles and of other languages, and their detection: a linker then
//! leaves them out, which is half of the library.

use tamis_diag::Sources;
use tamis_policy::loader::Loader;
use tamis_policy::tamis;

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
        return Err(Error::Diagnostics(read.parsed.diagnostics, sources));
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

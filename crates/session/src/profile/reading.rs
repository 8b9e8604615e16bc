//! Reading a profile from an input of any format.

use tamis_abi::Arch;
use tamis_diag::escape::on_one_line;
use tamis_diag::{Diagnostic, Sources, Span};
use tamis_profile::{Format, Profile};

use crate::code;
use crate::error::Error;
use crate::foreign;
use crate::input::Input;

/// A profile with its warnings.
#[derive(Clone, Debug)]
pub struct LoadedProfile {
    /// The counts of calls.
    pub profile: Profile,
    /// The warnings.
    pub warnings: Vec<Diagnostic>,
    /// The text of the profile.
    pub sources: Sources,
}

/// Reads a profile; a table without architectures is for `arch`.
///
/// # Errors
/// If the input isn't a profile, or has mistakes.
pub fn load(input: Input, arch: Arch) -> Result<LoadedProfile, Error> {
    if std::str::from_utf8(&input.bytes).is_err() {
        return Err(foreign::profile_refusal(&input));
    }
    let (policy, name) = (policy_of(&input), on_one_line(&input.name).to_string());
    let mut sources = Sources::new();
    let source = input.add_to(&mut sources)?;
    let reading = tamis_profile::read(&sources, source, arch);
    // A frequency file and a minijail policy may have the same content; the name decides.
    let is_policy = match (&reading.profile, reading.format) {
        (Some(_), Some(Format::Frequency)) => name.ends_with(".policy"),
        (Some(_), _) | (None, Some(Format::Names)) => false,
        (None, _) => true,
    };
    let is_refused = |diagnostic: &Diagnostic| diagnostic.code == code::PROFILE_POLICY;
    let known = reading
        .diagnostics
        .iter()
        .any(is_refused)
        .then_some("a seccomp profile");
    if let Some(what) = known.or(policy.filter(|_| is_policy)) {
        let start = Span::new(source, 0, 0);
        let refusal = tamis_profile::policy_refusal(start, what, &name);
        return Err(Error::diagnostic(refusal, sources));
    }
    match reading.profile {
        Some(profile) => Ok(LoadedProfile {
            profile,
            warnings: reading.diagnostics,
            sources,
        }),
        None => Err(Error::Diagnostics(reading.diagnostics, sources)),
    }
}

/// The kind of a policy or program that the content evidently is, unless it is a profile of tamis.
fn policy_of(input: &Input) -> Option<&'static str> {
    let text = std::str::from_utf8(&input.bytes).ok()?;
    let is_profile = text.contains("\"tamis-profile/");
    let kind = input.evident_kind().filter(|_| !is_profile)?;
    kind.recognises(text).then(|| kind.title())
}

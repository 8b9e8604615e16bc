//! Options without effect on any input are errors.
//!
//! Ignoring them would hide a mistake: a policy in a different language than the user believes, or a program instead of
//! a policy.

#[cfg(feature = "languages")]
use tamis_policy::front_end::ParseOptions;

use crate::error::Error;
use crate::kind::InputKind;
use crate::loaded::Loaded;
use crate::options::LoadOptions;

/// The output of a command. The kernel's version matters only for filters and for some languages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputKind {
    /// No filter: the inputs are only analysed.
    #[default]
    Nothing,
    /// Filters made from policies.
    FiltersOfPolicies,
    /// Filters made from policies and programs.
    FiltersOfAll,
}

/// Rejects values of undeclared variables, options of unused languages, and a kernel's version without effect.
///
/// # Errors
/// If one of them is given.
pub fn options<'l>(
    options: &LoadOptions,
    output: OutputKind,
    inputs: impl Iterator<Item = &'l Loaded> + Clone,
) -> Result<(), Error> {
    let kinds: Vec<InputKind> = inputs.clone().map(Loaded::kind).collect();
    options.bindings.check(inputs)?;
    options.named.check_kinds(kinds.iter().copied())?;
    let is_of_use = |kind: &InputKind| match output {
        OutputKind::Nothing => kind.uses_kernel(),
        OutputKind::FiltersOfPolicies => !kind.is_program(),
        OutputKind::FiltersOfAll => true,
    };
    if options.policy.kernel.is_none()
        || output == OutputKind::FiltersOfAll
        || kinds.iter().any(is_of_use)
    {
        return Ok(());
    }
    Err(Error::usage(
        "--kernel is for OCI profiles and systemd units, and no input is one",
        "omit --kernel, or use `--from oci` or `--from systemd` if the input is one",
    ))
}

/// Rejects `native-only` with several `--arch`, which already state the architectures of the filter.
#[cfg(feature = "languages")]
pub(crate) fn native_only(options: &ParseOptions) -> Result<(), Error> {
    if !options.oci.is_native_only || options.asked_arches.len() < 2 {
        return Ok(());
    }
    Err(Error::usage(
        "--native-only is for one architecture, and several are asked for",
        "omit --native-only: several `--arch` are exactly those of the filter; or give one `--arch`",
    ))
}

/// Rejects a compile-time option if all inputs are programs.
///
/// # Errors
/// If there is no policy among the inputs.
pub fn compiled<'l>(
    option: &str,
    mut inputs: impl Iterator<Item = &'l Loaded>,
) -> Result<(), Error> {
    match inputs.any(|input| input.policy().is_some()) {
        true => Ok(()),
        false => Err(Error::usage(
            format!("{option} is for policies, and the inputs are programs"),
            format!("omit {option}"),
        )),
    }
}

/// Rejects `--arch` if every input states its own architectures.
///
/// # Errors
/// If all inputs are texts of rulesets.
pub fn arches<'l>(
    options: &LoadOptions,
    mut inputs: impl Iterator<Item = &'l Loaded>,
) -> Result<(), Error> {
    let is_fixed = |input: &Loaded| input.kind() == InputKind::Rules;
    if options.policy.asked_arches.is_empty() || !inputs.all(is_fixed) {
        return Ok(());
    }
    Err(Error::usage(
        "--arch has no effect on the text form of a ruleset: its sections name the architectures",
        "omit --arch, and delete the unwanted sections",
    ))
}

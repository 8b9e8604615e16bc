//! Options that no input uses are errors.
//!
//! An option without effect would hide a mistake: a policy in another language than the user believes, or a program
//! instead of a policy.

use tamis_policy::front_end::ParseOptions;

use crate::error::Error;
use crate::kind::InputKind;
use crate::loaded::Loaded;
use crate::options::LoadOptions;

/// What a command makes of its inputs; only filters, and some languages, depend on the kernel's version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Makes {
    /// Nothing: the inputs are only analysed.
    #[default]
    Nothing,
    /// Filters, of policies.
    FiltersOfPolicies,
    /// Filters, of policies and programs.
    FiltersOfAll,
}

/// Refuses values for variables that no input declares, options that no input's language has, and a kernel's version
/// without effect.
///
/// # Errors
/// If one of them is given.
pub fn options<'l>(
    options: &LoadOptions,
    makes: Makes,
    inputs: impl Iterator<Item = &'l Loaded> + Clone,
) -> Result<(), Error> {
    let kinds: Vec<InputKind> = inputs.clone().map(Loaded::kind).collect();
    options.bindings.check(inputs)?;
    options.named.check_kinds(kinds.iter().copied())?;
    let is_of_use = |kind: &InputKind| match makes {
        Makes::Nothing => kind.uses_kernel(),
        Makes::FiltersOfPolicies => !kind.is_program(),
        Makes::FiltersOfAll => true,
    };
    if options.policy.kernel.is_none()
        || makes == Makes::FiltersOfAll
        || kinds.iter().any(is_of_use)
    {
        return Ok(());
    }
    Err(Error::usage(
        "--kernel is for OCI profiles and systemd units, and no input is one",
        "omit --kernel, or use `--from oci` or `--from systemd` if the input is one",
    ))
}

/// Refuses `native-only` beside several architectures, which are exactly those of the filter.
pub(crate) fn native_only(options: &ParseOptions) -> Result<(), Error> {
    if !options.oci.is_native_only || options.asked_arches.len() < 2 {
        return Ok(());
    }
    Err(Error::usage(
        "--native-only is for one architecture, and several are asked for",
        "omit --native-only: several `--arch` are exactly those of the filter; or give one `--arch`",
    ))
}

/// Refuses an option for what is compiled if nothing is: all inputs are programs.
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

/// Refuses architectures if a filter is made of nothing but texts that name theirs.
///
/// # Errors
/// If all inputs are such texts.
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

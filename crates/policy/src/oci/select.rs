//! The container engine's selection before the runtime gets the profile: choose architectures by the native one,
//! drop entries by `includes` and `excludes`, and skip entries without effect.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::{Arch, KernelVersion};

use super::model::{Entry, Profile, Selector};
use super::names::DOCKER_CAPABILITIES;
use super::{OciOptions, Reading};
use crate::selection::{ENGINE_ARCHES, Selection};

/// The external conditions that select the entries of a profile.
pub(super) fn selection(profile: &Profile) -> Selection {
    let selectors = || {
        let entries = profile.entries.iter();
        entries.flat_map(|entry| [&entry.includes, &entry.excludes])
    };
    let keys = profile.arch_map.iter().map(|family| family.native);
    let mut natives: BTreeSet<Arch> = keys.collect();
    // The native architecture is always in the filter, regardless of the profile.
    natives.extend(ENGINE_ARCHES);
    natives.extend(selectors().flat_map(|own| own.arches.iter().copied()));
    // A filter can't have both byte orders: with `architectures` no machine of the other one runs the container.
    let stated = || profile.arches.iter().map(|arch| arch.endian());
    natives.retain(|native| stated().all(|endian| endian == native.endian()));
    let mut capabilities: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut kernels: BTreeMap<String, BTreeSet<KernelVersion>> = BTreeMap::new();
    for entry in &profile.entries {
        let deciding = [&entry.includes, &entry.excludes];
        let caps = || deciding.iter().flat_map(|own| &own.caps);
        let versions = || deciding.iter().filter_map(|own| own.min_kernel);
        for name in &entry.names {
            if caps().next().is_some() {
                let own = capabilities.entry(name.text.to_string()).or_default();
                own.extend(caps().cloned());
            }
            if versions().next().is_some() {
                let own = kernels.entry(name.text.to_string()).or_default();
                own.extend(versions());
            }
        }
    }
    Selection {
        natives,
        capabilities,
        kernels,
        default_capabilities: DOCKER_CAPABILITIES.map(str::to_owned).into(),
    }
}

/// The architectures of the filter: the native one first, then those of the profile in order.
pub(super) fn arches(profile: &Profile, options: &OciOptions) -> Vec<Arch> {
    let mut chosen = vec![options.native];
    let listed: Vec<Arch> = match &options.arches {
        Some(arches) => arches.clone(),
        None if !profile.arches.is_empty() => profile.arches.clone(),
        None => profile
            .arch_map
            .iter()
            .filter(|family| family.native == options.native)
            .flat_map(|family| family.others.iter().copied())
            .collect(),
    };
    for arch in listed {
        if !chosen.contains(&arch) {
            chosen.push(arch);
        }
    }
    chosen
}

/// Whether the engine passes an entry to the runtime.
pub(super) fn is_selected(entry: &Entry, options: &OciOptions) -> bool {
    let (includes, excludes) = (&entry.includes, &entry.excludes);
    let has_cap = |cap: &String| options.capabilities.iter().any(|held| held == cap);
    // Without a kernel version every `minKernel` is satisfied.
    let reaches = |selector: &Selector| match (selector.min_kernel, options.kernel) {
        (Some(min), Some(kernel)) => Some(kernel >= min),
        (Some(_), None) => Some(true),
        (None, _) => None,
    };
    let excluded = excludes.arches.contains(&options.native)
        || excludes.caps.iter().any(has_cap)
        || reaches(excludes) == Some(true);
    let included = (!includes.has_arches || includes.arches.contains(&options.native))
        && includes.caps.iter().all(has_cap)
        && reaches(includes) != Some(false);
    !excluded && included
}

/// Whether the runtime passes an entry to libseccomp, which rejects rules with the default action.
pub(super) fn has_effect(entry: &Entry, profile: &Profile, options: &OciOptions) -> bool {
    options.reading == Reading::Text || entry.action != profile.default
}

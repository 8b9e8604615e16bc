//! The external conditions that select entries of a policy: the machine, the container's capabilities, the kernel.
//!
//! A container engine drops entries before the runtime reads a profile, so one reading of a profile doesn't cover the
//! dropped entries. [`settings`] lists readings that together include and exclude every entry: the action for a call
//! depends only on the capabilities and kernels of the entries that name it, so all sets of these, call by call, are
//! sufficient.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tamis_abi::{Arch, KernelVersion, syscall};

/// The most capabilities that may affect one call.
const MAX_DECIDING: usize = 8;
/// The calls that stand for several others.
const MULTIPLEXERS: [&str; 2] = ["socketcall", "ipc"];
/// The most readings.
const MAX_SETTINGS: usize = 4096;

/// The supported machines of container engines; a profile without architectures is for each of them.
pub const ENGINE_ARCHES: [Arch; 9] = [
    Arch::X86_64,
    Arch::X86,
    Arch::Aarch64,
    Arch::Arm,
    Arch::Riscv64,
    Arch::Ppc64le,
    Arch::S390x,
    Arch::Mipsel64,
    Arch::Loongarch64,
];

/// The external conditions that select a profile's entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The native architectures with different readings of the profile.
    pub natives: BTreeSet<Arch>,
    /// The capabilities in the conditions of entries, per name of a call.
    pub capabilities: BTreeMap<String, BTreeSet<String>>,
    /// The kernels since which entries apply or cease to apply, per name of a call.
    pub kernels: BTreeMap<String, BTreeSet<KernelVersion>>,
    /// The capabilities of a container without options, as `CAP_CHOWN`.
    pub default_capabilities: BTreeSet<String>,
}

impl Selection {
    /// The conditions of the entries that decide about calls with these names.
    #[must_use]
    pub fn of_calls(&self, calls: &BTreeSet<&str>) -> Selection {
        let multiplexers = || MULTIPLEXERS.into_iter();
        let through = |call: &str, multiplexer: &str| {
            call == multiplexer || is_made_through(call, multiplexer)
        };
        let shares = |call: &String| {
            calls.contains(call.as_str())
                || multiplexers().any(|multiplexer| {
                    through(call, multiplexer) && calls.iter().any(|own| through(own, multiplexer))
                })
        };
        let mut own = self.clone();
        own.capabilities.retain(|call, _| shares(call));
        own.kernels.retain(|call, _| shares(call));
        own
    }
}

/// The engine's inputs for one reading of a profile; `None` is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// The native architecture.
    pub native: Option<Arch>,
    /// The difference from the default capabilities.
    pub capabilities: Option<Capabilities>,
    /// The kernel's version.
    pub kernel: Option<KernelVersion>,
}

/// Capabilities that differ from the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capabilities {
    /// The additional capabilities.
    pub added: BTreeSet<String>,
    /// The missing capabilities.
    pub dropped: BTreeSet<String>,
    /// All capabilities.
    pub all: BTreeSet<String>,
}

/// The error for too many readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyReadings;

/// The conditions that vary; the others are fixed by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Varying {
    /// The native architecture.
    pub natives: bool,
    /// The capabilities.
    pub capabilities: bool,
    /// The kernel.
    pub kernels: bool,
}

impl Varying {
    /// Nothing varies.
    pub const NOTHING: Varying = Varying {
        natives: false,
        capabilities: false,
        kernels: false,
    };
}

/// The readings of profiles that together include and exclude each entry of any of them: the default reading first,
/// then in the order of the number of differences from it.
///
/// # Errors
/// If there would be too many.
///
/// ```
/// use tamis_policy::selection::{Selection, Varying, settings};
/// let mut selection = Selection::default();
/// let capabilities = ["CAP_SYS_NICE".to_owned()].into();
/// selection.capabilities.insert("keyctl".to_owned(), capabilities);
/// let all = Varying { natives: true, capabilities: true, kernels: true };
/// let settings: Vec<String> = settings(&[&selection], all)
///     .unwrap()
///     .iter()
///     .map(ToString::to_string)
///     .collect();
/// assert_eq!(settings, ["by default", "with CAP_SYS_NICE"]);
/// ```
pub fn settings(
    selections: &[&Selection],
    varying: Varying,
) -> Result<Vec<Setting>, TooManyReadings> {
    let natives = selections
        .iter()
        .flat_map(|own| own.natives.iter().copied());
    let natives: BTreeSet<Arch> = natives.filter(|_| varying.natives).collect();
    let choices = choices(selections, varying)?;
    let count = (natives.len() + 1) * choices.len();
    if count > MAX_SETTINGS {
        return Err(TooManyReadings);
    }
    let natives = std::iter::once(None).chain(natives.into_iter().map(Some));
    let mut settings = Vec::with_capacity(count);
    for native in natives {
        for (capabilities, kernel) in &choices {
            settings.push(Setting {
                native,
                capabilities: capabilities.clone(),
                kernel: *kernel,
            });
        }
    }
    settings.sort_by_cached_key(|setting| (setting.differences(), setting.clone()));
    Ok(settings)
}

/// Capabilities and a kernel; `None` is the default.
type Choice = (Option<Capabilities>, Option<KernelVersion>);

/// The capabilities and kernels in the entries for a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Deciding<'s> {
    capabilities: BTreeSet<&'s str>,
    kernels: BTreeSet<KernelVersion>,
}

/// The default, and all choices that affect one call.
fn choices(
    selections: &[&Selection],
    varying: Varying,
) -> Result<BTreeSet<Choice>, TooManyReadings> {
    let mut deciding: BTreeMap<&str, Deciding<'_>> = BTreeMap::new();
    let mut default: BTreeSet<String> = BTreeSet::new();
    for selection in selections {
        default.extend(selection.default_capabilities.iter().cloned());
        for (call, capabilities) in &selection.capabilities {
            let own = deciding.entry(call).or_default();
            own.capabilities
                .extend(capabilities.iter().map(String::as_str));
        }
        for (call, kernels) in &selection.kernels {
            let own = deciding.entry(call).or_default();
            own.kernels.extend(kernels);
        }
    }
    // An entry for `socketcall` and one for `socket` decide together about `socketcall(SYS_SOCKET, …)`.
    for multiplexer in MULTIPLEXERS {
        let Some(own) = deciding.get(multiplexer).cloned() else {
            continue;
        };
        for (call, all) in &mut deciding {
            if is_made_through(call, multiplexer) {
                all.capabilities.extend(&own.capabilities);
                all.kernels.extend(&own.kernels);
            }
        }
    }
    let groups: BTreeSet<&Deciding<'_>> = deciding.values().collect();
    let mut choices = BTreeSet::from([(None, None)]);
    for group in groups {
        let sets = match varying.capabilities {
            true => capability_sets(&group.capabilities, &default)?,
            false => vec![None],
        };
        let kernels = match varying.kernels {
            true => kernels(&group.kernels),
            false => vec![None],
        };
        for set in sets {
            choices.extend(kernels.iter().map(|kernel| (set.clone(), *kernel)));
        }
    }
    Ok(choices)
}

/// All sets of these capabilities, as differences from the default.
fn capability_sets(
    group: &BTreeSet<&str>,
    default: &BTreeSet<String>,
) -> Result<Vec<Option<Capabilities>>, TooManyReadings> {
    if group.len() > MAX_DECIDING {
        return Err(TooManyReadings);
    }
    let held = 0..1_usize << group.len();
    let sets = held.map(|held| {
        let mut changed = Capabilities {
            all: default.clone(),
            ..Capabilities::default()
        };
        for (bit, capability) in group.iter().enumerate() {
            let is_held = held >> bit & 1 == 1;
            match (is_held, default.contains(*capability)) {
                (true, false) => {
                    changed.all.insert((*capability).to_owned());
                    changed.added.insert((*capability).to_owned());
                }
                (false, true) => {
                    changed.all.remove(*capability);
                    changed.dropped.insert((*capability).to_owned());
                }
                _ => {}
            }
        }
        let is_default = changed.added.is_empty() && changed.dropped.is_empty();
        (!is_default).then_some(changed)
    });
    Ok(sets.collect())
}

/// Whether a call can be made through a multiplexer, on some architecture; x86 has all.
fn is_made_through(call: &str, multiplexer: &str) -> bool {
    let through = syscall::multiplexed(Arch::X86, call).map(|through| through.nr);
    through.is_some() && through == syscall::number(Arch::X86, multiplexer)
}

/// A kernel between each two versions at which entries change; the newest, the default, is `None`.
fn kernels(versions: &BTreeSet<KernelVersion>) -> Vec<Option<KernelVersion>> {
    let oldest = (!versions.is_empty()).then(|| KernelVersion::new(0, 0));
    let changes = oldest.into_iter().chain(versions.iter().copied());
    let is_newest = |version: &KernelVersion| Some(version) == versions.last();
    let others = changes.filter(|version| !is_newest(version)).map(Some);
    std::iter::once(None).chain(others).collect()
}

impl Setting {
    /// The number of choices that differ from the default.
    fn differences(&self) -> usize {
        let capabilities = self.capabilities.as_ref();
        let changed = capabilities.map_or(0, |own| own.added.len() + own.dropped.len());
        changed + usize::from(self.native.is_some()) + usize::from(self.kernel.is_some())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.native.map(|arch| format!("on {arch}")));
        if let Some(capabilities) = &self.capabilities {
            let list = |own: &BTreeSet<String>| own.iter().cloned().collect::<Vec<_>>().join(", ");
            if !capabilities.added.is_empty() {
                parts.push(format!("with {}", list(&capabilities.added)));
            }
            if !capabilities.dropped.is_empty() {
                parts.push(format!("without {}", list(&capabilities.dropped)));
            }
        }
        if let Some(kernel) = self.kernel {
            parts.push(match kernel == KernelVersion::new(0, 0) {
                true => "on the oldest kernels".to_owned(),
                false => format!("on Linux {kernel}"),
            });
        }
        match parts.is_empty() {
            true => f.write_str("by default"),
            false => f.write_str(&parts.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Varying = Varying {
        natives: true,
        capabilities: true,
        kernels: true,
    };

    fn selection(rows: &[(&str, &[&str])], default: &[&str]) -> Selection {
        let texts = |list: &[&str]| list.iter().map(|own| (*own).to_owned()).collect();
        Selection {
            capabilities: rows
                .iter()
                .map(|(call, own)| ((*call).to_owned(), texts(own)))
                .collect(),
            default_capabilities: texts(default),
            ..Selection::default()
        }
    }

    #[test]
    fn capabilities_that_decide_about_one_call_are_combined() {
        let left = selection(&[("bpf", &["A"]), ("keyctl", &["C"])], &["D"]);
        let right = selection(&[("bpf", &["B", "D"])], &["D"]);
        let sets = settings(&[&left, &right], ALL).unwrap();
        let held = |setting: &Setting| {
            let own = setting.capabilities.as_ref();
            let own = own.map_or_else(|| left.default_capabilities.clone(), |own| own.all.clone());
            own.into_iter().collect::<String>()
        };
        let mut held: Vec<String> = sets.iter().map(held).collect();
        assert_eq!(held[0], "D");
        held.sort();
        assert_eq!(held, ["", "A", "AB", "ABD", "AD", "B", "BD", "CD", "D"]);
    }

    #[test]
    fn a_multiplexer_and_its_calls_are_combined() {
        let own = selection(
            &[
                ("socketcall", &["A"]),
                ("socket", &["B"]),
                ("semop", &["C"]),
            ],
            &[],
        );
        let sets = settings(&[&own], ALL).unwrap();
        let held = |setting: &Setting| {
            let own = setting.capabilities.iter().flat_map(|own| &own.all);
            own.map(String::as_str).collect::<String>()
        };
        let held: BTreeSet<String> = sets.iter().map(held).collect();
        assert_eq!(held, ["", "A", "AB", "B", "C"].map(str::to_owned).into());
    }

    #[test]
    fn the_conditions_of_calls_are_those_of_their_multiplexers_too() {
        let own = selection(
            &[
                ("socketcall", &["A"]),
                ("socket", &["B"]),
                ("semop", &["C"]),
                ("bpf", &["D"]),
            ],
            &[],
        );
        let names = |calls: &[&'static str]| {
            let of_calls = own.of_calls(&calls.iter().copied().collect());
            of_calls.capabilities.into_keys().collect::<Vec<String>>()
        };
        assert_eq!(names(&["bind"]), ["socket", "socketcall"]);
        assert_eq!(names(&["ipc"]), ["semop"]);
        assert_eq!(names(&["bpf", "read"]), ["bpf"]);
    }

    #[test]
    fn kernels_around_each_version_are_read() {
        let version = |minor| KernelVersion::new(4, minor);
        let both = [version(8), version(14)].into();
        let own = Selection {
            kernels: [("ptrace".to_owned(), both)].into(),
            ..Selection::default()
        };
        let kernels = settings(&[&own], ALL).unwrap();
        let kernels: BTreeSet<_> = kernels.iter().map(|setting| setting.kernel).collect();
        let oldest = Some(KernelVersion::new(0, 0));
        assert_eq!(kernels, [None, oldest, Some(version(8))].into());
    }

    #[test]
    fn kernels_and_capabilities_are_combined_within_one_call() {
        let newest = [KernelVersion::new(4, 8)].into();
        let own = Selection {
            kernels: [("ptrace".to_owned(), newest)].into(),
            ..selection(&[("ptrace", &["A"]), ("bpf", &["B"])], &[])
        };
        let all: Vec<String> = settings(&[&own], ALL)
            .unwrap()
            .iter()
            .map(Setting::to_string)
            .collect();
        let expected = [
            "by default",
            "on the oldest kernels",
            "with A",
            "with B",
            "with A on the oldest kernels",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn too_many_are_an_error_and_fixed_choices_do_not_vary() {
        let names: Vec<String> = (0..9).map(|number| format!("CAP_{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let many = selection(&[("bpf", &names)], &[]);
        assert_eq!(settings(&[&many], ALL), Err(TooManyReadings));
        let fixed = Varying {
            capabilities: false,
            ..ALL
        };
        assert_eq!(settings(&[&many], fixed).unwrap(), [Setting::default()]);
    }
}

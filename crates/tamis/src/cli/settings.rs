//! The scope of a comparison or a check: the machines, capabilities and kernels for reading profiles.
//!
//! One reading of a profile leaves out the entries for other architectures and capabilities. Unless the options choose
//! these, a command that finds nothing goes on to the other readings ([`tamis_policy::selection`]), so that an answer
//! such as "no changes" holds for every container; `--arch all` and `--cap all` report on all readings.

use std::collections::BTreeSet;

use tamis_abi::Arch;
use tamis_policy::selection::{self, ENGINE_ARCHES, Selection, Setting, TooManyReadings, Varying};
use tamis_report::extent::{Extent, Readings};
use tamis_session::{Assignment, Loaded, SideOptions};

use super::Failure;
use super::load::LoadArgs;

/// The option of capabilities, and its value for all sets of them.
const CAPABILITIES: &str = "cap";
const ALL: &str = "all";

/// The readings that a command covers.
pub(crate) struct Coverage {
    /// The options of the first reading.
    pub(crate) first: LoadArgs,
    varying: Varying,
    /// Whether all readings were requested.
    pub(crate) is_requested: bool,
}

pub(crate) struct OtherReading {
    /// In words: `on aarch64 with CAP_SYS_NICE`.
    pub(crate) title: String,
    /// The architectures whose calls count; all if empty, as on another machine.
    pub(crate) arches: Vec<Arch>,
    pub(crate) load: LoadArgs,
}

impl OtherReading {
    /// The first reading.
    pub(crate) fn first(coverage: &Coverage) -> OtherReading {
        OtherReading {
            title: String::new(),
            arches: Vec::new(),
            load: coverage.first.clone(),
        }
    }
}

impl Coverage {
    /// The coverage that these options select.
    pub(crate) fn new(load: &LoadArgs, own: &[&SideOptions]) -> Coverage {
        let is_all = |option: &Assignment| {
            option.name == CAPABILITIES
                && option
                    .value
                    .as_deref()
                    .is_some_and(|own| own.eq_ignore_ascii_case(ALL))
        };
        let mut first = load.clone();
        let all_arches = first.arches.is_all;
        first.arches.is_all = false;
        let all_capabilities = first.languages.list.iter().any(is_all);
        first.languages.list.retain(|option| !is_all(option));
        let is_capability = |option: &Assignment| option.name == CAPABILITIES;
        let has_capabilities = first.languages.list.iter().any(is_capability)
            || own.iter().any(|own| own.named.iter().any(is_capability));
        let has_kernel = first.kernel.is_some() || own.iter().any(|own| own.kernel.is_some());
        Coverage {
            varying: Varying {
                natives: all_arches || first.arches.is_empty(),
                capabilities: all_capabilities || !has_capabilities,
                kernels: !has_kernel,
            },
            is_requested: all_arches || all_capabilities,
            first,
        }
    }

    /// Whether the options choose capabilities or a kernel.
    pub(crate) const fn has_choices(&self) -> bool {
        !self.varying.capabilities || !self.varying.kernels
    }

    /// The coverage of all readings on the machines of this one, whatever capabilities and kernel the options choose.
    pub(crate) fn of_all(&self) -> Coverage {
        let mut first = self.first.clone();
        let list = &mut first.languages.list;
        list.retain(|option| option.name != CAPABILITIES);
        first.kernel = None;
        Coverage {
            first,
            varying: Varying {
                natives: self.varying.natives,
                capabilities: true,
                kernels: true,
            },
            is_requested: self.is_requested,
        }
    }

    /// The readings of these inputs, each a stack of filters, beside the first.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn others(&self, inputs: &[&[Loaded]]) -> Result<Vec<OtherReading>, Failure> {
        self.beside_first(&self.selections(inputs)).map_err(|_| {
            Failure::gave_up(
                "the entries depend on too many capabilities to read the policy for all sets of them",
                Some("choose some with `--cap`".to_owned()),
            )
        })
    }

    /// Those of them in which calls with these names may have other actions.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn others_of_calls(
        &self,
        inputs: &[&[Loaded]],
        calls: &BTreeSet<&str>,
    ) -> Result<Vec<OtherReading>, TooManyReadings> {
        let all = self.selections(inputs).into_iter();
        let own: Vec<Selection> = all.map(|own| own.of_calls(calls)).collect();
        self.beside_first(&own)
    }

    /// The conditions of the inputs; none if only the first reading counts.
    fn selections(&self, inputs: &[&[Loaded]]) -> Vec<Selection> {
        if !self.goes_on(inputs) {
            return Vec::new();
        }
        let filters = inputs.iter().copied().flatten();
        filters
            .filter_map(|filter| self.selection(filter))
            .collect()
    }

    fn beside_first(&self, selections: &[Selection]) -> Result<Vec<OtherReading>, TooManyReadings> {
        let own: Vec<&Selection> = selections.iter().collect();
        let settings = selection::settings(&own, self.varying)?;
        let first = self.first.call_arch();
        let others = settings.iter().filter(|setting| {
            // The default reading is among those for this machine.
            **setting != Setting::default() && setting.native != Some(first)
        });
        Ok(others.map(|setting| self.reading(setting)).collect())
    }

    /// Whether there is more than the first reading: a program or a policy that is made for one reading of a profile differs
    /// from its others, so all inputs must be profiles unless all readings are requested.
    fn goes_on(&self, inputs: &[&[Loaded]]) -> bool {
        let is_profile = |filter: &Loaded| match filter {
            Loaded::Policy(policy) => policy.selection.is_some(),
            Loaded::Program(_) => false,
        };
        self.is_requested || inputs.iter().all(|filters| filters.iter().any(is_profile))
    }

    fn selection(&self, filter: &Loaded) -> Option<Selection> {
        let Loaded::Policy(policy) = filter else {
            return None;
        };
        match &policy.selection {
            Some(selection) => Some(selection.clone()),
            // A policy that states no architecture is for each machine; the others are read on request.
            None if self.is_requested && !policy.states_arches => Some(Selection {
                natives: ENGINE_ARCHES.into(),
                ..Selection::default()
            }),
            None => None,
        }
    }

    fn reading(&self, setting: &Setting) -> OtherReading {
        let mut load = self.first.clone();
        if let Some(native) = setting.native {
            load.arches = vec![native].into();
        }
        if let Some(capabilities) = &setting.capabilities {
            let list = &mut load.languages.list;
            list.retain(|option| option.name != CAPABILITIES);
            let all = capabilities.all.iter();
            list.extend(all.map(|own| Assignment::new(CAPABILITIES, own.as_str())));
            if capabilities.all.is_empty() {
                list.push(Assignment::new(CAPABILITIES, ""));
            }
        }
        load.kernel = setting.kernel.or(load.kernel);
        OtherReading {
            title: setting.to_string(),
            arches: match setting.native {
                Some(_) => Vec::new(),
                None => load.arches.to_vec(),
            },
            load,
        }
    }

    /// Which readings were examined: all, or the first.
    pub(crate) fn extent(&self, inputs: &[&[Loaded]], has_others: bool) -> Extent {
        let policies = || {
            let filters = inputs.iter().copied().flatten();
            filters.filter_map(|filter| match filter {
                Loaded::Policy(policy) => Some(policy),
                Loaded::Program(_) => None,
            })
        };
        let has_capabilities = policies().any(|policy| policy.selection.is_some());
        let has_several = has_capabilities || policies().any(|policy| !policy.states_arches);
        let varies = match has_capabilities {
            true => self.varying != Varying::NOTHING,
            false => self.varying.natives,
        };
        let readings = match has_several {
            false => Readings::Only,
            true if !varies => Readings::Chosen,
            true if has_others && self.goes_on(inputs) => Readings::All,
            true => Readings::Default,
        };
        Extent {
            readings,
            first: has_several.then(|| self.first_in_words(has_capabilities)),
            has_arches: self.varying.natives,
            has_capabilities,
        }
    }

    fn first_in_words(&self, has_capabilities: bool) -> String {
        let arches: Vec<&str> = match self.first.arches.is_empty() {
            true => vec![self.first.call_arch().name()],
            false => self.first.arches.iter().copied().map(Arch::name).collect(),
        };
        let arches = arches.join(", ");
        if !has_capabilities {
            return arches;
        }
        let options = self.first.languages.list.iter();
        let own = options.filter(|option| option.name == CAPABILITIES);
        let own: Vec<&str> = own.filter_map(|option| option.value.as_deref()).collect();
        let capabilities = match own.as_slice() {
            [] => "Docker's default capabilities".to_owned(),
            [""] => "no capability".to_owned(),
            own => own.join(", "),
        };
        format!("{arches} with {capabilities}")
    }
}

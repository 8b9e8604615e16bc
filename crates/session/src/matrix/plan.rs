//! From a matrix to the policies of its combinations, and from them to proved filters.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::code;
use crate::path_text::{PathText, path_of};
use tamis_abi::KernelVersion;
use tamis_compiler::{CompileOptions, Compiled, Effort, Objective};
use tamis_diag::{Diagnostic, Span};
use tamis_policy::matrix::{self, Combination, Goal, Matrix, Settings};
use tamis_profile::Profile;

use super::merged_diagnostics::MergedDiagnostics;
use super::{Environment, LoadedMatrix, Warnings};
use crate::assignment::Assignment;
use crate::check::{self, OutputKind};
use crate::error::Error;
use crate::input::Input;
use crate::kind::InputKind;
use crate::load::load;
use crate::loaded::Policy;
use crate::options::LoadOptions;
use crate::profile;

/// A combination with its policy.
#[derive(Clone, Debug)]
pub struct Member {
    /// The values of the options.
    pub values: Combination,
    /// The name: `network=host debug=true`.
    pub title: String,
    /// The policy.
    pub policy: Policy,
    /// The oldest supported kernel.
    kernel: Option<KernelVersion>,
    /// The index of its profile in [`Plan::profiles`].
    profile: Option<usize>,
}

/// The policies of the selected combinations.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The combinations, in the order of the matrix; at least one.
    pub members: Vec<Member>,
    /// Warnings about profiles and policies.
    pub warnings: Vec<Warnings>,
    /// The profiles of combinations, each list once.
    profiles: Vec<(Vec<String>, Profile)>,
}

/// Options of compiling a plan; the caller's settings override those that the matrix has for all combinations.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The options, without those of the matrix.
    pub options: CompileOptions,
    /// Whether the caller sets the profile.
    pub has_profile: bool,
    /// Whether the caller sets the objective.
    pub has_objective: bool,
    /// Whether the caller sets the effort.
    pub has_effort: bool,
}

/// The filters of a plan.
#[derive(Clone, Debug)]
pub struct CompiledPlan {
    /// The index of each member's filter.
    pub numbers: Vec<usize>,
    /// The filters, one for each group of members with equal rules and settings.
    pub filters: Vec<Compiled>,
    /// The warning that the profile seems to belong to another program.
    pub warnings: Vec<Diagnostic>,
}

/// A policy to be read.
struct PolicyRequest {
    values: Combination,
    title: String,
    input: Input,
    load: LoadOptions,
    profile: Option<usize>,
}

/// The policy files of a matrix, each read once.
type ReadPolicies = HashMap<String, (InputKind, Input)>;

impl Plan {
    /// Reads the policies of at least one combination.
    ///
    /// `common` are the options of reading each. The architectures of the matrix are the default. `include_dirs` and
    /// the folders of the matrix are searched for included files.
    ///
    /// # Errors
    /// If a file can't be read or has mistakes, a setting doesn't apply to the language of its policy, or the filters
    /// are for different architectures.
    pub fn read(
        loaded: &LoadedMatrix,
        chosen: &[Combination],
        common: &LoadOptions,
        include_dirs: &[PathBuf],
        environment: &impl Environment,
    ) -> Result<Plan, Error> {
        let matrix = &loaded.matrix;
        let path = path_of(&loaded.name);
        let folder = path.parent().unwrap_or(Path::new(""));
        let common = loaded.load_options(common);
        let own_dirs = matrix.include_dirs.iter();
        let own_dirs = own_dirs.map(|path| folder.join(&path.value));
        let include_dirs: Vec<PathBuf> = include_dirs.iter().cloned().chain(own_dirs).collect();
        let mut plan = Plan {
            members: Vec::new(),
            warnings: Vec::new(),
            profiles: Vec::new(),
        };
        let mut known = ReadPolicies::new();
        let mut readings = Vec::new();
        for values in chosen {
            let settings = settings(matrix, values, &common);
            readings.push(PolicyRequest {
                values: values.clone(),
                title: matrix.title(values),
                input: input(loaded, values, &settings, folder, &mut known, environment)?,
                profile: plan.profile_of(&settings, folder, &common, environment)?,
                load: for_combination(loaded, &common, &settings),
            });
        }
        plan.read_members(loaded, readings, &include_dirs, environment)?;
        loaded.check_arches(&plan.members)?;
        Ok(plan)
    }

    /// Reads the profiles of a combination, each list once.
    fn profile_of(
        &mut self,
        settings: &Settings,
        folder: &Path,
        load: &LoadOptions,
        environment: &impl Environment,
    ) -> Result<Option<usize>, Error> {
        if settings.profiles.is_empty() {
            return Ok(None);
        }
        let names = settings.profiles.iter();
        let paths: Vec<String> = names.map(|name| folder.join(&name.value).text()).collect();
        if let Some(index) = self.profiles.iter().position(|(own, _)| *own == paths) {
            return Ok(Some(index));
        }
        let mut sum = Profile::default();
        for path in &paths {
            let loaded = profile::load(environment.read(path)?, load.call_arch())?;
            sum.merge(&loaded.profile);
            self.warnings.push(Warnings {
                diagnostics: loaded.warnings,
                sources: loaded.sources,
            });
        }
        self.profiles.push((paths, sum));
        Ok(Some(self.profiles.len() - 1))
    }

    /// Reads the policies and merges their diagnostics.
    fn read_members(
        &mut self,
        loaded: &LoadedMatrix,
        readings: Vec<PolicyRequest>,
        include_dirs: &[PathBuf],
        environment: &impl Environment,
    ) -> Result<(), Error> {
        let policies = environment.for_each(&readings, |reading| {
            let mut loader = environment.loader(include_dirs);
            let loaded = load(reading.input.clone(), &reading.load, &mut *loader)?;
            check::options(
                &reading.load,
                OutputKind::FiltersOfPolicies,
                [&loaded].into_iter(),
            )?;
            loaded.into_policy("name a policy in the matrix")
        });
        let mut merged = MergedDiagnostics::default();
        let titles = readings.iter().map(|reading| reading.title.clone());
        let titles: Vec<String> = titles.collect();
        for (reading, policy) in readings.into_iter().zip(policies) {
            let title = reading.title;
            match policy {
                Ok(policy) => {
                    merged.add(&title, &policy.all_warnings(), &policy.sources);
                    self.members.push(Member {
                        values: reading.values,
                        title,
                        policy,
                        kernel: reading.load.policy.kernel,
                        profile: reading.profile,
                    });
                }
                Err(Error::Diagnostics(diagnostics, sources)) => {
                    merged.add(&title, &diagnostics, &sources);
                }
                Err(other) => return Err(other),
            }
        }
        if let Some(error) = merged.error(&titles) {
            return Err(error);
        }
        let matrix = &loaded.matrix;
        let all = matrix.combinations();
        merged.drop_hidden_rules(all.filter(|values| !matrix.is_excluded(values)).count());
        self.warnings.push(Warnings {
            diagnostics: merged.diagnostics(&titles),
            sources: merged.sources().clone(),
        });
        Ok(())
    }

    /// Compiles and proves the filters.
    ///
    /// # Errors
    /// If no program implements one of the policies.
    pub fn compile(
        &self,
        matrix: &Matrix,
        target: &Target,
        environment: &impl Environment,
    ) -> Result<CompiledPlan, Error> {
        let mut common = target.options.clone();
        if let (false, Some(goal)) = (target.has_objective, matrix.objective) {
            common.objective = match goal {
                Goal::Steps => Objective::Steps,
                Goal::Ns => Objective::Ns,
                Goal::Length => Objective::Length,
            };
        }
        if let (false, Some(effort)) = (target.has_effort, matrix.effort) {
            common.effort = match effort {
                matrix::Effort::Full => Effort::Full,
                matrix::Effort::Quick => Effort::Quick,
            };
        }
        let profile = |member: &Member| member.profile.filter(|_| !target.has_profile);
        let options = |member: &Member| CompileOptions {
            profile: match profile(member) {
                Some(index) => Some(self.profiles[index].1.clone()),
                None => common.profile.clone(),
            },
            kernel: member.kernel,
            ..common.clone()
        };
        let (jobs, numbers) = self.jobs(profile);
        let first = self.members.first().and_then(|first| {
            let profile = options(first).profile?;
            profile::mismatch(&profile, first.policy.ruleset.sections())
        });
        let compiled = environment.for_each(&jobs, |member| {
            let options = member.policy.with_frequency(options(member));
            member.policy.compile(&options)
        });
        let mut merged = MergedDiagnostics::default();
        let mut filters = Vec::new();
        for (member, result) in jobs.iter().zip(compiled) {
            match result {
                Ok(filter) => filters.push(filter),
                Err(Error::Diagnostics(diagnostics, sources)) => {
                    merged.add(&member.title, &diagnostics, &sources);
                }
                Err(other) => return Err(other),
            }
        }
        let titles: Vec<String> = jobs.iter().map(|member| member.title.clone()).collect();
        match merged.error(&titles) {
            Some(error) => Err(error),
            None => Ok(CompiledPlan {
                numbers,
                filters,
                warnings: first.into_iter().collect(),
            }),
        }
    }

    /// One member of each group with equal rules and settings, and the index of each member's group.
    fn jobs(&self, profile: impl Fn(&Member) -> Option<usize>) -> (Vec<&Member>, Vec<usize>) {
        let mut groups = HashMap::new();
        let mut jobs = Vec::new();
        let mut numbers = Vec::new();
        for member in &self.members {
            let meaning = member.policy.ruleset.to_string();
            let frequency = member
                .policy
                .with_frequency(CompileOptions::default())
                .profile;
            let key = (
                meaning,
                member.kernel,
                profile(member),
                frequency.map(|own| format!("{own:?}")),
            );
            let number = *groups.entry(key).or_insert_with(|| {
                jobs.push(member);
                jobs.len() - 1
            });
            numbers.push(number);
        }
        (jobs, numbers)
    }
}

/// The settings of a combination. The caller's settings override those that the matrix has for all combinations.
fn settings(matrix: &Matrix, values: &[usize], common: &LoadOptions) -> Settings {
    let mut settings = matrix.settings(values);
    let own = matrix.options.iter().zip(values);
    let own: Vec<&Settings> = own
        .map(|(option, value)| &option.values[*value].settings)
        .collect();
    let names = |name: &str| common.named.list.iter().any(|named| named.name == name);
    let counts_more =
        |is_asked: bool, has: fn(&Settings) -> bool| is_asked && !own.iter().any(|own| has(own));
    if counts_more(common.policy.kernel.is_some(), |own| own.kernel.is_some()) {
        settings.kernel = None;
    }
    if counts_more(names("cap"), |own| own.capabilities.is_some()) {
        settings.capabilities = None;
    }
    if counts_more(names("thread"), |own| own.thread.is_some()) {
        settings.thread = None;
    }
    settings
}

/// The options of reading the policy of a combination; its settings override the common ones.
fn for_combination(
    loaded: &LoadedMatrix,
    common: &LoadOptions,
    settings: &Settings,
) -> LoadOptions {
    let capabilities = settings.capabilities.as_ref();
    let capabilities = capabilities.map(|own| Assignment::new("cap", own.value.join(",")));
    let thread = settings.thread.as_ref();
    let thread = thread.map(|own| Assignment::new("thread", &own.value));
    let named: Vec<Assignment> = capabilities.into_iter().chain(thread).collect();
    let mut load = common.clone();
    load.named = load.named.replaced_by(&named);
    if let Some(kernel) = &settings.kernel {
        load.policy.kernel = Some(kernel.value);
    }
    if loaded.matrix.text_span().is_some() {
        load.kind = Some(InputKind::TAMIS);
    }
    load
}

/// The input of a combination: its policy file, or a text that includes it.
fn input(
    loaded: &LoadedMatrix,
    values: &[usize],
    settings: &Settings,
    folder: &Path,
    known: &mut ReadPolicies,
    environment: &impl Environment,
) -> Result<Input, Error> {
    let matrix = &loaded.matrix;
    let Some(policy) = &settings.policy else {
        unreachable!("a matrix without a policy has been refused");
    };
    if !known.contains_key(&policy.value) {
        let path = match tamis_policy::embedded(&policy.value) {
            Some(_) => policy.value.clone(),
            None => folder.join(&policy.value).text(),
        };
        let input = environment.read(&path)?;
        known.insert(policy.value.clone(), (input.kind(), input));
    }
    let (kind, input) = &known[&policy.value];
    if let Some((span, reason)) = misfit(matrix, settings, *kind) {
        let message = format!("`{}` is {}", policy.value, kind.title());
        let diagnostic = Diagnostic::error(code::MATRIX_LANGUAGE, message)
            .label(span, reason)
            .label(policy.span, "the policy");
        return Err(loaded.error(diagnostic));
    }
    Ok(match (matrix.text_span(), matrix.policy_text(values)) {
        (Some(_), Some(text)) => {
            let name = loaded.sources.name(matrix.source);
            Input::new(format!("{name}[{}]", matrix.title(values)), text)
        }
        _ => input.clone(),
    })
}

/// A setting that doesn't apply to policies of this kind.
fn misfit(matrix: &Matrix, settings: &Settings, kind: InputKind) -> Option<(Span, &'static str)> {
    let capabilities = settings.capabilities.as_ref().map(|own| own.span);
    let thread = settings.thread.as_ref().map(|own| own.span);
    let has = |option: &str| kind.option(option).is_some();
    let wrong = [
        (
            matrix.text_span().filter(|_| kind != InputKind::TAMIS),
            "this is for policies in the tamis language",
        ),
        (
            capabilities.filter(|_| !has("cap")),
            "capabilities are for OCI profiles",
        ),
        (
            thread.filter(|_| !has("thread")),
            "threads are for Firecracker filters",
        ),
    ];
    wrong
        .into_iter()
        .find_map(|(span, reason)| Some((span?, reason)))
}

impl LoadedMatrix {
    /// Rejects filters of one family for different machines.
    fn check_arches(&self, members: &[Member]) -> Result<(), Error> {
        let arches = |member: &Member| member.policy.arches();
        let Some(first) = members.first() else {
            return Ok(());
        };
        let Some(other) = members.iter().find(|own| arches(own) != arches(first)) else {
            return Ok(());
        };
        let names = |member: &Member| {
            let names: Vec<&str> = arches(member).iter().map(|arch| arch.name()).collect();
            format!("with {} it is for {}", member.title, names.join(", "))
        };
        let diagnostic = Diagnostic::error(
            code::MATRIX_VALUE,
            "the filters are for different architectures",
        )
        .label(self.matrix.options[0].name.span, "with these options")
        .note(names(first))
        .note(names(other))
        .help("set `arch = [\"x86_64\"]` at the top of the matrix");
        Err(self.error(diagnostic))
    }
}

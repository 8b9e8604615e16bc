//! From a matrix to the policies of its combinations, and from them to proved filters.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tamis_abi::KernelVersion;
use tamis_compiler::{CompileOptions, Compiled, Effort, Objective};
use tamis_diag::{Diagnostic, Sources, code};
use tamis_policy::front_end;
use tamis_policy::matrix::{Combination, Goal, Matrix, Settings};
use tamis_profile::Profile;
use tamis_session::{Error, Input, InputKind, Policy, files};

use super::Args;
use super::merged_diagnostics::MergedDiagnostics;
use super::work::in_parallel;
use crate::cli::load::LoadArgs;
use crate::cli::{Failure, Global, profile, target};

/// A combination with its policy.
pub(super) struct Member {
    pub(super) values: Combination,
    pub(super) title: String,
    pub(super) policy: Policy,
    kernel: Option<KernelVersion>,
    /// Which of the [`Plan::profiles`] counts.
    profile: Option<usize>,
}

/// The policies of all combinations that are not excluded.
pub(super) struct Plan {
    pub(super) members: Vec<Member>,
    profiles: Vec<(Vec<String>, Profile)>,
    load: LoadArgs,
}

/// A policy to be read.
struct Reading {
    values: Combination,
    title: String,
    input: Input,
    load: LoadArgs,
    profile: Option<usize>,
}

/// Reads the policies.
pub(super) fn plan(
    matrix: &Matrix,
    sources: &Sources,
    chosen: &[Combination],
    args: &Args,
    global: &Global,
) -> Result<Plan, Failure> {
    let folder = folder(&sources.name(matrix.source).clone());
    let load = args.load.for_matrix(matrix, &folder);
    let mut profiles = Vec::new();
    let mut readings = Vec::new();
    let mut inputs = HashMap::new();
    for values in chosen {
        let mut settings = matrix.settings(values);
        let mut own = matrix.options.iter().zip(values);
        let sets_kernel =
            own.any(|(option, value)| option.values[*value].settings.kernel.is_some());
        // What the command line says counts more than what the matrix says for all.
        if load.kernel.is_some() && !sets_kernel {
            settings.kernel = None;
        }
        readings.push(Reading {
            values: values.clone(),
            title: matrix.title(values),
            input: input(matrix, sources, values, &settings, &folder, &mut inputs)?,
            profile: profile_of(&settings, &folder, &load, &mut profiles, global)?,
            load: load.for_combination(&settings),
        });
    }
    let members = read(matrix, sources, readings, global)?;
    Ok(Plan {
        members,
        profiles,
        load,
    })
}

/// Where a matrix lies.
fn folder(name: &str) -> PathBuf {
    Path::new(name).parent().unwrap_or(Path::new("")).to_owned()
}

/// The policy of a combination: its file, or a text that includes it.
fn input(
    matrix: &Matrix,
    sources: &Sources,
    values: &[usize],
    settings: &Settings,
    folder: &Path,
    known: &mut HashMap<String, (InputKind, Vec<u8>, String)>,
) -> Result<Input, Failure> {
    let Some(policy) = &settings.policy else {
        unreachable!("a matrix without a policy has been refused");
    };
    if !known.contains_key(&policy.value) {
        let path = match tamis_policy::embedded(&policy.value) {
            Some(_) => policy.value.clone(),
            None => folder.join(&policy.value).display().to_string(),
        };
        let input = files::read(&path)?;
        known.insert(
            policy.value.clone(),
            (input.kind(), input.bytes, input.name),
        );
    }
    let (kind, bytes, name) = &known[&policy.value];
    let taken = |option: &str| match kind {
        InputKind::Policy(front_end) => front_end.options.contains(&option),
        _ => false,
    };
    let is_tamis = *kind == InputKind::Policy(front_end::ALL[0]);
    let wrong = [
        (
            matrix.text_span().filter(|_| !is_tamis),
            "this is for policies in the tamis language",
        ),
        (
            settings
                .capabilities
                .as_ref()
                .map(|own| own.span)
                .filter(|_| !taken("--cap")),
            "capabilities are for OCI profiles",
        ),
        (
            settings
                .thread
                .as_ref()
                .map(|own| own.span)
                .filter(|_| !taken("--thread")),
            "threads are for Firecracker filters",
        ),
    ];
    for (span, reason) in wrong {
        let Some(span) = span else { continue };
        let message = format!("`{}` is {}", policy.value, kind.title());
        let diagnostic = Diagnostic::error(code::MATRIX_LANGUAGE, message)
            .label(span, reason)
            .label(policy.span, "the policy");
        return Err(Failure::Diagnostics(vec![diagnostic], sources.clone()));
    }
    match (matrix.text_span(), matrix.policy_text(values)) {
        (Some(_), Some(text)) => Ok(Input {
            name: format!("{}[{}]", sources.name(matrix.source), matrix.title(values)),
            bytes: text.into_bytes(),
        }),
        _ => Ok(Input {
            name: name.clone(),
            bytes: bytes.clone(),
        }),
    }
}

/// Reads the profiles of a combination, each list once.
fn profile_of(
    settings: &Settings,
    folder: &Path,
    load: &LoadArgs,
    known: &mut Vec<(Vec<String>, Profile)>,
    global: &Global,
) -> Result<Option<usize>, Failure> {
    if settings.profiles.is_empty() {
        return Ok(None);
    }
    let path = |name: &String| folder.join(name).display().to_string();
    let paths: Vec<String> = settings
        .profiles
        .iter()
        .map(|name| path(&name.value))
        .collect();
    if let Some(index) = known.iter().position(|(own, _)| *own == paths) {
        return Ok(Some(index));
    }
    let profile = profile::load(&paths, load.call_arch(), global)?;
    known.push((paths, profile));
    Ok(Some(known.len() - 1))
}

/// Reads the policies, and says what is to be said about them.
fn read(
    matrix: &Matrix,
    sources: &Sources,
    readings: Vec<Reading>,
    global: &Global,
) -> Result<Vec<Member>, Failure> {
    let is_generated = matrix.text_span().is_some();
    let loaded_policies = in_parallel(&readings, |reading| {
        let mut load = reading.load.clone();
        if is_generated {
            load.from = Some(InputKind::Policy(front_end::ALL[0]));
        }
        let input = Input {
            name: reading.input.name.clone(),
            bytes: reading.input.bytes.clone(),
        };
        let loaded = load.load_input(input)?;
        load.check_profile_options([&loaded])?;
        let policy = loaded.into_policy("name a policy in the matrix")?;
        Ok((policy, load.kernel))
    });
    let mut merged = MergedDiagnostics::default();
    let mut members = Vec::new();
    let all: Vec<String> = readings
        .iter()
        .map(|reading| reading.title.clone())
        .collect();
    for (reading, loaded) in readings.into_iter().zip(loaded_policies) {
        let Reading {
            values,
            title,
            profile,
            ..
        } = reading;
        match loaded {
            Ok((policy, kernel)) => {
                merged.add(&title, &policy.all_warnings(), &policy.sources);
                members.push(Member {
                    values,
                    title,
                    policy,
                    kernel,
                    profile,
                });
            }
            Err(Failure::Diagnostics(diagnostics, sources)) => {
                merged.add(&title, &diagnostics, &sources);
            }
            Err(other) => return Err(other),
        }
    }
    if let Some(failure) = merged.failure(&all) {
        return Err(failure);
    }
    let combinations = matrix.combinations();
    merged.drop_hidden_rules(
        combinations
            .filter(|values| !matrix.is_excluded(values))
            .count(),
    );
    global.warn(&merged.diagnostics(&all), merged.sources());
    check_arches(matrix, sources, &members)?;
    Ok(members)
}

/// Refuses filters of one family that are for different machines.
fn check_arches(matrix: &Matrix, sources: &Sources, members: &[Member]) -> Result<(), Failure> {
    let Some(first) = members.first() else {
        return Ok(());
    };
    let Some(other) = members
        .iter()
        .find(|own| own.policy.arches() != first.policy.arches())
    else {
        return Ok(());
    };
    let names = |member: &Member| {
        let names: Vec<&str> = member
            .policy
            .arches()
            .iter()
            .map(|arch| arch.name())
            .collect();
        format!("with {} it is for {}", member.title, names.join(", "))
    };
    let diagnostic = Diagnostic::error(
        code::MATRIX_VALUE,
        "the filters are for different architectures",
    )
    .label(matrix.options[0].name.span, "with these options")
    .note(names(first))
    .note(names(other))
    .help("set `arch = [\"x86_64\"]` at the top of the matrix");
    Err(Failure::Diagnostics(vec![diagnostic], sources.clone()))
}

impl Plan {
    /// Makes the filters and proves them: for each member the number of its filter, and the filters.
    pub(super) fn compile(
        &self,
        matrix: &Matrix,
        args: &Args,
        global: &Global,
    ) -> Result<(Vec<usize>, Vec<Compiled>), Failure> {
        let [has_profile, has_objective, has_effort] = args.target.given_options();
        let mut common = args.target.options(&self.load, global)?;
        if let (false, Some(goal)) = (has_objective, matrix.objective) {
            common.objective = match goal {
                Goal::Steps => Objective::Steps,
                Goal::Ns => Objective::Ns,
                Goal::Length => Objective::Length,
            };
        }
        if let (false, Some(effort)) = (has_effort, matrix.effort) {
            common.effort = match effort {
                tamis_policy::matrix::Effort::Full => Effort::Full,
                tamis_policy::matrix::Effort::Quick => Effort::Quick,
            };
        }
        let profile = |member: &Member| member.profile.filter(|_| !has_profile);
        let (common_profile, objective, effort) = (common.profile, common.objective, common.effort);
        let options = |member: &Member| CompileOptions {
            profile: match profile(member) {
                Some(index) => Some(self.profiles[index].1.clone()),
                None => common_profile.clone(),
            },
            objective,
            effort,
            kernel: member.kernel,
            proof: args.limits.effort(),
            ..CompileOptions::default()
        };
        let (jobs, numbers) = self.jobs(profile);
        if let Some(first) = self.members.first() {
            target::warn_profile_mismatch(&options(first), &first.policy, global);
        }
        let compiled = in_parallel(&jobs, |member| {
            let options = member.policy.with_frequency(options(member));
            let compiled = member.policy.compile(&options);
            compiled.map_err(|failure| (member.title.clone(), failure))
        });
        let mut merged = MergedDiagnostics::default();
        let mut filters = Vec::new();
        for result in compiled {
            match result {
                Ok(filter) => filters.push(filter),
                Err((title, Error::Diagnostics(diagnostics, sources))) => {
                    merged.add(&title, &diagnostics, &sources);
                }
                Err((_, other)) => return Err(other.into()),
            }
        }
        let all: Vec<String> = jobs.iter().map(|member| member.title.clone()).collect();
        match merged.failure(&all) {
            Some(failure) => Err(failure),
            None => Ok((numbers, filters)),
        }
    }

    /// One member of each group that means the same and is compiled alike, and for each member the number of its
    /// group.
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

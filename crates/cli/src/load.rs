//! Options for loading inputs.

use std::path::{Path, PathBuf};

use tamis_abi::{Arch, KernelVersion, host};
use tamis_deploy::systemd as systemd_release;
use tamis_diag::{Diagnostic, Severity};
use tamis_export::Exporter;
use tamis_lint::{Limits, LintInput, Meaning, Statements};
use tamis_policy::front_end;
use tamis_policy::systemd::{self, ParseSystemdVersionError, SystemdVersion};
use tamis_report::lint::FindingEntry;
use tamis_session::check::{self, OutputKind};
use tamis_session::files::{self, FileLoader};
use tamis_session::{
    Assignment, Assignments, Binding, Bindings, Input, InputKind, LoadOptions, Loaded, Policy,
};

use super::arches::ArchArgs;
use super::budget::{self, Stage};
use super::languages::LanguageArgs;
use super::{Failure, Global, input};

/// The policy for commands without one.
pub const DEFAULT_POLICY: &str = "container-default";

/// Prints a note about the default policy.
pub fn note_default_policy(global: &Global) {
    global.notice(&format!(
        "tamis: no policy was given: the command runs under {DEFAULT_POLICY}; choose one with -p"
    ));
}

/// Options for loading an input.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Reading inputs")]
pub struct LoadArgs {
    #[arg(skip)]
    stated_arches_win: bool,
    /// The result of the command; `--kernel` is permitted for every command that makes filters.
    #[arg(skip)]
    makes: OutputKind,
    /// The kind of the input; detected if not given
    #[arg(long, value_name = "KIND", value_parser = input::kind_parser())]
    pub from: Option<InputKind>,
    /// The architectures.
    #[command(flatten)]
    pub arches: ArchArgs,
    /// Treat warnings that affect the filter as errors: calls that don't exist, unknown keys
    #[arg(long)]
    strict: bool,
    /// Let the policy include files of this directory, besides those of its own, and search it, by file name, for those
    /// that are missing at their path; may be repeated
    #[arg(long = "include-dir", value_name = "DIR")]
    include_dirs: Vec<PathBuf>,
    /// The oldest kernel that will run the filter [default: a new one]. Before 5.11 the kernel does not cache
    /// calls that are always allowed, so their cost counts; entries of an OCI profile with a later
    /// `minKernel` are ignored
    #[arg(long, value_name = "VERSION")]
    pub kernel: Option<KernelVersion>,
    /// Give a run-time variable of the policy its value, or a set of them its values, separated by commas;
    /// may be repeated
    #[arg(long = "bind", value_name = "NAME=VALUE", value_parser = Binding::parse)]
    bindings: Vec<Binding>,
    /// Whether the command accepts variables without values.
    #[arg(skip)]
    keeps_variables: bool,
    /// Whether the command installs the filter.
    #[arg(skip)]
    is_installed: bool,
    /// Whether the command takes the explicit rules of policies alone.
    #[arg(skip)]
    takes_explicit_rules: bool,
    /// The release of systemd that reads a unit, if the options don't name one.
    #[arg(skip)]
    systemd: systemd::Settings,
    #[command(flatten)]
    /// The options of languages.
    pub languages: LanguageArgs,
}

/// The architecture for which this program was built.
pub fn native_arch() -> Arch {
    host::arch().unwrap_or(Arch::X86_64)
}

impl LoadArgs {
    /// The default options for an input of this kind.
    pub fn of_kind(kind: InputKind) -> LoadArgs {
        LoadArgs {
            from: Some(kind),
            ..LoadArgs::default()
        }
    }

    /// The default options for a unit that this release of systemd reads; without an architecture, for this machine.
    pub fn of_systemd(
        arch: Option<Arch>,
        strict: bool,
        version: SystemdVersion,
        kernel: Option<KernelVersion>,
    ) -> Result<LoadArgs, Failure> {
        Ok(LoadArgs {
            strict,
            kernel,
            systemd: systemd::Settings {
                asked: Some(version),
                installed: None,
            },
            arches: Vec::from_iter(arch).into(),
            ..LoadArgs::of_kind(InputKind::named("systemd")?)
        })
    }

    /// These options for an input of this kind.
    pub fn with_kind(&self, kind: Option<InputKind>) -> LoadArgs {
        LoadArgs {
            from: kind,
            ..self.clone()
        }
    }

    /// These options for these architectures.
    pub fn for_arches(&self, arches: &[Arch]) -> LoadArgs {
        LoadArgs {
            arches: arches.to_vec().into(),
            ..self.clone()
        }
    }

    /// Whether warnings that affect the filter are errors.
    pub const fn is_strict(&self) -> bool {
        self.strict
    }

    /// Reads and parses the only input of a command; prints its warnings.
    pub fn load(&self, path: &str, global: &Global) -> Result<Loaded, Failure> {
        let _stage = reading(path);
        self.load_one(read_input(path, global)?, global)
    }

    /// Parses the only input of a command; prints its warnings.
    pub fn load_one(&self, input: Input, global: &Global) -> Result<Loaded, Failure> {
        let options = self.options();
        let loaded = self.load_by(&options, input)?;
        check::options(&options, self.makes, [&loaded].into_iter())?;
        warn(&loaded, global);
        Ok(loaded)
    }

    /// Reads and parses one of several inputs; prints its warnings. The caller checks the options with
    /// [`check_options`](Self::check_options).
    pub fn load_among(&self, path: &str, global: &Global) -> Result<Loaded, Failure> {
        let loaded = self.read(path, global)?;
        warn(&loaded, global);
        Ok(loaded)
    }

    /// Reads and parses one of several inputs without printing its warnings.
    fn read(&self, path: &str, global: &Global) -> Result<Loaded, Failure> {
        let _stage = reading(path);
        self.load_input(read_input(path, global)?)
    }

    /// Parses one of several inputs.
    pub fn load_input(&self, input: Input) -> Result<Loaded, Failure> {
        self.load_by(&self.shared_options(), input)
    }

    /// A policy of this kind in another text; `None` if it has errors.
    pub fn reload(&self, input: Input, kind: InputKind) -> Option<Policy> {
        match self.with_kind(Some(kind)).load_input(input) {
            Ok(Loaded::Policy(policy)) => Some(*policy),
            Ok(Loaded::Program(_)) | Err(_) => None,
        }
    }

    fn load_by(&self, options: &LoadOptions, input: Input) -> Result<Loaded, Failure> {
        if self.arches.is_all {
            return Err(Failure::usage(
                "`--arch all` is for commands that compare",
                "name one architecture, or several for one filter",
            ));
        }
        let arch = options.call_arch();
        if options.is_for_this_machine && arch.endian() != host::TARGET.endian {
            return Err(Failure::usage(
                format!(
                    "this machine can't run filters for {arch}, which has the other byte order"
                ),
                "leave out `--arch`, or name an architecture whose programs this machine runs",
            ));
        }
        let mut loader = FileLoader::new(&self.include_dirs);
        let options = on_this_machine(options.clone(), &input);
        Ok(tamis_session::load(input, &options, &mut loader)?)
    }

    /// Reads and parses an input that must be a policy.
    pub fn load_policy(&self, path: &str, global: &Global) -> Result<Policy, Failure> {
        let loaded = self.load(path, global)?;
        self.check_arches([&loaded])?;
        Ok(loaded.into_policy(
            "`tamis bpf disasm` shows a program, `--from` overrides what was detected",
        )?)
    }

    /// Rejects options that no input uses.
    pub fn check_options<'l>(
        &self,
        inputs: impl IntoIterator<Item = &'l Loaded, IntoIter: Clone>,
    ) -> Result<(), Failure> {
        let inputs = inputs.into_iter();
        Ok(check::options(&self.shared_options(), self.makes, inputs)?)
    }

    /// Rejects options that the language of the only input lacks. The input may have errors.
    pub fn check_kind(&self, input: &Input) -> Result<(), Failure> {
        let kind = self.from.unwrap_or_else(|| input.kind());
        let named = self.shared_options().named;
        Ok(named.check_kinds([kind].into_iter())?)
    }

    /// Rejects `--arch` for a command that makes filters if every input states its architectures.
    pub fn check_arches<'l>(
        &self,
        inputs: impl IntoIterator<Item = &'l Loaded>,
    ) -> Result<(), Failure> {
        Ok(check::arches(&self.options(), inputs.into_iter())?)
    }

    /// The architecture of calls that name none: the first given one, or else the native one.
    pub fn call_arch(&self) -> Arch {
        self.arches.first().copied().unwrap_or_else(native_arch)
    }

    /// These options for a comparison: `--arch` selects the compared calls, and a policy keeps the architectures that
    /// it states.
    pub fn for_comparison(&self) -> LoadArgs {
        LoadArgs {
            stated_arches_win: true,
            ..self.clone()
        }
    }

    /// These options for a command that accepts variables without values.
    pub fn keeping_variables(&self) -> LoadArgs {
        LoadArgs {
            keeps_variables: true,
            ..self.clone()
        }
    }

    /// These options for a command that makes filters of policies: `--kernel` applies to each.
    pub fn for_filter(&self) -> LoadArgs {
        LoadArgs {
            makes: OutputKind::FiltersOfPolicies,
            ..self.clone()
        }
    }

    /// These options for a command that installs filters in the running kernel.
    pub fn for_installed_filter(&self) -> LoadArgs {
        LoadArgs {
            is_installed: true,
            ..self.for_filter()
        }
    }

    /// These options for a filter whose variables are bound by the program that contains it.
    pub fn for_embedded_filter(&self) -> LoadArgs {
        LoadArgs {
            keeps_variables: true,
            ..self.for_filter()
        }
    }

    /// These options for a command that makes filters of programs as well.
    pub fn for_any_filter(&self) -> LoadArgs {
        LoadArgs {
            makes: OutputKind::FiltersOfAll,
            ..self.clone()
        }
    }

    /// The options for the only input of a command.
    pub fn options(&self) -> LoadOptions {
        let defaults = front_end::ParseOptions::new(native_arch());
        let defaults = match self.takes_explicit_rules {
            true => defaults.for_explicit_rules(),
            false => defaults,
        };
        LoadOptions {
            kind: self.from,
            policy: front_end::ParseOptions {
                asked_arches: self.arches.to_vec(),
                stated_arches_win: self.stated_arches_win,
                strict: self.strict,
                kernel: self.kernel,
                systemd: self.systemd.clone(),
                ..defaults
            },
            named: Assignments {
                list: self.languages.list.clone(),
                is_shared: false,
            },
            bindings: Bindings(self.bindings.clone()),
            keeps_variables: self.keeps_variables,
            is_for_this_machine: self.is_installed,
        }
    }

    /// The options for each of several inputs.
    pub fn shared_options(&self) -> LoadOptions {
        let mut options = self.options();
        options.named.is_shared = true;
        options
    }

    /// These options for policies of which only the explicit rules count.
    pub fn for_explicit_rules(&self) -> LoadArgs {
        LoadArgs {
            takes_explicit_rules: true,
            ..self.clone()
        }
    }

    /// These options for a command that exports to a language, which may be that of a release of systemd.
    pub fn for_target(&self, to: &Exporter) -> Result<LoadArgs, Failure> {
        const OPTION: &str = "systemd";
        let list = self.languages.list.iter().cloned();
        let is_own = |own: &Assignment| own.name == OPTION && to.name == OPTION;
        let (own, list): (Vec<Assignment>, Vec<Assignment>) = list.partition(is_own);
        let mut load = self.clone();
        if let Some(last) = own.last() {
            let version = last.value.as_deref().unwrap_or_default().parse();
            let version = version.map_err(|error: ParseSystemdVersionError| {
                Failure::usage(error.to_string(), "write a version such as `systemd=258`")
            })?;
            load.systemd.asked = Some(version);
            load.languages.list = list;
        }
        Ok(load)
    }

    /// These options with a release of systemd for units, unless an option of the language names another one.
    pub fn with_systemd(&self, version: SystemdVersion) -> LoadArgs {
        let mut load = self.clone();
        load.systemd.asked = Some(version);
        load
    }

    /// The release of systemd that reads units, from the options or this machine.
    pub fn systemd(&self) -> systemd::Settings {
        let mut named = self.languages.list.iter().rev();
        let text = named.find_map(|own| own.value.as_deref().filter(|_| own.name == "systemd"));
        systemd::Settings {
            asked: text
                .and_then(|text| text.parse().ok())
                .or(self.systemd.asked),
            installed: systemd_release::installed(),
        }
    }

    /// The folders for included files.
    pub fn include_dirs(&self) -> &[PathBuf] {
        &self.include_dirs
    }
}

/// The options for an input; a unit is read as by the release of systemd on this machine.
pub fn on_this_machine(mut options: LoadOptions, input: &Input) -> LoadOptions {
    let kind = options.kind.unwrap_or_else(|| input.kind());
    if kind.name() == "systemd" {
        options.policy.systemd.installed = systemd_release::installed();
    }
    options
}

/// The architectures whose programs this machine executes, if there are several and the policy is for the native one by
/// default; none otherwise.
pub fn runnable_arches(policy: &Policy) -> Vec<&'static str> {
    let runs = native_arch().with_compat();
    match policy.states_arches || runs.len() == 1 {
        true => Vec::new(),
        false => runs.iter().map(|arch| arch.name()).collect(),
    }
}

/// The stage of reading an input.
pub fn reading(path: &str) -> Stage {
    budget::stage(format!("reading {path}"))
}

/// Reads an input. An embedded policy takes precedence over a file of the same name, with a note.
pub fn read_input(path: &str, global: &Global) -> Result<Input, Failure> {
    if Input::embedded(path).is_some() && Path::new(path).is_file() {
        global.notice(&format!(
            "note: {path} is the embedded policy; the file of that name here is `./{path}`"
        ));
    }
    Ok(files::read(path)?)
}

/// Prints the warnings about a policy.
pub fn warn(loaded: &Loaded, global: &Global) {
    if let Loaded::Policy(policy) = loaded {
        let is_assumed = |own: &Diagnostic| own.severity == Severity::Note && own.labels.is_empty();
        let all = policy.warnings.iter().cloned();
        let (assumed, warnings): (Vec<_>, Vec<_>) = all.partition(is_assumed);
        // Notes about assumptions are printed once for all inputs.
        global.warn(&assumed, &policy.sources);
        global.warn(&warnings, &policy.sources);
    }
}

/// Warns of denied calls that every program needs; for commands that compile a policy.
pub fn warn_essential(policy: &Policy, global: &Global) {
    let subject = LintInput {
        meaning: Meaning::Policy(&policy.ruleset),
        statements: Statements::default(),
        known_until: None,
        assumed_arch: native_arch(),
        runtime: None,
        kernel: None,
        targets: &[],
    };
    let checks = [tamis_lint::registry::ESSENTIAL];
    // A policy that is too complex for the check still compiles.
    let Ok(found) = tamis_lint::run(&subject, &checks, Limits::default(), budget::stop()) else {
        return;
    };
    for finding in &found.findings {
        if finding.severity == Severity::Warning {
            let mut entry = FindingEntry::of_policy(finding, &policy.sources);
            entry.name_input(&policy.name);
            global.warn(&[entry.diagnostic], &policy.sources);
        }
    }
}

/// Warns of requirements that the filter itself does not contain, such as flags; for commands that write the filter
/// alone.
pub fn warn_installation(policy: &Policy, global: &Global) {
    if let Some(warning) = policy.installation.left_out() {
        global.warn(&[warning], &policy.sources);
    }
}

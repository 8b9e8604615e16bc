//! The options that say how to read an input, and loading by them.

mod member;

use std::path::{Path, PathBuf};

use tamis_abi::{Arch, KernelVersion, host};
use tamis_diag::suggest;
use tamis_policy::front_end;
use tamis_policy::minijail::DefaultAction;
use tamis_policy::{minijail, oci};
use tamis_session::files::{self, FileLoader};
use tamis_session::{Binding, Bindings, Input, InputKind, LoadOptions, Loaded, Policy};

use super::{Failure, Global, input};

/// The policy that is used where none is given.
pub(crate) const DEFAULT_POLICY: &str = "container-default";

/// How to understand an input.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct LoadArgs {
    #[arg(skip)]
    stated_arches_win: bool,
    /// Whether the command makes filters, so that `--kernel` says what for.
    #[arg(skip)]
    makes_filter: bool,
    /// Whether it makes them of programs, too.
    #[arg(skip)]
    remakes_programs: bool,
    /// The kind of the input; detected if not given
    #[arg(long, value_name = "KIND", value_parser = input::kind_parser())]
    pub(crate) from: Option<InputKind>,
    /// The architecture of the filter, and of calls that name none; may be repeated. For an OCI profile, a
    /// single one is the native architecture, to which the profile adds its sub-architectures; several are
    /// exactly those of the filter, the native one first
    #[arg(long = "arch", value_name = "ARCH", value_parser = parse_arch)]
    pub(crate) arches: Vec<Arch>,
    /// Treat warnings that affect the filter as errors: calls that don't exist, unknown keys
    #[arg(long)]
    strict: bool,
    /// Search this directory, by file name, for included files that are missing at their path; may be
    /// repeated
    #[arg(long = "include-dir", value_name = "DIR")]
    include_dirs: Vec<PathBuf>,
    /// OCI profiles: a capability of the container, such as SYS_ADMIN or CAP_SYS_ADMIN, instead of Docker's
    /// fourteen; may be repeated
    #[arg(long = "cap", value_name = "CAP", value_parser = parse_capability)]
    capabilities: Vec<String>,
    /// Whether the container has no capabilities at all.
    #[arg(skip)]
    has_no_capabilities: bool,
    /// The oldest kernel that will run the filter [default: a new one]. Before 5.11 the kernel does not cache
    /// calls that are always allowed, so their cost counts; entries of an OCI profile with a later
    /// `minKernel` are ignored
    #[arg(long, value_name = "VERSION")]
    pub(crate) kernel: Option<KernelVersion>,
    /// OCI profiles: which unknown numbers get ENOSYS [default: none]
    #[arg(long, value_name = "WHICH")]
    enosys_tail: Option<EnosysTail>,
    /// Firecracker filters: the thread whose filter to use, if the file has several
    #[arg(long, value_name = "NAME")]
    thread: Option<String>,
    /// Minijail policies: the dialect, which decides the meaning of lines such as `arg0 == 1; return EPERM`
    /// [default: python, with a warning]
    #[arg(long, value_name = "WHICH")]
    dialect: Option<Dialect>,
    /// Minijail policies: the action where no line applies, instead of the policy's: `log`, `return EPERM`
    #[arg(long, value_name = "ACTION")]
    default_action: Option<DefaultAction>,
    /// Minijail policies: `kill` kills the process, not only the thread
    #[arg(long)]
    use_kill_process: bool,
    /// Minijail policies: the policy is a deny list with `@denylist`: calls that it does not name are allowed
    #[arg(long)]
    denylist: bool,
    /// Minijail policies: the compile tool's table of calls, constants and groups, constants.json, instead of
    /// the kernel's; it also sets the architecture
    #[arg(long, value_name = "FILE")]
    arch_json: Option<PathBuf>,
    /// Give a run-time variable of the policy its value, or a set of them its values, separated by commas;
    /// may be repeated
    #[arg(long = "bind", value_name = "NAME=VALUE", value_parser = Binding::parse)]
    bindings: Vec<Binding>,
    /// Whether the command has a use for variables without values.
    #[arg(skip)]
    keeps_variables: bool,
}

/// Which of minijail's readers decides what a policy means.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Dialect {
    /// The library, `minijail0 -S`: calls that satisfy the condition are allowed, others get the error
    C,
    /// The tool compile_seccomp_policy.py: calls that satisfy the condition get the error
    Python,
}

/// Which unknown numbers of an OCI profile answer ENOSYS instead of the default action.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum EnosysTail {
    /// None, as libseccomp
    None,
    /// Those above the largest number that the profile names, as runc
    Runc,
    /// Those above the largest known number of the architecture
    Table,
}

/// The architecture with this name, or an error that names a near one.
pub(crate) fn parse_arch(name: &str) -> Result<Arch, String> {
    Arch::from_name(name).ok_or_else(|| {
        let known =
            Arch::all().flat_map(|arch| arch.aliases().iter().copied().chain([arch.name()]));
        match suggest::nearest(name, known) {
            Some(near) => format!("no such architecture; did you mean `{near}`?"),
            None => "no such architecture; `tamis tables arches` lists them".to_owned(),
        }
    })
}

/// The capability with this name, or an error that names a near one.
fn parse_capability(name: &str) -> Result<String, String> {
    if let Some(known) = oci::capability(name) {
        return Ok(known.to_owned());
    }
    let bare = |name: &'static str| name.strip_prefix("CAP_").unwrap_or(name);
    let upper = name.to_ascii_uppercase();
    let typed = upper.strip_prefix("CAP_").unwrap_or(&upper);
    Err(
        match suggest::nearest(typed, oci::CAPABILITIES.into_iter().map(bare)) {
            Some(near) => format!("no such capability; did you mean `CAP_{near}`?"),
            None => "no such capability; `man 7 capabilities` lists them".to_owned(),
        },
    )
}

/// The architecture that this program was built for.
pub(crate) fn native_arch() -> Arch {
    host::arch().unwrap_or(Arch::X86_64)
}

impl LoadArgs {
    /// The defaults, for an input whose kind is fixed.
    pub(crate) fn of_kind(kind: InputKind) -> LoadArgs {
        LoadArgs {
            from: Some(kind),
            ..LoadArgs::default()
        }
    }

    /// The same for inputs of this kind.
    pub(crate) fn with_kind(&self, kind: Option<InputKind>) -> LoadArgs {
        LoadArgs {
            from: kind,
            ..self.clone()
        }
    }

    /// Whether what changes the meaning is an error.
    pub(crate) const fn is_strict(&self) -> bool {
        self.strict
    }

    /// Reads and understands the one input of a command; warnings go to standard error.
    pub(crate) fn load(&self, path: &str, global: &Global) -> Result<Loaded, Failure> {
        let loaded = self.load_among(path, global)?;
        self.check_profile_options([&loaded])?;
        Ok(loaded)
    }

    /// Reads and understands one of several inputs; warnings go to standard error. The caller checks
    /// the options with [`check_profile_options`](Self::check_profile_options).
    pub(crate) fn load_among(&self, path: &str, global: &Global) -> Result<Loaded, Failure> {
        let loaded = self.read(path)?;
        if let Loaded::Policy(policy) = &loaded {
            global.warn(&policy.warnings, &policy.sources);
        }
        Ok(loaded)
    }

    /// Reads and understands an input and leaves it to the caller to show the warnings.
    pub(crate) fn read(&self, path: &str) -> Result<Loaded, Failure> {
        self.load_input(files::read(path)?)
    }

    /// Loads an input that has been read.
    pub(crate) fn load_input(&self, input: Input) -> Result<Loaded, Failure> {
        let mut loader = FileLoader::new(&self.include_dirs);
        Ok(tamis_session::load(input, &self.options()?, &mut loader)?)
    }

    /// The policy of an input that must be one.
    pub(crate) fn load_policy(&self, path: &str, global: &Global) -> Result<Policy, Failure> {
        let loaded = self.load(path, global)?;
        self.check_arches([&loaded])?;
        Ok(loaded
            .into_policy("`tamis disasm` shows a program, `--from` overrides what was detected")?)
    }

    /// Refuses options for languages that none of a command's inputs is in.
    pub(crate) fn check_profile_options<'l>(
        &self,
        inputs: impl IntoIterator<Item = &'l Loaded, IntoIter: Clone>,
    ) -> Result<(), Failure> {
        let inputs = inputs.into_iter();
        Bindings(self.bindings.clone()).check(inputs.clone())?;
        let kinds: Vec<Option<InputKind>> = inputs.map(Loaded::policy_kind).collect();
        let compiles =
            self.remakes_programs || self.makes_filter && kinds.iter().any(Option::is_some);
        let given = [
            ("--cap", !self.capabilities.is_empty()),
            ("--kernel", self.kernel.is_some() && !compiles),
            ("--enosys-tail", self.enosys_tail.is_some()),
            ("--thread", self.thread.is_some()),
            ("--dialect", self.dialect.is_some()),
            ("--default-action", self.default_action.is_some()),
            ("--use-kill-process", self.use_kill_process),
            ("--denylist", self.denylist),
            ("--arch-json", self.arch_json.is_some()),
        ];
        let takes = |kind: &Option<InputKind>, option: &str| match kind {
            Some(InputKind::Policy(front_end)) => front_end.options.contains(&option),
            _ => false,
        };
        let idle = |(option, is_given): &&(&str, bool)| {
            *is_given && !kinds.iter().any(|kind| takes(kind, option))
        };
        let Some((option, _)) = given.iter().find(idle) else {
            return Ok(());
        };
        let mut all = front_end::ALL.into_iter();
        let owner = all.find(|front_end| front_end.options.contains(option));
        let (plural, name) = owner.map_or(("policies", "tamis"), |own| (own.plural, own.name));
        Err(Failure::usage(
            format!("{option} is for {plural}, and no input is one"),
            format!("omit {option}, or use `--from {name}` if the input is one"),
        ))
    }

    /// Refuses `--arch` if a command that makes filters gets nothing but texts that name theirs.
    pub(crate) fn check_arches<'l>(
        &self,
        inputs: impl IntoIterator<Item = &'l Loaded>,
    ) -> Result<(), Failure> {
        let is_fixed = |input: &Loaded| input.policy_kind() == Some(InputKind::Rules);
        if self.arches.is_empty() || !inputs.into_iter().all(is_fixed) {
            return Ok(());
        }
        Err(Failure::usage(
            "--arch has no effect on the text form of a ruleset: its sections name the architectures",
            "omit --arch, and delete the unwanted sections",
        ))
    }

    /// The architecture of calls that name none: the first that was asked for, else the native one.
    pub(crate) fn call_arch(&self) -> Arch {
        self.arches.first().copied().unwrap_or_else(native_arch)
    }

    /// The same for a comparison, where the architectures only say which calls are compared: a policy
    /// that states its own is read for them.
    pub(crate) fn for_comparison(&self) -> LoadArgs {
        LoadArgs {
            stated_arches_win: true,
            ..self.clone()
        }
    }

    /// The same for a command that has a use for variables without values.
    pub(crate) fn keeping_variables(&self) -> LoadArgs {
        LoadArgs {
            keeps_variables: true,
            ..self.clone()
        }
    }

    /// The same for a command that makes filters, for which `--kernel` says something of any input.
    pub(crate) fn for_filter(&self) -> LoadArgs {
        LoadArgs {
            makes_filter: true,
            ..self.clone()
        }
    }

    /// The same for a filter that is bound by the program that it becomes part of.
    pub(crate) fn for_embedded_filter(&self) -> LoadArgs {
        LoadArgs {
            keeps_variables: true,
            ..self.for_filter()
        }
    }

    /// The same for a command that makes new filters of programs as well.
    pub(crate) fn for_any_filter(&self) -> LoadArgs {
        LoadArgs {
            remakes_programs: true,
            ..self.for_filter()
        }
    }

    /// What the options say of how to read an input.
    fn options(&self) -> Result<LoadOptions, Failure> {
        let capabilities = match self.capabilities.as_slice() {
            [] if !self.has_no_capabilities => None,
            given => Some(given.to_vec()),
        };
        let arch_json = match &self.arch_json {
            Some(path) => Some(read_table(path)?),
            None => None,
        };
        let defaults = LoadOptions::new(native_arch());
        let policy = front_end::ParseOptions {
            asked_arches: self.arches.clone(),
            stated_arches_win: self.stated_arches_win,
            strict: self.strict,
            kernel: self.kernel,
            capabilities,
            enosys_tail: match self.enosys_tail {
                None | Some(EnosysTail::None) => oci::EnosysTail::None,
                Some(EnosysTail::Runc) => oci::EnosysTail::Runc,
                Some(EnosysTail::Table) => oci::EnosysTail::Table,
            },
            thread: self.thread.clone(),
            minijail: minijail::Settings {
                dialect: self.dialect.map(|dialect| match dialect {
                    Dialect::C => minijail::Dialect::C,
                    Dialect::Python => minijail::Dialect::Python,
                }),
                default_action: self.default_action.clone(),
                kill_process: self.use_kill_process,
                denylist: self.denylist,
                arch_json,
            },
            ..defaults.policy
        };
        Ok(LoadOptions {
            kind: self.from,
            policy,
            bindings: Bindings(self.bindings.clone()),
            keeps_variables: self.keeps_variables,
        })
    }
}

/// The table of minijail's compile tool.
fn read_table(path: &Path) -> Result<minijail::ArchJson, Failure> {
    let unreadable = |reason: &dyn std::fmt::Display| {
        Failure::input(format!("cannot read {}: {reason}", path.display()))
    };
    let input = files::read_file(path).map_err(|error| unreadable(&error))?;
    let text = String::from_utf8(input.bytes).map_err(|error| unreadable(&error))?;
    Ok(minijail::ArchJson {
        name: input.name,
        text,
    })
}

/// Warns of what a policy requires of the installation and its filter does not contain; for commands that hand the
/// filter out without it, or install it so.
pub(crate) fn warn_installation(policy: &Policy, global: &Global) {
    if let Some(warning) = policy.installation.left_out() {
        global.warn(&[warning], &policy.sources);
    }
}

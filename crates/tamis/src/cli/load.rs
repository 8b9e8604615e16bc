//! From an input to a policy's meaning or a program.

mod member;

use std::path::{Path, PathBuf};

use tamis_abi::{Arch, KernelVersion, SeccompData};
use tamis_bpf::forms::Form;
use tamis_bpf::{Program, asm, cache, program};
use tamis_compiler::{CompileError, Compiled};
use tamis_diag::{Diagnostic, SourceId, Sources, code, suggest};
use tamis_policy::front_end::{self, FrontEnd, ParsedPolicy};
use tamis_policy::installation::Installation;
use tamis_policy::minijail::DefaultAction;
use tamis_policy::{matrix, minijail, oci};
use tamis_profile::Profile;
use tamis_prover::Subject;
use tamis_rules::{BindError, Ruleset, Variable, text};

use super::bind::{self, BindArgs};
use super::include::FileLoader;
use super::input::{Input, Kind};
use super::{Failure, Global, exit};

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
    #[arg(long, value_name = "KIND", value_parser = Kind::parser())]
    pub(crate) from: Option<Kind>,
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
    #[command(flatten)]
    bind: BindArgs,
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

/// An input, understood.
pub(crate) enum Loaded {
    Policy(Box<Policy>),
    Program(RawProgram),
}

/// A policy with its meaning.
#[derive(Clone)]
pub(crate) struct Policy {
    /// What to call it.
    pub(crate) name: String,
    /// What it was read from.
    kind: Kind,
    /// How often it says that calls are made.
    frequency: Option<Profile>,
    /// The meaning.
    pub(crate) ruleset: Ruleset,
    /// The run-time variables that it declares, with values or without.
    pub(crate) declared: Vec<Variable>,
    /// The texts that its rules came from.
    pub(crate) sources: Sources,
    /// What the front end said about it, short of errors.
    pub(crate) warnings: Vec<Diagnostic>,
    /// What it wants of whoever installs its filter.
    pub(crate) installation: Installation,
}

/// A program with its name.
#[derive(Clone)]
pub(crate) struct RawProgram {
    /// What to call it.
    pub(crate) name: String,
    /// The program.
    pub(crate) program: Program,
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
    let big_endian = cfg!(target_endian = "big");
    match std::env::consts::ARCH {
        "powerpc64" if !big_endian => Arch::Ppc64le,
        "mips" if !big_endian => Arch::Mipsel,
        "mips64" if !big_endian => Arch::Mipsel64,
        name => Arch::from_name(name).unwrap_or(Arch::X86_64),
    }
}

/// The native architecture and those whose programs its kernel may run as well.
fn native_arches() -> Vec<Arch> {
    match native_arch() {
        Arch::X86_64 => vec![Arch::X86_64, Arch::X86, Arch::X32],
        Arch::Aarch64 => vec![Arch::Aarch64, Arch::Arm],
        Arch::S390x => vec![Arch::S390x, Arch::S390],
        Arch::Ppc64 => vec![Arch::Ppc64, Arch::Ppc],
        Arch::Mips64 => vec![Arch::Mips64, Arch::Mips, Arch::Mips64n32],
        Arch::Mipsel64 => vec![Arch::Mipsel64, Arch::Mipsel, Arch::Mipsel64n32],
        other => vec![other],
    }
}

impl LoadArgs {
    /// The defaults, for an input whose kind is fixed.
    pub(crate) fn of_kind(kind: Kind) -> LoadArgs {
        LoadArgs {
            from: Some(kind),
            ..LoadArgs::default()
        }
    }

    /// The same for inputs of this kind.
    pub(crate) fn with_kind(&self, kind: Option<Kind>) -> LoadArgs {
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
        self.understand(Input::read(path)?)
    }

    /// Understands an input that has been read.
    pub(crate) fn understand(&self, input: Input) -> Result<Loaded, Failure> {
        let policy = match self.parse(input)? {
            Loaded::Policy(policy) => *policy,
            program @ Loaded::Program(_) => return Ok(program),
        };
        let declared = policy.ruleset.variables().to_vec();
        let ruleset = self.bind.apply(policy.ruleset)?;
        match ruleset.variables().first() {
            Some(variable) if !self.keeps_variables => {
                self.bind.check_names(declared.iter())?;
                let diagnostic = bind::unbound(variable);
                Err(Failure::Diagnostics(vec![diagnostic], policy.sources))
            }
            _ => Ok(Loaded::Policy(Box::new(Policy {
                ruleset,
                declared,
                ..policy
            }))),
        }
    }

    fn parse(&self, input: Input) -> Result<Loaded, Failure> {
        refuse_matrix(&input)?;
        let kind = self.from.unwrap_or_else(|| input.kind());
        let name = input.name.clone();
        if kind == Kind::Bpf {
            return self.raw(input).map(Loaded::Program);
        }
        let mut sources = Sources::new();
        let source = input.add_to(&mut sources)?;
        match kind {
            Kind::Policy(front_end) => {
                let mut loader = FileLoader {
                    folders: &self.include_dirs,
                };
                let options = self.front_end_options()?;
                let read = (front_end.parse)(&mut sources, source, &mut loader, &options);
                let policy = self.policy(name, front_end, read, sources, source)?;
                Ok(Loaded::Policy(Box::new(policy)))
            }
            Kind::Rules => match text::parse(&sources, source) {
                Ok(ruleset) => Ok(Loaded::Policy(Box::new(Policy {
                    name,
                    kind,
                    frequency: None,
                    ruleset,
                    declared: Vec::new(),
                    sources,
                    warnings: Vec::new(),
                    installation: Installation::default(),
                }))),
                Err(diagnostics) => Err(misread(kind, source, diagnostics, sources)),
            },
            Kind::Text(form) => self
                .assembled(name, form, source, sources)
                .map(Loaded::Program),
            Kind::Bpf => unreachable!("raw programs are not text"),
        }
    }

    /// The policy of an input that must be one.
    pub(crate) fn load_policy(&self, path: &str, global: &Global) -> Result<Policy, Failure> {
        let loaded = self.load(path, global)?;
        self.check_arches([&loaded])?;
        loaded.into_policy("`tamis disasm` shows a program, `--from` overrides what was detected")
    }

    /// Refuses options for languages that none of a command's inputs is in.
    pub(crate) fn check_profile_options<'l>(
        &self,
        inputs: impl IntoIterator<Item = &'l Loaded, IntoIter: Clone>,
    ) -> Result<(), Failure> {
        let inputs = inputs.into_iter();
        self.bind.check(inputs.clone())?;
        let kinds: Vec<Option<Kind>> = inputs.map(Loaded::kind).collect();
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
        let takes = |kind: &Option<Kind>, option: &str| match kind {
            Some(Kind::Policy(front_end)) => front_end.options.contains(&option),
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
        let is_fixed = |input: &Loaded| input.kind() == Some(Kind::Rules);
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

    /// What the options say about policies of any language.
    fn front_end_options(&self) -> Result<front_end::Options, Failure> {
        let capabilities = match self.capabilities.as_slice() {
            [] if !self.has_no_capabilities => None,
            given => Some(given.to_vec()),
        };
        let arch_json = match &self.arch_json {
            Some(path) => Some(read_table(path)?),
            None => None,
        };
        Ok(front_end::Options {
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
            ..front_end::Options::new(native_arches())
        })
    }

    /// Keeps the ruleset and the warnings, or fails with everything.
    fn policy(
        &self,
        name: String,
        front_end: &'static FrontEnd,
        read: ParsedPolicy,
        sources: Sources,
        root: SourceId,
    ) -> Result<Policy, Failure> {
        let mut warnings = read.parsed.diagnostics;
        let kind = Kind::Policy(front_end);
        let Some(ruleset) = read.parsed.ruleset else {
            return Err(misread(kind, root, warnings, sources));
        };
        if !warnings.is_empty()
            && let Some(diagnostic) = mistaken(kind, root, &sources)
        {
            // A reader that ignores what it doesn't understand would make a filter all the same.
            return Err(Failure::Diagnostics(vec![diagnostic], sources));
        }
        let mut frequency: Option<Profile> = None;
        for source in read.frequencies {
            let reading = tamis_profile::read(&sources, source, self.call_arch());
            let Some(profile) = reading.profile else {
                return Err(Failure::Diagnostics(reading.diagnostics, sources));
            };
            warnings.extend(reading.diagnostics);
            frequency.get_or_insert_default().merge(&profile);
        }
        Ok(Policy {
            name,
            kind,
            frequency,
            ruleset,
            declared: Vec::new(),
            sources,
            warnings,
            installation: read.installation,
        })
    }

    fn raw(&self, input: Input) -> Result<RawProgram, Failure> {
        let endian = self.call_arch().endian();
        let Some(insns) = program::insns_from_bytes(&input.bytes, endian) else {
            if let Some(failure) = text_for_program(&input) {
                return Err(failure);
            }
            let length = input.bytes.len();
            return Err(invalid(format!(
                "{}: {length} bytes are not a whole number of 8-byte instructions",
                input.name
            )));
        };
        match Program::new(insns, endian) {
            Ok(program) => Ok(RawProgram {
                name: input.name,
                program,
            }),
            Err(error) => Err(text_for_program(&input)
                .unwrap_or_else(|| invalid(format!("{}: {error}", input.name)))),
        }
    }

    fn assembled(
        &self,
        name: String,
        form: &'static Form,
        source: SourceId,
        sources: Sources,
    ) -> Result<RawProgram, Failure> {
        let assembled = (form.read)(&sources.get(source).text, source, self.call_arch());
        match assembled.and_then(asm::Assembly::into_program) {
            Ok(program) => Ok(RawProgram { name, program }),
            Err(diagnostics) => Err(misread(Kind::Text(form), source, diagnostics, sources)),
        }
    }
}

/// The table of minijail's compile tool.
fn read_table(path: &Path) -> Result<minijail::ArchJson, Failure> {
    let unreadable = |reason: &dyn std::fmt::Display| {
        Failure::input(format!("cannot read {}: {reason}", path.display()))
    };
    let input = Input::read_file(path).map_err(|error| unreadable(&error))?;
    let text = String::from_utf8(input.bytes).map_err(|error| unreadable(&error))?;
    Ok(minijail::ArchJson {
        name: input.name,
        text,
    })
}

/// Refuses a matrix of options, which is no policy by itself.
fn refuse_matrix(input: &Input) -> Result<(), Failure> {
    let Ok(text) = std::str::from_utf8(&input.bytes) else {
        return Ok(());
    };
    if !matrix::recognises(text) {
        return Ok(());
    }
    let mut sources = Sources::new();
    let source = sources.add(input.name.as_str(), text);
    let help = format!(
        "`tamis precompile {}` compiles a filter for each combination",
        input.name
    );
    let diagnostic =
        front_end::mistaken(source, "a policy or program", "a matrix of options", &help);
    Err(Failure::Diagnostics(vec![diagnostic], sources))
}

/// What to say of a text with mistakes: if it looks like another kind, only that.
fn misread(
    kind: Kind,
    source: SourceId,
    diagnostics: Vec<Diagnostic>,
    sources: Sources,
) -> Failure {
    let mistaken = mistaken(kind, source, &sources);
    let diagnostics = mistaken.map_or(diagnostics, |diagnostic| vec![diagnostic]);
    Failure::Diagnostics(diagnostics, sources)
}

/// What to say of a text that looks like another kind than it is read as, if it does.
fn mistaken(kind: Kind, source: SourceId, sources: &Sources) -> Option<Diagnostic> {
    let text = &sources.get(source).text;
    let other = Kind::of_text(text).filter(|_| !kind.recognises(text))?;
    let help = format!("use `--from {}`", other.name());
    let diagnostic = front_end::mistaken(source, kind.title(), other.title(), &help);
    Some(diagnostic)
}

/// What to say if a text was given where a raw program is expected.
fn text_for_program(input: &Input) -> Option<Failure> {
    let text = std::str::from_utf8(&input.bytes).ok()?;
    Kind::of_text(text).filter(|kind| *kind != Kind::Bpf)?;
    let mut sources = Sources::new();
    let source = sources.add(input.name.as_str(), text);
    Some(misread(Kind::Bpf, source, Vec::new(), sources))
}

fn invalid(message: String) -> Failure {
    let diagnostic = Diagnostic::error(code::INVALID_PROGRAM, message);
    Failure::Diagnostics(vec![diagnostic], Sources::new())
}

impl Policy {
    /// The architectures that it has rules for.
    pub(crate) fn arches(&self) -> Vec<Arch> {
        let sections = self.ruleset.sections().iter();
        sections.map(|section| section.arch).collect()
    }

    /// Says what it wants of whoever installs its filter, which the filter doesn't say.
    pub(crate) fn tell_of_installation(&self, global: &Global) {
        if let Some(warning) = self.installation.left_out() {
            global.warn(&[warning], &self.sources);
        }
    }

    /// What there is to say of it as a filter: its warnings, and what it wants of whoever installs the filter.
    pub(crate) fn all_warnings(&self) -> Vec<Diagnostic> {
        let warnings = self.warnings.iter().cloned();
        warnings.chain(self.installation.left_out()).collect()
    }

    /// The options with the counts that the policy names, unless they have others.
    pub(crate) fn with_frequency(
        &self,
        options: tamis_compiler::Options,
    ) -> tamis_compiler::Options {
        tamis_compiler::Options {
            profile: options.profile.or_else(|| self.frequency.clone()),
            ..options
        }
    }

    /// Compiles the policy.
    pub(crate) fn compile(&self, options: &tamis_compiler::Options) -> Result<Compiled, Failure> {
        tamis_compiler::compile(&self.ruleset, options).map_err(|error| self.failure(&error))
    }

    /// The program that the policy was compiled to.
    ///
    /// # Errors
    /// If the policy has a variable without a value.
    pub(crate) fn program<'c>(&self, compiled: &'c Compiled) -> Result<&'c Program, Failure> {
        compiled.program().map_err(|error| {
            let diagnostic = match error {
                BindError::Unset { variable } => bind::unbound(&variable),
                other => unreachable!("nothing was bound: {other}"),
            };
            Failure::Diagnostics(vec![diagnostic], self.sources.clone())
        })
    }

    /// Why there is no program for the policy.
    pub(crate) fn failure(&self, error: &CompileError) -> Failure {
        match error.diagnostic() {
            Some(diagnostic) => Failure::Diagnostics(vec![diagnostic], self.sources.clone()),
            None => Failure::Message {
                message: error.to_string(),
                help: Some(
                    "please report this with the policy and the output of `tamis bisect`; no program was \
                     written"
                        .to_owned(),
                ),
                code: exit::BUG,
            },
        }
    }
}

impl RawProgram {
    /// Whether the kernel can answer a call without running the program: since 5.11, and not for x32,
    /// which its bitmaps don't cover.
    pub(crate) fn is_cacheable(&self, call: &SeccompData) -> bool {
        let has_bitmap = Arch::of_call(call.arch, call.nr) != Some(Arch::X32);
        has_bitmap && cache::is_cacheable(&self.program, call.arch, call.nr)
    }
}

impl Loaded {
    /// What a policy was read from; `None` for programs.
    fn kind(&self) -> Option<Kind> {
        match self {
            Loaded::Policy(policy) => Some(policy.kind),
            Loaded::Program(_) => None,
        }
    }

    /// The function that it stands for.
    pub(crate) fn subject(&self) -> Subject<'_> {
        match self {
            Loaded::Policy(policy) => Subject::Ruleset(&policy.ruleset),
            Loaded::Program(raw) => Subject::Program(&raw.program),
        }
    }

    /// The policy, for commands that need one; `help` says what to do with a program.
    pub(crate) fn into_policy(self, help: &str) -> Result<Policy, Failure> {
        match self {
            Loaded::Policy(policy) => Ok(*policy),
            Loaded::Program(raw) => Err(Failure::usage(
                format!("{} is a program, not a policy", raw.name),
                help,
            )),
        }
    }

    /// Says what a policy wants of whoever installs its filter; for commands that hand the filter out without it, or
    /// install it so.
    pub(crate) fn tell_of_installation(&self, global: &Global) {
        if let Loaded::Policy(policy) = self {
            policy.tell_of_installation(global);
        }
    }

    /// The program: as read, or what the policy compiles to.
    pub(crate) fn into_program(self) -> Result<RawProgram, Failure> {
        self.into_program_for(&tamis_compiler::Options::default())
    }

    /// The same with options for the compiler.
    pub(crate) fn into_program_for(
        self,
        options: &tamis_compiler::Options,
    ) -> Result<RawProgram, Failure> {
        match self {
            Loaded::Program(raw) => Ok(raw),
            Loaded::Policy(policy) => {
                let compiled = policy.compile(&policy.with_frequency(options.clone()))?;
                Ok(RawProgram {
                    program: policy.program(&compiled)?.clone(),
                    name: policy.name,
                })
            }
        }
    }
}

//! From an input to a ruleset or a program.

use tamis_abi::{Arch, Endian};
use tamis_bpf::facts::compared_archs;
use tamis_bpf::forms::{self, Form};
use tamis_bpf::{Program, asm, program};
use tamis_diag::{Diagnostic, Severity, SourceId, Sources};
use tamis_policy::front_end::ParsedPolicy;
use tamis_policy::installation::Installation;
use tamis_policy::loader::Loader;
use tamis_profile::Profile;
use tamis_rules::text;

use crate::bindings;
#[cfg(feature = "languages")]
use crate::check;
use crate::code;
use crate::error::Error;
use crate::foreign;
use crate::input::Input;
use crate::kind::{InputKind, mistaken};
use crate::loaded::{Loaded, NamedProgram, Policy};
use crate::options::LoadOptions;

/// Loads an input: detects its kind, parses it with its included files, and binds variables. Warnings are in the
/// result.
///
/// # Errors
/// If the input has mistakes, an included file can't be read, or a variable lacks a value.
pub fn load(input: Input, options: &LoadOptions, loader: &mut dyn Loader) -> Result<Loaded, Error> {
    let policy = match parse(input, options, loader)? {
        Loaded::Policy(policy) => *policy,
        program @ Loaded::Program(_) => return Ok(program),
    };
    Ok(Loaded::Policy(Box::new(bound(policy, options)?)))
}

/// The policy with the values of the options for its variables.
pub(crate) fn bound(policy: Policy, options: &LoadOptions) -> Result<Policy, Error> {
    let declared = policy.ruleset.variables().to_vec();
    let ruleset = options.bindings.apply(policy.ruleset)?;
    match ruleset.variables().first() {
        Some(variable) if !options.keeps_variables => {
            options.bindings.check_names(declared.iter())?;
            let diagnostic = bindings::unbound(variable);
            Err(Error::diagnostic(diagnostic, policy.sources))
        }
        _ => Ok(Policy {
            ruleset,
            declared,
            ..policy
        }),
    }
}

fn parse(input: Input, options: &LoadOptions, loader: &mut dyn Loader) -> Result<Loaded, Error> {
    refuse_output(&input, options.kind)?;
    #[cfg(feature = "toml")]
    refuse_matrix(&input)?;
    let (kind, certainty) = match options.kind {
        Some(named) => (named, Certainty::Named),
        None => match input.evident_kind() {
            Some(evident) => (evident, Certainty::Evident),
            None => (input.guessed_kind(), Certainty::Guessed),
        },
    };
    let name = input.name.clone();
    options.named.check_input(&name, kind)?;
    if kind == InputKind::Bpf {
        return raw(input, certainty, options).map(Loaded::Program);
    }
    let interpretation = Interpretation {
        kind,
        certainty,
        arch: options.call_arch(),
    };
    if let InputKind::Policy(front_end) = kind
        && !front_end.ignores_byte_order_mark
    {
        input.refuse_byte_order_mark(front_end)?;
    }
    let mut sources = Sources::new();
    let source = input.add_to(&mut sources)?;
    match kind {
        InputKind::Policy(front_end) => {
            let parse_options = options.named.apply(front_end, &options.policy, loader)?;
            #[cfg(feature = "languages")]
            check::native_only(&parse_options)?;
            loader.begin(&name);
            let read = (front_end.parse)(&mut sources, source, loader, &parse_options);
            let policy = policy(name, interpretation, read, sources, source, options)?;
            Ok(Loaded::Policy(Box::new(policy)))
        }
        InputKind::Rules => match text::parse(&sources, source) {
            Ok(ruleset) => Ok(Loaded::Policy(Box::new(Policy {
                name,
                kind,
                frequency: None,
                ruleset,
                declared: Vec::new(),
                sources,
                warnings: Vec::new(),
                installation: Installation::default(),
                states_arches: true,
                known_until: None,
                selection: None,
            }))),
            Err(diagnostics) => Err(misread(interpretation, source, diagnostics, sources)),
        },
        InputKind::Text(form) => match assembled(form, source, &sources, options) {
            Ok(program) => Ok(Loaded::Program(NamedProgram { name, program })),
            Err(diagnostics) => Err(misread(interpretation, source, diagnostics, sources)),
        },
        InputKind::Bpf => unreachable!("raw programs are not text"),
    }
}

/// Separates the ruleset with its warnings from the errors.
fn policy(
    name: String,
    interpretation: Interpretation,
    read: ParsedPolicy,
    sources: Sources,
    root: SourceId,
    options: &LoadOptions,
) -> Result<Policy, Error> {
    let mut warnings = read.parsed.diagnostics;
    let kind = interpretation.kind;
    let Some(ruleset) = read.parsed.ruleset else {
        return Err(misread(interpretation, root, warnings, sources));
    };
    let is_note = |own: &Diagnostic| own.severity == Severity::Note;
    if !warnings.iter().all(is_note)
        && let Some(diagnostic) = mistaken(kind, root, &sources)
    {
        // Ignored settings would still yield a filter, a wrong one.
        return Err(Error::diagnostic(diagnostic, sources));
    }
    let frequency = counted(&read.frequencies, &sources, options, &mut warnings)?;
    Ok(Policy {
        name,
        kind,
        frequency,
        ruleset,
        declared: Vec::new(),
        sources,
        warnings,
        installation: read.installation,
        states_arches: read.states_arches,
        known_until: read.known_until,
        selection: read.selection,
    })
}

/// The counts of the files that a policy names; warnings are added.
#[cfg(feature = "languages")]
fn counted(
    files: &[SourceId],
    sources: &Sources,
    options: &LoadOptions,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Option<Profile>, Error> {
    let mut counted: Option<Profile> = None;
    for source in files {
        let reading = tamis_profile::read(sources, *source, options.call_arch());
        let Some(profile) = reading.profile else {
            // The file may be confidential, so its lines are not shown.
            let message = format!("{} is no table of calls and counts", sources.name(*source));
            let diagnostic = Diagnostic::error(code::MINIJAIL_INCLUDE, message)
                .help("remove the `@frequency` that names it");
            return Err(Error::diagnostic(diagnostic, sources.clone()));
        };
        warnings.extend(reading.diagnostics);
        counted.get_or_insert_default().merge(&profile);
    }
    Ok(counted)
}

/// The language of tamis names no files of counts.
#[cfg(not(feature = "languages"))]
fn counted(
    _: &[SourceId],
    _: &Sources,
    _: &LoadOptions,
    _: &mut Vec<Diagnostic>,
) -> Result<Option<Profile>, Error> {
    Ok(None)
}

fn raw(input: Input, certainty: Certainty, options: &LoadOptions) -> Result<NamedProgram, Error> {
    let endian = options.call_arch().endian();
    let foreign = |invalid| match certainty {
        Certainty::Guessed => foreign::binary_refusal(&input, invalid),
        Certainty::Named | Certainty::Evident => text_for_program(&input),
    };
    let Some(insns) = program::insns_from_bytes(&input.bytes, endian) else {
        if let Some(error) = foreign(None) {
            return Err(error);
        }
        let length = input.bytes.len();
        return Err(invalid(format!(
            "{}: {length} bytes are not a whole number of 8-byte instructions",
            input.name
        )));
    };
    match Program::new(insns, endian) {
        Ok(program) => Ok(NamedProgram {
            name: input.name,
            program,
        }),
        Err(error) => Err(of_other_machine(&input, options)
            .or_else(|| foreign(Some(&error)))
            .unwrap_or_else(|| invalid(format!("{}: {error}", input.name)))),
    }
}

/// The error for a program that is valid only in the other byte order.
fn of_other_machine(input: &Input, options: &LoadOptions) -> Option<Error> {
    let (other, machine) = match options.call_arch().endian() {
        Endian::Little => (Endian::Big, "big-endian"),
        Endian::Big => (Endian::Little, "little-endian"),
    };
    let insns = program::insns_from_bytes(&input.bytes, other)?;
    let program = Program::new(insns, other).ok()?;
    let message = format!("{} is a filter of a {machine} machine", input.name);
    let help = match (options.is_for_this_machine, only_arch(&program)) {
        (true, _) => "only machines of that byte order can run it".to_owned(),
        (false, Some(arch)) => format!("name its architecture: `--arch {arch}`"),
        (false, None) => "name the architecture of that machine: `--arch ARCH`".to_owned(),
    };
    let diagnostic = Diagnostic::error(code::INVALID_PROGRAM, message).help(help);
    Some(Error::diagnostic(diagnostic, Sources::new()))
}

/// The architecture that a program compares with, if there is only one.
fn only_arch(program: &Program) -> Option<Arch> {
    let mut tested = compared_archs(program).into_iter();
    let (Some(audit), None) = (tested.next(), tested.next()) else {
        return None;
    };
    Arch::all().find(|arch| arch.audit() == audit && arch.endian() == program.endian())
}

fn assembled(
    form: &'static Form,
    source: SourceId,
    sources: &Sources,
    options: &LoadOptions,
) -> Result<Program, Vec<Diagnostic>> {
    let arch = options.call_arch();
    let assembled = (form.read)(&sources.get(source).text, source, arch);
    assembled.and_then(asm::Assembly::into_program)
}

/// Parts of the first line of all generated C and Rust code.
const GENERATED: &[&str] = &[", made by tamis ", "not this file."];

/// Outputs of tamis that are not inputs: their beginning after the comment of `tamis bpf decompile`, further parts of that
/// line, and the description.
const OUTPUTS: [(&str, &[&str], &str); 6] = [
    (
        "// Code generated by tamis ",
        &[" from ", "DO NOT EDIT."],
        "Go source code",
    ),
    ("// The seccomp filter of ", GENERATED, "Rust source code"),
    ("// The seccomp filters of ", GENERATED, "Rust source code"),
    (
        "/*\n * The seccomp filters of ",
        GENERATED,
        "C source code of several filters",
    ),
    (
        "#\n# pseudo filter code start",
        &[],
        "libseccomp's pseudo filter code",
    ),
    ("w0 ^= w0\nw7 ^= w7\nr6 = r1\n", &[], "extended BPF"),
];

/// Rejects outputs of tamis that are not inputs.
fn refuse_output(input: &Input, named: Option<InputKind>) -> Result<(), Error> {
    let text = std::str::from_utf8(&input.bytes).unwrap_or_default();
    let schema = schema(text).filter(|_| !(forms::DOCUMENT.recognises)(text));
    let what = schema.map(|schema| format!("a document of the schema {schema}"));
    match what.or_else(|| output_of(text, named.is_some()).map(str::to_owned)) {
        Some(what) => Err(Error::usage(
            format!("{} is {what}, which is written and not read", input.name),
            "name the policy that it was made of, or `tamis compile --emit bpf` of it",
        )),
        None => Ok(()),
    }
}

/// The output that a text is. A text that begins with a comment of C may be a policy if the caller names its kind.
fn output_of(text: &str, is_named: bool) -> Option<&'static str> {
    let behind_comment = text
        .strip_prefix("# Decompiled by tamis")
        .and_then(|rest| rest.split_once("\n\n"));
    let body = behind_comment.map_or(text, |(_, body)| body);
    let is_it = |(beginning, parts, _): &&(&str, &[&str], &str)| {
        body.strip_prefix(beginning).is_some_and(|rest| {
            let line = rest.lines().next().unwrap_or_default();
            let may_be_policy = is_named && !parts.is_empty();
            !may_be_policy && parts.iter().all(|part| line.contains(part))
        })
    };
    OUTPUTS.iter().find(is_it).map(|(_, _, what)| *what)
}

/// The `schema` of a JSON document of tamis.
fn schema(text: &str) -> Option<&str> {
    let value = text.trim_start().strip_prefix('{')?.trim_start();
    let value = value.strip_prefix("\"schema\"")?.trim_start();
    let (schema, _) = value
        .strip_prefix(':')?
        .trim_start()
        .strip_prefix('"')?
        .split_once('"')?;
    let is_name = schema.bytes().all(|byte| byte.is_ascii_graphic());
    (is_name && schema.starts_with("tamis.")).then_some(schema)
}

/// Rejects a matrix of options, which is no policy by itself.
#[cfg(feature = "toml")]
fn refuse_matrix(input: &Input) -> Result<(), Error> {
    let Ok(text) = std::str::from_utf8(&input.bytes) else {
        return Ok(());
    };
    if !tamis_policy::matrix::recognises(text) {
        return Ok(());
    }
    let mut sources = Sources::new();
    let source = sources.add(input.name.as_str(), text);
    let help = format!(
        "`tamis precompile {}` compiles a filter for each combination",
        input.name
    );
    let is = "a matrix of options";
    let diagnostic = tamis_policy::front_end::mistaken(source, "a policy or program", is, &help);
    Err(Error::diagnostic(diagnostic, sources))
}

/// The assumed kind of a text.
#[derive(Clone, Copy)]
struct Interpretation {
    kind: InputKind,
    certainty: Certainty,
    /// The architecture of calls without one.
    arch: Arch,
}

/// The reason for the assumed kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// The caller named it.
    Named,
    /// The name or the content determined it.
    Evident,
    /// The default.
    Guessed,
}

/// The error for a text with mistakes. If the text resembles another kind, the error states it along with the first
/// mistake, because the resemblance can be wrong. For unsupported kinds of files that is the only error.
fn misread(
    interpretation: Interpretation,
    source: SourceId,
    diagnostics: Vec<Diagnostic>,
    sources: Sources,
) -> Error {
    if interpretation.certainty != Certainty::Named {
        let is_guess = interpretation.certainty == Certainty::Guessed;
        let refusal = foreign::text_refusal(source, &sources, is_guess, interpretation.arch);
        if let Some(refusal) = refusal {
            return refusal;
        }
    }
    let mistaken = mistaken(interpretation.kind, source, &sources);
    let diagnostics = match mistaken {
        None => diagnostics,
        Some(mistaken) => {
            let first = diagnostics.into_iter().find(Diagnostic::is_error);
            std::iter::once(mistaken).chain(first).collect()
        }
    };
    Error::Diagnostics(diagnostics, sources)
}

/// The error for a text in place of a raw program.
fn text_for_program(input: &Input) -> Option<Error> {
    let text = std::str::from_utf8(&input.bytes).ok()?;
    InputKind::of_text(text).filter(|kind| *kind != InputKind::Bpf)?;
    let mut sources = Sources::new();
    let source = sources.add(input.name.as_str(), text);
    let mistaken = mistaken(InputKind::Bpf, source, &sources)?;
    Some(Error::diagnostic(mistaken, sources))
}

fn invalid(message: String) -> Error {
    let diagnostic = Diagnostic::error(code::INVALID_PROGRAM, message);
    Error::diagnostic(diagnostic, Sources::new())
}

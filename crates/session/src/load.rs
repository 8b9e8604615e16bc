//! From an input to a policy's meaning or a program.

use tamis_bpf::forms::Form;
use tamis_bpf::{Program, asm, program};
use tamis_diag::{Diagnostic, SourceId, Sources, code};
use tamis_policy::front_end::{FrontEnd, ParsedPolicy};
use tamis_policy::installation::Installation;
use tamis_policy::loader::Loader;
use tamis_profile::Profile;
use tamis_rules::text;

use crate::bindings;
use crate::check;
use crate::error::Error;
use crate::input::Input;
use crate::kind::{InputKind, mistaken};
use crate::loaded::{Loaded, NamedProgram, Policy};
use crate::options::LoadOptions;

/// Understands an input: finds out its kind, parses it with what it includes, and binds variables. Warnings are in the
/// result.
///
/// # Errors
/// If the input has mistakes, a file that it includes can't be had, or variables want values.
pub fn load(input: Input, options: &LoadOptions, loader: &mut dyn Loader) -> Result<Loaded, Error> {
    let policy = match parse(input, options, loader)? {
        Loaded::Policy(policy) => *policy,
        program @ Loaded::Program(_) => return Ok(program),
    };
    let declared = policy.ruleset.variables().to_vec();
    let ruleset = options.bindings.apply(policy.ruleset)?;
    match ruleset.variables().first() {
        Some(variable) if !options.keeps_variables => {
            options.bindings.check_names(declared.iter())?;
            let diagnostic = bindings::unbound(variable);
            Err(Error::diagnostic(diagnostic, policy.sources))
        }
        _ => Ok(Loaded::Policy(Box::new(Policy {
            ruleset,
            declared,
            ..policy
        }))),
    }
}

fn parse(input: Input, options: &LoadOptions, loader: &mut dyn Loader) -> Result<Loaded, Error> {
    refuse_source_code(&input)?;
    #[cfg(feature = "toml")]
    refuse_matrix(&input)?;
    let kind = options.kind.unwrap_or_else(|| input.kind());
    let name = input.name.clone();
    options.named.check_input(&name, kind)?;
    if kind == InputKind::Bpf {
        return raw(input, options).map(Loaded::Program);
    }
    let mut sources = Sources::new();
    let source = input.add_to(&mut sources)?;
    match kind {
        InputKind::Policy(front_end) => {
            let parse_options = options.named.apply(front_end, &options.policy, loader)?;
            check::native_only(&parse_options)?;
            loader.begin(&name);
            let read = (front_end.parse)(&mut sources, source, loader, &parse_options);
            let policy = policy(name, front_end, read, sources, source, options)?;
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
            }))),
            Err(diagnostics) => Err(misread(kind, source, diagnostics, sources)),
        },
        InputKind::Text(form) => {
            assembled(name, form, source, sources, options).map(Loaded::Program)
        }
        InputKind::Bpf => unreachable!("raw programs are not text"),
    }
}

/// Keeps the ruleset and the warnings, or fails with everything.
fn policy(
    name: String,
    front_end: &'static FrontEnd,
    read: ParsedPolicy,
    sources: Sources,
    root: SourceId,
    options: &LoadOptions,
) -> Result<Policy, Error> {
    let mut warnings = read.parsed.diagnostics;
    let kind = InputKind::Policy(front_end);
    let Some(ruleset) = read.parsed.ruleset else {
        return Err(misread(kind, root, warnings, sources));
    };
    if !warnings.is_empty()
        && let Some(diagnostic) = mistaken(kind, root, &sources)
    {
        // A reader that ignores what it doesn't understand would make a filter all the same.
        return Err(Error::diagnostic(diagnostic, sources));
    }
    let mut frequency: Option<Profile> = None;
    for source in read.frequencies {
        let reading = tamis_profile::read(&sources, source, options.call_arch());
        let Some(profile) = reading.profile else {
            // It may be any file of the caller's: its lines are not shown.
            let message = format!("{} is no table of calls and counts", sources.name(source));
            let diagnostic = Diagnostic::error(code::MINIJAIL_INCLUDE, message)
                .help("remove the `@frequency` that names it");
            return Err(Error::diagnostic(diagnostic, sources));
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
        states_arches: read.states_arches,
    })
}

fn raw(input: Input, options: &LoadOptions) -> Result<NamedProgram, Error> {
    let endian = options.call_arch().endian();
    let Some(insns) = program::insns_from_bytes(&input.bytes, endian) else {
        if let Some(error) = text_for_program(&input) {
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
        Err(error) => {
            Err(text_for_program(&input)
                .unwrap_or_else(|| invalid(format!("{}: {error}", input.name))))
        }
    }
}

fn assembled(
    name: String,
    form: &'static Form,
    source: SourceId,
    sources: Sources,
    options: &LoadOptions,
) -> Result<NamedProgram, Error> {
    let arch = options.call_arch();
    let assembled = (form.read)(&sources.get(source).text, source, arch);
    match assembled.and_then(asm::Assembly::into_program) {
        Ok(program) => Ok(NamedProgram { name, program }),
        Err(diagnostics) => Err(misread(InputKind::Text(form), source, diagnostics, sources)),
    }
}

/// The outputs of tamis that are no input: how they begin, after their first comment characters, and what they are.
const OUTPUTS: [(&str, &str); 3] = [
    ("// Code generated by tamis", "Go source code"),
    ("// The seccomp filter of ", "Rust source code"),
    (
        "#\n# pseudo filter code start",
        "libseccomp's pseudo filter code",
    ),
];

/// Refuses what tamis writes and doesn't read.
fn refuse_source_code(input: &Input) -> Result<(), Error> {
    let output = OUTPUTS
        .iter()
        .find(|(start, _)| input.bytes.starts_with(start.as_bytes()));
    match output {
        Some((_, what)) => Err(Error::usage(
            format!("{} is {what}, which is written and not read", input.name),
            "name the policy that it was made of, or `tamis compile --emit bpf` of it",
        )),
        None => Ok(()),
    }
}

/// Refuses a matrix of options, which is no policy by itself.
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

/// What to say of a text with mistakes: if it looks like another kind, that and the first of them. The looks can be
/// wrong, and then only the mistake helps.
fn misread(
    kind: InputKind,
    source: SourceId,
    diagnostics: Vec<Diagnostic>,
    sources: Sources,
) -> Error {
    let mistaken = mistaken(kind, source, &sources);
    let diagnostics = match mistaken {
        None => diagnostics,
        Some(mistaken) => {
            let first = diagnostics.into_iter().find(Diagnostic::is_error);
            std::iter::once(mistaken).chain(first).collect()
        }
    };
    Error::Diagnostics(diagnostics, sources)
}

/// What to say if a text was given where a raw program is expected.
fn text_for_program(input: &Input) -> Option<Error> {
    let text = std::str::from_utf8(&input.bytes).ok()?;
    InputKind::of_text(text).filter(|kind| *kind != InputKind::Bpf)?;
    let mut sources = Sources::new();
    let source = sources.add(input.name.as_str(), text);
    Some(misread(InputKind::Bpf, source, Vec::new(), sources))
}

fn invalid(message: String) -> Error {
    let diagnostic = Diagnostic::error(code::INVALID_PROGRAM, message);
    Error::diagnostic(diagnostic, Sources::new())
}

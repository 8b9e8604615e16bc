//! Profiles as resources of Kubernetes: `SeccompProfile` of the security-profiles-operator, in YAML or JSON.
//!
//! ```text
//! apiVersion: security-profiles-operator.x-k8s.io/v1beta1
//! kind: SeccompProfile
//! metadata:
//!   name: reader
//! spec:
//!   defaultAction: SCMP_ACT_ERRNO
//!   syscalls:
//!   - action: SCMP_ACT_ALLOW
//!     names: [read, write, exit_group]
//! ```
//!
//! The operator writes `spec` to the nodes as the profile of the container runtime, so it has the meaning of
//! [`oci`] with another schema. The rules of a base profile are not in the file. A missing base profile is a
//! warning, or an error if the filter would allow more without it. The cluster is never queried.

pub mod code;

use tamis_diag::document::Range;
use tamis_diag::document::{Array, Content, Document, Object, Value};
use tamis_diag::json::{Dialect, Reader, member, start_of};
use tamis_diag::{Diagnostic, SourceId, Sources, suggest};

use crate::front_end::FrontEnd;
use crate::installation::Installation;
use crate::oci::{self, ParsedProfile};
use crate::option::{LanguageOption, OptionForm};
use crate::selection::Selection;
use crate::{Parsed, limits};

/// The language in the registry.
pub static FRONT_END: FrontEnd = FrontEnd {
    name: "spo",
    title: "a SeccompProfile resource",
    plural: "SeccompProfile resources",
    about: "A SeccompProfile of the security-profiles-operator for Kubernetes, YAML or JSON",
    extensions: &["yaml", "yml", "json"],
    codes: code::SPO,
    options: &[&RESOURCE, &oci::ENOSYS_TAIL, &oci::NATIVE_ONLY, &oci::TEXT],
    uses_kernel: false,
    has_separate_default: true,
    ignores_byte_order_mark: true,
    recognises,
    parse: |sources, source, _, common| {
        let name = common.spo.resource.as_deref();
        parse_named(sources, source, &oci::OciOptions::from_common(common), name).into()
    },
};

static RESOURCE: LanguageOption = LanguageOption {
    name: "resource",
    help: "The `metadata.name` of the profile, if the file has several",
    default: "the only profile",
    form: OptionForm::Text {
        placeholder: "NAME",
        set: |options, name| {
            options.spo.resource = Some(name.to_owned());
            Ok(())
        },
    },
};

/// The options of the language, besides those of OCI profiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The name of the profile in a file with several.
    pub resource: Option<String>,
}

static DIALECT: Dialect = Dialect {
    document: "a resource",
    max_bytes: limits::MAX_SOURCE_BYTES,
    max_depth: limits::MAX_NESTING,
    too_large: crate::code::FILE_TOO_LARGE,
    syntax: code::SPO_SYNTAX,
    nesting: code::SPO_NESTING,
    duplicate_key: code::SPO_DUPLICATE_KEY,
    wrong_type: crate::code::OCI_TYPE,
    range: crate::code::OCI_RANGE,
    missing: crate::code::OCI_MISSING,
    unknown_name: crate::code::OCI_UNKNOWN_NAME,
    unknown_member: crate::code::OCI_UNKNOWN_MEMBER,
    unknown_member_label: "Kubernetes drops this",
};

const KIND: &str = "SeccompProfile";
const GROUP: &str = "security-profiles-operator.x-k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
const RESOURCE_MEMBERS: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

/// Whether a text resembles a Kubernetes resource: YAML or JSON with `apiVersion` and `kind`.
pub(crate) fn recognises(text: &str) -> bool {
    let has_key = |key: &str| {
        text.match_indices(key).any(|(at, _)| {
            let before = text[..at].trim_end_matches(['"', '\'', ' ', '-']);
            let after = text[at + key.len()..].trim_start_matches(['"', '\'']);
            let begins = before.is_empty() || before.ends_with(['\n', '{', ',', '\r', '\t']);
            begins && after.trim_start().starts_with(':')
        })
    };
    has_key("apiVersion") && has_key("kind")
}

/// Parses the only `SeccompProfile` of a text. The options are those of OCI profiles; capabilities have no effect.
///
/// ```
/// use tamis_abi::{Action, Arch};
/// use tamis_policy::{oci, spo};
///
/// let mut sources = tamis_diag::Sources::new();
/// let text = "apiVersion: security-profiles-operator.x-k8s.io/v1beta1\nkind: SeccompProfile\n\
///             spec:\n  defaultAction: SCMP_ACT_ERRNO\n  syscalls:\n  - action: SCMP_ACT_ALLOW\n    \
///             names: [read, write]\n";
/// let source = sources.add("profile.yaml", text);
/// let profile = spo::parse(&sources, source, &oci::OciOptions::docker(Arch::X86_64));
/// let ruleset = profile.parsed.ruleset.expect("it is a profile");
/// assert_eq!(ruleset.sections()[0].default, Action::errno(1));
/// ```
pub fn parse(sources: &Sources, source: SourceId, options: &oci::OciOptions) -> ParsedProfile {
    parse_named(sources, source, options, None)
}

/// Parses the `SeccompProfile` of this name, or the only one.
fn parse_named(
    sources: &Sources,
    source: SourceId,
    options: &oci::OciOptions,
    name: Option<&str>,
) -> ParsedProfile {
    let text = sources.get(source).text.as_ref();
    let mut reader = Reader::new(&DIALECT, source, options.strict);
    let documents = match is_json(text) {
        true => reader.parse(text),
        false => yaml_documents(&mut reader, text),
    };
    let spec = documents
        .as_ref()
        .and_then(|documents| only_spec(&mut reader, documents, name));
    match spec {
        Some(spec) => {
            check_spec(&mut reader, spec);
            oci::parse_object(sources, reader, spec, &oci::OPERATOR, options)
        }
        None => ParsedProfile {
            parsed: Parsed::new(None, reader.diagnostics),
            installation: Installation::default(),
            selection: Selection::default(),
        },
    }
}

#[cfg(feature = "yaml")]
fn yaml_documents<'t>(reader: &mut Reader, text: &'t str) -> Option<Document<'t>> {
    tamis_diag::yaml::documents(reader, text, code::SPO_YAML)
}

/// Rejects YAML in a build without its parser.
#[cfg(not(feature = "yaml"))]
fn yaml_documents<'t>(reader: &mut Reader, _: &'t str) -> Option<Document<'t>> {
    let message = "this program was built without a parser for YAML";
    let diagnostic = Diagnostic::error(code::SPO_YAML, message)
        .label(reader.span(Range::new(0, 0)), "the resource is YAML")
        .help("convert it to JSON, or build with the feature `yaml` of tamis");
    reader.push(diagnostic);
    None
}

fn is_json(text: &str) -> bool {
    let inside = text.trim_start().strip_prefix('{');
    inside.is_some_and(|inside| inside.trim_start().starts_with('"'))
}

/// The resources found in the documents.
#[derive(Default)]
struct Resources<'d> {
    profiles: Vec<Object<'d>>,
    /// The kinds of other resources, with their places.
    others: Vec<(String, Range)>,
}

/// The `spec` of the one profile among the documents, or of that with the name, or an error.
fn only_spec<'d>(
    reader: &mut Reader,
    documents: &'d Document<'_>,
    name: Option<&str>,
) -> Option<Object<'d>> {
    let errors = |reader: &Reader| reader.diagnostics.iter().any(Diagnostic::is_error);
    let mut found = Resources::default();
    for document in documents.roots() {
        collect(reader, document, &mut found);
    }
    let named = |profile: &Object<'_>| name.is_none_or(|name| name_of(*profile) == Some(name));
    let selected: Vec<Object<'d>> = found.profiles.iter().copied().filter(named).collect();
    let profile = match selected.as_slice() {
        [only] => *only,
        [] if !found.profiles.is_empty() => {
            reader.push(no_such_profile(
                reader,
                &found.profiles,
                name.unwrap_or_default(),
            ));
            return None;
        }
        [] if errors(reader) => return None,
        [] => {
            let message = "no SeccompProfile in this file";
            let start = Range::new(0, 0);
            let (range, label) = match found.others.first() {
                Some((kind, range)) => (*range, format!("this is a {kind}")),
                None => (start, "the file has no resource".to_owned()),
            };
            let diagnostic = Diagnostic::error(code::SPO_RESOURCE, message)
                .label(reader.span(range), label)
                .help(format!(
                    "the resource has `apiVersion: {GROUP}/v1` and `kind: {KIND}`"
                ));
            reader.push(diagnostic);
            return None;
        }
        several => {
            let message = format!("there are {} profiles in this", several.len());
            let mut diagnostic = Diagnostic::error(code::SPO_RESOURCE, message);
            for profile in several.iter().take(3) {
                let span = reader.span(place(*profile));
                diagnostic = diagnostic.label(span, "one");
            }
            let help = match several.iter().find_map(|profile| name_of(*profile)) {
                Some(first) if name.is_none() => format!("select one: `--resource {first}`"),
                _ => "put each in its own file: a policy is one profile".to_owned(),
            };
            reader.push(diagnostic.help(help));
            return None;
        }
    };
    let known = RESOURCE_MEMBERS;
    for prop in profile.members() {
        if !known.contains(&prop.name) {
            reader.unknown_member(&prop, "a SeccompProfile", &known);
        }
    }
    let spec = reader.required(profile, "spec", "a SeccompProfile")?;
    reader.object(spec, "`spec`")
}

/// The name of a resource, if it has one.
fn name_of(object: Object<'_>) -> Option<&str> {
    let metadata = object.get("metadata")?.value.as_object()?;
    metadata.get("name")?.value.as_text()
}

/// The error for a name that none of the profiles has.
fn no_such_profile(reader: &Reader, profiles: &[Object<'_>], name: &str) -> Diagnostic {
    let message = format!("there is no profile `{name}` in this");
    let mut diagnostic = Diagnostic::error(code::SPO_RESOURCE, message);
    for profile in profiles.iter().take(3) {
        let span = reader.span(place(*profile));
        diagnostic = diagnostic.label(span, "another one");
    }
    let names = profiles.iter().filter_map(|profile| name_of(*profile));
    match suggest::nearest(name, names) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    }
}

/// The span of a resource's beginning.
fn place(object: Object<'_>) -> Range {
    let metadata = object.get("metadata");
    match metadata.and_then(|metadata| metadata.value.as_object()?.get("name")) {
        Some(name) => Range::new(name.name_range.start, name.value.range().end),
        None => start_of(object.range()),
    }
}

/// Collects profiles from one document, or from the items of a list.
fn collect<'d>(reader: &mut Reader, document: Value<'d>, found: &mut Resources<'d>) {
    if document.is_null() {
        return;
    }
    let Some(object) = reader.object(document, "a resource") else {
        return;
    };
    let Some(value) = reader.required(object, "kind", "a resource") else {
        return;
    };
    let Some(kind) = reader.string(value, "`kind`") else {
        return;
    };
    if matches!(kind, "List" | "SeccompProfileList")
        && let Some(items) = member(object, "items").and_then(Value::as_array)
    {
        for item in items.elements() {
            collect(reader, item, found);
        }
        return;
    }
    if kind != KIND {
        found.others.push((kind.to_string(), value.range()));
        return;
    }
    let Some(version) = reader.required(object, "apiVersion", "a resource") else {
        return;
    };
    let Some(name) = reader.string(version, "`apiVersion`") else {
        return;
    };
    let known = VERSIONS.map(|version| format!("{GROUP}/{version}"));
    match known.contains(&name.to_string()) {
        true => found.profiles.push(object),
        false => {
            let known = known.each_ref().map(String::as_str);
            let diagnostic = reader.unknown_name("apiVersion", name, version.range(), &known);
            reader.push(Diagnostic {
                code: code::SPO_RESOURCE,
                ..diagnostic
            });
        }
    }
}

/// Reports entries with more conditions than the schema permits.
fn check_conditions(reader: &mut Reader, spec: Object<'_>) {
    const MAX: usize = 6;
    let entries = member(spec, "syscalls").and_then(Value::as_array);
    let entries = entries.into_iter().flat_map(Array::elements);
    let conditions = entries
        .filter_map(|entry| member(entry.as_object()?, "args")?.as_array())
        .filter(|args| args.elements().count() > MAX);
    for args in conditions {
        let message = format!("`args` has at most {MAX} elements");
        let label = "Kubernetes rejects this";
        reader.error(code::SPO_SPEC, start_of(args.range()), message, label);
    }
}

/// Checks the members of a spec that runtime profiles lack.
fn check_spec(reader: &mut Reader, spec: Object<'_>) {
    check_conditions(reader, spec);
    if let Some(value) = member(spec, "disabled") {
        match value.content() {
            Content::Boolean(true) => {
                let message = "the operator doesn't install this profile";
                let diagnostic = Diagnostic::warning(code::SPO_RESOURCE, message)
                    .label(reader.span(value.range()), "it is disabled");
                reader.ignored(diagnostic);
            }
            Content::Boolean(false) => {}
            _ => {
                let message = "`disabled` must be a boolean".to_owned();
                reader.error(
                    crate::code::OCI_TYPE,
                    value.range(),
                    message,
                    "this is none",
                );
            }
        }
    }
    let default = member(spec, "defaultAction");
    if let Some(value) = default
        && value.as_text() == Some("SCMP_ACT_NOTIFY")
    {
        let message = "SCMP_ACT_NOTIFY cannot be the default action".to_owned();
        reader.error(
            code::SPO_SPEC,
            value.range(),
            message,
            "Kubernetes rejects this",
        );
    }
    if let Some(value) = member(spec, "baseProfileName")
        && let Some(name) = reader.string(value, "`baseProfileName`")
        && !name.is_empty()
    {
        let is_permissive = default
            .and_then(Value::as_text)
            .is_some_and(|name| matches!(name, "SCMP_ACT_ALLOW" | "SCMP_ACT_LOG"));
        let message = format!("the base profile `{name}` is not available");
        let span = reader.span(value.range());
        let help = "the operator writes the merged profile to its nodes, \
                    /var/lib/kubelet/seccomp/operator/NAME.json; use that instead";
        match is_permissive {
            true => {
                let label = "it may deny calls that are allowed here";
                let diagnostic = Diagnostic::error(code::SPO_BASE, message).label(span, label);
                reader.push(diagnostic.help(help));
            }
            false => {
                let label = "calls that only the base profile allows are denied here";
                let diagnostic = Diagnostic::warning(code::SPO_BASE, message).label(span, label);
                reader.ignored(diagnostic.help(help));
            }
        }
    }
}

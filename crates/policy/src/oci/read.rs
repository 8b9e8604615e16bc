//! From JSON to a [`Profile`]: the schema of the OCI runtime specification, of the container engines and of formats
//! derived from theirs. Every error is reported with its place.

use std::borrow::Cow;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use tamis_abi::syscall::Name;
use tamis_abi::{Action, Arch, ArgIndex};
use tamis_diag::json::{Reader, member, start_of};
use tamis_diag::{Diagnostic, code};
use tamis_scmp::Comparison;

use super::flavour::{self, Flavour};
use super::json::check_case;
use super::model::{ArchFamily, CallName, Condition, Entry, KernelVersion, Profile, Selector};
use super::names::{self, ACTIONS, ARCHES, CAPABILITIES, FLAGS, OPERATORS, Operator};

const DEFAULT_ACTION: &str = "defaultAction";
const FAMILY_MEMBERS: [&str; 2] = ["architecture", "subArchitectures"];
const CONDITION_MEMBERS: [&str; 4] = ["index", "value", "valueTwo", "op"];
const SELECTOR_MEMBERS: [&str; 3] = ["caps", "arches", "minKernel"];

/// Reads the profile in a document: the whole document, or `linux.seccomp` of a container configuration.
pub(super) fn profile<'t>(reader: &mut Reader, document: &Value<'t>) -> Option<Profile<'t>> {
    let flavour = &flavour::RUNTIME;
    let root = reader.object(document, "a profile")?;
    let is_configuration = member(root, "defaultAction").is_none()
        && (member(root, "linux").is_some() || member(root, "ociVersion").is_some());
    if !is_configuration {
        return read_profile(reader, flavour, root);
    }
    check_case(reader, root, &["linux", "defaultAction"]);
    let linux = match member(root, "linux") {
        Some(linux) => Some(reader.object(linux, "`linux`")?),
        None => None,
    };
    if let Some(linux) = linux {
        check_case(reader, linux, &["seccomp"]);
    }
    match linux.and_then(|linux| member(linux, "seccomp")) {
        Some(seccomp) => {
            let object = reader.object(seccomp, "`linux.seccomp`")?;
            read_profile(reader, flavour, object)
        }
        None => {
            let message = "the container configuration has no `linux.seccomp`".to_owned();
            let label = "a container without it runs without a filter";
            reader.error(code::OCI_MISSING, start_of(root.range), message, label);
            None
        }
    }
}

/// Reads a profile object.
pub(super) fn read_profile<'t>(
    reader: &mut Reader,
    flavour: &Flavour,
    root: &Object<'t>,
) -> Option<Profile<'t>> {
    flavour.check_members(reader, root, "a profile", flavour.profile_members);
    let keys = [DEFAULT_ACTION, "defaultErrnoRet"];
    let default = read_action(reader, flavour, root, &keys, "a profile");
    let arches = read_arches(reader, flavour, root, "architectures");
    let arch_map = match flavour.selects {
        true => read_arch_map(reader, flavour, root),
        false => Vec::new(),
    };
    if let Some(both) = member(root, "archMap")
        && !arches.is_empty()
        && !arch_map.is_empty()
    {
        let message = "a profile has either `architectures` or `archMap`".to_owned();
        let label = "`architectures` is also present";
        reader.error(code::OCI_CONTRADICTION, both.range(), message, label);
    }
    let mut text = |key: &str| {
        let value = member(root, key)?;
        let text = reader.string(value, &format!("`{key}`"))?;
        (!text.is_empty()).then(|| text.to_string())
    };
    let listener_path = text("listenerPath");
    let listener_metadata = text("listenerMetadata");
    if let Some(metadata) = member(root, "listenerMetadata")
        && listener_metadata.is_some()
        && listener_path.is_none()
    {
        let message = "`listenerMetadata` has no effect without `listenerPath`";
        let diagnostic = Diagnostic::warning(code::OCI_CONTRADICTION, message)
            .label(reader.span(metadata.range()), "no listener receives this");
        reader.ignored(diagnostic);
    }
    let flags = read_flags(reader, root);
    let entries = match member(root, "syscalls") {
        Some(list) => reader.array(list, "`syscalls`").map_or(Vec::new(), |list| {
            let elements = list.elements.iter();
            elements
                .filter_map(|value| read_entry(reader, flavour, value))
                .collect()
        }),
        None => Vec::new(),
    };
    Some(Profile {
        default: default?,
        arches,
        arch_map,
        flags,
        listener_path,
        listener_metadata,
        entries,
    })
}

fn read_flags(reader: &mut Reader, root: &Object) -> Vec<String> {
    let Some(value) = member(root, "flags") else {
        return Vec::new();
    };
    let mut flags = Vec::new();
    for (name, range) in reader.strings(value, "`flags`") {
        if reader.lookup("flag", name, range, &FLAGS).is_some() {
            flags.push(name.to_string());
        }
    }
    flags
}

fn read_arches(reader: &mut Reader, flavour: &Flavour, object: &Object, key: &str) -> Vec<Arch> {
    let Some(value) = member(object, key) else {
        return Vec::new();
    };
    let names = reader.strings(value, &format!("`{key}`"));
    names
        .into_iter()
        // The native architecture is always in the filter.
        .filter(|(name, _)| !(flavour.names_native && *name == "SCMP_ARCH_NATIVE"))
        .filter_map(|(name, range)| reader.lookup("architecture", name, range, flavour.arches))
        .collect()
}

fn read_arch_map(reader: &mut Reader, flavour: &Flavour, root: &Object) -> Vec<ArchFamily> {
    let Some(value) = member(root, "archMap") else {
        return Vec::new();
    };
    let Some(list) = reader.array(value, "`archMap`") else {
        return Vec::new();
    };
    let mut families = Vec::new();
    for element in &list.elements {
        let Some(object) = reader.object(element, "an element of `archMap`") else {
            continue;
        };
        flavour.check_members(reader, object, "an element of `archMap`", &FAMILY_MEMBERS);
        let Some(value) = reader.required(object, "architecture", "an element of `archMap`") else {
            continue;
        };
        let native = reader
            .string(value, "`architecture`")
            .and_then(|name| reader.lookup("architecture", name, value.range(), &ARCHES));
        let others = read_arches(reader, flavour, object, "subArchitectures");
        families.extend(native.map(|native| ArchFamily { native, others }));
    }
    families
}

fn read_entry<'t>(reader: &mut Reader, flavour: &Flavour, value: &Value<'t>) -> Option<Entry<'t>> {
    let what = "an element of `syscalls`";
    let object = reader.object(value, what)?;
    flavour.check_members(reader, object, what, flavour.entry_members);
    let names = read_names(reader, flavour, object);
    let action = read_action(reader, flavour, object, &["action", "errnoRet"], what);
    let args = match member(object, "args") {
        Some(list) => reader.array(list, "`args`").map_or(Vec::new(), |list| {
            let elements = list.elements.iter();
            elements
                .filter_map(|value| read_condition(reader, flavour, value))
                .collect()
        }),
        None => Vec::new(),
    };
    let [includes, excludes] = match flavour.selects {
        true => ["includes", "excludes"].map(|key| read_selector(reader, flavour, object, key)),
        false => Default::default(),
    };
    Some(Entry {
        span: reader.span(value.range()),
        names: names?,
        action: action?,
        args,
        includes,
        excludes,
    })
}

/// The names of an entry: `names`, or the older `name` for a single one.
fn read_names<'t>(
    reader: &mut Reader,
    flavour: &Flavour,
    object: &Object<'t>,
) -> Option<Vec<CallName<'t>>> {
    let call_name = |reader: &Reader, text: &Cow<'t, str>, range| CallName {
        text: text.clone(),
        span: reader.span(range),
        known: Name::find(text),
    };
    let mut names: Vec<CallName> = match member(object, "names") {
        Some(value) => {
            let listed = reader.strings(value, "`names`").into_iter();
            listed
                .map(|(text, range)| call_name(reader, text, range))
                .collect()
        }
        None => Vec::new(),
    };
    if flavour.selects
        && let Some(value) = member(object, "name")
        && let Some(name) = reader.string(value, "`name`")
        && !name.is_empty()
    {
        if !names.is_empty() {
            let message = "an entry has either `names` or `name`".to_owned();
            let label = "`names` is also present";
            reader.error(code::OCI_CONTRADICTION, value.range(), message, label);
        }
        names.push(call_name(reader, name, value.range()));
    }
    let has_key = member(object, "names").is_some() || member(object, "name").is_some();
    if names.is_empty() {
        let is_list = |value: &Value| {
            value
                .as_array()
                .is_some_and(|list| list.elements.is_empty())
        };
        if !has_key || member(object, "names").is_some_and(is_list) {
            let message = "an entry needs `names` with at least one name".to_owned();
            let label = "this entry names no system call";
            reader.error(code::OCI_MISSING, start_of(object.range), message, label);
        }
        return None;
    }
    Some(names)
}

/// The action of an object, given the keys of the action and of its errno.
fn read_action(
    reader: &mut Reader,
    flavour: &Flavour,
    object: &Object,
    &[key, errno_key]: &[&str; 2],
    what: &str,
) -> Option<Action> {
    let errno = match member(object, errno_key) {
        Some(value) if flavour.selects || key != DEFAULT_ACTION => {
            let what = format!("`{errno_key}`");
            let errno = reader.unsigned(value, &what, names::MAX_ERRNO)?;
            Some((errno as u16, value.range()))
        }
        _ => None,
    };
    let errno = errno.filter(|(errno, _)| *errno != 0 || !flavour.omits_zero);
    let value = reader.required(object, key, what)?;
    let name = reader.string(value, &format!("`{key}`"))?;
    let kind = reader.lookup("action", name, value.range(), &ACTIONS)?;
    if let Some((_, range)) = errno
        && !names::takes_errno(kind)
    {
        let label = "only SCMP_ACT_ERRNO and SCMP_ACT_TRACE take a number";
        if key == DEFAULT_ACTION {
            // Runtimes ignore it in an entry and reject it in the profile.
            let message = format!("runtimes refuse `{errno_key}` with {name}");
            reader.error(code::OCI_CONTRADICTION, range, message, label);
        } else {
            let message = format!("`{errno_key}` has no effect with {name}");
            let diagnostic = Diagnostic::warning(code::OCI_CONTRADICTION, message)
                .label(reader.span(range), label);
            reader.ignored(diagnostic);
        }
    }
    Some(names::action(kind, errno.map(|(errno, _)| errno)))
}

fn read_condition(reader: &mut Reader, flavour: &Flavour, value: &Value) -> Option<Condition> {
    let what = "a condition";
    let object = reader.object(value, what)?;
    flavour.check_members(reader, object, what, &CONDITION_MEMBERS);
    let index = reader
        .required(object, "index", what)
        .and_then(|value| reader.unsigned(value, "`index`", 5));
    let first = match member(object, "value") {
        None if flavour.omits_zero => Some(0),
        _ => reader
            .required(object, "value", what)
            .and_then(|value| reader.unsigned(value, "`value`", flavour.max_value)),
    };
    let second = match member(object, "valueTwo") {
        Some(value) => reader.unsigned(value, "`valueTwo`", flavour.max_value),
        None => Some(0),
    };
    let op = reader.required(object, "op", what).and_then(|value| {
        let name = reader.string(value, "`op`")?;
        reader.lookup("operator", name, value.range(), &OPERATORS)
    });
    let (first, second) = (first?, second?);
    let (comparison, value_compared) = match op? {
        Operator::Ne => (Comparison::Ne, first),
        Operator::Lt => (Comparison::Lt, first),
        Operator::Le => (Comparison::Le, first),
        Operator::Eq => (Comparison::Eq, first),
        Operator::Ge => (Comparison::Ge, first),
        Operator::Gt => (Comparison::Gt, first),
        Operator::MaskedEq => (Comparison::Masked { mask: first }, second),
    };
    Some(Condition {
        span: reader.span(value.range()),
        test: tamis_scmp::Condition {
            arg: ArgIndex::new(index? as u8)?,
            comparison,
            value: value_compared,
        },
    })
}

fn read_selector(reader: &mut Reader, flavour: &Flavour, object: &Object, key: &str) -> Selector {
    let mut selector = Selector::default();
    let quoted = format!("`{key}`");
    let Some(object) = member(object, key).and_then(|value| reader.object(value, &quoted)) else {
        return selector;
    };
    flavour.check_members(reader, object, &quoted, &SELECTOR_MEMBERS);
    if let Some(value) = member(object, "caps") {
        for (name, range) in reader.strings(value, "`caps`") {
            if !CAPABILITIES.contains(&name.as_ref()) {
                let diagnostic = reader.unknown_name("capability", name, range, &CAPABILITIES);
                reader.ignored(Diagnostic {
                    code: code::OCI_UNKNOWN_CAPABILITY,
                    severity: tamis_diag::Severity::Warning,
                    ..diagnostic
                });
            }
            selector.caps.push(name.to_string());
        }
    }
    if let Some(value) = member(object, "arches") {
        for (name, range) in reader.strings(value, "`arches`") {
            selector.has_arches = true;
            match names::engine_arch(name) {
                Some(arch) => selector.arches.push(arch),
                None => {
                    let known: Vec<&str> = Arch::all()
                        .flat_map(|arch| arch.aliases().iter().copied().chain([arch.name()]))
                        .collect();
                    let diagnostic = reader.unknown_name("architecture", name, range, &known);
                    reader.ignored(Diagnostic {
                        severity: tamis_diag::Severity::Warning,
                        ..diagnostic
                    });
                }
            }
        }
    }
    if let Some(value) = member(object, "minKernel")
        && let Some(text) = reader.string(value, "`minKernel`")
        && !text.is_empty()
    {
        selector.min_kernel = kernel_version(text);
        if selector.min_kernel.is_none() {
            let message = "`minKernel` must be two numbers such as \"4.8\"".to_owned();
            reader.error(code::OCI_RANGE, value.range(), message, "not in that form");
        }
    }
    selector
}

fn kernel_version(text: &str) -> Option<KernelVersion> {
    let (major, minor) = text.split_once('.')?;
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten()
    };
    Some(KernelVersion {
        major: number(major)?,
        minor: number(minor)?,
    })
}

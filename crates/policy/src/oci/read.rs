//! From JSON to a [`Profile`]: the schema of the OCI runtime specification, of the container engines and of formats
//! derived from theirs. Every error is reported with its place.

use tamis_abi::syscall::Name;
use tamis_abi::{Action, ActionKind, Arch, ArgIndex, consts};
use tamis_diag::Diagnostic;
use tamis_diag::document::{Array, Object, Range, Value};
use tamis_diag::json::{Reader, member, start_of};
use tamis_scmp::Comparison;

use super::flavour::{self, Flavour};
use super::json::check_case;
use super::model::{ArchFamily, CallName, Condition, Entry, KernelVersion, Profile, Selector};
use super::names::{self, ACTIONS, ARCHES, CAPABILITIES, FLAGS, OPERATORS, Operator};
use super::runtimes;
use crate::code;

const DEFAULT_ACTION: &str = "defaultAction";
const FAMILY_MEMBERS: [&str; 2] = ["architecture", "subArchitectures"];
const CONDITION_MEMBERS: [&str; 4] = ["index", "value", "valueTwo", "op"];
const SELECTOR_MEMBERS: [&str; 3] = ["caps", "arches", "minKernel"];

/// Reads the profile in a document: the whole document, or `linux.seccomp` of a container configuration.
pub(super) fn profile<'t>(reader: &mut Reader, document: Value<'t>) -> Option<Profile<'t>> {
    let flavour = &flavour::RUNTIME;
    let root = reader.object(document, "a profile")?;
    // A document with a profile is a configuration, regardless of its other members.
    let has_profile = member(root, "linux")
        .and_then(Value::as_object)
        .is_some_and(|linux| member(linux, "seccomp").is_some());
    let default = member(root, DEFAULT_ACTION);
    let is_configuration = has_profile
        || default.is_none()
            && (member(root, "linux").is_some() || member(root, "ociVersion").is_some());
    if !is_configuration {
        return read_profile(reader, flavour, root);
    }
    if let Some(outer) = default {
        let place = reader.span(outer.range());
        runtimes::warn(
            reader,
            place,
            "`defaultAction` beside `linux` is no part of the profile",
            "runtimes read `linux.seccomp` alone",
            "delete it",
        );
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
            read_profile(reader, &flavour::CONFIGURATION, object)
        }
        None => {
            let message = "the container configuration has no `linux.seccomp`".to_owned();
            let label = "a container without it runs without a filter";
            reader.error(code::OCI_MISSING, start_of(root.range()), message, label);
            None
        }
    }
}

/// Reads a profile object.
pub(super) fn read_profile<'t>(
    reader: &mut Reader,
    flavour: &Flavour,
    root: Object<'t>,
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
            let elements = list.elements();
            elements
                .filter_map(|value| read_entry(reader, flavour, value))
                .collect()
        }),
        None => Vec::new(),
    };
    let profile = Profile {
        default: default?,
        arches,
        arch_map,
        flags,
        listener_path,
        listener_metadata,
        entries,
    };
    let start = reader.span(start_of(root.range()));
    runtimes::check(reader, &profile, start);
    Some(profile)
}

fn read_flags(reader: &mut Reader, root: Object<'_>) -> Vec<String> {
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

fn read_arches(reader: &mut Reader, flavour: &Flavour, object: Object<'_>, key: &str) -> Vec<Arch> {
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

fn read_arch_map(reader: &mut Reader, flavour: &Flavour, root: Object<'_>) -> Vec<ArchFamily> {
    let Some(value) = member(root, "archMap") else {
        return Vec::new();
    };
    let Some(list) = reader.array(value, "`archMap`") else {
        return Vec::new();
    };
    let mut families = Vec::new();
    for element in list.elements() {
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
        let Some(native) = native else { continue };
        if families.iter().any(|own: &ArchFamily| own.native == native) {
            let place = reader.span(value.range());
            let message = format!("`archMap` has {native} twice");
            let label = "container engines take the first of them";
            runtimes::warn(reader, place, &message, label, "delete this one");
            continue;
        }
        families.push(ArchFamily { native, others });
    }
    families
}

fn read_entry<'t>(reader: &mut Reader, flavour: &Flavour, value: Value<'t>) -> Option<Entry<'t>> {
    let what = "an element of `syscalls`";
    let object = reader.object(value, what)?;
    flavour.check_members(reader, object, what, flavour.entry_members);
    let names = read_names(reader, flavour, object);
    let action = read_action(reader, flavour, object, &["action", "errnoRet"], what);
    if flavour.selects {
        check_members_of_engines(reader, object, action);
    }
    let args = match member(object, "args") {
        Some(list) => reader.array(list, "`args`").map_or(Vec::new(), |list| {
            let elements = list.elements();
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

/// Reports members that some engines read: `comment`, which must be a text, and `errno`, which Podman prefers.
fn check_members_of_engines(reader: &mut Reader, object: Object<'_>, action: Option<Action>) {
    if let Some(comment) = member(object, "comment") {
        reader.string(comment, "`comment`");
    }
    let Some(value) = member(object, "errno") else {
        return;
    };
    let Some(name) = reader
        .string(value, "`errno`")
        .filter(|name| !name.is_empty())
    else {
        return;
    };
    let Some(action) = action else { return };
    if !names::takes_errno(action.kind)
        || consts::value(Arch::X86_64, name) != Some(u64::from(action.data))
    {
        let message = format!("Podman returns `errno`, {name}, in place of `errnoRet`");
        let place = reader.span(value.range());
        let label = "runc and Docker ignore it";
        runtimes::warn(reader, place, &message, label, "set both to the same error");
    }
}

/// The names of an entry: `names`, or the older `name` for a single one; `None` without any valid name.
fn read_names<'t>(
    reader: &mut Reader,
    flavour: &Flavour,
    object: Object<'t>,
) -> Option<Vec<CallName<'t>>> {
    let mut names = Vec::new();
    if let Some(value) = member(object, "names") {
        for (text, range) in reader.strings(value, "`names`") {
            names.extend(read_name(reader, text, range));
        }
    }
    if flavour.selects
        && let Some(value) = member(object, "name")
        && let Some(name) = reader.string(value, "`name`")
    {
        if !names.is_empty() && !name.is_empty() {
            let message = "an entry has either `names` or `name`".to_owned();
            let label = "`names` is also present";
            reader.error(code::OCI_CONTRADICTION, value.range(), message, label);
        }
        names.extend(read_name(reader, name, value.range()));
    }
    let is_empty = |value: Value<'_>| value.as_array().is_some_and(Array::is_empty);
    let is_unnamed = member(object, "names").is_none_or(is_empty)
        && (!flavour.selects || member(object, "name").is_none());
    if names.is_empty() && is_unnamed && flavour.needs_names {
        let message = "an entry needs `names` with at least one name".to_owned();
        let label = "this entry names no system call";
        reader.error(code::OCI_MISSING, start_of(object.range()), message, label);
    } else if names.is_empty() && is_unnamed {
        let place = reader.span(start_of(object.range()));
        runtimes::warn(
            reader,
            place,
            "an entry without a name of a call",
            "runc, Docker and containerd skip it, crun refuses it if `names` is missing",
            "name the calls, or delete the entry",
        );
    }
    (!names.is_empty()).then_some(names)
}

/// The name of a call; `None` if it is invalid.
fn read_name<'t>(reader: &mut Reader, text: &'t str, range: Range) -> Option<CallName<'t>> {
    let span = reader.span(range);
    if text.is_empty() {
        runtimes::warn(
            reader,
            span,
            "an empty name of a call",
            "runc, Docker and containerd refuse it in `names`, others skip it",
            "delete it",
        );
        return None;
    }
    if text.contains('\0') {
        let message = "a name of a call with a character zero".to_owned();
        reader.error(
            code::OCI_RANGE,
            range,
            message,
            "runtimes read the text before it",
        );
        return None;
    }
    Some(CallName {
        text,
        span,
        known: Name::find(text),
    })
}

/// The action of an object, given the keys of the action and of its errno.
fn read_action(
    reader: &mut Reader,
    flavour: &Flavour,
    object: Object<'_>,
    &[key, errno_key]: &[&str; 2],
    what: &str,
) -> Option<Action> {
    let value = reader.required(object, key, what)?;
    let name = reader.string(value, &format!("`{key}`"))?;
    let kind = reader.lookup("action", name, value.range(), &ACTIONS)?;
    let errno = match member(object, errno_key) {
        Some(value) if flavour.has_default_errno || key != DEFAULT_ACTION => {
            let what = format!("`{errno_key}`");
            // A tracer gets all sixteen bits.
            let max = match kind {
                ActionKind::Trace => u64::from(u16::MAX),
                _ => names::MAX_ERRNO,
            };
            let errno = reader.unsigned(value, &what, max)?;
            Some((errno as u16, value.range()))
        }
        _ => None,
    };
    let errno = errno.filter(|(errno, _)| *errno != 0 || !flavour.omits_zero);
    if let Some((_, range)) = errno
        && !names::takes_errno(kind)
    {
        let message = format!("`{errno_key}` has no effect with {name}");
        let label = "runc, Docker and containerd ignore it, crun and Podman refuse it";
        let help = "only SCMP_ACT_ERRNO and SCMP_ACT_TRACE take a number: delete it";
        let place = reader.span(range);
        runtimes::warn(reader, place, &message, label, help);
    }
    Some(names::action(kind, errno.map(|(errno, _)| errno)))
}

fn read_condition(reader: &mut Reader, flavour: &Flavour, value: Value<'_>) -> Option<Condition> {
    let what = "a condition";
    let object = reader.object(value, what)?;
    flavour.check_members(reader, object, what, &CONDITION_MEMBERS);
    let mut number = |key: &str, max| match member(object, key) {
        Some(value) => reader.unsigned(value, &format!("`{key}`"), max),
        None => {
            if !flavour.omits_zero {
                let place = reader.span(start_of(object.range()));
                let message = format!("a condition without `{key}`");
                runtimes::warn(reader, place, &message, "runtimes take 0", "write the 0");
            }
            Some(0)
        }
    };
    let index = number("index", 5);
    let first = number("value", flavour.max_value);
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

fn read_selector(
    reader: &mut Reader,
    flavour: &Flavour,
    object: Object<'_>,
    key: &str,
) -> Selector {
    let mut selector = Selector::default();
    let quoted = format!("`{key}`");
    let Some(object) = member(object, key).and_then(|value| reader.object(value, &quoted)) else {
        return selector;
    };
    flavour.check_members(reader, object, &quoted, &SELECTOR_MEMBERS);
    if let Some(value) = member(object, "caps") {
        for (name, range) in reader.strings(value, "`caps`") {
            if !CAPABILITIES.contains(&name) {
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
                        .filter(|name| names::engine_arch(name).is_some())
                        .collect();
                    let diagnostic = reader.unknown_name("architecture", name, range, &known);
                    let same = |known: &&&str| {
                        names::engine_arch(known) == Arch::from_name(name)
                            && Arch::from_name(name).is_some()
                    };
                    let diagnostic = match known.iter().find(same) {
                        Some(meant) => {
                            diagnostic.help(format!("container engines call it `{meant}`"))
                        }
                        None => diagnostic,
                    };
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
        let is_zero = |version: &KernelVersion| *version == KernelVersion::new(0, 0);
        // Docker refuses 0.0.
        selector.min_kernel = kernel_version(text).filter(|version| !is_zero(version));
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

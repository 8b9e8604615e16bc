//! Recordings of the Security Profiles Operator, as profiles without counts: each allowed or logged call counts once.
//!
//! Kubernetes resources are read as YAML or JSON, alone, several in one text or in a list. Each is a separate run, one
//! per container. A profile that the operator has merged contains an annotation with the number of recordings of each
//! call. The calls are those of the architecture that is used for tables.
//!
//! Profiles for container engines, and resources with conditions on arguments, which recordings lack, are policies and
//! are rejected.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::syscall;
use tamis_diag::Span;
use tamis_diag::document::{Array, Document, Object, Value};
use tamis_diag::json::{Reader, member};

use super::read::DIALECT;
use crate::code;
use crate::collect::{Collector, Word};
use crate::read::policy_refusal;

/// Actions that execute the call.
const ALLOWING: [&str; 2] = ["SCMP_ACT_ALLOW", "SCMP_ACT_LOG"];
/// The resource kind of a profile, and those of lists.
const KIND: &str = "SeccompProfile";
const LISTS: [&str; 2] = ["List", "SeccompProfileList"];
/// The annotation with the number of recordings of each call.
const COVERAGE: &str = "spo.x-k8s.io/syscall-coverage";

/// Whether a text that begins as JSON is such a profile.
pub(crate) fn is_profile(text: &str) -> bool {
    (text.contains("\"defaultAction\"") && text.contains("\"syscalls\""))
        || (text.contains("\"apiVersion\"") && text.contains("\"kind\""))
}

/// Whether a text consists of Kubernetes resources in YAML.
pub(crate) fn is_resource(text: &str) -> bool {
    const KEYS: [&str; 6] = [
        "apiVersion:",
        "kind:",
        "items:",
        "metadata:",
        "spec:",
        "status:",
    ];
    let lines = text.lines().filter(|line| !line.starts_with(['#', '-']));
    let first = lines.map(str::trim_end).find(|line| !line.is_empty());
    let is_key = first.is_some_and(|line| KEYS.iter().any(|key| line.starts_with(key)));
    is_key && KEYS[..2].iter().all(|key| text.contains(key))
}

/// Adds the allowed calls.
pub(crate) fn read(collector: &mut Collector, text: &str) {
    let mut reader = Reader::new(&DIALECT, collector.source(), true);
    let documents = match text.trim_start().starts_with('{') {
        true => reader.parse(text),
        false => yaml_documents(&mut reader, text),
    };
    if !reader.diagnostics.is_empty() {
        return collector.fail(reader.diagnostics);
    }
    let mut profiles = Vec::new();
    for document in documents.iter().flat_map(Document::roots) {
        collect(document, &mut profiles);
    }
    if let Some(policy) = profiles.iter().find(|found| found.is_policy()) {
        let start = policy.profile.range().start;
        let place = Span::new(collector.source(), start, start + 1);
        return collector.fail(vec![policy_refusal(place, "a seccomp profile", "FILE")]);
    }
    let mut is_first = true;
    for FoundProfile {
        metadata, profile, ..
    } in &profiles
    {
        if !is_first {
            collector.end_run();
        }
        is_first = false;
        add(collector, *metadata, *profile);
    }
    if is_first {
        let whole = Word { text: "", start: 0 };
        let message = "the text has no list `syscalls` of a profile".to_owned();
        let label = "recordings of the operator are resources of the kind SeccompProfile";
        collector.error(code::PROFILE_MEMBER, whole, message, label);
    }
}

#[cfg(feature = "yaml")]
fn yaml_documents<'t>(reader: &mut Reader, text: &'t str) -> Option<Document<'t>> {
    tamis_diag::yaml::documents(reader, text, code::PROFILE_JSON)
}

/// Rejects YAML in a build without its parser.
#[cfg(not(feature = "yaml"))]
fn yaml_documents<'t>(reader: &mut Reader, _: &'t str) -> Option<Document<'t>> {
    let start = tamis_diag::document::Range::new(0, 0);
    let message = "this program was built without a parser for YAML".to_owned();
    reader.error(code::PROFILE_JSON, start, message, "convert it to JSON");
    None
}

/// A profile.
struct FoundProfile<'d> {
    /// Whether it is a Kubernetes resource.
    is_resource: bool,
    /// The metadata of the resource.
    metadata: Option<Object<'d>>,
    profile: Object<'d>,
}

impl FoundProfile<'_> {
    /// Whether it is a policy, not a recording.
    fn is_policy(&self) -> bool {
        let entries = member(self.profile, "syscalls").and_then(Value::as_array);
        let mut entries = entries.into_iter().flat_map(Array::elements);
        let has_conditions = |entry: Value<'_>| {
            let args = entry.as_object().and_then(|entry| member(entry, "args"));
            let args = args.and_then(Value::as_array);
            args.is_some_and(|args| !args.is_empty())
        };
        !self.is_resource || entries.any(has_conditions)
    }
}

/// Collects the profiles of a document; other resources are skipped.
fn collect<'d>(document: Value<'d>, profiles: &mut Vec<FoundProfile<'d>>) {
    let Some(root) = document.as_object() else {
        return;
    };
    let object = |key| member(root, key).and_then(Value::as_object);
    let kind = member(root, "kind");
    match kind.map(|kind| kind.as_text().unwrap_or(KIND)) {
        Some(kind) if LISTS.contains(&kind) => {
            let items = member(root, "items").and_then(Value::as_array);
            let items = items.into_iter().flat_map(Array::elements);
            items.for_each(|item| collect(item, profiles));
        }
        Some(kind) if kind != KIND => {}
        Some(_) => profiles.extend(object("spec").map(|profile| FoundProfile {
            is_resource: true,
            metadata: object("metadata"),
            profile,
        })),
        None => {
            let of_container =
                object("linux").and_then(|linux| member(linux, "seccomp")?.as_object());
            let forms = [Some(root), object("spec"), of_container];
            let mut forms = forms.into_iter().flatten();
            let profile = forms.find(|form| {
                member(*form, "syscalls").is_some_and(|list| list.as_array().is_some())
            });
            profiles.extend(profile.map(|profile| FoundProfile {
                is_resource: false,
                metadata: None,
                profile,
            }));
        }
    }
}

/// Adds a profile.
fn add(collector: &mut Collector, metadata: Option<Object<'_>>, profile: Object<'_>) {
    let annotations = metadata.and_then(|metadata| member(metadata, "annotations")?.as_object());
    let annotation = annotations.and_then(|annotations| member(annotations, COVERAGE));
    let coverage = annotation.and_then(|value| Some((value, Coverage::parse(value.as_text()?))));
    if let Some((text, None)) = &coverage {
        let place = Word {
            text: "",
            start: text.range().start,
        };
        let message = "the annotation about recordings can't be read";
        collector.warn(
            code::PROFILE_MEMBER,
            place,
            message,
            "each call counts once",
        );
    }
    let coverage = coverage.and_then(|(_, coverage)| coverage);
    if let Some(coverage) = &coverage {
        collector.set_run_count(coverage.total);
    }
    let mut seen = BTreeSet::new();
    let entries = member(profile, "syscalls").and_then(Value::as_array);
    let entries = entries.into_iter().flat_map(Array::elements);
    for entry in entries.filter_map(Value::as_object) {
        if !is_allowing(entry) {
            continue;
        }
        for name in names(entry) {
            // These lists contain the calls of all architectures, and repeat a call for other arguments.
            let is_other = syscall::is_known(name.text)
                && syscall::number(collector.arch, name.text).is_none();
            if is_other || !seen.insert(name.text) {
                continue;
            }
            let runs = coverage
                .as_ref()
                .map(|coverage| coverage.of_call(name.text));
            collector.add(name, runs.unwrap_or(1));
            if let (Some(runs), Some(call)) = (runs, collector.call_mut(name)) {
                call.coverage.runs = runs;
            }
        }
    }
}

/// The number of recordings of each call of a merged profile.
struct Coverage {
    total: u64,
    calls: BTreeMap<String, u64>,
}

impl Coverage {
    /// Parses the annotation, a JSON document; `None` if it is invalid.
    fn parse(text: &str) -> Option<Coverage> {
        let sources = tamis_diag::Sources::new().add("annotation", text);
        let mut reader = Reader::new(&DIALECT, sources, true);
        let document = reader.parse(text)?;
        let root = document.root().as_object()?;
        let mut number = |value: Value<'_>| reader.unsigned(value, "a count", u64::MAX);
        let total = number(member(root, "total")?)?;
        let calls = member(root, "syscalls")?.as_object()?.members();
        let calls = calls.map(|call| Some((call.name.to_owned(), number(call.value)?)));
        Some(Coverage {
            total,
            calls: calls.collect::<Option<_>>()?,
        })
    }

    /// The number of recordings of an allowed call: 1 if the annotation lacks it.
    fn of_call(&self, name: &str) -> u64 {
        let runs = self.calls.get(name).copied().unwrap_or(1);
        runs.min(self.total)
    }
}

fn is_allowing(entry: Object<'_>) -> bool {
    let action = member(entry, "action").and_then(Value::as_text);
    action.is_some_and(|action| ALLOWING.contains(&action))
}

/// The names of an entry, `name` in old profiles.
fn names(entry: Object<'_>) -> impl Iterator<Item = Word<'_>> {
    let listed = member(entry, "names").and_then(Value::as_array);
    let single = member(entry, "name").filter(|_| listed.is_none());
    let listed = listed.into_iter().flat_map(Array::elements);
    listed.chain(single).filter_map(|value| {
        Some(Word {
            text: value.as_text()?,
            start: value.text_start(),
        })
    })
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Arch, syscall};
    use tamis_diag::Sources;

    use crate::{Format, Profile};

    fn profile(text: &str) -> Profile {
        let mut sources = Sources::new();
        let source = sources.add("profile", text);
        let reading = crate::read(&sources, source, Arch::X86_64);
        assert_eq!(reading.format, Some(Format::Names), "{text}");
        reading
            .profile
            .unwrap_or_else(|| panic!("{:?}", reading.diagnostics))
    }

    /// The count of a call, and the number of its runs.
    fn count(profile: &Profile, name: &str) -> (u64, u64) {
        let nr = syscall::number(Arch::X86_64, name).unwrap();
        let call = profile.call(Arch::X86_64, nr);
        call.map_or((0, 0), |call| (call.count, profile.coverage(call).runs))
    }

    #[test]
    fn what_is_allowed_counts_once() {
        let text = r#"{"kind": "SeccompProfile", "spec": {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
            {"action": "SCMP_ACT_ALLOW", "names": ["read", "mmap2", "raed", "read"]},
            {"action": "SCMP_ACT_ERRNO", "names": ["mount"]},
            {"action": "SCMP_ACT_LOG", "name": "write"}]}}"#;
        let mut sources = Sources::new();
        let source = sources.add("profile.json", text);
        let reading = crate::read(&sources, source, Arch::X86_64);
        assert_eq!(reading.format, Some(Format::Names));
        assert_eq!(reading.diagnostics.len(), 1, "{:?}", reading.diagnostics);
        assert_eq!(
            sources.snippet(reading.diagnostics[0].labels[0].span),
            "raed"
        );
        let profile = reading.profile.unwrap();
        let counts: Vec<(u32, u64)> = profile
            .calls()
            .map(|(_, nr, call)| (nr.0, call.count))
            .collect();
        assert_eq!(counts, [(0, 1), (1, 1)]);
    }

    #[test]
    fn policies_are_refused_by_name() {
        let conditional = r#"{"apiVersion": "v1", "kind": "SeccompProfile", "spec": {"syscalls": [
            {"action": "SCMP_ACT_ALLOW", "names": ["socket"], "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}]}]}}"#;
        let oci = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"action": "SCMP_ACT_ALLOW", "names": ["read"]}]}"#;
        for text in [conditional, oci] {
            let mut sources = Sources::new();
            let source = sources.add("profile.json", text);
            let reading = crate::read(&sources, source, Arch::X86_64);
            assert!(reading.profile.is_none(), "{text}");
            assert_eq!(reading.diagnostics[0].code.id, "TM0613");
        }
    }

    /// Recordings of two containers in the operator's format.
    const RECORDINGS: &str = "\
apiVersion: v1
kind: List
items:
- apiVersion: security-profiles-operator.x-k8s.io/v1beta1
  kind: SeccompProfile
  metadata:
    name: test-recording-nginx-1
    labels:
      spo.x-k8s.io/recording-id: test-recording
  spec:
    architectures: [SCMP_ARCH_X86_64]
    defaultAction: SCMP_ACT_ERRNO
    syscalls:
    - action: SCMP_ACT_ALLOW
      names: [accept4, \"read\", write]
- apiVersion: security-profiles-operator.x-k8s.io/v1beta1
  kind: SeccompProfile
  metadata: {name: test-recording-nginx-2}
  spec:
    defaultAction: SCMP_ACT_ERRNO
    syscalls:
    - action: SCMP_ACT_ALLOW
      names:
      - read
- apiVersion: security-profiles-operator.x-k8s.io/v1alpha1
  kind: ProfileRecording
  metadata: {name: test-recording}
  spec: {kind: SeccompProfile, recorder: bpf}
";

    #[cfg(feature = "yaml")]
    #[test]
    fn recordings_of_the_operator_are_runs() {
        let profile = profile(RECORDINGS);
        assert_eq!(profile.run_count(), 2);
        assert_eq!(count(&profile, "read"), (2, 2));
        assert_eq!(count(&profile, "accept4"), (1, 1));
        let documents = RECORDINGS.replace("apiVersion: v1\nkind: List\nitems:\n", "");
        let documents = documents
            .replace("\n  ", "\n")
            .replace("- apiVersion", "---\napiVersion");
        let several = self::profile(&documents);
        assert_eq!(several, profile);
    }

    #[test]
    fn a_merged_profile_says_in_how_many_recordings_calls_were() {
        let text = r#"{"apiVersion": "security-profiles-operator.x-k8s.io/v1", "kind": "SeccompProfile",
            "metadata": {"annotations": {"spo.x-k8s.io/syscall-coverage":
                "{\"version\":\"v1\",\"total\":3,\"syscalls\":{\"read\":3,\"socket\":1}}"}},
            "spec": {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
                {"action": "SCMP_ACT_ALLOW", "names": ["read", "socket", "close"]}]}}"#;
        let merged = profile(text);
        assert_eq!(merged.run_count(), 3);
        assert_eq!(count(&merged, "read"), (3, 3));
        assert_eq!(count(&merged, "socket"), (1, 1));
        assert_eq!(count(&merged, "close"), (1, 1));
        let broken = text.replace("\\\"total\\\":3,", "");
        let broken = profile(&broken);
        assert_eq!((broken.run_count(), count(&broken, "read")), (1, (1, 1)));
    }

    #[test]
    fn resources_without_a_profile_are_refused() {
        let text = r#"{"apiVersion": "v1", "kind": "ProfileRecording", "spec": {"kind": "SeccompProfile"}}"#;
        let mut sources = Sources::new();
        let source = sources.add("profile.json", text);
        let reading = crate::read(&sources, source, Arch::X86_64);
        assert!(reading.profile.is_none(), "{reading:?}");
        assert_eq!(reading.diagnostics[0].code.id, "TM0605");
    }
}

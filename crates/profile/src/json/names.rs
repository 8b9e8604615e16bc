//! Profiles of container engines and of the Security Profiles Operator, as profiles without counts: each call that they allow or
//! log counts once.
//!
//! What the OCI runtimes read and what `kubectl get -o json` prints is read; conditions on arguments are not. The calls are those of
//! the architecture that tables have. Of Docker's form what depends on capabilities is left out.

use jsonc_parser::ast::{Object, Value};
use tamis_abi::syscall;
use tamis_diag::code;
use tamis_diag::json::{Reader, member};

use super::read::DIALECT;
use crate::collect::{Collector, Word};

/// Actions that let a call be made.
const ALLOWING: [&str; 2] = ["SCMP_ACT_ALLOW", "SCMP_ACT_LOG"];

/// Whether a text that begins as JSON is such a profile.
pub(crate) fn is_profile(text: &str) -> bool {
    text.contains("\"defaultAction\"") && text.contains("\"syscalls\"")
}

/// Adds the calls that are allowed.
pub(crate) fn read(collector: &mut Collector, text: &str) {
    let mut reader = Reader::new(&DIALECT, collector.source(), true);
    let document = reader.parse(text);
    let Some(Value::Object(root)) = &document else {
        return collector.fail(reader.diagnostics);
    };
    // A resource of Kubernetes has the profile in a member.
    let profile = match member(root, "spec") {
        Some(Value::Object(spec)) => spec,
        _ => root,
    };
    let Some(Value::Array(entries)) = member(profile, "syscalls") else {
        let whole = Word { text: "", start: 0 };
        let message = "the profile has no list `syscalls`".to_owned();
        return collector.error(code::PROFILE_MEMBER, whole, message, "");
    };
    for entry in &entries.elements {
        if let Value::Object(entry) = entry
            && is_allowing(entry)
        {
            for name in names(entry) {
                // These lists have the calls of all architectures.
                if syscall::is_known(name.text)
                    && syscall::number(collector.arch, name.text).is_none()
                {
                    continue;
                }
                collector.add(name, 1);
            }
        }
    }
}

fn is_allowing(entry: &Object<'_>) -> bool {
    // Docker's form has entries for containers with more capabilities.
    if let Some(Value::Object(includes)) = member(entry, "includes")
        && member(includes, "caps").is_some()
    {
        return false;
    }
    let Some(Value::StringLit(action)) = member(entry, "action") else {
        return false;
    };
    ALLOWING.contains(&action.value.as_ref())
}

/// The names of an entry, `name` in old profiles.
fn names<'e>(entry: &'e Object<'_>) -> Vec<Word<'e>> {
    let name = |value: &'e Value<'_>| match value {
        Value::StringLit(text) => Some(Word {
            text: text.value.as_ref(),
            start: text.range.start + 1,
        }),
        _ => None,
    };
    match (member(entry, "names"), member(entry, "name")) {
        (Some(Value::Array(list)), _) => list.elements.iter().filter_map(name).collect(),
        (_, Some(value)) => name(value).into_iter().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Arch;
    use tamis_diag::Sources;

    use crate::Format;

    #[test]
    fn what_is_allowed_counts_once() {
        let text = r#"{"kind": "SeccompProfile", "spec": {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
            {"action": "SCMP_ACT_ALLOW", "names": ["read", "mmap2", "raed"]},
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
}

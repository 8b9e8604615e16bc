//! JSON of container engines: error codes of profiles, and member names that some engines match regardless of case.

use tamis_diag::Diagnostic;
use tamis_diag::document::Object;
use tamis_diag::json::{Dialect, Reader, is_alike_in_go};

use crate::code;
use crate::limits;

/// OCI and Docker profiles.
pub(super) static DIALECT: Dialect = Dialect {
    document: "a profile",
    max_bytes: limits::MAX_SOURCE_BYTES,
    max_depth: limits::MAX_NESTING,
    too_large: code::FILE_TOO_LARGE,
    syntax: code::JSON_SYNTAX,
    nesting: code::OCI_NESTING,
    duplicate_key: code::OCI_DUPLICATE_KEY,
    wrong_type: code::OCI_TYPE,
    range: code::OCI_RANGE,
    missing: code::OCI_MISSING,
    unknown_name: code::OCI_UNKNOWN_NAME,
    unknown_member: code::OCI_UNKNOWN_MEMBER,
    unknown_member_label: "container engines ignore this",
};

/// Reports members whose names differ from known ones only by case.
///
/// Engines written in Go match such a member, others ignore it, so its meaning is ambiguous.
pub(super) fn check_case(reader: &mut Reader, object: Object<'_>, known: &[&str]) {
    for prop in object.members() {
        let key = prop.name;
        let Some(meant) = known_but_for_case(key, known) else {
            continue;
        };
        let message = format!("`{key}` is `{meant}` to some container engines only");
        let diagnostic = Diagnostic::error(code::OCI_MEMBER_CASE, message)
            .label(reader.span(prop.name_range), "its letters have the wrong case")
            .note("engines written in Go, such as runc, ignore case here; others, such as crun, don't")
            .help(format!("write `{meant}`"));
        reader.push(diagnostic);
    }
}

/// Reports unknown members.
pub(super) fn check_members(reader: &mut Reader, object: Object<'_>, what: &str, known: &[&str]) {
    check_case(reader, object, known);
    for prop in object.members() {
        let key = prop.name;
        if known.contains(&key) || known_but_for_case(key, known).is_some() {
            continue;
        }
        reader.unknown_member(&prop, what, known);
    }
}

/// The known key that Go's `encoding/json` matches with this one.
fn known_but_for_case<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let mut known = known.iter().copied();
    known.find(|known| *known != key && is_alike_in_go(key, known))
}

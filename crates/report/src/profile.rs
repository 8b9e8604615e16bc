//! A profile as a document: the format that other commands read, with the warnings about its sources.

use tamis_profile::Profile;

use crate::diagnostics::DiagnosticEntry;

/// The profile as JSON with `diagnostics` as its last member.
///
/// # Errors
/// Never: the members of warnings have names.
pub fn json(profile: &Profile, warnings: &[DiagnosticEntry]) -> serde_json::Result<String> {
    let warnings = serde_json::to_string(warnings)?;
    Ok(profile.to_json_with("diagnostics", &warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_a_profile() {
        let text = json(&Profile::default(), &[]).unwrap();
        let expected =
            "{\n  \"schema\": \"tamis-profile/1\",\n  \"calls\": [],\n  \"diagnostics\": []\n}\n";
        assert_eq!(text, expected);
    }
}

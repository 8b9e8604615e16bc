//! TM03xx: OCI and Docker seccomp profiles.

codes! { OCI;
    JSON_SYNTAX = "TM0301", "not valid JSON",
        "An OCI profile is strict JSON: no comments, no trailing commas, no duplicate keys.";
}

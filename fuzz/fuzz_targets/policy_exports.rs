//! Random rulesets in other languages: never looser than they were, and equal where nothing is said to be lost.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::agreement::policy_exports(bytes);
});

//! Random rulesets in other languages: never looser, and equal without reported losses.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::agreement::policy_exports(bytes);
});

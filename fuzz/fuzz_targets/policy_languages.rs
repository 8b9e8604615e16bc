//! A ruleset in every language: all have the same meaning, and so has the compiled program of one of them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::agreement::policy_languages(bytes);
});

//! A ruleset, said in every language: all mean it, and so does what is compiled of one of them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::agreement::policy_languages(bytes);
});

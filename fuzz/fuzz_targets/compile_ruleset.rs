//! A ruleset, compiled: the program answers as the ruleset does.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::compile_ruleset(bytes);
});

//! A program in both evaluators: the fast one returns and records the same as the reference.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::agreement::evaluators(bytes);
});

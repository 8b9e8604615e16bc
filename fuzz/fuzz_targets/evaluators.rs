//! A program in both evaluators: the fast one answers and notes what the reference does.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::agreement::evaluators(bytes);
});

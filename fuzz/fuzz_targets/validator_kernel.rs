//! Lists of instructions: the running kernel accepts those that the validator accepts.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::validator_kernel(bytes);
});

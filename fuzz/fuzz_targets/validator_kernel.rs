//! Lists of instructions, and whether the running kernel takes them as the validator says.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::validator_kernel(bytes);
});

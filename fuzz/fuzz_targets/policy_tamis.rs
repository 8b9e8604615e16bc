//! Text as a policy in the tamis language: printed, it means the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::policy_tamis(bytes);
});

//! Text as a SeccompProfile resource: mistakes have places, and the ruleset survives its text form.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::policy_spo(bytes);
});

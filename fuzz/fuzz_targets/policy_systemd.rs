//! Text as a systemd unit: mistakes have places and refuse nothing, and the ruleset survives its text form.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::policy_systemd(bytes);
});

//! Text with counts of calls: mistakes have places, and what is read survives being written.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::profile_text(bytes);
});

//! Text with counts of calls: mistakes have places, and parsed profiles survive being written.
#![no_main]

use tamis_testkit::work::Counting;

/// Readers' work is in proportion to the text.
#[global_allocator]
static COUNTING: Counting = Counting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::profile_text(bytes);
});

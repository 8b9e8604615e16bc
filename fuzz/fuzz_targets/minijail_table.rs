//! Text as a table of minijail's compile tool: mistakes have places, and its names are those of a policy.
#![no_main]

use tamis_testkit::work::Counting;

/// Readers' work is in proportion to the text.
#[global_allocator]
static COUNTING: Counting = Counting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::minijail_table(bytes);
});

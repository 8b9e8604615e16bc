//! Text as extended BPF, and bytes as an object: errors have places, and accepted programs run to their end.
#![no_main]

use tamis_testkit::work::Counting;

/// Readers' work is in proportion to the text.
#[global_allocator]
static COUNTING: Counting = Counting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::extended(bytes);
});

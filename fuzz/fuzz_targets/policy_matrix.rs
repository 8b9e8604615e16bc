//! Text as a matrix of options: mistakes have places, and the generated policies are syntactically correct.
#![no_main]

use tamis_testkit::work::Counting;

/// Readers' work is in proportion to the text.
#[global_allocator]
static COUNTING: Counting = Counting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::policy_matrix(bytes);
});

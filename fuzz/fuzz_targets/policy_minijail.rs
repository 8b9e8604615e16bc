//! Text as a minijail policy, in both dialects: mistakes have places, and the ruleset survives its text form.
#![no_main]

use tamis_testkit::work::Counting;

/// Readers' work is in proportion to the text.
#[global_allocator]
static COUNTING: Counting = Counting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::policy_minijail(bytes);
});

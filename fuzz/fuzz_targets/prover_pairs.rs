//! Two programs, and whether they are the same: prover against interpreter.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::prover_pairs(bytes);
});

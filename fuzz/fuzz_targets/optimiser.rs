//! A program and passes in any order: prover and campaign find no difference, nor contradict each other.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::agreement::optimiser(bytes);
});

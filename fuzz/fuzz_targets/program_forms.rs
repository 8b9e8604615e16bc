//! Text as a program in each of the forms: mistakes have places, and what is read disassembles.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::program_forms(bytes);
});

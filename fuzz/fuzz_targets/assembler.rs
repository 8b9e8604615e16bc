//! Text as assembler: what assembles survives disassembly, and mistakes have places.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::assembler(bytes);
});

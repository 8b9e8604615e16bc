//! A program and inputs: the running kernel and the interpreter return the same values.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::interpreter_kernel(bytes);
});

//! A program and inputs: the running kernel returns what the interpreter returns.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::property::interpreter_kernel(bytes);
});

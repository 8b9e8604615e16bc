//! A program: the prover's function, dead code and witnesses against the interpreter.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tamis_testkit::agreement::prover_interpreter(bytes);
});

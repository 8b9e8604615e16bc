//! Sets the soname of libseccomp.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    // Compilers pass the option to their linker. The toolchain's linker, which links libraries for other machines,
    // takes it itself.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let option = match flags.split('\x1f').any(|flag| flag == "-Clinker=rust-lld") {
        true => "-soname=libseccomp.so.2",
        false => "-Wl,-soname,libseccomp.so.2",
    };
    println!("cargo:rustc-cdylib-link-arg={option}");
}

//! Sets the soname of libseccomp.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libseccomp.so.2");
}

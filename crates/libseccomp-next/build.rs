//! Gives the shared library the name by which programs that are linked to libseccomp ask for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libseccomp.so.2");
}

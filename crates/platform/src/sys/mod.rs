//! The only `unsafe` of the crate: memory shared with a guest, waiting in it, and the code that runs in a guest.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", feature = "lab"))]
pub(crate) mod frame;
pub(crate) mod futex;
#[cfg(all(target_arch = "x86_64", feature = "lab"))]
pub(crate) mod guest;
#[cfg(all(target_arch = "x86_64", feature = "lab"))]
pub(crate) mod image;
#[cfg(all(target_arch = "x86_64", feature = "lab"))]
pub(crate) mod kvm;
#[cfg(all(target_arch = "x86_64", feature = "lab"))]
mod load;
pub(crate) mod machine;
#[cfg(all(target_arch = "x86_64", feature = "lab"))]
mod mappings;
pub(crate) mod readiness;
#[cfg(all(target_arch = "x86_64", feature = "lab"))]
pub(crate) mod separate;
pub(crate) mod shared;
pub(crate) mod stub;

//! The only `unsafe` of the crate: memory shared with a guest, waiting in it, and the code that runs in a guest.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
pub(crate) mod frame;
pub(crate) mod futex;
#[cfg(target_arch = "x86_64")]
pub(crate) mod guest;
#[cfg(target_arch = "x86_64")]
pub(crate) mod image;
#[cfg(target_arch = "x86_64")]
pub(crate) mod kvm;
#[cfg(target_arch = "x86_64")]
mod load;
pub(crate) mod machine;
#[cfg(target_arch = "x86_64")]
mod mappings;
pub(crate) mod readiness;
#[cfg(target_arch = "x86_64")]
pub(crate) mod separate;
pub(crate) mod shared;
pub(crate) mod stub;

//! The only `unsafe` of the crate: memory shared with a guest, waiting in it, and the code that runs in a guest.
#![allow(unsafe_code)]

pub(crate) mod futex;
pub(crate) mod guest;
mod load;
pub(crate) mod machine;
pub(crate) mod shared;
pub(crate) mod stub;

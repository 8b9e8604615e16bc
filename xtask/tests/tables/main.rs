//! The tables of `tamis-abi` against independent sources.
//!
//! Each module uses one source: the crate libc, the system's headers, the system's libseccomp and the corpus. A
//! missing name is not a contradiction; a different value is.

mod corpus;
mod headers;
mod libc_crate;
mod libseccomp;

//! The tables of `tamis-abi` against sources that they were not made from.
//!
//! Each module asks one witness: the crate libc, the system's headers, the system's libseccomp and
//! the corpus. What the witness does not know is no contradiction; what it knows differently is.

mod corpus;
mod headers;
mod libc_crate;
mod libseccomp;

//! libseccomp's binary interface, with filters compiled and proved by tamis.
//!
//! The shared library of this crate replaces `libseccomp.so.2`: an unchanged program that links or loads libseccomp
//! gets shorter and faster filters. It has the 37 functions of libseccomp 2.6.1 with their error codes, attributes,
//! pseudo numbers, API levels and process-wide state. The semantics of rules is that of [`tamis_scmp`], which the OCI
//! front end uses too.
//!
//! | module | contents |
//! |---|---|
//! | `api` | the exported functions: they check pointers and convert values |
//! | `filter` | a filter under construction: rules, attributes, transactions, its program |
//! | `attributes` | the attributes of a filter |
//! | `build` | from rules to a proved program |
//! | `contexts` | the table of handles |
//! | `support` | what the kernel supports; process-wide |
//! | `load` | installing a program, the process-wide notification descriptor |
//! | `listener` | notifications |
//! | [`next`] | additions after 2.6.1, exported by a separate library |
//! | `memory` | checks for available memory before an operation |
//! | `status` | error codes |
//! | `report` | output for `TAMIS_LOG` and `TAMIS_EXPLAIN` |
//!
//! A filter is only returned or installed after the prover has compared it with the rules. No function panics across
//! the interface: an internal error is `-EFAULT`.
//!
//! The library doesn't start threads, allocates nothing after the system call of `seccomp_load`, and waits for no lock, so
//! that it can be used before `main` and after `fork`. A handle must not be used by two threads at once, as in
//! libseccomp.

mod api;
mod attributes;
mod build;
mod contexts;
mod filter;
mod listener;
mod load;
mod memory;
pub mod next;
mod report;
mod status;
mod support;

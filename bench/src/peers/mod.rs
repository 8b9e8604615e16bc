//! Comparison with other compilers: the programs for the same policies, and their costs.
//!
//! libseccomp and `seccompiler` are run here; the programs of others are read from the corpus. Every program is
//! counted, timed in the running kernel and compared with its policy by the prover. `bench/peers` prints the results.

pub mod better;
pub mod builders;
pub mod cases;
pub mod comparison;
pub mod figures;
pub mod judge;
pub mod plain;
pub mod report;
pub mod rfc;
pub mod sandbox;
pub mod table;
pub mod timing;
pub mod tools;

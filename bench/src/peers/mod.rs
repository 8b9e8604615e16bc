//! tamis beside other compilers: the same policies, what each makes of them, and what that costs.
//!
//! libseccomp and `seccompiler` are run here; what others made is read from the corpus. Every program is
//! counted, timed in the running kernel and compared with its policy by the prover. `bench/peers` prints it.

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

//! Common parts of tests: a seeded random source, generators, readers of the corpus, the golden harness.
//!
//! Nothing here is part of the product. Everything that may differ between machines - missing files, features of the
//! kernel - goes through [`corpus`] and [`skip`], so that the [`harness`] shows a test without it as ignored.

pub mod agreement;
pub mod bpf_asm;
pub mod capture;
pub mod child;
mod command;
pub mod compiled;
pub mod console;
pub mod corpus;
pub mod diff;
pub mod generate;
pub mod golden;
pub mod guarded;
pub mod harness;
pub mod inputs;
pub mod languages;
pub mod libseccomp;
pub mod libseccomp_program;
pub mod limited;
pub mod lrat;
pub mod misreadings;
pub mod nsjail;
pub mod oracle;
pub mod patience;
pub mod property;
pub mod pseudo_code;
pub mod sabotage;
pub mod schema;
pub mod scratch;
pub mod seeds;
pub mod skip;
pub mod smt;
pub mod systemd;
pub mod tally;
pub mod toolchains;
pub mod work;

pub use tamis_fuzz::rng;
pub use tamis_testkit_macros::test;

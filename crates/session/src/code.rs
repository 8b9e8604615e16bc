//! The codes of the diagnostics of loading: those of the languages, programs, profiles and compiling.

pub use tamis_bpf::code::*;
pub use tamis_compiler::code::*;
pub use tamis_policy::code::*;
pub use tamis_profile::code::*;

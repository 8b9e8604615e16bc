//! The one entry point: from any input to a loaded policy or program, and from a policy to a compiled one.
//!
//! The command line, the macro, build scripts and the library for programs that compile their own filter process inputs
//! the same way. Each step is a module:
//!
//! | module | content |
//! |---|---|
//! | [`input`] | bytes with a name; embedded policies |
//! | [`kind`] | detection of the kind: a policy language, a ruleset's text, a form of program |
//! | [`options`] | options of reading an input |
//! | [`assignment`] | options of languages by name, and errors for those that the language lacks |
//! | [`check`] | errors for options without effect |
//! | [`load()`] | from the input to [`Loaded`], a [`Policy`] or a [`NamedProgram`] |
//! | [`native`] | the same for policies in the language of tamis alone |
//! | [`bindings`] | values for the run-time variables of a policy |
//! | [`compiled`] | from the policy to a proved program with warnings |
//! | `matrix` | a policy with options, compiled for all their combinations; behind the feature `toml` |
//! | [`profile`] | counts of calls, compared with a policy |
//! | [`side`] | several filters as one side of a comparison |
//! | [`path_text`] | paths as text, and back |
//! | [`files`] | reads files and standard input: all the I/O of the crate, behind the feature `files` |
//!
//! ```
//! use tamis_abi::Arch;
//! use tamis_policy::loader::NoIncludes;
//! use tamis_session::{CompiledPolicy, Input, LoadOptions, load};
//!
//! let input = Input::new("profile.json", r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
//!     {"names": ["read", "raed"], "action": "SCMP_ACT_ALLOW"}]}"#);
//! let policy = load(input, &LoadOptions::for_program(Arch::X86_64), &mut NoIncludes)?.into_policy("write a policy")?;
//! let compiled = CompiledPolicy::from_policy(policy, &Default::default())?;
//! assert!(compiled.warnings().any(|warning| warning.to_string().contains("raed")));
//! assert!(compiled.program().is_ok());
//! # Ok::<(), tamis_session::Error>(())
//! ```
//!
//! The crate neither prints nor inspects the machine: warnings are data in the result, errors are [`Error`], and the
//! caller states the machine's architecture ([`LoadOptions::new`]).
#![forbid(unsafe_code)]

pub mod assignment;
pub mod bindings;
pub mod check;
pub mod code;
pub mod compiled;
pub mod error;
#[cfg(feature = "files")]
pub mod files;
mod foreign;
pub mod input;
pub mod kind;
pub mod load;
pub mod loaded;
#[cfg(feature = "toml")]
pub mod matrix;
pub mod native;
pub mod options;
pub mod packet;
pub mod path_text;
pub mod profile;
pub mod side;

pub use assignment::{Assignment, Assignments};
pub use bindings::{Binding, Bindings};
pub use compiled::{CompiledPolicy, Warning};
pub use error::{Cause, Error};
pub use input::Input;
pub use kind::InputKind;
pub use load::load;
pub use loaded::{Loaded, NamedProgram, Policy};
pub use options::LoadOptions;
pub use side::{Side, SideOptions};

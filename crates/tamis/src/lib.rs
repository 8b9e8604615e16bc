//! Tamis for Rust programs: policies in, proved seccomp programs out.
//!
//! ```
//! use tamis::{Arch, PolicyOptions, compile_policy};
//!
//! let policy = "default errno(EPERM)\nallow read, write, exit_group\n";
//! let compiled = compile_policy("inline", policy, &PolicyOptions::new(vec![Arch::X86_64]))?;
//! println!("{} instructions", compiled.program().len());
//! # Ok::<(), tamis::PolicyError>(())
//! ```
//!
//! The parts are re-exported under the names of their crates: [`policy`] reads other languages,
//! [`compiler`] has passes and figures, [`prover`] compares programs, [`kernel`] installs them,
//! [`profile`] says what they are optimised for, [`convert`] writes policies in other languages. The
//! command line is made of the same parts and of nothing else.

use std::error::Error;
use std::fmt;

pub use tamis_abi as abi;
pub use tamis_bpf as bpf;
pub use tamis_compiler as compiler;
pub use tamis_convert as convert;
pub use tamis_diag as diag;
pub use tamis_fuzz as fuzz;
pub use tamis_kernel as kernel;
pub use tamis_lint as lint;
pub use tamis_policy as policy;
pub use tamis_profile as profile;
pub use tamis_prover as prover;
pub use tamis_rules as rules;

pub use tamis_abi::{Action, Arch, SeccompData};
pub use tamis_bpf::Program;
pub use tamis_compiler::Compiled;
pub use tamis_policy::tamis::Options as PolicyOptions;

use tamis_compiler::CompileError;
use tamis_diag::{Diagnostic, Sources};
use tamis_policy::loader::NoIncludes;

/// Why a policy did not become a program.
#[derive(Debug)]
pub enum PolicyError {
    /// The text has mistakes; the diagnostics point into the sources.
    Text(Vec<Diagnostic>, Sources),
    /// There is no program for what it means.
    Compile(CompileError),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::Text(diagnostics, sources) => {
                f.write_str(&tamis_diag::render::render(diagnostics, sources, false))
            }
            PolicyError::Compile(error) => error.fmt(f),
        }
    }
}

impl Error for PolicyError {}

/// Compiles a policy in the tamis language; `name` is what diagnostics call it.
///
/// The policy stands alone: it can include tamis's own sets, but no files. Warnings are dropped; use
/// [`policy::tamis::parse`] to see them, to load includes, or for other languages.
///
/// # Errors
/// If the text has mistakes, or there is no program for what it means.
pub fn compile_policy(
    name: &str,
    text: &str,
    options: &PolicyOptions,
) -> Result<Compiled, PolicyError> {
    let mut sources = Sources::new();
    let source = sources.add(name, text);
    let parsed = policy::tamis::parse(&mut sources, source, &mut NoIncludes, options);
    match parsed.ruleset {
        Some(ruleset) => {
            compiler::compile(&ruleset, &compiler::Options::default()).map_err(PolicyError::Compile)
        }
        None => Err(PolicyError::Text(parsed.diagnostics, sources)),
    }
}

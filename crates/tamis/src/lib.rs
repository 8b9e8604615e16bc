//! Tamis for Rust programs: policies in, proved seccomp programs out.
//!
//! ```
//! use tamis::{Arch, PolicyOptions, compile_policy};
//!
//! let policy = "default errno(EPERM)\nallow read, write, exit_group\n";
//! let compiled = compile_policy("inline", policy, &PolicyOptions::new(vec![Arch::X86_64]))?;
//! println!("{} instructions", compiled.program()?.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Values that are known at run time
//!
//! A policy may compare arguments with [variables](Compiled::bind): the filter is compiled and proved once, for
//! all their values, and bound as often as a process starts. Binding is a copy and some stores.
//!
//! ```no_run
//! use tamis::kernel::{Install, install};
//! use tamis::{Arch, PolicyOptions, compile_policy};
//!
//! let policy = "\
//!     let control_fd: u32 in 0..0x7fffffff
//!     let peers: u32[2]
//!     default allow
//!     errno(EPERM) write(fd != control_fd && !(fd in peers))";
//! let filter = compile_policy("inline", policy, &PolicyOptions::new(vec![Arch::X86_64]))?;
//! let program = filter.values().set("control_fd", 5)?.set_all("peers", &[6, 6])?.bind()?;
//! install(&program, &Install::default())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Filters that are compiled with the program
//!
//! With the feature `macros`, `include_policy!` makes a module of a policy when the program is built, with typed
//! values, and [`build`] does so in a build script. The program then needs nothing of tamis when it runs.
//! Such programs leave out what only the command needs: `default-features = false`.
//!
//! # The parts
//!
//! They are re-exported under the names of their crates: [`policy`] reads other languages,
//! [`compiler`] has passes and figures, [`prover`] compares programs, [`analysis`] reads them, [`kernel`] installs them,
//! [`profile`] says what they are optimised for, [`convert`] writes policies in other languages. The
//! command line is made of the same parts and of nothing else.

use std::error::Error;
use std::fmt;

pub use tamis_abi as abi;
pub use tamis_analysis as analysis;
pub use tamis_bpf as bpf;
pub use tamis_compiler as compiler;
pub use tamis_convert as convert;
pub use tamis_diag as diag;
pub use tamis_embed as embed;
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
pub use tamis_embed::build;
#[cfg(feature = "macros")]
pub use tamis_macros::include_policy;
pub use tamis_policy::tamis::Options as PolicyOptions;

use tamis_compiler::CompileError;
use tamis_diag::{Diagnostic, Sources};
use tamis_policy::loader::NoIncludes;
use tamis_rules::Ruleset;

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
/// A policy with run-time variables is compiled once, for all their values:
///
/// ```
/// use tamis::{Arch, PolicyOptions, SeccompData, bpf, compile_policy};
///
/// let policy = "let log_fd: u32 in 3..9\ndefault errno(EPERM)\nallow write(fd == log_fd)";
/// let filter = compile_policy("inline", policy, &PolicyOptions::new(vec![Arch::X86_64]))?;
/// assert!(filter.values().set("log_fd", 10).is_err());
/// let program = filter.values().set("log_fd", 7)?.bind()?;
/// # let call = SeccompData { nr: 1, arch: Arch::X86_64.audit(), args: [7; 6], ..SeccompData::default() };
/// # assert_eq!(bpf::interp::run(&program, &call).ret, tamis::Action::ALLOW.ret());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the text has mistakes, or there is no program for what it means.
pub fn compile_policy(
    name: &str,
    text: &str,
    options: &PolicyOptions,
) -> Result<Compiled, PolicyError> {
    let ruleset = ruleset(name, text, options)?;
    compiler::compile(&ruleset, &compiler::Options::default()).map_err(PolicyError::Compile)
}

fn ruleset(name: &str, text: &str, options: &PolicyOptions) -> Result<Ruleset, PolicyError> {
    let mut sources = Sources::new();
    let source = sources.add(name, text);
    let parsed = policy::tamis::parse(&mut sources, source, &mut NoIncludes, options);
    parsed
        .ruleset
        .ok_or(PolicyError::Text(parsed.diagnostics, sources))
}

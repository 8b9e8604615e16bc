//! Tamis for Rust programs: policies in, proved seccomp filters out.
//!
//! ```no_run
//! let policy = "default errno(EPERM)\nallow read, write, exit_group";
//! let filter = tamis::Policy::from_text("server", policy)?.compile()?;
//! for warning in filter.warnings() {
//!     eprintln!("{warning}");
//! }
//! tamis::install(&filter)?;
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! A policy is in any language that the command reads: tamis's own, profiles of OCI and Docker, Firecracker, minijail,
//! kafel, systemd. It states its architectures, or is for the one for which the program was compiled.
//!
//! # Values that are known at run time
//!
//! A policy may compare arguments with [variables](CompiledPolicy::values). The filter is compiled and proved once for
//! all their values, and bound when a process starts. Binding copies the program and stores the values.
//!
//! ```
//! use tamis::Policy;
//! # use tamis::bpf;
//!
//! let policy = "\
//!     let control_fd: u32 in 0..0x7fffffff
//!     let peers: u32[2]
//!     default allow
//!     errno(EPERM) write(fd != control_fd && !(fd in peers))";
//! let filter = Policy::from_text("inline", policy)?.compile()?;
//! assert!(filter.values().set("control_fd", 0x8000_0000).is_err());
//! let program = filter.values().set("control_fd", 5)?.set_all("peers", &[6, 6])?.bind()?;
//! # assert_eq!(program.len(), filter.compiled().template().unbound().len());
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! [`kernel::install`](fn@kernel::install) takes the program.
//!
//! # Filters that are compiled with the program
//!
//! With the feature `macros`, `include_policy!` compiles a policy into a module when the program is built; with
//! `embed`, `build` does the same in a build script. The program then doesn't contain tamis.
//!
//! # Features
//!
//! `default-features = false` omits everything that only the command needs; these features add:
//!
//! | feature | adds |
//! |---|---|
//! | `embed` | `embed`, filters as source code, and `build` |
//! | `macros` | `include_policy!` |
//! | `foreign` | `optimize`, which optimises filters of other tools, `analysis` and `fuzz` |
//! | `lint` | `lint`, probable mistakes |
//! | `convert` | `export`, policies in other languages |
//! | `excerpts` | lines of the policy in the text of errors and warnings |
//! | `yaml` | resources of Kubernetes in YAML; without it they are read as JSON only |
//! | `toml` | `policy::matrix`, the combinations of a policy's options |
//! | `cli` | the command, with all of these but `macros`; the default |
//!
//! # The parts
//!
//! The crates are re-exported by name: [`session`] loads any input, [`policy`] has the languages, [`compiler`] the
//! passes and costs, [`prover`] compares programs, [`kernel`] installs them, and [`profile`] has the frequencies of
//! calls. The command consists of the same crates.

mod filter;

pub use tamis_abi as abi;
#[cfg(any(feature = "convert", feature = "foreign", feature = "lint"))]
pub use tamis_analysis as analysis;
pub use tamis_bpf as bpf;
pub use tamis_compiler as compiler;
pub use tamis_diag as diag;
#[cfg(feature = "embed")]
pub use tamis_embed as embed;
#[cfg(feature = "convert")]
pub use tamis_export as export;
#[cfg(feature = "foreign")]
pub use tamis_fuzz as fuzz;
pub use tamis_kernel as kernel;
#[cfg(feature = "lint")]
pub use tamis_lint as lint;
#[cfg(feature = "foreign")]
pub use tamis_optimize as optimize;
pub use tamis_policy as policy;
pub use tamis_profile as profile;
pub use tamis_prover as prover;
pub use tamis_rules as rules;
pub use tamis_session as session;

pub use tamis_abi::{Action, Arch, SeccompData};
pub use tamis_bpf::Program;
#[cfg(feature = "embed")]
pub use tamis_embed::build;
#[cfg(feature = "macros")]
pub use tamis_macros::include_policy;
pub use tamis_session::CompiledPolicy;

pub use filter::{Error, Policy, install};

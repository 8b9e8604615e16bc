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
//! A policy is in tamis's language or, with the feature `languages`, in any that the command reads: profiles of OCI and
//! Docker, Firecracker, minijail, kafel, systemd. It states its architectures, or is for the one for which the program
//! was compiled.
//!
//! # Values that are known at run time
//!
//! A policy may compare arguments with [variables](CompiledPolicy::values). The filter is compiled and proved once for
//! all their values, and bound when a process starts. Binding copies the program and stores the values.
//!
//! ```
//! use tamis::Policy;
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
//! [`install_program`] takes the program.
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
//! | `architectures` | policies for every architecture, not only for x86-64, AArch64 and the program's own |
//! | `languages` | policies in every language, for every architecture |
//! | `embed` | `build`, for build scripts |
//! | `macros` | `include_policy!` |
//! | `excerpts` | lines of the policy in the text of errors and warnings |
//! | `yaml` | resources of Kubernetes in YAML; without it they are read as JSON only |
//! | `cli` | the command, with all of these but `macros`; the default |
//!
//! # More than this
//!
//! These names are all that this crate promises. Who needs more uses the crates of which the command consists:
//! [`tamis_session`] loads any input, [`tamis_policy`] has the languages, [`tamis_compiler`] the passes,
//! [`tamis_prover`] compares programs, [`tamis_kernel`] installs and supervises.

mod filter;
mod supervise;

pub use filter::{Error, Policy, install, install_program, install_with};
pub use supervise::{Answer, Call, supervise};
pub use tamis_abi::Arch;
pub use tamis_bpf::Program;
#[cfg(feature = "embed")]
pub use tamis_embed::build;
pub use tamis_kernel::Install;
#[cfg(feature = "macros")]
pub use tamis_macros::include_policy;
pub use tamis_session::CompiledPolicy;

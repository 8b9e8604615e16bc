//! Calls in readable form, with names, constants and strings, while they are made.
//!
//! | module | function |
//! |---|---|
//! | `shape` | the kinds of arguments: paths, buffers, flags, addresses |
//! | `symbols` | the names of values |
//! | `decode` | [`Decoder`]: the arguments of a call in progress, with their memory |
//! | `multiplexed` | calls of i386 through `socketcall` and `ipc` |
//! | `process_control` | the arguments of `prctl` |
//! | `memory` | reading strings of a task |
//! | `structure` | structures behind arguments |
//! | `address` | socket addresses |
//! | `follow` | [`CallTracker`]: the calls in progress, reported to a [`Sink`] |
//! | `watched` | a command under a platform that reports its calls |
//! | `text` | bytes and results in the form of strace |
//! | `errors` | the texts of errors |
//! | `lines` | [`Lines`]: events as lines of text, in the form of strace |
//!
//! Structures whose layout `structure` doesn't have are shown by their addresses.

mod address;
mod decode;
mod errors;
mod follow;
mod lines;
mod memory;
mod multiplexed;
mod process_control;
mod shape;
mod structure;
mod symbols;
mod text;
mod watched;

pub use decode::{Argument, DecodedValue, Decoder};
pub use follow::{CallTracker, EnteredCall, Outcome, Sink};
pub use lines::{Lines, Prefix};
pub use multiplexed::multiplexed;
pub use shape::{PieceLength, ReadMemory, takes_descriptor, takes_path, wanted};
pub use structure::signal_info;
pub use symbols::{error_name, signal_name};
pub use watched::CallWatcher;

//! Calls as people read them: with names, constants and strings, while they are made.
//!
//! | module | function |
//! |---|---|
//! | `shape` | what the arguments of a call are: paths, buffers, flags, addresses |
//! | `symbols` | the names of values |
//! | `decode` | [`Decoder`]: the arguments of a call that is being made, with what is in memory |
//! | `multiplexed` | calls of i386 through `socketcall` and `ipc` |
//! | `memory` | reading strings of a task |
//! | `structure` | structures behind arguments |
//! | `address` | addresses of sockets |
//! | `follow` | [`Following`]: the calls that tasks are in; tells a [`Sink`] |
//! | `watched` | a command under a platform that tells its calls |
//! | `text` | bytes and results in the form of strace |
//! | `errors` | the texts of errors |
//! | `lines` | [`Lines`]: what happens as lines of text, in the form of strace |
//!
//! Structures of which `structure` doesn't know the layout are shown by their addresses.

mod address;
mod decode;
mod errors;
mod follow;
mod lines;
mod memory;
mod multiplexed;
mod shape;
mod structure;
mod symbols;
mod text;
mod watched;

pub use decode::{Argument, Decoder, Shown};
pub use follow::{Following, Outcome, Seen, Sink};
pub use lines::{Lines, Prefix};
pub use multiplexed::multiplexed;
pub use shape::{Len, Wanted, takes_descriptor, takes_path, wanted};
pub use structure::signal_info;
pub use symbols::{error_name, signal_name};
pub use watched::Watched;

//! The machine code of programs: its results, and proofs of its templates.

mod agreement;
mod bounds;
mod edges;
mod extended;
mod extended_meaning;
mod extended_model;
mod extended_templates;
mod libpcap;
mod lines;
mod memory;
mod model;
mod repeats;
mod sockets;
mod templates;

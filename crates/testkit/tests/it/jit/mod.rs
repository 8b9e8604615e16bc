//! The machine code of programs: what it returns, and proofs of what its templates do.

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

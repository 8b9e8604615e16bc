//! The tables that the repository keeps (`bench/*.tsv`, the book's) against what is measured now, and the other
//! compilers. `cargo test -p tamis-bench NAME::` runs one module.

mod arguments;
mod counts;
mod effort;
mod foreign;
mod goals;
mod gvisor;
mod peers;

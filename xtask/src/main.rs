//! Content follows.
fn main() {}

//! Content follows.

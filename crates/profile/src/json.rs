//! The documented JSON of profiles: parsing with places, printing with deterministic bytes; and JSON of other tools.

pub(crate) mod lines;
pub(crate) mod names;
mod read;
mod write;

pub(crate) use read::{DIALECT, read};

/// The value of the member `schema`.
const SCHEMA: &str = "tamis-profile/1";

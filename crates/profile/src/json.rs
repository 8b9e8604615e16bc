//! The documented JSON of profiles: parsing with places, printing with deterministic bytes.

mod read;
mod write;

pub(crate) use read::read;

/// The value of the member `schema`.
const SCHEMA: &str = "tamis-profile/1";

//! The documented JSON of profiles: reading it with places, writing it byte for byte the same.

mod read;
mod write;

pub(crate) use read::read;

/// What the member `schema` says.
const SCHEMA: &str = "tamis-profile/1";

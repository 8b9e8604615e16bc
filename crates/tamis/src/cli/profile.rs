//! Reading profiles: several inputs of any format become one.

use tamis_abi::Arch;
use tamis_profile::Profile;
use tamis_session::{files, profile};

use super::load::reading;
use super::{Failure, Global};

/// Reads profiles and adds them up. Tables are about `arch`. Warnings go to standard error.
pub(crate) fn load(paths: &[String], arch: Arch, global: &Global) -> Result<Profile, Failure> {
    let mut sum = Profile::default();
    for path in paths {
        let _stage = reading(path);
        let loaded = profile::load(files::read(path)?, arch)?;
        global.warn(&loaded.warnings, &loaded.sources);
        sum.merge(&loaded.profile);
    }
    Ok(sum)
}

//! Reading profiles: several inputs of any format become one.

use tamis_abi::{Arch, Nr, syscall};
use tamis_diag::Sources;
use tamis_profile::Profile;

use super::input::Input;
use super::{Failure, Global};

/// Reads profiles and adds them up. Tables are about `arch`. Warnings go to standard error.
pub(crate) fn load(paths: &[String], arch: Arch, global: &Global) -> Result<Profile, Failure> {
    let mut sum = Profile::default();
    for path in paths {
        let mut sources = Sources::new();
        let source = Input::read(path)?.add_to(&mut sources)?;
        let reading = tamis_profile::read(&sources, source, arch);
        let Some(profile) = reading.profile else {
            return Err(Failure::Diagnostics(reading.diagnostics, sources));
        };
        global.warn(&reading.diagnostics, &sources);
        sum.merge(&profile);
    }
    Ok(sum)
}

/// What to call a number: its name, else `nr 500`.
pub(crate) fn name(arch: Arch, nr: Nr) -> String {
    match syscall::name(arch, nr) {
        Some(name) => name.to_owned(),
        None => format!("nr {}", nr.0),
    }
}

//! Reading profiles of any format and adding them up.

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, Sources};
use tamis_profile::code;
use tamis_profile::{Fleet, Overlap, Profile};
use tamis_session::profile::call_name;
use tamis_session::{files, profile};

use super::load::reading;
use super::{Failure, Global, parquet};

/// Reads profiles and adds them up, each run once. Tables without an architecture are for `arch`. Prints warnings.
pub fn load(paths: &[String], arch: Arch, global: &Global) -> Result<Profile, Failure> {
    let sum = load_fleet(paths, arch, global)?.into_sum();
    let sum = sum.map_err(|overlap| refuse(&overlap))?;
    let cut: Vec<String> = sum
        .saturated()
        .map(|(arch, nr)| format!("{arch} {}", call_name(arch, nr)))
        .collect();
    if !cut.is_empty() {
        let message = format!("more calls than a count can have: {}", cut.join(", "));
        let warning = Diagnostic::warning(code::PROFILE_SATURATED, message)
            .note("the count is cut at 18446744073709551615");
        global.warn(&[warning], &Sources::new());
    }
    Ok(sum)
}

/// Reads profiles without adding them up. Prints warnings.
pub fn load_fleet(paths: &[String], arch: Arch, global: &Global) -> Result<Fleet, Failure> {
    let mut fleet = Fleet::default();
    for path in paths {
        let _stage = reading(path);
        if parquet::is_parquet(path) {
            fleet.merge(parquet::read(path)?);
            continue;
        }
        let loaded = profile::load(files::read(path)?, arch)?;
        global.warn(&loaded.warnings, &loaded.sources);
        fleet.add(loaded.profile);
    }
    Ok(fleet)
}

/// The failure for runs that can't be added up.
pub fn refuse(overlap: &Overlap) -> Failure {
    Failure::usage(
        overlap.to_string(),
        "merge the profiles of the single runs instead of their sums",
    )
}

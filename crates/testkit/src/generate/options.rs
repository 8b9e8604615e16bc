//! Random options of the compiler: passes in any order, any amount of fuel, a suitable profile, any objective.

use tamis_abi::KernelVersion;
use tamis_compiler::passes::registry::{self, Selection};
use tamis_compiler::{CompileOptions, Objective};
use tamis_rules::Ruleset;

use super::profile::fitting;
use crate::rng::Rng;

/// The most passes in a random order.
const MAX_PASSES: u64 = 10;

/// Options for a ruleset.
///
/// # Panics
/// Never: the names are those of passes.
pub fn options(rng: &mut Rng, ruleset: &Ruleset) -> CompileOptions {
    let names: Vec<&str> = registry::all().map(|pass| pass.name).collect();
    let passes = match rng.chance(1, 3) {
        true => Selection::default(),
        false => {
            let count = rng.range(0..=MAX_PASSES);
            let chosen: Vec<&str> = (0..count).map(|_| *rng.choose(&names)).collect();
            Selection::named(chosen.iter().copied()).expect("passes that there are")
        }
    };
    let old = KernelVersion::new(4, 14);
    CompileOptions {
        passes,
        fuel: rng.chance(1, 4).then(|| rng.range(0..=20)),
        verify_each: rng.chance(1, 8),
        profile: rng.chance(1, 2).then(|| fitting(rng, ruleset)),
        objective: *rng.choose(&[Objective::Steps, Objective::Ns, Objective::Length]),
        kernel: rng.chance(1, 4).then_some(old),
        ..CompileOptions::default()
    }
}

//! Call counts in the corpus: `gvisor/profile-*.json` and `minijail/*.frequency`.

use serde_json::Value;
use tamis_abi::{Arch, Nr, syscall};
use tamis_profile::{Args, Profile};

/// The ten calls of gVisor's measurement of its policies, with counts and one argument list each.
///
/// # Panics
/// If the file does not follow the schema; the corpus is fixed.
#[track_caller]
pub fn gvisor_top_ten(name: &str) -> Profile {
    let file: Value = serde_json::from_str(&super::text(name)).expect("a profile is JSON");
    let top_ten = file["top10"].as_array().expect("a list of names");
    let calls = file["syscalls"].as_array().expect("a list of calls");
    let mut profile = Profile::default();
    for call in calls.iter().filter(|call| top_ten.contains(&call["name"])) {
        let nr = Nr(call["nr"].as_u64().expect("a number") as u32);
        let count = call["calls"].as_u64().expect("a count");
        let mut args = Args::default();
        let texts = call["args"].as_array().expect("a list of arguments");
        for (arg, text) in args.iter_mut().zip(texts) {
            let text = text.as_str().expect("an argument is text");
            let digits = text.strip_prefix("0x").expect("hexadecimal");
            *arg = u64::from_str_radix(digits, 16).expect("hexadecimal");
        }
        let entry = profile.call_mut(Arch::X86_64, nr);
        entry.count = count;
        entry.samples.insert(args, count);
    }
    profile
}

/// A minijail frequency file, read for x86_64.
///
/// # Panics
/// If a line is not empty, a comment or `NAME: COUNT`; the corpus is fixed.
#[track_caller]
pub fn frequency(name: &str) -> Profile {
    let text = super::text(name);
    let mut profile = Profile::default();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, count) = line.split_once(':').expect("a name and a count");
        let count: u64 = count.trim().parse().expect("a count is a number");
        if let Some(nr) = syscall::number(Arch::X86_64, name.trim()) {
            profile.call_mut(Arch::X86_64, nr).count += count;
        }
    }
    profile
}

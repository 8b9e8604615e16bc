//! The timed calls: calls and sequences of the arguments, the calls of a profile, and the mix of all of them.

use tamis_abi::{Arch, Nr, SeccompData, call, syscall};
use tamis_kernel::measure::{self, Call};
use tamis_profile::Profile;
use tamis_report::bench::{NotCalledEntry, StandInEntry};
use tamis_session::profile::call_name;

use super::draw::{Random, WeightedItems};
use crate::cli::{Failure, call as cli_call, load};

/// The number of calls in the mix.
const MIX_CALLS: usize = 8192;
/// The number of argument lists drawn for a call with several lists in the profile.
const ARGUMENT_LISTS: usize = 1024;
/// The maximum of named calls without their own entry.
const MAX_NAMED: usize = 3;

/// A timed case: calls made in sequence.
pub(super) struct Case {
    pub(super) name: String,
    /// The executed calls.
    pub(super) made: Vec<SeccompData>,
    /// The requested calls, one for each executed call.
    pub(super) wanted: Vec<SeccompData>,
    pub(super) stand_ins: Vec<StandInEntry>,
    /// Its share of all calls of the profile.
    pub(super) share: Option<f64>,
}

/// All timed cases.
pub(super) struct Cases {
    /// The cases of single calls and sequences.
    pub(super) each: Vec<Case>,
    /// All calls together, as often as they occur.
    pub(super) mix: Option<Case>,
    pub(super) left_out: Vec<NotCalledEntry>,
    /// A note about the part of the profile that is only in the mix, with the calls.
    pub(super) only_mixed: Option<String>,
}

/// The input of the cases.
pub(super) struct CaseOptions<'a> {
    /// The calls of the command line.
    pub(super) calls: &'a [String],
    /// The sequences of the command line.
    pub(super) sequences: &'a [String],
    pub(super) profile: Option<&'a Profile>,
    /// The number of calls of the profile that are timed individually.
    pub(super) top: usize,
    /// The seed of the mix.
    pub(super) seed: u64,
}

/// Calls in their order, with their total weight.
struct WeightedCalls {
    name: String,
    weight: u64,
    /// The argument lists of one call, with one drawn each time; or a sequence, made as it is.
    calls: Vec<SeccompData>,
    is_sequence: bool,
}

impl Cases {
    /// The cases for the options.
    ///
    /// # Errors
    /// If a text is no call, or nothing can be timed.
    pub(super) fn new(options: &CaseOptions<'_>) -> Result<Cases, Failure> {
        let mut cases = Cases {
            each: Vec::new(),
            mix: None,
            left_out: Vec::new(),
            only_mixed: None,
        };
        let is_silent = options.sequences.is_empty() && options.profile.is_none();
        let usual = measure::calls::DEFAULT.map(str::to_owned);
        let names = match options.calls {
            [] if is_silent => &usual[..],
            names => names,
        };
        for text in names {
            let data = native_call(text)?;
            cases.add(&name(&data), &[data], None);
        }
        let mut weighted = Vec::new();
        for text in options.sequences {
            weighted.push(sequence(text)?);
        }
        // Given calls are timed exclusively; the profile is for the compiler then.
        if let Some(profile) = options.profile.filter(|_| options.calls.is_empty()) {
            weighted.extend(cases.of_profile(profile, &mut Random::new(options.seed)));
        }
        cases.add_weighted(&weighted, options);
        if let ([], None) = (cases.each.as_slice(), &cases.mix) {
            let reason = match cases.left_out.first() {
                Some(NotCalledEntry { name, reason, .. }) => format!(": {name}: {reason}"),
                None => ": the profile has no calls of this machine's architecture".to_owned(),
            };
            return Err(Failure::usage(
                format!("none of the calls can be timed{reason}"),
                "name others with `--calls`, for instance getpid,read,write",
            ));
        }
        Ok(cases)
    }

    /// All cases; the mix is the last.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Case> {
        self.each.iter().chain(&self.mix)
    }

    /// The calls of a profile that this machine can make; the others are left out.
    fn of_profile(&mut self, profile: &Profile, random: &mut Random) -> Vec<WeightedCalls> {
        let native = load::native_arch();
        let total: u128 = profile
            .calls()
            .map(|(_, _, call)| u128::from(call.count))
            .sum();
        let mut found = Vec::new();
        for (arch, nr, call) in profile.calls().filter(|(_, _, call)| call.count > 0) {
            let name = call_name(arch, nr);
            let reason = match syscall::name(arch, nr) {
                _ if arch != native => Some("it is not of this machine's architecture"),
                None => Some("its effect is unknown"),
                Some(name) => Call::find(name).err(),
            };
            if let Some(reason) = reason {
                let name = match arch == native {
                    true => name,
                    false => format!("{arch} {name}"),
                };
                self.left_out.push(NotCalledEntry {
                    name,
                    reason,
                    share: Some(call.count as f64 / total as f64),
                });
                continue;
            }
            let calls = argument_lists(call, random)
                .into_iter()
                .map(|args| SeccompData {
                    nr: nr.0,
                    arch: arch.audit(),
                    ip: 0,
                    args,
                });
            found.push(WeightedCalls {
                name,
                weight: call.count,
                calls: calls.collect(),
                is_sequence: false,
            });
        }
        let share = |left_out: &NotCalledEntry| left_out.share.unwrap_or(0.0);
        self.left_out.sort_by(|a, b| share(b).total_cmp(&share(a)));
        found.sort_by(|a, b| (b.weight, &a.name).cmp(&(a.weight, &b.name)));
        found
    }

    /// Makes cases of the heaviest items, and the mix of all.
    fn add_weighted(&mut self, weighted: &[WeightedCalls], options: &CaseOptions<'_>) {
        let left_out: f64 = self.left_out.iter().filter_map(|call| call.share).sum();
        let total: u128 = weighted.iter().map(|item| u128::from(item.weight)).sum();
        let share = |weight: u64| weight as f64 / total as f64 * (1.0 - left_out);
        let sequences = weighted.iter().filter(|item| item.is_sequence).count();
        // A single item has no mix.
        let least = usize::from(weighted.len() == 1);
        let shown = (options.top + sequences).max(least);
        for item in weighted.iter().take(shown) {
            self.add(&item.name, &item.calls, Some(share(item.weight)));
        }
        let others = weighted.get(shown..).unwrap_or_default();
        if !others.is_empty() {
            let named = others.iter().take(MAX_NAMED).map(|item| item.name.as_str());
            let named: Vec<&str> = named.collect();
            let more = if others.len() > MAX_NAMED {
                ", …"
            } else {
                ""
            };
            let others_share: f64 = others.iter().map(|item| share(item.weight)).sum();
            self.only_mixed = Some(format!(
                "{} more kinds of calls are timed in the mix only, {:.1} % of the profile's calls: {}{more}",
                others.len(),
                others_share * 100.0,
                named.join(", ")
            ));
        }
        if weighted.len() < 2 {
            return;
        }
        let urn = WeightedItems::new(weighted.iter().map(|item| (item.weight, item)));
        let mut random = Random::new(options.seed);
        let mut calls = Vec::new();
        while calls.len() < MIX_CALLS {
            let Some(item) = urn.draw(&mut random) else {
                break;
            };
            match item.is_sequence {
                true => calls.extend(&item.calls),
                false => {
                    let index = random.below(item.calls.len() as u128) as usize;
                    calls.extend(item.calls.get(index));
                }
            }
        }
        self.mix = case("mix", &calls, Some(1.0 - left_out)).ok();
    }

    fn add(&mut self, name: &str, calls: &[SeccompData], share: Option<f64>) {
        if self.each.iter().any(|case| case.wanted == calls) {
            return;
        }
        match case(name, calls, share) {
            Ok(case) => self.each.push(case),
            Err((name, reason)) => self.left_out.push(NotCalledEntry {
                name,
                reason,
                share,
            }),
        }
    }
}

impl Case {
    /// The calls for people: the first, and the number of different argument lists.
    pub(super) fn described(&self) -> String {
        let Some(first) = self.made.first() else {
            return self.name.clone();
        };
        let mut different: Vec<&SeccompData> = Vec::new();
        for call in &self.made {
            if !different.contains(&call) {
                different.push(call);
            }
        }
        let is_one_call = self.made.iter().all(|call| call.nr == first.nr);
        match different.len() {
            1 => call::describe_briefly(first),
            count if is_one_call => {
                format!("{} with {count} lists of arguments", self.name)
            }
            _ => self.name.clone(),
        }
    }
}

/// The case of some calls; if one of them can't be made, its name and the reason.
fn case(
    case_name: &str,
    calls: &[SeccompData],
    share: Option<f64>,
) -> Result<Case, (String, &'static str)> {
    let mut case = Case {
        name: case_name.to_owned(),
        made: Vec::new(),
        wanted: calls.to_vec(),
        stand_ins: Vec::new(),
        share,
    };
    for wanted in calls {
        let name = name(wanted);
        let call = Call::with_args(&name, wanted.args).map_err(|reason| (name, reason))?;
        case.made.push(SeccompData {
            args: call.args,
            ..*wanted
        });
        let stand_in = call.stand_in.map(|how| StandInEntry {
            call: call.name,
            how,
        });
        case.stand_ins
            .extend(stand_in.filter(|stand_in| !case.stand_ins.contains(stand_in)));
    }
    Ok(case)
}

fn name(data: &SeccompData) -> String {
    call_name(load::native_arch(), Nr(data.nr))
}

/// A call of this machine's architecture.
fn native_call(text: &str) -> Result<SeccompData, Failure> {
    let native = load::native_arch();
    let data = cli_call::parse(text.trim(), native)?;
    if Arch::of_call(data.arch, data.nr) == Some(native) {
        return Ok(data);
    }
    Err(Failure::usage(
        format!(
            "`{}` is not a call of {native}, and only those can be timed here",
            text.trim()
        ),
        "omit the architecture",
    ))
}

/// `[COUNT*]CALL;CALL;...`
fn sequence(text: &str) -> Result<WeightedCalls, Failure> {
    let (weight, calls) = match text.split_once('*') {
        Some((weight, calls)) => (weight.trim().parse().ok().filter(|n| *n > 0), calls),
        None => (Some(1), text),
    };
    let Some(weight) = weight else {
        return Err(Failure::usage(
            format!("`{text}` does not begin with a valid weight"),
            "write a sequence as `read;write`, or as `3*read;write` with weight 3",
        ));
    };
    let calls: Vec<SeccompData> = calls
        .split(';')
        .map(native_call)
        .collect::<Result<_, _>>()?;
    let names: Vec<String> = calls.iter().map(name).collect();
    for name in &names {
        if let Err(reason) = Call::find(name) {
            return Err(Failure::usage(
                format!("the sequence `{text}` can't be timed: {name}: {reason}"),
                format!("leave {name} out"),
            ));
        }
    }
    Ok(WeightedCalls {
        name: names.join(";"),
        weight,
        calls,
        is_sequence: true,
    })
}

/// The argument lists of a call by their frequency: a single list if all are equal.
fn argument_lists(call: &tamis_profile::Call, random: &mut Random) -> Vec<[u64; 6]> {
    let samples = WeightedItems::new(call.samples.iter().map(|(args, count)| (*count, *args)));
    let values = call.values.iter();
    let values: Vec<(u8, WeightedItems<u64>)> = values
        .map(|(arg, counts)| {
            let counts = counts.iter().map(|(value, count)| (*count, *value));
            (*arg, WeightedItems::new(counts))
        })
        .collect();
    let count = u128::from(call.count);
    let mut draw = || {
        if let Some(args) = samples.at(random.below(count)) {
            return *args;
        }
        let mut args = [0; 6];
        for (arg, values) in &values {
            if let Some(value) = values.at(random.below(count)) {
                args[usize::from(*arg)] = *value;
            }
        }
        args
    };
    let mut lists: Vec<[u64; 6]> = (0..ARGUMENT_LISTS).map(|_| draw()).collect();
    if lists.iter().all(|list| *list == lists[0]) {
        lists.truncate(1);
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_mixed_by_its_counts_and_says_what_it_lacks() {
        let arch = load::native_arch();
        let nr = |name| syscall::number(arch, name).unwrap();
        let mut profile = Profile::default();
        profile.call_mut(arch, nr("getpid")).count = 600;
        profile.call_mut(arch, nr("exit_group")).count = 100;
        let ioctl = profile.call_mut(arch, nr("ioctl"));
        ioctl.count = 300;
        ioctl.samples.insert([5, 0x5401, 0, 0, 0, 0], 100);
        ioctl.values.entry(1).or_default().insert(7, 200);
        let cases = Cases::new(&CaseOptions {
            calls: &[],
            sequences: &[],
            profile: Some(&profile),
            top: 1,
            seed: 1,
        });
        let cases = cases.unwrap();
        assert_eq!(cases.each.len(), 1);
        assert_eq!(cases.each[0].share, Some(0.6));
        assert_eq!(
            (cases.left_out[0].name.as_str(), cases.left_out[0].share),
            ("exit_group", Some(0.1))
        );
        let mix = cases.mix.unwrap();
        let is_ioctl = |call: &&SeccompData| call.nr == nr("ioctl").0;
        let ioctls: Vec<&SeccompData> = mix.made.iter().filter(is_ioctl).collect();
        let third = mix.made.len() / 3;
        assert!(ioctls.len().abs_diff(third) < third / 8, "{}", ioctls.len());
        let commands = |value| ioctls.iter().filter(|call| call.args[1] == value).count();
        for value in [0x5401, 7] {
            assert!(commands(value) > third / 4, "{value}: {}", commands(value));
        }
        // The descriptor is always replaced.
        assert!(mix.made.iter().all(|call| call.args[0] != 5));
        assert_eq!(mix.stand_ins.len(), 1);
    }

    #[test]
    fn a_profile_of_one_call_is_timed_even_if_none_is_requested() {
        let arch = load::native_arch();
        let mut profile = Profile::default();
        let nr = syscall::number(arch, "getpid").unwrap();
        profile.call_mut(arch, nr).count = 3;
        let options = CaseOptions {
            calls: &[],
            sequences: &[],
            profile: Some(&profile),
            top: 0,
            seed: 1,
        };
        let cases = Cases::new(&options).unwrap();
        assert_eq!((cases.each.len(), cases.mix.is_none()), (1, true));
        let empty = Profile::default();
        let nothing = CaseOptions {
            profile: Some(&empty),
            ..options
        };
        assert!(Cases::new(&nothing).is_err());
    }

    #[test]
    fn a_sequence_has_a_weight_and_its_order() {
        let sequence = |text| sequence(text).unwrap();
        let three = sequence("3*getpid; close(4) ;getpid");
        assert_eq!(
            (three.weight, three.name.as_str()),
            (3, "getpid;close;getpid")
        );
        assert_eq!(three.calls[1].args[0], 4);
        assert_eq!(sequence("getpid").weight, 1);
        for text in ["x*getpid", "0*getpid", "getpid;", "getpit", "getpid;fork"] {
            assert!(super::sequence(text).is_err(), "{text}");
        }
    }
}

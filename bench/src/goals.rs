//! The judge: cases in which programs of several compilers are compared, and what counts in each.
//!
//! Every case is a policy, calls with weights, and a rule about calls that the kernel's bitmap answers.
//! A program's figure is the weighted mean of its executed instructions; the same judge rates tamis and
//! the best program that another compiler made of the same policy.

use tamis_abi::{Action, Arch, Endian, KernelVersion, Nr, SeccompData, syscall};
use tamis_bpf::cache::is_cacheable;
use tamis_bpf::{Program, interp};
use tamis_profile::Profile;
use tamis_rules::{Ruleset, Section};
use tamis_testkit::corpus::{self, gvisor, pol_json, profiles};
use tamis_testkit::inputs::Tests;
use tamis_testkit::rng::Rng;

use crate::policies::{DOCKER, docker_ruleset};

/// How many calls are tried to find one that a rule allows.
const TRIES: usize = 1 << 14;

/// What a call counts that the kernel answers without running the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached {
    /// Like any other: kernels before 5.11.
    Runs,
    /// No steps.
    IsFree,
    /// It is left out of the mean.
    IsLeftOut,
}

/// A call, and how often it happens.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The call.
    pub data: SeccompData,
    /// How often, in any unit.
    pub weight: f64,
}

/// A comparison.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name in `goals.tsv`.
    pub name: &'static str,
    /// The policy.
    pub ruleset: Ruleset,
    /// The calls.
    pub samples: Vec<Sample>,
    /// What is done about cached calls.
    pub cached: Cached,
    /// What the compiler is told about the calls.
    pub profile: Option<Profile>,
    /// What the compiler is told about the kernel.
    pub kernel: Option<KernelVersion>,
    /// The program of the corpus that was best so far.
    pub peer: &'static str,
    /// The mean to reach.
    pub goal_steps: f64,
    /// The length to reach.
    pub goal_insns: usize,
}

impl Case {
    /// The weighted mean of a program's steps.
    pub fn mean_steps(&self, program: &Program) -> f64 {
        let (mut steps, mut weight) = (0.0, 0.0);
        for sample in &self.samples {
            let data = &sample.data;
            let is_run = self.cached == Cached::Runs || !is_cacheable(program, data.arch, data.nr);
            let image = data.image(Endian::Little);
            if is_run {
                steps += sample.weight * f64::from(interp::run(program, &image).steps);
            }
            if is_run || self.cached == Cached::IsFree {
                weight += sample.weight;
            }
        }
        if weight > 0.0 { steps / weight } else { 0.0 }
    }
}

/// All cases; `None` if there is no corpus.
///
/// # Panics
/// If a file of the corpus has mistakes.
pub fn cases() -> Option<Vec<Case>> {
    let old = KernelVersion::new(5, 4);
    let systrap = gvisor::ruleset("gvisor/gvisor-sentry-systrap.json")?;
    let top_ten = profiles::gvisor_top_ten("gvisor/profile-systrap.json")?;
    let crosvm = profiles::frequency("minijail/common_device.frequency")?;
    let docker = pol_json::ruleset("peers/docker.pol.json")?;
    let gappy = pol_json::ruleset("peers/gappy302.pol.json")?;
    let vmm = pol_json::ruleset("peers/fc-vmm.pol.json")?;
    let profile = docker_ruleset(DOCKER, &corpus::text(DOCKER)?);
    let case = |name, ruleset: &Ruleset, samples, cached, peer, goal_steps, goal_insns| Case {
        name,
        ruleset: ruleset.clone(),
        samples,
        cached,
        profile: None,
        kernel: None,
        peer,
        goal_steps,
        goal_insns,
    };
    let gvisor = "gvisor/gvisor-sentry-systrap.opt.bpf";
    let best_tree = "peers/docker-minijail-bst.bpf";
    let top = recorded(&top_ten);
    let vmm_calls = weighted(allowed(&vmm), &crosvm);
    let docker_calls = allowed(&docker);
    let gappy_calls = weighted(allowed(&gappy), &crosvm);
    Some(vec![
        Case {
            profile: Some(top_ten.clone()),
            ..case(
                "systrap",
                &systrap,
                top.clone(),
                Cached::IsFree,
                gvisor,
                6.20,
                300,
            )
        },
        Case {
            profile: Some(top_ten),
            kernel: Some(old),
            ..case(
                "systrap, no bitmap",
                &systrap,
                top,
                Cached::Runs,
                gvisor,
                8.5,
                300,
            )
        },
        Case {
            profile: Some(crosvm.clone()),
            ..case(
                "firecracker vmm, uncached",
                &vmm,
                vmm_calls,
                Cached::IsLeftOut,
                "peers/firecracker-kafel-vmm.bpf",
                11.0,
                130,
            )
        },
        Case {
            profile: Some(once_each(&docker_calls)),
            kernel: Some(old),
            ..case(
                "docker x86_64",
                &docker,
                docker_calls.clone(),
                Cached::Runs,
                best_tree,
                8.4,
                95,
            )
        },
        Case {
            profile: Some(once_each(&docker_calls)),
            ..case(
                "docker x86_64, uncached",
                &docker,
                docker_calls,
                Cached::IsLeftOut,
                best_tree,
                9.5,
                95,
            )
        },
        Case {
            profile: Some(once_each(&known())),
            kernel: Some(old),
            ..case(
                "docker, three architectures",
                &profile,
                known(),
                Cached::Runs,
                "docker/docker-libseccomp-opt2.bpf",
                9.0,
                340,
            )
        },
        Case {
            profile: Some(crosvm),
            kernel: Some(old),
            ..case(
                "gappy302, no bitmap",
                &gappy,
                gappy_calls,
                Cached::Runs,
                "peers/gappy302-minijail-bst-freq.bpf",
                5.9,
                60,
            )
        },
    ])
}

/// The calls of a profile that recorded whole argument lists.
fn recorded(profile: &Profile) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (arch, nr, call) in profile.calls() {
        for (args, count) in &call.samples {
            samples.push(Sample {
                data: SeccompData {
                    nr: nr.0,
                    arch: arch.audit(),
                    args: *args,
                    ..SeccompData::default()
                },
                weight: *count as f64,
            });
        }
    }
    samples
}

/// Every call that the x86_64 table knows, once, with all arguments 0.
fn known() -> Vec<Sample> {
    let call = |nr: u32| SeccompData {
        nr,
        arch: Arch::X86_64.audit(),
        ..SeccompData::default()
    };
    let all = syscall::all(Arch::X86_64);
    all.map(|(nr, _)| Sample {
        data: call(nr.0),
        weight: 1.0,
    })
    .collect()
}

/// A profile in which every number that occurs was called once.
fn once_each(samples: &[Sample]) -> Profile {
    let mut profile = Profile::default();
    for sample in samples {
        profile.call_mut(Arch::X86_64, Nr(sample.data.nr)).count = 1;
    }
    profile
}

/// For every allowed number one call per rule that allows it; all calls of a number weigh 1 together.
fn allowed(ruleset: &Ruleset) -> Vec<Sample> {
    let section = ruleset.section(Arch::X86_64).expect("a policy for x86_64");
    let mut samples = Vec::new();
    for (nr, _) in syscall::all(Arch::X86_64) {
        let calls = allowed_calls(ruleset, section, nr.0);
        let weight = 1.0 / calls.len() as f64;
        samples.extend(calls.into_iter().map(|data| Sample { data, weight }));
    }
    samples
}

fn allowed_calls(ruleset: &Ruleset, section: &Section, nr: u32) -> Vec<SeccompData> {
    let base = SeccompData {
        nr,
        arch: Arch::X86_64.audit(),
        ..SeccompData::default()
    };
    let rules = section.rules.iter();
    let rules = rules.filter(|rule| rule.action == Action::ALLOW && rule.syscalls.contains(nr));
    rules
        .map(|rule| {
            let mut tests = Tests::new();
            let alone = Section {
                rules: vec![rule.clone()],
                ..section.clone()
            };
            tests.add_section(&alone, nr);
            let calls = tests.inputs(base, TRIES, &mut Rng::new(0));
            let fits = |data: &SeccompData| {
                rule.when.holds(data) && ruleset.decide(data).action == Action::ALLOW
            };
            let call = calls.into_iter().find(fits);
            call.expect("a rule that allows something")
        })
        .collect()
}

/// The calls, each number as heavy as the profile says.
fn weighted(samples: Vec<Sample>, profile: &Profile) -> Vec<Sample> {
    let weight = |sample: &Sample| {
        let call = profile.call(Arch::X86_64, Nr(sample.data.nr));
        sample.weight * call.map_or(0, |call| call.count) as f64
    };
    let weigh = |sample: Sample| Sample {
        weight: weight(&sample),
        ..sample
    };
    samples.into_iter().map(weigh).collect()
}

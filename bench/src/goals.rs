//! Goals: cases in which programs of several compilers are compared, with the rules of comparison.
//!
//! Every case is a policy, calls with weights, and a rule about calls that the kernel's bitmap answers. The figure of
//! a program is the weighted mean of its executed instructions; tamis and the best program of another compiler for
//! the same policy are measured in the same way.
//! the best program that another compiler made of the same policy.

use std::collections::BTreeMap;

use tamis_abi::{Action, Arch, KernelVersion, Nr, SeccompData, syscall};
use tamis_analysis::{CaseLimits, decompile};
use tamis_bpf::{Program, Stack};
use tamis_compiler::meter::{Cost, Sample, Workload, measure};
use tamis_profile::Profile;
use tamis_prover::{Function, LimitReached, Limits, Space};
use tamis_rules::{Ruleset, Section, Values};
use tamis_testkit::corpus::{self, gvisor, pol_json, profiles};
use tamis_testkit::inputs::Tests;
use tamis_testkit::rng::Rng;

use crate::policies::{DOCKER, docker_ruleset};

/// The most calls that are tried to find one that a rule allows.
const TRIES: usize = 1 << 14;

/// The cost of a call that the kernel answers without running the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached {
    /// That of any other call, as for kernels before 5.11.
    Runs,
    /// No steps.
    IsFree,
    /// None: the call is left out of the mean.
    IsLeftOut,
}

/// A comparison.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name in `goals.tsv`.
    pub name: &'static str,
    /// The policy.
    pub ruleset: Ruleset,
    /// The calls.
    pub calls: Workload,
    /// The cost of cached calls.
    pub cached: Cached,
    /// The profile of the calls for the compiler.
    pub profile: Option<Profile>,
    /// The kernel for the compiler.
    pub kernel: Option<KernelVersion>,
    /// The best result so far: a program of the corpus, or a stack.
    pub peer: Stack,
    /// The mean to reach.
    pub goal_steps: f64,
    /// The length to reach.
    pub goal_insns: usize,
}

impl Case {
    /// The weighted mean of the steps of programs.
    pub fn mean_steps(&self, stack: &Stack) -> f64 {
        let cost = self.cost(stack);
        match self.cached {
            Cached::Runs | Cached::IsFree => cost.mean_executed_steps(),
            Cached::IsLeftOut => cost.uncached.mean_steps(),
        }
    }

    /// The most steps of a call for which the kernel runs the programs.
    pub fn max_steps(&self, stack: &Stack) -> u32 {
        self.cost(stack).uncached.max_steps
    }

    fn cost(&self, stack: &Stack) -> Cost {
        measure(stack.programs(), &self.calls, self.cached != Cached::Runs)
    }
}

/// A kernel without a bitmap.
const OLD: Option<KernelVersion> = Some(KernelVersion::new(5, 4));

/// All cases.
///
/// # Panics
/// If a file of the corpus has errors.
pub fn cases() -> Vec<Case> {
    let cases = systrap_cases().into_iter();
    let cases = cases.chain([nvproxy_case(), vmm_case()]);
    let cases = cases.chain(docker_cases());
    cases.chain([gappy_case(), systemd_case()]).collect()
}

/// The ten calls that a sandbox makes most often for a database.
fn systrap_cases() -> [Case; 2] {
    let ruleset = gvisor::ruleset("gvisor/gvisor-sentry-systrap.json");
    let profile = profiles::gvisor_top_ten("gvisor/profile-systrap.json");
    let with_bitmap = Case {
        name: "systrap",
        ruleset,
        calls: recorded(&profile),
        cached: Cached::IsFree,
        profile: Some(profile),
        kernel: None,
        peer: corpus::program("gvisor/gvisor-sentry-systrap.opt.bpf").into(),
        goal_steps: 6.20,
        goal_insns: 300,
    };
    let without = Case {
        name: "systrap, no bitmap",
        cached: Cached::Runs,
        kernel: OLD,
        goal_steps: 8.5,
        ..with_bitmap.clone()
    };
    [with_bitmap, without]
}

/// The requests of a sandbox for graphics processors, with equal weights: one recorded call of each that is allowed.
fn nvproxy_case() -> Case {
    let ruleset = gvisor::ruleset("gvisor/gvisor-sentry-nvproxy.json");
    let ioctl = syscall::number(Arch::X86_64, "ioctl").expect("a call");
    let mut requests = BTreeMap::new();
    for vector in gvisor::vectors("gvisor/gvisor-sentry-nvproxy.vectors") {
        let data = vector.data;
        if data.nr == ioctl.0 && ruleset.decide(&data).action == Action::ALLOW {
            requests.insert(data.args[1], data.args);
        }
    }
    let mut profile = Profile::default();
    let call = profile.call_mut(Arch::X86_64, ioctl);
    call.count = requests.len() as u64;
    call.samples = requests.into_values().map(|args| (args, 1)).collect();
    Case {
        name: "nvproxy, ioctl",
        calls: recorded(&profile),
        ruleset,
        cached: Cached::IsFree,
        profile: Some(profile),
        kernel: None,
        peer: corpus::program("gvisor/gvisor-sentry-nvproxy.opt.bpf").into(),
        goal_steps: 20.0,
        goal_insns: 400,
    }
}

/// A virtual machine monitor with the recorded frequencies of another one.
fn vmm_case() -> Case {
    let ruleset = pol_json::ruleset("peers/fc-vmm.pol.json");
    let profile = profiles::frequency("minijail/common_device.frequency");
    Case {
        name: "firecracker vmm, uncached",
        calls: weighted(&allowed(&ruleset), &profile),
        ruleset,
        cached: Cached::IsLeftOut,
        profile: Some(profile),
        kernel: None,
        peer: corpus::program("peers/firecracker-kafel-vmm.bpf").into(),
        goal_steps: 11.0,
        goal_insns: 130,
    }
}

/// Docker's profile: all allowed calls with equal weights, for x86_64 alone; and all known ones, for three
/// architectures.
fn docker_cases() -> [Case; 3] {
    let ruleset = pol_json::ruleset("peers/docker.pol.json");
    let calls = allowed(&ruleset);
    let alone = Case {
        name: "docker x86_64",
        ruleset,
        cached: Cached::Runs,
        profile: Some(once_each(&calls)),
        calls,
        kernel: OLD,
        peer: corpus::program("peers/docker-minijail-bst.bpf").into(),
        goal_steps: 8.4,
        goal_insns: 95,
    };
    let uncached = Case {
        name: "docker x86_64, uncached",
        cached: Cached::IsLeftOut,
        kernel: None,
        goal_steps: 9.5,
        ..alone.clone()
    };
    let three = Case {
        name: "docker, three architectures",
        ruleset: docker_ruleset(DOCKER, &corpus::text(DOCKER)),
        calls: known(),
        profile: Some(once_each(&known())),
        peer: corpus::program("docker/docker-libseccomp-opt2.bpf").into(),
        goal_steps: 9.0,
        goal_insns: 340,
        ..alone.clone()
    };
    [alone, uncached, three]
}

/// A list of allowed numbers with gaps.
fn gappy_case() -> Case {
    let ruleset = pol_json::ruleset("peers/gappy302.pol.json");
    let profile = profiles::frequency("minijail/common_device.frequency");
    Case {
        name: "gappy302, no bitmap",
        calls: weighted(&allowed(&ruleset), &profile),
        ruleset,
        cached: Cached::Runs,
        profile: Some(profile),
        kernel: OLD,
        peer: corpus::program("peers/gappy302-minijail-bst-freq.bpf").into(),
        goal_steps: 5.9,
        goal_insns: 60,
    }
}

/// The 34 filters of a service as one: the policy is the function of the stack.
fn systemd_case() -> Case {
    let names = corpus::files("systemd/stack", ".bpf");
    let stack: Vec<Program> = names.iter().map(|name| corpus::program(name)).collect();
    let mut space = Space::new(Limits::default());
    let functions: Result<Vec<Function>, LimitReached> =
        stack.iter().map(|program| space.program(program)).collect();
    let function = functions.and_then(|functions| space.stack(&functions));
    let function = function.expect("the stack is small");
    let ruleset = decompile(&mut space, function, &CaseLimits::default());
    Case {
        name: "systemd, 34 filters as one",
        ruleset: ruleset.expect("the stack has a ruleset"),
        calls: known(),
        cached: Cached::Runs,
        profile: Some(once_each(&known())),
        kernel: OLD,
        peer: Stack::new(stack).expect("one machine's"),
        goal_steps: 10.0,
        goal_insns: 250,
    }
}

/// Every call in the x86_64 table, once, with all arguments 0.
fn known() -> Workload {
    Workload::every_call(&[Arch::X86_64])
}

/// A profile with one call of every number that occurs.
fn once_each(calls: &Workload) -> Profile {
    let mut profile = Profile::default();
    for sample in calls.samples() {
        profile.call_mut(Arch::X86_64, Nr(sample.data.nr)).count = 1;
    }
    profile
}

/// For every allowed number one call per rule that allows it; the calls of a number weigh 1 together.
pub(crate) fn allowed(ruleset: &Ruleset) -> Workload {
    let section = ruleset.section(Arch::X86_64).expect("a policy for x86_64");
    let mut samples = Vec::new();
    for (nr, _) in syscall::all(Arch::X86_64) {
        let calls = allowed_calls(ruleset, section, nr.0);
        let weight = 1.0 / calls.len() as f64;
        samples.extend(calls.into_iter().map(|data| Sample {
            arch: Arch::X86_64,
            data,
            weight,
        }));
    }
    Workload::new(samples)
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
                rule.when.holds(data, &Values::ZERO) && ruleset.decide(data).action == Action::ALLOW
            };
            let call = calls.into_iter().find(fits);
            call.expect("a rule that allows something")
        })
        .collect()
}

/// The calls, with the weight of each number in the profile.
pub(crate) fn weighted(calls: &Workload, profile: &Profile) -> Workload {
    calls.weighed(|sample| {
        let call = profile.call(Arch::X86_64, Nr(sample.data.nr));
        sample.weight * call.map_or(0, |call| call.count) as f64
    })
}

/// The calls of a profile.
pub(crate) fn recorded(profile: &Profile) -> Workload {
    Workload::from_profile(Some(profile), &[Arch::X86_64])
}

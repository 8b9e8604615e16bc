//! The cases for comparing tools: policies, calls with weights, and stored programs.
//!
//! Nearly all of them are in the corpus; without it only the list of 306 consecutive numbers remains.

use std::collections::BTreeMap;

use tamis_abi::{Action, Arch, SeccompData};
use tamis_bpf::{Program, Stack};
use tamis_compiler::meter::{Sample, Workload};
use tamis_profile::Profile;
use tamis_rules::{Predicate, Rule, Ruleset, Section};
use tamis_testkit::corpus::{self, gvisor, pol_json, profiles};

use super::judge::Policy;
use crate::goals;
use crate::policies::{DOCKER, docker_ruleset};

/// One policy, with the data for rating its programs.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name in the table.
    pub name: &'static str,
    /// The policy.
    pub policy: Policy,
    /// The text of the profile, if container runtimes accept it.
    pub docker: Option<String>,
    /// The file of the corpus, if gVisor accepts it.
    pub gvisor: Option<String>,
    /// The frequencies of calls, if known.
    pub counts: Option<Counts>,
    /// A call for each rule that allows; the calls of a number weigh 1 together.
    pub allowed: Workload,
    /// The calls with the weights of the case.
    pub weighted: Workload,
    /// Programs of other tools, with their names.
    pub stored: Vec<(String, Stack)>,
}

/// The frequencies of calls.
#[derive(Clone, Debug)]
pub struct Counts {
    /// The source of the counts.
    pub whose: &'static str,
    /// The counts.
    pub profile: Profile,
}

/// The files of the corpus that belong to each case: the case, the beginning of the file's name, and the tool's name
/// in the table. The longest beginning wins.
const STORED: [(&str, &str, &str); 12] = [
    (
        "docker, three architectures",
        "docker/docker-libseccomp-",
        "libseccomp-2.6.1-",
    ),
    ("docker x86_64", "peers/docker-", ""),
    ("docker x86_64, allow only", "peers/docker-1action-", ""),
    (CONSECUTIVE, "peers/allow306-", ""),
    (CONSECUTIVE, "docker/libseccomp306-", "libseccomp-2.6.1-"),
    ("302 numbers with gaps", "peers/gappy302-", ""),
    ("firecracker vmm", "peers/firecracker-", ""),
    (
        "gvisor sentry systrap",
        "gvisor/gvisor-sentry-systrap.",
        "gvisor ",
    ),
    (
        "gvisor sentry nvproxy",
        "gvisor/gvisor-sentry-nvproxy.",
        "gvisor ",
    ),
    ("gvisor gofer", "gvisor/gvisor-gofer-directfs.", "gvisor "),
    (
        "gvisor systrap stub",
        "gvisor/gvisor-systrap-stub.",
        "gvisor ",
    ),
    (
        "gvisor systrap thread",
        "gvisor/gvisor-systrap-sysmsg-thread.",
        "gvisor ",
    ),
];
/// The case without the corpus.
pub const CONSECUTIVE: &str = "306 numbers";
/// The filters of one service, which are one stack.
const STACK: &str = "systemd/stack/";

/// The action for foreign architectures if the policy has none.
const FOREIGN: Action = Action::KILL_THREAD;

/// The call frequencies of a virtual machine monitor.
const FREQUENCY: &str = "minijail/common_device.frequency";
/// The call frequencies of a sandbox that runs a database.
const DATABASE: &str = "gvisor/profile-systrap.json";

/// The files of the corpus without a case.
///
/// # Panics
/// If the corpus can't be read.
pub fn unclaimed() -> Vec<String> {
    let mut files = corpus::programs();
    files.retain(|file| claim(file).is_none() && !file.starts_with(STACK));
    files
}

/// All cases that are possible here.
///
/// # Panics
/// If a file of the corpus has errors.
pub fn cases() -> Vec<Case> {
    let consecutive = allow(0..=305);
    if !corpus::is_there() {
        return vec![Case::new(CONSECUTIVE, consecutive, None)];
    }
    let docker = fed("peers/docker.pol.json");
    let allow_docker = allow_only(&docker);
    let made = [
        fed_case(CONSECUTIVE, consecutive),
        fed_case("302 numbers with gaps", fed("peers/gappy302.pol.json")),
        docker_three(),
        fed_case("docker x86_64", docker),
        fed_case("docker x86_64, allow only", allow_docker),
        fed_case("firecracker vmm", fed("peers/fc-vmm.pol.json")),
        sandbox(
            "gvisor sentry systrap",
            "gvisor/gvisor-sentry-systrap",
            Some(database()),
        ),
        sandbox(
            "gvisor sentry nvproxy",
            "gvisor/gvisor-sentry-nvproxy",
            Some(database()),
        ),
        sandbox("gvisor gofer", "gvisor/gvisor-gofer-directfs", None),
        sandbox("gvisor systrap stub", "gvisor/gvisor-systrap-stub", None),
        sandbox(
            "gvisor systrap thread",
            "gvisor/gvisor-systrap-sysmsg-thread",
            None,
        ),
        stack(),
    ];
    made.into()
}

/// A policy that several compilers were given. It has no action for foreign architectures: most of the compilers kill
/// the thread.
fn fed(file: &str) -> Ruleset {
    let mut ruleset = pol_json::ruleset(file);
    ruleset.bad_arch = FOREIGN;
    ruleset
}

fn fed_case(name: &'static str, ruleset: Ruleset) -> Case {
    Case::new(name, ruleset, Some(frequency()))
}

fn frequency() -> Counts {
    Counts {
        whose: "a virtual machine monitor",
        profile: profiles::frequency(FREQUENCY),
    }
}

fn database() -> Counts {
    Counts {
        whose: "a database in the sandbox",
        profile: profiles::gvisor_top_ten(DATABASE),
    }
}

/// A sandbox's rules. Their vectors have a call for each alternative of a rule.
fn sandbox(name: &'static str, start: &str, counts: Option<Counts>) -> Case {
    let file = format!("{start}.json");
    let ruleset = gvisor::ruleset(&file);
    let vectors = gvisor::vectors(&format!("{start}.vectors"));
    let mut by_number: BTreeMap<u32, Vec<SeccompData>> = BTreeMap::new();
    for data in vectors.iter().map(|vector| vector.data) {
        let of_number = by_number.entry(data.nr).or_default();
        if ruleset.decide(&data).action == Action::ALLOW && !of_number.contains(&data) {
            of_number.push(data);
        }
    }
    let weigh = |calls: Vec<SeccompData>| {
        let weight = 1.0 / calls.len() as f64;
        calls.into_iter().map(move |data| Sample {
            arch: Arch::X86_64,
            data,
            weight,
        })
    };
    let allowed = Workload::new(by_number.into_values().flat_map(weigh));
    let case = Case::with_calls(name, ruleset, allowed, counts);
    Case {
        gvisor: Some(file),
        ..case
    }
}

fn docker_three() -> Case {
    let text = corpus::text(DOCKER);
    let ruleset = docker_ruleset(DOCKER, &text);
    let mut case = Case::new("docker, three architectures", ruleset, Some(frequency()));
    case.docker = Some(text);
    case
}

/// These numbers of x86_64, whatever the arguments; an error for all others.
///
/// # Panics
/// Never: there is one section.
pub fn allow(numbers: impl IntoIterator<Item = u32>) -> Ruleset {
    let rule = Rule {
        syscalls: numbers.into_iter().map(|nr| nr..=nr).collect(),
        when: Predicate::True,
        action: Action::ALLOW,
        origin: None,
    };
    let section = Section {
        arch: Arch::X86_64,
        rules: vec![rule],
        default: Action::errno(1),
    };
    Ruleset::new(vec![section], FOREIGN).expect("one section")
}

/// The ruleset without rules that do not allow.
fn allow_only(ruleset: &Ruleset) -> Ruleset {
    let mut sections = ruleset.sections().to_vec();
    for section in &mut sections {
        section.rules.retain(|rule| rule.action == Action::ALLOW);
    }
    Ruleset::new(sections, ruleset.bad_arch).expect("the architectures are the same")
}

/// The filters of one service; the policy is their function.
fn stack() -> Case {
    let files = corpus::files(STACK, ".bpf");
    let filters =
        Stack::new(files.iter().map(|file| program(file)).collect()).expect("one machine's");
    let counts = Some(frequency());
    let is_allowed = |data: &SeccompData| {
        let ret = filters.run(data).ret;
        Action::from_ret(ret) == Action::ALLOW
    };
    let known = Workload::every_call(&[Arch::X86_64]);
    let allowed = known.weighed(|sample| f64::from(u8::from(is_allowed(&sample.data))));
    Case {
        name: "systemd, 34 filters",
        weighted: weigh(&allowed, counts.as_ref()),
        allowed,
        counts,
        docker: None,
        gvisor: None,
        stored: vec![("systemd 252".to_owned(), filters.clone())],
        policy: Policy::Stack(filters),
    }
}

/// The calls with the counts of the profile, or with their own weights.
fn weigh(allowed: &Workload, counts: Option<&Counts>) -> Workload {
    match counts {
        Some(counts) => goals::weighted(allowed, &counts.profile),
        None => allowed.clone(),
    }
}

impl Case {
    fn new(name: &'static str, ruleset: Ruleset, counts: Option<Counts>) -> Case {
        let allowed = goals::allowed(&ruleset);
        Case::with_calls(name, ruleset, allowed, counts)
    }

    fn with_calls(
        name: &'static str,
        ruleset: Ruleset,
        allowed: Workload,
        counts: Option<Counts>,
    ) -> Case {
        // Recorded arguments are preferred to generated ones.
        let has_lists = |profile: &Profile| {
            let mut calls = profile.calls();
            calls.any(|(_, _, call)| !call.samples.is_empty())
        };
        let recorded = counts.as_ref().map(|counts| &counts.profile);
        let recorded = recorded.filter(|profile| has_lists(profile));
        Case {
            name,
            weighted: recorded.map_or_else(|| weigh(&allowed, counts.as_ref()), goals::recorded),
            allowed,
            counts,
            docker: None,
            gvisor: None,
            stored: stored(name),
            policy: Policy::Ruleset(ruleset),
        }
    }

    /// The policy, unless it is a stack of filters.
    pub fn ruleset(&self) -> Option<&Ruleset> {
        match &self.policy {
            Policy::Ruleset(ruleset) => Some(ruleset),
            Policy::Stack(_) => None,
        }
    }
}

/// The row of [`STORED`] for a file.
fn claim(file: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    let fits = STORED
        .iter()
        .filter(|(_, start, _)| file.starts_with(start));
    fits.max_by_key(|(_, start, _)| start.len())
}

/// The programs of the corpus for a case; none without it.
fn stored(case: &str) -> Vec<(String, Stack)> {
    let mut stored = Vec::new();
    if !corpus::is_there() {
        return stored;
    }
    for file in corpus::programs() {
        if let Some((_, start, label)) = claim(&file).filter(|(name, _, _)| *name == case) {
            let tool = file[start.len()..]
                .trim_end_matches(".bpf")
                .trim_end_matches("-vmm");
            stored.push((format!("{label}{tool}"), Stack::from(program(&file))));
        }
    }
    stored
}

fn program(file: &str) -> Program {
    corpus::program(file)
}

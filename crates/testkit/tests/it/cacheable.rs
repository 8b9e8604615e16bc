//! Every number that can be decided without arguments is answered by the kernel's bitmap: the prover finds the
//! numbers that are always allowed, the emulator of the kernel's check those that the program lets it detect.

use tamis_abi::{Action, Arch, Endian, KernelVersion, Word};
use tamis_analysis::with_word;
use tamis_bpf::cache::is_cacheable;
use tamis_compiler::{CompileOptions, Objective, compile};
use tamis_prover::{Limits, Space};
use tamis_rules::Ruleset;
use tamis_testkit::corpus::{gvisor, pol_json};
use tamis_testkit::generate::profile::fitting;
use tamis_testkit::generate::ruleset::{Size, ruleset};
use tamis_testkit::generate::shape;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

const OBJECTIVES: [Objective; 3] = [Objective::Steps, Objective::Ns, Objective::Length];

/// The numbers that a kernel's bitmaps could cover, and some beyond.
const NUMBERS: u32 = 520;

/// The audit values and numbers that are allowed for all arguments.
fn always_allowed(ruleset: &Ruleset) -> Vec<(u32, u32)> {
    let mut space = Space::new(Limits::default());
    let whole = space.ruleset(ruleset).expect("a policy is small");
    let mut allowed = Vec::new();
    for section in ruleset.sections() {
        let audit = section.arch.audit();
        let of_arch = with_word(&mut space, whole, Word::ARCH, audit);
        let of_arch = of_arch.expect("a policy is small");
        let own_bit = if section.arch == Arch::X32 {
            Arch::X32_BIT
        } else {
            0
        };
        for nr in own_bit..own_bit + NUMBERS {
            let of_number = with_word(&mut space, of_arch, Word::NR, nr);
            let values = space.values(of_number.expect("a policy is small"));
            if values.into_iter().eq([Action::ALLOW.ret()]) {
                allowed.push((audit, nr));
            }
        }
    }
    allowed
}

/// Compiles with these options and checks all numbers.
fn assert_seen(ruleset: &Ruleset, allowed: &[(u32, u32)], options: &CompileOptions, name: &str) {
    let compiled = compile(ruleset, options).expect("the policy compiles");
    let mut unseen = allowed
        .iter()
        .filter(|(audit, nr)| !is_cacheable(compiled.program().unwrap(), *audit, *nr));
    assert_eq!(unseen.next(), None, "{name}, {:?}", options.objective);
}

#[test]
fn random_rulesets_leave_no_number_to_the_filter_that_the_bitmap_could_answer() {
    let mut count = 0;
    for seed in seeds::selected(0..120) {
        let mut rng = Rng::new(seed);
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let ruleset = ruleset(&mut rng, Size::SMALL, endian);
        let options = CompileOptions {
            objective: *rng.choose(&OBJECTIVES),
            profile: rng.chance(1, 2).then(|| fitting(&mut rng, &ruleset)),
            kernel: rng.chance(1, 4).then_some(KernelVersion::new(5, 4)),
            ..CompileOptions::default()
        };
        let allowed = always_allowed(&ruleset);
        count += allowed.len();
        assert_seen(&ruleset, &allowed, &options, &format!("seed {seed}"));
    }
    assert!(count > seeds::least(10_000), "{count}");
}

#[test]
fn policies_of_the_corpus_leave_no_number_to_the_filter_that_the_bitmap_could_answer() {
    let peers = ["docker", "fc-vmm", "gappy302"];
    let peers = peers.map(|name| pol_json::ruleset(&format!("peers/{name}.pol.json")));
    let sandboxes = ["gofer-directfs", "sentry-nvproxy", "sentry-systrap"];
    let sandboxes = sandboxes.map(|name| gvisor::ruleset(&format!("gvisor/gvisor-{name}.json")));
    assert_nothing_is_left(peers.into_iter().chain(sandboxes));
}

#[test]
fn policies_of_real_shapes_leave_no_number_to_the_filter_that_the_bitmap_could_answer() {
    assert_nothing_is_left(shape::ALL.into_iter().map(|(_, make)| make()));
}

fn assert_nothing_is_left(rulesets: impl Iterator<Item = Ruleset>) {
    for ruleset in rulesets {
        let allowed = always_allowed(&ruleset);
        assert!(!allowed.is_empty());
        for objective in OBJECTIVES {
            for kernel in [None, Some(KernelVersion::new(5, 4))] {
                let options = CompileOptions {
                    objective,
                    kernel,
                    ..CompileOptions::default()
                };
                assert_seen(&ruleset, &allowed, &options, "corpus");
            }
        }
    }
}

//! One call with a long list of values, like the `ioctl` rules of sandboxes that give programs access to a device.

use tamis_abi::{Action, Arch, ArgIndex};
use tamis_rules::{IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Test};
use tamis_testkit::rng::Rng;

/// The number of `ioctl` on x86-64.
pub const IOCTL: u32 = 16;

/// `ioctl` with any of `count` scattered requests, denied otherwise.
///
/// # Panics
/// Never: there is one section.
pub fn requests(count: usize) -> Ruleset {
    let mut rng = Rng::new(count as u64);
    let values: Vec<u64> = (0..count).map(|_| rng.next_u64() & 0xffff_ffff).collect();
    let test = Test::In {
        operand: Operand::arg(ArgIndex::ALL[1]),
        set: values.into_iter().map(|value| value..=value).collect(),
    };
    let rule = Rule {
        syscalls: IntervalSet::single(IOCTL),
        when: Predicate::Test(test),
        action: Action::ALLOW,
        origin: None,
    };
    let section = Section {
        arch: Arch::X86_64,
        rules: vec![rule],
        default: Action::errno(1),
    };
    Ruleset::new(vec![section], Action::KILL_PROCESS).expect("one section")
}

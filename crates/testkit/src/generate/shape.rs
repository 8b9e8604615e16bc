//! Policies of the shapes that real ones have, for the tests that also read the [corpus](crate::corpus).
//!
//! Each shape has the same ruleset on every machine: the call tables give the names, and a fixed seed the values. What
//! they have of the real ones is what costs or breaks something: 300 calls by name on three architectures, trees of
//! tests for 200 requests of `ioctl`, comparisons of the lower halves of arguments, numbers with gaps, and a profile
//! in which few calls have most of the weight.

use tamis_abi::{Action, Arch, ArgIndex, Endian, Nr, Word, syscall};
use tamis_bpf::{Insn, Op, Program, Test as Jump};
use tamis_compiler::passes::registry::Selection;
use tamis_compiler::{CompileOptions, compile};
use tamis_profile::Profile;
use tamis_rules::{CmpOp, IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Test};

use crate::rng::Rng;

/// A policy of a real shape: its name, and the function that makes it.
pub type Shape = (&'static str, fn() -> Ruleset);

/// All shapes.
pub const ALL: [Shape; 4] = [
    ("shape/names", names),
    ("shape/requests", requests),
    ("shape/halves", halves),
    ("shape/gaps", gaps),
];

/// The policies of all shapes, by name.
pub fn policies() -> Vec<(String, Ruleset)> {
    ALL.map(|(name, make)| (name.to_owned(), make())).to_vec()
}

/// The architectures of an x86-64 machine.
const ARCHES: [Arch; 3] = [Arch::X86_64, Arch::X86, Arch::X32];

fn rule(nr: u32, when: Predicate) -> Rule {
    Rule {
        syscalls: IntervalSet::single(nr),
        when,
        action: Action::ALLOW,
        origin: None,
    }
}

fn number(arch: Arch, name: &str) -> Option<u32> {
    syscall::number(arch, name).map(|nr| nr.0)
}

fn low(arg: usize) -> Operand {
    Operand::arg_low(ArgIndex::ALL[arg])
}

fn section(arch: Arch, rules: Vec<Rule>) -> Section {
    Section {
        arch,
        rules,
        default: Action::errno(1),
    }
}

fn ruleset(sections: Vec<Section>) -> Ruleset {
    Ruleset::new(sections, Action::KILL_PROCESS).expect("no architecture twice")
}

/// 300 calls that containers make, without those that a denial is for: by name, with some conditions on arguments.
///
/// # Panics
/// Never: the calls exist.
pub fn names() -> Ruleset {
    const COUNT: usize = 300;
    let mut rng = Rng::new(1);
    let mut names: Vec<&str> = syscall::all(Arch::X86_64).map(|(_, name)| name).collect();
    while names.len() > COUNT {
        names.swap_remove(rng.range(0..=names.len() as u64 - 1) as usize);
    }
    names.sort_unstable();
    let condition = |name: &str| match name {
        "personality" => Predicate::Any(
            [0, 8, 0x2_0000, 0x2_0008, 0xffff_ffff]
                .map(|value| Predicate::compare(Operand::arg(ArgIndex::ALL[0]), CmpOp::Eq, value))
                .to_vec(),
        ),
        "socket" => Predicate::compare(Operand::arg(ArgIndex::ALL[0]), CmpOp::Ne, 40),
        "clone" => Predicate::Test(Test::Masked {
            operand: Operand::arg(ArgIndex::ALL[0]),
            mask: 0x7e02_0000,
            value: 0,
        }),
        _ => Predicate::True,
    };
    for name in ["personality", "socket", "clone"] {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let rules = |arch| {
        let known = names
            .iter()
            .filter_map(|name| Some((number(arch, name)?, name)));
        known.map(|(nr, name)| rule(nr, condition(name))).collect()
    };
    ruleset(ARCHES.map(|arch| section(arch, rules(arch))).to_vec())
}

/// `ioctl` with 200 requests, most of them with a test of their own on another argument, and 40 calls beside it.
///
/// # Panics
/// Never: the calls exist.
pub fn requests() -> Ruleset {
    const COUNT: u64 = 200;
    let mut rng = Rng::new(2);
    let mut rules: Vec<Rule> = (0..40).map(|nr| rule(nr * 7, Predicate::True)).collect();
    let alternatives = (0..COUNT).map(|index| {
        let request = 0x4600 + (index / 20) * 0x1_0000 + rng.range(0..=0xff) + index % 3;
        let mut all = vec![Predicate::compare(low(1), CmpOp::Eq, request)];
        match index % 4 {
            0 => {}
            1 => all.push(Predicate::compare(low(0), CmpOp::Lt, 1 << 31)),
            2 => all.push(Predicate::compare(
                Operand::arg(ArgIndex::ALL[2]),
                CmpOp::Ge,
                rng.range(0..=1 << 33),
            )),
            _ => all.push(Predicate::Test(Test::Masked {
                operand: Operand::arg(ArgIndex::ALL[2]),
                mask: 0xfff,
                value: 0,
            })),
        }
        Predicate::All(all)
    });
    let alternatives = alternatives.collect();
    let ioctl = number(Arch::X86_64, "ioctl").expect("a call");
    rules.retain(|rule| !rule.syscalls.contains(ioctl));
    rules.push(rule(ioctl, Predicate::Any(alternatives)));
    ruleset(vec![section(Arch::X86_64, rules)])
}

/// The few calls of a virtual machine monitor, with alternatives of comparisons of 32 bits and of masks.
///
/// # Panics
/// Never: the calls exist.
pub fn halves() -> Ruleset {
    let plain = [
        "read",
        "write",
        "close",
        "epoll_pwait",
        "epoll_wait",
        "eventfd2",
        "exit",
        "exit_group",
        "fstat",
        "lseek",
        "mprotect",
        "munmap",
        "readv",
        "rt_sigreturn",
        "sigaltstack",
        "stat",
        "timerfd_create",
        "timerfd_settime",
        "writev",
        "brk",
        "restart_syscall",
        "recvfrom",
    ];
    let mut rules: Vec<Rule> = plain
        .iter()
        .filter_map(|name| Some(rule(number(Arch::X86_64, name)?, Predicate::True)))
        .collect();
    let equal = |arg, values: &[u64]| {
        let alternatives = values
            .iter()
            .map(|value| Predicate::compare(low(arg), CmpOp::Eq, *value));
        Predicate::Any(alternatives.collect())
    };
    let masked = |arg, mask, value| {
        Predicate::Test(Test::Masked {
            operand: low(arg),
            mask,
            value,
        })
    };
    for (name, when) in [
        ("fcntl", equal(1, &[1, 2, 3, 4, 1030])),
        ("futex", equal(1, &[0, 1, 128, 129, 137, 265])),
        ("madvise", equal(2, &[4, 8, 16])),
        (
            "mmap",
            Predicate::All(vec![masked(3, 0xfff0, 0x4020), equal(2, &[1, 3])]),
        ),
        (
            "socket",
            Predicate::All(vec![equal(0, &[1]), equal(2, &[0])]),
        ),
        ("accept4", equal(3, &[0x8_0000])),
        ("kcmp", Predicate::compare(low(2), CmpOp::Le, 6)),
        (
            "ioctl",
            equal(1, &[0xae80, 0xae03, 0xae41, 0x4004_ae6d, 0x5421]),
        ),
        ("tkill", Predicate::compare(low(1), CmpOp::Ne, 9)),
    ] {
        let nr = number(Arch::X86_64, name).expect("a call");
        rules.push(rule(nr, when));
    }
    ruleset(vec![section(Arch::X86_64, rules)])
}

/// Numbers alone, with a gap after some.
///
/// # Panics
/// Never: there is one section.
pub fn gaps() -> Ruleset {
    let mut rng = Rng::new(4);
    let kept = (0..320).filter(|_| rng.chance(15, 16));
    let rules = kept.map(|nr| rule(nr, Predicate::True)).collect();
    ruleset(vec![section(Arch::X86_64, rules)])
}

/// Counts in which each of a policy's allowed calls has half the weight of the one before.
pub fn weights(ruleset: &Ruleset) -> Profile {
    let mut profile = Profile::default();
    let mut count = 1 << 40;
    for section in ruleset.sections() {
        for rule in section.rules.iter().step_by(7) {
            if let Some((nr, _)) = rule.syscalls.intervals().first() {
                profile.call_mut(section.arch, Nr(*nr)).count = count;
                count = (count / 2).max(1);
            }
        }
    }
    profile
}

/// Programs for the shapes: of the compiler, of the compiler without passes, by frequency, and lists of comparisons as
/// older tools write them.
///
/// # Panics
/// If a shape does not compile.
pub fn programs() -> Vec<(String, Program)> {
    let mut programs = Vec::new();
    for (name, make) in ALL {
        let ruleset = make();
        let ways = [
            ("compiled", CompileOptions::default()),
            (
                "without passes",
                CompileOptions {
                    passes: Selection::none(),
                    ..CompileOptions::default()
                },
            ),
            (
                "weighted",
                CompileOptions {
                    profile: Some(weights(&ruleset)),
                    ..CompileOptions::default()
                },
            ),
        ];
        for (way, options) in ways {
            let compiled = compile(&ruleset, &options).expect("a shape compiles");
            let program = compiled.program().expect("it has no variables").clone();
            programs.push((format!("{name}, {way}"), program));
        }
    }
    programs.push(("shape/gaps, list of comparisons".to_owned(), list(&gaps())));
    programs
}

/// A comparison with its own return for each number of a policy of numbers alone.
fn list(ruleset: &Ruleset) -> Program {
    let section = &ruleset.sections()[0];
    let load = |word: Word| Op::LoadData(word.offset(Endian::Little));
    let mut ops = vec![
        load(Word::ARCH),
        Op::branch(Jump::Eq, section.arch.audit(), 1, 0),
        Op::RetImm(ruleset.bad_arch.ret()),
        load(Word::NR),
        Op::branch(Jump::Ge, Arch::X32_BIT, 0, 1),
        Op::RetImm(ruleset.bad_arch.ret()),
    ];
    for rule in &section.rules {
        for (first, last) in rule.syscalls.intervals() {
            for nr in *first..=*last {
                ops.push(Op::branch(Jump::Eq, nr, 0, 1));
                ops.push(Op::RetImm(rule.action.ret()));
            }
        }
    }
    ops.push(Op::RetImm(section.default.ret()));
    let insns: Vec<Insn> = ops.into_iter().map(Insn::from).collect();
    Program::new(insns, Endian::Little).expect("a valid program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_are_what_they_say() {
        let names = names();
        assert_eq!(names.sections().len(), 3);
        assert!((295..=303).contains(&names.sections()[0].rules.len()));
        let requests = requests();
        let ioctl = requests.sections()[0].rules.last().expect("it has rules");
        let Predicate::Any(alternatives) = &ioctl.when else {
            panic!("{ioctl:?}");
        };
        assert_eq!(alternatives.len(), 200);
        assert_eq!(super::names(), names, "the same on every call");
    }

    #[test]
    fn a_list_means_its_policy() {
        let ruleset = gaps();
        let program = list(&ruleset);
        for nr in 0..400 {
            let data = tamis_abi::SeccompData {
                nr,
                arch: Arch::X86_64.audit(),
                ..tamis_abi::SeccompData::default()
            };
            let ret = tamis_bpf::interp::run(&program, &data).ret;
            assert_eq!(ret, ruleset.decide(&data).action.ret(), "{nr}");
        }
    }
}

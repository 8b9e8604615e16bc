//! Kafel's policies compared with programs by kafel, and conditions with a direct evaluation.

use std::fmt;

use tamis_abi::{Action, Arch, SeccompData};
use tamis_diag::{Sources, render};
use tamis_policy::kafel::{self, KafelOptions};
use tamis_policy::loader::NoIncludes;
use tamis_rules::{CmpOp, Ruleset};
use tamis_testkit::corpus::{self, texts};
use tamis_testkit::rng::Rng;

fn read(text: &str) -> Ruleset {
    let mut sources = Sources::new();
    let root = sources.add("x.policy", text);
    let parsed = kafel::parse(
        &mut sources,
        root,
        &mut NoIncludes,
        &KafelOptions::new(Arch::X86_64),
    );
    let messages = render::render(&parsed.diagnostics, &sources, false);
    parsed
        .ruleset
        .unwrap_or_else(|| panic!("{text}\n{messages}"))
}

#[test]
fn policies_mean_what_kafel_makes_of_them() {
    let cases = [
        ("peers/docker-kafel.bpf", "peers/docker.pol.json"),
        ("peers/gappy302-kafel.bpf", "peers/gappy302.pol.json"),
        ("peers/firecracker-kafel-vmm.bpf", "peers/fc-vmm.pol.json"),
    ];
    for (program, policy) in cases {
        let text = texts::kafel(policy);
        assert!(corpus::is_program(&read(&text), program), "{program}");
    }
    let ruleset = read(&texts::kafel_306());
    assert!(corpus::is_program(&ruleset, "peers/allow306-kafel.bpf"));
}

#[test]
fn every_policy_of_the_corpus_is_read() {
    let names = corpus::files("kafel", ".policy");
    for name in names {
        read(&corpus::text(&name));
    }
}

/// A value of a condition.
#[derive(Clone)]
enum Bits {
    Number(u64),
    Argument(usize),
    And(Box<[Bits; 2]>),
    Or(Box<[Bits; 2]>),
}

impl Bits {
    fn random(rng: &mut Rng, depth: u32, numbers: &[u64]) -> Bits {
        let mut inner = || {
            Box::new([
                Bits::random(rng, depth - 1, numbers),
                Bits::random(rng, depth - 1, numbers),
            ])
        };
        match (depth > 0).then(&mut inner) {
            Some(parts) if rng.chance(1, 3) => Bits::And(parts),
            Some(parts) if rng.chance(1, 2) => Bits::Or(parts),
            _ if rng.chance(1, 2) => Bits::Number(*rng.choose(numbers)),
            _ => Bits::Argument(rng.index(3)),
        }
    }

    fn value(&self, args: &[u64]) -> u64 {
        match self {
            Bits::Number(number) => *number,
            Bits::Argument(index) => args[*index],
            Bits::And(parts) => parts[0].value(args) & parts[1].value(args),
            Bits::Or(parts) => parts[0].value(args) | parts[1].value(args),
        }
    }

    /// The value as kafel folds it before it decides the width.
    fn folded(&self) -> Bits {
        let (parts, is_and) = match self {
            Bits::Number(_) | Bits::Argument(_) => return self.clone(),
            Bits::And(parts) => (parts, true),
            Bits::Or(parts) => (parts, false),
        };
        let [left, right] = [parts[0].folded(), parts[1].folded()];
        let (clobber, identity) = if is_and { (0, u64::MAX) } else { (u64::MAX, 0) };
        match (&left, &right) {
            (Bits::Number(a), Bits::Number(b)) => Bits::Number(if is_and { a & b } else { a | b }),
            (Bits::Number(number), other) | (other, Bits::Number(number))
                if *number == identity =>
            {
                other.clone()
            }
            (Bits::Number(number), _) | (_, Bits::Number(number)) if *number == clobber => {
                Bits::Number(clobber)
            }
            _ if is_and => Bits::And(Box::new([left, right])),
            _ => Bits::Or(Box::new([left, right])),
        }
    }

    /// Whether kafel compares 64 bits, given which arguments have 64.
    fn is_wide(&self, wide: &[bool]) -> bool {
        match self {
            Bits::Number(number) => u32::try_from(*number).is_err(),
            Bits::Argument(index) => wide[*index],
            Bits::And(parts) | Bits::Or(parts) => parts.iter().any(|part| part.is_wide(wide)),
        }
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bits::Number(number) => write!(f, "{number:#x}"),
            Bits::Argument(index) => write!(f, "{}", ["fd", "cmd", "arg"][*index]),
            Bits::And(parts) => write!(f, "({} & {})", parts[0], parts[1]),
            Bits::Or(parts) => write!(f, "({} | {})", parts[0], parts[1]),
        }
    }
}

#[test]
fn comparisons_are_what_they_say_on_the_bits_that_count() {
    const NUMBERS: [u64; 8] = [
        0,
        1,
        0xff,
        0xf0f0,
        0xffff_ffff,
        0x1_0000_0000,
        0xf0f0_0000_0f0f,
        u64::MAX,
    ];
    let mut rng = Rng::new(1);
    for _ in 0..400 {
        // ioctl has two 32-bit arguments and one 64-bit one; with names declared by the policy all have 64.
        let own = rng.chance(1, 3);
        let wide = if own { [true; 3] } else { [false, false, true] };
        let [left, right] = [0, 1].map(|_| Bits::random(&mut rng, 2, &NUMBERS));
        let op = *rng.choose(&CmpOp::ALL);
        let names = if own { "(fd, cmd, arg)" } else { "" };
        let text = format!(
            "ALLOW {{ ioctl{names} {{ {left} {} {right} }} }}",
            op.symbol()
        );
        let ruleset = read(&text);
        let mask = match left.folded().is_wide(&wide) || right.folded().is_wide(&wide) {
            true => u64::MAX,
            false => u64::from(u32::MAX),
        };
        for _ in 0..50 {
            let args: Vec<u64> = (0..3)
                .map(|_| rng.choose(&NUMBERS) ^ rng.choose(&NUMBERS))
                .collect();
            let mut data = SeccompData {
                nr: 16,
                arch: Arch::X86_64.audit(),
                ..Default::default()
            };
            data.args[..3].copy_from_slice(&args);
            let holds = op.holds(left.value(&args) & mask, right.value(&args) & mask);
            let is_allowed = ruleset.decide(&data).action == Action::ALLOW;
            assert_eq!(is_allowed, holds, "{text} {args:x?}");
        }
    }
}

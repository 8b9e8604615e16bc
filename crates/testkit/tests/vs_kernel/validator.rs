//! The validator accepts the same programs as the running kernel.

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::validate::problems;
use tamis_bpf::{Insn, Op, Program};
use tamis_kernel::Errno;
use tamis_kernel::differential::{CheckerAnswer, calls, checker_answers};
use tamis_testkit::corpus;
use tamis_testkit::generate::mutant::mutant;
use tamis_testkit::generate::program::{altered, nearly_valid, noise, program};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

use crate::native;

const EINVAL: CheckerAnswer = CheckerAnswer::Refused(Errno(22));

/// The kernel's expected answer.
fn expected(insns: &[Insn]) -> CheckerAnswer {
    match problems(insns).is_empty() && insns.len() <= Program::MAX_INSNS {
        true => CheckerAnswer::Accepted,
        false => EINVAL,
    }
}

/// Compares the answers for all lists and returns the number of accepted ones.
fn agreed(lists: &[Vec<Insn>]) -> usize {
    skip::unless_live();
    let answers = checker_answers(lists).unwrap_or_else(|error| skip::because(Need::Live, error));
    let mut accepted = 0;
    for (insns, answer) in lists.iter().zip(answers) {
        let problems = problems(insns);
        assert_eq!(expected(insns), answer, "{problems:?} in {insns:?}");
        accepted += usize::from(answer == CheckerAnswer::Accepted);
    }
    println!("{} lists, {accepted} accepted", lists.len());
    accepted
}

#[test]
fn on_generated_lists() {
    let mut rng = Rng::new(0x7461_6d69);
    let mut lists = Vec::new();
    let rounds = seeds::unless_emulated(20_000);
    for index in 0..rounds {
        let body_insns = rng.range(0..=if index % 50 == 0 { 600 } else { 30 }) as usize;
        lists.push(
            program(&mut rng, body_insns, Endian::Little)
                .insns()
                .to_vec(),
        );
        lists.push(nearly_valid(&mut rng, body_insns));
        lists.push(nearly_valid(&mut rng, body_insns / 4));
        lists.push(noise(&mut rng, body_insns / 4 + 1));
    }
    let accepted = agreed(&lists);
    assert!(
        (rounds..lists.len() - rounds).contains(&accepted),
        "{accepted}"
    );
}

#[test]
fn on_every_code_with_every_kind_of_constant() {
    let mut lists = Vec::new();
    let ret = Insn::from(Op::RetImm(0));
    let store = Insn::from(Op::Store(0));
    for code in (0..0x200).chain([0x1000, 0x8006, 0xff06, u16::MAX]) {
        for k in [0, 1, 4, 15, 16, 31, 32, 60, 64, 0xffff_f000, u32::MAX] {
            let (jt, jf) = (0, 0);
            let insn = Insn { code, jt, jf, k };
            lists.push(vec![store, insn, ret]);
            lists.push(vec![insn]);
        }
    }
    agreed(&lists);
}

#[test]
fn on_jumps_at_the_end_and_slots_in_dead_code() {
    let ret = Insn::from(Op::RetImm(0));
    let load = Insn::from(Op::LoadMem(0));
    let store = Insn::from(Op::Store(0));
    let mut lists = vec![vec![], vec![ret, load, ret], vec![ret, store, load, ret]];
    for skip in 0..4 {
        let jump = Insn::from(Op::Jump(skip));
        lists.push(vec![jump, ret, ret]);
        lists.push(vec![jump, load, ret, ret]);
        lists.push(vec![jump, store, load, ret]);
        for (jt, jf) in [(skip as u8, 0), (0, skip as u8), (skip as u8, skip as u8)] {
            let branch = Insn {
                code: 0x15,
                jt,
                jf,
                k: 0,
            };
            lists.push(vec![branch, ret, ret]);
            lists.push(vec![branch, load, ret, ret]);
            lists.push(vec![branch, store, load, ret]);
            lists.push(vec![branch, ret, load, ret]);
        }
    }
    agreed(&lists);
}

#[test]
fn on_the_longest_lists() {
    let nops = |count: usize| {
        let mut insns = vec![Insn::from(Op::Tax); count - 1];
        insns.push(Op::RetA.into());
        insns
    };
    let accepted = agreed(&[nops(4095), nops(4096), nops(4097), nops(5000)]);
    assert_eq!(accepted, 2);
}

/// Real programs with one instruction changed: as a compiler could write it, and arbitrarily.
#[test]
fn on_altered_programs_of_the_corpus() {
    let names = corpus::files("", ".bpf");
    let mut rng = Rng::new(0x6d75_7461);
    let mut lists = Vec::new();
    for insns in names.iter().map(|name| corpus::insns(name)) {
        let program = Program::new(insns.clone(), Endian::Little);
        for _ in 0..10 {
            lists.push(altered(&mut rng, &insns));
            let program = program.iter().filter(|program| program.is_installable());
            let mutants = program.filter_map(|program| mutant(&mut rng, program));
            lists.extend(mutants.map(|mutant| mutant.insns().to_vec()));
        }
        lists.push(insns);
    }
    agreed(&lists);
}

/// The check without installation has the same result as an installation.
#[test]
fn verdicts_are_those_of_installing() {
    skip::unless_kernel();
    let mut rng = Rng::new(0x696e_7374);
    let lists: Vec<Vec<Insn>> = (0..400).map(|_| nearly_valid(&mut rng, 12)).collect();
    let answers = checker_answers(&lists).expect("the kernel can be asked");
    for (insns, answer) in lists.iter().zip(answers) {
        let call = SeccompData {
            nr: 39,
            arch: native().audit(),
            ..SeccompData::default()
        };
        let installed = calls::answers(&[insns], &[call]);
        assert_eq!(
            installed.is_ok(),
            answer == CheckerAnswer::Accepted,
            "{installed:?} {insns:?}"
        );
    }
}

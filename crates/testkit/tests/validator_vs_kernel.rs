//! The validator gives the verdict of the running kernel.

use tamis_bpf::validate::problems;
use tamis_bpf::{Insn, Op, Program};
use tamis_testkit::generate::program::{nearly_valid, noise, program};
use tamis_testkit::judge::{self, Verdict};
use tamis_testkit::rng::Rng;
use tamis_testkit::skip::{self, Need};

/// Compares the verdicts on all lists and returns how many were accepted; `None` if the kernel cannot
/// be asked.
fn agreed(lists: &[Vec<Insn>]) -> Option<usize> {
    if let Some(reason) = judge::unavailable() {
        skip::because(Need::Live, reason);
        return None;
    }
    let mut accepted = 0;
    for (insns, verdict) in lists.iter().zip(judge::verdicts(lists)) {
        let problems = problems(insns);
        let is_accepted = verdict == Verdict::Accepted;
        let is_valid = problems.is_empty() && insns.len() <= Program::MAX_INSNS;
        assert_eq!(
            is_valid, is_accepted,
            "{verdict}, but {problems:?} in {insns:?}"
        );
        if !is_accepted {
            assert_eq!(verdict, Verdict::Refused(22), "not EINVAL for {insns:?}");
        }
        accepted += usize::from(is_accepted);
    }
    println!("{} lists, {accepted} accepted", lists.len());
    Some(accepted)
}

#[test]
fn on_generated_lists() {
    let mut rng = Rng::new(0x7461_6d69);
    let mut lists = Vec::new();
    for index in 0..8000 {
        let body_insns = rng.range(0..=if index % 50 == 0 { 600 } else { 30 }) as usize;
        lists.push(program(&mut rng, body_insns).insns().to_vec());
        lists.push(nearly_valid(&mut rng, body_insns));
        lists.push(nearly_valid(&mut rng, body_insns / 4));
        lists.push(noise(&mut rng, body_insns / 4 + 1));
    }
    let Some(accepted) = agreed(&lists) else {
        return;
    };
    assert!((8000..lists.len() - 8000).contains(&accepted), "{accepted}");
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
    let Some(accepted) = agreed(&[nops(4095), nops(4096), nops(4097), nops(5000)]) else {
        return;
    };
    assert_eq!(accepted, 2);
}

//! The replacement of libseccomp with rules that are hard to prove: it compiles the plain layout, which a circuit
//! proves, instead of working for seconds on a shorter program. And the cost of adding rules whose branches meet again:
//! walking each path through the tree takes time exponential in the conditions.

use tamis_abi::{Action, Arch, ArgIndex};
use tamis_bpf::Insn;
use tamis_compiler::passes::registry::Selection;
use tamis_compiler::{CompileOptions, Effort, Instructions, compile};
use tamis_scmp::{CallOrder, Comparison, Db, Exactness, PseudoCode, Release};
use tamis_testkit::libseccomp::{Condition, Errno, Library, Op, built_library};
use tamis_testkit::rng::Rng;
use tamis_testkit::work;

const CALL: i32 = 16;

/// The program of so many rules with random masks on three arguments: the library's, and those of the compiler with
/// all passes and with none.
fn programs(rules: usize) -> [Vec<Insn>; 3] {
    let library = Library::open_file(&built_library()).expect("the library has all functions");
    let mut filter = library.filter(Action::ALLOW).expect("a filter");
    let mut db: Db<()> = Db::new(Action::ALLOW, Arch::X86_64, &[]);
    let rng = &mut Rng::new(7);
    for rule in 0..rules {
        let action = Action::errno(1 + rule as u16 % 5);
        let masks = [0, 1, 2].map(|arg| {
            let mask = rng.next_u64();
            (arg, mask, rng.next_u64() & mask)
        });
        let given = masks.map(|(arg, value, value_two)| Condition {
            arg,
            op: Op::MaskedEq,
            value,
            value_two,
        });
        let same = masks.map(|(arg, mask, value)| tamis_scmp::Condition {
            arg: ArgIndex::ALL[arg as usize],
            comparison: Comparison::Masked { mask },
            value,
        });
        filter.add_rule(action, CALL, &given).expect("no conflict");
        let added = db.add_rule(Exactness::Adjusted, action, CALL, &same, ());
        added.expect("no conflict");
    }
    let ruleset = db.ruleset(Action::KILL_THREAD).expect("few ways");
    let compiled = [Selection::default(), Selection::none()].map(|passes| {
        let options = CompileOptions {
            passes,
            effort: Effort::Quick,
            instructions: Instructions::Libseccomp,
            ..CompileOptions::default()
        };
        let compiled = compile(&ruleset, &options).expect("it is proved");
        compiled.program().expect("no variables").insns().to_vec()
    });
    let [all, none] = compiled;
    [filter.export().expect("it is proved"), all, none]
}

#[test]
fn rules_that_are_hard_to_prove_get_the_plain_layout() {
    let [ours, with_passes, plain] = programs(80);
    assert_ne!(with_passes, plain);
    assert_eq!(ours, plain);
}

#[test]
fn rules_that_are_proved_within_the_bound_get_all_passes() {
    let [ours, with_passes, plain] = programs(10);
    assert_ne!(with_passes, plain);
    assert_eq!(ours, with_passes);
}

/// The greatest limit: all within one word, or with high words that differ.
const MOST_VALUES: [u64; 2] = [199, 1 << 40];

/// The limits of one of several rules that all hold for small arguments: each reaches the next level by two branches.
fn limits_from_above(rng: &mut Rng, most: u64) -> Vec<(ArgIndex, u64)> {
    let args = ArgIndex::ALL.into_iter();
    let limits = args.map(|arg| (arg, rng.range(0..=most)));
    limits.filter(|(_, value)| value % 4 != 0).collect()
}

fn add_limits_from_above(seed: u64, rules: usize) -> Db<()> {
    let (rng, most) = (&mut Rng::new(seed), MOST_VALUES[seed as usize % 2]);
    let mut db: Db<()> = Db::new(Action::ALLOW, Arch::X86_64, &[]);
    for _ in 0..rules {
        let limits = limits_from_above(rng, most).into_iter();
        let conditions: Vec<tamis_scmp::Condition> = limits
            .map(|(arg, value)| tamis_scmp::Condition {
                arg,
                comparison: Comparison::Le,
                value,
            })
            .collect();
        let action = Action::errno(1);
        // A rule that makes libseccomp loop forever is rejected, and the others stay.
        let _ = db.add_rule(Exactness::Exact, action, CALL, &conditions, ());
    }
    db
}

#[test]
fn rules_whose_branches_meet_are_added_with_work_in_proportion() {
    // Before levels were walked once each, 12 rules of some of these seeds took up to a minute.
    const MOST_BYTES_PER_RULE: usize = 1 << 20;
    for (seed, rules) in (0..2000).map(|seed| (seed, 12)).chain([(1, 300)]) {
        let (db, work) = work::measured(|| add_limits_from_above(seed, rules));
        assert!(
            work.total_bytes <= rules * MOST_BYTES_PER_RULE,
            "{seed}: {work:?}"
        );
        let code = PseudoCode {
            db: &db,
            bad_arch: Action::ALLOW,
            order: CallOrder::Priority,
            release: Release::Reference,
        };
        let (lines, work) = work::measured(|| code.tree_lines());
        assert!(
            work.total_bytes <= rules * MOST_BYTES_PER_RULE,
            "{seed}: {work:?}"
        );
        if lines < 2000 {
            // Two levels in are the tests and actions of calls.
            let text = code.to_string();
            let of_trees = text.lines().filter(|line| line.starts_with("    "));
            assert_eq!(lines, of_trees.count(), "{seed}: {text}");
        }
    }
}

#[test]
fn pseudo_code_that_grows_with_the_ways_is_refused() {
    const MOST_LINES: usize = (1 << 18) + 20;
    let library = Library::open_file(&built_library()).expect("the library has all functions");
    let mut refused = 0;
    for seed in 0..200 {
        let mut filter = library.filter(Action::ALLOW).expect("a filter");
        let (rng, most) = (&mut Rng::new(seed), MOST_VALUES[0]);
        for _ in 0..12 {
            let limits = limits_from_above(rng, most).into_iter();
            let given: Vec<Condition> = limits
                .map(|(arg, value)| Condition {
                    arg: arg.index() as u32,
                    op: Op::Le,
                    value,
                    value_two: 0,
                })
                .collect();
            // As above.
            let _ = filter.add_rule(Action::errno(1), CALL, &given);
        }
        match filter.pseudo_code_text() {
            Ok(text) => assert!(text.lines().count() <= MOST_LINES, "{seed}"),
            Err(errno) => {
                assert_eq!(errno, Errno(libc::ENOMEM), "{seed}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
}

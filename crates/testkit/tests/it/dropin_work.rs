//! What the library that stands for libseccomp does with rules that are hard to prove: it makes the plain layout, which
//! a circuit proves, instead of working for seconds on a shorter program.

use tamis_abi::{Action, Arch, ArgIndex};
use tamis_bpf::Insn;
use tamis_compiler::passes::registry::Selection;
use tamis_compiler::{CompileOptions, Effort, Instructions, compile};
use tamis_scmp::{Comparison, Db, Exactness};
use tamis_testkit::libseccomp::{Condition, Library, Op, built_library};
use tamis_testkit::rng::Rng;

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

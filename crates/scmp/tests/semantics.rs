//! Surprising results of libseccomp 2.6.1.

use tamis_abi::{Action, Arch, ArgIndex, Nr, SeccompData};
use tamis_scmp::tree::Added;
use tamis_scmp::{
    AddError, CallTree, Comparison, Condition, Conditions, Db, Errno, Exactness, Refusal, number,
};

const ONE: Action = Action::errno(1);
const TWO: Action = Action::errno(2);
const DEFAULT: Action = Action::KILL_THREAD;

fn when(arg: usize, comparison: Comparison, value: u64) -> Condition {
    Condition {
        arg: ArgIndex::ALL[arg],
        comparison,
        value,
    }
}

fn is(arg: usize, value: u64) -> Condition {
    when(arg, Comparison::Eq, value)
}

/// A tree on x86-64 with these rules; the tag of a rule is its index.
fn tree(rules: &[(&[Condition], Action)]) -> Result<CallTree<usize>, Refusal<usize>> {
    tree_on(Arch::X86_64, rules)
}

fn tree_on(
    arch: Arch,
    rules: &[(&[Condition], Action)],
) -> Result<CallTree<usize>, Refusal<usize>> {
    let mut tree = CallTree::new(arch);
    for (tag, (conditions, action)) in rules.iter().enumerate() {
        let conditions = Conditions::new(conditions).expect("different arguments");
        tree.add(&conditions, *action, tag)?;
    }
    Ok(tree)
}

/// The action of a call with these first arguments.
fn answer(tree: &CallTree<usize>, first: &[u64]) -> Option<Action> {
    let mut args = [0; 6];
    args[..first.len()].copy_from_slice(first);
    let data = SeccompData {
        args,
        ..SeccompData::default()
    };
    let rules = tree.rules().expect("few rules");
    let rule = rules
        .iter()
        .find(|rule| rule.when.holds(&data, &tamis_rules::Values::ZERO))?;
    Some(rule.action)
}

#[test]
fn unconditional_rules_win_whenever_they_come() {
    let two = tree(&[(&[], ONE), (&[], TWO)]).unwrap();
    assert_eq!(answer(&two, &[]), Some(ONE), "the second is ignored");
    let after = tree(&[(&[is(0, 5)], ONE), (&[], TWO)]).unwrap();
    assert_eq!(answer(&after, &[5]), Some(TWO), "it replaces the first");
    let before = tree(&[(&[], ONE), (&[is(0, 5)], TWO)]).unwrap();
    assert_eq!(answer(&before, &[5]), Some(ONE), "the second is dropped");
}

#[test]
fn conflicts_depend_on_the_order_of_adding() {
    assert!(tree(&[(&[is(0, 5)], ONE), (&[is(0, 5)], ONE)]).is_ok());
    let same = tree(&[(&[is(0, 5)], ONE), (&[is(0, 5)], TWO)]);
    assert_eq!(same.unwrap_err(), Refusal::Conflict(0));
    let longer: &[Condition] = &[is(0, 5), is(1, 7)];
    let shorter_first = tree(&[(&[is(0, 5)], ONE), (longer, TWO)]).unwrap();
    assert_eq!(answer(&shorter_first, &[5, 7]), Some(ONE));
    let longer_first = tree(&[(longer, TWO), (&[is(0, 5)], ONE)]);
    assert_eq!(longer_first.unwrap_err(), Refusal::Conflict(0));
}

#[test]
fn the_tree_decides_between_overlapping_rules() {
    let greater = |value| when(0, Comparison::Gt, value);
    let pairs: [([Condition; 2], &[u64]); 3] = [
        ([is(0, 5), is(1, 7)], &[5, 7]),
        ([greater(10), is(0, 20)], &[20]),
        ([greater(10), greater(20)], &[25]),
    ];
    for ([loser, winner], args) in pairs {
        let one = tree(&[(&[loser], ONE), (&[winner], TWO)]).unwrap();
        let other = tree(&[(&[winner], TWO), (&[loser], ONE)]).unwrap();
        assert_eq!(answer(&one, args), Some(TWO), "{winner:?}");
        assert_eq!(answer(&other, args), Some(TWO), "{winner:?}");
    }
}

#[test]
fn overlapping_64_bit_limits_follow_the_security_fix_of_2_6_1() {
    let less = |value| when(0, Comparison::Lt, value);
    let limits = [
        (&[less(0x2_0000_000a)][..], ONE),
        (&[less(0x2_0000_0005)], TWO),
    ];
    assert_eq!(answer(&tree(&limits).unwrap(), &[1]), Some(TWO));
}

#[test]
fn two_inequalities_match_everything() {
    let not = |value| when(0, Comparison::Ne, value);
    let both = tree(&[(&[not(1)], ONE), (&[not(2)], ONE)]).unwrap();
    for arg in 0..4 {
        assert_eq!(answer(&both, &[arg]), Some(ONE));
    }
}

#[test]
fn masks_without_bits_are_no_condition() {
    let nothing = when(0, Comparison::Masked { mask: 0 }, 7);
    assert_eq!(
        answer(&tree(&[(&[nothing], ONE)]).unwrap(), &[9]),
        Some(ONE)
    );
    let upper = when(0, Comparison::Masked { mask: 1 << 40 }, 1 << 40);
    let narrow = tree_on(Arch::X86, &[(&[upper], ONE)]).unwrap();
    assert_eq!(answer(&narrow, &[0]), Some(ONE));
    let wide = tree(&[(&[upper], ONE)]).unwrap();
    assert_eq!(answer(&wide, &[0]), None);
}

#[test]
fn halves_count_as_the_architecture_has_them() {
    let rule: &[Condition] = &[is(0, 0x1_0000_0005)];
    for arch in [Arch::X86, Arch::X32] {
        let narrow = tree_on(arch, &[(rule, ONE)]).unwrap();
        assert_eq!(answer(&narrow, &[5]), Some(ONE), "{arch}");
    }
    let wide = tree(&[(rule, ONE)]).unwrap();
    assert_eq!(answer(&wide, &[5]), None);
    assert_eq!(answer(&wide, &[0x1_0000_0005]), Some(ONE));
}

#[test]
fn what_becomes_of_a_rule_is_told() {
    let mut tree: CallTree<()> = CallTree::new(Arch::X86_64);
    let five = Conditions::new(&[is(0, 5)]).unwrap();
    let both = Conditions::new(&[is(0, 5), is(1, 7)]).unwrap();
    assert_eq!(tree.add(&five, ONE, ()), Ok(Added::Inserted));
    assert_eq!(tree.add(&Conditions::NONE, ONE, ()), Ok(Added::Inserted));
    assert_eq!(tree.add(&both, ONE, ()), Ok(Added::Ignored));
}

/// The number of a known call, as a caller gives it.
fn named(native: Arch, name: &str) -> i32 {
    number::resolve_name(native, name).unwrap()
}

fn db(native: Arch, others: &[Arch]) -> Db<usize> {
    Db::new(DEFAULT, native, others)
}

/// The action of a call on an architecture of a filter.
fn answer_in(db: &Db<usize>, arch: Arch, nr: u32, args: &[u64]) -> Option<Action> {
    let filter = db.filters().iter().find(|filter| filter.arch() == arch)?;
    let (_, tree) = filter.calls().find(|(found, _)| *found == Nr(nr))?;
    answer(tree, args)
}

#[test]
fn rules_go_to_every_architecture_under_its_number() {
    let mut db = db(Arch::X86_64, &[Arch::X86, Arch::X86]);
    assert_eq!(db.filters().len(), 2);
    // 0 is `read` on x86-64.
    let read = 0;
    db.add_rule(Exactness::Adjusted, ONE, read, &[], 0).unwrap();
    assert_eq!(answer_in(&db, Arch::X86_64, 0, &[]), Some(ONE));
    assert_eq!(answer_in(&db, Arch::X86, 3, &[]), Some(ONE));
    assert_eq!(answer_in(&db, Arch::X86, 0, &[]), None);
    // The number that tracers write to skip a call needs no name.
    let skip = number::SKIP;
    db.add_rule(Exactness::Adjusted, ONE, skip, &[], 1).unwrap();
    assert_eq!(answer_in(&db, Arch::X86, u32::MAX, &[]), Some(ONE));
}

#[test]
fn multiplexed_calls_keep_their_other_conditions() {
    let mut db = db(Arch::X86, &[]);
    let conditions = [is(0, 1), is(1, 2)];
    let socket = named(Arch::X86, "socket");
    db.add_rule(Exactness::Adjusted, ONE, socket, &conditions, 0)
        .unwrap();
    // `socketcall(SYS_SOCKET, pointer)`: the condition on the family is lost, the condition on the type is applied
    // to the pointer.
    assert_eq!(answer_in(&db, Arch::X86, 102, &[1, 2]), Some(ONE));
    assert_eq!(answer_in(&db, Arch::X86, 102, &[1, 3]), None);
    assert_eq!(answer_in(&db, Arch::X86, 359, &[1, 2]), Some(ONE));
}

#[test]
fn errors_have_the_documented_numbers() {
    let (adjusted, exact) = (Exactness::Adjusted, Exactness::Exact);
    let repeated: &[Condition] = &[is(0, 1), is(0, 2)];
    let one: &[Condition] = &[is(1, 1)];
    let [read, chown32] = ["read", "chown32"].map(|name| named(Arch::X86_64, name));
    let socket = named(Arch::X86, "socket");
    let (none, x86): (&[Arch], &[Arch]) = (&[], &[Arch::X86]);
    let nameless = 0x3fff_0000;
    let cases = [
        (x86, exact, DEFAULT, read, repeated, Errno::Access),
        (x86, exact, ONE, read, repeated, Errno::NotSupported),
        (none, exact, ONE, read, repeated, Errno::Invalid),
        (none, exact, ONE, chown32, one, Errno::Domain),
        (x86, adjusted, ONE, nameless, one, Errno::Fault),
    ];
    for (others, exactness, action, call, conditions, errno) in cases {
        let error = db(Arch::X86_64, others)
            .add_rule(exactness, action, call, conditions, 0)
            .unwrap_err();
        assert_eq!(error.errno(), errno, "{error}");
    }
    let error = db(Arch::X86, none).add_rule(exact, ONE, socket, one, 0);
    assert_eq!(error, Err(AddError::MultiplexedCall(Arch::X86)));
    assert!(
        db(Arch::X86, none)
            .add_rule(exact, ONE, socket, &[], 0)
            .is_ok()
    );
    assert!(
        db(Arch::X86_64, none)
            .add_rule(adjusted, ONE, nameless, one, 0)
            .is_ok()
    );
}

#[test]
fn calls_that_are_absent_conflict_all_the_same() {
    let mut db = db(Arch::X86_64, &[]);
    let chown32 = named(Arch::X86_64, "chown32");
    let five: &[Condition] = &[is(0, 5)];
    let adjusted = Exactness::Adjusted;
    db.add_rule(adjusted, ONE, chown32, five, 0).unwrap();
    let error = db.add_rule(adjusted, TWO, chown32, five, 1).unwrap_err();
    assert_eq!(error.errno(), Errno::Exists);
    assert_eq!(db.filters()[0].calls().count(), 0);
}

#[test]
fn a_refused_rule_leaves_nothing_behind() {
    let mut db = db(Arch::X86_64, &[Arch::X86]);
    let adjusted = Exactness::Adjusted;
    let high: &[Condition] = &[is(0, 0x1_0000_0005)];
    let low: &[Condition] = &[is(0, 5)];
    let read = named(Arch::X86_64, "read");
    db.add_rule(adjusted, ONE, read, high, 0).unwrap();
    // They differ on x86-64 and are the same on x86.
    let error = db.add_rule(adjusted, TWO, read, low, 1).unwrap_err();
    let expected = AddError::Refused {
        arch: Arch::X86,
        refusal: Refusal::Conflict(0),
    };
    assert_eq!(error, expected);
    assert_eq!(answer_in(&db, Arch::X86_64, 0, &[5]), None);
    assert_eq!(answer_in(&db, Arch::X86, 3, &[5]), Some(ONE));
    db.add_rule(adjusted, ONE, read, low, 2).unwrap();
    assert_eq!(answer_in(&db, Arch::X86_64, 0, &[5]), Some(ONE));
}

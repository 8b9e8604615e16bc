//! The harmless form of a program allows the same calls and kills no process.

use tamis_abi::{Action, ActionKind, Endian};
use tamis_bpf::{harmless::harmless, interp};
use tamis_testkit::generate::program::{data, program};
use tamis_testkit::rng::Rng;

#[test]
fn it_allows_the_same_and_denies_the_rest_with_the_error() {
    let mut rng = Rng::new(0x6861_726d);
    let denied = Action::errno(38);
    let (mut allowed, mut compared) = (0, 0);
    for _ in 0..3000 {
        let body_insns = rng.range(0..=40) as usize;
        let original = program(&mut rng, body_insns, Endian::Little);
        let Ok(tame) = harmless(&original, 38) else {
            continue;
        };
        for _ in 0..20 {
            let call = data(&mut rng, &original);
            let (before, after) = (interp::run(&original, &call), interp::run(&tame, &call));
            let action = Action::from_ret(after.ret);
            compared += 1;
            if Action::from_ret(before.ret).kind == ActionKind::Allow {
                allowed += 1;
                assert_eq!(action.kind, ActionKind::Allow);
            } else {
                assert_eq!(action, denied);
            }
            assert!(matches!(after.steps - before.steps, 0 | 3));
        }
    }
    assert!(
        allowed > 100 && compared - allowed > 100,
        "{allowed} of {compared}"
    );
}

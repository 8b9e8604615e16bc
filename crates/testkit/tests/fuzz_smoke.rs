//! The properties that `fuzz/` gives to libFuzzer, on fixed bytes.

use std::collections::BTreeMap;

use tamis_policy::embedded;
use tamis_testkit::agreement;
use tamis_testkit::property::{self, Outcome};
use tamis_testkit::rng::Rng;
use tamis_testkit::skip;

const ASSEMBLER: &str = "\
        ld [arch]
        jeq #0xc000003e, known
        ret #kill_process
known:  ld [nr]
        jge #0x40000000, deny
        jset #1, other
        ld [arg0.low] ; a comment
        tax
        ld [arg1.high]
        add x
        st M[3]
        jgt x, deny
other:  ret #allow
deny:   ret #errno(1)
";

const PROFILE: &str = r#"{
  "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1,
  "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]}],
  "syscalls": [
    {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW", "args": []},
    {"names": ["mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
    {"names": ["socket"], "action": "SCMP_ACT_ALLOW",
     "args": [{"index": 0, "value": 40, "op": "SCMP_CMP_GT"}]},
    {"names": ["clone"], "action": "SCMP_ACT_ALLOW",
     "args": [{"index": 0, "value": 2114060288, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]}
  ]
}"#;

/// What became of the inputs, by outcome.
type Tally = BTreeMap<Outcome, u32>;

fn on_random_bytes(property: fn(&[u8]) -> Outcome, rounds: u64) -> Tally {
    let mut tally = Tally::new();
    for seed in 0..rounds {
        let mut rng = Rng::new(seed);
        let bytes: Vec<u8> = (0..rng.range(0..=400))
            .map(|_| rng.next_u32() as u8)
            .collect();
        *tally.entry(property(&bytes)).or_default() += 1;
    }
    println!("{tally:?}");
    tally
}

/// Cuts, doubles, overwrites and exchanges pieces.
fn mutated(rng: &mut Rng, text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..rng.range(0..=4) {
        if bytes.is_empty() {
            break;
        }
        let start = rng.index(bytes.len());
        let end = (start + rng.range(1..=8) as usize).min(bytes.len());
        let piece = bytes[start..end].to_vec();
        let at = rng.index(bytes.len());
        match rng.range(0..=4) {
            0 => drop(bytes.drain(start..end)),
            1 => drop(bytes.splice(at..at, piece)),
            2 => bytes[at] = rng.next_u32() as u8,
            3 => bytes[at] = *rng.choose(b"0123456789(){}[],;:#!&|=<>.\"- \n"),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

fn on_mutated_texts(property: fn(&[u8]) -> Outcome, texts: &[&str], rounds: u64) -> Tally {
    let mut tally = Tally::new();
    for seed in 0..rounds {
        let mut rng = Rng::new(seed);
        let text = *rng.choose(texts);
        let bytes = mutated(&mut rng, text);
        *tally.entry(property(&bytes)).or_default() += 1;
    }
    println!("{tally:?}");
    tally
}

#[test]
fn prover_pairs() {
    let tally = on_random_bytes(property::prover_pairs, 500);
    assert!(tally["equal"] > 20 && tally["different"] > 20, "{tally:?}");
}

#[test]
fn compile_ruleset() {
    on_random_bytes(property::compile_ruleset, 300);
}

#[test]
fn validator_kernel() {
    if !skip::without_kernel() {
        let tally = on_random_bytes(property::validator_kernel, 500);
        assert_eq!(tally["accepted"], 500, "{tally:?}");
    }
}

#[test]
fn interpreter_kernel() {
    if !skip::without_kernel() {
        let tally = on_random_bytes(property::interpreter_kernel, 500);
        assert_eq!(tally["the same"], 500, "{tally:?}");
    }
}

#[test]
fn assembler() {
    let tally = on_mutated_texts(property::assembler, &[ASSEMBLER], 3000);
    assert!(
        tally["assembled"] > 100 && tally["refused"] > 100,
        "{tally:?}"
    );
}

#[test]
fn policy_tamis() {
    let texts = embedded::ALL.map(|policy| policy.text);
    let tally = on_mutated_texts(property::policy_tamis, &texts, 500);
    assert!(tally["a policy"] > 20 && tally["refused"] > 20, "{tally:?}");
}

#[test]
fn policy_oci() {
    let tally = on_mutated_texts(property::policy_oci, &[PROFILE], 3000);
    assert!(
        tally["a profile"] > 100 && tally["refused"] > 100,
        "{tally:?}"
    );
}

#[test]
fn policy_languages() {
    let tally = on_random_bytes(agreement::policy_languages, 200);
    assert!(
        tally["plain"] > 50 && tally["any ruleset"] > 30,
        "{tally:?}"
    );
}

#[test]
fn optimiser() {
    let tally = on_random_bytes(agreement::optimiser, 200);
    assert!(tally["proved"] > 50, "{tally:?}");
}

#[test]
fn prover_interpreter() {
    let tally = on_random_bytes(agreement::prover_interpreter, 100);
    assert!(tally["complete"] > 30, "{tally:?}");
}

#[test]
fn evaluators() {
    on_random_bytes(agreement::evaluators, 1000);
}

//! Certificates: `tamis-check` accepts right ones and rejects all others.

use tamis_abi::{Arch, Endian, SeccompData};
use tamis_bpf::program::insns_from_bytes;
use tamis_bpf::{AluOp, Op, Operand, Program, Stack, Test, interp};
use tamis_certificate::{Certificate, Effort, Uncertified, smt};
use tamis_check::{FORMAT, Refusal, TITLE, check, sha256};
use tamis_compiler::{CompileOptions, compile};
use tamis_diag::Sources;
use tamis_optimize::{Split, optimise};
use tamis_policy::embedded;
use tamis_policy::loader::NoIncludes;
use tamis_policy::oci::{self, OciOptions};
use tamis_policy::tamis::{self, TamisOptions};
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_rules::Ruleset;
use tamis_testkit::generate::mutant::mutant;
use tamis_testkit::rng::Rng;
use tamis_testkit::smt::{MODULES, ask_module, ask_z3};
use tamis_testkit::{corpus, lrat, seeds};

/// The longest proof that is checked in every run.
const MAX_BRIEF_BYTES: usize = 2_000_000;

/// A folder as a list of files.
type Files = Vec<(String, Vec<u8>)>;

/// The checker's answer about a folder.
fn checked(files: &Files) -> Result<String, Refusal> {
    check(&|name| {
        let found = files.iter().find(|(known, _)| known == name);
        let missing = || format!("{name}: there is no such file");
        found.map(|(_, bytes)| bytes.clone()).ok_or_else(missing)
    })
}

/// A folder with right hashes.
fn folder(files: &[(&str, Vec<u8>)]) -> Files {
    let files = files.iter();
    let files: Files = files
        .map(|(name, bytes)| ((*name).to_owned(), bytes.clone()))
        .collect();
    sealed(files)
}

/// The folder with a manifest of its files.
fn sealed(mut files: Files) -> Files {
    files.retain(|(name, _)| name != "manifest");
    let mut manifest = format!("{TITLE}{FORMAT}, of a test\n");
    for (name, bytes) in &files {
        manifest += &format!("{}  {name}\n", sha256(bytes));
    }
    files.push(("manifest".to_owned(), manifest.into_bytes()));
    files
}

fn raw(ops: &[Op]) -> Vec<u8> {
    Program::from_ops(ops, Endian::Little).unwrap().to_bytes()
}

/// A folder of two programs and the lines of a table.
fn pair(left: &[Op], right: &[Op], rows: &str) -> Files {
    let table = format!("endian little\nleft left.bpf\nright right.bpf\n{rows}");
    let programs = [("left.bpf", raw(left)), ("right.bpf", raw(right))];
    let [left, right] = programs;
    folder(&[left, right, ("table.txt", table.into_bytes())])
}

/// Returns 1 for odd numbers and 2 for even ones.
const PARITY: [Op; 4] = [
    Op::LoadData(0),
    Op::branch(Test::Set, 1, 0, 1),
    Op::RetImm(1),
    Op::RetImm(2),
];

/// The same by shifts, memory and arithmetic.
const PARITY_OTHERWISE: [Op; 9] = [
    Op::LoadData(0),
    Op::Alu(AluOp::Lsh, Operand::K(31)),
    Op::Tax,
    Op::StoreX(3),
    Op::LoadMem(3),
    Op::Alu(AluOp::Rsh, Operand::K(31)),
    Op::Tax,
    Op::LoadImm(2),
    Op::Alu(AluOp::Sub, Operand::X),
];

fn parity_otherwise() -> Vec<Op> {
    [&PARITY_OTHERWISE[..], &[Op::RetA]].concat()
}

const ROWS: &str = "[0]=00000000/00000001 -> 00000002\n[0]=00000001/00000001 -> 00000001\n";

fn rejection(files: &Files) -> String {
    match checked(files) {
        Err(Refusal::Rejected(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn fault(files: &Files) -> String {
    match checked(files) {
        Err(Refusal::Bad(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_right_table_is_accepted() {
    let text = checked(&pair(&PARITY, &parity_otherwise(), ROWS)).unwrap();
    let title = "accepted: left.bpf (4 instructions) and right.bpf (10 instructions)";
    assert!(text.starts_with(title), "{text}");
    // Bits that a program needs and the table leaves open are tried both ways.
    let constant = [Op::RetImm(1)];
    let tested = [
        Op::LoadData(60),
        Op::branch(Test::Gt, 77, 0, 0),
        Op::RetImm(1),
    ];
    checked(&pair(&constant, &tested, "-> 00000001\n")).unwrap();
}

#[test]
fn wrong_values_are_rejected_with_a_call() {
    let wrong = ROWS.replace("-> 00000001", "-> 00000003");
    let text = rejection(&pair(&PARITY, &parity_otherwise(), &wrong));
    assert_eq!(
        text,
        "table.txt:5: left.bpf (4 instructions) returns 00000001, not 00000003, for the call with [0]=00000001, all else 0"
    );
    let other = [Op::RetImm(2)];
    let text = rejection(&pair(&PARITY, &other, ROWS));
    assert!(
        text.contains("right.bpf (1 instructions) returns 00000002"),
        "{text}"
    );
}

#[test]
fn tables_that_are_no_tree_are_rejected() {
    for (rows, reason) in [
        ("", "no line has the call with all else 0"),
        (
            "[0]=00000000/00000001 -> 00000002\n",
            "no line has the call with [0]=00000001",
        ),
        ("[0]=00000001/00000001 -> 00000001\n", "no line has"),
        (
            &format!("{ROWS}[0]=00000001/00000001 -> 00000001\n"),
            "table.txt:6: it has calls of line 5",
        ),
        (
            &format!("{ROWS}-> 00000001\n"),
            "table.txt:6: it leaves bit 0 of [0] open",
        ),
        (
            "[0]=00000001/00000001 -> 00000001\n[0]=00000000/00000001 -> 00000002\n",
            "table.txt:5: it has 0 in bit 0 of [0] and must come before line 4",
        ),
        (
            // Overlapping cubes of different words.
            "[0]=00000000/00000001 -> 00000002\n[4]=00000001/00000001 -> 00000002\n[0]=00000001/00000001 -> 00000001\n",
            "table.txt:5: it leaves bit 0 of [0] open",
        ),
    ] {
        let text = rejection(&pair(&PARITY, &PARITY, rows));
        assert!(text.contains(reason), "{text}, not {reason}");
    }
}

#[test]
fn files_of_another_form_are_named() {
    for row in [
        "[0]=00000002/00000001 -> 00000002",
        "[0]=0 -> 00000002",
        "[2]=00000000 -> 00000002",
        "[64]=00000000 -> 00000002",
        "[0]=00000000 [0]=00000000 -> 00000002",
        "[0]=00000000  [4]=00000000 -> 00000002",
        "[0]=00000000 -> 2",
        "nr=00000000 -> 00000002",
        "",
    ] {
        let text = fault(&pair(&PARITY, &PARITY, &format!("{row}\n")));
        assert!(text.starts_with("table.txt:4: "), "{row}: {text}");
    }
    let files = pair(&PARITY, &PARITY, ROWS);
    let changed = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut files = files.clone();
        change(&mut files.iter_mut().find(|(own, _)| own == name).unwrap().1);
        sealed(files)
    };
    for (code, k, reason) in [
        (0x28u16, 0u32, "seccomp doesn't accept its code"),
        (0x20, 2, "the call has no word there"),
        (0x20, 64, "the call has no word there"),
        (0x60, 1, "it reads memory before it is written"),
        (0x61, 16, "there is no such memory"),
        (0x34, 0, "it divides by 0"),
        (0x74, 32, "it shifts by more than 31"),
        (0x05, 3, "it leads beyond the end"),
    ] {
        let text = fault(&changed("left.bpf", &|bytes| {
            bytes[..2].copy_from_slice(&code.to_le_bytes());
            bytes[4..8].copy_from_slice(&k.to_le_bytes());
        }));
        assert_eq!(text, format!("left.bpf: instruction 0: {reason}"));
    }
    let text = fault(&changed("right.bpf", &|bytes| bytes.truncate(12)));
    assert!(text.starts_with("right.bpf: its length"), "{text}");
    let mut missing = files.clone();
    missing.retain(|(name, _)| name != "right.bpf");
    assert_eq!(
        fault(&sealed(missing)),
        "manifest: it doesn't list right.bpf"
    );
}

#[test]
fn the_manifest_names_the_version_and_seals_the_files() {
    let files = pair(&PARITY, &PARITY, ROWS);
    let with_manifest = |change: &dyn Fn(String) -> String| {
        let mut files = files.clone();
        let (_, bytes) = files
            .iter_mut()
            .find(|(name, _)| name == "manifest")
            .unwrap();
        *bytes = change(String::from_utf8(bytes.clone()).unwrap()).into_bytes();
        files
    };
    let newer = with_manifest(&|text| text.replace("format 1, of a test", "format 2, of tamis 3"));
    let reason =
        "manifest:1: the certificate has format 2, of tamis 3; this program checks format 1";
    assert_eq!(fault(&newer), reason);
    let other = with_manifest(&|text| text.replace(TITLE, "# "));
    assert!(fault(&other).starts_with("manifest:1: "));
    let outside = with_manifest(&|text| text.replace("  left.bpf", "  ../left.bpf"));
    assert!(fault(&outside).starts_with("manifest:2: "));
    let mut changed = files.clone();
    changed[0].1[7] ^= 1;
    assert_eq!(rejection(&changed), "manifest:2: left.bpf has another hash");
}

#[test]
fn hashes_are_those_of_the_standard() {
    // The examples of FIPS 180-4, and of lengths around the end of a block, as `sha256sum` has them.
    let of_letters = |count| sha256(&vec![b'a'; count]);
    assert!(sha256(b"abc").starts_with("ba7816bf8f01cfea414140de5dae2223"));
    assert!(sha256(b"").starts_with("e3b0c44298fc1c149afbf4c8996fb924"));
    assert!(of_letters(55).starts_with("9f4390f8d30c2dd92ec9f095b65e2b9a"));
    assert!(of_letters(56).starts_with("b35439a4ac6f0948b6d6f9e3c6af0f5f"));
    assert!(of_letters(64).starts_with("ffe054fe7ae0cb6dc65c3af9b61d5209"));
}

/// The certificate of two subjects; it has passed the checkers.
fn certificate(left: &Subject<'_>, right: &Subject<'_>) -> Certificate {
    Certificate::new(left, right, &Effort::default()).unwrap()
}

#[test]
fn dockers_pair_has_a_certificate() {
    let read = |name: &str| corpus::program(&format!("docker/docker-libseccomp-{name}.bpf"));
    let (list, tree) = (read("opt1"), read("opt2"));
    let made = certificate(&Subject::Program(&list), &Subject::Program(&tree));
    assert_eq!(made.file("left.bpf"), Some(list.to_bytes().as_slice()));
    assert_eq!(made.file("right.bpf"), Some(tree.to_bytes().as_slice()));
    println!("{} cubes", made.cubes.clone().unwrap());
    checked(&made.files().to_vec()).unwrap();
}

fn text(files: &Files, name: &str) -> String {
    let found = files.iter().find(|(known, _)| known == name);
    String::from_utf8(found.expect("the file is there").1.clone()).unwrap()
}

fn with_text(files: &Files, name: &str, text: &str) -> Files {
    let mut files = files.clone();
    let found = files.iter_mut().find(|(known, _)| known == name);
    found.expect("the file is there").1 = text.as_bytes().to_vec();
    files
}

/// What an independent checker says about the refutation.
fn lrat_verdict(files: &Files) -> Result<(), String> {
    lrat::check(&text(files, "claim.cnf"), &text(files, "claim.lrat"))
}

/// Checks all three forms of the claim.
fn check_all(made: &Certificate) {
    let files = made.files().to_vec();
    checked(&files).unwrap();
    // The test kit isn't optimised: a proof of many megabytes takes it a minute.
    if seeds::is_full() || made.file("claim.lrat").unwrap().len() < MAX_BRIEF_BYTES {
        lrat_verdict(&files).unwrap();
    }
    assert_eq!(ask_z3(&text(&files, "claim.smt2")), ["unsat"]);
}

#[test]
fn other_solvers_agree() {
    let ruleset = embedded_ruleset("pure-compute");
    let compiled = compile(&ruleset, &CompileOptions::default()).unwrap();
    let program = Subject::Program(compiled.program().unwrap());
    let equal = certificate(&Subject::Ruleset(&ruleset), &program);
    let script = text(&equal.files().to_vec(), "claim.smt2");
    let other = embedded_ruleset("network-service");
    let differ = smt::difference(&Subject::Ruleset(&other), &program, Endian::Little);
    for (module, statements) in MODULES {
        for (script, expected) in [(&script, "unsat"), (&differ, "sat")] {
            let answers = ask_module(module, statements, script);
            assert_eq!(answers, [expected], "{module}");
        }
    }
}

fn embedded_ruleset(name: &str) -> Ruleset {
    ruleset(embedded::embedded(name).unwrap().text)
}

fn ruleset(text: &str) -> Ruleset {
    let mut sources = Sources::new();
    let source = sources.add("a.tamis", text);
    let options = TamisOptions::new(vec![Arch::X86_64, Arch::X86]);
    let parsed = tamis::parse(&mut sources, source, &mut NoIncludes, &options);
    parsed.ruleset.unwrap()
}

#[test]
fn embedded_policies_have_certificates() {
    for policy in embedded::ALL {
        let ruleset = embedded_ruleset(policy.name);
        let compiled = compile(&ruleset, &CompileOptions::default()).unwrap();
        let program = compiled.program().unwrap();
        check_all(&certificate(
            &Subject::Ruleset(&ruleset),
            &Subject::Program(program),
        ));
    }
}

#[test]
fn dockers_rows_have_certificates() {
    let text = corpus::text("docker/docker-default-x86_64.json");
    let mut sources = Sources::new();
    let source = sources.add("docker-default-x86_64.json", text);
    let profile = oci::parse(&sources, source, &OciOptions::docker(Arch::X86_64));
    let ruleset = profile.parsed.ruleset.unwrap();
    let compiled = compile(&ruleset, &CompileOptions::default()).unwrap();
    let program = Subject::Program(compiled.program().unwrap());
    check_all(&certificate(&Subject::Ruleset(&ruleset), &program));
    for name in ["docker-libseccomp-opt1", "docker-libseccomp-opt2"] {
        let peer = corpus::program(&format!("docker/{name}.bpf"));
        check_all(&certificate(&program, &Subject::Program(&peer)));
    }
}

#[test]
fn a_merged_stack_has_a_certificate() {
    let names = corpus::files("systemd/stack", ".bpf");
    let filters: Vec<Program> = names.iter().map(|name| corpus::program(name)).collect();
    let stack = Stack::new(filters).unwrap();
    let optimised = optimise(&stack, &CompileOptions::default(), Split::Never).unwrap();
    let [one] = optimised.programs() else {
        panic!("one filter")
    };
    let before = Subject::programs(stack.programs());
    check_all(&certificate(
        &Subject::Stack(&before),
        &Subject::Program(one),
    ));
}

/// The kinds of the README's second table: filters of libseccomp 2.5.4, each with the one that takes its place. The corpus
/// has none of podman, that service or Tor; Docker's profile and the filters of another hardened service stand for them.
#[test]
fn replaced_filters_have_certificates() {
    let mut before = vec![corpus::program("peers/docker-libseccomp-2.5.4.bpf")];
    for name in corpus::files("systemd/stack", ".bpf") {
        let filter = corpus::program(&name);
        // The filters of several directives are the same.
        if !before.contains(&filter) {
            before.push(filter);
        }
    }
    let mut shorter = 0;
    for program in before {
        let alone = Stack::new(vec![program.clone()]).unwrap();
        let optimised = optimise(&alone, &CompileOptions::default(), Split::Never).unwrap();
        let [after] = optimised.programs() else {
            panic!("one filter")
        };
        let made = certificate(&Subject::Program(&program), &Subject::Program(after));
        match seeds::is_full() {
            true => check_all(&made),
            false => drop(checked(&made.files().to_vec()).unwrap()),
        }
        shorter += usize::from(after.len() < program.len());
    }
    assert!(shorter > 0, "no filter is shorter than before");
}

/// The certificate that is corrupted: a policy with argument tests and its filter.
fn intact() -> (Files, Program) {
    let ruleset = ruleset(
        "default errno(EPERM)
allow read, write, futex, exit_group, socket(family == AF_UNIX)",
    );
    let compiled = compile(&ruleset, &CompileOptions::default()).unwrap();
    let program = compiled.program().unwrap().clone();
    let made = certificate(&Subject::Ruleset(&ruleset), &Subject::Program(&program));
    (made.files().to_vec(), program)
}

/// One line changed: left out, written twice, moved down, or with another digit.
fn corrupted(rng: &mut Rng, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = rng.index(lines.len());
    match rng.range(0..=3) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(at, lines[at].clone()),
        2 if at + 1 < lines.len() => lines.swap(at, at + 1),
        _ => {
            let digits: Vec<usize> = lines[at]
                .char_indices()
                .filter(|(_, letter)| letter.is_ascii_digit())
                .map(|(place, _)| place)
                .collect();
            // A line of words has none.
            let place = if digits.is_empty() {
                0
            } else {
                *rng.choose(&digits)
            };
            if lines[at].is_empty() {
                lines[at].push(' ');
            }
            let old = &lines[at][place..=place];
            let new = if old == "7" { "3" } else { "7" };
            lines[at].replace_range(place..=place, new);
        }
    }
    lines.join("\n") + "\n"
}

/// The formula of a certificate, made again from its raw programs.
fn formula_again(files: &Files) -> String {
    let program = |name: &str| {
        let found = files.iter().find(|(known, _)| known == name);
        let insns = insns_from_bytes(&found.expect("it is there").1, Endian::Little);
        Program::new(insns.expect("it is whole"), Endian::Little).unwrap()
    };
    let (left, right) = (program("left.bpf"), program("right.bpf"));
    let again = certificate(&Subject::Program(&left), &Subject::Program(&right));
    text(&again.files().to_vec(), "claim.cnf")
}

#[test]
fn the_formula_is_that_of_the_raw_programs() {
    let (files, _) = intact();
    assert_eq!(formula_again(&files), text(&files, "claim.cnf"));
}

#[test]
fn corrupted_certificates_are_rejected() {
    let (files, _) = intact();
    checked(&files).unwrap();
    lrat_verdict(&files).unwrap();
    let formula = formula_again(&files);
    let (mut harmless, mut tried) = (0, 0);
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let name = *rng.choose(&[
            "table.txt",
            "claim.cnf",
            "claim.lrat",
            "claim.smt2",
            "README",
        ]);
        let old = text(&files, name);
        let new = corrupted(&mut rng, &old);
        if new == old {
            continue;
        }
        let broken = with_text(&files, name, &new);
        assert!(checked(&broken).is_err(), "seed {seed}: {name}");
        // With a right manifest, the checkers of the contents reject it.
        let broken = sealed(broken);
        match name {
            "table.txt" => assert!(checked(&broken).is_err(), "seed {seed}"),
            // A formula may be changed where no step needs it, but is then another one than that of the programs.
            "claim.cnf" => assert_ne!(text(&broken, name), formula, "seed {seed}"),
            "claim.lrat" => {
                tried += 1;
                // Some changes leave a proof: a step that no other needs, equal or independent lines.
                harmless += usize::from(lrat_verdict(&broken).is_ok());
            }
            _ => {}
        }
    }
    println!("{harmless} of {tried} changed refutations refute the same formula");
}

/// The program with another answer for one number of an architecture.
fn with_one_call_changed(rng: &mut Rng, program: &Program) -> Program {
    let nr = rng.range(0..=450) as u32;
    let call = SeccompData {
        nr,
        arch: Arch::X86_64.audit(),
        ..SeccompData::default()
    };
    let ret = interp::run(program, &call).ret;
    let other = if ret == 0x7fff_0000 {
        0x0005_0001
    } else {
        0x7fff_0000
    };
    let mut ops = vec![
        Op::LoadData(4),
        Op::branch(Test::Eq, Arch::X86_64.audit(), 0, 3),
        Op::LoadData(0),
        Op::branch(Test::Eq, nr, 0, 1),
        Op::RetImm(other),
    ];
    ops.extend(program.ops());
    Program::from_ops(&ops, program.endian()).unwrap()
}

#[test]
fn false_claims_have_no_certificate_and_forged_ones_are_rejected() {
    let (files, program) = intact();
    let mut refused = 0;
    for seed in seeds::selected(0..400) {
        let mut rng = Rng::new(seed);
        let wrong = match seed % 2 {
            0 => with_one_call_changed(&mut rng, &program),
            _ => mutant(&mut rng, &program).unwrap(),
        };
        let [own, other] = [&program, &wrong].map(Subject::Program);
        let Answer::Different { input, .. } = decide(&own, &other, &Limits::default()) else {
            continue;
        };
        let none = Certificate::new(&own, &other, &Effort::default());
        assert!(matches!(none, Err(Uncertified::Different)), "seed {seed}");
        // The files of the right pair, with the wrong program on either side.
        let name = *rng.choose(&["left.bpf", "right.bpf"]);
        let mut forged = files.clone();
        forged.iter_mut().find(|(own, _)| own == name).unwrap().1 = wrong.to_bytes();
        let text = rejection(&sealed(forged));
        assert!(
            text.starts_with("table.txt:"),
            "seed {seed}: {text}, not for {input:x?}"
        );
        refused += 1;
    }
    println!("{refused} false claims");
    assert!(refused >= seeds::least(200), "only {refused} false claims");
}

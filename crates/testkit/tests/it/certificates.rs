//! Certificates: `tamis-check` accepts right ones and rejects all others.

use tamis_abi::Endian;
use tamis_bpf::{AluOp, Op, Operand, Program, Test};
use tamis_certificate::{Certificate, Effort};
use tamis_check::{FORMAT, Refusal, TITLE, check, sha256};
use tamis_prover::Subject;
use tamis_testkit::corpus;

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

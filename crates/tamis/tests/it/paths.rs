//! Paths that aren't UTF-8: every command treats them like others, and prints their bytes escaped.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What commands say: the same, or with times and counts that differ from run to run, so that only the status and the names of
/// files are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Same,
    Measured,
}
use Comparison::{Measured, Same};

/// Commands; those with a complete comparison precede those whose files stay. In their words `%` stands for the special part of a
/// name.
const COMMANDS: [(&str, Comparison); 35] = [
    ("compile d%/p%.tamis -o d%/made%.bpf", Same),
    ("compile d%/p%.tamis --counts d%/profile% --stats", Same),
    ("compile d%/p%.rules -o d%/made%.bpf", Same),
    ("compile d%/missing%", Same),
    ("compile d%/p%.tamis -o d%/none%/made.bpf", Same),
    ("compile --include-dir d%/stack% d%/far%.tamis", Same),
    (
        "compile --dialect python --arch-json d%/c%.json d%/p%.policy",
        Same,
    ),
    (
        "compile --dialect python -O arch-json=d%/c%.json d%/p%.policy",
        Same,
    ),
    ("precompile d%/m%.toml --emit bpf -o d%/folder%", Same),
    ("optimize d%/a%.bpf d%/b%.bpf -o d%/made%.bpf", Same),
    ("optimize d%/stack%", Same),
    ("optimize d%/a%.bpf,d%/b%.bpf", Same),
    ("explain d%/p%.tamis read", Same),
    ("explain d%/p%.tamis --audit d%/log%", Same),
    ("explain d%/wrong%.tamis read", Same),
    ("lint d%/p%.tamis d%/a%.bpf", Same),
    ("bpf eval d%/a%.bpf read", Same),
    ("prove d%/p%.tamis d%/a%.bpf", Same),
    ("diff d%/p%.tamis d%/stack%", Same),
    ("run -p d%/none% -- true", Same),
    ("exec -p d%/wrong%.tamis -- true", Same),
    ("sandbox -p d%/wrong%.tamis -- true", Same),
    (
        "learn d%/profile% --base d%/p%.tamis -o d%/learned%.tamis",
        Same,
    ),
    ("profile d%/profile% -o d%/merged%", Same),
    ("oci apply d%/p%.tamis d%/config%.json", Same),
    ("bpf asm d%/t%.asm -o d%/made%.bpf", Same),
    ("bpf disasm d%/a%.bpf -o d%/made%.asm", Same),
    ("bpf decompile d%/a%.bpf -o d%/made%.tamis", Same),
    ("convert d%/p%.tamis --to oci -o d%/made%.json", Same),
    ("bpf bisect d%/p%.tamis", Same),
    ("record --cgroup d%/none%", Same),
    ("inject d%/rules% true", Same),
    ("man d%/pages%", Same),
    (
        "bpf fuzz d%/p%.tamis d%/a%.bpf --evaluations 100 --export-vectors d%/v%",
        Measured,
    ),
    (
        "bpf reduce d%/p%.tamis --differs d%/b%.bpf -o d%/made%.tamis",
        Measured,
    ),
];

/// A byte that begins no character; for comparison, nothing.
const PARTS: [&[u8]; 2] = [b"", b"\xff"];

/// A profile: the table of `strace -c`.
const PROFILE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000006           1        10           read
 40.00    0.000004           1         3           write
------ ----------- ----------- --------- --------- ----------------
100.00    0.000010           1        13           total
";

/// The text form of a ruleset.
const RULES: &str = "\
ruleset bad-arch kill_process
section x86_64 default errno(1)
  read: allow
";

/// A table of minijail's compile tool.
const TABLE: &str = r#"{"arch_nr": 3221225534, "arch_name": "x86_64", "bits": 64,
    "syscalls": {"read": 0, "write": 1}, "constants": {}}"#;

/// A word with the special part in the place of each `%`.
fn special(word: &str, part: &[u8]) -> OsString {
    let pieces: Vec<&[u8]> = word.split('%').map(str::as_bytes).collect();
    OsString::from_vec(pieces.join(part))
}

/// An empty folder with the inputs, whose names contain this text.
fn folder(index: usize, part: &[u8]) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("paths-{index}"));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join(special("d%/stack%", part))).unwrap();
    let write =
        |name: &str, content: &[u8]| fs::write(root.join(special(name, part)), content).unwrap();
    for (name, content) in [
        (
            "d%/p%.tamis",
            "default errno(EPERM)\nallow exit, exit_group, rt_sigreturn\ninclude \"base.tamis\"\n",
        ),
        (
            "d%/base.tamis",
            "allow read, write, restart_syscall, execve\n",
        ),
        (
            "d%/far%.tamis",
            "default errno(EPERM)\ninclude \"shared.tamis\"\n",
        ),
        ("d%/stack%/shared.tamis", "allow exit, exit_group\n"),
        ("d%/wrong%.tamis", "default errno(EPERM)\nallow raed\n"),
        ("d%/p%.policy", "read: arg0 == 1\n"),
        ("d%/c%.json", TABLE),
        ("d%/p%.rules", RULES),
        (
            "d%/m%.toml",
            "policy = \"base.tamis\"\narch = \"x86_64\"\n[option.a]\nyes = {}\nno = { rules = \"allow getpid\" }\n",
        ),
        ("d%/profile%", PROFILE),
        (
            "d%/log%",
            "type=SECCOMP msg=audit(1.2:3): pid=1 comm=\"a\" arch=c000003e syscall=59 compat=0 ip=0x1 code=0x50000\n",
        ),
        (
            "d%/config%.json",
            "{\"ociVersion\": \"1.0.2\", \"linux\": {}}",
        ),
        ("d%/t%.asm", "ret #0x7fff0000\n"),
        ("d%/rules%", "read errno(EIO) every 0\n"),
    ] {
        write(name, content.as_bytes());
    }
    for (name, text) in [
        ("a", "default errno(EPERM)\nallow read\n"),
        ("b", "default errno(EPERM)\nallow write\n"),
    ] {
        let source = root.join("source.tamis");
        fs::write(&source, text).unwrap();
        let program = root.join(special(&format!("d%/{name}%.bpf"), part));
        let mut compile = Command::new(crate::TAMIS);
        compile
            .args(["compile", "-q", "-o"])
            .arg(&program)
            .arg(&source);
        assert!(compile.status().unwrap().success());
        fs::copy(
            &program,
            root.join(special(&format!("d%/stack%/{name}%.bpf"), part)),
        )
        .unwrap();
    }
    root
}

/// The files below a folder, with names and content without the special text.
fn files(folder: &Path, root: &Path, found: &mut BTreeMap<Vec<u8>, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, root, found);
            continue;
        }
        let mut name = path
            .strip_prefix(root)
            .unwrap()
            .as_os_str()
            .as_bytes()
            .to_vec();
        name.retain(|byte| *byte != 0xff);
        found.insert(name, plain(fs::read(&path).unwrap()));
    }
}

/// The output of a command, without the special text in its two forms: in text, and in a document's text.
fn plain(bytes: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) => text.replace(r"\\xff", "").replace(r"\xff", "").into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

/// The result of a command in a folder: its status, its output, and the remaining files.
fn outcome(
    line: &str,
    root: &Path,
    part: &[u8],
) -> (Option<i32>, String, BTreeMap<Vec<u8>, Vec<u8>>) {
    let words = line.split(' ').map(|word| special(word, part));
    let mut command = Command::new(crate::TAMIS);
    command.args(words).current_dir(root).stdin(Stdio::null());
    let output = command.output().unwrap();
    let printed = [output.stdout, output.stderr].map(plain);
    let mut behind = BTreeMap::new();
    files(root, root, &mut behind);
    (
        output.status.code(),
        String::from_utf8_lossy(&printed.concat()).into_owned(),
        behind,
    )
}

#[test]
fn commands_do_with_them_what_they_do_with_others() {
    let roots: Vec<PathBuf> = PARTS
        .iter()
        .enumerate()
        .map(|(index, part)| folder(index, part))
        .collect();
    for (line, says) in COMMANDS {
        let [
            (status, printed, files),
            (own_status, own_printed, own_files),
        ] = [0, 1].map(|at: usize| outcome(line, &roots[at], PARTS[at]));
        println!("{line}: {status:?}\n{printed}");
        assert_eq!(own_status, status, "{line}: {own_printed}");
        assert!(
            own_files.keys().eq(files.keys()),
            "{line}: {:?}",
            own_files.keys()
        );
        if says == Same {
            assert_eq!(own_printed, printed, "{line}");
            assert_eq!(own_files, files, "{line}");
        }
    }
}

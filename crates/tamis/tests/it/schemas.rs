//! Every `--json` document conforms to `docs/schemas`.
//!
//! The schemas use a small part of JSON Schema; `tamis_testkit::schema` checks that part and fails on any other, so
//! that no rule of a schema goes unchecked.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tamis_abi::{Arch, Nr};
use tamis_profile::Profile;
use tamis_testkit::corpus::repository;
use tamis_testkit::schema;
use tamis_testkit::skip::{self, Need};

/// Runs a command that prints a document and checks it against the schema that it names.
fn check(line: &str) -> String {
    let schemas = repository().join("docs/schemas");
    schema::check(Path::new(crate::TAMIS), &schemas, line)
}

/// Checks the document of a process under a filter, whose number completes the command; skips where the kernel doesn't
/// show filters.
fn check_waiting(command: &str) -> String {
    skip::unless_live();
    let mut child = Command::new(crate::TAMIS)
        .args([
            "run",
            "--quiet",
            "--no-explain",
            "--",
            "sh",
            "-c",
            "echo $$; read end",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pid = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut pid)
        .unwrap();
    let line = format!("{command} {}", pid.trim());
    let tried = Command::new(crate::TAMIS)
        .args(line.split(' '))
        .output()
        .unwrap();
    if tried.status.code() == Some(4) {
        skip::because(Need::Live, String::from_utf8_lossy(&tried.stderr));
    }
    let name = check(&line);
    drop(child.stdin.take());
    child.wait().unwrap();
    name
}

/// A file with a profile that has all members.
fn profile() -> PathBuf {
    let mut profile = Profile::default();
    let call = profile.call_mut(Arch::X86_64, Nr(0));
    call.count = u64::MAX;
    call.values.entry(1).or_default().insert(u64::MAX, 1);
    call.samples.insert([1, 2, 3, 4, 5, 6], 1);
    profile.call_mut(Arch::X86_64, Nr(1000)).count = 1;
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas.json");
    fs::write(&path, profile.to_json()).unwrap();
    path
}

/// A policy with variables of all kinds.
fn variables() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas-variables.tamis");
    let text = "arch x86_64\nlet one: u32\nlet wide: u64[2] in 1..0xffffffffffffffff\n\
                default allow\ndeny write(fd == one), mmap(addr in wide)\n";
    fs::write(&path, text).unwrap();
    path
}

/// Checks with every kind of failure, and the policy that they are for.
fn failing_checks() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (checks, policy) = (
        folder.join("schemas.checks"),
        folder.join("schemas-checked.tamis"),
    );
    let text = "group \"all\" { reason \"any\" source \"https://example.org\"\n\
                never allow socket(family == AF_ALG), write\nalways allow mount\n\
                expect ptrace -> kill-process\nequal to \"pure-compute\"\nat most 1 instructions\n\
                cached: mount\nalways allow read }\n";
    fs::write(&checks, text).unwrap();
    let text = "arch x86_64\nlet one: u32\ndefault deny\nallow socket(full(family) != AF_ALG), read\n\
                allow write(fd == one)\n";
    fs::write(&policy, text).unwrap();
    format!(
        "test {} --policy {} --coverage --json",
        checks.display(),
        policy.display()
    )
}

/// A folder for an installation.
fn prefix() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas-prefix")
}

/// A matrix with all that the document can have.
fn matrix() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let policy =
        "let fds: u32[2]\nlet id: u64\ndefault allow\ndeny write(fd in fds), lseek(offset == id)\n";
    fs::write(folder.join("schemas-matrix.tamis"), policy).unwrap();
    let matrix = "policy = 'schemas-matrix.tamis'\narch = 'x86_64'\n[option.a]\nx = {}\ny = { rules = 'deny read' }\n";
    let path = folder.join("schemas.toml");
    fs::write(&path, matrix).unwrap();
    path
}

/// A folder with a unit that can be hardened, and the options to do that there.
fn hardened() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas-harden");
    let units = folder.join("etc/systemd/system");
    fs::create_dir_all(&units).unwrap();
    let unit =
        "[Service]\nExecStart=/bin/true\nSystemCallFilter=@system-service\nProtectClock=yes\n";
    fs::write(units.join("x.service"), unit).unwrap();
    fs::write(folder.join("tamis-exec"), "").unwrap();
    let folder = folder.display();
    format!("harden x --json --root {folder} --installer /tamis-exec")
}

/// A command that puts a policy into the configuration of a container.
fn configured() -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas-config.json");
    fs::write(&path, r#"{"ociVersion": "1.0.2"}"#).unwrap();
    format!("oci apply pure-compute {} --json", path.display())
}

/// A command that extends a profile.
fn extended() -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas-profile.json");
    let profile = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []}"#;
    fs::write(&path, profile).unwrap();
    format!("oci allow {} setns --json", path.display())
}

/// Checks the document of a recording.
fn check_record() -> String {
    const LINE: &str = "record --time --json --against pure-compute -- true";
    let mut command = Command::new(crate::TAMIS);
    let output = command.args(LINE.split_whitespace()).output().unwrap();
    if output.status.code() == Some(4) {
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        skip::because(Need::Tracepoints, reason);
    }
    check(LINE)
}

/// Checks the documents of commands that need the running kernel.
fn check_live() -> Vec<String> {
    let policy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas.tamis");
    fs::write(&policy, "default allow\nkill uname\n").unwrap();
    let denying = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas-denying.tamis");
    fs::write(
        &denying,
        "default allow\ndeny lseek\nkill openat(flags & O_CREAT != 0)\n",
    )
    .unwrap();
    let rules = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas.rules");
    fs::write(&rules, "uname errno(EIO)\n").unwrap();
    vec![
        check("bench pure-compute --calls getpid,exit --rounds 1 --json"),
        // With a profile there is a mix; futex is one of its two calls that can be made.
        check(&format!(
            "bench pure-compute --counts {} --sequence getpid;futex --rounds 1 --json",
            profile().display()
        )),
        check("bench --explain-gap --rounds 1 --json"),
        check("bpf fuzz pure-compute --evaluations 1000 --running-kernel --json"),
        check(&format!("run --json -p {} -- uname", policy.display())),
        check(&format!(
            "run --explain-denied --json-lines -p {} -- touch schemas",
            denying.display()
        )),
        check(&format!("sandbox --json -p {} -- true", policy.display())),
        check(&format!("inject --json {} -- true", rules.display())),
        check(&format!(
            "audit --json --against pure-compute --pid {}",
            std::process::id()
        )),
        check_waiting("audit --advisories --json --pid"),
        check("trace --json -- cat /etc/passwd"),
    ]
}

/// `explain` of a log with a record.
fn records() -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas-audit.log");
    let record = "type=SECCOMP msg=audit(1.2:3): pid=1 comm=\"a\" sig=0 arch=c000003e syscall=59 compat=0 ip=0x1 code=0x50000\n";
    fs::write(&path, record).unwrap();
    format!("explain --audit {} --json", path.display())
}

#[test]
fn every_document_fits_its_schema_and_every_schema_has_a_document() {
    let mut covered = vec![
        check("compile container-default --stats --json"),
        check(&format!("compile {} --emit json", variables().display())),
        check("optimize pure-compute container-default --stats --json"),
        check("bpf disasm pure-compute --json"),
        check("bpf eval pure-compute raed --json"),
        check("compile no/such/file --json"),
        check("bpf decompile pure-compute --json"),
        check("combine --intersect container-default pure-compute --arch x86_64 --json"),
        check("convert container-default --arch x86_64 --to systemd --json"),
        check("bpf eval --json --trace container-default socket(AF_VSOCK) read"),
        check("explain --json container-default socket(AF_VSOCK) read x86:read"),
        check("explain TM0201 --json"),
        check(&records()),
        check("lint container-default pure-compute --json"),
        check("lint --list --json"),
        check(&failing_checks()),
        check("bpf passes --json"),
        check(&format!(
            "libseccomp install --json --prefix {}",
            prefix().display()
        )),
        check(&format!("precompile --json {}", matrix().display())),
        check("bpf bisect pure-compute --json"),
        check("bpf fuzz pure-compute --evaluations 1000 --json"),
        check("bpf fuzz pure-compute --evaluations 1000 --no-coverage --json"),
        check("bpf fuzz pure-compute container-default --time 1 --json"),
        check("prove container-default pure-compute --json"),
        check("diff container-default pure-compute --json"),
        check("bpf reduce container-default --reports TM0720 --json"),
        check(&format!("profile --json {}", profile().display())),
        check(&format!(
            "learn --json --base pure-compute {}",
            profile().display()
        )),
        check(&hardened()),
        check("--version --json"),
        check("compile -h --json"),
        check("--json help profile merge"),
        check(&configured()),
        check(&extended()),
        check("tables arches --json"),
        check("tables syscalls open --json"),
        check("tables constants O_ --json"),
        check("tables codes --json"),
        check("tables options --json"),
    ];
    covered.extend(LIVE.into_iter().chain([DUMP, RECORD]).map(str::to_owned));
    for entry in fs::read_dir(repository().join("docs/schemas")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            covered.iter().any(|name| schema::file(name) == file),
            "no document was checked against {file}"
        );
    }
}

/// The documents of the tests below.
const LIVE: [&str; 9] = [
    "tamis.advisories/1",
    "tamis.audit/1",
    "tamis.bench/1",
    "tamis.bench-gap/1",
    "tamis.denied/1",
    "tamis.inject/1",
    "tamis.run/1",
    "tamis.sandbox/1",
    "tamis.trace/1",
];
const DUMP: &str = "tamis.dump/1";
const RECORD: &str = "tamis.record/1";

#[test]
fn documents_about_the_running_kernel_fit_their_schemas() {
    skip::unless_live();
    let checked = check_live();
    for name in LIVE {
        assert!(checked.iter().any(|known| known == name), "{name}");
    }
}

#[test]
fn the_document_about_filters_of_a_process_fits_its_schema() {
    skip::unless_live();
    assert_eq!(check_waiting("bpf dump --json --pid"), DUMP);
}

#[test]
fn the_document_of_a_recording_fits_its_schema() {
    assert_eq!(check_record(), RECORD);
}

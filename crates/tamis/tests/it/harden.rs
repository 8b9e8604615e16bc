//! `tamis harden` on a service of a systemd that is booted for it: the same filters, the same answers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tamis_abi::syscall;
use tamis_bpf::Program;
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_testkit::libseccomp::Library;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::systemd::{SHARED, Started, Systemd, Unit};
use tamis_testkit::toolchains::stderr_text;

const TAMIS: &str = env!("CARGO_BIN_EXE_tamis");
/// How long systemd may take for both services.
const LIMIT: Duration = Duration::from_secs(120);
/// Settings that are only filters, and two that do more.
const SETTINGS: &str = "\
SystemCallFilter=@system-service
SystemCallFilter=~@privileged chroot:ENOANO
SystemCallErrorNumber=EPERM
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET
RestrictNamespaces=yes
MemoryDenyWriteExecute=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
ProtectClock=yes
ProtectKernelLogs=yes
";
/// Makes calls that the settings are about, with arguments by which none has an effect, and writes the answers.
const PROBE: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
NO = -1
calls = [
    ("reboot", 169, [0, 0, 0]), ("chroot", 161, [0]), ("mount", 165, [0, 0, 0, 0, 0]),
    ("socket(AF_UNIX)", 41, [1, NO, 0]), ("socket(AF_INET)", 41, [2, NO, 0]), ("socket(AF_PACKET)", 41, [17, NO, 0]),
    ("unshare", 272, [0x20000000 | 1]), ("unshare(0)", 272, [0]), ("setns", 308, [NO, 0]), ("clone3", 435, [0, 0]),
    ("mmap(WX)", 9, [0, 0, 6, 0x22, NO, 0]), ("mmap(R)", 9, [0, 0, 1, 0x22, NO, 0]), ("mprotect(X)", 10, [1, 0, 4]),
    ("sched_setscheduler(FIFO)", 144, [NO, 1, 0]), ("sched_setscheduler(OTHER)", 144, [NO, 0, 0]),
    ("fchmod(04000)", 91, [NO, 0o4000]), ("fchmod(0)", 91, [NO, 0]), ("openat2", 437, [NO, 0, 0, 0]),
    ("mkdirat(02000)", 258, [NO, 0, 0o2000]), ("personality(8)", 135, [8]), ("personality(0)", 135, [0]),
    ("clock_settime", 227, [NO, 0]), ("adjtimex", 159, [0]), ("syslog", 103, [NO, 0, 0]), ("read", 0, [NO, 0, 0]),
    ("init_module", 175, [0, 0, 0]), ("keyctl", 250, [NO]), ("bpf", 321, [NO, 0, 0]), ("no such call", 999, []),
]
lines = []
for name, number, arguments in calls:
    ctypes.set_errno(0)
    result = libc.syscall(number, *[ctypes.c_long(a) for a in arguments])
    lines.append(f"{name} {'ok' if result >= 0 else ctypes.get_errno()}")
wanted = ("CapBnd", "CapEff", "NoNewPrivs", "Uid", "SigIgn")
lines += [l.strip() for l in open("/proc/self/status") if l.split(":")[0] in wanted]
lines.append(" ".join(sys.argv[2:]))
with open(sys.argv[1], "w") as file:
    file.write("\n".join(lines) + "\n")
"#;

fn tamis(args: &[&str]) -> Output {
    Command::new(TAMIS).args(args).output().expect("it starts")
}

/// An empty folder of a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("harden")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("etc/systemd/system")).unwrap();
    fs::create_dir_all(folder.join("opt")).unwrap();
    folder
}

/// A service that runs the probe, which writes to this file.
///
/// Calls that the machine's libseccomp doesn't know are denied by name: systemd ignores the names, and denies the calls
/// even where a set of its own has them.
fn service(file: &str, unknown: &str) -> Unit {
    let probe = format!("/usr/bin/python3 {SHARED}/probe.py {SHARED}/{file} 'two words' 100%% $$x");
    Unit {
        text: format!("ExecStart=\nExecStart={probe}\n{SETTINGS}SystemCallFilter=~{unknown}\n"),
        drop_ins: Vec::new(),
    }
}

fn filters(started: &Started) -> &[Program] {
    match started {
        Started::Filters(filters) => filters,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hardened_service_gets_the_same_answers_from_fewer_filters() {
    if skip::without_live() {
        return;
    }
    let systemd = match Systemd::find() {
        Ok(systemd) if systemd.version.starts_with("systemd 252 ") => systemd,
        Ok(systemd) => return skip::because(Need::Systemd, systemd.version),
        Err(reason) => return skip::because(Need::Systemd, reason),
    };
    let root = folder("live");
    let shared = root.join("opt");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    fs::hard_link(TAMIS, shared.join("tamis")).unwrap();
    fs::write(shared.join("probe.py"), PROBE).unwrap();
    let library = match Library::open() {
        Ok(library) => library,
        Err(reason) => return skip::because(Need::Peers, reason),
    };
    let unknown: Vec<&str> = syscall::names()
        .filter(|name| library.resolve(name).is_none())
        .collect();
    let unknown = unknown.join(" ");
    let (before, mut after) = (service("before", &unknown), service("after", &unknown));
    fs::write(root.join("etc/systemd/system/x.service"), after.file()).unwrap();
    let output = tamis(&[
        "harden",
        "x",
        "--root",
        root.to_str().unwrap(),
        "--installer",
        "/opt/tamis",
        "-o",
        shared.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    after.drop_ins = vec![fs::read_to_string(shared.join("zz-tamis.conf")).unwrap()];
    let units = [before, after];
    let loaded = systemd.start_with(&units, Some(&shared), LIMIT).unwrap();
    let loaded = loaded.unwrap_or_else(|| panic!("systemd took longer than {LIMIT:?}"));
    let [before, after] = loaded.as_slice() else {
        panic!("two units");
    };
    let (before, after) = (filters(&before.started), filters(&after.started));
    // Three for each of the two that stay, and the one.
    assert_eq!(after.len(), 7);
    assert!(before.len() > 20, "{}", before.len());
    let answers = |name| fs::read_to_string(shared.join(name)).expect("the probe has written");
    assert_eq!(answers("before"), answers("after"));
    assert!(
        answers("after").ends_with("two words 100% $x\n"),
        "{}",
        answers("after")
    );
    let own = fs::read(shared.join("tamis.bpf")).unwrap();
    assert_eq!(after[6].to_bytes(), own);
    let (left, right) = (Subject::programs(after), Subject::programs(before));
    let answer = decide(
        &Subject::Stack(&left),
        &Subject::Stack(&right),
        &Limits::default(),
    );
    assert!(matches!(answer, Answer::Equal(_)), "{answer:x?}");
}

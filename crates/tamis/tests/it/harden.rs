//! `tamis harden` on a service of a systemd that is booted for it: the same filters, the same answers.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tamis_abi::syscall;
use tamis_bpf::Program;
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_testkit::libseccomp::Library;
use tamis_testkit::skip::{self, Judge, Need};
use tamis_testkit::systemd::{SHARED, Started, Systemd, Unit};
use tamis_testkit::toolchains::stderr_text;

use crate::TAMIS;

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

pub(crate) fn tamis(args: &[&str]) -> Output {
    Command::new(TAMIS).args(args).output().expect("it starts")
}

/// An empty root of a test, with a library that says the machine's release of systemd, or by its name the tests' one.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("harden")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("etc/systemd/system")).unwrap();
    fs::create_dir_all(folder.join("opt")).unwrap();
    let libraries = folder.join("usr/lib/systemd");
    fs::create_dir_all(&libraries).unwrap();
    let said = Systemd::version().map(|version| format!("Manager: {version}"));
    fs::write(
        libraries.join("libsystemd-core-252.so"),
        said.unwrap_or_default(),
    )
    .unwrap();
    folder
}

/// The machine's systemd; the test ends if it isn't of the version of the tests.
pub(crate) fn systemd() -> Systemd {
    skip::unless_live();
    skip::unless_asked(Judge::Systemd);
    match Systemd::find() {
        Ok(systemd) if systemd.version.starts_with("systemd 252 ") => systemd,
        Ok(systemd) => skip::because(Need::Systemd, systemd.version),
        Err(reason) => skip::because(Need::Systemd, reason),
    }
}

/// A service that runs the probe, which writes to this file.
///
/// Calls that the machine's libseccomp doesn't know are denied by name: systemd ignores the names, and denies the calls
/// even where a set of its own has them.
fn service(file: &str, settings: &str, unknown: &str) -> Unit {
    let probe = format!("/usr/bin/python3 {SHARED}/probe.py {SHARED}/{file} 'two words' 100%% $$x");
    Unit {
        text: format!(
            "ExecStart=\nExecStart={probe}\n{SETTINGS}SystemCallFilter=~{unknown}\n{settings}"
        ),
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
    let systemd = systemd();
    let root = folder("live");
    let shared = root.join("opt");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    fs::hard_link(TAMIS, shared.join("tamis")).unwrap();
    fs::write(shared.join("probe.py"), PROBE).unwrap();
    let library = Library::open().unwrap_or_else(|reason| skip::because(Need::Peers, reason));
    let unknown: Vec<&str> = syscall::names()
        .filter(|name| library.resolve(name).is_none())
        .collect();
    let unknown = unknown.join(" ");
    let user = "User=65534\nNoExecPaths=/\nExecPaths=/usr /lib /lib64 /bin\n";
    let (mut units, mut told) = (Vec::new(), Vec::new());
    for (name, settings, options) in [
        ("root", "", None),
        ("root", "", Some("")),
        ("root", "", Some("--rewrite")),
        ("user", user, None),
        ("user", user, Some("")),
    ] {
        let file = format!("{name}{}", units.len());
        let mut unit = service(&file, settings, &unknown);
        if let Some(option) = options {
            let (drop_in, filters) = harden(&root, &unit, &file, option);
            unit.drop_ins = vec![drop_in];
            told.push(filters);
        }
        units.push(unit);
    }
    let loaded = systemd.start_with(&units, Some(&shared), LIMIT).unwrap();
    let loaded = loaded.unwrap_or_else(|| panic!("systemd took longer than {LIMIT:?}"));
    let stacks: Vec<&[Program]> = loaded.iter().map(|own| filters(&own.started)).collect();
    let lengths: Vec<usize> = stacks.iter().map(|stack| stack.len()).collect();
    // The report on each pair of services.
    let found = [[0, 1], [0, 2], [3, 4]].map(|pair| pair.map(|index| lengths[index]));
    assert_eq!(told, found);
    assert_eq!(lengths[2], 1);
    let answers =
        |name: &str| fs::read_to_string(shared.join(name)).expect("the probe has written");
    for (before, after) in [(0, 1), (0, 2), (3, 4)] {
        let name = if before == 0 { "root" } else { "user" };
        let [then, now] = [before, after].map(|index| answers(&format!("{name}{index}")));
        assert_eq!(then, now);
        assert!(now.ends_with("two words 100% $x\n"), "{now}");
        let [left, right] = [before, after].map(|index| Subject::programs(stacks[index]));
        let answer = decide(
            &Subject::Stack(&left),
            &Subject::Stack(&right),
            &Limits::default(),
        );
        assert!(matches!(answer, Answer::Equal(_)), "{answer:x?}");
        let own = fs::read(shared.join(format!("{name}{after}.d/tamis.bpf"))).unwrap();
        assert_eq!(stacks[after].last().unwrap().to_bytes(), own);
    }
}

/// The drop-in that hardens a unit of a root, and the reported numbers of filters before and after.
fn harden(root: &Path, unit: &Unit, name: &str, option: &str) -> (String, [usize; 2]) {
    let file = root
        .join("etc/systemd/system")
        .join(format!("{name}.service"));
    fs::write(file, unit.file()).unwrap();
    let folder = root.join("opt").join(format!("{name}.d"));
    let paths = [
        "--root",
        root.to_str().unwrap(),
        "-o",
        folder.to_str().unwrap(),
    ];
    let mut words = ["harden", name, "--json", "--installer", "/opt/tamis"].to_vec();
    words.extend(paths);
    words.extend(option.split_whitespace());
    let output = tamis(&words);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let told = ["filters_before", "filters_after"].map(|key| report[key].as_u64().unwrap());
    let drop_in = fs::read_to_string(folder.join("zz-tamis.conf")).unwrap();
    (drop_in, told.map(|filters| filters as usize))
}

/// Files of a unit with a template, prefixes, an alias, and such as don't apply.
const UNIT_FILES: [(&str, &str); 9] = [
    (
        "usr/lib/systemd/system/a-b@.service",
        "[Service]\nExecStart=/bin/true\nSystemCallFilter=@system-service\n",
    ),
    ("usr/lib/systemd/system/service.d/05.conf", "# masked\n"),
    (
        "usr/lib/systemd/system/service.d/10.conf",
        "# of the type\n",
    ),
    (
        "etc/systemd/system/a-b@.service.d/10.conf",
        "# of the template\n",
    ),
    (
        "run/systemd/system/a-b@c.service.d/10.conf",
        "# in a later folder\n",
    ),
    (
        "etc/systemd/system/a-.service.d/20.conf",
        "# of the template's prefix\n",
    ),
    (
        "etc/systemd/system/a-@.service.d/20.conf",
        "# of the prefix\n",
    ),
    (
        "etc/systemd/system/al@c.service.d/30.conf",
        "# of the alias\n",
    ),
    (
        "etc/systemd/system/a-b@d.service.d/40.conf",
        "# of another instance\n",
    ),
];

/// The output of `systemctl cat` of systemd 252 for these files.
#[test]
fn a_unit_is_read_with_the_drop_ins_that_systemd_reads() {
    let root = folder("files");
    for (path, text) in UNIT_FILES {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(root.join("tamis-exec"), "").unwrap();
    let units = root.join("usr/lib/systemd/system");
    symlink("a-b@.service", units.join("al@.service")).unwrap();
    let mask = root.join("etc/systemd/system/a-@.service.d/05.conf");
    symlink("/dev/null", mask).unwrap();
    for name in ["a-b@c", "al@c.service"] {
        let mut words = ["harden", name, "--installer", "/tamis-exec"].to_vec();
        words.extend(["--root", root.to_str().unwrap(), "--json", "--dry-run"]);
        let output = tamis(&words);
        assert!(output.status.success(), "{}", stderr_text(&output));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["unit"], "a-b@c.service");
        let files = report["files"].as_array().unwrap().iter();
        let files: Vec<&str> = files.map(|file| file.as_str().unwrap()).collect();
        assert_eq!(
            files,
            [
                "/usr/lib/systemd/system/a-b@.service",
                "/etc/systemd/system/a-b@.service.d/10.conf",
                "/etc/systemd/system/a-.service.d/20.conf",
                "/etc/systemd/system/al@c.service.d/30.conf",
            ]
        );
    }
}

/// A root with a unit `x` of this text, and the exit code of `harden`.
pub(crate) fn exit_of(root: &Path, unit: &str, options: &[&str]) -> (Option<i32>, String) {
    fs::write(root.join("tamis-exec"), "").unwrap();
    let units = root.join("etc/systemd/system");
    fs::write(units.join("x.service"), unit).unwrap();
    let root = root.to_str().unwrap();
    let common = ["harden", "x", "--root", root, "--installer", "/tamis-exec"];
    let output = tamis(&[&common[..], options].concat());
    (output.status.code(), stderr_text(&output))
}

pub(crate) const PLAIN: &str = "[Service]\nExecStart=/bin/true\nSystemCallFilter=@system-service\n";

#[test]
fn links_of_an_image_stay_in_it() {
    let outside = folder("outside");
    let root = folder("image");
    let units = root.join("etc/systemd/system");
    symlink(&outside, units.join("x.service.d")).unwrap();
    fs::write(outside.join("10.conf"), "[Service]\nRootImage=/x\n").unwrap();
    let inside = root.join(outside.strip_prefix("/").unwrap());
    fs::create_dir_all(&inside).unwrap();
    let (code, told) = exit_of(&root, PLAIN, &[]);
    assert_eq!(code, Some(0), "{told}");
    assert!(inside.join("zz-tamis.conf").is_file());
    assert!(!outside.join("zz-tamis.conf").exists());
    fs::copy(inside.join("zz-tamis.conf"), outside.join("zz-tamis.conf")).unwrap();
    assert_eq!(exit_of(&root, PLAIN, &["--undo"]).0, Some(0));
    assert!(!inside.join("zz-tamis.conf").exists());
    assert!(outside.join("zz-tamis.conf").is_file());
}

#[test]
fn what_isnt_ours_is_neither_read_nor_replaced() {
    let root = folder("others");
    let folder = root.join("etc/systemd/system/x.service.d");
    let own = root.join("usr/lib/systemd/system/x.service.d");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(&own).unwrap();
    for place in [&folder, &own] {
        let file = place.join("zz-tamis.conf");
        fs::write(&file, "[Service]\nNice=5\n").unwrap();
        let (code, told) = exit_of(&root, PLAIN, &[]);
        assert!(
            code == Some(2) && told.contains("was not written by tamis"),
            "{told}"
        );
        fs::remove_file(file).unwrap();
    }
    let pipe = folder.join("10.conf");
    let made = Command::new("mkfifo").arg(&pipe).status();
    if made.is_ok_and(|status| status.success()) {
        let (code, told) = exit_of(&root, PLAIN, &[]);
        assert!(
            code == Some(2) && told.contains("no regular file"),
            "{told}"
        );
    }
}

/// As the stock units of ssh and cron: `ExecReload=kill -HUP $MAINPID`.
#[test]
fn a_program_without_a_path_is_the_one_that_systemd_finds() {
    let root = folder("searched");
    let unit = format!("{PLAIN}ExecReload=kill -HUP $MAINPID\n");
    let (code, told) = exit_of(&root, &unit, &[]);
    assert!(code == Some(2) && told.contains("isn't known"), "{told}");
    for folder in ["usr/bin", "bin"] {
        fs::create_dir_all(root.join(folder)).unwrap();
        fs::write(root.join(folder).join("kill"), "").unwrap();
    }
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(root.join("bin/kill"), executable.clone()).unwrap();
    let drop_in = || {
        let (code, told) = exit_of(&root, &unit, &[]);
        assert_eq!(code, Some(0), "{told}");
        fs::read_to_string(root.join("etc/systemd/system/x.service.d/zz-tamis.conf")).unwrap()
    };
    let has =
        |text: &str, path: &str| text.contains(&format!(" --argv0=kill -- {path} -HUP $MAINPID\n"));
    let text = drop_in();
    assert!(has(&text, "/bin/kill"), "{text}");
    fs::set_permissions(root.join("usr/bin/kill"), executable).unwrap();
    let text = drop_in();
    assert!(has(&text, "/usr/bin/kill"), "{text}");
    // The service's view of this path, or systemd's search path, is unknown here.
    for line in [
        "BindReadOnlyPaths=/srv/x:/usr/local/bin",
        "TemporaryFileSystem=/usr",
        "ExtensionImages=/srv/more.raw",
        "ExecSearchPath=%h/bin:/usr/bin",
        "ExecSearchPath=bin",
    ] {
        let (code, told) = exit_of(&root, &format!("{unit}{line}\n"), &[]);
        let is_refused = code == Some(2) && told.contains("can't be hardened");
        assert!(is_refused, "{line}: {told}");
    }
    // A relative folder is ignored.
    let unit = format!("{unit}ExecSearchPath=bin:/usr/bin\n");
    let (code, told) = exit_of(&root, &unit, &[]);
    assert_eq!(code, Some(0), "{told}");
    let path = root.join("etc/systemd/system/x.service.d/zz-tamis.conf");
    let text = fs::read_to_string(path).unwrap();
    assert!(has(&text, "/usr/bin/kill"), "{text}");
}

#[test]
fn a_unit_without_a_command_says_so() {
    let root = folder("empty");
    let unit = PLAIN.replace("ExecStart=/bin/true\n", "");
    let (code, told) = exit_of(&root, &unit, &[]);
    assert!(
        code == Some(2) && told.contains("it has no command"),
        "{told}"
    );
}

#[test]
fn a_unit_of_which_no_command_is_filtered_is_refused() {
    let root = folder("free");
    let (code, told) = exit_of(&root, &PLAIN.replace("=/bin/true", "=+/bin/true"), &[]);
    assert!(code == Some(2) && told.contains("all have `+`"), "{told}");
}

#[test]
fn a_dry_run_needs_no_installer() {
    let root = folder("dry");
    fs::write(root.join("etc/systemd/system/x.service"), PLAIN).unwrap();
    let alone = root.join("opt/tamis");
    tamis_testkit::child::copy_program(TAMIS, &alone);
    let run = |options: &[&str]| {
        let mut command = Command::new(&alone);
        command.args(["harden", "x", "--root", root.to_str().unwrap()]);
        command.args(options).env("PATH", "").output().unwrap()
    };
    let output = run(&["--dry-run"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("ExecStart=/usr/bin/tamis-exec "), "{text}");
    assert!(text.contains("neither beside tamis nor in PATH"), "{text}");
    assert_eq!(run(&[]).status.code(), Some(2));
}

/// The drop-in that a unit gets in a root.
fn drop_in_of(root: &Path, unit: &str) -> String {
    let (code, told) = exit_of(root, unit, &[]);
    assert_eq!(code, Some(0), "{unit}: {told}");
    fs::read_to_string(root.join("etc/systemd/system/x.service.d/zz-tamis.conf")).unwrap()
}

#[test]
fn the_installer_sets_no_new_privs_where_systemd_does() {
    let root = folder("privs");
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(
        root.join("etc/passwd"),
        "toor:x:0:0::/:/bin/sh\nwww:x:33:33::/:/bin/sh\n",
    )
    .unwrap();
    let admin = "AmbientCapabilities=CAP_SYS_ADMIN";
    for (settings, keeps_privs) in [
        (admin.to_owned(), true),
        (format!("{admin}\nUser=nobody"), false),
        (format!("{admin}\nUser=www"), false),
        (format!("{admin}\nUser=toor"), true),
        (format!("{admin}\nUser=%i"), false),
        (format!("{admin}\nDynamicUser=yes"), false),
        ("User=%i".to_owned(), true),
        ("SecureBits=noroot".to_owned(), true),
        ("NoNewPrivileges=yes".to_owned(), false),
    ] {
        let text = drop_in_of(&root, &format!("{PLAIN}{settings}\n"));
        assert_eq!(
            text.contains(" --keep-privs "),
            keeps_privs,
            "{settings}: {text}"
        );
    }
    // One command of a unit may keep a privilege that another one must not.
    let unit = format!("{PLAIN}{admin}\nUser=www\nExecStartPre=!/bin/true\n");
    let text = drop_in_of(&root, &unit);
    assert!(
        text.contains("ExecStartPre=!/tamis-exec --keep-privs -p "),
        "{text}"
    );
    assert!(text.contains("ExecStart=/tamis-exec -p "), "{text}");
    // If systemd doesn't set it and the kernel requires it, the report says so.
    for settings in [
        "SecureBits=noroot",
        "User=www\nCapabilityBoundingSet=~CAP_SYS_ADMIN\nExecStartPre=!/bin/true",
    ] {
        let unit = format!("{PLAIN}{settings}\n");
        fs::write(root.join("etc/systemd/system/x.service"), unit).unwrap();
        let root = root.to_str().unwrap();
        let output = tamis(&["harden", "x", "--root", root, "--installer", "/tamis-exec"]);
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(
            told.contains(": NoNewPrivs 0 -> 1 with systemd before 255"),
            "{settings}: {told}"
        );
        assert!(
            told.contains("note: no_new_privs is set"),
            "{settings}: {told}"
        );
    }
}

#[test]
fn what_systemd_does_besides_its_filters_stays() {
    let root = folder("besides");
    let library = root.join("usr/lib/systemd/libsystemd-core-252.so");
    let newer = root.join("usr/lib/systemd/libsystemd-core-258.so");
    let text = |settings: &str| drop_in_of(&root, &format!("{PLAIN}{settings}\n"));
    let has = |text: &str, line: &str| text.lines().any(|own| own == line);
    let realtime = text("RestrictRealtime=yes");
    assert!(
        has(&realtime, "RestrictRealtime=no") && has(&realtime, "LimitRTPRIO=0"),
        "{realtime}"
    );
    assert!(!text("RestrictRealtime=yes\nLimitRTPRIO=5:infinity").contains("LimitRTPRIO"));
    assert!(text("RestrictRealtime=yes\nLimitRTPRIO=high").contains("LimitRTPRIO=0"));
    assert!(!text("RestrictRealtime=yes\nPAMName=login").contains("RestrictRealtime"));
    let mdwe = "MemoryDenyWriteExecute=yes";
    let root_user = "User=root\nNoNewPrivileges=yes";
    let keeps = |text: &str| text.contains("SystemCallArchitectures=");
    assert!(has(&text(mdwe), "MemoryDenyWriteExecute=no"));
    assert!(!keeps(&text(root_user)));
    // Newer ones may set PR_SET_MDWE, and take CAP_SETUID away from services with filters.
    fs::rename(&library, &newer).unwrap();
    assert!(!text(mdwe).contains("MemoryDenyWriteExecute"));
    assert!(keeps(&text(root_user)) && !keeps(&text("NoNewPrivileges=yes")));
    // So may one of them, where it isn't known which one runs.
    fs::write(&library, "").unwrap();
    assert!(!text(mdwe).contains("MemoryDenyWriteExecute"));
    assert!(keeps(&text(root_user)));
}

#[test]
fn an_escaped_dollar_sign_in_a_program_is_none_of_a_variable() {
    let root = folder("escaped");
    let text = drop_in_of(&root, &PLAIN.replace("/bin/true", r"/opt/\x24{C} a"));
    let expected = r#" "--argv0=/opt/${C}" -- "/opt/$${C}" a"#;
    assert!(text.contains(expected), "{text}");
}

#[test]
fn what_systemd_refuses_is_refused_with_its_reason() {
    let root = folder("refused");
    let start = |line: &str| PLAIN.replace("/bin/true", line);
    for (unit, why) in [
        (start("/bin/"), "the program is a folder"),
        (
            start("/bin/a\\x22b"),
            "has a quote, a backslash or a control character",
        ),
        (start("bin/true"), "neither a name nor an absolute path"),
        (start("/bin/true 'a"), "its quotes don't end"),
        (start("/bin/true %z"), "no specifier %z"),
        (
            format!("{PLAIN}ExecStart=/bin/false\n"),
            "several ExecStart= need Type=oneshot",
        ),
        (
            PLAIN.replace("ExecStart", "ExecStop"),
            "without ExecStart= needs Type=oneshot",
        ),
    ] {
        let (code, told) = exit_of(&root, &unit, &[]);
        assert!(code == Some(2) && told.contains(why), "{unit}: {told}");
    }
    assert_eq!(
        exit_of(
            &root,
            &format!("{PLAIN}ExecStart=/bin/false\nType=oneshot\n"),
            &[]
        )
        .0,
        Some(0)
    );
    let run = |name: &str, installer: &str| {
        let root = root.to_str().unwrap();
        let output = tamis(&["harden", name, "--root", root, "--installer", installer]);
        (output.status.code(), stderr_text(&output))
    };
    fs::write(root.join("etc/systemd/system/a\nb.service"), PLAIN).unwrap();
    let (code, told) = run("a\nb", "/tamis-exec");
    assert!(
        code == Some(2) && told.contains("systemd has no unit \"a\\nb.service\""),
        "{told}"
    );
    for name in ["ta\"mis-exec", "ta\nmis-exec"] {
        fs::write(root.join(name), "").unwrap();
        let (code, told) = run("x", &format!("/{name}"));
        assert!(code == Some(2) && told.contains("has a quote"), "{told}");
    }
    let unit = format!("{PLAIN}NoExecPaths=/\n");
    fs::write(root.join("etc/systemd/system/x.service"), unit).unwrap();
    let (code, told) = run("x", "/usr/../tamis-exec");
    assert!(
        code == Some(2) && told.contains("can't be written in ExecPaths="),
        "{told}"
    );
}

//! What a process of a hardened service is: the status and the program that it has without `tamis harden`, by a systemd
//! that is booted for it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tamis_testkit::systemd::{SHARED, Systemd, Unit};
use tamis_testkit::toolchains::stderr_text;

use crate::TAMIS;
use crate::harden::{folder, systemd, tamis};

/// How long systemd may take for all services.
const LIMIT: Duration = Duration::from_secs(300);
/// A path of the installer with everything that systemd takes in the first word and may expand in others.
const INSTALLER: &str = "ta $${C} %n;mis";
/// The folder of drop-ins, without characters that a unit's line can't contain.
const OUTPUT: &str = "d $x ${C} %n \"q' \\ \n\u{e9}";
/// Writes its status to the file that its first argument names.
const STATUS: &str = r#"
import ctypes, resource, sys
fields = ("Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "SigIgn")
lines = [line.strip() for line in open("/proc/self/status") if line.split(":")[0] in fields]
lines.append(f"SecureBits: {ctypes.CDLL(None).prctl(27, 0, 0, 0, 0)}")
lines.append(f"RTPRIO: {resource.getrlimit(resource.RLIMIT_RTPRIO)}")
with open(sys.argv[1], "w") as file:
    file.write("\n".join(lines) + "\n")
"#;
/// Writes the file that is executed and its words.
const WORDS: &str = r#"
import os, sys
words = open("/proc/self/cmdline").read()
with open(sys.argv[1], "w") as file:
    file.write(os.readlink("/proc/self/exe") + "\n" + words.replace("\0", "\n"))
"#;

/// A root with a visible `/opt` that contains the installer and the probes.
fn shared_root(name: &str) -> PathBuf {
    let root = folder(name);
    let shared = root.join("opt");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    fs::hard_link(TAMIS, shared.join(INSTALLER)).unwrap();
    fs::write(shared.join("status.py"), STATUS).unwrap();
    fs::write(shared.join("words.py"), WORDS).unwrap();
    root
}

/// A service with this command line. Its output has no place but a file.
fn service(line: &str, settings: &str) -> Unit {
    Unit {
        text: format!("ExecStart=\nExecStart={line}\n{settings}"),
        drop_ins: Vec::new(),
    }
}

/// Hardens a unit, and returns it with the drop-in and the report.
fn hardened(root: &Path, unit: &Unit, name: &str, options: &str) -> (Unit, Value) {
    let file = root
        .join("etc/systemd/system")
        .join(format!("{name}.service"));
    fs::write(file, unit.file()).unwrap();
    let output = root.join("opt").join(format!("{name} {OUTPUT}"));
    let installer = format!("{SHARED}/{INSTALLER}");
    let mut words = ["harden", name, "--json", "--installer", &installer].to_vec();
    words.extend([
        "--root",
        root.to_str().unwrap(),
        "-o",
        output.to_str().unwrap(),
    ]);
    words.extend(options.split_whitespace());
    let result = tamis(&words);
    assert!(
        result.status.success(),
        "{}: {}",
        unit.text,
        stderr_text(&result)
    );
    let drop_in = fs::read_to_string(output.join("zz-tamis.conf")).unwrap();
    let unit = Unit {
        drop_ins: vec![drop_in],
        ..unit.clone()
    };
    (unit, serde_json::from_slice(&result.stdout).unwrap())
}

/// Starts services, and returns their output by file name.
fn start(systemd: &Systemd, shared: &Path, units: &[Unit]) -> impl Fn(&str) -> String {
    let loaded = systemd.start_with(units, Some(shared), LIMIT).unwrap();
    let loaded = loaded.unwrap_or_else(|| panic!("systemd took longer than {LIMIT:?}"));
    let messages: Vec<String> = loaded.into_iter().flat_map(|own| own.messages).collect();
    move |name| {
        let text = fs::read_to_string(shared.join(name));
        text.unwrap_or_else(|error| panic!("{name}: {error}: {messages:#?}"))
    }
}

/// Settings, the signs of the command and options.
const SHAPES: &[(&str, &str, &str)] = &[
    // The shape of a service that keeps no_new_privs only if the drop-in sets it.
    ("User=65534\nAmbientCapabilities=CAP_SYS_ADMIN\n", "", ""),
    (
        "User=65534\nAmbientCapabilities=CAP_SYS_ADMIN CAP_KILL\nSecureBits=keep-caps\n",
        "-:",
        "",
    ),
    ("User=65534\nAmbientCapabilities=CAP_SYS_ADMIN\n", "!!", ""),
    ("User=65534\nAmbientCapabilities=CAP_SYS_ADMIN\n", "!", ""),
    ("User=65534\nAmbientCapabilities=CAP_KILL\n", "", ""),
    (
        "User=65534\nAmbientCapabilities=CAP_SYS_ADMIN\nCapabilityBoundingSet=~CAP_SYS_ADMIN\n",
        "",
        "",
    ),
    ("User=65534\nSecureBits=no-setuid-fixup\n", "", ""),
    ("User=65534\n", "", ""),
    ("User=65534\n", "!", ""),
    (
        "User=65534\nCapabilityBoundingSet=~CAP_SYS_ADMIN\n",
        "!",
        "",
    ),
    ("User=65534\nNoNewPrivileges=yes\n", "!", ""),
    ("", "", ""),
    ("", "-!!", ""),
    ("NoNewPrivileges=yes\nNoNewPrivileges=\n", "", ""),
    ("User=root\nNoNewPrivileges=yes\n", "", ""),
    ("User=0\nGroup=65534\n", "", ""),
    (
        "AmbientCapabilities=CAP_SYS_ADMIN\nSecureBits=noroot noroot-locked\n",
        "",
        "",
    ),
    ("SecureBits=noroot\n", "", ""),
    ("SecureBits=noroot-locked\n", "", ""),
    ("CapabilityBoundingSet=\n", "", ""),
    ("CapabilityBoundingSet=CAP_SYS_ADMIN\n", "", ""),
    (
        "CapabilityBoundingSet=CAP_KILL CAP_SETUID\nCapabilityBoundingSet=~CAP_KILL\n",
        "",
        "",
    ),
    ("RestrictRealtime=yes\n", "", ""),
    ("RestrictRealtime=yes\nLimitRTPRIO=7\nUser=65534\n", "", ""),
    (
        "ProtectClock=yes\nProtectKernelLogs=yes\nUser=65534\nAmbientCapabilities=CAP_SYS_TIME\n",
        "",
        "",
    ),
    ("ProtectClock=yes\nProtectKernelLogs=yes\n", "", "--rewrite"),
    (
        "CapabilityBoundingSet=\nProtectClock=yes\n",
        "",
        "--rewrite",
    ),
    (
        "PrivateDevices=yes\nUser=65534\nAmbientCapabilities=CAP_SYS_ADMIN\n",
        "",
        "",
    ),
    ("PrivateUsers=yes\nUser=65534\n", "", ""),
];

#[test]
fn a_hardened_process_has_the_status_of_the_unit() {
    let systemd = systemd();
    let root = shared_root("status");
    let mut units = Vec::new();
    let mut reports = Vec::new();
    for (index, (settings, signs, options)) in SHAPES.iter().enumerate() {
        let command = |file: &str| {
            let line = format!("{signs}/usr/bin/python3 {SHARED}/status.py {SHARED}/{file}");
            service(
                &line,
                &format!("{settings}SystemCallFilter=@system-service @clock\n"),
            )
        };
        units.push(command(&format!("before{index}")));
        let name = format!("after{index}");
        let (unit, report) = hardened(&root, &command(&name), &name, options);
        units.push(unit);
        reports.push(report);
    }
    let shared = root.join("opt");
    let written = start(&systemd, &shared, &units);
    for (index, (settings, signs, _)) in SHAPES.iter().enumerate() {
        let [before, after] = ["before", "after"].map(|name| written(&format!("{name}{index}")));
        let told = &reports[index]["status"][0];
        let has_all = settings.contains("PrivateUsers");
        assert_eq!(
            fields(&before),
            told_fields(&told["before"], has_all),
            "{signs} {settings}{told}"
        );
        assert_eq!(
            fields(&after),
            told_fields(&told["after"], has_all),
            "{signs} {settings}{told}"
        );
        // Without CAP_SYS_ADMIN the kernel takes no filter but with no_new_privs.
        let stricter = before.replace("NoNewPrivs:\t0", "NoNewPrivs:\t1");
        assert!(
            after == before || after == stricter,
            "{signs} {settings}{before}{after}"
        );
        let is_noted = reports[index]["notes"]
            .to_string()
            .contains("no_new_privs is set");
        assert_eq!(is_noted, after != before, "{signs} {settings}");
    }
}

/// The fields that a report has, of a probe's file.
fn fields(status: &str) -> Vec<String> {
    let names = [
        "NoNewPrivs",
        "Seccomp",
        "CapInh",
        "CapPrm",
        "CapEff",
        "CapBnd",
        "CapAmb",
        "SecureBits",
    ];
    let field = |name: &str| {
        let line = status
            .lines()
            .find(|line| line.split(':').next() == Some(name));
        let (_, value) = line.unwrap().split_once(':').unwrap();
        value.trim().to_owned()
    };
    names.map(field).to_vec()
}

/// The same fields of a report.
fn told_fields(entry: &Value, has_all: bool) -> Vec<String> {
    let names = [
        "no_new_privs",
        "seccomp",
        "cap_inh",
        "cap_prm",
        "cap_eff",
        "cap_bnd",
        "cap_amb",
        "secure_bits",
    ];
    let number = |text: &str| u64::from_str_radix(text.trim(), 16).unwrap();
    // Capabilities that the machine has: it may be a container. A user namespace has all.
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = own.lines();
    let own = lines.find_map(|line| line.strip_prefix("CapBnd:")).unwrap();
    let own = if has_all { u64::MAX } else { number(own) };
    let field = |name: &str| match &entry[name] {
        Value::String(text) => format!("{:016x}", number(text) & own),
        other => other.to_string(),
    };
    names.map(field).to_vec()
}

/// Command lines before the file that the probe writes to, and behind it. Each program is a copy of the interpreter.
const LINES: &[(&str, &str)] = &[
    ("/opt/\\x24{C}", "${C} $D ${D}"),
    ("/opt/$${C}", "$$x $${C} $E"),
    (":/opt/${C}", "${C} $D $$x"),
    (":@/opt/${C} $D", "%% '%%n'"),
    ("@/opt/cval \"na me;${D}\"", "\\; ';' \\x3b \\\\;"),
    ("-@/opt/cval --argv0=x", "--argv0=y -p /x -- \\x2d\\x2d"),
    ("@/opt/cval ''", "'' \"\" a\"b c\"d"),
    ("\"-/opt/a b;c\"", "\\x25n %n %N '\\x22' \\q"),
    ("\\x2d/opt/100%%", "\\xc3\\xa9 \\u20ac \\U0001f600 \\t|"),
    ("/opt/\u{e9}", "$F"),
    ("/opt/\\303\\251", "a\\x20b\\sc"),
    ("/opt/./cval", "-c"),
    ("python3", "x"),
];

#[test]
fn a_hardened_process_is_the_program_of_the_unit() {
    let systemd = systemd();
    let root = shared_root("words");
    let shared = root.join("opt");
    for name in ["${C}", "$${C}", "$cval", "cval", "a b;c", "100%", "\u{e9}"] {
        fs::copy("/usr/bin/python3", shared.join(name)).unwrap();
    }
    // As services find it.
    fs::create_dir_all(root.join("usr/bin")).unwrap();
    fs::copy("/usr/bin/python3", root.join("usr/bin/python3")).unwrap();
    let settings =
        "Environment=C=cval E= \"D=two words\" \"F=-p /evil\"\nSystemCallFilter=~ptrace\n";
    let mut units = Vec::new();
    for (index, (start, end)) in LINES.iter().enumerate() {
        let command = |file: &str| {
            let probe = format!("{SHARED}/words.py {SHARED}/{file}");
            service(&format!("{start} {probe} {end}"), settings)
        };
        units.push(command(&format!("before{index}")));
        let name = format!("after{index}");
        units.push(hardened(&root, &command(&name), &name, "").0);
    }
    let written = start(&systemd, &shared, &units);
    for (index, line) in LINES.iter().enumerate() {
        let words = |name: &str| {
            let text = written(&format!("{name}{index}"));
            // The file, and the unit's own name, differ.
            let own = usize::from(name == "after");
            let unit = format!("tamis-{}", 2 * index + own);
            text.replace(&format!("{SHARED}/{name}{index}"), "FILE")
                .replace(&unit, "UNIT")
        };
        let [before, after] = ["before", "after"].map(words);
        assert_eq!(before, after, "{line:?}");
        assert!(after.contains("\nFILE\n"), "{line:?} {after}");
    }
}

//! What a process of a hardened service is: the program that it is without `tamis harden`, by a systemd that is booted for
//! it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tamis_testkit::systemd::{SHARED, Unit};
use tamis_testkit::toolchains::stderr_text;

use crate::TAMIS;
use crate::harden::{folder, systemd, tamis};

/// How long systemd may take for all services.
const LIMIT: Duration = Duration::from_secs(300);
/// A path of the installer with everything that systemd takes in the first word and may expand in others.
const INSTALLER: &str = "ta $${C} %n;mis";
/// The folder of drop-ins, with what can't be on a line.
const OUTPUT: &str = "d $x ${C} %n \"q' \\ \n\u{e9}";
/// Writes the file that is executed and its words.
const WORDS: &str = r#"
import os, sys
words = open("/proc/self/cmdline").read()
with open(sys.argv[1], "w") as file:
    file.write(os.readlink("/proc/self/exe") + "\n" + words.replace("\0", "\n"))
"#;

/// A root whose `/opt` the services see, with the installer and the probes.
fn shared_root(name: &str) -> PathBuf {
    let root = folder(name);
    let shared = root.join("opt");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    fs::hard_link(TAMIS, shared.join(INSTALLER)).unwrap();
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

/// Hardens a unit, and returns it with the drop-in.
fn hardened(root: &Path, unit: &Unit, name: &str) -> Unit {
    let file = root
        .join("etc/systemd/system")
        .join(format!("{name}.service"));
    fs::write(file, unit.file()).unwrap();
    let output = root.join("opt").join(format!("{name} {OUTPUT}"));
    let installer = format!("{SHARED}/{INSTALLER}");
    let mut words = ["harden", name, "--installer", &installer].to_vec();
    words.extend([
        "--root",
        root.to_str().unwrap(),
        "-o",
        output.to_str().unwrap(),
    ]);
    let result = tamis(&words);
    assert!(
        result.status.success(),
        "{}: {}",
        unit.text,
        stderr_text(&result)
    );
    let drop_in = fs::read_to_string(output.join("zz-tamis.conf")).unwrap();
    Unit {
        drop_ins: vec![drop_in],
        ..unit.clone()
    }
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
    let Some(systemd) = systemd() else {
        return;
    };
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
        units.push(hardened(&root, &command(&name), &name));
    }
    let loaded = systemd.start_with(&units, Some(&shared), LIMIT).unwrap();
    let loaded = loaded.unwrap_or_else(|| panic!("systemd took longer than {LIMIT:?}"));
    for (index, line) in LINES.iter().enumerate() {
        let words = |name: &str| {
            let path = shared.join(format!("{name}{index}"));
            let text = fs::read_to_string(path).unwrap_or_else(|error| {
                panic!("{line:?} {error}: {:?}", &loaded[2 * index..2 * index + 2])
            });
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

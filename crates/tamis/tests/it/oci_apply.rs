//! `tamis oci apply`, with the runtimes that are installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tamis_testkit::skip::{self, Need};
use tamis_testkit::toolchains::stderr_text;

use crate::TAMIS;

const ANNOTATION: &str = "run.oci.seccomp_bpf_data";
/// Denies a call that the probe makes.
const POLICY: &str =
    "arch x86_64\ndefault allow\nbad-arch kill-thread\nerrno(ENOTTY) sync_file_range\n";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("oci-apply")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn apply(folder: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(TAMIS);
    command.args(["oci", "apply", "policy.tamis", "config.json"]);
    command.args(options).current_dir(folder).output().unwrap()
}

fn config(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap()
}

#[test]
fn both_forms_are_set_and_the_rest_of_the_text_stays() {
    let folder = folder("text");
    let text = "{\n    \"ociVersion\": \"1.0.2\",\n    \"x\": [1,2],\n    \"linux\": {}\n}\n";
    fs::write(folder.join("policy.tamis"), POLICY).unwrap();
    fs::write(folder.join("config.json"), text).unwrap();
    let printed = apply(&folder, &["--runtime", "crun", "-o", "-"]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(
        printed.starts_with(&text[..text.find("{}").unwrap()]),
        "{printed}"
    );
    assert!(!printed.contains("defaultAction"), "{printed}");
    assert_eq!(
        fs::read_to_string(folder.join("config.json")).unwrap(),
        text
    );
    let output = apply(&folder, &[]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let config = config(&folder);
    let raw = Command::new(TAMIS)
        .args(["compile", "-q", "policy.tamis", "--emit", "annotation"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let line = format!(
        "{ANNOTATION}={}\n",
        config["annotations"][ANNOTATION].as_str().unwrap()
    );
    assert_eq!(String::from_utf8(raw.stdout).unwrap(), line);
    // The configuration is read again, with the same meaning.
    let compared = Command::new(TAMIS)
        .args(["prove", "policy.tamis", "config.json"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(compared.status.success(), "{compared:?}");
    // What only one runtime is given leaves the other's, which is told.
    let printed = stderr_text(&apply(&folder, &["--runtime", "runc"]));
    assert!(printed.contains("note: the annotation stays"), "{printed}");
    let printed = stderr_text(&apply(&folder, &["--runtime", "crun"]));
    assert!(printed.contains("note: `linux.seccomp` stays"), "{printed}");
    // Once more changes nothing.
    let before = fs::read(folder.join("config.json")).unwrap();
    apply(&folder, &[]);
    assert_eq!(fs::read(folder.join("config.json")).unwrap(), before);
}

#[test]
fn a_configuration_that_is_none_is_refused_and_stays() {
    let folder = folder("wrong");
    fs::write(folder.join("policy.tamis"), POLICY).unwrap();
    for text in [
        "",
        "[]",
        "{\"linux\": 1}",
        "{\"annotations\": [], \"linux\": {}}",
        "{,}",
    ] {
        fs::write(folder.join("config.json"), text).unwrap();
        let output = apply(&folder, &[]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert_eq!(
            fs::read_to_string(folder.join("config.json")).unwrap(),
            text
        );
    }
}

/// A container without a network that makes the call and prints the answer.
fn bundle(folder: &Path) {
    let root = folder.join("rootfs");
    for name in ["bin", "lib", "lib64", "usr", "proc", "dev"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let bind = |name: &str| json!({"destination": name, "source": name, "type": "none", "options": ["rbind", "ro"]});
    let probe = "import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall(277, -1, 0, 0, 0); print(ctypes.get_errno())";
    let config = json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0}, "cwd": "/", "env": ["PATH=/usr/bin:/bin"],
            "args": ["/usr/bin/python3", "-c", probe], "noNewPrivileges": true
        },
        "root": {"path": "rootfs"},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
            bind("/usr"), bind("/lib"), bind("/lib64"), bind("/bin")
        ],
        "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}]}
    });
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    fs::write(folder.join("policy.tamis"), POLICY).unwrap();
}

#[test]
fn runtimes_install_what_was_applied() {
    if skip::without_live() {
        return;
    }
    for (runtime, options) in [("crun", "--cgroup-manager=disabled"), ("runc", "")] {
        let folder = folder(runtime);
        bundle(&folder);
        let id = format!("tamis-{}-{runtime}", std::process::id());
        // What the container is without the control groups of version 2, which a runtime would want delegated.
        let script =
            format!("umount -R \"$2\" 2>/dev/null; exec {runtime} {options} run -b \"$1\" {id}");
        let group = fs::read_to_string("/proc/self/mounts").unwrap();
        let group = group.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let place = words.next()?;
            (words.next() == Some("cgroup2")).then(|| place.to_owned())
        });
        let run = || {
            let mut command = Command::new("unshare");
            command.args(["-m", "sh", "-c", &script, "sh"]).arg(&folder);
            let output = command
                .arg(group.as_deref().unwrap_or("/none"))
                .output()
                .unwrap();
            (String::from_utf8(output.stdout.clone()).unwrap(), output)
        };
        let (before, output) = run();
        if before != "9\n" {
            skip::because(
                Need::Runtimes,
                format!("{runtime}: {}", stderr_text(&output)),
            );
            continue;
        }
        assert!(apply(&folder, &["--runtime", runtime]).status.success());
        let has_profile = config(&folder)["linux"]["seccomp"].is_object();
        assert_eq!(has_profile, runtime == "runc");
        let (after, output) = run();
        // ENOTTY in place of EBADF.
        assert_eq!(after, "25\n", "{runtime}: {}", stderr_text(&output));
    }
}

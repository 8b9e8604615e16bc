//! Containers of the runtimes that are installed, for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::toolchains::stderr_text;

/// A container without a network that executes a command, and a policy beside its configuration.
pub(crate) fn bundle(folder: &Path, command: &[&str], no_new_privs: bool, policy: &str) {
    let root = folder.join("rootfs");
    for name in ["bin", "lib", "lib64", "usr", "proc", "dev"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let bind = |name: &str| json!({"destination": name, "source": name, "type": "none", "options": ["rbind", "ro"]});
    let config = json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0}, "cwd": "/", "env": ["PATH=/usr/bin:/bin"],
            "args": command, "noNewPrivileges": no_new_privs
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
    fs::write(folder.join("policy.tamis"), policy).unwrap();
}

/// A runtime, with its options.
pub(crate) const CRUN: (&str, &str) = ("crun", "--cgroup-manager=disabled");
/// As [`CRUN`].
pub(crate) const RUNC: (&str, &str) = ("runc", "");

/// What runs a container to its end, without the control groups of version 2, which a runtime would want delegated.
pub(crate) fn running((runtime, options): (&str, &str), folder: &Path) -> Command {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let id = format!("tamis-{}-{name}", std::process::id());
    let script = format!(
        "umount -R \"$2\" 2>/dev/null; {runtime} {options} run -b \"$1\" {id}; code=$?; \
         {runtime} {options} delete -f {id} 2>/dev/null; exit $code"
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, "sh"]).arg(folder);
    command.arg(groups().unwrap_or_else(|| "/none".into()));
    command
}

/// Where the control groups of version 2 are mounted.
fn groups() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?;
        (words.next() == Some("cgroup2")).then(|| place.into())
    })
}

/// What has podman run a container by a runtime, with its own default profile or another one. The machine's programs are in the
/// container; its files are in the folder, which is removed at the end.
pub(crate) fn podman(
    runtime: &str,
    folder: &Path,
    profile: Option<&str>,
    words: &[&str],
) -> Command {
    let at = |name: &str| folder.join(name).display().to_string();
    // crun refuses a machine with both versions of control groups. Neither may raise limits without `CAP_SYS_RESOURCE`.
    let mut options: Vec<String> = ["--storage-driver", "vfs", "--events-backend", "none"]
        .map(str::to_owned)
        .to_vec();
    options.extend(["--cgroup-manager", "cgroupfs", "--runtime", runtime].map(str::to_owned));
    for (option, name) in [
        ("--root", "storage"),
        ("--runroot", "run"),
        ("--tmpdir", "tmp"),
    ] {
        options.extend([option.to_owned(), at(name)]);
    }
    options.extend(["run", "--rm", "--network", "none"].map(str::to_owned));
    for limit in ["nofile=1024:1024", "nproc=1024:1024"] {
        options.extend(["--ulimit", limit].map(str::to_owned));
    }
    let script = match runtime {
        "crun" => {
            options.extend(["--cgroups", "disabled"].map(str::to_owned));
            "umount \"$0\" 2>/dev/null; exec podman \"$@\""
        }
        _ => "exec podman \"$@\"",
    };
    if let Some(profile) = profile {
        options.extend([
            "--security-opt".to_owned(),
            format!("seccomp={}", at(profile)),
        ]);
    }
    for place in ["/usr", "/lib", "/lib64", "/bin"] {
        options.extend(["--volume".to_owned(), format!("{place}:{place}:ro")]);
    }
    options.extend(["--rootfs".to_owned(), at("rootfs")]);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]);
    command.arg(groups().unwrap_or_else(|| "/none".into()));
    command.args(options).args(words);
    command
}

/// Runs a container to its end.
pub(crate) fn run(runtime: (&str, &str), folder: &Path) -> Output {
    running(runtime, folder).output().unwrap()
}

/// Ends the test because a runtime runs no containers here.
pub(crate) fn skip_runtime(runtime: &str, output: &Output) -> ! {
    let reason = format!("{runtime}: {}", stderr_text(output));
    skip::because(Need::Runtimes, reason)
}

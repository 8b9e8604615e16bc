//! Containers are recorded, and run under the learned policy.
//!
//! A recording of a runtime begins with the first call under the container's filter, so it lacks the runtime's earlier
//! calls. The runtime's set of calls is added, because the calls of a runtime in Go vary between runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tamis_testkit::scratch::Scratch;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::toolchains::stderr_text;

use crate::TAMIS;
use crate::containers::{CRUN, RUNC, bundle, podman, running, skip_runtime};
use crate::recording::unless_tracepoints;

/// The container's command and its output.
const SCRIPT: &str = "cd /tmp && echo one >file && cat file && sort -r /proc/sys/kernel/ostype && ls / | wc -l && umask && \\
    (kill -TERM $(sh -c 'echo $PPID')) ; echo $?";
/// A filter that denies next to nothing, so that there is one from which on calls are recorded.
const OPEN: &str = "default allow\nbad-arch kill-thread\nerrno(ENOTTY) sync_file_range\n";

/// The engines of containers.
#[derive(Clone, Copy, Debug)]
enum Engine {
    /// A runtime by itself, with its options.
    Runtime((&'static str, &'static str)),
    /// podman, with this runtime.
    Podman(&'static str),
}

impl Engine {
    const fn runtime(self) -> &'static str {
        match self {
            Engine::Runtime((runtime, _)) | Engine::Podman(runtime) => runtime,
        }
    }

    /// A folder with a container, with a filter if an engine has none by itself.
    fn folder(self) -> Folder {
        let (folder, scratch) = match self {
            Engine::Runtime((runtime, _)) => {
                let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
                (folder.join("recorded-containers").join(runtime), None)
            }
            // Paths of sockets are short.
            Engine::Podman(runtime) => {
                let scratch = Scratch::new(runtime).expect("a folder");
                (scratch.path().join("engine"), Some(scratch))
            }
        };
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("rootfs/tmp")).unwrap();
        if let Engine::Runtime(_) = self {
            bundle(&folder, &["/bin/sh", "-c", SCRIPT], true, OPEN);
            self.apply(&folder, OPEN);
        }
        Folder(folder, scratch)
    }

    /// Gives the container this policy.
    fn apply(self, folder: &Path, policy: &str) {
        fs::write(folder.join("policy.tamis"), policy).unwrap();
        match self {
            Engine::Runtime((runtime, _)) => {
                tamis(
                    folder,
                    &[
                        "oci",
                        "apply",
                        "policy.tamis",
                        "config.json",
                        "--runtime",
                        runtime,
                    ],
                );
            }
            Engine::Podman(_) => {
                tamis(
                    folder,
                    &[
                        "convert",
                        "-q",
                        "policy.tamis",
                        "--to",
                        "oci",
                        "-o",
                        "profile.json",
                    ],
                );
            }
        }
    }

    fn command(self, folder: &Path) -> Command {
        match self {
            Engine::Runtime(runtime) => running(runtime, folder),
            Engine::Podman(runtime) => {
                let profile = folder
                    .join("profile.json")
                    .exists()
                    .then_some("profile.json");
                podman(runtime, folder, profile, &["/bin/sh", "-c", SCRIPT])
            }
        }
    }
}

/// Is removed with its files.
struct Folder(
    PathBuf,
    #[expect(dead_code, reason = "it is removed with the value")] Option<Scratch>,
);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tamis(folder: &Path, args: &[&str]) -> Output {
    let output = Command::new(TAMIS)
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        stderr_text(&output)
    );
    output
}

/// The calls of a profile.
fn calls(profile: &Path) -> Vec<String> {
    let profile: Value = serde_json::from_slice(&fs::read(profile).unwrap()).unwrap();
    let calls = profile["calls"].as_array().unwrap().iter();
    calls
        .map(|call| call["call"].as_str().unwrap().to_owned())
        .collect()
}

/// Records a container, learns from that, and runs it three times under the result and the set of its runtime.
fn check(engine: Engine) {
    skip::unless_live();
    unless_tracepoints();
    let folder = engine.folder();
    let folder = folder.0.as_path();
    let expected = engine.command(folder).output().unwrap();
    if expected.stdout.is_empty() {
        skip_runtime(&format!("{engine:?}"), &expected);
    }
    let command = engine.command(folder);
    let recorded = Command::new(TAMIS)
        .args(["record", "-q", "--confined", "--values", "-o"])
        .arg(folder.join("web.json"))
        .arg("--")
        .arg(command.get_program())
        .args(command.get_args())
        .output()
        .unwrap();
    let said = stderr_text(&recorded);
    assert_eq!(recorded.stdout, expected.stdout, "{engine:?}: {said}");
    // The runtime's work before its filter: namespaces, mounts, the filter itself.
    let calls = calls(&folder.join("web.json"));
    for call in ["execve", "openat", "kill"] {
        assert!(
            calls.iter().any(|known| known == call),
            "{engine:?}: {call}"
        );
    }
    for call in ["mount", "pivot_root", "seccomp", "unshare", "sethostname"] {
        assert!(
            !calls.iter().any(|known| known == call),
            "{engine:?}: {call}"
        );
    }
    tamis(folder, &["learn", "-q", "web.json", "-o", "learned.tamis"]);
    let learned = fs::read_to_string(folder.join("learned.tamis")).unwrap();
    let runtime = engine.runtime();
    engine.apply(folder, &format!("{learned}allow @{runtime}\n"));
    for _ in 0..3 {
        let output = engine.command(folder).output().unwrap();
        let said = stderr_text(&output);
        assert_eq!(output.stdout, expected.stdout, "{engine:?}: {said}");
    }
}

#[test]
fn what_is_learned_of_a_container_of_crun_runs_it() {
    check(Engine::Runtime(CRUN));
}

#[test]
fn what_is_learned_of_a_container_of_runc_runs_it() {
    check(Engine::Runtime(RUNC));
}

#[test]
fn what_is_learned_of_a_container_of_podman_with_crun_runs_it() {
    check_podman(CRUN.0);
}

#[test]
fn what_is_learned_of_a_container_of_podman_with_runc_runs_it() {
    check_podman(RUNC.0);
}

fn check_podman(runtime: &'static str) {
    skip::unless_runs(Need::Runtimes, "podman", &["--version"]);
    check(Engine::Podman(runtime));
}

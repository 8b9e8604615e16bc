//! `tamis record` without a requirement of a back end: the next back end is used, with a message.

use std::env::consts::ARCH;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tamis_testkit::child;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::toolchains::stderr_text;

use crate::TAMIS;
use crate::recording::unless_tracepoints;

/// The output of a shell that runs these lines in its own namespaces, and then records a command.
fn recorded_behind(lines: &str, options: &str) -> Output {
    let script =
        format!("via=\n{lines}\nexec $via \"$0\" record {options} -- sh -c 'cd /; exit 3'");
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-ec", &script, TAMIS])
        .stdin(Stdio::null());
    child::output(&mut command).expect("it starts")
}

/// Ends the test if the shell can't have such namespaces, or eBPF doesn't work even without.
fn unless_possible() {
    skip::unless_live();
    unless_tracepoints();
    let output = recorded_behind("mount -t tmpfs none /mnt", "-q --backend ebpf");
    if output.status.code() != Some(3) {
        skip::because(Need::Live, stderr_text(&output));
    }
}

/// The shell's preparation, the message, and whether only a command can be recorded.
const MISSING: [(&str, &str); 5] = [
    (
        "mount -t tmpfs none /sys/kernel/btf",
        "recording by eBPF needs a kernel with CONFIG_DEBUG_INFO_BTF",
    ),
    (
        "head -c 4096 /sys/kernel/btf/vmlinux >/run/tamis-types; mount --bind /run/tamis-types /sys/kernel/btf/vmlinux; \
         rm /run/tamis-types",
        "the kernel's types can't be read",
    ),
    ("mount -t tmpfs none /sys", "CONFIG_DEBUG_INFO_BTF"),
    (
        "via='setpriv --bounding-set=-all'",
        "recording by eBPF needs root or the capabilities CAP_BPF and CAP_PERFMON",
    ),
    (
        "via='unshare --pid --fork --mount-proc'",
        "recording by eBPF doesn't work in a namespace of processes",
    ),
];

#[test]
fn what_a_back_end_lacks_is_said_and_the_next_one_records() {
    unless_possible();
    for (lines, said) in MISSING {
        let output = recorded_behind(lines, "");
        let text = stderr_text(&output);
        assert_eq!(output.status.code(), Some(3), "{lines}: {text}");
        assert!(text.contains(said), "{lines}: {text}");
        assert!(
            text.contains("recording by user notification"),
            "{lines}: {text}"
        );
        assert!(text.contains(&format!("{ARCH} chdir")), "{lines}: {text}");
        // Without eBPF nothing can be recorded, and nothing runs.
        for options in ["--backend ebpf", "--time", "--confined"] {
            let output = recorded_behind(lines, options);
            let text = stderr_text(&output);
            assert_eq!(output.status.code(), Some(4), "{lines}, {options}: {text}");
            assert!(
                text.contains(said) && text.contains("--backend notify"),
                "{text}"
            );
        }
    }
}

#[test]
fn files_for_tracing_are_not_needed() {
    unless_possible();
    let lines = "for folder in /sys/kernel/tracing /sys/kernel/debug; do\n\
                 [ ! -d $folder ] || mount -t tmpfs none $folder; done";
    let output = recorded_behind(lines, "--backend ebpf");
    assert_eq!(output.status.code(), Some(3), "{}", stderr_text(&output));
    assert!(stderr_text(&output).contains(&format!("{ARCH} chdir")));
}

/// A profile of another architecture, of a newer kernel, or of nothing that exists.
#[test]
fn profiles_that_do_not_fit_are_told() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unfit-profiles");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(
        folder.join("policy.tamis"),
        "arch x86_64\ndefault errno(1)\nallow read\n",
    )
    .expect("a file");
    let with = |profile: &str| {
        let file = folder.join("profile.json");
        std::fs::write(&file, profile).expect("a file");
        let mut command = Command::new(TAMIS);
        command.args([
            "compile",
            "policy.tamis",
            "--counts",
            "profile.json",
            "--emit",
            "asm",
        ]);
        let output = command.current_dir(&folder).output().expect("it starts");
        (output.status.code(), stderr_text(&output))
    };
    let json = |calls: &str| format!("{{\"schema\": \"tamis-profile/1\", \"calls\": [{calls}]}}");
    let other = json(r#"{"arch": "aarch64", "call": "read", "count": 5}"#);
    let (code, said) = with(&other);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("no calls of the filter's architectures"),
        "{said}"
    );
    let (code, said) = with(&json(r#"{"arch": "pdp11", "call": "read", "count": 5}"#));
    assert!(code == Some(2) && said.contains("pdp11"), "{said}");
    let (code, said) = with(&json(r#"{"arch": "x86_64", "call": "raed", "count": 5}"#));
    assert!(
        code == Some(2) && said.contains("did you mean `read`"),
        "{said}"
    );
    let (code, said) = with(&json(
        r#"{"arch": "x86_64", "call": "read", "count": 18446744073709551616}"#,
    ));
    assert!(code == Some(2) && said.contains("TM0603"), "{said}");
    // Cut short at each of its bytes: never a profile, always a place.
    let whole = json(r#"{"arch": "x86_64", "call": "read", "count": 5}"#);
    for len in 1..whole.len() {
        let (code, said) = with(&whole[..len]);
        assert!(
            code == Some(2) && said.contains("profile.json"),
            "{len}: {said}"
        );
    }
}

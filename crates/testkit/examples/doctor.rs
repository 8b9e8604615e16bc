//! What this machine and this user lack for the tests and for the product: `cargo xtask doctor`.
//!
//! The probes are those of the tests. Nothing is changed, and what is missing is no error.

use std::fs;
use std::panic;
use std::path::Path;
use std::process::{Command, Stdio};

use tamis_abi::KernelVersion;
use tamis_kernel::probe;
use tamis_kernel::probe::Support;
use tamis_pcap::Libpcap;
use tamis_recorder::ebpf::{Options, Recorder};
use tamis_testkit::corpus::{self, repository};
use tamis_testkit::libseccomp::Library;
use tamis_testkit::nsjail::Nsjail;
use tamis_testkit::skip::{self, Need, Skipped};
use tamis_testkit::systemd::Systemd;
use tamis_testkit::{bpf_asm, child};

/// The reason why something is missing.
type Found = Result<(), String>;

fn main() {
    println!(
        "What the tests need; without it they are ignored, and TAMIS_REQUIRE=NAME,… lets them fail:\n"
    );
    for need in Need::ALL {
        print_row(need.name(), found(need), need.remedy());
    }
    println!("\nWhat the product can use of the kernel and its permissions:\n");
    for (name, found, remedy) in product() {
        print_row(&name, found, remedy);
    }
    println!("\nWhat building needs:\n");
    for (name, words, remedy) in BUILD {
        print_row(name, runs(words), remedy);
    }
}

fn print_row(name: &str, found: Found, remedy: &str) {
    match found {
        Ok(()) => println!("  {name:<26} here"),
        Err(reason) => {
            println!(
                "  {name:<26} missing: {}",
                reason.lines().next().unwrap_or_default()
            );
            println!("  {:<26} {remedy}", "");
        }
    }
}

const BUILD: [(&str, &[&str], &str); 5] = [
    (
        "cargo",
        &["cargo", "--version"],
        "install Rust 1.95 or newer",
    ),
    (
        "rustfmt",
        &["cargo", "fmt", "--version"],
        "rustup component add rustfmt",
    ),
    (
        "clippy",
        &["cargo", "clippy", "--version"],
        "rustup component add clippy",
    ),
    (
        "target musl",
        &[
            "sh",
            "-c",
            "test -d $(rustc --print sysroot)/lib/rustlib/x86_64-unknown-linux-musl",
        ],
        "rustup target add x86_64-unknown-linux-musl, for static programs",
    ),
    (
        "fuzzing",
        &["c++", "--version"],
        "apt install g++, for libFuzzer",
    ),
];

/// Whether a program ends with success.
fn runs(words: &[&str]) -> Found {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    match child::output(&mut command) {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{}: {}", words.join(" "), output.status)),
        Err(error) => Err(format!("{}: {error}", words[0])),
    }
}

/// All of these programs.
fn all_run(commands: &[&[&str]]) -> Found {
    commands.iter().try_for_each(|words| runs(words))
}

/// What a test would find.
fn unless(probe: fn()) -> Found {
    panic::catch_unwind(probe).map_err(|payload| match payload.downcast::<Skipped>() {
        Ok(skipped) => skipped.reason().to_owned(),
        Err(payload) => panic::resume_unwind(payload),
    })
}

fn there(path: &Path) -> Found {
    match path.exists() {
        true => Ok(()),
        false => Err(format!("there is no {}", path.display())),
    }
}

fn found(need: Need) -> Found {
    match need {
        Need::Corpus => unless(|| drop(corpus::path(""))),
        Need::Live => unless(skip::unless_kernel),
        Need::Peers => peers(),
        Need::Tracing => {
            there(Path::new("/sys/kernel/tracing/events/raw_syscalls"))?;
            runs(&["perf", "--version"])
        }
        Need::Tracepoints => {
            let recorder = Recorder::new(Options::default());
            recorder.map(drop).map_err(|error| error.to_string())
        }
        Need::Toolchains => all_run(&[
            &["cc", "--version"],
            &["c++", "--version"],
            &["rustc", "--version"],
            &["go", "version"],
        ]),
        Need::Gvisor => gvisor(),
        Need::Systemd => {
            let systemd = Systemd::find()?;
            match systemd.version.starts_with("systemd 252 ") {
                true => Ok(()),
                false => Err(format!("this is {}", systemd.version)),
            }
        }
        Need::Nsjail => Nsjail::find().map(drop),
        Need::BpfAsm => bpf_asm::assemble(&[]).map(drop),
        Need::PythonSeccomp => runs(&["/usr/bin/python3", "-c", "import seccomp"]),
        Need::Man => runs(&["man", "--version"]),
        Need::Runtimes => all_run(&[
            &["crun", "--version"],
            &["runc", "--version"],
            &["podman", "--version"],
        ]),
        Need::Duckdb => runs(&["python3", "-c", "import duckdb"]),
        Need::EngineDefaults => engine_defaults(),
        Need::Root => unless(skip::unless_root),
        Need::Platform => platforms(),
        Need::Headers => there(Path::new("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")),
        Need::X86_64 => unless(skip::unless_x86_64),
        Need::Judge => match std::env::var("TAMIS_JUDGES") {
            Ok(_) => Ok(()),
            Err(_) => Err("TAMIS_JUDGES is not set".to_owned()),
        },
        Need::Workloads => all_run(&[
            &["bash", "--version"],
            &["git", "--version"],
            &["node", "--version"],
            &["npm", "--version"],
            &["go", "version"],
            &["java", "-version"],
            &["chromium", "--version"],
        ]),
        Need::LaterKernel => unless(|| skip::unless_since(KernelVersion::new(5, 19))),
        Need::Solvers => runs(&["python3", "-c", "import cvc5, bitwuzla"]),
        Need::OtherProgram => Err("TAMIS_BIN is not set".to_owned()),
        Need::Snapd => runs(&["snap-seccomp", "version-info"]),
        Need::Vectors => Err("TAMIS_KERNEL_VECTORS is not set".to_owned()),
    }
}

fn peers() -> Found {
    Library::open()?;
    Libpcap::open()?;
    all_run(&[
        &["z3", "--version"],
        &["strace", "-V"],
        &["gdb", "--version"],
        &["bwrap", "--version"],
        &["busybox", "true"],
        &["setpriv", "--version"],
        &["bash", "--version"],
    ])
}

fn gvisor() -> Found {
    let mut go = Command::new("go");
    go.args(["list", "-deps", "-f", "", "."]);
    go.current_dir(repository().join("bench/gvisor"));
    go.envs([
        ("GOPROXY", "off"),
        ("GOTOOLCHAIN", "local"),
        ("GOWORK", "off"),
    ]);
    let output = child::output(&mut go).map_err(|error| format!("go: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err("its modules are not in the cache".to_owned()),
    }
}

fn engine_defaults() -> Found {
    let root = std::env::var("GOMODCACHE").or_else(|_| {
        let home = std::env::var("HOME").map_err(|_| "HOME is not set".to_owned())?;
        Ok::<String, String>(home + "/go/pkg/mod")
    })?;
    there(&Path::new(&root).join("github.com/containers/common@v0.64.2"))?;
    there(&Path::new(&root).join("github.com/containerd/containerd/v2@v2.4.2"))
}

/// The platforms that don't work.
fn platforms() -> Found {
    let all = tamis_platform::all().iter();
    let missing: Vec<String> = all
        .filter_map(|platform| {
            let unavailable = platform.probe().err()?;
            Some(format!("{} ({unavailable})", platform.name()))
        })
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(missing.join("; ")),
    }
}

fn product() -> Vec<(String, Found, &'static str)> {
    let probe = probe();
    let supported = |support: Support, what: &str| match support.is_present() {
        true => Ok(()),
        false => Err(format!("this kernel has no {what}")),
    };
    let release = probe.release.clone().unwrap_or_default();
    let mut rows = vec![(
        format!("filters, Linux {release}"),
        supported(probe.filter_mode, "seccomp filters"),
        "CONFIG_SECCOMP_FILTER=y, and no outer filter that denies `seccomp`",
    )];
    for (kind, support) in &probe.actions {
        let found = supported(*support, "such action");
        rows.push((format!("action {}", kind.name()), found, "a newer kernel"));
    }
    for (flag, support) in &probe.flags {
        let found = supported(*support, "such flag");
        rows.push((format!("flag {}", flag.name()), found, "a newer kernel"));
    }
    rows.push((
        "action bitmap".to_owned(),
        supported(probe.action_bitmap, "bitmap"),
        "Linux 5.11; without it allowed calls run the filter",
    ));
    rows.push((
        "CAP_SYS_ADMIN".to_owned(),
        match probe.sys_admin {
            Some(true) => Ok(()),
            _ => Err("this user lacks it".to_owned()),
        },
        "root; `run --keep-privs`, `bpf dump` and `record --backend ebpf` need it",
    ));
    for (name, path, remedy) in [
        (
            "types of the kernel",
            "/sys/kernel/btf/vmlinux",
            "CONFIG_DEBUG_INFO_BTF=y, for `record --backend ebpf`",
        ),
        (
            "tracing files",
            "/sys/kernel/tracing/events",
            "mount -t tracefs none /sys/kernel/tracing",
        ),
        (
            "KVM",
            "/dev/kvm",
            "a processor with virtualisation; the laboratory's platform `kvm`",
        ),
        (
            "libseccomp",
            "/usr/lib/x86_64-linux-gnu/libseccomp.so.2",
            "apt install libseccomp2; only compared with",
        ),
    ] {
        rows.push((name.to_owned(), there(Path::new(path)), remedy));
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    rows.push((
        "control groups 2".to_owned(),
        match mounts.lines().any(|line| line.contains(" cgroup2 ")) {
            true => Ok(()),
            false => Err("none are mounted".to_owned()),
        },
        "mount -t cgroup2 none FOLDER, for `record --cgroup`",
    ));
    rows
}

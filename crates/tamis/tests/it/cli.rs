//! The command line with files, pipes, limits and exit codes; texts are in `tests/golden`.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tamis_testkit::skip::{self, Need};

fn tamis(args: &[&str]) -> Command {
    let mut command = Command::new(crate::TAMIS);
    command.args(args).stdin(Stdio::null());
    command
}

fn output(args: &[&str]) -> Output {
    tamis(args).output().unwrap()
}

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("cli")
        .join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn names_in(folder: &PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs with a text on standard input.
fn with_input(args: &[&str], input: &[u8]) -> Output {
    let mut child = tamis(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A child that has seen enough closes the pipe; that is for the test to judge by its output.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

#[test]
fn input_that_nobody_asked_to_read_is_told() {
    let folder = folder("unread");
    let file = folder.join("policy.tamis");
    fs::write(&file, "allow read\n").unwrap();
    let refuses = |stdin: Stdio| {
        let output = tamis(&["compile"]).stdin(stdin).output().unwrap();
        let refused = String::from_utf8_lossy(&output.stderr).contains("standard input is not");
        assert_eq!(output.status.code(), Some(if refused { 2 } else { 0 }));
        refused
    };
    assert!(refuses(File::open(&file).unwrap().into()));
    fs::write(&file, "").unwrap();
    assert!(!refuses(File::open(&file).unwrap().into()));
    let (reader, mut writer) = std::io::pipe().unwrap();
    // Nothing comes, and the pipe stays open.
    assert!(!refuses(reader.try_clone().unwrap().into()));
    writer.write_all(b"allow read\n").unwrap();
    assert!(refuses(reader.into()));
    drop(writer);
    // A named file with only the end of the text.
    let fifo = folder.join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let both = File::options().read(true).write(true).open(&fifo);
    let mut writer = both.unwrap();
    assert!(!refuses(File::open(&fifo).unwrap().into()));
    writer.write_all(b"x").unwrap();
    assert!(refuses(File::open(&fifo).unwrap().into()));
}

#[test]
fn a_mistake_leaves_the_old_output_file_and_nothing_else() {
    let folder = folder("mistake");
    let (policy, filter) = (folder.join("policy.tamis"), folder.join("filter.bpf"));
    fs::write(&policy, "allow raed\n").unwrap();
    fs::write(&filter, "precious").unwrap();
    let args = [
        "compile",
        policy.to_str().unwrap(),
        "-o",
        filter.to_str().unwrap(),
    ];
    assert_eq!(output(&args).status.code(), Some(2));
    assert_eq!(fs::read_to_string(&filter).unwrap(), "precious");
    assert_eq!(names_in(&folder), ["filter.bpf", "policy.tamis"]);
}

#[test]
fn an_output_file_is_replaced_by_the_whole_program() {
    let folder = folder("replace");
    let filter = folder.join("filter.bpf");
    fs::write(&filter, "old").unwrap();
    let result = output(&["compile", "pure-compute", "-o", filter.to_str().unwrap()]);
    assert!(result.status.success(), "{result:?}");
    let on_stdout = output(&["compile", "pure-compute"]).stdout;
    assert_eq!(fs::read(&filter).unwrap(), on_stdout);
    assert_eq!(names_in(&folder), ["filter.bpf"]);
}

#[test]
fn an_output_file_that_cannot_be_written_is_the_environments_fault() {
    let result = output(&[
        "compile",
        "pure-compute",
        "-o",
        "/no/such/folder/filter.bpf",
    ]);
    assert_eq!(result.status.code(), Some(4));
}

#[test]
fn a_file_of_100_megabytes_is_refused_without_being_read_to_the_end() {
    let path = folder("huge").join("huge.tamis");
    let file = File::create(&path).unwrap();
    file.set_len(100 << 20).unwrap();
    let result = output(&["compile", path.to_str().unwrap()]);
    assert_eq!(result.status.code(), Some(2));
    let message = String::from_utf8(result.stderr).unwrap();
    assert!(message.contains("TM0001"), "{message}");
}

#[test]
fn hostile_texts_are_errors_and_never_panics() {
    let deep_json = "[".repeat(1 << 20);
    let deep_policy = format!("allow read({}fd == 1", "(".repeat(1 << 20));
    let many_errors = "allow raed\n".repeat(100_000);
    let cases: [(&str, &[u8]); 8] = [
        ("tamis", b"allow read(\xff)"),
        ("tamis", deep_policy.as_bytes()),
        ("tamis", many_errors.as_bytes()),
        ("oci", deep_json.as_bytes()),
        (
            "oci",
            b"{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [{",
        ),
        ("oci", b""),
        (
            "rules",
            b"ruleset bad-arch allow\nsection x86_64 default allow\n 1 if not(not(",
        ),
        ("asm", b"ja 4294967295\nret #0\n"),
    ];
    for (kind, text) in cases {
        let command: &[&str] = match kind {
            "asm" => &["bpf", "disasm"],
            _ => &["compile"],
        };
        let result = with_input(&[command, &["-", "--from", kind]].concat(), text);
        let message = String::from_utf8_lossy(&result.stderr);
        assert_eq!(result.status.code(), Some(2), "{kind}: {message}");
        assert!(message.contains("error"), "{kind}: {message}");
        assert!(result.stdout.is_empty(), "{kind}");
        assert!(
            message.len() < 200_000,
            "{kind}: {} bytes of messages",
            message.len()
        );
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = tamis(&["tables", "syscalls"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let result = child.wait_with_output().unwrap();
    assert!(result.status.success(), "{result:?}");
    assert!(result.stderr.is_empty(), "{result:?}");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let first = output(&["compile", "container-default"]).stdout;
    assert!(!first.is_empty());
    for _ in 0..3 {
        assert_eq!(output(&["compile", "container-default"]).stdout, first);
    }
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = String::from_utf8(output(&["completions", shell]).stdout).unwrap();
        assert!(script.contains("disasm"), "{shell}");
    }
}

#[test]
fn bash_completes_policies_files_and_architectures() {
    skip::unless_runs(Need::Peers, "bash", &["--version"]);
    let folder = folder("completions");
    for name in ["own.tamis", "containers.tamis"] {
        fs::write(folder.join(name), "").unwrap();
    }
    fs::write(
        folder.join("script"),
        output(&["completions", "bash"]).stdout,
    )
    .unwrap();
    for (words, expected) in [
        ("tamis run -p cont", "container-default containers.tamis"),
        ("tamis run -p ow", "own.tamis"),
        ("tamis lint pure", "pure-compute"),
        ("tamis diff cont", "container-default containers.tamis"),
        (
            "tamis prove own.tamis cont",
            "container-default containers.tamis",
        ),
        ("tamis compile --arch aarch", "aarch64"),
        ("tamis bpf decomp", "decompile"),
    ] {
        let last = words.split(' ').count() - 1;
        let ask = format!(
            "source ./script; COMP_WORDS=({words}); COMP_CWORD={last}; \
             _tamis tamis ${{COMP_WORDS[{last}]}} ${{COMP_WORDS[{last}-1]}}; printf '%s\\n' ${{COMPREPLY[@]}} | sort"
        );
        let mut bash = Command::new("bash");
        let output = bash
            .args(["-c", &ask])
            .current_dir(&folder)
            .output()
            .expect("it has just run");
        let found = String::from_utf8_lossy(&output.stdout).replace('\n', " ");
        assert_eq!(found.trim_end(), expected, "{words}: {output:?}");
    }
}

#[test]
fn run_passes_on_exit_codes_and_signals() {
    skip::unless_live();
    for code in [0, 1, 42, 255] {
        let script = format!("exit {code}");
        let status = tamis(&["run", "--", "sh", "-c", &script]).status().unwrap();
        assert_eq!(status.code(), Some(code));
    }
    for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGSEGV] {
        let script = format!("kill -{signal} $$");
        let status = tamis(&["run", "--", "sh", "-c", &script]).status().unwrap();
        assert_eq!(status.signal(), Some(signal));
    }
}

#[test]
fn run_explains_a_kill_with_call_rule_and_line() {
    skip::unless_live();
    let policy = folder("kill").join("policy.tamis");
    fs::write(
        &policy,
        "default allow\n# Nobody renames anything here.\nkill uname\n",
    )
    .unwrap();
    let result = output(&["run", "-p", policy.to_str().unwrap(), "--", "uname"]);
    assert_eq!(result.status.signal(), Some(libc::SIGSYS), "{result:?}");
    let message = String::from_utf8(result.stderr).unwrap();
    for part in [
        "x86_64 uname(",
        "kill_process",
        "policy.tamis:3:",
        "kill uname",
    ] {
        assert!(
            cfg!(not(target_arch = "x86_64")) || message.contains(part),
            "{message}"
        );
    }
}

#[test]
fn run_tells_a_missing_command_from_one_that_cannot_be_executed() {
    skip::unless_live();
    let missing = output(&["run", "--", "no-such-command-anywhere"]);
    assert_eq!(missing.status.code(), Some(127));
    let file = folder("execute").join("text");
    fs::write(&file, "no program").unwrap();
    let not_executable = output(&["run", "--", file.to_str().unwrap()]);
    assert_eq!(not_executable.status.code(), Some(126));
}

#[test]
fn the_name_of_an_embedded_policy_means_that_policy_whatever_the_folder_holds() {
    let folder = folder("shadow");
    fs::write(folder.join("pure-compute"), "default allow\n").unwrap();
    let compile = |name: &str| {
        let mut command = tamis(&["compile", name, "--quiet"]);
        command.current_dir(&folder).output().unwrap().stdout
    };
    assert_eq!(
        compile("pure-compute"),
        output(&["compile", "pure-compute"]).stdout
    );
    assert_ne!(compile("./pure-compute"), compile("pure-compute"));
}

#[test]
fn the_input_is_not_replaced_by_the_output() {
    let policy = folder("same").join("policy.tamis");
    fs::write(&policy, "allow read\n").unwrap();
    let path = policy.to_str().unwrap();
    assert_eq!(
        output(&["compile", path, "-o", path]).status.code(),
        Some(2)
    );
    assert_eq!(fs::read_to_string(&policy).unwrap(), "allow read\n");
}

#[test]
fn a_planted_link_is_not_written_through() {
    let folder = folder("link");
    let (victim, filter) = (folder.join("victim"), folder.join("filter.bpf"));
    fs::write(&victim, "precious").unwrap();
    let mut child = tamis(&[
        "compile",
        "-",
        "-o",
        filter.to_str().unwrap(),
        "--from",
        "tamis",
    ])
    .stdin(Stdio::piped())
    .spawn()
    .unwrap();
    let planted = folder.join(format!("filter.bpf.tamis-{}-0", child.id()));
    std::os::unix::fs::symlink(&victim, planted).unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"allow read\n")
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(fs::symlink_metadata(&filter).unwrap().is_file());
}

#[test]
fn a_replaced_file_keeps_its_permissions() {
    let filter = folder("mode").join("filter.bpf");
    fs::write(&filter, "old").unwrap();
    fs::set_permissions(&filter, fs::Permissions::from_mode(0o640)).unwrap();
    let owner = fs::metadata(&filter).unwrap();
    if let Err(error) = chown(&filter, Some(owner.uid()), Some(owner.gid())) {
        skip::because(Need::Root, format!("the owner has no number here: {error}"));
    }
    assert!(
        output(&["compile", "pure-compute", "-o", filter.to_str().unwrap()])
            .status
            .success()
    );
    assert_eq!(
        fs::metadata(&filter).unwrap().permissions().mode() & 0o7777,
        0o640
    );
}

#[test]
fn a_dash_is_standard_output() {
    let dashed = output(&["compile", "pure-compute", "-o", "-"]);
    assert_eq!(dashed.stdout, output(&["compile", "pure-compute"]).stdout);
    assert!(!PathBuf::from("-").exists());
}

/// A folder with a profile and the profile's path.
fn profile(name: &str, text: &str) -> (PathBuf, String) {
    let folder = folder(name);
    let path = folder.join("profile.json");
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn quick_filters_are_other_programs_with_the_same_meaning() {
    let folder = folder("effort");
    let compiled = |name: &str, options: &[&str]| {
        let path = folder.join(name);
        let path = path.to_str().unwrap().to_owned();
        let mut arguments = vec![
            "compile",
            "container-default",
            "--arch",
            "x86_64",
            "-o",
            &path,
        ];
        arguments.extend(options);
        assert!(output(&arguments).status.success(), "{options:?}");
        (fs::read(&path).unwrap(), path)
    };
    let (default, _) = compiled("default.bpf", &[]);
    let (full, full_path) = compiled("full.bpf", &["--effort", "full"]);
    let (quick, quick_path) = compiled("quick.bpf", &["--effort", "quick"]);
    assert!(default == full && full != quick);
    assert!(output(&["prove", &full_path, &quick_path]).status.success());
}

#[test]
fn options_that_an_input_has_no_use_for_are_wrong_usage() {
    let folder = folder("unused-options");
    let (policy, rules) = (folder.join("a.tamis"), folder.join("a.rules"));
    fs::write(&policy, "allow read\n").unwrap();
    fs::write(&rules, "ruleset bad-arch kill_process\n").unwrap();
    let (policy, rules) = (policy.to_str().unwrap(), rules.to_str().unwrap());
    let program = folder.join("a.asm");
    fs::write(&program, "ret #0x7fff0000\n").unwrap();
    let program = program.to_str().unwrap();
    for (command, input, option, value) in [
        ("compile", policy, "--cap", "CAP_CHOWN"),
        ("decompile", policy, "--kernel", "6.1"),
        ("compile", policy, "--enosys-tail", "none"),
        ("compile", rules, "--arch", "x86_64"),
        ("run", program, "--kernel", "5.4"),
        ("run", program, "--objective", "ns"),
        ("run", program, "--effort", "quick"),
        ("run", program, "--counts", "a.json"),
    ] {
        let result = match command {
            "run" => output(&["run", "-p", input, option, value, "--", "true"]),
            "decompile" => output(&["bpf", command, input, option, value]),
            command => output(&[command, input, option, value]),
        };
        assert_eq!(result.status.code(), Some(2), "{option}");
        let message = String::from_utf8(result.stderr).unwrap();
        let name = option.trim_start_matches('-');
        assert!(message.contains(name), "{message}");
    }
}

/// A filter of a socket, which loads from packets, is none of seccomp.
#[test]
fn commands_for_seccomp_filters_refuse_filters_of_sockets() {
    let raw = folder("sockets").join("socket.bpf");
    // `ldh [12]`, and `ret #96`.
    let insns = [0x28, 0, 0, 0, 12, 0, 0, 0, 6, 0, 0, 0, 96, 0, 0, 0];
    fs::write(&raw, insns).unwrap();
    let commands: [&[&str]; 3] = [&["bpf", "disasm"], &["optimize"], &["lint"]];
    for command in commands {
        let result = output(&[command, &[raw.to_str().unwrap()]].concat());
        assert_eq!(result.status.code(), Some(2), "{command:?}");
        let said = String::from_utf8(result.stderr).unwrap();
        assert!(
            said.contains("code 0x0028 is not allowed"),
            "{command:?}: {said}"
        );
    }
}

#[test]
fn capabilities_are_known_by_either_name_and_near_ones_are_named() {
    let entry = r#"{"names": ["mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}}"#;
    let text = format!(r#"{{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{entry}]}}"#);
    let (_, path) = profile("capabilities", &text);
    let rules = |cap| output(&["compile", &path, "--emit", "rules", "--cap", cap]);
    for (cap, is_allowed) in [
        ("CAP_SYS_ADMIN", true),
        ("SYS_ADMIN", true),
        ("cap_sys_admin", true),
        ("CAP_CHOWN", false),
    ] {
        let text = String::from_utf8(rules(cap).stdout).unwrap();
        assert_eq!(text.contains("mount: allow"), is_allowed, "{cap}: {text}");
    }
    let unknown = rules("SYS_ADMN");
    assert_eq!(unknown.status.code(), Some(2));
    let message = String::from_utf8(unknown.stderr).unwrap();
    assert!(message.contains("`CAP_SYS_ADMIN`"), "{message}");
}

#[test]
fn one_architecture_is_the_native_one_of_a_profile_and_several_are_all() {
    let text = r#"{"defaultAction": "SCMP_ACT_ERRNO", "archMap": [
        {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]}]}"#;
    let (_, path) = profile("architectures", text);
    let sections = |arches: &[&str]| -> Vec<String> {
        let mut args = vec!["compile", &path, "--emit", "rules"];
        args.extend(arches.iter().flat_map(|arch| ["--arch", arch]));
        let text = String::from_utf8(output(&args).stdout).unwrap();
        let sections = text
            .lines()
            .filter_map(|line| line.strip_prefix("section "));
        sections
            .filter_map(|line| Some(line.split_once(' ')?.0.to_owned()))
            .collect()
    };
    assert_eq!(sections(&["aarch64"]), ["aarch64", "arm"]);
    assert_eq!(sections(&["aarch64", "x86_64"]), ["aarch64", "x86_64"]);
}

#[test]
fn run_installs_with_the_flags_of_the_profile() {
    skip::unless_live();
    skip::unless_runs(Need::Peers, "strace", &["-o", "/dev/null", "true"]);
    let text = r#"{"defaultAction": "SCMP_ACT_ALLOW", "flags": ["SECCOMP_FILTER_FLAG_SPEC_ALLOW",
        "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"],
        "syscalls": [{"names": ["acct"], "action": "SCMP_ACT_NOTIFY"}]}"#;
    let (folder, path) = profile("flags", text);
    let log = folder.join("strace");
    let result = Command::new("strace")
        .args(["-f", "-e", "trace=seccomp", "-o", log.to_str().unwrap()])
        .arg(crate::TAMIS)
        .args(["run", "--no-explain", "--log", "-p", &path, "--", "true"])
        .stdin(Stdio::null())
        .output()
        .expect("it has just run");
    assert_eq!(result.status.code(), Some(0), "{result:?}");
    let calls = fs::read_to_string(&log).unwrap();
    let flags = "SECCOMP_FILTER_FLAG_LOG|SECCOMP_FILTER_FLAG_SPEC_ALLOW, ";
    assert!(calls.contains(flags), "{calls}");
    let message = String::from_utf8(result.stderr).unwrap();
    assert!(message.contains("ENOSYS"), "{message}");
}

#[test]
fn run_says_that_a_filter_must_allow_execve() {
    skip::unless_live();
    for policy in ["pure-compute", "network-service"] {
        let result = output(&["run", "-p", policy, "--", "true"]);
        assert!(!result.status.success());
        let message = String::from_utf8(result.stderr).unwrap();
        assert!(message.contains("must allow execve"), "{message}");
    }
}

/// The bytes of a base64 text.
fn decoded(text: &str) -> Vec<u8> {
    let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let values: Vec<usize> = text.chars().filter_map(|c| digits.find(c)).collect();
    let mut bytes = Vec::new();
    for group in values.chunks(4) {
        let bits = (0..4).fold(0, |bits, index| {
            bits << 6 | group.get(index).copied().unwrap_or(0)
        });
        let all = [bits >> 16, bits >> 8, bits].map(|byte| byte as u8);
        bytes.extend(&all[..group.len() - 1]);
    }
    bytes
}

#[test]
fn the_annotation_of_crun_is_the_raw_program() {
    for policy in ["pure-compute", "container-default"] {
        let emitted = |form: &str| {
            let arguments = ["compile", policy, "--arch", "x86_64", "--emit", form];
            output(&arguments).stdout
        };
        let annotation = String::from_utf8(emitted("annotation")).unwrap();
        let value = annotation.strip_prefix("run.oci.seccomp_bpf_data=");
        let value = value.and_then(|value| value.strip_suffix('\n')).unwrap();
        assert_eq!(value.len() % 4, 0, "padded");
        assert_eq!(decoded(value), emitted("bpf"));
        assert!(!emitted("bpf").is_empty());
    }
}

/// The kernel can't detect the byte order, and would accept the filter with swapped halves of arguments: here it would
/// allow denied calls.
#[test]
fn a_filter_of_the_other_order_of_bytes_is_not_installed() {
    let folder = folder("other-order");
    let text =
        "ld [nr]\njne #1, allow\nld [20]\njne #1, allow\nret #0x50001\nallow: ret #0x7fff0000\n";
    fs::write(folder.join("a.asm"), text).unwrap();
    let policy = "arch s390x\ndefault allow\nerrno(EPERM) write(fd == 1)\n";
    fs::write(folder.join("s390x.tamis"), policy).unwrap();
    let line = |line: &str| {
        tamis(&line.split(' ').collect::<Vec<_>>())
            .current_dir(&folder)
            .output()
            .unwrap()
    };
    assert!(line("bpf asm a.asm -o a.bpf").status.success());
    let mut bytes = fs::read(folder.join("a.bpf")).unwrap();
    for insn in bytes.chunks_exact_mut(8) {
        insn[..2].reverse();
        insn[4..].reverse();
    }
    fs::write(folder.join("a.bpf"), bytes).unwrap();
    for command in ["exec", "run", "sandbox"] {
        for rest in [
            "a.bpf --arch s390x",
            "a.asm --arch s390x",
            "a.bpf",
            "s390x.tamis",
        ] {
            let output = line(&format!("{command} -p {rest} -- /bin/echo hi"));
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(
                !output.status.success() && output.stdout.is_empty(),
                "{command} {rest}: {told}"
            );
            assert!(
                told.contains("byte order") && !told.contains("name its"),
                "{command} {rest}: {told}"
            );
        }
    }
}

/// What the command of `reduce --test` and another program's guest do here: the signals come while tamis waits for them, as
/// `timeout` sends them: to the command and to its group.
const INTERRUPT: &str = "kill -TERM $PPID; kill -TERM $PPID; kill -INT $PPID";

#[test]
fn an_interrupted_reduction_writes_what_was_reached() {
    let folder = folder("interrupted");
    let policy = "default errno(EPERM)\nallow read\n";
    fs::write(folder.join("a.tamis"), policy).unwrap();
    let test = format!("{INTERRUPT}; grep -q read {{}}");
    let interrupted = tamis(&["bpf", "reduce", "a.tamis", "--test", &test])
        .current_dir(&folder)
        .env("TMPDIR", &folder)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&interrupted.stderr);
    assert_eq!(interrupted.status.code(), Some(3), "{told}");
    assert_eq!(String::from_utf8_lossy(&interrupted.stdout), policy);
    assert!(told.contains("interrupted"), "{told}");
    assert_eq!(names_in(&folder), ["a.tamis"]);
}

#[test]
fn a_signal_that_comes_again_later_ends_a_reduction() {
    let folder = folder("interrupted-again");
    fs::write(folder.join("a.tamis"), "default allow\n").unwrap();
    let again = "kill -TERM $PPID; sleep 0.6; kill -TERM $PPID";
    let ended = tamis(&["bpf", "reduce", "a.tamis", "--test", again])
        .current_dir(&folder)
        .env("TMPDIR", &folder)
        .output()
        .unwrap();
    // The first test shows no failure before it has ended.
    assert_eq!(ended.status.signal(), Some(15), "{ended:?}");
}

#[test]
fn a_file_with_the_name_of_an_embedded_policy_gets_a_note() {
    let folder = folder("embedded");
    fs::write(folder.join("pure-compute"), "default allow\n").unwrap();
    let told = |line: &[&str]| {
        let output = tamis(line).current_dir(&folder).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let note = "the file of that name here is `./pure-compute`";
    let lines: [&[&str]; 8] = [
        &["compile", "pure-compute"],
        &["lint", "pure-compute"],
        &["bpf", "disasm", "pure-compute"],
        &["bpf", "eval", "pure-compute", "read"],
        &["diff", "pure-compute", "./pure-compute"],
        &["bpf", "reduce", "pure-compute", "--reports", "TM0717"],
        &["run", "-p", "pure-compute", "--", "true"],
        &["exec", "-p", "pure-compute", "--", "true"],
    ];
    for line in lines {
        let told = told(line);
        assert_eq!(told.matches(note).count(), 1, "{line:?}: {told}");
    }
    assert!(!told(&["compile", "./pure-compute"]).contains(note));
}

#[test]
fn a_name_with_a_line_break_stays_on_its_line() {
    let folder = folder("line-break");
    fs::write(folder.join("a\nb.tamis"), "default allow\n").unwrap();
    let output = tamis(&["lint", "a\nb.tamis"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains(r"a\x0ab.tamis"), "{told}");
}

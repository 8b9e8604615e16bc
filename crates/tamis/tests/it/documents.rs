//! The destinations of results, documents and messages, and control characters in them.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tamis_testkit::skip;
use tamis_testkit::toolchains::stderr_text;

const POLICY: &str = "arch x86_64\ndefault errno(EPERM)\nallow read, write, exit_group, execve\n";

/// A folder with inputs of all kinds.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("documents")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("p.tamis"), POLICY).unwrap();
    fs::write(
        folder.join("m.toml"),
        "policy = 'p.tamis'\n[option.network]\nnone = {}\n",
    )
    .unwrap();
    fs::write(folder.join("p.s"), "ld [nr]\nret #allow\n").unwrap();
    let profile = r#"{"schema": "tamis-profile/1", "calls": [{"arch": "x86_64", "call": "read", "count": 3}]}"#;
    fs::write(folder.join("counts.json"), profile).unwrap();
    folder
}

fn tamis(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(crate::TAMIS);
    command.args(line.split(' ')).current_dir(folder);
    command.stdin(Stdio::null()).output().unwrap()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", stderr_text(output)))
}

#[test]
fn with_json_a_file_gets_the_result_and_standard_output_the_document() {
    let folder = folder("beside");
    assert!(tamis(&folder, "compile p.tamis -o p.bpf").status.success());
    for (line, schema) in [
        ("compile p.tamis", "tamis.compile/1"),
        ("compile p.tamis --emit asm", "tamis.compile/1"),
        ("compile p.tamis --emit rules", "tamis.compile/1"),
        ("compile p.tamis --emit c", "tamis.compile/1"),
        ("optimize p.bpf", "tamis.optimize/1"),
        ("optimize p.bpf --emit annotation", "tamis.optimize/1"),
        ("precompile m.toml --emit c", "tamis.precompile/1"),
        ("convert p.tamis --to oci", "tamis.convert/1"),
        ("bpf decompile p.bpf", "tamis.decompile/1"),
        ("learn counts.json", "tamis.learn/1"),
        ("bpf asm p.s", "tamis.disasm/1"),
    ] {
        assert!(tamis(&folder, &format!("{line} -o plain")).status.success());
        let output = tamis(&folder, &format!("{line} --json -o beside"));
        assert_eq!(document(&output)["schema"], schema, "{line}");
        let [plain, beside] = ["plain", "beside"].map(|name| fs::read(folder.join(name)).unwrap());
        assert!(plain == beside, "{line}");
        // A program isn't written over a policy.
        for name in ["plain", "beside"] {
            fs::remove_file(folder.join(name)).unwrap();
        }
    }
}

#[test]
fn with_json_no_other_form_goes_to_standard_output() {
    let folder = folder("refused");
    assert!(tamis(&folder, "compile p.tamis -o p.bpf").status.success());
    for line in [
        "compile p.tamis --emit asm --json",
        "compile p.tamis --emit c --json -o -",
        "optimize p.bpf --emit asm --json",
        "precompile m.toml --emit c --json",
    ] {
        let output = tamis(&folder, line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        let document = document(&output);
        assert_eq!(document["schema"], "tamis.diagnostics/1", "{line}");
        let help = document["diagnostics"][0]["help"].as_str().unwrap();
        assert!(help.contains("-o FILE"), "{line}: {help}");
    }
}

#[test]
fn help_is_a_document_and_what_is_none_is_refused() {
    let folder = folder("help");
    for (line, with_json) in [
        ("--help", "--help --json"),
        ("--version", "--json --version"),
        ("help profile merge", "help profile merge --json"),
    ] {
        let plain = String::from_utf8(tamis(&folder, line).stdout).unwrap();
        let output = tamis(&folder, with_json);
        assert_eq!(output.status.code(), Some(0), "{with_json}");
        assert_eq!(document(&output)["text"], plain, "{with_json}");
    }
    for line in [
        "completions bash",
        "man pages",
        "help nosuch",
        "compile --nosuch --help",
    ] {
        let output = tamis(&folder, &format!("{line} --json"));
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert_eq!(document(&output)["schema"], "tamis.diagnostics/1", "{line}");
    }
    assert!(!folder.join("pages").exists());
}

#[test]
fn what_is_told_about_an_input_is_told_once() {
    let folder = folder("once");
    let profile = r#"{"defaultAction": "SCMP_ACT_ERRNO",
        "syscalls": [{"names": ["read", "raed"], "action": "SCMP_ACT_ALLOW"}]}"#;
    fs::write(folder.join("profile.json"), profile).unwrap();
    let text = stderr_text(&tamis(&folder, "diff profile.json profile.json"));
    assert_eq!(text.matches("unknown system call").count(), 1, "{text}");
    let output = tamis(&folder, "prove profile.json profile.json --json");
    let warnings = &document(&output)["diagnostics"];
    assert_eq!(warnings.as_array().unwrap().len(), 1, "{warnings}");
    fs::write(folder.join("pure-compute"), "").unwrap();
    let text = stderr_text(&tamis(&folder, "diff pure-compute pure-compute"));
    assert_eq!(text.matches("is the embedded policy").count(), 1, "{text}");
}

#[test]
fn a_profile_as_a_document_has_the_warnings_and_is_a_profile() {
    let folder = folder("profile");
    let strace = "read(0, 0x1, 2) = 0\nno_such_call(1) = 0\nread(0, 0x1, 2) = 0\n";
    fs::write(folder.join("log.txt"), strace).unwrap();
    let output = tamis(&folder, "profile log.txt --json");
    let profile = document(&output);
    assert_eq!(profile["calls"][0]["count"], 2);
    assert!(profile["diagnostics"].is_array());
    assert_eq!(stderr_text(&output), "");
    fs::write(folder.join("again.json"), &output.stdout).unwrap();
    let again = document(&tamis(&folder, "profile again.json --json"));
    assert_eq!(again["calls"], profile["calls"]);
}

#[test]
fn a_full_device_is_told_whatever_is_printed() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        return;
    };
    for line in ["--version", "--help", "compile --help", "tables arches"] {
        let output = Command::new(crate::TAMIS)
            .args(line.split(' '))
            .stdout(full.try_clone().unwrap())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(4), "{line}");
        assert!(stderr_text(&output).contains("No space left"), "{line}");
    }
}

#[test]
fn a_closed_standard_output_is_told_if_there_is_something_to_print() {
    let folder = folder("closed");
    for (line, code) in [
        ("compile p.tamis --emit asm", 4),
        ("explain p.tamis read", 4),
        ("--version", 4),
        ("compile p.tamis -o p.bpf", 0),
        ("compile nosuch", 2),
    ] {
        let output = Command::new("sh")
            .args(["-c", &format!("exec \"$0\" {line} >&-"), crate::TAMIS])
            .current_dir(&folder)
            .output()
            .unwrap();
        let text = stderr_text(&output);
        assert_eq!(output.status.code(), Some(code), "{line}: {text}");
        assert_eq!(
            text.contains("standard output: it is closed"),
            code == 4,
            "{line}: {text}"
        );
    }
}

#[test]
fn an_empty_name_is_told() {
    let output = Command::new(crate::TAMIS)
        .args(["lint", ""])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = stderr_text(&output);
    assert!(text.contains("the name of an input is empty"), "{text}");
}

/// A file that isn't a policy, given as one, has an error in each line.
#[test]
fn errors_of_one_kind_are_a_few_and_a_count() {
    let folder = folder("many");
    let accounts = "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n".repeat(80);
    fs::write(folder.join("passwd"), accounts).unwrap();
    let output = tamis(&folder, "exec --from tamis -p passwd -- true");
    assert_eq!(output.status.code(), Some(2));
    let text = stderr_text(&output);
    assert!(
        text.contains("more of this kind: `--json` has all"),
        "{text}"
    );
    assert!(text.lines().count() < 160, "{text}");
    let document = document(&tamis(&folder, "compile passwd --from tamis --json"));
    assert!(document["diagnostics"].as_array().unwrap().len() >= 80);
}

#[test]
fn names_have_no_characters_that_change_what_is_seen() {
    let folder = folder("names");
    let name = "a\u{202e}b\u{200b}\u{1b}.tamis";
    for (text, line) in [
        (POLICY, "compile NAME --stats -o out.bpf"),
        (POLICY, "lint NAME"),
        (POLICY, "prove NAME p.tamis"),
        (POLICY, "diff NAME container-default"),
        (POLICY, "explain NAME read"),
        ("allow raed\n", "compile NAME"),
        ("allow raed\n", "precompile NAME"),
        (POLICY, "bpf decompile NAME/missing"),
    ] {
        fs::write(folder.join(name), text).unwrap();
        let words = line.split(' ').map(|word| word.replace("NAME", name));
        let output = Command::new(crate::TAMIS)
            .args(words)
            .current_dir(&folder)
            .output()
            .unwrap();
        let all = [output.stdout, output.stderr].concat();
        let all = String::from_utf8_lossy(&all);
        let is_seen = |c: &char| !"\u{202e}\u{200b}\u{1b}".contains(*c);
        assert!(all.chars().all(|c| is_seen(&c)), "{line}: {all:?}");
    }
}

#[test]
fn a_folder_is_decompiled_as_the_stack_of_its_filters() {
    let folder = folder("stack");
    fs::create_dir(folder.join("filters")).unwrap();
    for line in [
        "compile p.tamis -o filters/0.bpf",
        "compile container-default --arch x86_64 -o filters/1.bpf",
    ] {
        assert!(tamis(&folder, line).status.success());
    }
    let output = tamis(&folder, "bpf decompile filters -o stack.tamis");
    assert!(output.status.success(), "{}", stderr_text(&output));
    let output = tamis(&folder, "prove stack.tamis filters");
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
}

#[test]
fn a_configuration_of_standard_input_goes_to_standard_output() {
    let folder = folder("oci");
    let mut child = Command::new(crate::TAMIS)
        .args(["oci", "apply", "p.tamis", "-"])
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(br#"{"ociVersion": "1.0.2"}"#).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let config = document(&output);
    assert_eq!(
        config["linux"]["seccomp"]["defaultAction"],
        "SCMP_ACT_ERRNO"
    );
    assert!(!folder.join("-").exists());
}

#[test]
fn a_policy_in_the_place_of_a_command_is_told() {
    skip::unless_live();
    let folder = folder("command");
    for line in [
        "run ./p.tamis true",
        "run pure-compute",
        "sandbox ./p.tamis",
    ] {
        let output = tamis(&folder, line);
        assert!(matches!(output.status.code(), Some(126 | 127)), "{line}");
        let text = stderr_text(&output);
        assert!(
            text.contains("help: a policy is named with `-p`"),
            "{line}: {text}"
        );
    }
}

/// Policies are not overwritten if the input is missing, or a shell expands `-o` to two policies.
#[test]
fn a_policy_is_not_overwritten_by_a_program() {
    let folder = folder("kept");
    let profile = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []}"#;
    fs::write(folder.join("profile.json"), profile).unwrap();
    for line in [
        "compile -o p.tamis",
        "compile -o profile.json",
        "compile --emit asm -o p.tamis",
        "compile profile.json -o p.tamis",
        "optimize container-default -o p.tamis",
        "bpf asm p.s -o p.tamis",
    ] {
        let output = tamis(&folder, line);
        let text = stderr_text(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(
            text.contains("the output would overwrite"),
            "{line}: {text}"
        );
    }
    assert_eq!(fs::read_to_string(folder.join("p.tamis")).unwrap(), POLICY);
    // A result may have the extension of a language, and an empty file is no policy.
    fs::write(folder.join("filter.json"), "").unwrap();
    for result in ["filter", "filter.policy", "filter.json"] {
        for _ in 0..2 {
            let output = tamis(&folder, &format!("compile p.tamis -o {result}"));
            assert!(output.status.success(), "{}", stderr_text(&output));
        }
    }
}

#[test]
fn words_in_the_wrong_place_are_told() {
    let folder = folder("order");
    let text = stderr_text(&tamis(&folder, "p.tamis"));
    assert!(text.contains("'tamis compile p.tamis'"), "{text}");
    for line in ["explain read p.tamis", "bpf eval read p.tamis"] {
        let output = tamis(&folder, line);
        let text = stderr_text(&output);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(
            text.contains("before the calls: `p.tamis 'read'`"),
            "{text}"
        );
    }
}

#[test]
fn a_crash_under_a_filter_has_a_hint() {
    skip::unless_live();
    let folder = folder("crash");
    fs::write(
        folder.join("kind.tamis"),
        "default allow\nerrno(EPERM) uname\n",
    )
    .unwrap();
    for (options, signal, is_told) in [
        ("-p kind.tamis", "SEGV", true),
        ("-p kind.tamis", "TERM", false),
        ("-p kind.tamis --explain-denied", "SEGV", false),
        ("--no-explain", "SEGV", false),
    ] {
        let output = Command::new(crate::TAMIS)
            .arg("run")
            .args(options.split(' '))
            .args(["--", "sh", "-c", &format!("kill -{signal} $$")])
            .current_dir(&folder)
            .output()
            .unwrap();
        let text = stderr_text(&output);
        let is_there = text.contains("SIGSEGV ended the command");
        assert_eq!(is_there, is_told, "{options} {signal}: {text}");
    }
}

#[test]
fn what_rules_did_to_a_command_goes_to_a_file() {
    skip::unless_live();
    let folder = folder("inject");
    let output = Command::new(crate::TAMIS)
        .args([
            "inject",
            "getpid return 5",
            "-o",
            "report.json",
            "--",
            "true",
        ])
        .current_dir(&folder)
        .output()
        .unwrap();
    if output.status.code() == Some(4) {
        skip::because(skip::Need::Live, stderr_text(&output));
    }
    assert_eq!(stderr_text(&output), "");
    let report = fs::read(folder.join("report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["schema"], "tamis.inject/1");
}

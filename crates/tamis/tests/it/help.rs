//! The examples that `--help` shows: every subcommand has one, and all of them work.
//!
//! They run in a shell, in a folder with the files that they name. What needs another process, a tool that nobody has,
//! filters in the kernel or minutes is only understood: with `--help` behind it, which comes after all mistakes in
//! the words before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tamis_policy::option;
use tamis_testkit::child;

use crate::TAMIS;

/// What examples hold that are not run.
const NOT_RUN: [&str; 18] = [
    "--pid",
    "tamis run ",
    "tamis exec ",
    "tamis harden ",
    "tamis audit ",
    "tamis record ",
    "tamis trace ",
    "tamis bench ",
    "tamis sandbox ",
    "tamis inject ",
    "--running-kernel",
    "--time 60",
    "--evaluations 1000000",
    "other-tool",
    "timeout 5",
    "strace ",
    "kubectl ",
    "--to parquet",
];

fn stdout(args: &[&str]) -> String {
    let output = Command::new(TAMIS).args(args).output().expect("it starts");
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).expect("help is text")
}

/// The commands below a command, as its help lists them.
fn below(path: &[String]) -> Vec<String> {
    let words = path.iter().map(String::as_str);
    let help = stdout(&words.chain(["--help"]).collect::<Vec<_>>());
    let list = help
        .split_once("Commands:\n")
        .map_or("", |(_, after)| after);
    let (list, _) = list.split_once("\n\n").unwrap_or((list, ""));
    let names = list
        .lines()
        .filter_map(|line| Some(line.strip_prefix("  ")?.split_once(' ')?.0.to_owned()));
    names
        .filter(|name| !name.is_empty() && name != "help")
        .collect()
}

/// The subcommands, which `tamis --help` lists in groups; those of `bpf` are in its own list, too.
fn subcommands() -> Vec<String> {
    let help = stdout(&["--help"]);
    let (list, _) = help.split_once("\nOptions:\n").expect("the groups end");
    let entries = list.lines().filter_map(|line| line.strip_prefix("  "));
    let names = entries.filter_map(|entry| Some(entry.split_once(' ')?.0.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.dedup();
    names
}

/// The words of all commands, those below others included.
fn all_commands() -> Vec<Vec<String>> {
    let commands = subcommands().into_iter().map(|name| vec![name]);
    let with_those_below = |path: Vec<String>| {
        let below = below(&path).into_iter();
        let below = below.map(|name| [path.as_slice(), &[name]].concat());
        let below: Vec<Vec<String>> = below.collect();
        [vec![path], below].concat()
    };
    commands.flat_map(with_those_below).collect()
}

/// The examples of a command's help, without the remarks beside them.
fn examples(path: &[String]) -> Vec<String> {
    let words = path.iter().map(String::as_str);
    let help = stdout(&words.chain(["--help"]).collect::<Vec<_>>());
    let opening = help
        .split_once("Examples:\n")
        .or_else(|| help.split_once("Example:\n"));
    let (_, after) = opening.unwrap_or_else(|| panic!("{path:?} has no example"));
    let indented = after.lines().map_while(|line| line.strip_prefix("  "));
    let commands = indented.map(|line| line.split_once("   ").map_or(line, |(command, _)| command));
    commands.map(|line| line.trim().to_owned()).collect()
}

const POLICY: &str = "arch x86_64\ndefault errno(EPERM)\nallow read, write, exit_group, execve\n\
                      allow socket(family in {AF_UNIX, AF_INET})\n";
const OTHER: &str = "arch x86_64\ndefault errno(EPERM)\nallow read, exit_group, execve\n";
const SERVER: &str = "arch x86_64\nlet control_fd: u32 in 0..0x7fffffff\ndefault allow\nbad-arch kill-process\n\
                      errno(EPERM) write(fd != control_fd)\n";
const MATRIX: &str =
    "policy = 'policy.tamis'\n[option.network]\nnone = {}\nhost = { include = 'network.tamis' }\n";
const MINIJAIL: &str = "read: 1\nwrite: 1\nexit_group: 1\nioctl: arg1 == 5\n";
const STRACE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000060           1        60           read
 40.00    0.000040           1        40           write
------ ----------- ----------- --------- --------- ----------------
100.00    0.000100                   100           total
";
const COUNTS: &str =
    r#"{"schema": "tamis-profile/1", "calls": [{"arch": "x86_64", "call": "read", "count": 9}]}"#;

/// An OCI profile that allows these calls, besides a condition.
fn oci(names: &str) -> String {
    format!(
        r#"{{"defaultAction": "SCMP_ACT_ERRNO", "archMap": [{{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []}}],
            "syscalls": [{{"names": [{names}], "action": "SCMP_ACT_ALLOW"}},
                {{"names": ["socket"], "action": "SCMP_ACT_ALLOW",
                  "args": [{{"index": 0, "value": 40, "op": "SCMP_CMP_NE"}}]}}]}}"#
    )
}

/// A folder with every file that an example reads.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("help-files");
    let _ = fs::remove_dir_all(&folder);
    for name in [
        "filters",
        "dump",
        ".local/share/bash-completion/completions",
    ] {
        fs::create_dir_all(folder.join(name)).expect("a folder of the test");
    }
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
    for (names, text) in [
        ("policy.tamis new.tamis service.tamis extra.tamis", POLICY),
        ("server.tamis", SERVER),
        ("server.toml", MATRIX),
        ("network.tamis", "allow connect\n"),
        (
            "server.checks",
            "param FAMILY = AF_ALG\nnever allow socket(family == FAMILY)\n",
        ),
        ("large.policy", MINIJAIL),
        ("bundle.json", r#"{"ociVersion": "1.0.2"}"#),
        ("trace.txt", STRACE),
        (
            "monday.json tuesday.json service.json web-1.json web-2.json week1.json week2.json",
            COUNTS,
        ),
    ] {
        names.split(' ').for_each(|name| write(name, text));
    }
    for name in "profile.json default.json old.json main.json docker.json".split(' ') {
        write(name, &oci(r#""read", "write", "clone", "clone3""#));
    }
    for name in ["new.json", "branch.json"] {
        write(name, &oci(r#""read", "write", "clone""#));
    }
    let compile = |policy: &str, names: &str| {
        for name in names.split(' ') {
            let status = shell(&folder, &format!("tamis compile {policy} -o {name}")).status;
            assert!(status.success(), "{policy}");
        }
    };
    compile(
        "policy.tamis",
        "filter.bpf new.bpf filters/0.bpf dump/0.bpf",
    );
    compile("policy.tamis", "first.bpf second.bpf third.bpf service.bpf");
    write("other.tamis", OTHER);
    compile("other.tamis", "old.bpf filters/1.bpf dump/1.bpf");
    compile("other.tamis", "fused.bpf");
    compile("new.json --arch x86_64", "theirs.bpf");
    folder
}

/// A copy of the folder, so that examples are independent.
fn copy_of(folder: &Path) -> PathBuf {
    let copy = folder.with_file_name("help");
    let _ = fs::remove_dir_all(&copy);
    let copied = Command::new("cp").arg("-r").args([folder, &copy]).status();
    assert!(copied.is_ok_and(|status| status.success()));
    copy
}

/// Runs a command line in the folder, with `tamis` in the search path.
fn shell(folder: &Path, line: &str) -> Output {
    let own = Path::new(TAMIS).parent().expect("it is in a folder");
    let search = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", format!("{}:{search}", own.display()))
        .env("HOME", folder)
        .stdin(Stdio::null());
    child::output(&mut command).expect("a shell")
}

/// The example with `--help`, which only parses its words, before the words of another command.
fn understood(example: &str) -> String {
    let ends = [" -- ", " --test ", " && ", " | "];
    let own = ends.iter().fold(example, |own, end| {
        own.split_once(end).map_or(own, |(before, _)| before)
    });
    format!("{own} --help")
}

#[test]
fn every_subcommand_has_examples_and_they_work() {
    let files = folder();
    let mut failures = Vec::new();
    for path in all_commands() {
        let folder = copy_of(&files);
        let examples = examples(&path);
        let own = format!("tamis {}", path.join(" "));
        assert!(
            examples.iter().any(|example| example.contains(&own)),
            "{own} has no example of its own"
        );
        for example in examples {
            // What these print is the machine's own.
            let others = ["strace ", "journalctl "];
            if others.iter().any(|other| example.starts_with(other)) {
                continue;
            }
            let is_run = !NOT_RUN.iter().any(|word| example.contains(word));
            let line = if is_run {
                example.clone()
            } else {
                understood(&example)
            };
            let output = shell(&folder, &line);
            // The answer may be no, and a proof may reach its limit.
            if !matches!(output.status.code(), Some(0 | 1 | 3)) {
                let printed = String::from_utf8_lossy(&output.stderr);
                failures.push(format!("{line}: {}\n{printed}", output.status));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Every command with `-O` takes the flags of all languages, and few list them.
#[test]
fn flags_of_languages_are_listed_where_one_policy_is_compiled() {
    let mut takers = 0;
    for subcommand in subcommands() {
        let help = stdout(&[&subcommand, "--help"]);
        if !help.contains("-O, --option") {
            continue;
        }
        takers += 1;
        let is_listed = ["compile", "precompile"].contains(&subcommand.as_str());
        for option in option::all() {
            let name = option.name;
            let entry = format!("\n      --{name}");
            assert_eq!(help.contains(&entry), is_listed, "{subcommand} --{name}");
            // Help is shown only if the words before it are valid.
            let flag = format!("--{name}");
            let understood = match option.value_form().split('|').next() {
                Some("") | None => stdout(&[&subcommand, &flag, "--help"]),
                Some(value) => stdout(&[&subcommand, &flag, value, "--help"]),
            };
            assert_eq!(understood, help, "{subcommand} {flag}");
        }
    }
    assert!(takers > 10, "{takers} commands take options of languages");
}

/// The output of `tamis -h` on 80 columns.
fn short_help(path: &[String]) -> String {
    let help = Command::new(TAMIS)
        .args(path)
        .arg("-h")
        .env("COLUMNS", "80")
        .output()
        .expect("it starts");
    String::from_utf8(help.stdout).expect("help is text")
}

#[test]
fn the_help_of_tamis_is_short_and_names_every_command_once() {
    const LINES: usize = 24;
    let help = short_help(&[]);
    assert!(help.lines().count() <= LINES, "{help}");
    assert!(
        help.lines().all(|line| line.chars().count() <= 80),
        "{help}"
    );
    let (list, rest) = help.split_once("\n\nOthers: ").expect("the other names");
    let (others, _) = rest.split_once("\nMore: ").expect("they end");
    let (_, list) = list.split_once("COMMAND>\n\n").expect("the groups");
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines.len() <= 16, "{help}");
    // Behind the names of the groups.
    let first = lines
        .iter()
        .map(|line| line[11..].split_once(' ').expect("its description").0);
    let mut named: Vec<&str> = first.chain(others.split([',', '\n', ' '])).collect();
    named.retain(|name| !name.is_empty());
    let mut all = subcommands();
    named.sort_unstable();
    all.sort_unstable();
    assert_eq!(named, all);
    // The outputs without a command, and of `tamis help`.
    let nothing = Command::new(TAMIS)
        .env("COLUMNS", "80")
        .output()
        .expect("it starts");
    assert_eq!(nothing.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&nothing.stderr), help);
    assert_eq!(stdout(&["help"]), stdout(&["--help"]));
}

#[test]
fn a_command_of_the_group_is_suggested_by_its_name_alone() {
    for (word, command) in [
        ("asm", "bpf asm"),
        ("disasm", "bpf disasm"),
        ("evla", "bpf eval"),
        ("complie", "compile"),
    ] {
        let output = Command::new(TAMIS).arg(word).output().expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        let tip = format!("tip: a similar subcommand exists: '{command}'\n");
        assert!(error.contains(&tip), "{error}");
    }
    let list = stdout(&["--help"]);
    for path in below(&["bpf".to_owned()]) {
        assert!(list.contains(&format!("\n  bpf {path} ")), "{path}");
    }
}

#[test]
fn the_short_help_fits_a_screen() {
    const LINES: usize = 24;
    let commands = all_commands();
    assert!(commands.iter().any(|path| path.len() == 2));
    let mut too_long = Vec::new();
    for path in commands {
        let help = short_help(&path);
        let lines = help.lines().count();
        if lines > LINES {
            too_long.push(format!("{lines} lines: {help}"));
        }
        let more = format!("More: `tamis {} --help`", path.join(" "));
        assert!(help.contains(&more), "{help}");
    }
    assert!(too_long.is_empty(), "{}", too_long.join("\n"));
}

#[test]
fn the_manual_describes_every_option() {
    let pages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("help-manual");
    stdout(&["man", pages.to_str().unwrap()]);
    let mut count = 0;
    for page in fs::read_dir(&pages).unwrap() {
        let path = page.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let options = lines
            .windows(2)
            .filter(|pair| pair[0].starts_with("\\fB\\-"));
        for pair in options {
            count += 1;
            let is_described = !pair[1].starts_with('.');
            assert!(is_described, "{}: {}", path.display(), pair[0]);
        }
    }
    assert!(count > 100, "{count} options");
}

//! Profiles in all forms that are accepted, and malformed text: errors have places, and nothing makes the front end
//! panic.

use tamis_abi::{Action, Arch, SeccompData, syscall};
use tamis_diag::{Code, Diagnostic, Sources, render};
use tamis_policy::code;
use tamis_policy::oci::{self, EnosysTail, OciOptions, ParsedProfile};
use tamis_rules::Ruleset;
use tamis_testkit::corpus;
use tamis_testkit::rng::Rng;

/// A profile in the engines' format with most of its features.
const SAMPLE: &str = r#"{
  "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1, "defaultErrno": "EPERM",
  "archMap": [
    {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]},
    {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]}],
  "flags": ["SECCOMP_FILTER_FLAG_LOG"],
  "listenerPath": "/run/seccomp.sock", "listenerMetadata": "x",
  "syscalls": [
    {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW", "args": [], "comment": "basic"},
    {"name": "open", "action": "SCMP_ACT_ALLOW", "args": null},
    {"names": ["mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
    {"names": ["chroot"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_CHROOT"]}},
    {"names": ["ptrace"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "4.8"}},
    {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "excludes": {"arches": ["arm64"]},
     "args": [{"index": 0, "value": 4294967295, "valueTwo": 0, "op": "SCMP_CMP_EQ"}]},
    {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "errno": "ENOSYS",
     "excludes": {"caps": ["CAP_SYS_ADMIN"]}}
  ]
}"#;

fn read(text: &str, options: &OciOptions) -> ParsedProfile {
    let mut sources = Sources::new();
    let source = sources.add("profile.json", text);
    let profile = oci::parse(&sources, source, options);
    // Every diagnostic can be rendered, so its places are in the text.
    render::render(&profile.parsed.diagnostics, &sources, false);
    profile
}

fn ruleset(text: &str, options: &OciOptions) -> Ruleset {
    let parsed = read(text, options).parsed;
    parsed
        .ruleset
        .unwrap_or_else(|| panic!("{:?}\n{text}", parsed.diagnostics))
}

fn diagnostics(text: &str) -> Vec<Diagnostic> {
    read(text, &OciOptions::docker(Arch::X86_64))
        .parsed
        .diagnostics
}

fn codes(text: &str) -> Vec<Code> {
    diagnostics(text)
        .into_iter()
        .map(|diagnostic| diagnostic.code)
        .collect()
}

/// The action of a ruleset for a named call.
fn answer(ruleset: &Ruleset, arch: Arch, name: &str, args: [u64; 6]) -> Action {
    let nr = syscall::number(arch, name).expect("a known call").0;
    let arch = arch.audit();
    let data = SeccompData {
        nr,
        arch,
        ip: 0,
        args,
    };
    ruleset.decide(&data).action
}

/// A profile that denies by default, with these entries.
fn profile(entries: &str) -> String {
    format!(r#"{{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{entries}]}}"#)
}

const NO_ARGS: [u64; 6] = [0; 6];

#[test]
fn architectures_follow_the_native_one() {
    for (native, expected) in [
        (Arch::X86_64, vec![Arch::X86_64, Arch::X86, Arch::X32]),
        (Arch::Aarch64, vec![Arch::Aarch64, Arch::Arm]),
        (Arch::Riscv64, vec![Arch::Riscv64]),
    ] {
        let ruleset = ruleset(SAMPLE, &OciOptions::docker(native));
        let arches: Vec<Arch> = ruleset.sections().iter().map(|s| s.arch).collect();
        assert_eq!(arches, expected);
        assert_eq!(ruleset.bad_arch, Action::KILL_THREAD);
    }
}

#[test]
fn entries_follow_capabilities_kernel_and_architecture() {
    let mut options = OciOptions::docker(Arch::X86_64);
    let check = |options: &OciOptions, name, args, expected| {
        assert_eq!(
            answer(&ruleset(SAMPLE, options), options.native, name, args),
            expected,
            "{name}"
        );
    };
    check(&options, "open", NO_ARGS, Action::ALLOW);
    check(&options, "mount", NO_ARGS, Action::errno(1));
    check(&options, "chroot", NO_ARGS, Action::ALLOW);
    check(&options, "ptrace", NO_ARGS, Action::ALLOW);
    check(&options, "clone3", NO_ARGS, Action::errno(38));
    check(
        &options,
        "personality",
        [0xffff_ffff, 0, 0, 0, 0, 0],
        Action::ALLOW,
    );
    options.capabilities = vec!["CAP_SYS_ADMIN".to_owned()];
    options.kernel = Some("4.7".parse().unwrap());
    check(&options, "mount", NO_ARGS, Action::ALLOW);
    check(&options, "chroot", NO_ARGS, Action::errno(1));
    check(&options, "ptrace", NO_ARGS, Action::errno(1));
    check(&options, "clone3", NO_ARGS, Action::errno(1));
    options.native = Arch::Aarch64;
    check(
        &options,
        "personality",
        [0xffff_ffff, 0, 0, 0, 0, 0],
        Action::errno(1),
    );
}

#[test]
fn what_concerns_the_installation_is_kept() {
    let profile = read(SAMPLE, &OciOptions::docker(Arch::X86_64));
    // Nothing in the sample notifies the listener, but crun connects to it anyway.
    let found = profile.parsed.diagnostics.iter().map(|found| found.code);
    assert_eq!(found.collect::<Vec<_>>(), [code::OCI_RUNTIMES]);
    assert_eq!(profile.installation.flags, ["SECCOMP_FILTER_FLAG_LOG"]);
    assert_eq!(
        profile.installation.listener_path.as_deref(),
        Some("/run/seccomp.sock")
    );
    assert_eq!(profile.installation.listener_metadata.as_deref(), Some("x"));
}

#[test]
fn a_container_configuration_holds_a_profile() {
    let options = OciOptions::docker(Arch::X86_64);
    let configuration = |profile: &str| {
        format!(r#"{{"ociVersion": "1.2.0", "process": {{}}, "linux": {{"seccomp": {profile}}}}}"#)
    };
    let listed = r#"{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86"],
        "syscalls": [{"names": ["write"], "action": "SCMP_ACT_ALLOW"}]}"#;
    let (alone, inside) = (
        ruleset(listed, &options),
        ruleset(&configuration(listed), &options),
    );
    assert_eq!(alone.sections().len(), inside.sections().len());
    assert_eq!(answer(&inside, Arch::X86, "write", NO_ARGS), Action::ALLOW);
    // The engines' conditions are no part of a configuration: runtimes ignore them.
    let inside = ruleset(&configuration(SAMPLE), &options);
    assert_eq!(inside.sections().len(), 1);
    assert_eq!(
        answer(&inside, Arch::X86_64, "mount", NO_ARGS),
        Action::ALLOW
    );
    assert_eq!(
        codes(r#"{"ociVersion": "1.2.0", "linux": {}}"#),
        [code::OCI_MISSING]
    );
}

#[test]
fn conditions_on_one_argument_are_alternatives_and_others_must_all_hold() {
    let both = r#"{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [
        {"index": 0, "value": 5, "op": "SCMP_CMP_GE"}, {"index": INDEX, "value": 9, "op": "SCMP_CMP_LE"}]}"#;
    let options = OciOptions::docker(Arch::X86_64);
    let any = profile(&both.replace("INDEX", "0"));
    assert_eq!(codes(&any), [code::OCI_REPEATED_INDEX]);
    let all = profile(&both.replace("INDEX", "1"));
    assert_eq!(codes(&all), []);
    let with = |a, b| [a, b, 0, 0, 0, 0];
    let (any, all) = (ruleset(&any, &options), ruleset(&all, &options));
    assert_eq!(
        answer(&any, Arch::X86_64, "read", with(1, 10)),
        Action::ALLOW
    );
    assert_eq!(
        answer(&all, Arch::X86_64, "read", with(1, 1)),
        Action::errno(1)
    );
    assert_eq!(
        answer(&all, Arch::X86_64, "read", with(5, 10)),
        Action::errno(1)
    );
    assert_eq!(
        answer(&all, Arch::X86_64, "read", with(5, 9)),
        Action::ALLOW
    );
}

#[test]
fn unknown_numbers_answer_enosys_if_asked() {
    let text = profile(r#"{"names": ["read", "openat"], "action": "SCMP_ACT_ALLOW"}"#);
    let mut options = OciOptions::docker(Arch::X86_64);
    let at = |options: &OciOptions, nr| {
        let arch = Arch::X86_64.audit();
        let data = SeccompData {
            nr,
            arch,
            ..SeccompData::default()
        };
        ruleset(&text, options).decide(&data).action
    };
    let last = syscall::last(Arch::X86_64).expect("there are calls").0;
    let openat = syscall::number(Arch::X86_64, "openat")
        .expect("a known call")
        .0;
    for (tail, above_named, above_known) in [
        (EnosysTail::None, 1, 1),
        (EnosysTail::Runc, 38, 38),
        (EnosysTail::Table, 1, 38),
    ] {
        options.enosys_tail = tail;
        assert_eq!(at(&options, openat), Action::ALLOW);
        assert_eq!(at(&options, openat - 1), Action::errno(1));
        assert_eq!(
            at(&options, openat + 1),
            Action::errno(above_named),
            "{tail:?}"
        );
        assert_eq!(
            at(&options, last + 1),
            Action::errno(above_known),
            "{tail:?}"
        );
        // Not a number of x86_64, so it gets the action for other architectures.
        assert_eq!(at(&options, Arch::X32_BIT), Action::KILL_THREAD);
        assert_eq!(at(&options, u32::MAX), Action::errno(1));
    }
}

#[test]
fn contradictions_and_entries_without_effect_name_both() {
    let entry =
        |action, args| format!(r#"{{"names": ["read"], "action": "{action}", "args": [{args}]}}"#);
    let five = r#"{"index": 0, "value": 5, "op": "SCMP_CMP_EQ"}"#;
    let (allow, kill) = ("SCMP_ACT_ALLOW", "SCMP_ACT_KILL");
    for (first, second, expected) in [
        (entry(allow, five), entry(kill, five), code::OCI_CONFLICT),
        (entry(allow, ""), entry(kill, ""), code::OCI_NO_EFFECT),
        (entry(allow, ""), entry(kill, five), code::OCI_NO_EFFECT),
        (entry(allow, five), entry(kill, ""), code::OCI_NO_EFFECT),
    ] {
        let found = diagnostics(&profile(&format!("{first}, {second}")));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].code, expected, "{first} {second}");
        assert_eq!(found[0].labels.len(), 2);
        assert_eq!(found[0].is_error(), expected == code::OCI_CONFLICT);
    }
}

#[test]
fn a_combination_that_hangs_libseccomp_is_refused() {
    let entry = |second| {
        format!(
            r#"{{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [
            {{"index": 0, "value": 10, "op": "SCMP_CMP_GT"}},
            {{"index": 1, "value": {second}, "op": "SCMP_CMP_EQ"}}]}}"#
        )
    };
    let text = profile(&format!("{}, {}", entry(5), entry(0x1_0000_0007_u64)));
    assert_eq!(codes(&text), [code::OCI_ENDLESS]);
}

#[test]
fn mistakes_are_all_reported_with_what_was_meant() {
    let text = r#"{"defaultAction": "SCMP_ACT_ALOW", "flag": [], "syscalls": [
        {"names": ["raed"], "action": "SCMP_ACT_KILL", "args": [
            {"index": 6, "value": -1, "op": "SCMP_CMP_EQUAL"},
            {"index": "0", "value": 18446744073709551616, "op": "SCMP_CMP_EQ"}]},
        {"action": "SCMP_ACT_KILL"}, 7,
        {"names": [], "action": "SCMP_ACT_ERRNO", "errnoRet": 4095}]}"#;
    let found = diagnostics(text);
    let count = |code| {
        found
            .iter()
            .filter(|diagnostic| diagnostic.code == code)
            .count()
    };
    assert_eq!(count(code::OCI_UNKNOWN_NAME), 2, "{found:#?}");
    assert_eq!(count(code::OCI_UNKNOWN_MEMBER), 1);
    assert_eq!(count(code::OCI_RANGE), 4);
    assert_eq!(count(code::OCI_TYPE), 2);
    assert_eq!(count(code::OCI_RUNTIMES), 2);
    let helps: Vec<&str> = found.iter().filter_map(|d| d.help.as_deref()).collect();
    for help in ["did you mean `SCMP_ACT_ALLOW`?", "did you mean `flags`?"] {
        assert!(helps.contains(&help), "{helps:?}");
    }
}

#[test]
fn members_in_the_wrong_case_are_errors_because_engines_disagree() {
    let entry = r#"{"names": ["read"], "action": "SCMP_ACT_ALLOW", "KEY": []}"#;
    // Go also folds the long s and the kelvin sign, and escaped characters.
    for key in ["Args", "ARGS", "arg\u{17f}", "\\u0041rgs"] {
        let found = diagnostics(&profile(&entry.replace("KEY", key)));
        assert_eq!(found.len(), 1, "{key}: {found:#?}");
        assert_eq!(found[0].code, code::OCI_MEMBER_CASE, "{key}");
        assert!(found[0].is_error());
        assert_eq!(found[0].help.as_deref(), Some("write `args`"));
    }
    let both = entry.replace("\"KEY\": []", r#""args": [], "Args": []"#);
    assert_eq!(codes(&profile(&both)), [code::OCI_MEMBER_CASE]);
    let profile = profile("");
    let configuration = format!(r#"{{"linux": {{"seccomp": {profile}, "Seccomp": null}}}}"#);
    assert_eq!(codes(&configuration), [code::OCI_MEMBER_CASE]);
}

#[test]
fn an_errno_for_a_default_that_takes_none_is_ignored_by_some_runtimes() {
    let with = |action| format!(r#"{{"defaultAction": "{action}", "defaultErrnoRet": 38}}"#);
    for action in ["SCMP_ACT_ERRNO", "SCMP_ACT_TRACE"] {
        assert_eq!(codes(&with(action)), []);
    }
    for action in ["SCMP_ACT_ALLOW", "SCMP_ACT_KILL"] {
        let found = diagnostics(&with(action));
        assert_eq!(found.len(), 1, "{action}");
        assert_eq!(found[0].code, code::OCI_RUNTIMES);
        assert!(!found[0].is_error(), "{action}");
    }
}

#[test]
fn what_all_names_begin_with_makes_no_name_similar() {
    let help = |flag| {
        let text = format!(r#"{{"defaultAction": "SCMP_ACT_ALLOW", "flags": ["{flag}"]}}"#);
        let [found] = diagnostics(&text).try_into().expect("one mistake");
        found.help
    };
    assert_eq!(help("SECCOMP_FILTER_FLAG_NEW_LISTENER"), None);
    for near in ["SECCOMP_FILTER_FLAG_TSINC", "SECOMP_FILTER_FLAG_TSYNC"] {
        let expected = "did you mean `SECCOMP_FILTER_FLAG_TSYNC`?";
        assert_eq!(help(near).as_deref(), Some(expected));
    }
}

#[test]
fn unknown_calls_are_warnings_and_errors_if_strict() {
    let text = profile(r#"{"names": ["raed", "read"], "action": "SCMP_ACT_ALLOW"}"#);
    let mut options = OciOptions::docker(Arch::X86_64);
    let lenient = read(&text, &options).parsed;
    assert!(lenient.ruleset.is_some());
    assert_eq!(lenient.diagnostics[0].code, code::OCI_UNKNOWN_SYSCALL);
    assert_eq!(
        lenient.diagnostics[0].help.as_deref(),
        Some("did you mean `read`?")
    );
    options.strict = true;
    assert_eq!(read(&text, &options).parsed.ruleset, None);
}

#[test]
fn text_that_is_no_profile_is_refused_with_the_reason() {
    let deep = "[".repeat(100_000);
    for (text, expected) in [
        ("", code::JSON_SYNTAX),
        ("{", code::JSON_SYNTAX),
        ("nonsense", code::JSON_SYNTAX),
        ("{} {}", code::JSON_SYNTAX),
        (r#"{"defaultAction": "SCMP_ACT_ALLOW",}"#, code::JSON_SYNTAX),
        (
            r#"{"defaultAction": "SCMP_ACT_ALLOW" /* no */}"#,
            code::JSON_SYNTAX,
        ),
        (r"{'defaultAction': 'SCMP_ACT_ALLOW'}", code::JSON_SYNTAX),
        ("[]", code::OCI_TYPE),
        ("\"text\"", code::OCI_TYPE),
        ("null", code::OCI_TYPE),
        ("{}", code::OCI_MISSING),
        (
            r#"{"defaultAction": "SCMP_ACT_ALLOW", "defaultAction": "SCMP_ACT_KILL"}"#,
            code::OCI_DUPLICATE_KEY,
        ),
        (r#"{"defaultAction": 1}"#, code::OCI_TYPE),
        (&deep, code::OCI_NESTING),
    ] {
        let shown: String = text.chars().take(80).collect();
        assert_eq!(codes(text), [expected], "{shown}");
    }
}

#[test]
fn large_values_are_exact() {
    for value in [u64::MAX, (1 << 63) + 1, (1 << 53) + 1] {
        let text = profile(&format!(
            r#"{{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [
            {{"index": 5, "value": {value}, "op": "SCMP_CMP_EQ"}}]}}"#
        ));
        let ruleset = ruleset(&text, &OciOptions::docker(Arch::X86_64));
        let with = |value| answer(&ruleset, Arch::X86_64, "read", [0, 0, 0, 0, 0, value]);
        assert_eq!(with(value), Action::ALLOW);
        assert_eq!(with(value - 1), Action::errno(1));
    }
}

#[test]
fn damaged_profiles_never_panic() {
    damaged_never_panics(SAMPLE);
}

#[test]
fn damage_to_dockers_profile_never_panics() {
    damaged_never_panics(&corpus::text("docker/docker-default-x86_64.json"));
}

fn damaged_never_panics(original: &str) {
    let mut rng = Rng::new(0x0c1);
    for _ in 0..400 {
        let mut bytes = original.as_bytes().to_vec();
        for _ in 0..rng.range(1..=4) {
            damage(&mut bytes, &mut rng);
        }
        if let Ok(text) = String::from_utf8(bytes) {
            let parsed = read(&text, &OciOptions::docker(Arch::X86_64)).parsed;
            let failed = parsed.diagnostics.iter().any(Diagnostic::is_error);
            assert_eq!(parsed.ruleset.is_none(), failed);
        }
    }
}

/// Cuts, duplicates or overwrites a piece.
fn damage(bytes: &mut Vec<u8>, rng: &mut Rng) {
    if bytes.is_empty() {
        return;
    }
    let at = rng.index(bytes.len());
    let end = (at + rng.index(40)).min(bytes.len());
    match rng.range(0..=4) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => {
            let piece = bytes[at..end].to_vec();
            let to = rng.index(bytes.len());
            bytes.splice(to..to, piece);
        }
        _ => bytes[at] = *rng.choose(b"{}[],:\"0919-.eE \\nutSCMP_"),
    }
}

#[test]
fn overlapping_entries_follow_libseccomps_order() {
    let entry = |errno, args: &[(usize, &str, u64)]| {
        let args: Vec<String> = args
            .iter()
            .map(|(index, op, value)| {
                format!(r#"{{"index": {index}, "op": "SCMP_CMP_{op}", "value": {value}}}"#)
            })
            .collect();
        let args = args.join(", ");
        format!(
            r#"{{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": {errno}, "args": [{args}]}}"#
        )
    };
    let decide = |first: &str, second: &str, (a, b)| {
        let text = profile(&format!("{first}, {second}"));
        let ruleset = ruleset(&text, &OciOptions::docker(Arch::X86_64));
        answer(&ruleset, Arch::X86_64, "read", [a, b, 0, 0, 0, 0]).data
    };
    let in_any_order = [
        (
            entry(11, &[(0, "EQ", 5)]),
            entry(12, &[(1, "EQ", 7)]),
            (5, 7),
        ),
        (
            entry(11, &[(0, "GT", 10)]),
            entry(12, &[(0, "EQ", 20)]),
            (20, 0),
        ),
        (
            entry(11, &[(0, "GT", 10)]),
            entry(12, &[(0, "GT", 20)]),
            (25, 0),
        ),
        (
            entry(11, &[(0, "LT", 20)]),
            entry(12, &[(0, "LT", 10)]),
            (5, 0),
        ),
        (
            entry(11, &[(0, "GE", 4)]),
            entry(12, &[(0, "LE", 6)]),
            (5, 0),
        ),
    ];
    for (loses, wins, args) in &in_any_order {
        assert_eq!(decide(loses, wins, *args), 12, "{wins}");
        assert_eq!(decide(wins, loses, *args), 12, "{wins}");
    }
    let (all, short) = (entry(11, &[]), entry(12, &[(0, "EQ", 5)]));
    let long = entry(13, &[(0, "EQ", 5), (1, "EQ", 7)]);
    assert_eq!(decide(&all, &short, (5, 0)), 11);
    assert_eq!(decide(&short, &all, (5, 0)), 11);
    assert_eq!(decide(&short, &long, (5, 7)), 12);
    let refused = profile(&format!("{long}, {short}"));
    assert_eq!(codes(&refused), [code::OCI_CONFLICT]);
}

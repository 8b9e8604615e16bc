//! Minijail's policies compared with programs by minijail, and constants with its table.

use serde_json::Value;
use tamis_abi::{Action, Arch, consts, syscall};
use tamis_diag::{Sources, render};
use tamis_policy::front_end::ParsedPolicy;
use tamis_policy::loader::{Loaded, NoIncludes};
use tamis_policy::minijail::{self, DefaultAction, Dialect, MinijailOptions, Settings};
use tamis_rules::Ruleset;
use tamis_testkit::corpus::{self, texts};

fn read(text: &str, settings: Settings) -> Ruleset {
    let mut sources = Sources::new();
    let root = sources.add("x.policy", text);
    let options = MinijailOptions {
        settings,
        ..MinijailOptions::new(Arch::X86_64)
    };
    let policy = minijail::parse(&mut sources, root, &mut NoIncludes, &options);
    let messages = render::render(&policy.parsed.diagnostics, &sources, false);
    policy
        .parsed
        .ruleset
        .unwrap_or_else(|| panic!("{messages}"))
}

fn settings(default: &str) -> Settings {
    Settings {
        dialect: Some(Dialect::Python),
        default_action: Some(default.parse().expect("an action")),
        ..Settings::default()
    }
}

#[test]
fn policies_mean_what_the_compile_tool_makes_of_them() {
    let all = ["linear", "bst", "linear-freq", "bst-freq"];
    let cases = [
        ("docker", "peers/docker.pol.json", "return EPERM", ""),
        ("gappy302", "peers/gappy302.pol.json", "return EPERM", ""),
        ("firecracker", "peers/fc-vmm.pol.json", "trap", "-vmm"),
    ];
    for (program, policy, default, suffix) in cases {
        let text = texts::minijail(policy);
        let ruleset = read(&text, settings(default));
        for kind in all {
            let name = format!("peers/{program}-minijail-{kind}{suffix}.bpf");
            assert!(corpus::is_program(&ruleset, &name), "{name}");
        }
    }
    let ruleset = read(&texts::minijail_306(), settings("return 1"));
    for kind in all {
        let name = format!("peers/allow306-minijail-{kind}.bpf");
        assert!(corpus::is_program(&ruleset, &name), "{name}");
    }
}

#[test]
fn policies_mean_what_the_library_makes_of_them() {
    let settings = Settings {
        dialect: Some(Dialect::C),
        ..Settings::default()
    };
    let ruleset = read(&texts::minijail_306(), settings.clone());
    assert!(corpus::is_program(
        &ruleset,
        "peers/allow306-minijail-c.bpf"
    ));
    let text = texts::minijail("peers/fc-vmm.pol.json");
    let ruleset = read(&text, settings);
    assert!(corpus::is_program(
        &ruleset,
        "peers/firecracker-minijail-c-vmm.bpf"
    ));
}

#[test]
fn constants_have_the_values_of_minijails_table() {
    let text = corpus::text("minijail/constants.json");
    let table: Value = serde_json::from_str(&text).expect("the table is JSON");
    let constants = table["constants"].as_object().expect("an object");
    let mut unknown = Vec::new();
    let mut differing = Vec::new();
    for (name, value) in constants {
        let value = value
            .as_i64()
            .map_or_else(|| value.as_u64(), |signed| Some(signed as u64));
        match consts::value(Arch::X86_64, name) {
            None => unknown.push(name),
            ours if ours != value => differing.push((name, ours, value)),
            Some(_) => {}
        }
    }
    let count = constants.len();
    println!("{count} constants, {} unknown: {unknown:?}", unknown.len());
    // For the kernel it is the number of signals, for the C library one more than the last.
    assert_eq!(differing, [(&"NSIG".to_owned(), Some(32), Some(65))]);
    let calls = table["syscalls"].as_object().expect("an object");
    for (name, number) in calls {
        let ours = syscall::number(Arch::X86_64, name).map(|nr| u64::from(nr.0));
        assert_eq!(ours, number.as_u64(), "{name}");
    }
}

/// Reads a policy of the corpus. Its includes are absolute; the files are in its directory.
fn corpus_policy(name: &str, arch_json: Option<minijail::ArchJson>) -> (ParsedPolicy, String) {
    let mut sources = Sources::new();
    let root = sources.add(name, corpus::text(name));
    let mut load = |path: &str, _: &str| {
        let base = path.rsplit('/').next().expect("a path has a last part");
        let name = format!("minijail/{base}");
        let text = corpus::text(&name);
        Ok(Loaded { name, text })
    };
    let mut options = MinijailOptions::new(Arch::X86_64);
    options.settings.arch_json = arch_json;
    let policy = minijail::parse(&mut sources, root, &mut load, &options);
    let messages = render::render(&policy.parsed.diagnostics, &sources, false);
    (policy, messages)
}

#[test]
fn every_policy_of_the_corpus_is_read() {
    let names = corpus::files("minijail", ".policy");
    for name in names {
        let (policy, messages) = corpus_policy(&name, None);
        assert!(policy.parsed.ruleset.is_some(), "{name}\n{messages}");
    }
}

#[test]
fn the_tools_table_changes_nothing_about_the_policies_of_the_corpus() {
    let text = corpus::text("minijail/constants.json");
    let table = minijail::ArchJson {
        name: "constants.json".to_owned(),
        text,
    };
    for name in corpus::files("minijail", ".policy") {
        let (with, messages) = corpus_policy(&name, Some(table.clone()));
        let (without, _) = corpus_policy(&name, None);
        assert!(with.parsed.ruleset.is_some(), "{name}\n{messages}");
        assert_eq!(with.parsed.ruleset, without.parsed.ruleset, "{name}");
    }
}

/// The codes of the errors in a policy.
fn mistakes(text: &str) -> Vec<&'static str> {
    let mut sources = Sources::new();
    let root = sources.add("x.policy", text);
    // Every path is another file with the same text.
    let mut load = |path: &str, from: &str| {
        let name = format!("{from}{path}");
        let text = text.to_owned();
        Ok(Loaded { name, text })
    };
    let policy = minijail::parse(
        &mut sources,
        root,
        &mut load,
        &MinijailOptions::new(Arch::X86_64),
    );
    let diagnostics = policy.parsed.diagnostics;
    render::render(&diagnostics, &sources, false);
    assert!(policy.parsed.ruleset.is_none());
    diagnostics.iter().map(|found| found.code.id).collect()
}

#[test]
fn what_would_fill_the_memory_is_refused() {
    let names: Vec<&str> = syscall::all(Arch::X86_64).map(|(_, name)| name).collect();
    let group = names.join(", ");
    let many_filters = vec!["arg0 == 1"; 200_000].join(", ");
    let wide = format!("{{{group}}}: {{{many_filters}}}\n");
    assert_eq!(mistakes(&wide), ["TM0910"]);
    let nested = format!("read: arg0 == {}1\n", "(".repeat(100_000));
    assert_eq!(mistakes(&nested), ["TM0910"]);
    let deep = mistakes("@include ./a\nread: 1\n");
    assert!(deep.contains(&"TM0910"), "{deep:?}");
    let fan = mistakes(&"@include ./a\n".repeat(50));
    assert!(fan.contains(&"TM0910") && fan.len() < 200, "{fan:?}");
    let same = mistakes(&"read: 1\n".repeat(1_000_000));
    assert!(same.len() <= 100 && same.contains(&"TM0911"), "{same:?}");
    let broken = mistakes(&"read 1\n".repeat(1_000_000));
    assert_eq!(broken, ["TM0901"; 100]);
    let large = mistakes(&"# comment\n".repeat(2_000_000));
    assert_eq!(large, ["TM0001"]);
}

#[test]
fn default_actions_are_words_of_minijail() {
    assert_eq!("kill".parse(), Ok(DefaultAction::Kill));
    assert_eq!(
        "return 0x26".parse(),
        Ok(DefaultAction::Plain(Action::errno(38)))
    );
    assert!("return EPREM".parse::<DefaultAction>().is_err());
    assert!("return EPOLLIN".parse::<DefaultAction>().is_err());
    assert!("deny".parse::<DefaultAction>().is_err());
}

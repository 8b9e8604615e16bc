//! Named options reach the front end; unfit ones are rejected with the available ones.

use tamis_abi::Arch;
use tamis_policy::loader::{self, NoIncludes};

use super::*;
use crate::{Input, LoadOptions, load};

const POLICY: &str = "read: 1\nwrite: arg0 == 1\n";

fn refused(named: &[&str], is_shared: bool) -> String {
    let mut options = LoadOptions::new(Arch::X86_64);
    options.named = Assignments {
        list: named.iter().map(|text| Assignment::parse(text)).collect(),
        is_shared,
    };
    let error = load(Input::new("a.policy", POLICY), &options, &mut NoIncludes).unwrap_err();
    error.to_string()
}

#[test]
fn a_name_sets_what_the_type_sets() {
    let read = |options: &LoadOptions| {
        let loaded = load(Input::new("a.policy", POLICY), options, &mut NoIncludes).unwrap();
        loaded.policy().unwrap().ruleset.to_string()
    };
    let mut typed = LoadOptions::new(Arch::X86_64);
    let by_default = read(&typed);
    typed.policy.minijail.default_action = Some("log".parse().unwrap());
    let mut named = LoadOptions::new(Arch::X86_64);
    named.named.list = vec![Assignment::parse("default-action=log")];
    assert_eq!(read(&typed), read(&named));
    assert_ne!(read(&named), by_default);
}

/// The capability decides whether the profile allows a call.
#[test]
fn a_list_by_name_replaces_one_by_type() {
    const PROFILE: &str = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
        {"names": ["mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}}]}"#;
    let allows = |list: &[&str]| {
        let mut options = LoadOptions::new(Arch::X86_64);
        options.policy.oci.capabilities = Some(vec!["CAP_SYS_ADMIN".to_owned()]);
        options.named.list = list.iter().map(|text| Assignment::parse(text)).collect();
        let loaded = load(Input::new("a.json", PROFILE), &options, &mut NoIncludes).unwrap();
        let policy = loaded.into_policy("").unwrap();
        let nr = tamis_abi::syscall::number(Arch::X86_64, "mount").unwrap().0;
        let data = tamis_abi::SeccompData {
            nr,
            arch: Arch::X86_64.audit(),
            ..Default::default()
        };
        policy.ruleset.decide(&data).action == tamis_abi::Action::ALLOW
    };
    assert!(allows(&[]));
    assert!(!allows(&["cap="]));
    assert!(!allows(&["cap=CHOWN", "cap=KILL"]));
    assert!(allows(&["cap=CHOWN", "cap=SYS_ADMIN"]));
}

#[test]
fn an_option_of_another_language_names_both_and_their_options() {
    let alone = refused(&["cap=SYS_ADMIN"], false);
    for part in [
        "minijail policies have no option `cap`",
        "`dialect`",
        "OCI profiles",
        "--from oci",
    ] {
        assert!(alone.contains(part), "{part}: {alone}");
    }
    let mut options = LoadOptions::new(Arch::X86_64);
    options.named = Assignments {
        list: vec![Assignment::new("cap", "SYS_ADMIN")],
        is_shared: true,
    };
    let loaded = load(Input::new("a.policy", POLICY), &options, &mut NoIncludes).unwrap();
    let none_takes_it = options.named.check_kinds([loaded.kind()].into_iter());
    let among = none_takes_it.unwrap_err().to_string();
    assert!(among.contains("no input is in a language"), "{among}");
    let oci = InputKind::from_name("oci").unwrap();
    assert!(
        options
            .named
            .check_kinds([loaded.kind(), oci].into_iter())
            .is_ok()
    );
}

#[test]
fn unknown_names_and_values_are_refused_alone_and_shared() {
    for is_shared in [false, true] {
        assert!(refused(&["dialct=c"], is_shared).contains("did you mean `dialect`"));
        assert!(refused(&["dialect=d"], is_shared).contains("there are c, python"));
        assert!(refused(&["dialect"], is_shared).contains("write `dialect=c|python`"));
        assert!(refused(&["denylist=yes"], is_shared).contains("`true` or `false`"));
        let twice = refused(&["dialect=c", "dialect=python"], is_shared);
        assert!(twice.contains("given twice"), "{twice}");
    }
}

#[test]
fn files_of_options_come_through_the_loader() {
    let mut asked = Vec::new();
    let mut loader = |path: &str, from: &str| -> Result<loader::Loaded, String> {
        asked.push((path.to_owned(), from.to_owned()));
        Err("not here".to_owned())
    };
    let mut options = LoadOptions::new(Arch::X86_64);
    let table = Assignment::new("arch-json", "constants.json");
    options.named.list = vec![table.relative_to(Path::new("tables"))];
    let error = load(Input::new("a.policy", POLICY), &options, &mut loader).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot read tables/constants.json: not here")
    );
    assert_eq!(asked, [("tables/constants.json".to_owned(), String::new())]);
}

#[test]
fn a_side_replaces_what_is_for_both() {
    let both = Assignments {
        list: vec![
            Assignment::new("dialect", "c"),
            Assignment::new("thread", "a"),
        ],
        is_shared: true,
    };
    let side = both.replaced_by(&[Assignment::new("dialect", "python")]);
    let names: Vec<(&str, Option<&str>)> = side
        .list
        .iter()
        .map(|own| (own.name.as_str(), own.value.as_deref()))
        .collect();
    assert_eq!(names, [("thread", Some("a")), ("dialect", Some("python"))]);
}

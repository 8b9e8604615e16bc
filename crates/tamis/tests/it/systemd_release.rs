//! Which systemd a unit is read as by where no option names one: that of the machine, as it says itself.

use std::fs;
use std::process::{Command, Output};

use tamis_policy::systemd::SystemdVersion;
use tamis_testkit::scratch::Scratch;
use tamis_testkit::systemd::Systemd;

/// Two units whose meaning depends on the release.
const UNITS: [(&str, &str); 2] = [
    (
        "allow.service",
        "[Service]\nSystemCallFilter=@system-service\n",
    ),
    (
        "deny.service",
        "[Service]\nSystemCallFilter=~@file-system\n",
    ),
];

/// The result of `tamis` in a folder with the units.
fn tamis(args: &[&str]) -> Output {
    let folder = Scratch::new("systemd-release").expect("a folder");
    for (name, text) in UNITS {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    let mut command = Command::new(crate::TAMIS);
    command.current_dir(folder.path());
    command.args(args).output().expect("tamis runs")
}

/// The release of the machine's systemd, or the newest known, with its name in the note.
fn expected() -> (SystemdVersion, &'static str) {
    let Ok(text) = Systemd::version() else {
        return (SystemdVersion::newest(), "the newest known");
    };
    let inside = text.split(['(', ')']).nth(1).unwrap_or_default();
    let version = inside.parse().expect("a release");
    (version, "this machine's")
}

#[test]
fn the_installed_release_counts_and_is_said_once() {
    let (version, whose) = expected();
    let output = tamis(&["diff", "allow.service", "deny.service", "--arch", "x86_64"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let note = format!("read as by systemd {} ({whose})", version.known());
    assert_eq!(said.matches(&note).count(), 1, "{said}");
    assert_eq!(said.matches("TM1108").count(), 1, "{said}");
}

#[test]
fn a_release_that_is_named_isnt_said_and_gives_the_same_filter() {
    let (version, _) = expected();
    for (unit, _) in UNITS {
        let args = ["compile", unit, "--arch", "x86_64", "--emit", "rules"];
        let option = format!("--systemd={version}");
        let named = tamis(&[args.as_slice(), &[&option]].concat());
        assert_eq!(String::from_utf8_lossy(&named.stderr), "");
        assert_eq!(named.stdout, tamis(&args).stdout, "{unit} of {version}");
    }
}

#[test]
fn the_document_has_the_release() {
    let (version, whose) = expected();
    let output = tamis(&[
        "explain",
        "--json",
        "allow.service",
        "read",
        "--arch",
        "x86_64",
    ]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let said = &document["diagnostics"][0];
    assert_eq!(said["code"], "TM1108");
    let message = format!("read as by systemd {} ({whose})", version.known());
    assert_eq!(said["message"], message.as_str());
}

//! From a recording to a policy to a run under it: `record --values`, `learn`, `run`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tamis_testkit::child;
use tamis_testkit::skip;

fn tamis(args: &[&str]) -> Output {
    let mut tamis = Command::new(crate::TAMIS);
    tamis.args(args).stdin(Stdio::null());
    child::output(&mut tamis).expect("it starts")
}

#[test]
fn a_learned_policy_allows_what_was_recorded_and_no_more() {
    skip::unless_live();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("learned");
    fs::create_dir_all(&folder).expect("a folder");
    let path = |name: &str| folder.join(name).display().to_string();
    let (profile, policy) = (path("profile.json"), path("policy.tamis"));
    let _ = fs::remove_file(&policy);
    let seen = ["--", "sh", "-c", "cat /dev/null && echo seen"];
    let record = ["record", "--values", "-q", "-o", &profile];
    let recorded = tamis(&[&record[..], &seen].concat());
    assert!(recorded.status.success(), "{recorded:?}");
    let learned = tamis(&["learn", &profile, "-o", &policy]);
    assert!(learned.status.success(), "{learned:?}");

    let run = ["run", "-p", &policy];
    let again = tamis(&[&run[..], &seen].concat());
    assert!(again.status.success(), "{again:?}");
    assert_eq!(again.stdout, b"seen\n");
    let folder_of_other = path("made");
    let _ = fs::remove_dir(&folder_of_other);
    let script = format!("mkdir {folder_of_other}");
    let other = tamis(&[&run[..], &["--", "sh", "-c", &script]].concat());
    assert!(!other.status.success(), "{other:?}");
    assert!(!PathBuf::from(folder_of_other).exists());
}

//! `tamis bpf dump` on processes that `tamis run` filters.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tamis_testkit::skip::{self, Need};

use crate::TAMIS;

fn tamis(args: &[&str]) -> Output {
    Command::new(TAMIS)
        .args(args)
        .output()
        .expect("tamis starts")
}

/// A shell under two filters that has printed its process ID and waits for the end of its input.
fn filtered(first: &Path, second: &Path) -> (Child, String) {
    let mut child = Command::new(TAMIS)
        .args(["run", "--quiet", "--no-explain", "-p"])
        .arg(first)
        .arg("-p")
        .arg(second)
        .args(["--", "sh", "-c", "echo $$; read end"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("tamis starts");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("it is captured");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("it tells");
    (child, line.trim().to_owned())
}

/// The numbers of the filters in a document about a process.
fn filters_in_document(pid: &str, options: &[&str]) -> Vec<u64> {
    let output = tamis(&[&["bpf", "dump", "--pid", pid, "--json"], options].concat());
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let filters = document["filters"].as_array().expect("an array").iter();
    let index = |filter: &Value| filter["index"].as_u64().expect("a number");
    filters.map(index).collect()
}

/// Asserts that the documents about two filters have their numbers.
fn assert_numbered(pid: &str) {
    assert_eq!(filters_in_document(pid, &["--index", "1"]), [1]);
    assert_eq!(filters_in_document(pid, &[]), [0, 1]);
}

#[test]
fn dumped_filters_are_the_installed_ones_and_decompile() {
    skip::unless_live();
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dump");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).unwrap();
    let (first, second) = (work.join("first.bpf"), work.join("second.bpf"));
    for (path, policy) in [
        (
            &first,
            "default allow\nbad-arch allow\nerrno(EPERM) reboot\n",
        ),
        (
            &second,
            "default allow\nbad-arch allow\nerrno(ENOSYS) reboot, swapon\n",
        ),
    ] {
        let source = path.with_extension("tamis");
        fs::write(&source, policy).unwrap();
        let (source, path) = (source.to_str().unwrap(), path.to_str().unwrap());
        let output = tamis(&["compile", source, "-o", path]);
        assert!(output.status.success(), "{output:?}");
    }
    let (mut child, pid) = filtered(&first, &second);
    let folder = work.join("filters");
    let output = tamis(&["bpf", "dump", "--pid", &pid, "-o", folder.to_str().unwrap()]);
    if output.status.code() == Some(4) {
        skip::because(Need::Live, String::from_utf8_lossy(&output.stderr));
    } else {
        assert!(output.status.success(), "{output:?}");
        assert_eq!(
            fs::read(folder.join("00.bpf")).unwrap(),
            fs::read(&first).unwrap()
        );
        assert_eq!(
            fs::read(folder.join("01.bpf")).unwrap(),
            fs::read(&second).unwrap()
        );
        let newest = tamis(&["bpf", "dump", "--pid", &pid, "--index", "1"]);
        assert_eq!(newest.stdout, fs::read(&second).unwrap());
        assert_numbered(&pid);
        let listing = tamis(&["bpf", "dump", "--pid", &pid]);
        let listing = String::from_utf8(listing.stdout).unwrap();
        assert_eq!(listing.lines().count(), 2, "{listing}");
        let none = tamis(&["bpf", "dump", "--pid", &pid, "--index", "2"]);
        assert_eq!(none.status.code(), Some(2), "{none:?}");
        let dumped = ["00.bpf", "01.bpf"].map(|name| folder.join(name));
        let [first, second] = dumped.each_ref().map(|path| path.to_str().unwrap());
        let policy = tamis(&["bpf", "decompile", first, second]);
        let policy = String::from_utf8(policy.stdout).unwrap();
        // Of two errors the newest filter's wins.
        assert!(
            policy.ends_with("\nerrno(ENOSYS) reboot, swapon\n"),
            "{policy}"
        );
        let fused = work.join("fused.bpf");
        let (folder, fused) = (folder.to_str().unwrap(), fused.to_str().unwrap());
        let output = tamis(&["optimize", "--pid", &pid, "-o", fused]);
        assert!(output.status.success(), "{output:?}");
        let output = tamis(&["prove", folder, fused]);
        assert!(output.status.success(), "{output:?}");
    }
    drop(child.stdin.take());
    // `read` answers 1 at the end of the input.
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn no_filters_are_no_folder() {
    let own = std::process::id().to_string();
    let listing = tamis(&["bpf", "dump", "--pid", &own]);
    if !String::from_utf8_lossy(&listing.stdout).contains("has no filters") {
        skip::because(Need::Live, "the tests have filters, or may not read them");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dump-of-none");
    let _ = fs::remove_dir_all(&folder);
    let output = tamis(&["bpf", "dump", "--pid", &own, "-o", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!folder.exists());
}

#[test]
fn no_such_process_is_wrong_input() {
    let output = tamis(&["bpf", "dump", "--pid", "2147483647"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("there is no such process"), "{error}");
}

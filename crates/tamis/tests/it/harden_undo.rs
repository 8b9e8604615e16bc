//! `tamis harden --undo` from every state that the files may be in.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tamis_testkit::toolchains::stderr_text;

use crate::harden::{PLAIN, exit_of, folder, tamis};

/// A root with a hardened unit `x`, and the folder of its drop-ins.
fn hardened(name: &str) -> (PathBuf, PathBuf) {
    let root = folder(name);
    let (code, told) = exit_of(&root, PLAIN, &[]);
    assert_eq!(code, Some(0), "{told}");
    let folder = root.join("etc/systemd/system/x.service.d");
    (root, folder)
}

/// The exit code and output of `--undo`.
fn undo(root: &Path) -> (Option<i32>, String) {
    let output = tamis(&["harden", "x", "--root", root.to_str().unwrap(), "--undo"]);
    (output.status.code(), stderr_text(&output))
}

#[test]
fn undo_leaves_what_was_there() {
    let root = folder("undo");
    let units = root.join("etc/systemd/system");
    let unit = "[Service]\nExecStart=/bin/true\nSystemCallFilter=@system-service\n";
    fs::write(units.join("x.service"), unit).unwrap();
    fs::create_dir(units.join("x.service.d")).unwrap();
    fs::write(units.join("x.service.d/10.conf"), "[Service]\nNice=5\n").unwrap();
    fs::write(root.join("tamis-exec"), "").unwrap();
    let run = |options: &[&str]| {
        let root = root.to_str().unwrap();
        let common = ["harden", "x", "--root", root, "--installer", "/tamis-exec"];
        tamis(&[&common[..], options].concat())
    };
    let drop_in = || fs::read_to_string(units.join("x.service.d/zz-tamis.conf"));
    assert!(run(&[]).status.success());
    let first = drop_in().unwrap();
    // Its own drop-in is not read.
    assert!(run(&[]).status.success());
    assert_eq!(drop_in().unwrap(), first);
    assert!(run(&["--undo"]).status.success());
    let names: Vec<_> = fs::read_dir(units.join("x.service.d"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(names.len(), 1);
    fs::write(units.join("x.service.d/zz-tamis.conf"), "[Service]\n").unwrap();
    assert_eq!(run(&["--undo"]).status.code(), Some(2));
    assert!(drop_in().is_ok());
}

/// The states of a folder of drop-ins.
type Change<'a> = &'a dyn Fn(&Path);

/// The states, the output of `--undo`, and the remaining files.
#[test]
fn undo_works_from_whatever_is_left() {
    let unit = |folder: &Path| folder.parent().unwrap().join("x.service");
    let cases: [(&str, Change<'_>, &str); 7] = [
        ("whole", &|_| {}, "are removed"),
        (
            "no-filter",
            &|folder| fs::remove_file(folder.join("tamis.bpf")).unwrap(),
            "tamis.bpf was gone already",
        ),
        (
            "no-drop-in",
            &|folder| fs::remove_file(folder.join("zz-tamis.conf")).unwrap(),
            "there was no ",
        ),
        (
            "no-unit",
            &|folder| fs::remove_file(unit(folder)).unwrap(),
            "are removed",
        ),
        (
            "masked",
            &|folder| {
                fs::remove_file(unit(folder)).unwrap();
                symlink("/dev/null", unit(folder)).unwrap();
            },
            "are removed",
        ),
        (
            "edited",
            &|folder| {
                let path = folder.join("zz-tamis.conf");
                let text = fs::read_to_string(&path).unwrap();
                fs::write(path, format!("# mine\n{text}Nice=5\n")).unwrap();
            },
            "these lines go with it: # mine; Nice=5",
        ),
        (
            "no-text",
            &|folder| fs::write(folder.join("tamis.bpf"), "").unwrap(),
            "are removed",
        ),
    ];
    for (name, change, expected) in cases {
        let (root, folder) = hardened(&format!("undo-{name}"));
        change(&folder);
        let (code, told) = undo(&root);
        assert!(
            code == Some(0) && told.contains(expected),
            "{name}: {code:?} {told}"
        );
        assert!(!folder.exists(), "{name}");
    }
}

#[test]
fn undo_leaves_what_others_have_put_there() {
    let (root, folder) = hardened("undo-others");
    // A filter that another drop-in installs.
    fs::rename(folder.join("zz-tamis.conf"), folder.join("50-mine.conf")).unwrap();
    let (code, told) = undo(&root);
    assert!(
        code == Some(0) && told.contains("50-mine.conf names it"),
        "{told}"
    );
    assert!(folder.join("tamis.bpf").exists());
    // A file that this command didn't write.
    fs::rename(folder.join("50-mine.conf"), folder.join("zz-tamis.conf")).unwrap();
    fs::remove_file(folder.join("tamis.bpf")).unwrap();
    fs::create_dir(folder.join("tamis.bpf")).unwrap();
    let (code, told) = undo(&root);
    assert!(
        code == Some(0) && told.contains("no regular file and stays"),
        "{told}"
    );
    assert!(folder.join("tamis.bpf").is_dir() && !folder.join("zz-tamis.conf").exists());
    fs::remove_dir(folder.join("tamis.bpf")).unwrap();
    symlink("/dev/null", folder.join("zz-tamis.conf")).unwrap();
    let (code, told) = undo(&root);
    assert!(
        code == Some(2) && told.contains("was not written by tamis"),
        "{told}"
    );
}

#[test]
fn nothing_to_undo_is_said() {
    let root = folder("undo-nothing");
    let (code, told) = undo(&root);
    assert!(
        code == Some(2) && told.contains("there is no unit x.service"),
        "{told}"
    );
    fs::write(root.join("etc/systemd/system/x.service"), PLAIN).unwrap();
    let (code, told) = undo(&root);
    assert!(
        code == Some(2) && told.contains("x.service has no "),
        "{told}"
    );
}

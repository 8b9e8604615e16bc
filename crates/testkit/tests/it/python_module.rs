//! The Python module that `tamis libseccomp install` writes, against Debian's module `seccomp`: the same lines of
//! Python give the same values, exceptions and pseudo code, and loaded filters do the same.
//!
//! Debian's module is of libseccomp 2.5.4, so what later versions added is listed as different.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tamis_testkit::child;
use tamis_testkit::libseccomp::{built_library, built_next_library};
use tamis_testkit::skip::{self, Need};

/// Debian's; another Python on the path may not have the module.
const PYTHON: &str = "/usr/bin/python3";

/// Lines whose outcome differs, and why.
const DIFFERENT: [(&str, &str); 4] = [
    (
        "{n: v for n, v in sorted(vars(s.Arch).items()) if n.isupper()}",
        "2.6 has LoongArch, m68k and SuperH",
    ),
    (
        "{n: v for n, v in sorted(vars(s.Attr).items()) if n.isupper()}",
        "2.6 has CTL_WAITKILL",
    ),
    ("s.get_api()", "2.6 knows of level 7"),
    ("s.set_api(7)", "2.6 knows of level 7"),
];

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python")
}

/// A folder laid out as an installation's `lib`: the library of this build and the module.
fn installation(test: &str) -> PathBuf {
    installation_of(&built_library(), test)
}

fn installation_of(library: &Path, test: &str) -> PathBuf {
    let lib = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&lib);
    fs::create_dir_all(lib.join("python3")).unwrap();
    symlink(library, lib.join("libseccomp.so.2")).unwrap();
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tamis/python/seccomp.py");
    fs::copy(module, lib.join("python3/seccomp.py")).unwrap();
    lib
}

/// The output of a script with a module of `modules`, or else with Debian's.
fn output(script: &str, words: &[&Path], modules: Option<&Path>) -> String {
    let mut command = Command::new(PYTHON);
    // Forked processes of a script must not repeat its buffered output.
    command.arg("-u").arg(scripts().join(script)).args(words);
    command.env("PYTHONIOENCODING", "utf-8");
    match modules {
        Some(modules) => command.env("PYTHONPATH", modules),
        None => command.env_remove("PYTHONPATH"),
    };
    let output = child::output(&mut command).expect("Python starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{script}: {}{errors}",
        output.status
    );
    String::from_utf8(output.stdout).expect("the script prints UTF-8")
}

/// Ends the test without Debian's module.
fn unless_module() {
    let mut command = Command::new(PYTHON);
    command.args(["-c", "import seccomp"]);
    command.env_remove("PYTHONPATH");
    let imported = child::output(&mut command);
    let is_there = cfg!(target_arch = "x86_64") && imported.is_ok_and(|it| it.status.success());
    if !is_there {
        skip::because(Need::PythonSeccomp, "no x86-64 or no Python with `seccomp`");
    }
}

#[test]
fn lines_of_python_give_what_they_give_with_debians_module() {
    unless_module();
    let lib = installation("python-lines");
    let cases = scripts().join("cases.txt");
    let theirs = output("cases.py", &[&cases], None);
    let ours = output("cases.py", &[&cases], Some(&lib.join("python3")));
    let mut different = Vec::new();
    for (theirs, ours) in theirs.lines().zip(ours.lines()) {
        if theirs == ours {
            continue;
        }
        let case = ours.split(" => ").next().unwrap_or_default();
        assert!(
            DIFFERENT.iter().any(|(line, _)| *line == case),
            "Debian's:\n{theirs}\ntamis's:\n{ours}"
        );
        different.push(case);
    }
    let lines = theirs.lines().count();
    assert_eq!(lines, ours.lines().count());
    println!("{lines} lines, {} different as listed", different.len());
}

#[test]
fn loaded_filters_and_supervisors_do_what_they_do_with_debians_module() {
    unless_module();
    skip::unless_kernel();
    let lib = installation("python-loaded");
    let theirs = output("loaded.py", &[], None);
    let ours = output("loaded.py", &[], Some(&lib.join("python3")));
    assert_eq!(ours, theirs);
    assert!(ours.ends_with("ended by SIGSYS\n"), "{ours}");
}

#[test]
fn what_libseccomp_added_later_works() {
    unless_module();
    let lib = installation("python-later");
    let printed = output("later.py", &[], Some(&lib.join("python3")));
    assert_eq!(
        printed,
        "rejected: True\ncommitted: True\nin memory: True\nprecomputed: True\nno copies: True\n"
    );
}

/// Ends the test if a script can't run: it needs Python 3.8, the numbers of x86-64 and a kernel that takes filters.
fn unless_python() {
    let mut command = Command::new(PYTHON);
    command.args(["-c", "import sys; sys.exit(sys.version_info < (3, 8))"]);
    let asked = child::output(&mut command);
    let is_there = cfg!(target_arch = "x86_64") && asked.is_ok_and(|it| it.status.success());
    if !is_there {
        skip::because(Need::PythonSeccomp, "no x86-64 or no Python");
    }
    skip::unless_live();
}

#[test]
fn names_of_the_main_branch_are_there_with_its_library_only() {
    unless_python();
    let reference = installation("python-reference");
    let printed = output("next.py", &[], Some(&reference.join("python3")));
    assert_eq!(printed, "names: [False, False]\n");
    let next = installation_of(&built_next_library(), "python-next");
    let printed = output("next.py", &[], Some(&next.join("python3")));
    assert_eq!(
        printed,
        "names: [True, True]\ntrap: 0x31234 True\ncopied: True b'hello'\nsent: 77 b'hello'\n\
         too late: Library error (errno = -125)\n"
    );
}

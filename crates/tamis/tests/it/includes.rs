//! What a policy may include: regular files of its folder and of `--include-dir`, and of those that are no policies no
//! line is shown.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tamis_testkit::child;

/// A line that must never be shown.
const SECRET: &str = "root:$6$saltsaltsalt$hash:19000:0:99999:7:::";

/// A language that includes.
struct Language {
    extension: &'static str,
    /// A policy that includes `PATH`.
    including: &'static str,
    /// A file to include.
    included: &'static str,
}

const LANGUAGES: [Language; 3] = [
    Language {
        extension: "tamis",
        including: "default kill\ninclude \"PATH\"\n",
        included: "allow read\n",
    },
    Language {
        extension: "policy",
        including: "@include PATH\n",
        included: "read: 1\n",
    },
    Language {
        extension: "kafel",
        including: "#include \"PATH\"\nDEFAULT KILL\n",
        included: "ALLOW { read }\n",
    },
];

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("includes-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("own/sub")).unwrap();
    fs::create_dir_all(folder.join("other")).unwrap();
    folder
}

/// The exit code and standard error of compiling a policy that includes a path.
fn compile(folder: &Path, language: &Language, path: &str, options: &[&str]) -> (i32, String) {
    let policy = folder.join(format!("own/main.{}", language.extension));
    fs::write(&policy, language.including.replace("PATH", path)).unwrap();
    let mut command = Command::new(crate::TAMIS);
    command
        .args(["compile", "--arch=x86_64", "-o", "/dev/null"])
        .arg(&policy)
        .args(options)
        .current_dir(folder);
    let output = child::output(&mut command).unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), text)
}

fn fifo(path: &Path) {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path is a terminated string.
    let made = unsafe { libc::mkfifo(path.as_ptr(), 0o600) };
    assert_eq!(made, 0);
}

#[test]
fn only_regular_files_are_included() {
    let folder = folder("regular");
    fifo(&folder.join("own/fifo"));
    for language in &LANGUAGES {
        for path in ["./fifo", "./sub"] {
            let (code, text) = compile(&folder, language, path, &[]);
            assert_eq!(code, 2, "{text}");
            assert!(text.contains("it is not a regular file"), "{text}");
        }
        let (code, text) = compile(&folder, language, "/dev/zero", &["--include-dir=/dev"]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("it is not a regular file"), "{text}");
    }
}

#[test]
fn files_of_other_folders_need_an_option() {
    let folder = folder("other");
    for language in &LANGUAGES {
        for place in ["own/sub/included", "other/included"] {
            fs::write(folder.join(place), language.included).unwrap();
        }
        let link = folder.join("own/link");
        let _ = fs::remove_file(&link);
        symlink("../other/included", &link).unwrap();
        let absolute = folder.join("other/included");
        let inside = folder.join("own/sub/included");
        for path in ["./sub/included", inside.to_str().unwrap()] {
            let (code, text) = compile(&folder, language, path, &[]);
            assert_eq!(code, 0, "{text}");
        }
        for path in ["./../other/included", "./link", absolute.to_str().unwrap()] {
            let (code, text) = compile(&folder, language, path, &[]);
            assert_eq!(code, 2, "{path}: {text}");
            assert!(text.contains("outside of the policy's folder"), "{text}");
            let (code, text) = compile(&folder, language, path, &["--include-dir=other"]);
            assert_eq!(code, 0, "{path}: {text}");
        }
    }
}

#[test]
fn lines_of_files_that_are_no_policies_are_not_shown() {
    let folder = folder("shown");
    let place = folder.join("own/included");
    for language in &LANGUAGES {
        for content in [
            SECRET.to_owned(),
            format!("{}{SECRET}\n", language.included),
        ] {
            fs::write(&place, &content).unwrap();
            let (code, text) = compile(&folder, language, "./included", &[]);
            assert_eq!(code, 2, "{text}");
            assert!(text.contains("doesn't read as a policy"), "{text}");
            assert!(!text.contains("salt") && !text.contains("19000"), "{text}");
        }
    }
    // Words that no statement begins with; kafel's statements may begin anywhere.
    fs::write(&place, "hunter2\n").unwrap();
    for language in &LANGUAGES[..2] {
        let (code, text) = compile(&folder, language, "./included", &[]);
        assert!(code == 2 && !text.contains("hunter2"), "{text}");
    }
    // What counts of calls aren't is not shown either.
    fs::write(
        folder.join("own/main.policy"),
        "@frequency ./included\nread: 1\n",
    )
    .unwrap();
    let mut command = Command::new(crate::TAMIS);
    command
        .args(["lint", "main.policy"])
        .current_dir(folder.join("own"));
    let output = child::output(&mut command).unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

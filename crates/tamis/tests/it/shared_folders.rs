//! Folders that other users can write: their files are not trusted, and lasting files are not placed there.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tamis_testkit::skip::{self, Need};

use crate::TAMIS;

/// A user without privileges.
const NOBODY: u32 = 65534;

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("shared-folders")
        .join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn tamis(arguments: &[&str]) -> Command {
    let mut command = Command::new(TAMIS);
    command.args(arguments).stdin(Stdio::null());
    command
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether only root and this user can change or create a path.
fn is_private(path: &Path) -> bool {
    let own = fs::metadata("/proc/self").unwrap().uid();
    path.ancestors().all(|part| {
        let data = fs::symlink_metadata(part).unwrap();
        let by_group = data.mode() & 0o020 != 0 && data.gid() != own;
        [0, own].contains(&data.uid()) && data.mode() & 0o002 == 0 && !by_group
    })
}

/// The `LD_LIBRARY_PATH` of a process that outlives `run --libseccomp`, and reads it afterwards.
fn outliving(state: &Path) -> Vec<PathBuf> {
    let (reader, writer) = std::io::pipe().unwrap();
    let (gate, opener) = std::io::pipe().unwrap();
    let script = "(read -r go <&3; echo \"$LD_LIBRARY_PATH\") & exit 0";
    let mut shell = Command::new("sh");
    // Background processes have no standard input.
    shell.args(["-c", "exec \"$@\" 3<&0", "sh", TAMIS, "run", "--libseccomp"]);
    shell.args(["--", "sh", "-c", script]);
    shell.env("XDG_STATE_HOME", state);
    shell.env_remove("LD_LIBRARY_PATH");
    let ended = shell.stdin(gate).stdout(writer).status().unwrap();
    drop(shell);
    assert!(ended.success(), "{ended:?}");
    drop(opener);
    let lines = BufReader::new(reader).lines();
    lines.map(|line| PathBuf::from(line.unwrap())).collect()
}

#[test]
fn what_outlives_a_command_names_a_folder_that_stays_and_that_nobody_else_can_write() {
    let state = folder("outliving");
    if !is_private(&state) {
        skip::because(Need::Live, "others can write the folder of the tests");
    }
    let named = outliving(&state);
    let [folder] = &named[..] else {
        panic!("{named:?}");
    };
    assert!(folder.starts_with(&state), "{folder:?}");
    let library = folder.join("libseccomp.so.2");
    assert!(library.is_file() && is_private(&library), "{library:?}");
    assert!(folder.join("python3/seccomp.py").is_file());
    // The next command finds it as it is.
    let before = fs::metadata(&library).unwrap();
    assert_eq!(outliving(&state), named);
    let after = fs::metadata(&library).unwrap();
    assert_eq!((before.ino(), before.mtime()), (after.ino(), after.mtime()));
}

#[test]
fn a_state_folder_that_others_can_write_is_refused() {
    skip::unless_root();
    for (name, mode, owner) in [
        ("for-all", 0o777, 0),
        ("sticky", 0o1777, 0),
        ("of-another", 0o755, NOBODY),
    ] {
        let state = folder(name);
        chown(&state, Some(owner), Some(owner)).unwrap();
        set(&state, mode);
        // In a namespace where root's place is such a folder, too.
        let script = format!(
            "mount -t tmpfs -o mode={mode:o},uid={owner} none /var/lib || exit 77; exec env HOME='{0}' XDG_STATE_HOME='{0}' '{TAMIS}' run --libseccomp -- echo ran",
            state.display()
        );
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .output();
        let Ok(output) = output else {
            skip::because(Need::Live, "there is no unshare");
        };
        if matches!(output.status.code(), Some(1 | 77)) {
            skip::because(Need::Live, "no folder may be mounted here");
        }
        assert_eq!(output.status.code(), Some(4), "{name}: {output:?}");
        assert!(output.stdout.is_empty(), "{name}: the command was run");
        assert!(
            errors(&output).contains("only this user can write"),
            "{output:?}"
        );
        assert!(fs::read_dir(&state).unwrap().next().is_none(), "{name}");
    }
}

#[test]
fn a_library_that_others_can_replace_is_refused() {
    let bin = folder("replaceable");
    let program = bin.join("tamis");
    tamis_testkit::child::copy_program(TAMIS, &program);
    fs::write(bin.join("libtamis_libseccomp.so"), "of anybody").unwrap();
    set(&bin, 0o777);
    for arguments in [
        &["run", "--libseccomp", "--", "echo", "ran"][..],
        &["libseccomp", "install", "--prefix", "prefix"],
    ] {
        let output = Command::new(&program)
            .args(arguments)
            .current_dir(&bin)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(output.stdout.is_empty() && errors(&output).contains("not safe"));
    }
    assert!(!bin.join("prefix").exists());
}

/// A folder like `/tmp`, with a file of another user.
fn shared(test: &str, put: impl Fn(&Path)) -> PathBuf {
    skip::unless_root();
    let shared = folder(test);
    put(&shared);
    for entry in fs::read_dir(&shared).unwrap() {
        std::os::unix::fs::lchown(entry.unwrap().path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    set(&shared, 0o1777);
    shared
}

#[test]
fn nothing_is_written_through_or_into_what_somebody_else_has_put_into_a_folder_for_all() {
    let private = folder("private");
    let victim = private.join("victim");
    fs::write(&victim, "precious").unwrap();
    let put = |shared: &Path| {
        symlink(&victim, shared.join("link")).unwrap();
        symlink(private.join("new"), shared.join("dangling")).unwrap();
        symlink("/dev/null", shared.join("device")).unwrap();
        symlink(&private, shared.join("folder")).unwrap();
        fs::write(shared.join("file"), "theirs").unwrap();
        fs::create_dir(shared.join("place")).unwrap();
        let made = Command::new("mkfifo").arg(shared.join("pipe")).status();
        assert!(made.unwrap().success());
    };
    let shared = shared("put", put);
    let to = |name: &str| shared.join(name).to_str().unwrap().to_owned();
    for name in ["link", "dangling", "device", "folder/new", "file", "pipe"] {
        let file = to(name);
        for arguments in [
            &["compile", "pure-compute", "-o", &file][..],
            &["trace", "-o", &file, "--", "true"],
        ] {
            let output = tamis(arguments).output().unwrap();
            assert_eq!(output.status.code(), Some(4), "{name}: {output:?}");
            assert!(errors(&output).contains("somebody else"), "{output:?}");
        }
    }
    for name in ["folder", "place"] {
        let output = tamis(&["man", &to(name)]).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{name}: {output:?}");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(fs::read_to_string(shared.join("file")).unwrap(), "theirs");
    let names: Vec<_> = fs::read_dir(&private).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    // The user's own file is written, and a new one.
    for _ in ["new", "again"] {
        let output = tamis(&["compile", "pure-compute", "-o", &to("own")]).output();
        assert!(output.unwrap().status.success());
    }
}

#[test]
fn root_writes_through_no_link_of_a_user() {
    skip::unless_root();
    let home = folder("home");
    let victim = home.join("../home-victim");
    fs::write(&victim, "precious").unwrap();
    let link = home.join("config.json");
    symlink(&victim, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(NOBODY), Some(NOBODY)).unwrap();
    let output = tamis(&["compile", "pure-compute", "-o", link.to_str().unwrap()]).output();
    assert_eq!(output.unwrap().status.code(), Some(4));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn a_test_command_gets_a_file_that_nobody_else_can_write_also_without_a_mask() {
    let folder = folder("reduce");
    fs::write(folder.join("a.tamis"), "default allow\n").unwrap();
    let script = format!(
        "umask 0; exec '{TAMIS}' bpf reduce a.tamis --test 'stat -c %a $(dirname {{}}) >>modes; true'"
    );
    for temporary in [folder.clone(), PathBuf::from("/tmp")] {
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(&folder)
            .env("TMPDIR", temporary)
            .env("XDG_STATE_HOME", folder.join("state"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let modes = fs::read_to_string(folder.join("modes")).unwrap();
    assert!(modes.lines().all(|mode| mode == "700"), "{modes}");
    assert!(modes.lines().count() >= 2, "{modes}");
}

#[test]
fn what_programs_use_is_installed_so_that_nobody_else_can_write_it_also_without_a_mask() {
    let folder = folder("mask");
    let script = format!("umask 0; exec '{TAMIS}' libseccomp install --prefix prefix/new");
    let installed = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(installed.status.success(), "{installed:?}");
    for file in ["libseccomp.so.2", "python3/seccomp.py"] {
        let lib = folder.join("prefix/new/lib");
        let real = fs::canonicalize(lib.join(file)).unwrap();
        let parts = real
            .ancestors()
            .take_while(|part| part.starts_with(folder.join("prefix")));
        for part in parts {
            let mode = fs::metadata(part).unwrap().mode();
            assert_eq!(mode & 0o022, 0, "{part:?}");
        }
    }
}

#[test]
fn what_replaces_a_secret_is_never_for_all() {
    let folder = folder("secret");
    let file = folder.join("filter.bpf");
    fs::write(&file, "old").unwrap();
    set(&file, 0o600);
    // The mode with which the file beside it is made.
    let traced = Command::new(TAMIS)
        .args([
            "trace",
            "-e",
            "openat",
            "--",
            TAMIS,
            "compile",
            "pure-compute",
            "-o",
        ])
        .arg(&file)
        .output()
        .unwrap();
    let calls = errors(&traced);
    let made = calls
        .lines()
        .find(|line| line.contains("filter.bpf.tamis-"));
    match made {
        Some(line) => assert!(line.contains("0600"), "{line}"),
        None => skip::because(Need::Live, "tracing shows no calls here"),
    }
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_service_gets_no_filter_that_others_can_change() {
    let units = ["/usr/lib/systemd/system", "/lib/systemd/system"];
    let found = units.iter().filter_map(|folder| fs::read_dir(folder).ok());
    // A masked unit is a link, and an alias, too.
    let is_file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    let files = found.flatten().flatten().filter(is_file);
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| name.ends_with(".service") && !name.contains('@'))
        .collect();
    names.sort();
    let Some(unit) = names.first() else {
        skip::because(Need::Live, "there are no units");
    };
    let place = folder("drop-in");
    set(&place, 0o1777);
    let output = tamis(&["harden", unit, "--installer", TAMIS, "-o"])
        .arg(place.join("new"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{unit}: {output:?}");
    assert!(errors(&output).contains("others can change"), "{output:?}");
    assert!(fs::read_dir(&place).unwrap().next().is_none());
}

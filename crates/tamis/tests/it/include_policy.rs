//! The macro as the compiler sees it: errors, dependencies on files, arguments.
//! The packages of `examples/embedding` build programs with it and run them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::{env, fs};

use tamis_testkit::skip::{self, Need};
use tamis_testkit::toolchains::stderr_text;

/// The library with the macro, which cargo has built beside this executable: the crate is one of its dependencies.
///
/// Where several builds left theirs, any will do that is as new as the sources, so the newest.
fn macros() -> &'static Path {
    static MACROS: OnceLock<PathBuf> = OnceLock::new();
    MACROS.get_or_init(|| {
        let own = env::current_exe().expect("this executable has a path");
        let beginning = format!("{}tamis_macros-", env::consts::DLL_PREFIX);
        let is_macros = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&beginning) && name.ends_with(env::consts::DLL_SUFFIX)
        };
        let files = fs::read_dir(own.parent().unwrap()).expect("its folder can be read");
        let libraries = files.map(|file| file.unwrap().path()).filter(is_macros);
        let newest = libraries.max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
        newest.expect("cargo puts libraries beside the tests that depend on them")
    })
}

/// A new folder with these files.
fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("include_policy")
        .join(test);
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    folder
}

/// Compiles a library that is this text.
fn rustc(folder: &Path, main: &str, arguments: &[&str]) -> Output {
    skip::unless_runs(Need::Toolchains, "rustc", &["--version"]);
    fs::write(folder.join("main.rs"), main).unwrap();
    let mut library = std::ffi::OsString::from("tamis=");
    library.push(macros());
    Command::new("rustc")
        .args(["--edition=2024", "--crate-type=lib", "main.rs", "--extern"])
        .arg(library)
        .args(arguments)
        .current_dir(folder)
        .env_remove("CARGO_MANIFEST_DIR")
        .output()
        .unwrap()
}

/// The error that the compiler reports for a use of the macro.
fn refusal(folder: &Path, invocation: &str) -> String {
    let output = rustc(folder, &format!("{invocation}\n"), &["--emit=metadata"]);
    assert!(!output.status.success(), "{invocation} was accepted");
    stderr_text(&output)
}

#[test]
fn mistakes_in_the_policy_are_compile_errors_with_their_places() {
    let policy = "default errno(EPERM)\nallow raed\nallow write(fd == controll_fd)\ninclude \"more.tamis\"\n";
    let files = [("server.tamis", policy), ("more.tamis", "\nkill @modul\n")];
    let folder = folder("mistakes", &files);
    let refusal = refusal(&folder, "tamis::include_policy!(\"server.tamis\");");
    for expected in [
        "main.rs:1:24",
        "error: unknown system call `raed` [TM",
        "server.tamis:2:7",
        "did you mean `read`?",
        "server.tamis:3:19",
        "more.tamis:2:6",
        "did you mean `@module`?",
    ] {
        assert!(
            refusal.contains(expected),
            "{expected} is missing:\n{refusal}"
        );
    }
}

#[test]
fn mistakes_in_the_arguments_are_compile_errors_that_say_what_to_write() {
    let folder = folder(
        "arguments",
        &[("server.tamis", "arch x86_64\nallow read\n")],
    );
    let cases = [
        ("\"sever.tamis\"", "cannot read sever.tamis: No such file"),
        ("", "write `include_policy!(\"server.tamis\")`"),
        ("server", "write `include_policy!(\"server.tamis\")`"),
        (
            "mod server \"server.tamis\"",
            "write `include_policy!(\"server.tamis\")`",
        ),
        ("\"server.tamis\" strict", "expected `,`"),
        (
            "\"server.tamis\", arc = \"x86_64\"",
            "there is no option `arc`",
        ),
        (
            "\"server.tamis\", arch = \"x86_46\"",
            "did you mean `x86_64`?",
        ),
        ("\"server.tamis\", arch", "write `arch = \"…\"`"),
        (
            "\"server.tamis\", from = \"taims\"",
            "did you mean `tamis`?",
        ),
        (
            "\"server.tamis\", from = \"oci\", from = \"oci\"",
            "`from` is given twice",
        ),
        (
            "\"server.tamis\", arch = \"parisc\"",
            "the language supports no architecture of the policy",
        ),
        (
            "\"server.tamis\", arch = \"aarch64\"",
            "the filter is for other machines",
        ),
        ("\"a\\u{62}\"", "not a plain string"),
    ];
    for (arguments, expected) in cases {
        let refusal = refusal(&folder, &format!("tamis::include_policy!({arguments});"));
        assert!(refusal.contains(expected), "{arguments}: {refusal}");
        assert!(!refusal.contains("panicked"), "{arguments}: {refusal}");
    }
}

#[test]
fn a_change_of_the_policy_or_of_what_it_includes_is_seen() {
    let files = [
        (
            "server.tamis",
            "arch x86_64\nlet fd_of: u32\ninclude \"more.tamis\"\nallow read(fd == fd_of)\n",
        ),
        ("more.tamis", "kill @module\n"),
    ];
    let folder = folder("depends", &files);
    let main = "#![deny(warnings, missing_docs)]\n//! Text.\n\
                tamis::include_policy!(pub mod confinement = r\"server.tamis\", strict);\n\
                /// Text.\n\
                pub fn filter(fd: u32) -> Option<confinement::Filter> {\n    \
                confinement::bind(&confinement::Values { fd_of: fd }).ok()\n}\n";
    let output = rustc(&folder, main, &["--emit=dep-info,metadata"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let depends = fs::read_to_string(folder.join("main.d")).unwrap();
    for file in ["server.tamis", "more.tamis"] {
        let path = folder.join(file).canonicalize().unwrap();
        assert!(
            depends.contains(path.to_str().unwrap()),
            "{file}: {depends}"
        );
    }
}

#[test]
fn warnings_of_the_policy_are_warnings_of_the_compiler() {
    let policy = "arch x86_64\nallow read\ndeny read\n";
    let folder = folder("warnings", &[("server.tamis", policy)]);
    let main = "//! Text.\ntamis::include_policy!(pub mod server = \"server.tamis\");\n";
    let output = rustc(&folder, main, &["--emit=metadata"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    for expected in ["this rule never matches", "server.tamis:3:6"] {
        assert!(
            stderr_text(&output).contains(expected),
            "{expected}: {}",
            stderr_text(&output)
        );
    }
}

#[test]
fn other_languages_and_folders_of_includes_are_taken_from_the_arguments() {
    let filter = "{\"default_action\": \"trap\", \"filter_action\": \"allow\", \"filter\": [{\"syscall\": \"read\"}]}";
    let firecracker = format!("{{\"vmm\": {filter}, \"api\": {filter}}}");
    let files = [
        ("vmm.json", &*firecracker),
        (
            "server.tamis",
            "arch x86_64\ninclude \"/etc/tamis/elsewhere.tamis\"\nallow read\n",
        ),
    ];
    let folder = folder("languages", &files);
    fs::create_dir_all(folder.join("shared")).unwrap();
    fs::write(folder.join("shared/elsewhere.tamis"), "kill @module\n").unwrap();
    let main = "#![deny(warnings)]\n\
                tamis::include_policy!(pub mod vmm = \"vmm.json\", from = \"firecracker\", thread = \"vmm\");\n\
                tamis::include_policy!(pub(crate) mod server = \"server.tamis\", include_dir = \"shared\",);\n\
                pub fn filters() -> (vmm::Filter, server::Filter) {\n    \
                (vmm::Filter::new(), server::Filter::new())\n}\n";
    let output = rustc(&folder, main, &["--emit=metadata"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let ambiguous = refusal(&folder, "tamis::include_policy!(\"vmm.json\");");
    assert!(ambiguous.contains("vmm.json:1:"), "{ambiguous}");
    assert!(ambiguous.contains("thread"), "{ambiguous}");
}

#[test]
fn options_of_the_language_are_given_by_name() {
    let table = r#"{"arch_nr": 3221225534, "arch_name": "x86_64", "bits": 64,
        "syscalls": {"read": 0, "write": 1}, "constants": {}}"#;
    let files = [
        ("deny.policy", "@denylist\nread: return EPERM\n"),
        ("server.policy", "read: 1\n"),
        ("tables/constants.json", table),
    ];
    fs::create_dir_all(folder("options", &[]).join("tables")).unwrap();
    let folder = folder("options", &files);
    let main = "#![deny(warnings)]\n\
                tamis::include_policy!(pub mod deny = \"deny.policy\", option = \"denylist\");\n\
                tamis::include_policy!(pub mod server = \"server.policy\", option = \"dialect=python\",\n    \
                option = \"arch-json=tables/constants.json\");\n\
                pub fn filters() -> (deny::Filter, server::Filter) {\n    \
                (deny::Filter::new(), server::Filter::new())\n}\n";
    let output = rustc(&folder, main, &["--emit=dep-info,metadata"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let depends = fs::read_to_string(folder.join("main.d")).unwrap();
    assert!(depends.contains("tables/constants.json"), "{depends}");
    for (option, expected) in [
        ("denylits", "did you mean `denylist`?"),
        ("thread=vmm", "minijail policies have no option `thread`"),
        ("dialect=d", "there are c, python"),
    ] {
        let invocation =
            format!("tamis::include_policy!(\"server.policy\", option = \"{option}\");");
        let refusal = refusal(&folder, &invocation);
        assert!(refusal.contains(expected), "{option}: {refusal}");
    }
}

//! A program as its users have it, with the library in libseccomp's place: man formats a page by programs that it
//! runs under filters of libseccomp, and the page is the same.
//!
//! `bench/libseccomp-programs` compares more programs, and their filters.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use tamis_testkit::child;
use tamis_testkit::libseccomp::built_library;
use tamis_testkit::skip::{self, Need};

const PAGE: &str =
    ".TH SIEVE 1\n.SH NAME\nsieve \\- sort what falls through\n.SH FILES\n\\fI/dev/null\\fP\n";

/// man's output for a page, with libraries of a folder before the system's.
fn formatted(page: &Path, libraries: &OsStr) -> Option<Output> {
    let mut command = Command::new("man");
    command.args(["-P", "cat", "-l"]).arg(page);
    command.env("LD_LIBRARY_PATH", libraries);
    command.env("LC_ALL", "C").env("TAMIS_LOG", "stderr");
    child::output(&mut command).ok()
}

#[test]
fn man_formats_a_page_under_filters_of_the_library() {
    skip::unless_kernel();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dropin-man");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let page = folder.join("sieve.1");
    fs::write(&page, PAGE).unwrap();
    let theirs = formatted(&page, OsStr::new(""));
    let theirs = theirs.filter(|it| String::from_utf8_lossy(&it.stdout).contains("falls"));
    let Some(theirs) = theirs else {
        skip::because(Need::Man, "no man-db that formats pages");
    };
    symlink(built_library(), folder.join("libseccomp.so.2")).unwrap();
    let ours = formatted(&page, folder.as_os_str()).expect("man has just run");
    assert_eq!(ours.status, theirs.status);
    assert_eq!(
        String::from_utf8_lossy(&ours.stdout),
        String::from_utf8_lossy(&theirs.stdout)
    );
    let log = String::from_utf8_lossy(&ours.stderr);
    let filters: Vec<&str> = log.lines().collect();
    assert!(!filters.is_empty(), "man made no filter by the library");
    for filter in &filters {
        assert!(
            filter.contains(" instructions, ") && filter.contains(" proved"),
            "{filter}"
        );
    }
    println!("{} filters", filters.len());
}

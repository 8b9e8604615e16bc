//! The headers for C, of a filter and of a family: self-contained, and clean in every supported standard of C and C++.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tamis_testkit::skip::{self, Need};

/// All that a header can hold: both widths, sets, ranges, a name that is a macro, a variable that nothing needs.
const POLICY: &str = "\
let errno: u32
let wide: u64
let narrow: u32 in 3..1023
let set: u64[2] in 5..0xffffffffff
let idle: u32
default allow
bad-arch kill-process
errno(EPERM) write(fd != errno && fd >= narrow), mmap(addr == wide || addr in set)
errno(ENOENT) read(fd == idle || fd != idle)
";

/// A file that includes only the header, twice, and uses only its declarations.
const MAIN: &str = "\
#include \"filter.h\"
#include \"filter.h\"

int main(void)
{
	struct sock_filter filter[filter_insns_len];
	const struct filter_values values = { 7, 8, 9, { 10, 11 }, 12 };

	if (filter_bind(filter, &values) != 0)
		return 1;
	return filter_install(filter, 0, 1) < 0;
}
";

/// The same declarations and rules, with an option.
const MATRIX: &str = "\
policy = \"filter.tamis\"
arch = \"x86_64\"
[option.quiet]
true = {}
false = { rules = \"errno(EPERM) getpid\" }
[option.level]
one = {}
two = { rules = \"errno(EPERM) getuid\" }
";

/// The same for the family.
const FAMILY_MAIN: &str = "\
#include \"family.h\"
#include \"family.h\"

int main(void)
{
	struct family_filter filter;
	const struct family_config config = { 1, family_level_one };
	const struct family_values values = { 7, 8, 9, { 10, 11 }, 12 };

	if (family_bind(&filter, &config, &values) != 0)
		return 1;
	return family_install(&filter, 0, 1) < 0;
}
";

const C_STANDARDS: [&str; 6] = ["c99", "c11", "c17", "gnu99", "gnu11", "gnu17"];
const CXX_STANDARDS: [&str; 4] = ["c++11", "c++17", "c++20", "gnu++20"];

const WARNINGS: [&str; 6] = [
    "-Wall",
    "-Wextra",
    "-pedantic",
    "-Wconversion",
    "-Wshadow",
    "-Werror",
];

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_header");
    fs::create_dir_all(&folder).unwrap();
    let inputs = [
        ("filter.tamis", POLICY),
        ("family.toml", MATRIX),
        ("filter.c", MAIN),
        ("family.c", FAMILY_MAIN),
    ];
    for (name, text) in inputs {
        fs::write(folder.join(name), text).unwrap();
    }
    let filter = [
        "compile",
        "filter.tamis",
        "--arch",
        "x86_64",
        "-o",
        "filter.h",
    ];
    let family = ["precompile", "family.toml", "-o", "family.h"];
    for arguments in [&filter[..], &family] {
        let written = Command::new(crate::TAMIS)
            .args(arguments)
            .args(["--emit", "c"])
            .current_dir(&folder)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&written.stderr);
        assert!(written.status.success(), "{printed}");
    }
    folder
}

#[test]
fn headers_are_clean_in_every_standard() {
    skip::unless_x86_64();
    for compiler in ["cc", "c++"] {
        skip::unless_runs(Need::Toolchains, compiler, &["--version"]);
    }
    let folder = folder();
    let c = C_STANDARDS.map(|standard| ("cc", "c", standard));
    let cxx = CXX_STANDARDS.map(|standard| ("c++", "c++", standard));
    for (compiler, language, standard) in c.into_iter().chain(cxx) {
        let built = Command::new(compiler)
            .args(WARNINGS)
            .arg(format!("-std={standard}"))
            .args(["-fsyntax-only", "-x", language, "filter.c", "family.c"])
            .current_dir(&folder)
            .output()
            .expect("it has just run");
        let printed = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "{standard}: {printed}");
    }
}

//! The kernel headers of the host, as installed by the distribution.

use std::fs;

use tamis_abi::{Arch, Nr, syscall};
use tamis_testkit::skip::{self, Need};

const DIRS: [&str; 2] = ["/usr/include/x86_64-linux-gnu/asm", "/usr/include/asm"];

const FILES: [(Arch, &str); 3] = [
    (Arch::X86_64, "unistd_64.h"),
    (Arch::X86, "unistd_32.h"),
    (Arch::X32, "unistd_x32.h"),
];

/// Reads `#define __NR_read 0` or `#define __NR_read (__X32_SYSCALL_BIT + 0)`.
fn definition(line: &str) -> Option<(&str, u32)> {
    let (name, value) = line.strip_prefix("#define __NR_")?.split_once(' ')?;
    let value = value.trim();
    let nr = match value.strip_prefix("(__X32_SYSCALL_BIT + ") {
        Some(rest) => Arch::X32_BIT + rest.strip_suffix(')')?.parse::<u32>().ok()?,
        None => value.parse().ok()?,
    };
    Some((name, nr))
}

#[test]
fn numbers_are_those_of_the_installed_headers() {
    let Some(dir) = DIRS
        .iter()
        .find(|dir| fs::exists(format!("{dir}/unistd_64.h")).unwrap())
    else {
        skip::because(Need::Headers, "this machine has no kernel headers of x86");
    };
    for (arch, file) in FILES {
        let text = fs::read_to_string(format!("{dir}/{file}")).unwrap();
        let definitions: Vec<(&str, u32)> = text.lines().filter_map(definition).collect();
        assert!(definitions.len() > 300, "{file}: {}", definitions.len());
        for (name, nr) in definitions {
            assert_eq!(syscall::number(arch, name), Some(Nr(nr)), "{arch} {name}");
        }
    }
}

//! The header files of the library for C programs: `seccomp.h`, `seccomp-syscalls.h`, `libseccomp.pc`, and for
//! additions after 2.6.1 `seccomp-kvers.h`.
//!
//! The second is generated from the tables: a macro for each call that any architecture has, which is the number in the
//! system's headers, or the pseudo number on architectures, or with headers, that lack the call.

use std::borrow::Cow;
use std::fmt::Write;

use tamis_abi::Arch;

use crate::number;
use crate::pseudo::PSEUDO_NUMBERS;
use crate::release::Release;

/// The text for the reference.
const SECCOMP_H: &str = include_str!("seccomp.h");
/// The additions of a later release, at the end.
const SECCOMP_NEXT_H: &str = include_str!("seccomp-next.h");

/// The text of `seccomp.h`, which includes `seccomp-syscalls.h` and, of a later release, `seccomp-kvers.h`.
pub fn seccomp_h(release: Release) -> Cow<'static, str> {
    const INCLUDES: &str = "#include <seccomp-syscalls.h>\n";
    let version = |release: Release| {
        let [major, minor, micro] = release.version();
        format!(
            "#define SCMP_VER_MAJOR {major}\n#define SCMP_VER_MINOR {minor}\n#define SCMP_VER_MICRO {micro}\n"
        )
    };
    match release {
        Release::Reference => SECCOMP_H.into(),
        Release::Next => SECCOMP_H
            .replace("libseccomp 2.6.1", "libseccomp's main branch")
            .replace(&version(Release::Reference), &version(release))
            .replace(INCLUDES, &format!("{SECCOMP_NEXT_H}{INCLUDES}"))
            .into(),
    }
}

/// The last minor version of each major version of Linux from 3 on, as far as the tables of calls go.
const LAST_MINORS: [(u32, u32); 5] = [(3, 19), (4, 20), (5, 19), (6, 19), (7, 2)];

/// The text of `seccomp-kvers.h`: numbers of the versions of Linux, in their order.
///
/// ```
/// let text = tamis_scmp::header::seccomp_kvers_h();
/// assert!(text.contains("\tSCMP_KV_3_0 = 2,\n"));
/// assert!(text.contains("\tSCMP_KV_6_17 = 80,\n"));
/// ```
pub fn seccomp_kvers_h() -> String {
    let mut text = String::from(
        "/* Versions of Linux. Included by seccomp.h. */\n\
         #ifndef _SECCOMP_H\n#error \"include seccomp.h\"\n#endif\n\n\
         enum scmp_kver {\n\t__SCMP_KV_NULL = 0,\n\tSCMP_KV_UNDEF = 1,\n",
    );
    let versions = LAST_MINORS
        .into_iter()
        .flat_map(|(major, last)| (0..=last).map(move |minor| (major, minor)));
    for ((major, minor), number) in versions.zip(2..) {
        // Writing to a string can't fail.
        let _ = writeln!(text, "\tSCMP_KV_{major}_{minor} = {number},");
    }
    text + "\t__SCMP_KV_MAX,\n};\n"
}

/// The text of `seccomp-syscalls.h`: values of architectures, pseudo numbers and numbers of calls.
///
/// ```
/// let text = tamis_scmp::header::seccomp_syscalls_h();
/// assert!(text.contains("#define __PNR_open -10166\n"));
/// assert!(text.contains("#define SCMP_ARCH_X32 0x4000003eU\n"));
/// ```
pub fn seccomp_syscalls_h() -> String {
    let mut text = String::from(
        "/* Architectures and system calls. Included by seccomp.h. */\n\
         #ifndef _SECCOMP_H\n#error \"include seccomp.h\"\n#endif\n\n#define SCMP_ARCH_NATIVE 0\n",
    );
    // Writing to a string can't fail.
    for arch in Arch::all() {
        if let Some(token) = number::token(arch) {
            let name = arch.name().to_uppercase();
            let _ = writeln!(text, "#define SCMP_ARCH_{name} 0x{token:08x}U");
        }
    }
    text.push('\n');
    for (name, number) in PSEUDO_NUMBERS {
        let _ = writeln!(text, "#define __PNR_{name} {number}");
    }
    for name in tamis_abi::syscall::names() {
        let _ = write!(
            text,
            "\n#ifdef __NR_{name}\n#define __SNR_{name} __NR_{name}\n"
        );
        if number::pseudo_number(name).is_some() {
            let _ = writeln!(text, "#else\n#define __SNR_{name} __PNR_{name}");
        }
        text.push_str("#endif\n");
    }
    text
}

/// The text of `libseccomp.pc`, for a library in a folder and headers in another.
pub fn pkg_config(prefix: &str, release: Release) -> String {
    let [major, minor, micro] = release.version();
    format!(
        "prefix={prefix}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: libseccomp\nDescription: seccomp filters, compiled and proved by tamis\n\
         Version: {major}.{minor}.{micro}\nLibs: -L${{libdir}} -lseccomp\n\
         Libs.private: -lpthread -ldl -lm\nCflags: -I${{includedir}}\n"
    )
}

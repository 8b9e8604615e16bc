//! The files by which C programs use the library: `seccomp.h`, `seccomp-syscalls.h` and `libseccomp.pc`.
//!
//! The second is made of the tables: a macro for each call that any architecture has, which is the number in the
//! system's headers, or the pseudo number on architectures, or with headers, that lack the call.

use std::fmt::Write;

use tamis_abi::Arch;

use crate::number;
use crate::pseudo::PSEUDO_NUMBERS;

/// The text of `seccomp.h`, which includes `seccomp-syscalls.h`.
pub const SECCOMP_H: &str = include_str!("seccomp.h");

/// The version of libseccomp that the library stands for.
pub const VERSION: [u32; 3] = [2, 6, 1];

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
pub fn pkg_config(prefix: &str) -> String {
    let [major, minor, micro] = VERSION;
    format!(
        "prefix={prefix}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: libseccomp\nDescription: seccomp filters, compiled and proved by tamis\n\
         Version: {major}.{minor}.{micro}\nLibs: -L${{libdir}} -lseccomp\n\
         Libs.private: -lpthread -ldl -lm\nCflags: -I${{includedir}}\n"
    )
}

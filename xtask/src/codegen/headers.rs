//! Values of constants from C headers, for any architecture, with the host's gcc.
//!
//! Debian's cross packages contain each architecture's kernel and glibc headers. Every macro and enumerator in them
//! is compiled but not run: the value of an initialiser is read from the assembly. Each header is compiled
//! separately, because some conflict with others. The host's compiler gets the target's word size, alignment and
//! macros on the command line, so no cross compiler is needed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::sources::{download_dir, output};

/// The compiler flags for one architecture.
struct Target {
    column: &'static str,
    /// The name of the architecture in Debian's package names.
    debian: &'static str,
    /// Word size, alignment and the predefined macros of the target's compiler.
    flags: &'static [&'static str],
}

const fn target(
    column: &'static str,
    debian: &'static str,
    flags: &'static [&'static str],
) -> Target {
    Target {
        column,
        debian,
        flags,
    }
}

/// 32 bits, with 64-bit integers aligned to 8 bytes as on all but x86, m68k and sh.
const ILP32_ALIGNED: [&str; 2] = ["-m32", "-malign-double"];

const TARGETS: [Target; 17] = [
    target("x86_64", "amd64", &["-m64", "-D__x86_64__"]),
    target("x86", "i386", &["-m32", "-D__i386__"]),
    target("x32", "x32", &["-mx32", "-D__x86_64__"]),
    target(
        "aarch64",
        "arm64",
        &["-m64", "-D__aarch64__", "-D__AARCH64EL__"],
    ),
    target(
        "arm",
        "armhf",
        &[
            ILP32_ALIGNED[0],
            ILP32_ALIGNED[1],
            "-D__arm__",
            "-D__ARM_EABI__",
            "-D__ARM_PCS_VFP",
        ],
    ),
    target(
        "riscv64",
        "riscv64",
        &[
            "-m64",
            "-D__riscv",
            "-D__riscv_xlen=64",
            "-D__riscv_float_abi_double",
        ],
    ),
    target(
        "ppc64",
        "ppc64",
        &[
            "-m64",
            "-D__powerpc__",
            "-D__powerpc64__",
            "-D__BIG_ENDIAN__",
            "-D_CALL_ELF=1",
        ],
    ),
    target(
        "ppc",
        "powerpc",
        &[
            ILP32_ALIGNED[0],
            ILP32_ALIGNED[1],
            "-D__powerpc__",
            "-D__BIG_ENDIAN__",
        ],
    ),
    target("s390x", "s390x", &["-m64", "-D__s390__", "-D__s390x__"]),
    target(
        "s390",
        "s390x",
        &[ILP32_ALIGNED[0], ILP32_ALIGNED[1], "-D__s390__"],
    ),
    target(
        "mips",
        "mips",
        &[
            ILP32_ALIGNED[0],
            ILP32_ALIGNED[1],
            "-D__mips__",
            "-D__MIPSEB__",
            "-D_ABIO32=1",
            "-D_ABIN32=2",
            "-D_ABI64=3",
            "-D_MIPS_SIM=1",
            "-D_MIPS_SZLONG=32",
            "-D_MIPS_SZPTR=32",
        ],
    ),
    target(
        "mips64",
        "mips64",
        &[
            "-m64",
            "-D__mips__",
            "-D__mips64",
            "-D__MIPSEB__",
            "-D_ABIO32=1",
            "-D_ABIN32=2",
            "-D_ABI64=3",
            "-D_MIPS_SIM=3",
            "-D_MIPS_SZLONG=64",
            "-D_MIPS_SZPTR=64",
        ],
    ),
    target(
        "mips64n32",
        "mipsn32",
        &[
            "-mx32",
            "-D__mips__",
            "-D__mips64",
            "-D__MIPSEB__",
            "-D_ABIO32=1",
            "-D_ABIN32=2",
            "-D_ABI64=3",
            "-D_MIPS_SIM=2",
            "-D_MIPS_SZLONG=32",
            "-D_MIPS_SZPTR=32",
        ],
    ),
    target(
        "parisc",
        "hppa",
        &[ILP32_ALIGNED[0], ILP32_ALIGNED[1], "-D__hppa__"],
    ),
    target("parisc64", "hppa", &["-m64", "-D__hppa__"]),
    target("m68k", "m68k", &["-m32", "-D__m68k__", "-D__mc68000__"]),
    target(
        "sh",
        "sh4",
        &["-m32", "-D__sh__", "-D__SH4__", "-D__LITTLE_ENDIAN__"],
    ),
];

/// The macros that the host's compiler predefines for its own architecture.
const HOST_MACROS: [&str; 8] = [
    "__x86_64__",
    "__x86_64",
    "__amd64__",
    "__amd64",
    "__i386__",
    "__i386",
    "i386",
    "__code_model_small__",
];

/// The kernel's headers, in `linux/` unless a directory is given.
const KERNEL_HEADERS: &str = "\
    asm/errno asm/fcntl asm/ioctls asm/kvm asm/mman asm/poll asm/posix_types asm/prctl \
    asm/ptrace asm/resource asm/shmbuf asm/socket asm/sockios asm/termbits asm/termios audit \
    blkpg blkzoned bpf capability cdrom close_range dma-buf dma-heap eventpoll falloc fanotify \
    fcntl fd fiemap filter fs fscrypt fsverity fsmap futex fuse hdreg hidraw hpet i2c i2c-dev \
    if_alg if_bonding if_bridge if_ether if_packet if_tun if_vlan in inotify input io_uring \
    ioprio iommufd ipc kcmp kcm kd kexec keyctl kvm landlock loop lp major media membarrier \
    memfd mempolicy mman module mount mqueue msdos_fs msg nbd net net_tstamp netlink nsfs \
    nvme_ioctl openat2 perf_event personality pidfd pktcdvd poll ppdev ppp-ioctl prctl ptp_clock \
    ptrace quota random raw reboot resource rfkill rseq rtc sched seccomp securebits sed-opal \
    sem serial shm signal sock_diag socket sockios spi/spidev stat sync_file tcp time timerfd \
    times timex tiocl tls tty udf_fs_i udmabuf udp uhid uinput usbdevice_fs userfaultfd utime \
    vfio vhost videodev2 vt wait watchdog xattr drm/drm drm/drm_mode sound/asound mtd/mtd-abi \
    rdma/rdma_user_ioctl";

/// glibc's headers: for names that the kernel's user headers lack (address families) or spell differently.
const GLIBC_HEADERS: &str = "\
    errno fcntl poll sched signal termios time unistd netinet/in netinet/tcp netinet/udp sys/epoll \
    sys/eventfd sys/fanotify sys/file sys/fsuid sys/inotify sys/ioctl sys/ipc sys/klog sys/mman \
    sys/mount sys/msg sys/personality sys/poll sys/prctl sys/ptrace sys/quota sys/random sys/reboot sys/resource sys/sem sys/shm \
    sys/signalfd sys/socket sys/stat sys/statvfs sys/swap sys/time sys/timerfd sys/timex sys/uio sys/un sys/vfs \
    sys/wait sys/xattr";

/// Declarations that headers use without including them.
const PREAMBLE: &str = "\
#define _GNU_SOURCE
#include <stddef.h>
#include <linux/serial.h>
#include <asm/ioctls.h>
";

/// Names and values.
pub(super) type Values = BTreeMap<String, u64>;

/// The definitions in the headers of an architecture.
#[derive(Default)]
pub(super) struct Headers {
    pub(super) values: Values,
    /// The names that are defined by one of the `_IO*` macros.
    pub(super) ioctls: BTreeSet<String>,
}

/// The constants of a column, with the kernel's preferred to glibc's; empty if no package has its headers.
pub(super) fn read(column: &str) -> Result<Headers> {
    let mut headers = Headers::default();
    let Some(target) = TARGETS.iter().find(|target| target.column == column) else {
        return Ok(headers);
    };
    let mut includes = Vec::new();
    for package in ["linux-libc-dev", "libc6-dev"] {
        let dir = unpack(&format!("{package}-{}-cross", target.debian))?;
        includes.push(include_dir(&dir)?);
    }
    let compiler = Compiler::new(target, includes)?;
    let kernel_headers = KERNEL_HEADERS.split_whitespace().map(|name| {
        if name.contains('/') {
            name.to_owned()
        } else {
            format!("linux/{name}")
        }
    });
    let glibc_headers = GLIBC_HEADERS.split_whitespace().map(str::to_owned);
    for header in kernel_headers.chain(glibc_headers) {
        compiler.evaluate(&format!("{header}.h"), &mut headers)?;
    }
    Ok(headers)
}

/// Downloads and unpacks a Debian package unless this was done before.
fn unpack(package: &str) -> Result<PathBuf> {
    let dir = download_dir().join(package);
    if !dir.exists() {
        let deb_dir = download_dir().join("deb").join(package);
        fs::create_dir_all(&deb_dir)?;
        output(
            Command::new("apt-get")
                .args(["download", "-q", package])
                .current_dir(&deb_dir),
        )?;
        let deb = fs::read_dir(&deb_dir)?
            .next()
            .context("apt-get brought nothing")??;
        output(
            Command::new("dpkg-deb")
                .arg("-x")
                .args([deb.path(), dir.clone()]),
        )?;
    }
    Ok(dir)
}

/// `usr/<triple>/include` of an unpacked package.
fn include_dir(package: &Path) -> Result<PathBuf> {
    for entry in fs::read_dir(package.join("usr"))? {
        let include = entry?.path().join("include");
        if include.is_dir() {
            return Ok(include);
        }
    }
    bail!("no headers in {}", package.display())
}

/// The host's compiler, configured for a target.
struct Compiler<'a> {
    target: &'a Target,
    includes: Vec<PathBuf>,
    file: PathBuf,
}

impl Compiler<'_> {
    fn new(target: &Target, mut includes: Vec<PathBuf>) -> Result<Compiler<'_>> {
        let own = output(Command::new("gcc").arg("-print-file-name=include"))?;
        includes.push(PathBuf::from(own.trim()));
        let dir = download_dir().join("probe");
        fs::create_dir_all(&dir)?;
        Ok(Compiler {
            target,
            includes,
            file: dir.join(format!("{}.c", target.column)),
        })
    }

    /// Compiles a source text. The outer error means that the compiler cannot be run, the inner one is the compiler's
    /// message.
    fn compile(&self, mode: &[&str], source: &str) -> Result<Result<String, String>> {
        fs::write(&self.file, source)?;
        let mut command = Command::new("gcc");
        command
            .args(mode)
            .args(["-w", "-fmax-errors=0", "-nostdinc"]);
        command
            .args(HOST_MACROS.map(|name| format!("-U{name}")))
            .args(self.target.flags);
        for include in &self.includes {
            command.arg("-isystem").arg(include);
        }
        let result = command.args(["-o", "-"]).arg(&self.file).output()?;
        Ok(if result.status.success() {
            Ok(String::from_utf8(result.stdout)?)
        } else {
            Err(String::from_utf8_lossy(&result.stderr).into_owned())
        })
    }

    /// Adds the constants of a header that are not yet known. A header that the architecture lacks, or that does not
    /// compile, adds none.
    fn evaluate(&self, header: &str, known: &mut Headers) -> Result<()> {
        let include = format!("{PREAMBLE}#include <{header}>\n");
        let Ok(text) = self.compile(&["-E", "-P", "-dD"], &include)? else {
            return Ok(());
        };
        known.ioctls.extend(ioctls(&text));
        let mut names = macros(&text);
        names.append(&mut enumerators(&text));
        names.retain(|name| !known.values.contains_key(name));
        let mut names: Vec<String> = names.into_iter().collect();
        while !names.is_empty() {
            let mut probe = include.clone();
            for name in &names {
                writeln!(
                    probe,
                    "const unsigned long long V__{name} = (unsigned long long)(long long)({name});"
                )?;
            }
            let errors = match self.compile(&["-S"], &probe)? {
                Ok(assembly) => {
                    known.values.extend(initialisers(&assembly));
                    return Ok(());
                }
                Err(errors) => errors,
            };
            let bad = error_lines(&errors, &self.file);
            let first_line = include.lines().count() + 1;
            if !bad.iter().any(|&line| line >= first_line) {
                eprintln!("{}: {header} does not compile", self.target.column);
                return Ok(());
            }
            let mut line = first_line - 1;
            names.retain(|_| {
                line += 1;
                !bad.contains(&line)
            });
        }
        Ok(())
    }
}

/// The object-like macros that a preprocessed text defines.
fn macros(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| {
            let (name, value) = line.strip_prefix("#define ")?.split_once(' ')?;
            (is_constant_name(name) && !value.trim().is_empty()).then(|| name.to_owned())
        })
        .collect()
}

/// The macros with a value made by `_IO`, `_IOR`, `_IOW` or `_IOWR`.
fn ioctls(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix("#define ")?.split_once(' ')?;
        value.trim().starts_with("_IO").then(|| name.to_owned())
    })
}

/// The enumerators of preprocessed C.
fn enumerators(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("enum") {
        rest = after;
        let Some((head, body)) = after.split_once('{') else {
            break;
        };
        if head.contains([';', '(', ')', '}']) {
            continue;
        }
        let body = body.split('}').next().unwrap_or("");
        for item in body.split(',') {
            let name = item.split('=').next().unwrap_or("").trim();
            if is_constant_name(name) {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

/// Whether a name looks like a constant: upper case, digits and underscores, from a letter on.
pub(super) fn is_constant_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// The lines of `file` with compiler errors.
fn error_lines(errors: &str, file: &Path) -> BTreeSet<usize> {
    let prefix = format!("{}:", file.display());
    errors
        .lines()
        .filter(|line| line.contains(" error: "))
        .filter_map(|line| line.strip_prefix(&prefix)?.split(':').next()?.parse().ok())
        .collect()
}

/// The values of the 64-bit initialisers in assembly.
fn initialisers(assembly: &str) -> Values {
    let mut values = Values::new();
    let mut current: Option<(String, u32)> = None;
    for line in assembly.lines() {
        if let Some(label) = line.strip_suffix(':') {
            current = label.strip_prefix("V__").map(|name| (name.to_owned(), 0));
            continue;
        }
        let Some((name, shift)) = &mut current else {
            continue;
        };
        let mut words = line.split_whitespace();
        let (Some(directive), Some(operand)) = (words.next(), words.next()) else {
            continue;
        };
        let (value, bits) = match directive {
            ".quad" => (
                operand
                    .parse::<i64>()
                    .map(|value| value as u64)
                    .or_else(|_| operand.parse()),
                64,
            ),
            ".long" => (
                operand
                    .parse::<i32>()
                    .map(|value| u64::from(value as u32))
                    .or_else(|_| operand.parse()),
                32,
            ),
            ".zero" => (Ok(0), 64),
            _ => continue,
        };
        if let Ok(value) = value
            && *shift < 64
        {
            *values.entry(name.clone()).or_default() |= value << *shift;
            *shift += bits;
        }
    }
    values
}

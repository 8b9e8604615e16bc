//! Extended programs in the kernel: the verifier's result, return values, and data shared with this process.
//!
//! Socket filters and classifiers are not attached: `BPF_PROG_TEST_RUN` runs them on a given packet. Tracepoint
//! programs run on every event ([`Attached`]), and share [`Array`]s and [`Counts`] with this process. All of it
//! requires `CAP_BPF`, tracepoints also `CAP_PERFMON`, or root.

mod map;

use std::error;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};

use tamis_bpf::extended::Insn;

use crate::NATIVE_ENDIAN;
use crate::errno::Errno;
use crate::sys::bpf;
use crate::sys::mapped_file::MappedFile;

pub use map::{Array, Counts, Ring, possible_cpus};

/// The file with the running kernel's types, in the form of BTF.
pub const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The bytes of [`TYPES`]: mapped where the kernel supports it (6.16), so that only the used pages are read; otherwise
/// read, one page per call.
///
/// # Errors
/// If there is no such file, or it can't be read.
pub fn types() -> io::Result<Bytes> {
    let file = File::open(TYPES)?;
    match MappedFile::new(&file) {
        Ok(mapped) => Ok(Bytes(Source::Mapped(mapped))),
        Err(_) => Ok(Bytes(Source::Read(fs::read(TYPES)?))),
    }
}

/// Bytes of a file that doesn't change.
#[derive(Debug)]
pub struct Bytes(Source);

#[derive(Debug)]
enum Source {
    Mapped(MappedFile),
    Read(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Source::Mapped(mapped) => mapped,
            Source::Read(bytes) => bytes,
        }
    }
}

/// `BPF_PROG_TYPE_SOCKET_FILTER`.
const SOCKET_FILTER: u32 = 1;
/// `BPF_PROG_TYPE_SCHED_CLS`.
const CLASSIFIER: u32 = 3;
/// `BPF_PROG_TYPE_TRACING`.
const TRACING: u32 = 26;
/// `BPF_TRACE_RAW_TP`.
const TRACE_RAW_TP: u32 = 23;
/// The bytes of the verifier's messages that are kept.
const LOG_BYTES: usize = 1 << 16;

/// A program that the verifier accepted. It is unloaded when this is dropped.
#[derive(Debug)]
pub struct Loaded {
    fd: OwnedFd,
}

/// The reason why a program is not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The error: `EPERM` without the permission to load programs, `EACCES` or `EINVAL` for programs that the verifier
    /// refuses.
    pub errno: Errno,
    /// The verifier's messages; the last lines contain the reason.
    pub log: String,
}

impl LoadError {
    /// The verifier's reason: the last line that isn't about its work.
    pub fn reason(&self) -> &str {
        let lines = self.log.lines().rev();
        let mut reasons = lines.filter(|line| !line.is_empty() && !line.starts_with("processed "));
        reasons.next().unwrap_or_default()
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the program can't be loaded: {}", self.errno)?;
        match self.reason() {
            "" => Ok(()),
            reason => write!(f, ": {reason}"),
        }
    }
}

impl error::Error for LoadError {}

/// The result of running a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestRun {
    /// The lower half of r0.
    pub ret: u32,
    /// The mean time of a run in nanoseconds.
    pub mean_ns: u32,
}

/// Loads a filter of sockets.
///
/// # Errors
/// [`LoadError`], with the verifier's messages if it refuses the program.
pub fn load_socket_filter(insns: &[Insn]) -> Result<Loaded, LoadError> {
    load(unattached(SOCKET_FILTER), insns)
}

/// Loads a classifier of packets. Unlike a filter of sockets, it may access the packet directly, and it sees the header
/// of Ethernet.
///
/// # Errors
/// [`LoadError`], with the verifier's messages if it refuses the program.
pub fn load_classifier(insns: &[Insn]) -> Result<Loaded, LoadError> {
    load(unattached(CLASSIFIER), insns)
}

/// Loads a program for a tracepoint and attaches it: it runs whenever any task of the machine gets there, with the
/// tracepoint's arguments as context. `btf_id` is the number of the type `btf_trace_NAME` in the kernel's BTF. Kernel
/// 5.5.
///
/// # Errors
/// [`LoadError`], with the verifier's messages if it refuses the program.
pub fn attach_tracepoint(btf_id: u32, insns: &[Insn]) -> Result<Attached, LoadError> {
    let kind = bpf::Kind {
        program: TRACING,
        attach: TRACE_RAW_TP,
        attach_btf_id: btf_id,
    };
    let program = load(kind, insns)?;
    let link = bpf::attach_tracing(program.fd.as_fd()).map_err(|errno| LoadError {
        errno,
        log: String::new(),
    })?;
    Ok(Attached {
        program,
        _link: link,
    })
}

/// A program that runs at a tracepoint, until this is dropped.
#[derive(Debug)]
pub struct Attached {
    program: Loaded,
    _link: OwnedFd,
}

impl Attached {
    /// How often the program was not run because it was running on that CPU already. Kernel 5.12; 0 on older ones.
    ///
    /// # Errors
    /// The kernel's.
    pub fn misses(&self) -> Result<u64, Errno> {
        /// The offset of `recursion_misses` in `struct bpf_prog_info`.
        const MISSES: usize = 208;
        let mut info = [0; MISSES + 8];
        bpf::program_info(self.program.fd.as_fd(), &mut info)?;
        let misses = info
            .last_chunk::<8>()
            .map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Ok(misses)
    }
}

const fn unattached(program: u32) -> bpf::Kind {
    bpf::Kind {
        program,
        attach: 0,
        attach_btf_id: 0,
    }
}

fn load(kind: bpf::Kind, insns: &[Insn]) -> Result<Loaded, LoadError> {
    let raw: Vec<[u8; Insn::SIZE_BYTES]> = insns
        .iter()
        .map(|insn| insn.to_bytes(NATIVE_ENDIAN))
        .collect();
    // The verifier is slower if it writes messages.
    if let Ok(fd) = bpf::load(kind, &raw, &mut []) {
        return Ok(Loaded { fd });
    }
    let mut log = vec![0; LOG_BYTES];
    match bpf::load(kind, &raw, &mut log) {
        Ok(fd) => Ok(Loaded { fd }),
        Err(errno) => {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            let log = String::from_utf8_lossy(&log[..end]).into_owned();
            Err(LoadError { errno, log })
        }
    }
}

impl Loaded {
    /// Runs the program `repeat` times on an Ethernet frame of at least 14 bytes, with the bytes of a `struct
    /// __sk_buff` as context; only `mark`, `priority`, `ifindex` and `cb` are used. A socket filter sees the frame
    /// without its first 14 bytes. `context` receives the context of the last run.
    ///
    /// # Errors
    /// The kernel's; `EINVAL` for an unsuitable frame or context.
    pub fn test_run(
        &self,
        frame: &[u8],
        context: &mut [u8],
        repeat: u32,
    ) -> Result<TestRun, Errno> {
        let (ret, mean_ns) = bpf::test_run(self.fd.as_fd(), frame, context, repeat)?;
        Ok(TestRun { ret, mean_ns })
    }
}

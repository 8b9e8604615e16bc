//! `bpf(2)`: loading a program and running it once.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use crate::errno::Errno;
use crate::sys::{check, fd};

const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;

/// What `BPF_PROG_LOAD` takes, up to the last field that is used here; the kernel takes the rest as 0.
#[repr(C)]
struct Load {
    kind: u32,
    insn_count: u32,
    insns: u64,
    licence: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// What `BPF_PROG_TEST_RUN` takes and gives.
#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    ret: u32,
    data_in_bytes: u32,
    data_out_bytes: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration_ns: u32,
    context_in_bytes: u32,
    context_out_bytes: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    padding: u32,
}

/// Loads instructions of eight bytes each as a program of a kind. The verifier's messages go to `log`, unless it is
/// empty.
pub(crate) fn load(kind: u32, insns: &[[u8; 8]], log: &mut [u8]) -> Result<OwnedFd, Errno> {
    let address = if log.is_empty() {
        0
    } else {
        log.as_mut_ptr() as u64
    };
    let attributes = Load {
        kind,
        insn_count: insns.len() as u32,
        insns: insns.as_ptr() as u64,
        licence: c"GPL".as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: log.len() as u32,
        log: address,
        kernel_version: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads the structure and what it points to: `insn_count` instructions of eight bytes, and a
    // string with its end. It writes at most `log_bytes` to `log`, which is borrowed for that.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            PROG_LOAD,
            &raw const attributes,
            size_of::<Load>(),
        )
    };
    Ok(fd::adopt(check(returned)? as RawFd))
}

/// Runs a program `repeat` times on a packet and a context; gives its result and the mean time in nanoseconds.
pub(crate) fn test_run(
    program: BorrowedFd<'_>,
    data: &[u8],
    context: &mut [u8],
    repeat: u32,
) -> Result<(u32, u32), Errno> {
    let mut attributes = TestRun {
        program: program.as_raw_fd() as u32,
        data_in_bytes: data.len() as u32,
        data_in: data.as_ptr() as u64,
        repeat,
        context_in_bytes: context.len() as u32,
        context_out_bytes: context.len() as u32,
        context_in: context.as_ptr() as u64,
        context_out: context.as_mut_ptr() as u64,
        ..TestRun::default()
    };
    // SAFETY: the kernel reads `data` and `context`, whose sizes it is given, and writes the structure and at most as
    // many bytes of `context`, which is borrowed for that. The packet isn't written back: `data_out` is 0.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            PROG_TEST_RUN,
            &raw mut attributes,
            size_of::<TestRun>(),
        )
    };
    check(returned)?;
    Ok((attributes.ret, attributes.duration_ns))
}

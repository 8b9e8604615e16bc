//! Loading and exporting.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::api::{code, filter};
use crate::contexts::Handle;
use crate::load;
use crate::status::Status;

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_precompute(handle: Handle) -> c_int {
    // SAFETY: the caller uses the handle in one thread at a time.
    code(|| unsafe { filter(handle) }?.program().map(|_| ()))
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_load(handle: Handle) -> c_int {
    code(|| {
        // SAFETY: the caller uses the handle in one thread at a time.
        load::load(unsafe { filter(handle) }?)
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_export_bpf(handle: Handle, fd: c_int) -> c_int {
    code(|| {
        // SAFETY: the caller uses the handle in one thread at a time.
        let filter = unsafe { filter(handle) }?;
        let bytes = filter.program_bytes()?;
        // A short write counts as success, as in libseccomp.
        write(fd, &bytes)
            .map(|_| ())
            .map_err(|status| status.shown(filter.attributes().raw_errors))
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_export_bpf_mem(
    handle: Handle,
    buffer: *mut c_void,
    length: *mut usize,
) -> c_int {
    code(|| {
        // SAFETY: the caller uses the handle in one thread at a time.
        let filter = unsafe { filter(handle) }?;
        if length.is_null() {
            return Err(Status::Invalid);
        }
        let bytes = filter.program_bytes()?;
        // SAFETY: it isn't null, and the interface demands a length.
        let room = unsafe { length.replace(bytes.len()) };
        if buffer.is_null() {
            return Ok(());
        }
        if room < bytes.len() {
            return Err(Status::Range);
        }
        // SAFETY: the interface demands a buffer of the given length, which suffices.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len()) };
        Ok(())
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_export_pfc(handle: Handle, fd: c_int) -> c_int {
    code(|| {
        // SAFETY: the caller uses the handle in one thread at a time.
        let filter = unsafe { filter(handle) }?;
        let text = filter.pseudo_code()?;
        let written = append_to(fd).and_then(|()| write_all(fd, text.as_bytes()));
        written.map_err(|status| status.shown(filter.attributes().raw_errors))
    })
}

/// Sets `O_APPEND`.
fn append_to(fd: c_int) -> Result<(), Status> {
    // SAFETY: takes no pointers.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        return Err(Status::last());
    }
    if flags & libc::O_ACCMODE == libc::O_RDONLY {
        return Err(Status::Raw(libc::EINVAL));
    }
    // SAFETY: as above.
    if unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_APPEND) } < 0 {
        return Err(Status::last());
    }
    Ok(())
}

fn write(fd: c_int, bytes: &[u8]) -> Result<usize, Status> {
    // SAFETY: the kernel reads at most so many bytes.
    let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(written).map_err(|_| Status::last())
}

fn write_all(fd: c_int, bytes: &[u8]) -> Result<(), Status> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match write(fd, rest) {
            Ok(written) => rest = &rest[written..],
            Err(Status::Raw(libc::EINTR)) => {}
            Err(status) => return Err(status),
        }
    }
    Ok(())
}

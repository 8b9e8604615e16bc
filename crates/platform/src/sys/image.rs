//! The loaded programs and libraries of this process, as a file that another process can map at the same addresses.
//!
//! Code that works there needs neither heap nor thread-locals, and changes no variables: the mapping is read-only.
//! Variables have their values of the moment, which other threads may be about to change. An empty file reserves
//! descriptor numbers.

use std::ffi::{CStr, c_void};
use std::fs::OpenOptions;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use tamis_kernel::Errno;

const PAGE: u64 = 4096;

/// The file, and the addresses of its parts.
#[derive(Debug)]
pub(crate) struct Snapshot {
    file: OwnedFd,
    parts: Vec<Part>,
}

/// A program or library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its addresses, in pages.
    pub(crate) range: Range<u64>,
    /// Its offset in the file.
    pub(crate) offset: u64,
}

impl Snapshot {
    /// A snapshot of the current state.
    pub(crate) fn new() -> Result<Snapshot, Errno> {
        let objects = objects();
        let file = empty(c"monitor")?;
        let mut end = 0;
        let mut parts = Vec::new();
        for segments in &objects {
            let first = segments.iter().map(|one| one.start & !(PAGE - 1)).min();
            let after = segments
                .iter()
                .map(|one| one.end.next_multiple_of(PAGE))
                .max();
            let (Some(first), Some(after)) = (first, after) else {
                continue;
            };
            for segment in segments {
                write(&file, segment, end + segment.start - first)?;
            }
            parts.push(Part {
                range: first..after,
                offset: end,
            });
            end += after - first;
        }
        // SAFETY: takes numbers only.
        check(unsafe { libc::ftruncate(file.as_raw_fd(), end as libc::off_t) } as isize)?;
        seal(&file)?;
        Ok(Snapshot { file, parts })
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl AsFd for Snapshot {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A descriptor that permits neither reading nor writing (`O_PATH`). Its file, if opened anew, is empty and stays
/// empty.
pub(crate) fn nothing() -> Result<OwnedFd, Errno> {
    let file = empty(c"taken")?;
    seal(&file)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC);
    match options.open(path) {
        Ok(file) => Ok(file.into()),
        Err(error) => Err(Errno(error.raw_os_error().unwrap_or(libc::EIO))),
    }
}

/// A new file without a path.
fn empty(name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name ends with a zero byte.
    let fd = check(unsafe { libc::memfd_create(name.as_ptr(), flags) } as isize)?;
    // SAFETY: the kernel has just made it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Seals a file against changes.
fn seal(file: &OwnedFd) -> Result<(), Errno> {
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: takes numbers only.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } as isize).map(|_| ())
}

fn check(returned: isize) -> Result<isize, Errno> {
    match returned {
        -1 => Err(Errno::last()),
        value => Ok(value),
    }
}

/// Writes the memory at these addresses to an offset in the file.
fn write(file: &OwnedFd, segment: &Range<u64>, offset: u64) -> Result<(), Errno> {
    let mut done = 0;
    while segment.start + done < segment.end {
        let from = std::ptr::with_exposed_provenance((segment.start + done) as usize);
        let left = (segment.end - segment.start - done) as usize;
        let place = (offset + done) as libc::off_t;
        // SAFETY: the kernel copies mapped memory, and returns an error for unmapped memory.
        let written = check(unsafe { libc::pwrite(file.as_raw_fd(), from, left, place) })?;
        done += written as u64;
    }
    Ok(())
}

/// The readable segments of each program and library, except the kernel's own.
fn objects() -> Vec<Vec<Range<u64>>> {
    let mut objects: Vec<Vec<Range<u64>>> = Vec::new();
    // SAFETY: the function gets this list, and is called while it is borrowed here alone.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut objects).cast()) };
    // SAFETY: reads a number from the auxiliary vector.
    let own = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    objects.retain(|segments| !segments.iter().any(|one| one.contains(&own)));
    objects
}

/// Adds an object to the list.
unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, list: *mut c_void) -> i32 {
    // SAFETY: the C library's structure, and the list of the caller.
    let (info, list) = unsafe { (&*info, &mut *list.cast::<Vec<Vec<Range<u64>>>>()) };
    // SAFETY: so many headers are there.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let loaded = headers
        .iter()
        .filter(|one| one.p_type == libc::PT_LOAD && one.p_flags & libc::PF_R != 0);
    let range = |one: &libc::Elf64_Phdr| {
        let first = info.dlpi_addr.wrapping_add(one.p_vaddr);
        first..first.wrapping_add(one.p_memsz)
    };
    list.push(loaded.map(range).collect());
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_where_it_is_here() {
        let snapshot = Snapshot::new().unwrap();
        let at = code_is_where_it_is_here as *const () as u64;
        let mut parts = snapshot.parts().iter();
        let part = parts.find(|part| part.range.contains(&at)).unwrap();
        let mut bytes = [0_u8; 16];
        let offset = part.offset + at - part.range.start;
        // SAFETY: there is room for so many bytes.
        let read = unsafe {
            libc::pread(
                snapshot.as_fd().as_raw_fd(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                offset as libc::off_t,
            )
        };
        assert_eq!(read, 16);
        // SAFETY: code of this program.
        let expected = unsafe { std::slice::from_raw_parts(at as *const u8, 16) };
        assert_eq!(bytes, expected);
    }
}

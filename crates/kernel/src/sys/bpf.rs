//! `bpf(2)`: loading and attaching programs, running them once, and maps.

use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use crate::errno::Errno;
use crate::sys::{check, fd};

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP_ELEM: libc::c_int = 1;
const MAP_GET_NEXT_KEY: libc::c_int = 4;
const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;

/// `BPF_F_MMAPABLE`: the values of an array can be mapped.
pub(crate) const MAPPABLE: u32 = 1 << 10;

/// The attributes of `BPF_MAP_CREATE` up to the last used field; the kernel assumes 0 for the rest.
#[repr(C)]
struct Create {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    max_entries: u32,
    flags: u32,
}

/// The attributes of operations on an element.
#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The attributes of `BPF_RAW_TRACEPOINT_OPEN`.
#[repr(C)]
struct RawTracepoint {
    name: u64,
    program: u32,
    padding: u32,
}

/// The attributes of `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct ObjectInfo {
    fd: u32,
    len_bytes: u32,
    info: u64,
}

/// The type of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// `BPF_PROG_TYPE_*`.
    pub(crate) program: u32,
    /// The expected type of attachment, `BPF_*`.
    pub(crate) attach: u32,
    /// The type in the kernel's BTF that it is attached to, or 0.
    pub(crate) attach_btf_id: u32,
}

/// The attributes of `BPF_PROG_LOAD` up to the last used field; the kernel assumes 0 for the rest.
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
    name: [u8; 16],
    interface: u32,
    attach: u32,
    btf: u32,
    function_info_bytes: u32,
    function_info: u64,
    function_infos: u32,
    line_info_bytes: u32,
    line_info: u64,
    line_infos: u32,
    attach_btf_id: u32,
}

/// The attributes of `BPF_PROG_TEST_RUN`.
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
pub(crate) fn load(kind: Kind, insns: &[[u8; 8]], log: &mut [u8]) -> Result<OwnedFd, Errno> {
    let address = if log.is_empty() {
        0
    } else {
        log.as_mut_ptr() as u64
    };
    let attributes = Load {
        kind: kind.program,
        insn_count: insns.len() as u32,
        insns: insns.as_ptr() as u64,
        licence: c"GPL".as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: log.len() as u32,
        log: address,
        kernel_version: 0,
        flags: 0,
        name: [0; 16],
        interface: 0,
        attach: kind.attach,
        btf: 0,
        function_info_bytes: 0,
        function_info: 0,
        function_infos: 0,
        line_info_bytes: 0,
        line_info: 0,
        line_infos: 0,
        attach_btf_id: kind.attach_btf_id,
    };
    // SAFETY: the kernel reads the structure and the memory behind its pointers: `insn_count` instructions of eight
    // bytes, and a terminated string. It writes at most `log_bytes` to `log`, which is borrowed for that.
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
    // SAFETY: the kernel reads `data` and `context` according to their sizes, and writes the structure and at most as
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

/// Makes a map. Sizes are in bytes.
pub(crate) fn create_map(
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    max_entries: u32,
    flags: u32,
) -> Result<OwnedFd, Errno> {
    let attributes = Create {
        kind,
        key_bytes,
        value_bytes,
        max_entries,
        flags,
    };
    // SAFETY: the kernel reads the structure.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            MAP_CREATE,
            &raw const attributes,
            size_of::<Create>(),
        )
    };
    Ok(fd::adopt(check(returned)? as RawFd))
}

/// The value of a key. `value` must have space for the kernel's output: for maps with a value per CPU, one for each
/// possible CPU, rounded up to eight bytes.
///
/// # Safety
/// The sizes of key and value must be those of the map.
unsafe fn element(
    command: libc::c_int,
    map: BorrowedFd<'_>,
    key: *const u8,
    value: *mut u8,
) -> Result<(), Errno> {
    let attributes = Element {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: key as u64,
        value: value as u64,
        flags: 0,
    };
    // SAFETY: the caller guarantees that key and value have the sizes of the map.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            &raw const attributes,
            size_of::<Element>(),
        )
    };
    check(returned).map(|_| ())
}

/// A map with its sizes, so that no element can be read into too little room.
#[derive(Debug)]
pub(crate) struct SizedMap {
    pub(crate) fd: OwnedFd,
    pub(crate) key_bytes: usize,
    /// The size of a value for the kernel.
    pub(crate) value_bytes: usize,
}

impl SizedMap {
    /// The value of a key of the map's size.
    pub(crate) fn lookup(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
        assert_eq!(key.len(), self.key_bytes, "keys of a map have one size");
        let mut value = vec![0; self.value_bytes];
        // SAFETY: key and value have the map's sizes.
        let done = unsafe {
            element(
                MAP_LOOKUP_ELEM,
                borrowed(&self.fd),
                key.as_ptr(),
                value.as_mut_ptr(),
            )
        };
        found(done).map(|is_found| is_found.then_some(value))
    }

    /// The key after another, the first without one.
    pub(crate) fn next_key(&self, after: Option<&[u8]>) -> Result<Option<Vec<u8>>, Errno> {
        let mut next = vec![0; self.key_bytes];
        let key = match after {
            Some(key) => {
                assert_eq!(key.len(), self.key_bytes, "keys of a map have one size");
                key.as_ptr()
            }
            None => ptr::null(),
        };
        // SAFETY: the kernel reads a key and writes one, both of the map's size.
        let done = unsafe { element(MAP_GET_NEXT_KEY, borrowed(&self.fd), key, next.as_mut_ptr()) };
        found(done).map(|is_found| is_found.then_some(next))
    }
}

fn borrowed(fd: &OwnedFd) -> BorrowedFd<'_> {
    std::os::fd::AsFd::as_fd(fd)
}

fn found(done: Result<(), Errno>) -> Result<bool, Errno> {
    match done {
        Ok(()) => Ok(true),
        Err(Errno(libc::ENOENT)) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Attaches a program of a tracepoint that its loading named. It is detached when the descriptor is closed.
pub(crate) fn attach_tracing(program: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let attributes = RawTracepoint {
        name: 0,
        program: program.as_raw_fd() as u32,
        padding: 0,
    };
    // SAFETY: the kernel reads the structure.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            RAW_TRACEPOINT_OPEN,
            &raw const attributes,
            size_of::<RawTracepoint>(),
        )
    };
    Ok(fd::adopt(check(returned)? as RawFd))
}

/// The bytes of `struct bpf_prog_info`, as many as fit; fields unknown to an older kernel stay 0.
pub(crate) fn program_info(program: BorrowedFd<'_>, info: &mut [u8]) -> Result<(), Errno> {
    let mut attributes = ObjectInfo {
        fd: program.as_raw_fd() as u32,
        len_bytes: info.len() as u32,
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: the kernel writes at most `len_bytes` to `info`, which is zeroed by the caller's making it: pointers in
    // it are null, so that the kernel follows none.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            OBJ_GET_INFO_BY_FD,
            &raw mut attributes,
            size_of::<ObjectInfo>(),
        )
    };
    check(returned).map(|_| ())
}

/// The values of an array, mapped: programs and this process see each other's writes.
pub(crate) struct MappedArray {
    first: NonNull<AtomicU64>,
    len: usize,
}

impl MappedArray {
    /// Maps `len` words of the array's values, which must be as many or more.
    pub(crate) fn new(map: BorrowedFd<'_>, len: usize) -> Result<MappedArray, Errno> {
        let len_bytes = len * size_of::<AtomicU64>();
        // SAFETY: a new mapping at an address of the kernel's choice, of a file that can't shrink.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let first = NonNull::new(address.cast()).ok_or(Errno(libc::ENOMEM))?;
        Ok(MappedArray { first, len })
    }
}

impl Deref for MappedArray {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has so many words, is page-aligned and lives as long as `self`; the kernel refuses to map
        // more than the values have.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl Drop for MappedArray {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives `self`.
        unsafe {
            libc::munmap(
                self.first.as_ptr().cast(),
                self.len * size_of::<AtomicU64>(),
            )
        };
    }
}

// SAFETY: the words are only accessed atomically, and any thread may unmap them.
unsafe impl Send for MappedArray {}
// SAFETY: as above: all access goes through atomics.
unsafe impl Sync for MappedArray {}

impl std::fmt::Debug for MappedArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MappedArray")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

//! Executing another program with the signals and descriptors at the start of this process.
//!
//! Before `main` the Rust runtime ignores `SIGPIPE` and opens `/dev/null` where a standard stream is closed. Both would
//! be inherited. A constructor of the program, which runs before the runtime starts, records the original state, and
//! [`restore`] restores it. Libraries have no such constructor.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::errno::Errno;
use crate::sys::check;

/// The recorded state: bit 0, 1 or 2 for a closed descriptor, [`PIPE_IGNORED`], [`NOTED`].
static START: AtomicU32 = AtomicU32::new(0);
/// `SIGPIPE` was ignored.
const PIPE_IGNORED: u32 = 1 << 3;
/// The constructor was called.
const NOTED: u32 = 1 << 4;
const STANDARD_STREAMS: [i32; 3] = [0, 1, 2];

/// Records the state at the start. A constructor: the C library calls it before `main`.
pub extern "C" fn note() {
    let mut start = NOTED;
    for fd in STANDARD_STREAMS {
        // SAFETY: takes no pointers.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            start |= 1 << fd;
        }
    }
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the old action is written to valid memory, and none is set.
    let returned = unsafe { libc::sigaction(libc::SIGPIPE, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zeros is an action, and the call may have written another.
    if returned == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN {
        start |= PIPE_IGNORED;
    }
    START.store(start, Ordering::Relaxed);
}

/// Whether a standard stream was closed when the process was started, if that was noted: now it is `/dev/null`.
pub(crate) fn was_closed(fd: i32) -> bool {
    STANDARD_STREAMS.contains(&fd) && START.load(Ordering::Relaxed) & (1 << fd) != 0
}

/// Undoes the changes of the runtime. Descriptors that were closed at the start are closed by `execve`, so that earlier
/// messages go nowhere else.
pub(crate) fn restore() {
    let start = START.load(Ordering::Relaxed);
    if start & NOTED == 0 {
        return;
    }
    if start & PIPE_IGNORED == 0 {
        // SAFETY: the default action has no handler.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
    for fd in STANDARD_STREAMS {
        if start & (1 << fd) != 0 {
            // SAFETY: takes no pointers.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Whether this process may execute a file or search a folder, with its effective rights.
pub(crate) fn may_execute(file: &CStr) -> Result<(), Errno> {
    // SAFETY: the text ends with a zero byte.
    let returned =
        unsafe { libc::faccessat(libc::AT_FDCWD, file.as_ptr(), libc::X_OK, libc::AT_EACCESS) };
    check(returned).map(|_| ())
}

/// The arguments of `execve` in memory, with the environment of this process.
pub(crate) struct Image {
    path: CString,
    _strings: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Image {
    /// The image of a file with the arguments of the program, starting with `argv[0]`.
    pub(crate) fn new(path: CString, argv: Vec<CString>) -> Image {
        let pointers = argv.iter().map(|text| text.as_ptr());
        Image {
            pointers: pointers.chain([ptr::null()]).collect(),
            path,
            _strings: argv,
        }
    }

    /// The arguments of the system call as filters see them.
    pub(crate) fn words(&self) -> [u64; 3] {
        [
            self.path.as_ptr() as u64,
            self.pointers.as_ptr() as u64,
            environment() as u64,
        ]
    }

    /// Makes the process this program. It returns only if that fails; the errno is 0 if a filter has answered with
    /// success.
    pub(crate) fn execute(&self) -> Errno {
        // SAFETY: the path and all strings end with a zero byte, both lists with a null pointer, and all live on. No
        // other thread changes the environment while it is read.
        let returned =
            unsafe { libc::execve(self.path.as_ptr(), self.pointers.as_ptr(), environment()) };
        check(returned).err().unwrap_or(Errno(0))
    }
}

pub(crate) fn environment() -> *const *const libc::c_char {
    // SAFETY: the C library has a variable of this name and type.
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    // SAFETY: the C library defines it, and this process has no thread that changes it.
    unsafe { environ }
}

//! Executable memory: machine code in pages of its own, which are never writable and executable at once.
//!
//! A mapping is inaccessible at first. The pages between its first and its last become writable, get the code, and
//! become readable and executable; they never change again and are unmapped with the value that owns them. The first
//! and the last page stay inaccessible: execution or accesses beyond an end of the code fault. The space around the
//! code is filled with a trap instruction.
//!
//! All `unsafe` of the crate is here, including the call of the code. It is sound because of the type of its argument:
//! only the emitter of this crate creates a `Code`. Calls use a `Function`, an address that was computed once and keeps
//! its code alive. On machines other than x86-64 with Linux nothing can be made executable, and the result is an error.

use std::fmt;
use std::io;

use std::any::Any;

use tamis_ebpf_vm::interp::Fault;
use tamis_ebpf_vm::memory::{Context, FIRST_FRAME_END, Frames, Helpers, Memory};

use crate::assembler::{Code, EntryPoint, LINE_BYTES};
use crate::extended::Needs;
use crate::socket::Record;

/// The state that the code of an extended program and the host share during an evaluation.
#[repr(C)]
pub(crate) struct RawState {
    /// The first byte of the context.
    pub(crate) context: *mut u8,
    /// The first byte of the outermost frame.
    pub(crate) stack: *mut u8,
    /// The address behind the newest frame, as the program sees it.
    pub(crate) frame_end: u64,
    /// The first byte of the packet.
    pub(crate) packet: *const u8,
    pub(crate) packet_bytes: u64,
    /// The machine's stack pointer in the main function.
    pub(crate) stack_pointer: u64,
    /// r1 to r5 at the call of a helper.
    pub(crate) arguments: [u64; 5],
    /// The host's function that calls helpers.
    pub(crate) helper: HelperEntry,
    /// A [`Host`].
    host: *mut std::ffi::c_void,
}

/// The state, the instruction and the helper's number. On x86-64, the only machine where it is called, the convention of C is the one
/// that the code uses.
type HelperEntry = extern "C" fn(*mut RawState, u32, u32) -> Returned;

/// The host's return value for the code: the result in RAX, and in RDX whether there is none.
#[repr(C)]
pub(crate) struct Returned {
    value: u64,
    is_failed: u64,
}

/// The host's state during an evaluation.
struct Host<'e, 'm, 'h> {
    needs: Needs,
    memory: &'e mut Memory<'m>,
    helpers: &'e mut Helpers<'h>,
    failure: Option<Failure>,
}

/// Why a helper has no result.
enum Failure {
    Fault(Fault),
    Panic(Box<dyn Any + Send>),
}

/// The reason why there is no executable memory.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unavailable {
    /// The code is for x86-64 with Linux, and this machine is another one.
    Host,
    /// The kernel refused a system call. SELinux and `PR_SET_MDWE` forbid `mprotect` to make memory executable,
    /// filters may, and memory may be exhausted.
    Refused {
        /// The system call.
        call: &'static str,
        /// The reason of the kernel.
        error: io::Error,
    },
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::Host => f.write_str("machine code is for x86-64 with Linux only"),
            Unavailable::Refused { call, error } => {
                write!(f, "no executable memory: {call} failed: {error}")
            }
        }
    }
}

impl std::error::Error for Unavailable {}

/// Whether code can be made executable here and now.
///
/// # Errors
/// The reason why not, by trying it.
pub fn probe() -> Result<(), Unavailable> {
    Executable::new(&Code::of_return()).map(drop)
}

pub(crate) use host::{Executable, Function, call_extended, call_without_helpers, prefetch};

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[expect(unsafe_code, reason = "maps memory and calls the code in it")]
mod host {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    use std::ptr::{self, NonNull};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, OnceLock};

    use libc::{PROT_EXEC, PROT_NONE, PROT_READ, PROT_WRITE, c_int, c_void};

    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::{
        Code, Context, EntryPoint, FIRST_FRAME_END, Failure, Fault, Frames, Helpers, Host,
        LINE_BYTES, Memory, Needs, RawState, Record, Returned, Unavailable, io,
    };
    use crate::extended::call_helper;

    /// `int3`, which raises SIGTRAP.
    const TRAP: u8 = 0xcc;

    /// Machine code that can be called. It doesn't change, so any thread may call it at any time.
    #[derive(Debug)]
    pub(crate) struct Executable {
        /// The first byte of the mapping, which is the guard before the code.
        mapping: NonNull<u8>,
        mapping_bytes: usize,
        /// The first byte of the code, inside the mapping.
        code: NonNull<u8>,
        code_bytes: usize,
    }

    impl Executable {
        /// Copies the code to memory of its own and makes that executable.
        ///
        /// # Errors
        /// If the kernel refuses it.
        pub(crate) fn new(code: &Code) -> Result<Executable, Unavailable> {
            let page = page_bytes();
            let bytes = code.bytes();
            let room = bytes.len().next_multiple_of(page);
            // From here on the mapping is dropped with `made`, whatever fails.
            let mut made = map(room + 2 * page)?;
            // SAFETY: the second page is inside the mapping, which has at least three.
            let first = unsafe { made.mapping.add(page) };
            make_writable(first, room)?;
            // The code ends with a line, as it was written to. As much as is missing to that is free: a page is whole lines.
            let before = bytes.len().next_multiple_of(LINE_BYTES) - bytes.len();
            let after = room - bytes.len() - before;
            // SAFETY: `room` bytes from `first` on are mapped, writable and not referenced; the source is another
            // allocation, and it fits between the code before and after it.
            let code = unsafe {
                let code = first.add(before);
                ptr::write_bytes(first.as_ptr(), TRAP, before);
                ptr::copy_nonoverlapping(bytes.as_ptr(), code.as_ptr(), bytes.len());
                ptr::write_bytes(code.as_ptr().add(bytes.len()), TRAP, after);
                code
            };
            make_executable(first, room)?;
            made.code = code;
            made.code_bytes = bytes.len();
            Ok(made)
        }

        /// The code, for disassemblers.
        pub(crate) fn bytes(&self) -> &[u8] {
            // SAFETY: `new` has written these bytes; they are readable and unchanged as long as `self` lives.
            unsafe { std::slice::from_raw_parts(self.code.as_ptr(), self.code_bytes) }
        }
    }

    /// A callable place in code.
    #[derive(Debug)]
    pub(crate) struct Function {
        /// In the code.
        address: NonNull<u8>,
        executable: Arc<Executable>,
    }

    impl Function {
        /// The function that begins at an entry point of this code.
        pub(crate) fn new(executable: &Arc<Executable>, entry: EntryPoint) -> Function {
            assert!(entry.offset() < executable.code_bytes);
            Function {
                // SAFETY: the offset was compared with the length of the code.
                address: unsafe { executable.code.add(entry.offset()) },
                executable: Arc::clone(executable),
            }
        }

        /// The whole code.
        pub(crate) fn code(&self) -> &[u8] {
            self.executable.bytes()
        }

        /// Where it begins in the code.
        pub(crate) fn offset(&self) -> usize {
            self.address.as_ptr() as usize - self.executable.code.as_ptr() as usize
        }

        /// Runs code that was emitted to read sixteen words.
        #[inline]
        pub(crate) fn call_with_words(&self, words: &[u32; 16]) -> u32 {
            // SAFETY: an entry point is the beginning of an instruction of the code that it was made with, and the
            // callers of `new` keep both together. The pages are executable as long as `self` lives. The emitter's code for
            // sixteen words follows this calling convention: it reads only the words that its first argument points
            // to, writes only the red zone below the stack pointer, changes only registers that a callee may change,
            // jumps only forward inside the code, and ends with a return.
            unsafe {
                type Words = unsafe extern "sysv64" fn(*const u32) -> u32;
                let function: Words = std::mem::transmute(self.address);
                function(words.as_ptr())
            }
        }

        /// Runs code that was emitted for packets and reads nothing but their bytes, on at most 2^31 - 1 of them.
        #[inline]
        pub(crate) fn call_with_bytes(&self, bytes: &[u8]) -> u32 {
            debug_assert!(bytes.len() <= i32::MAX as usize);
            // SAFETY: as for words, but the code reads bytes behind its first argument, fewer than its second one.
            unsafe {
                type Bytes = unsafe extern "sysv64" fn(*const u8, usize) -> u32;
                let function: Bytes = std::mem::transmute(self.address);
                function(bytes.as_ptr(), bytes.len())
            }
        }

        /// Runs code that was emitted for packets, on at most 2^31 - 1 bytes.
        #[inline]
        pub(crate) fn call_with_packet(
            &self,
            bytes: &[u8],
            len_bytes: u32,
            record: &Record,
        ) -> u32 {
            debug_assert!(bytes.len() <= i32::MAX as usize);
            // SAFETY: as for words, but the code reads bytes behind its first argument, fewer than its second one, and
            // the numbers of the record.
            unsafe {
                type Packet =
                    unsafe extern "sysv64" fn(*const u8, usize, u32, u32, *const u32, u32) -> u32;
                let function: Packet = std::mem::transmute(self.address);
                let (first, record) = (bytes.as_ptr(), record.as_ptr());
                function(first, bytes.len(), 0, 0, record, len_bytes)
            }
        }
    }

    /// Runs the code of a checked extended program, on a memory that meets its requirements and has begun an
    /// evaluation.
    pub(crate) fn call_extended(
        function: &Function,
        needs: Needs,
        memory: &mut Memory<'_>,
        helpers: &mut Helpers<'_>,
    ) -> Result<u64, Fault> {
        let (places, packet) = (memory.real_places(), memory.packet());
        let frame_end = memory.frame_end();
        let mut host = Host {
            needs,
            memory,
            helpers,
            failure: None,
        };
        let mut state = RawState {
            context: places.context,
            stack: places.stack,
            frame_end,
            packet: packet.as_ptr(),
            packet_bytes: packet.len() as u64,
            stack_pointer: 0,
            arguments: [0; 5],
            helper: serve,
            host: (&raw mut host).cast(),
        };
        // The code saves what a callee must keep, and returns with the stack pointer that it came with; loops end, as the
        // checker has followed them. Helpers are called by `serve` alone, after which the places are read again.
        // SAFETY: the frames are those that `memory` has room for, and the caller has compared the context with the needs.
        let value = unsafe { enter(function, &mut state) };
        match host.failure {
            None => Ok(value),
            Some(Failure::Fault(fault)) => Err(fault),
            Some(Failure::Panic(payload)) => resume_unwind(payload),
        }
    }

    /// Runs code that was emitted for a checked extended program that calls no helper, on a context and a packet that meet
    /// its needs.
    #[inline]
    pub(crate) fn call_without_helpers(
        function: &Function,
        needs: Needs,
        context: &mut Context<'_>,
        packet: &[u8],
        frames: &mut Frames,
    ) -> u64 {
        let mut state = RawState {
            context: match context {
                Context::ReadOnly(bytes) => bytes.as_ptr().cast_mut(),
                Context::Writable(bytes) => bytes.as_mut_ptr(),
            },
            stack: frames.bytes_of(needs.frames()).as_mut_ptr(),
            frame_end: FIRST_FRAME_END,
            packet: packet.as_ptr(),
            packet_bytes: packet.len() as u64,
            stack_pointer: 0,
            arguments: [0; 5],
            helper: serve,
            host: ptr::null_mut(),
        };
        // SAFETY: the frames are as many as are needed, and the caller has compared the context with the needs. The code
        // has no call of the host's function.
        unsafe { enter(function, &mut state) }
    }

    /// Enters the code of an extended program.
    ///
    /// # Safety
    /// The function is one of an extended program. The stack has the frames that the code was made for, and the context has every
    /// byte that the checker saw accessed, writable if it is written.
    #[inline]
    unsafe fn enter(function: &Function, state: &mut RawState) -> u64 {
        // SAFETY: an entry point is the beginning of an instruction of the code that it was made with, and the callers of
        // `new` keep both together. The code accesses the fields of the state, the frames, and the context up to the last byte
        // that the checker saw accessed; it compares places in the packet with its length.
        unsafe {
            type Extended = unsafe extern "sysv64" fn(*mut RawState) -> u64;
            let function: Extended = std::mem::transmute(function.address);
            function(state)
        }
    }

    /// Calls a helper for the code. A panic waits until the code has returned, which can't be unwound.
    extern "C" fn serve(state: *mut RawState, pc: u32, number: u32) -> Returned {
        // SAFETY: the code passes the state that `call_extended` gave it, which uses neither it nor the host before the
        // code returns; code that waits for a result uses no reference.
        let state = unsafe { &mut *state };
        // SAFETY: the same; the lifetimes are those of the borrows that `call_extended` holds.
        let host = unsafe { &mut *state.host.cast::<Host<'_, '_, '_>>() };
        let Host {
            needs,
            memory,
            helpers,
            ..
        } = host;
        let (arguments, end) = (&state.arguments, state.frame_end);
        let call = || {
            let value = call_helper(memory, helpers, [pc, number], arguments, end)?;
            assert!(
                needs.are_still_met_by(memory),
                "a helper keeps the memory that it gets"
            );
            Ok((value, memory.real_places()))
        };
        let failure = match catch_unwind(AssertUnwindSafe(call)) {
            Ok(Ok((value, places))) => {
                state.context = places.context;
                state.stack = places.stack;
                return Returned {
                    value,
                    is_failed: 0,
                };
            }
            Ok(Err(fault)) => Failure::Fault(fault),
            Err(payload) => Failure::Panic(payload),
        };
        host.failure = Some(failure);
        Returned {
            value: 0,
            is_failed: 1,
        }
    }

    /// Prefetches the first bytes into the cache.
    #[inline]
    pub(crate) fn prefetch(bytes: &[u8]) {
        // SAFETY: a hint, which has no effect that a program could see, at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().cast()) };
    }

    impl Drop for Executable {
        fn drop(&mut self) {
            // SAFETY: the mapping belongs to `self`, and references to it and evaluations in it borrow `self`.
            unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapping_bytes) };
        }
    }

    // SAFETY: the memory is not bound to a thread.
    unsafe impl Send for Executable {}
    // SAFETY: the memory is never written once `new` has returned, and its code keeps all state in registers and on
    // the stack of the thread that calls it.
    unsafe impl Sync for Executable {}
    // SAFETY: the address is of memory that isn't bound to a thread.
    unsafe impl Send for Function {}
    // SAFETY: as for the memory that it is an address of.
    unsafe impl Sync for Function {}

    /// An address below this code, where processors predict calls better than from one end of memory to the other: a
    /// call of a short program takes a third less time. Each mapping has a place of its own.
    fn place_near_callers(len_bytes: usize) -> *mut c_void {
        const FIRST_BYTES: usize = 16 << 20;
        const LAST_BYTES: usize = 1 << 30;
        static USED_BYTES: AtomicUsize = AtomicUsize::new(0);
        let used = USED_BYTES.fetch_add(len_bytes, Ordering::Relaxed) + len_bytes;
        let here = place_near_callers as *const () as usize;
        let wish = here.saturating_sub(FIRST_BYTES + used % LAST_BYTES);
        ptr::without_provenance_mut(wish & !(page_bytes() - 1))
    }

    /// An inaccessible mapping with no code yet.
    fn map(len_bytes: usize) -> Result<Executable, Unavailable> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let wish = place_near_callers(len_bytes);
        // SAFETY: without MAP_FIXED the address is a wish, so a new mapping affects no other.
        let address = unsafe { libc::mmap(wish, len_bytes, PROT_NONE, flags, -1, 0) };
        match NonNull::new(address.cast::<u8>()) {
            Some(mapping) if address != libc::MAP_FAILED => Ok(Executable {
                mapping,
                mapping_bytes: len_bytes,
                code: mapping,
                code_bytes: 0,
            }),
            _ => Err(refused("mmap")),
        }
    }

    /// Makes whole pages of a mapping of the caller's writable.
    fn make_writable(first: NonNull<u8>, len_bytes: usize) -> Result<(), Unavailable> {
        protect(first, len_bytes, PROT_READ | PROT_WRITE)?;
        if len_bytes > page_bytes() {
            let place = first.as_ptr().cast::<c_void>();
            // One call takes less time than a fault for each page. Kernels before 5.14 refuse it, and the faults happen.
            // SAFETY: the pages belong to the caller, and their content stays.
            unsafe { libc::madvise(place, len_bytes, libc::MADV_POPULATE_WRITE) };
        }
        Ok(())
    }

    /// Makes whole pages of a mapping of the caller's executable and no longer writable.
    fn make_executable(first: NonNull<u8>, len_bytes: usize) -> Result<(), Unavailable> {
        protect(first, len_bytes, PROT_READ | PROT_EXEC)
    }

    fn protect(first: NonNull<u8>, len_bytes: usize, access: c_int) -> Result<(), Unavailable> {
        // SAFETY: the pages belong to the caller, and there are no references to them.
        let code = unsafe { libc::mprotect(first.as_ptr().cast::<c_void>(), len_bytes, access) };
        match code {
            0 => Ok(()),
            _ => Err(refused("mprotect")),
        }
    }

    fn refused(call: &'static str) -> Unavailable {
        let error = io::Error::last_os_error();
        Unavailable::Refused { call, error }
    }

    fn page_bytes() -> usize {
        static PAGE: OnceLock<usize> = OnceLock::new();
        // SAFETY: has no effects, and every system supports it.
        *PAGE.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize)
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod host {
    use std::sync::Arc;

    use super::{
        Code, Context, EntryPoint, Fault, Frames, Helpers, Memory, Needs, Record, Unavailable,
    };

    /// Machine code that can be called: there is none on this machine.
    #[derive(Debug)]
    pub(crate) enum Executable {}

    impl Executable {
        pub(crate) fn new(_: &Code) -> Result<Executable, Unavailable> {
            Err(Unavailable::Host)
        }
    }

    /// A callable place in code.
    #[derive(Debug)]
    pub(crate) enum Function {}

    impl Function {
        pub(crate) fn new(executable: &Arc<Executable>, _: EntryPoint) -> Function {
            match **executable {}
        }

        pub(crate) fn code(&self) -> &[u8] {
            match *self {}
        }

        pub(crate) fn offset(&self) -> usize {
            match *self {}
        }

        pub(crate) fn call_with_words(&self, _: &[u32; 16]) -> u32 {
            match *self {}
        }

        pub(crate) fn call_with_bytes(&self, _: &[u8]) -> u32 {
            match *self {}
        }

        pub(crate) fn call_with_packet(&self, _: &[u8], _: u32, _: &Record) -> u32 {
            match *self {}
        }
    }

    pub(crate) fn call_extended(
        function: &Function,
        _: Needs,
        _: &mut Memory<'_>,
        _: &mut Helpers<'_>,
    ) -> Result<u64, Fault> {
        match *function {}
    }

    pub(crate) fn call_without_helpers(
        function: &Function,
        _: Needs,
        _: &mut Context<'_>,
        _: &[u8],
        _: &mut Frames,
    ) -> u64 {
        match *function {}
    }

    pub(crate) fn prefetch(_: &[u8]) {}
}

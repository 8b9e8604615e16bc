//! The system's libpcap: its compiler of expressions, and its interpreter as a peer of our evaluators.
//!
//! The library is loaded on first use, so it isn't needed at build time; a machine without it gets an error. It isn't
//! used to read captures.

use std::error::Error;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};

use libloading::{Library, Symbol};
use tamis_bpf::Insn;

/// `DLT_EN10MB`: packets begin with a header of Ethernet.
const ETHERNET: c_int = 1;
/// The most bytes of a packet that a program returns.
const SNAPSHOT_BYTES: c_int = 65_535;
/// `PCAP_NETMASK_UNKNOWN`.
const ANY_NETMASK: u32 = u32::MAX;

/// libpcap, loaded.
#[derive(Debug)]
pub struct Libpcap {
    library: Library,
    filter: Filter,
}

/// `bpf_filter`: instructions, bytes, the length of the packet and how many bytes there are.
// SAFETY: a type; the caller of such a function justifies it.
type Filter = unsafe extern "C" fn(*const Insn, *const u8, c_uint, c_uint) -> c_uint;

/// `struct bpf_program`.
#[repr(C)]
struct RawProgram {
    len: c_uint,
    insns: *mut Insn,
}

/// The loader's error message.
fn reason(error: &libloading::Error) -> String {
    match error.source() {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

impl Libpcap {
    /// The library of the system.
    ///
    /// # Errors
    /// If there is none, with the reason.
    pub fn open() -> Result<Libpcap, String> {
        // SAFETY: libpcap's constructors have no requirements.
        let library = unsafe { Library::new("libpcap.so.0.8") };
        let library = library.map_err(|error| reason(&error))?;
        // SAFETY: the type is that of pcap-bpf.h; `struct bpf_insn` is laid out like `Insn`.
        let filter = unsafe { library.get::<Filter>(b"bpf_filter") };
        let filter = *filter.map_err(|error| reason(&error))?;
        Ok(Libpcap { library, filter })
    }

    /// The optimised program of an expression for packets of Ethernet; `None` if libpcap refuses it.
    ///
    /// # Panics
    /// If the library lacks a function, or the expression has a byte of value 0.
    pub fn compile(&self, expression: &str) -> Option<Vec<Insn>> {
        // SAFETY: types; the calls are below.
        type OpenDead = unsafe extern "C" fn(c_int, c_int) -> *mut c_void;
        type Compile =
            unsafe extern "C" fn(*mut c_void, *mut RawProgram, *const c_char, c_int, u32) -> c_int;
        let expression = CString::new(expression).expect("a text");
        // SAFETY: the types are those of pcap.h. The handle is not used after it is closed, the program is read before
        // it is freed, and the expression lives until then.
        unsafe {
            let open: Symbol<'_, OpenDead> = self.function(b"pcap_open_dead");
            let compile: Symbol<'_, Compile> = self.function(b"pcap_compile");
            let free: Symbol<'_, unsafe extern "C" fn(*mut RawProgram)> =
                self.function(b"pcap_freecode");
            let close: Symbol<'_, unsafe extern "C" fn(*mut c_void)> = self.function(b"pcap_close");
            let handle = open(ETHERNET, SNAPSHOT_BYTES);
            let mut raw = RawProgram {
                len: 0,
                insns: std::ptr::null_mut(),
            };
            let status = compile(handle, &raw mut raw, expression.as_ptr(), 1, ANY_NETMASK);
            let insns = (status == 0).then(|| {
                let insns = std::slice::from_raw_parts(raw.insns, raw.len as usize).to_vec();
                free(&raw mut raw);
                insns
            });
            close(handle);
            insns
        }
    }

    /// The return value of a program that a socket would take, for bytes of a packet of this length.
    pub fn run(&self, program: &tamis_bpf::packet::Program, bytes: &[u8], len_bytes: u32) -> u32 {
        // SAFETY: the program was checked: its jumps are inside and it ends with a return. libpcap checks its loads
        // against the count of bytes.
        unsafe {
            let insns = program.insns().as_ptr();
            (self.filter)(insns, bytes.as_ptr(), len_bytes, bytes.len() as c_uint)
        }
    }

    /// # Safety
    /// The type must be that of the function.
    unsafe fn function<T>(&self, name: &[u8]) -> Symbol<'_, T> {
        // SAFETY: by the contract of this function.
        unsafe { self.library.get(name) }.expect("libpcap has the function")
    }
}

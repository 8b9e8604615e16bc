//! The system's libseccomp, as a peer for comparison. It is loaded at run time, so that it is not a dependency.
//!
//! The wrapped functions are those that build a filter: those of a container runtime, and other functions that change a
//! filter, for comparisons with a replacement of the library. Nothing is installed in the kernel.

use std::env;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::LazyLock;

use tamis_abi::{Action, Arch, Endian};
use tamis_bpf::Insn;
use tamis_bpf::program::insns_from_bytes;

use crate::pseudo_code::PseudoCode;

/// The name of the library for the dynamic linker.
const SONAME: &str = "libseccomp.so.2";

/// `SCMP_FLTATR_ACT_BADARCH`.
const ATTRIBUTE_BAD_ARCH: c_uint = 2;
/// `SCMP_FLTATR_CTL_OPTIMIZE`.
const ATTRIBUTE_OPTIMIZE: c_uint = 8;

/// The flag of `open(2)` for a file without a name, on x86-64, the one architecture of the comparisons.
const O_TMPFILE: i32 = 0o20_200_000;

/// `__NR_SCMP_ERROR`: the name is unknown.
const NO_SUCH_NAME: c_int = -1;

/// `struct scmp_version`.
#[repr(C)]
struct Version {
    major: c_uint,
    minor: c_uint,
    micro: c_uint,
}

/// A condition, `struct scmp_arg_cmp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The argument, 0 to 5.
    pub arg: c_uint,
    /// The comparison.
    pub op: Op,
    /// The constant; the mask for [`Op::MaskedEq`].
    pub value: u64,
    /// The value of the masked bits; unused otherwise.
    pub value_two: u64,
}

/// A comparison, `enum scmp_compare`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Op {
    Ne = 1,
    Lt = 2,
    Le = 3,
    Eq = 4,
    Ge = 5,
    Gt = 6,
    MaskedEq = 7,
}

impl Op {
    /// All comparisons.
    pub const ALL: [Op; 7] = [Op::Ne, Op::Lt, Op::Le, Op::Eq, Op::Ge, Op::Gt, Op::MaskedEq];

    /// The name in an OCI profile.
    pub const fn oci_name(self) -> &'static str {
        match self {
            Op::Ne => "SCMP_CMP_NE",
            Op::Lt => "SCMP_CMP_LT",
            Op::Le => "SCMP_CMP_LE",
            Op::Eq => "SCMP_CMP_EQ",
            Op::Ge => "SCMP_CMP_GE",
            Op::Gt => "SCMP_CMP_GT",
            Op::MaskedEq => "SCMP_CMP_MASKED_EQ",
        }
    }
}

/// An error of the library: a negated errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// `EEXIST`: the rule contradicts an earlier one.
    pub const EEXIST: Errno = Errno(17);
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "errno {}", self.0)
    }
}

fn check(code: c_int) -> Result<(), Errno> {
    if code < 0 { Err(Errno(-code)) } else { Ok(()) }
}

type Context = *mut c_void;

// SAFETY: this is a type only; the call has the justification.
type Export = unsafe extern "C" fn(Context, c_int) -> c_int;

// SAFETY: as above.
type AddRule = unsafe extern "C" fn(Context, u32, c_int, c_uint, *const Condition) -> c_int;

// SAFETY: as above.
type Transaction = unsafe extern "C" fn(Context) -> c_int;

// SAFETY: as above.
type Reject = unsafe extern "C" fn(Context);

// SAFETY: as above.
type Merge = unsafe extern "C" fn(Context, Context) -> c_int;

/// The library's token of an architecture. x32 has one of its own although the kernel reports x86_64's.
fn token(arch: Arch) -> u32 {
    match arch {
        Arch::X32 => Arch::X86_64.audit() & 0x7fff_ffff,
        _ => arch.audit(),
    }
}

/// The system's library, which is loaded before any other: a library that stands for it has the same name, and the
/// dynamic linker takes the first one that is loaded.
static SYSTEM: LazyLock<Result<libloading::Library, String>> =
    LazyLock::new(|| load(Path::new(SONAME)));

fn load(path: &Path) -> Result<libloading::Library, String> {
    // SAFETY: libseccomp's initialisers do nothing that depends on the state of the process.
    let handle = unsafe { libloading::Library::new(path) };
    handle.map_err(|error| format!("{} cannot be loaded: {error}", path.display()))
}

/// The loaded library.
#[derive(Debug)]
pub struct Library {
    // SAFETY: these are types only; every call has the justification.
    version: unsafe extern "C" fn() -> *const Version,
    resolve: unsafe extern "C" fn(*const c_char) -> c_int,
    resolve_on: unsafe extern "C" fn(u32, *const c_char) -> c_int,
    init: unsafe extern "C" fn(u32) -> Context,
    release: unsafe extern "C" fn(Context),
    attr_set: unsafe extern "C" fn(Context, c_uint, u32) -> c_int,
    attr_get: unsafe extern "C" fn(Context, c_uint, *mut u32) -> c_int,
    // SAFETY: as above, types only.
    arch_add: unsafe extern "C" fn(Context, u32) -> c_int,
    arch_remove: unsafe extern "C" fn(Context, u32) -> c_int,
    arch_exist: unsafe extern "C" fn(Context, u32) -> c_int,
    // SAFETY: as above, types only.
    reset: unsafe extern "C" fn(Context, u32) -> c_int,
    merge: Merge,
    // SAFETY: as above, types only.
    syscall_priority: unsafe extern "C" fn(Context, c_int, u8) -> c_int,
    rule_add_array: AddRule,
    rule_add_exact_array: AddRule,
    export_bpf: Export,
    export_pfc: Export,
    /// Start, commit and reject; libseccomp has them since 2.6.
    transactions: Option<(Transaction, Transaction, Reject)>,
    /// Keeps the code mapped as long as the function pointers exist.
    _handle: libloading::Library,
}

/// The file of tamis's library of this build, beside the test or above it.
///
/// # Panics
/// If it isn't there: the test's package doesn't depend on `tamis-libseccomp`.
pub fn built_library() -> PathBuf {
    built("libtamis_libseccomp.so")
}

/// The same for the library with the interface of libseccomp's main branch.
///
/// # Panics
/// As [`built_library`].
pub fn built_next_library() -> PathBuf {
    built("libtamis_libseccomp_next.so")
}

fn built(name: &str) -> PathBuf {
    let test = env::current_exe().expect("the test has a path");
    let folders = test.ancestors().skip(1).take(2);
    let mut files = folders.map(|folder| folder.join(name));
    let file = files.find(|path| path.exists());
    file.expect("the library is a dependency of the tests")
}

impl Library {
    /// Loads the library.
    ///
    /// # Errors
    /// The reason, as text, if there is no such library or it lacks a function.
    pub fn open() -> Result<Library, String> {
        SYSTEM.as_ref().map_err(String::clone)?;
        Library::open_file(Path::new(SONAME))
    }

    /// Loads a library of this interface from a file.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_file(path: &Path) -> Result<Library, String> {
        LazyLock::force(&SYSTEM);
        let handle = load(path)?;
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: the field that takes it has the type that `seccomp.h` declares for this
                // name, and `_handle` outlives the pointer.
                let symbol = unsafe { handle.get($name) };
                *symbol.map_err(|error| format!("{SONAME} is too old: {error}"))?
            }};
        }
        // SAFETY: the types are those that `seccomp.h` declares for these names.
        let transactions = unsafe {
            let start = handle.get(b"seccomp_transaction_start\0");
            let commit = handle.get(b"seccomp_transaction_commit\0");
            let reject = handle.get(b"seccomp_transaction_reject\0");
            start
                .and_then(|start| Ok((*start, *commit?, *reject?)))
                .ok()
        };
        Ok(Library {
            transactions,
            version: function!(b"seccomp_version\0"),
            resolve: function!(b"seccomp_syscall_resolve_name\0"),
            resolve_on: function!(b"seccomp_syscall_resolve_name_arch\0"),
            init: function!(b"seccomp_init\0"),
            release: function!(b"seccomp_release\0"),
            attr_set: function!(b"seccomp_attr_set\0"),
            attr_get: function!(b"seccomp_attr_get\0"),
            arch_add: function!(b"seccomp_arch_add\0"),
            arch_remove: function!(b"seccomp_arch_remove\0"),
            arch_exist: function!(b"seccomp_arch_exist\0"),
            reset: function!(b"seccomp_reset\0"),
            merge: function!(b"seccomp_merge\0"),
            syscall_priority: function!(b"seccomp_syscall_priority\0"),
            rule_add_array: function!(b"seccomp_rule_add_array\0"),
            rule_add_exact_array: function!(b"seccomp_rule_add_exact_array\0"),
            export_bpf: function!(b"seccomp_export_bpf\0"),
            export_pfc: function!(b"seccomp_export_pfc\0"),
            _handle: handle,
        })
    }

    /// The version: major, minor, micro.
    pub fn version(&self) -> (u32, u32, u32) {
        // SAFETY: the function takes nothing and returns a pointer to a static structure.
        let version = unsafe { &*(self.version)() };
        (version.major, version.minor, version.micro)
    }

    /// The address of the library's code in this process, which distinguishes libraries with one name.
    pub fn address(&self) -> usize {
        self.init as usize
    }

    /// The native number of a call, negative if only other architectures have the call; `None` if none has it.
    ///
    /// # Panics
    /// If the name contains a null character.
    pub fn resolve(&self, name: &str) -> Option<i32> {
        let name = CString::new(name).expect("a name without null characters");
        // SAFETY: the pointer is to a string that ends in a null and lives during the call.
        let nr = unsafe { (self.resolve)(name.as_ptr()) };
        (nr != NO_SUCH_NAME).then_some(nr)
    }

    /// The number of a call on an architecture, as [`resolve`](Self::resolve). Other architectures of x86 have
    /// negative numbers for calls that they make through a multiplexer, too.
    ///
    /// # Panics
    /// If the name contains a null character.
    pub fn resolve_on(&self, arch: Arch, name: &str) -> Option<i32> {
        let name = CString::new(name).expect("a name without null characters");
        // SAFETY: the pointer is to a null-terminated string that lives during the call; any token is permitted.
        let nr = unsafe { (self.resolve_on)(token(arch), name.as_ptr()) };
        (nr != NO_SUCH_NAME).then_some(nr)
    }

    /// A filter with the native architecture and this default action; `None` if the library rejects
    /// the action.
    pub fn filter(&self, default: Action) -> Option<Filter<'_>> {
        // SAFETY: the function takes any number and returns null or a context that we own.
        let context = NonNull::new(unsafe { (self.init)(default.ret()) })?;
        Some(Filter {
            library: self,
            context,
        })
    }
}

/// A filter under construction.
#[derive(Debug)]
pub struct Filter<'l> {
    library: &'l Library,
    context: NonNull<c_void>,
}

impl Filter<'_> {
    /// Adds an architecture.
    ///
    /// # Errors
    /// The library's.
    pub fn add_arch(&mut self, arch: Arch) -> Result<(), Errno> {
        // SAFETY: the context is live, and the function takes any token.
        check(unsafe { (self.library.arch_add)(self.context.as_ptr(), token(arch)) })
    }

    /// Removes an architecture.
    ///
    /// # Errors
    /// The library's.
    pub fn remove_arch(&mut self, arch: Arch) -> Result<(), Errno> {
        // SAFETY: as above.
        check(unsafe { (self.library.arch_remove)(self.context.as_ptr(), token(arch)) })
    }

    /// Whether the filter has an architecture.
    ///
    /// # Errors
    /// `EEXIST` if it doesn't.
    pub fn has_arch(&self, arch: Arch) -> Result<(), Errno> {
        // SAFETY: as above.
        check(unsafe { (self.library.arch_exist)(self.context.as_ptr(), token(arch)) })
    }

    /// Makes it a filter as new, with this default action.
    ///
    /// # Errors
    /// The library's.
    pub fn reset(&mut self, default: Action) -> Result<(), Errno> {
        // SAFETY: the context is live, and the function takes any number.
        check(unsafe { (self.library.reset)(self.context.as_ptr(), default.ret()) })
    }

    /// Takes over the architectures of another filter of the same library.
    ///
    /// # Errors
    /// The library's, and the other filter as it was.
    pub fn merge<'l>(&mut self, other: Filter<'l>) -> Result<(), (Errno, Filter<'l>)> {
        // SAFETY: both contexts are live; the function releases the second if it succeeds.
        let code = unsafe { (self.library.merge)(self.context.as_ptr(), other.context.as_ptr()) };
        match check(code) {
            Ok(()) => {
                std::mem::forget(other);
                Ok(())
            }
            Err(errno) => Err((errno, other)),
        }
    }

    /// Begins a transaction; they nest.
    ///
    /// # Errors
    /// The library's.
    ///
    /// # Panics
    /// If the library has no transactions.
    pub fn start_transaction(&mut self) -> Result<(), Errno> {
        let (start, ..) = self.transactions();
        // SAFETY: the context is live.
        check(unsafe { start(self.context.as_ptr()) })
    }

    /// Ends a transaction and keeps its rules.
    ///
    /// # Errors
    /// The library's.
    ///
    /// # Panics
    /// If the library has no transactions.
    pub fn commit_transaction(&mut self) -> Result<(), Errno> {
        let (_, commit, _) = self.transactions();
        // SAFETY: the context is live.
        check(unsafe { commit(self.context.as_ptr()) })
    }

    /// Ends a transaction and returns to the rules and architectures at its start.
    ///
    /// # Panics
    /// If the library has no transactions.
    pub fn reject_transaction(&mut self) {
        let (.., reject) = self.transactions();
        // SAFETY: the context is live.
        unsafe { reject(self.context.as_ptr()) }
    }

    fn transactions(&self) -> (Transaction, Transaction, Reject) {
        let transactions = self.library.transactions;
        transactions.expect("libseccomp 2.6 has transactions")
    }

    /// Selects a list of numbers (1, the default) or a tree (2).
    ///
    /// # Errors
    /// The library's.
    pub fn set_optimize(&mut self, level: u32) -> Result<(), Errno> {
        self.set_attribute(ATTRIBUTE_OPTIMIZE, level)
    }

    /// Sets the action for calls of other architectures; by default the thread is killed.
    ///
    /// # Errors
    /// The library's.
    pub fn set_bad_arch(&mut self, action: Action) -> Result<(), Errno> {
        self.set_attribute(ATTRIBUTE_BAD_ARCH, action.ret())
    }

    /// Sets an attribute by its number.
    ///
    /// # Errors
    /// The library's.
    pub fn set_attribute(&mut self, attribute: c_uint, value: u32) -> Result<(), Errno> {
        // SAFETY: the context is live, and the function takes any attribute and value.
        check(unsafe { (self.library.attr_set)(self.context.as_ptr(), attribute, value) })
    }

    /// The value of an attribute by its number.
    ///
    /// # Errors
    /// The library's.
    pub fn attribute(&self, attribute: c_uint) -> Result<u32, Errno> {
        let mut value = 0;
        // SAFETY: the context is live, and the pointer is to a number.
        check(unsafe {
            (self.library.attr_get)(self.context.as_ptr(), attribute, &raw mut value)
        })?;
        Ok(value)
    }

    /// Moves a native number forwards in the list: the higher the priority, the earlier it is tested. A tree ignores
    /// it.
    ///
    /// # Errors
    /// The library's.
    pub fn set_priority(&mut self, nr: i32, priority: u8) -> Result<(), Errno> {
        // SAFETY: the context is live, and the function takes any number and priority.
        check(unsafe { (self.library.syscall_priority)(self.context.as_ptr(), nr, priority) })
    }

    /// Adds a rule for a native number: the action if all conditions hold.
    ///
    /// # Errors
    /// The library's.
    pub fn add_rule(
        &mut self,
        action: Action,
        nr: i32,
        conditions: &[Condition],
    ) -> Result<(), Errno> {
        self.add_rule_by(self.library.rule_add_array, action, nr, conditions)
    }

    /// Adds a rule that may not be adjusted to an architecture.
    ///
    /// # Errors
    /// The library's.
    pub fn add_exact_rule(
        &mut self,
        action: Action,
        nr: i32,
        conditions: &[Condition],
    ) -> Result<(), Errno> {
        self.add_rule_by(self.library.rule_add_exact_array, action, nr, conditions)
    }

    fn add_rule_by(
        &mut self,
        add: AddRule,
        action: Action,
        nr: i32,
        conditions: &[Condition],
    ) -> Result<(), Errno> {
        // SAFETY: the context is live; the pointer is to as many conditions as the count says, of
        // the layout that `seccomp.h` declares; the library copies them.
        let code = unsafe {
            add(
                self.context.as_ptr(),
                action.ret(),
                nr,
                conditions.len() as c_uint,
                conditions.as_ptr(),
            )
        };
        check(code)
    }

    /// The program.
    ///
    /// # Errors
    /// The library's.
    ///
    /// # Panics
    /// If there can be no temporary file, or the library writes an incomplete instruction.
    pub fn export(&self) -> Result<Vec<Insn>, Errno> {
        let bytes = self.written(self.library.export_bpf)?;
        Ok(insns_from_bytes(&bytes, Endian::Little).expect("whole instructions"))
    }

    /// The filter as the library's pseudo code.
    ///
    /// # Errors
    /// The library's.
    ///
    /// # Panics
    /// If there can be no temporary file, or the library's output is not text.
    pub fn pseudo_code(&self) -> Result<PseudoCode, Errno> {
        Ok(PseudoCode::parse(&self.pseudo_code_text()?))
    }

    /// The text of the library's pseudo code.
    ///
    /// # Errors
    /// The library's.
    ///
    /// # Panics
    /// If there can be no temporary file, or the library's output is not text.
    pub fn pseudo_code_text(&self) -> Result<String, Errno> {
        let bytes = self.written(self.library.export_pfc)?;
        Ok(String::from_utf8(bytes).expect("the library writes ASCII"))
    }

    /// The output of an export function: it is written to a file without a name.
    fn written(&self, export: Export) -> Result<Vec<u8>, Errno> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(O_TMPFILE)
            .open(env::temp_dir())
            .expect("a temporary file");
        // SAFETY: the context is live and the descriptor is open for writing; both functions that
        // are passed have this type.
        check(unsafe { export(self.context.as_ptr(), file.as_raw_fd()) })?;
        let mut bytes = Vec::new();
        file.rewind().expect("a file");
        file.read_to_end(&mut bytes).expect("the file can be read");
        Ok(bytes)
    }
}

impl Drop for Filter<'_> {
    fn drop(&mut self) {
        // SAFETY: the context came from `seccomp_init` and is released once.
        unsafe { (self.library.release)(self.context.as_ptr()) };
    }
}

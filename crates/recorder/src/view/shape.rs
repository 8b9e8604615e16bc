//! The kinds of arguments, by their types and names: numbers, paths, buffers, addresses.

use tamis_abi::signature::{self, Arg, Width};
use tamis_abi::{Arch, Nr, SeccompData, syscall};

use super::multiplexed;
use super::process_control;
use super::structure::{self, Form, Validity};

/// The kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Signed(Width),
    Unsigned(Width),
    /// A bit mask without names.
    Bits(Width),
    /// The mode of a file.
    Mode,
    /// A user or group; -1 for none.
    Owner(Width),
    Pointer,
    /// The path of a file, which is shown in full.
    Path,
    /// Another zero-terminated text.
    Text,
    /// Bytes that the kernel reads, with the length in this argument.
    Input(u8),
    /// Bytes that the kernel writes, as many as the result.
    Output,
    /// A structure, with the time when it is valid.
    Structure(Form, Validity),
    /// A socket address that the kernel reads, with the length in this argument.
    Address(u8),
    /// The arguments of a program.
    Strings,
    /// The environment of a program, shown by its number of entries.
    Environment,
}

/// An argument with its registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) arg: &'static Arg,
    pub(super) kind: Kind,
    /// The register of the value, or of its lower half.
    pub(super) register: u8,
    /// Whether the next register has the upper half.
    pub(super) is_split: bool,
}

/// A known call.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) arch: Arch,
    pub(super) name: &'static str,
    /// The arguments; `None` if they are unknown.
    pub(super) places: Option<Vec<Place>>,
}

/// The number of registers for arguments.
const REGISTERS: u8 = 6;

impl Shape {
    /// The call with this number; `None` if it is unknown.
    pub(super) fn from_data(data: &SeccompData) -> Option<Shape> {
        if let Some(name) = multiplexed::name(data) {
            return Some(Shape {
                arch: Arch::X86,
                name,
                places: in_order(Arch::X86, name),
            });
        }
        let arch = Arch::of_call(data.arch, data.nr)?;
        let name = syscall::name(arch, Nr(data.nr))?;
        Some(Shape {
            arch,
            name,
            places: places(arch, name),
        })
    }

    /// The number of used arguments of a call with these values.
    pub(super) fn used(&self, values: &[u64; 6]) -> usize {
        let all = self.places.as_ref().map_or(0, Vec::len);
        let value = |register: usize| values[register] as u32;
        let used = match self.name {
            "open" if !creates(self.arch, value(1)) => 2,
            "openat" if !creates(self.arch, value(2)) => 3,
            "fcntl" | "fcntl64" if is_without_argument(value(1)) => 2,
            "futex" | "futex_time64" => futex_args(value(1)),
            "mremap" if value(3) & MREMAP_FIXED == 0 => 4,
            "ioctl" => 3,
            "prctl" => process_control::used(value(0)).unwrap_or(all),
            _ => all,
        };
        used.min(all)
    }
}

const MREMAP_FIXED: u32 = 2;

/// Whether the flags of `open` create a file, so that its mode is used.
fn creates(arch: Arch, flags: u32) -> bool {
    let value = |name| tamis_abi::consts::value(arch, name).unwrap_or(0) as u32;
    let temporary = value("O_TMPFILE");
    flags & value("O_CREAT") != 0 || temporary != 0 && flags & temporary == temporary
}

/// `F_GETFD`, `F_GETFL`, `F_GETOWN`, `F_GETSIG`, `F_GETLEASE`, `F_GETPIPE_SZ` and `F_GET_SEALS`.
fn is_without_argument(command: u32) -> bool {
    matches!(command, 1 | 3 | 9 | 11 | 1025 | 1032 | 1034)
}

/// The number of arguments of a `futex` operation.
fn futex_args(operation: u32) -> usize {
    const PRIVATE_OR_REALTIME: u32 = 128 | 256;
    match operation & !PRIVATE_OR_REALTIME {
        0 | 6 | 13 => 4,
        1 | 2 => 3,
        7 | 8 => 2,
        3 => 5,
        _ => 6,
    }
}

/// Whether the fourth argument of a `futex` operation is a count instead of a time.
pub(super) fn is_requeued(operation: u32) -> bool {
    const PRIVATE_OR_REALTIME: u32 = 128 | 256;
    matches!(operation & !PRIVATE_OR_REALTIME, 3..=5 | 12)
}

/// The arguments of a call in consecutive registers.
fn in_order(arch: Arch, name: &str) -> Option<Vec<Place>> {
    let args = signature::args(name)?.iter().take(REGISTERS.into());
    let place = |(register, arg)| Place {
        arg,
        kind: kind(arch, name, arg),
        register: register as u8,
        is_split: false,
    };
    Some(args.enumerate().map(place).collect())
}

fn places(arch: Arch, name: &str) -> Option<Vec<Place>> {
    let args = signature::args(name)?;
    let mut next = 0;
    let mut places = Vec::new();
    for arg in args {
        let is_split = arg.is_split(arch);
        let register =
            signature::index(arch, name, arg.name()).map_or(next, |index| index.index() as u8);
        next += 1 + u8::from(is_split);
        if register + u8::from(is_split) >= REGISTERS {
            break;
        }
        places.push(Place {
            arg,
            kind: kind(arch, name, arg),
            register,
            is_split,
        });
    }
    // The oldest calls take a pointer to their arguments.
    if let Some(first) = args.first()
        && signature::index(arch, name, first.name()).is_none()
        && !places.first()?.is_split
    {
        return None;
    }
    Some(places)
}

/// Buffers that the kernel reads, with the arguments of their lengths.
const INPUTS: &[(&str, &str, u8)] = &[
    ("add_key", "_payload", 3),
    ("mq_timedsend", "u_msg_ptr", 2),
    ("mq_timedsend_time64", "u_msg_ptr", 2),
    ("pwrite64", "buf", 2),
    ("send", "buff", 2),
    ("sendto", "buff", 2),
    ("setdomainname", "name", 1),
    ("sethostname", "name", 1),
    ("write", "buf", 2),
];

/// Buffers and texts that the kernel reads and that are names. All others are data.
const NAMES: [&str; 5] = ["_description", "_key", "_type", "name", "uname"];

/// Whether an argument is data, such as the bytes of `write` or a program's arguments, not a path, name, address or
/// structure.
pub(super) fn is_data(place: &Place) -> bool {
    match place.kind {
        Kind::Input(_) | Kind::Text => !NAMES.contains(&place.arg.name()),
        Kind::Strings => true,
        _ => false,
    }
}

/// Buffers that the kernel fills with as many bytes as the result.
const OUTPUTS: &[(&str, &str)] = &[
    ("fgetxattr", "value"),
    ("flistxattr", "list"),
    ("getcwd", "buf"),
    ("getrandom", "ubuf"),
    ("getxattr", "value"),
    ("lgetxattr", "value"),
    ("listxattr", "list"),
    ("llistxattr", "list"),
    ("mq_timedreceive", "u_msg_ptr"),
    ("pread64", "buf"),
    ("read", "buf"),
    ("readlink", "buf"),
    ("readlinkat", "buf"),
    ("recv", "ubuf"),
    ("recvfrom", "ubuf"),
];

/// Socket addresses that the kernel reads, with the arguments of their lengths.
const ADDRESSES: &[(&str, &str, u8)] = &[
    ("bind", "umyaddr", 2),
    ("connect", "uservaddr", 2),
    ("sendto", "addr", 5),
];

/// Texts other than paths.
const TEXTS: [&str; 7] = [
    "_type",
    "_description",
    "_callout_info",
    "_key",
    "cmdline",
    "param_values",
    "uname",
];

/// Paths whose type isn't `const char *`.
const PATHS: &[(&str, &str)] = &[
    ("mount", "dev_name"),
    ("mount", "dir_name"),
    ("mount", "type"),
    ("umount2", "name"),
    ("utime", "filename"),
    ("utimes", "filename"),
];

fn kind(arch: Arch, call: &str, arg: &Arg) -> Kind {
    let is_it = |(known, name, _): &&(&str, &str, u8)| (*known, *name) == (call, arg.name());
    if let Some((.., len)) = INPUTS.iter().find(is_it) {
        return Kind::Input(*len);
    }
    if let Some((.., len)) = ADDRESSES.iter().find(is_it) {
        return Kind::Address(*len);
    }
    if OUTPUTS.contains(&(call, arg.name())) {
        return Kind::Output;
    }
    if PATHS.contains(&(call, arg.name())) {
        return Kind::Path;
    }
    if let Some((form, when)) = structure::form(arch, call, arg) {
        return Kind::Structure(form, when);
    }
    let width = signature::width(arch, call, arg);
    match (arg.c_type(), arg.name()) {
        ("const char *", name) => match TEXTS.contains(&name) || is_attribute(call, name) {
            true => Kind::Text,
            false => Kind::Path,
        },
        ("const char *const *", "argv") => Kind::Strings,
        ("const char *const *", _) => Kind::Environment,
        (c_type, _) if c_type.contains('*') || c_type.contains("cap_user_") => Kind::Pointer,
        _ if arg.is_mode() => Kind::Mode,
        ("uid_t" | "gid_t", _) => Kind::Owner(width),
        (c_type, name) => number(call, c_type, name, width),
    }
}

fn is_attribute(call: &str, name: &str) -> bool {
    call.contains("xattr") && name == "name"
}

/// The kind of a number.
fn number(call: &str, c_type: &str, name: &str, width: Width) -> Kind {
    /// Addresses with a number as their type.
    const POINTERS: [&str; 9] = [
        "addr", "brk", "new_addr", "newsp", "start", "tls", "vaddr", "arg", "arg2",
    ];
    const FLAGS: [&str; 10] = [
        "flags", "mask", "cmd", "op", "option", "options", "flag", "prot", "request", "sig",
    ];
    let c_type = c_type.strip_prefix("const ").unwrap_or(c_type);
    if c_type == "unsigned long" && (POINTERS.contains(&name) || name.starts_with("arg")) {
        return Kind::Pointer;
    }
    if name == "off" && call.starts_with("mmap")
        || name == "sizemask"
        || name == "val3"
        || name == "sig" && call == "rseq"
    {
        return Kind::Bits(width);
    }
    if name == "fd" || name.ends_with("fd") {
        return Kind::Signed(Width::Bits32);
    }
    if call == "umask" {
        return Kind::Mode;
    }
    if FLAGS.contains(&name) || name == "rseq_len" {
        return Kind::Bits(width);
    }
    match c_type {
        "int" | "long" | "loff_t" | "off_t" | "pid_t" | "key_serial_t" | "__s32" | "s32"
        | "clockid_t" | "timer_t" | "mqd_t" | "key_t" => Kind::Signed(width),
        _ => Kind::Unsigned(width),
    }
}

/// The length of a piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceLength {
    /// Up to a zero byte.
    Text,
    /// The value of this register.
    Register(u8),
    /// The result of the call.
    Result,
    /// A constant number of bytes.
    Fixed(usize),
}

/// The memory behind the arguments of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadMemory {
    /// The registers of texts, buffers and structures that the kernel reads.
    pub pieces: Vec<(u8, PieceLength)>,
    /// The register of a buffer or structure that the kernel fills.
    pub output: Option<(u8, PieceLength)>,
}

/// The memory behind the arguments of a call.
pub fn wanted(arch: Arch, nr: Nr) -> ReadMemory {
    let name = syscall::name(arch, nr).unwrap_or_default();
    let mut wanted = ReadMemory::default();
    for place in places(arch, name).unwrap_or_default() {
        match place.kind {
            Kind::Path | Kind::Text => wanted.pieces.push((place.register, PieceLength::Text)),
            Kind::Input(len) | Kind::Address(len) => {
                wanted
                    .pieces
                    .push((place.register, PieceLength::Register(len)));
            }
            Kind::Output => wanted.output = Some((place.register, PieceLength::Result)),
            Kind::Structure(form, when) => {
                let Some(len) = structure::fixed_bytes(form).map(PieceLength::Fixed) else {
                    continue;
                };
                match when {
                    Validity::Entry => wanted.pieces.push((place.register, len)),
                    Validity::Return => {
                        if structure::may_be_read(form) {
                            wanted.pieces.push((place.register, len));
                        }
                        wanted.output.get_or_insert((place.register, len));
                    }
                }
            }
            _ => {}
        }
    }
    wanted
}

/// Whether a call takes the path of a file.
///
/// ```
/// use tamis_abi::Arch;
/// use tamis_recorder::view::takes_path;
/// assert!(takes_path(Arch::X86_64, "openat") && !takes_path(Arch::X86_64, "read"));
/// ```
pub fn takes_path(arch: Arch, call: &str) -> bool {
    has(arch, call, |place| {
        place.kind == Kind::Path && place.arg.name() != "type"
    })
}

/// Whether a call takes a file descriptor.
///
/// ```
/// use tamis_abi::Arch;
/// use tamis_recorder::view::takes_descriptor;
/// assert!(takes_descriptor(Arch::X86_64, "read") && !takes_descriptor(Arch::X86_64, "open"));
/// ```
pub fn takes_descriptor(arch: Arch, call: &str) -> bool {
    has(arch, call, |place| {
        place.arg.name().ends_with("fd") || matches!(place.arg.name(), "fildes" | "mqdes")
    })
}

fn has(arch: Arch, call: &str, is_it: impl Fn(&Place) -> bool) -> bool {
    places(arch, call).is_some_and(|places| places.iter().any(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_about_arguments_that_exist() {
        let inputs = INPUTS
            .iter()
            .chain(ADDRESSES)
            .map(|(call, name, _)| (*call, *name));
        let others = OUTPUTS.iter().chain(PATHS).copied();
        for (call, name) in inputs.chain(others) {
            let args = signature::args(call).unwrap_or_else(|| panic!("{call}"));
            assert!(args.iter().any(|arg| arg.name() == name), "{call} {name}");
        }
    }

    #[test]
    fn every_call_has_its_arguments_in_different_registers() {
        for arch in [Arch::X86_64, Arch::X86, Arch::X32] {
            for (nr, name) in syscall::all(arch) {
                let data = SeccompData {
                    nr: nr.0,
                    arch: arch.audit(),
                    ..SeccompData::default()
                };
                let shape = Shape::from_data(&data).unwrap_or_else(|| panic!("{arch} {name}"));
                let Some(places) = &shape.places else {
                    continue;
                };
                let mut registers: Vec<u8> = Vec::new();
                for place in places {
                    registers.push(place.register);
                    registers.extend(place.is_split.then_some(place.register + 1));
                }
                let count = registers.len();
                registers.sort_unstable();
                registers.dedup();
                assert_eq!(registers.len(), count, "{arch} {name}");
                assert!(
                    registers.iter().all(|register| *register < REGISTERS),
                    "{arch} {name}"
                );
                assert!(shape.used(&[u64::MAX; 6]) <= places.len());
            }
        }
    }
}

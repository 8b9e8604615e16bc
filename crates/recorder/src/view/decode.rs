//! The arguments of a call, decoded.

use std::collections::HashMap;
use std::sync::Arc;

use tamis_abi::signature::Width;
use tamis_abi::{Arch, SeccompData};

use super::address;
use super::memory::{self, Read};
use super::process_control::{self, Shown};
use super::shape::{self, Kind, Place, Shape};
use super::structure::{self, CallMemory, Form, Validity};
use super::symbols;
use super::text::quoted;

/// The maximum length of a path.
const MAX_PATH_BYTES: usize = 4095;
/// The maximum number of arguments shown of a program.
const MAX_STRINGS: usize = 32;
/// The maximum number of environment entries counted.
const MAX_ENTRIES: usize = 4096;
/// The maximum number of cached names of values.
const MAX_NAMES: usize = 4096;

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name in the kernel; empty if it has none.
    pub name: &'static str,
    /// The value of the register, or of both registers of a 64-bit argument on 32-bit architectures.
    pub raw: u64,
    /// The decoded value.
    pub shown: DecodedValue,
}

/// The decoded value of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodedValue {
    /// A number.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// Bits, or the offset of a mapping, in hexadecimal.
    Bits(u64),
    /// The mode of a file, in octal.
    Mode(u64),
    /// An address in memory; 0 is `NULL`.
    Pointer(u64),
    /// Names of constants.
    Symbol(Arc<str>),
    /// Text or bytes in memory.
    Bytes {
        /// The shown bytes.
        bytes: Vec<u8>,
        /// Whether there are more bytes.
        is_cut: bool,
    },
    /// The arguments of a program.
    Strings {
        /// The shown arguments, each with whether it is truncated.
        strings: Vec<(Vec<u8>, bool)>,
        /// Whether there are more arguments.
        is_cut: bool,
    },
    /// The environment of a program: its address and number of entries.
    Environment(u64, usize),
    /// A socket address, as strace prints it.
    Address(Arc<str>),
    /// Another structure, as strace prints it.
    Structure(Arc<str>),
    /// Unknown until the call returns.
    Later,
    /// A length, with the value before the call, unknown until the call returns.
    LaterLen(i32),
}

impl DecodedValue {
    /// Whether it is unknown until the call returns.
    pub const fn is_later(&self) -> bool {
        matches!(self, DecodedValue::Later | DecodedValue::LaterLen(_))
    }

    /// The value as strace prints it.
    pub fn text(&self) -> String {
        match self {
            DecodedValue::Signed(number) => number.to_string(),
            DecodedValue::Unsigned(number) => number.to_string(),
            DecodedValue::Bits(0) => "0".to_owned(),
            DecodedValue::Bits(bits) => format!("{bits:#x}"),
            DecodedValue::Mode(mode) => format!("0{mode:02o}"),
            DecodedValue::Pointer(0) => "NULL".to_owned(),
            DecodedValue::Pointer(address) => format!("{address:#x}"),
            DecodedValue::Symbol(text)
            | DecodedValue::Address(text)
            | DecodedValue::Structure(text) => text.to_string(),
            DecodedValue::Bytes { bytes, is_cut } => quoted(bytes, *is_cut),
            DecodedValue::Strings { strings, is_cut } => {
                let quoted = strings.iter().map(|(text, is_cut)| quoted(text, *is_cut));
                let mut shown: Vec<String> = quoted.collect();
                shown.extend(is_cut.then(|| "...".to_owned()));
                format!("[{}]", shown.join(", "))
            }
            DecodedValue::Environment(address, count) => {
                let unit = if *count == 1 { "var" } else { "vars" };
                format!("{address:#x} /* {count} {unit} */")
            }
            DecodedValue::Later | DecodedValue::LaterLen(_) => String::new(),
        }
    }
}

/// A decoder of arguments, with a cache of names.
///
/// ```
/// use tamis_abi::{Arch, call};
/// use tamis_recorder::view::Decoder;
/// let mut decoder = Decoder::new(32);
/// let call = call::parse("socket(AF_INET, SOCK_STREAM)", Arch::X86_64).unwrap();
/// let args = decoder.entered(&call, &|_, _| 0);
/// let shown: Vec<String> = args.iter().map(|arg| arg.shown.text()).collect();
/// assert_eq!(shown, ["AF_INET", "SOCK_STREAM", "0"]);
/// ```
#[derive(Debug)]
pub struct Decoder {
    max_bytes: usize,
    max_path_bytes: usize,
    /// Whether buffers and program arguments, which may be secret, are left out.
    hides_data: bool,
    shapes: HashMap<(u32, u32), Option<Arc<Shape>>>,
    names: HashMap<(u32, u32, u8, u64), Option<Arc<str>>>,
}

impl Decoder {
    /// A decoder that shows at most `max_bytes` bytes of texts other than paths.
    pub fn new(max_bytes: usize) -> Decoder {
        Decoder {
            max_bytes,
            max_path_bytes: MAX_PATH_BYTES,
            hides_data: false,
            shapes: HashMap::new(),
            names: HashMap::new(),
        }
    }

    /// A decoder for texts that are stored or sent: it shows paths, up to `max_path_bytes` bytes, names, socket
    /// addresses and structures. It doesn't read buffers and program arguments, which may be secret.
    pub fn without_data(max_bytes: usize, max_path_bytes: usize) -> Decoder {
        Decoder {
            max_path_bytes,
            hides_data: true,
            ..Decoder::new(max_bytes)
        }
    }

    /// The name of a call; `syscall_0x1f4` if it has none.
    pub fn name(&mut self, call: &SeccompData) -> Arc<str> {
        match self.shape(call) {
            Some(shape) => shape.name.into(),
            None => format!("syscall_{:#x}", call.nr).into(),
        }
    }

    /// The arguments of a call on entry. `read` reads the memory of its task.
    pub fn entered(&mut self, call: &SeccompData, read: &Read<'_>) -> Vec<Argument> {
        let shape = self.shape(call);
        let Some((shape, places)) = shape
            .as_ref()
            .and_then(|shape| Some((shape, shape.places.as_ref()?)))
        else {
            let raw = call.args.iter();
            return raw
                .map(|raw| Argument {
                    name: "",
                    raw: *raw,
                    shown: DecodedValue::Bits(*raw),
                })
                .collect();
        };
        let used = shape.used(&call.args);
        let places = places.iter().take(used);
        places
            .map(|place| {
                let raw = raw(place, call);
                Argument {
                    name: place.arg.name(),
                    raw,
                    shown: self.shown(shape, place, call, raw, read),
                }
            })
            .collect()
    }

    /// Decodes the arguments that the kernel has filled when the call returns, and retries texts that couldn't be read
    /// on entry. `read` reads the memory of the task; without it nothing is read.
    pub fn returned(
        &mut self,
        call: &SeccompData,
        args: &mut [Argument],
        result: i64,
        read: Option<&Read<'_>>,
    ) {
        if let (Some(read), Some(shape)) = (read, self.shape(call)) {
            let places = shape.places.iter().flatten();
            for (arg, place) in args.iter_mut().zip(places) {
                let is_text = matches!(place.kind, Kind::Path | Kind::Text);
                if is_text && arg.raw != 0 && arg.shown == DecodedValue::Pointer(arg.raw) {
                    arg.shown = self.shown(&shape, place, call, arg.raw, read);
                }
            }
        }
        let shape = self.shape(call);
        // The result of `getcwd` counts the zero byte.
        let is_terminated = shape.as_ref().is_some_and(|shape| shape.name == "getcwd");
        let uncounted = i64::from(is_terminated);
        let places = shape.iter().flat_map(|shape| shape.places.iter().flatten());
        for (arg, place) in args.iter_mut().zip(places) {
            if let (DecodedValue::LaterLen(had), Some(read)) = (&arg.shown, read) {
                arg.shown = DecodedValue::Structure(length(*had, arg.raw, result, read).into());
                continue;
            }
            if !arg.shown.is_later() {
                continue;
            }
            let filled = match (place.kind, read.filter(|_| result >= 0)) {
                (Kind::Structure(form, _), Some(read)) => {
                    let behind = self.behind(call, result, read);
                    let text = structure::text(form, arg.raw, &behind);
                    text.map(|text| DecodedValue::Structure(text.into()))
                }
                (_, Some(read)) => self.output(arg.raw, result - uncounted, read),
                (_, None) => None,
            };
            arg.shown = filled.unwrap_or(DecodedValue::Pointer(arg.raw));
        }
    }

    /// The bytes that the kernel has written, as many as the result.
    fn output(&self, address: u64, result: i64, read: &Read<'_>) -> Option<DecodedValue> {
        let len = usize::try_from(result).ok()?;
        let shown = len.min(self.max_bytes);
        let bytes = memory::bytes(read, address, shown)?;
        (bytes.len() == shown).then_some(DecodedValue::Bytes {
            bytes,
            is_cut: len > shown,
        })
    }

    /// A note after the result of a call: the ready descriptors, or the returned flags.
    pub fn after_result(
        &mut self,
        call: &SeccompData,
        result: i64,
        read: Option<&Read<'_>>,
    ) -> Option<Arc<str>> {
        let (read, shape) = (read?, self.shape(call)?);
        if result < 0 || shape.arch != Arch::X86_64 {
            return None;
        }
        if shape.name.starts_with("fcntl") {
            let flags = symbols::got_by_control(shape.arch, call.args[1] as u32, result as u64);
            return flags.map(Arc::from);
        }
        let text = structure::after_result(shape.name, &self.behind(call, result, read));
        text.map(Arc::from)
    }

    fn behind<'m>(&self, call: &'m SeccompData, result: i64, read: &'m Read<'m>) -> CallMemory<'m> {
        CallMemory {
            read,
            call,
            result,
            max_bytes: self.max_bytes,
            hides_data: self.hides_data,
        }
    }

    fn shape(&mut self, call: &SeccompData) -> Option<Arc<Shape>> {
        let key = (call.arch, call.nr);
        let entry = self.shapes.entry(key);
        entry
            .or_insert_with(|| Shape::from_data(call).map(Arc::new))
            .clone()
    }

    fn shown(
        &mut self,
        shape: &Shape,
        place: &Place,
        call: &SeccompData,
        raw: u64,
        read: &Read<'_>,
    ) -> DecodedValue {
        let cut = |width: Width| raw & width.max();
        let len =
            |register: u8| usize::try_from(call.args[usize::from(register)]).unwrap_or(usize::MAX);
        let pointer = DecodedValue::Pointer(raw);
        if let Some(shown) = dependent(shape, place, call, raw) {
            return shown;
        }
        if shape.name == "prctl" && place.arg.name() == "arg2" {
            let shown = self.process_control(call.args[0] as u32, raw, read);
            return shown.unwrap_or(pointer);
        }
        match place.kind {
            Kind::Pointer => pointer,
            _ if self.hides_data && shape::is_data(place) => pointer,
            Kind::Path => string(read, raw, self.max_path_bytes).unwrap_or(pointer),
            Kind::Text => string(read, raw, self.max_bytes).unwrap_or(pointer),
            Kind::Input(register) => {
                let len = len(register);
                let shown = len.min(self.max_bytes);
                match memory::bytes(read, raw, shown) {
                    Some(bytes) if bytes.len() == shown && raw != 0 => DecodedValue::Bytes {
                        bytes,
                        is_cut: len > shown,
                    },
                    _ => pointer,
                }
            }
            Kind::Output => DecodedValue::Later,
            Kind::Structure(Form::PeerLen, _) => length_before(raw, read),
            Kind::Structure(form, Validity::Return) if !structure::is_read(form, call) => {
                DecodedValue::Later
            }
            Kind::Structure(form, _) => {
                let behind = self.behind(call, 0, read);
                match structure::text(form, raw, &behind) {
                    Some(text) => DecodedValue::Structure(text.into()),
                    None => pointer,
                }
            }
            Kind::Address(register) => {
                let len = (len(register) as u32 as usize).min(address::MAX_BYTES);
                let bytes = memory::bytes(read, raw, len);
                bytes
                    .filter(|bytes| raw != 0 && bytes.len() == len)
                    .and_then(|bytes| address::text(&bytes))
                    .map_or(pointer, |text| DecodedValue::Address(text.into()))
            }
            Kind::Strings => strings(read, shape, raw, self.max_bytes).unwrap_or(pointer),
            Kind::Environment => match entries(read, shape, raw, MAX_ENTRIES) {
                Some(entries) => DecodedValue::Environment(raw, entries.len()),
                None => pointer,
            },
            Kind::Mode => DecodedValue::Mode(cut(Width::Bits16)),
            Kind::Owner(width) if cut(width) == width.max() => DecodedValue::Signed(-1),
            kind => match self.symbol(shape, place, call, raw) {
                Some(symbol) => DecodedValue::Symbol(symbol),
                None => number(kind, raw).unwrap_or(pointer),
            },
        }
    }

    /// The argument behind an option of `prctl`; `None` if its meaning is unknown.
    fn process_control(&self, option: u32, raw: u64, read: &Read<'_>) -> Option<DecodedValue> {
        match process_control::argument(option, raw)? {
            Shown::Number(number) => Some(DecodedValue::Signed(number)),
            Shown::Name(name) => Some(DecodedValue::Symbol(name.into())),
            Shown::Text => string(read, raw, self.max_bytes),
        }
    }

    /// The names of a value, from the cache if possible.
    fn symbol(
        &mut self,
        shape: &Shape,
        place: &Place,
        call: &SeccompData,
        raw: u64,
    ) -> Option<Arc<str>> {
        let key = (call.arch, call.nr, place.register, raw);
        if let Some(known) = self.names.get(&key) {
            return known.clone();
        }
        let symbol = symbols::symbol(shape.arch, shape.name, place.arg, raw).map(Arc::from);
        if self.names.len() == MAX_NAMES {
            self.names.clear();
        }
        self.names.insert(key, symbol.clone());
        symbol
    }
}

/// A value without names as a number; `None` for a kind that isn't numeric.
fn number(kind: Kind, raw: u64) -> Option<DecodedValue> {
    let cut = |width: Width| raw & width.max();
    Some(match kind {
        Kind::Signed(Width::Bits64) => DecodedValue::Signed(raw as i64),
        Kind::Signed(_) => DecodedValue::Signed((raw as i32).into()),
        Kind::Bits(width) => DecodedValue::Bits(cut(width)),
        Kind::Owner(width) | Kind::Unsigned(width) => DecodedValue::Unsigned(cut(width)),
        _ => return None,
    })
}

/// A length that the kernel replaces when the call returns.
fn length_before(address: u64, read: &Read<'_>) -> DecodedValue {
    let bytes = memory::bytes(read, address, 4);
    match bytes.and_then(|bytes| bytes.first_chunk().copied()) {
        Some(had) => DecodedValue::LaterLen(i32::from_ne_bytes(had)),
        None => DecodedValue::Later,
    }
}

/// A length before a call and, if the call succeeded with a different one, after it.
fn length(had: i32, address: u64, result: i64, read: &Read<'_>) -> String {
    let bytes = memory::bytes(read, address, 4).filter(|_| result >= 0);
    let has = bytes.and_then(|bytes| bytes.first_chunk().copied());
    match has.map(i32::from_ne_bytes) {
        Some(has) if has != had => format!("[{had} => {has}]"),
        _ => format!("[{had}]"),
    }
}

/// The value of an argument's registers.
fn raw(place: &Place, call: &SeccompData) -> u64 {
    let register = usize::from(place.register);
    match place.is_split {
        true => call.args[register] & 0xffff_ffff | call.args[register + 1] << 32,
        false => call.args[register],
    }
}

/// An argument whose form depends on another argument.
fn dependent(shape: &Shape, place: &Place, call: &SeccompData, raw: u64) -> Option<DecodedValue> {
    /// `SOL_SOCKET`.
    const SOCKET: u64 = 1;
    let cut = raw & Width::Bits32.max();
    match place.arg.name() {
        "arg" if shape.name.starts_with("fcntl") => Some(control(shape, call.args[1] as u32, raw)),
        "utime" if shape::is_requeued(call.args[1] as u32) => Some(DecodedValue::Unsigned(cut)),
        "optname" if call.args[1] == SOCKET => {
            let name = symbols::socket_option(shape.arch, shape.name, cut)?;
            Some(DecodedValue::Symbol(name.into()))
        }
        _ => None,
    }
}

/// The argument of `fcntl`.
fn control(shape: &Shape, command: u32, raw: u64) -> DecodedValue {
    const F_DUPFD: u32 = 0;
    const F_DUPFD_CLOEXEC: u32 = 1030;
    if let Some(names) = symbols::of_control(shape.arch, command, raw) {
        return DecodedValue::Symbol(names.into());
    }
    match command {
        F_DUPFD | F_DUPFD_CLOEXEC => DecodedValue::Signed((raw as i32).into()),
        _ => DecodedValue::Pointer(raw),
    }
}

fn string(read: &Read<'_>, address: u64, max: usize) -> Option<DecodedValue> {
    let found = (address != 0).then(|| memory::string(read, address, max))??;
    let (bytes, is_cut) = found;
    Some(DecodedValue::Bytes { bytes, is_cut })
}

/// The entries of a list of pointers that ends with a null pointer.
fn entries(read: &Read<'_>, shape: &Shape, address: u64, max: usize) -> Option<Vec<u64>> {
    let size = if shape.arch.is_64_bit() && shape.arch != Arch::X32 {
        8
    } else {
        4
    };
    let mut entries = Vec::new();
    if address == 0 {
        return None;
    }
    while entries.len() < max {
        let at = address.wrapping_add((size * entries.len()) as u64);
        let bytes = memory::bytes(read, at, size).filter(|bytes| bytes.len() == size)?;
        let entry = bytes
            .iter()
            .rev()
            .fold(0, |entry, byte| entry << 8 | u64::from(*byte));
        if entry == 0 {
            break;
        }
        entries.push(entry);
    }
    Some(entries)
}

fn strings(read: &Read<'_>, shape: &Shape, address: u64, max_bytes: usize) -> Option<DecodedValue> {
    let entries = entries(read, shape, address, MAX_STRINGS + 1)?;
    let shown = entries.iter().take(MAX_STRINGS);
    let strings = shown.map(|entry| memory::string(read, *entry, max_bytes));
    Some(DecodedValue::Strings {
        strings: strings.collect::<Option<_>>()?,
        is_cut: entries.len() > MAX_STRINGS,
    })
}

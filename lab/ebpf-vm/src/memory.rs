//! The memory that a program sees, and the helpers that it calls.
//!
//! Addresses are numbers that no real object has: the context, each frame of the stack and the packet lie 4 GiB apart,
//! so an access that leaves one of them reaches nothing. That makes pointers plain values, which an engine can store
//! and load, and results equal on every machine. The lower half of an address is the offset in the context, in the packet
//! or in the bytes of all frames, so machine code finds the real byte by one addition.

use std::collections::BTreeMap;
use std::error;
use std::fmt;

use tamis_abi::Endian;

use crate::insn::Size;

/// The size of a frame.
pub const FRAME_BYTES: usize = 512;
/// The most frames: the program's and those of seven nested calls.
pub const MAX_FRAMES: usize = 8;

/// The address of the context.
pub const CONTEXT: u64 = 1 << 32;
/// The address of the packet.
pub const PACKET: u64 = 2 << 32;
/// The address of the first frame's lowest byte.
const STACK: u64 = 3 << 32;
/// The distance of the addresses of frames: the lower half is that of their bytes in the stack.
pub const FRAME_DISTANCE: u64 = (1 << 32) + FRAME_BYTES as u64;

/// The address behind the first frame: the value of r10 in the main function.
pub const FIRST_FRAME_END: u64 = STACK + FRAME_BYTES as u64;

/// The bytes behind the frames, so that the largest access at any offset up to [`MAX_FRAMES`] frames stays in the stack.
const SLACK_BYTES: usize = 8;

/// The bytes of the context.
#[derive(Debug)]
pub enum Context<'m> {
    /// They can only be read, as by filters.
    ReadOnly(&'m [u8]),
    /// They can also be written.
    Writable(&'m mut [u8]),
}

impl Context<'_> {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Context::ReadOnly(bytes) => bytes,
            Context::Writable(bytes) => bytes,
        }
    }
}

/// All memory of one evaluation.
#[derive(Debug)]
pub struct Memory<'m> {
    context: Context<'m>,
    packet: &'m [u8],
    /// The bytes of all frames that were ever needed, the outermost first.
    stack: Vec<u8>,
    /// Which of these bytes were written; empty where that is known to be right.
    is_set: Vec<bool>,
    /// How many frames there are.
    depth: usize,
    endian: Endian,
    /// Whether bytes of new frames can be read before they are written.
    is_trusted: bool,
}

/// The bytes of frames, which evaluations can use one after the other: making them takes longer than most evaluations.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    is_set: Vec<bool>,
}

impl Frames {
    /// The bytes of the frames, 0 without a stack, with the content of an earlier evaluation.
    #[inline]
    pub fn bytes_of(&mut self, frames: usize) -> &mut [u8] {
        let len = frames * FRAME_BYTES + SLACK_BYTES;
        if frames > 0 && self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        &mut self.bytes
    }
}

/// Where machine code finds the memory of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct RealPlaces {
    /// The first byte of the context. It may be written only if the context may.
    pub context: *mut u8,
    /// The first byte of the outermost frame. As many frames follow as the evaluation began with, and 8 bytes.
    pub stack: *mut u8,
}

/// An access that memory doesn't permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessError {
    /// Some of the bytes belong to nothing.
    Outside {
        /// The first byte.
        address: u64,
        /// How many.
        bytes: usize,
    },
    /// Bytes of the stack are read that were never written.
    Unset {
        /// The first byte.
        address: u64,
        /// How many.
        bytes: usize,
    },
    /// The packet or a read-only context is written.
    ReadOnly {
        /// The first byte.
        address: u64,
    },
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessError::Outside { address, bytes } => {
                write!(f, "no memory for {bytes} bytes at {address:#x}")
            }
            AccessError::Unset { address, bytes } => {
                write!(
                    f,
                    "{bytes} bytes of the stack at {address:#x} are not written yet"
                )
            }
            AccessError::ReadOnly { address } => {
                write!(f, "the byte at {address:#x} can only be read")
            }
        }
    }
}

impl error::Error for AccessError {}

/// The region of an address.
enum Place {
    Context(usize),
    Packet(usize),
    /// An offset in the bytes of the stack, and the end of its frame.
    Stack(usize, usize),
}

impl<'m> Memory<'m> {
    /// A memory on a machine of a byte order. An evaluation gives it frames.
    pub fn new(context: Context<'m>, packet: &'m [u8], endian: Endian) -> Memory<'m> {
        Memory::with_frames(context, packet, endian, Frames::default())
    }

    /// The same with frames that an earlier evaluation has used, which a new one doesn't read.
    pub fn with_frames(
        context: Context<'m>,
        packet: &'m [u8],
        endian: Endian,
        frames: Frames,
    ) -> Memory<'m> {
        Memory {
            context,
            packet,
            stack: frames.bytes,
            is_set: frames.is_set,
            depth: 0,
            endian,
            is_trusted: false,
        }
    }

    /// The frames, for another evaluation.
    pub fn into_frames(self) -> Frames {
        Frames {
            bytes: self.stack,
            is_set: self.is_set,
        }
    }

    /// The packet.
    pub fn packet(&self) -> &'m [u8] {
        self.packet
    }

    /// The context.
    pub fn context(&self) -> &[u8] {
        self.context.bytes()
    }

    /// Whether the context may be written.
    pub fn is_context_writable(&self) -> bool {
        matches!(self.context, Context::Writable(_))
    }

    /// Begins an evaluation with one unwritten frame.
    pub(crate) fn begin(&mut self) {
        self.is_trusted = false;
        self.depth = 0;
        self.enter();
    }

    /// Begins an evaluation of a checked program with space for `frames` frames, 0 without a stack. Leftovers of an
    /// earlier evaluation are never read.
    ///
    /// # Panics
    /// If there are more frames than [`MAX_FRAMES`].
    pub fn begin_checked(&mut self, frames: usize) {
        assert!(frames <= MAX_FRAMES, "a checked program has few frames");
        self.is_trusted = true;
        self.depth = 1;
        if frames > 0 {
            self.make_room(frames);
        }
    }

    /// Whether an evaluation was begun that has room for so many frames.
    pub fn has_room(&self, frames: usize) -> bool {
        self.depth > 0 && self.stack.len() >= frames * FRAME_BYTES
    }

    /// Where the memory is. The places are valid until the memory is used in another way.
    ///
    /// # Panics
    /// Unless an evaluation was begun.
    pub fn real_places(&mut self) -> RealPlaces {
        assert!(self.depth > 0, "an evaluation was begun");
        RealPlaces {
            context: match &mut self.context {
                Context::ReadOnly(bytes) => bytes.as_ptr().cast_mut(),
                Context::Writable(bytes) => bytes.as_mut_ptr(),
            },
            stack: self.stack.as_mut_ptr(),
        }
    }

    /// Sets the newest frame, by the address of its end, before a helper uses it.
    ///
    /// # Panics
    /// If it is not the end of a possible frame.
    pub fn set_newest_frame(&mut self, end: u64) {
        let frame = (end - FRAME_BYTES as u64 - STACK) / FRAME_DISTANCE;
        self.depth = frame as usize + 1;
        assert!(self.depth * FRAME_BYTES <= self.stack.len(), "it has room");
    }

    /// The bytes of the newest frame.
    pub(crate) fn newest_frame(&mut self) -> &mut [u8] {
        let end = self.depth * FRAME_BYTES;
        &mut self.stack[end - FRAME_BYTES..end]
    }

    /// The byte order of the machine.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Adds a frame, and returns false if there are as many as can be.
    pub(crate) fn enter(&mut self) -> bool {
        if self.depth == MAX_FRAMES {
            return false;
        }
        self.depth += 1;
        self.make_room(self.depth);
        if !self.is_trusted {
            self.is_set.resize((self.depth - 1) * FRAME_BYTES, false);
            self.is_set.resize(self.depth * FRAME_BYTES, false);
        }
        true
    }

    fn make_room(&mut self, frames: usize) {
        let len = frames * FRAME_BYTES + SLACK_BYTES;
        if self.stack.len() < len {
            self.stack.resize(len, 0);
        }
    }

    /// Removes the newest frame.
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The end of the newest frame, the value of r10.
    pub fn frame_end(&self) -> u64 {
        STACK + (self.depth as u64 - 1) * FRAME_DISTANCE + FRAME_BYTES as u64
    }

    /// Reads a number, zero-extended.
    ///
    /// # Errors
    /// [`AccessError::Outside`], [`AccessError::Unset`].
    pub fn read(&self, address: u64, size: Size) -> Result<u64, AccessError> {
        let bytes = self.bytes(address, size.bytes())?;
        Ok(number(bytes, self.endian))
    }

    /// Writes the lower bytes of a number.
    ///
    /// # Errors
    /// [`AccessError::Outside`], [`AccessError::ReadOnly`].
    pub fn write(&mut self, address: u64, size: Size, value: u64) -> Result<(), AccessError> {
        let len = size.bytes();
        match self.endian {
            Endian::Little => self.write_bytes(address, &value.to_le_bytes()[..len]),
            Endian::Big => self.write_bytes(address, &value.to_be_bytes()[8 - len..]),
        }
    }

    /// The bytes at an address.
    ///
    /// # Errors
    /// [`AccessError::Outside`], [`AccessError::Unset`].
    pub fn bytes(&self, address: u64, len: usize) -> Result<&[u8], AccessError> {
        let outside = AccessError::Outside {
            address,
            bytes: len,
        };
        let slice = match self.place(address).ok_or(outside)? {
            Place::Context(at) => self.context.bytes().get(at..at + len),
            Place::Packet(at) => self.packet.get(at..at + len),
            Place::Stack(at, end) => {
                if at + len > end {
                    return Err(outside);
                }
                if !self.is_trusted && self.is_set[at..at + len].contains(&false) {
                    return Err(AccessError::Unset {
                        address,
                        bytes: len,
                    });
                }
                self.stack.get(at..at + len)
            }
        };
        slice.ok_or(outside)
    }

    /// Writes bytes at an address.
    ///
    /// # Errors
    /// [`AccessError::Outside`], [`AccessError::ReadOnly`].
    pub fn write_bytes(&mut self, address: u64, written: &[u8]) -> Result<(), AccessError> {
        let len = written.len();
        let outside = AccessError::Outside {
            address,
            bytes: len,
        };
        let slice = match self.place(address).ok_or(outside)? {
            Place::Context(at) => match &mut self.context {
                Context::Writable(bytes) => bytes.get_mut(at..at + len),
                Context::ReadOnly(_) => return Err(AccessError::ReadOnly { address }),
            },
            Place::Packet(_) => return Err(AccessError::ReadOnly { address }),
            Place::Stack(at, end) => {
                if at + len > end {
                    return Err(outside);
                }
                if !self.is_trusted {
                    self.is_set[at..at + len].fill(true);
                }
                self.stack.get_mut(at..at + len)
            }
        };
        slice.ok_or(outside)?.copy_from_slice(written);
        Ok(())
    }

    fn place(&self, address: u64) -> Option<Place> {
        let at = usize::try_from(address as u32).ok()?;
        match address & !u64::from(u32::MAX) {
            CONTEXT => (at < self.context.bytes().len()).then_some(Place::Context(at)),
            PACKET => (at < self.packet.len()).then_some(Place::Packet(at)),
            _ => {
                let frame = usize::try_from(address.checked_sub(STACK)? >> 32).ok()?;
                if frame >= self.depth {
                    return None;
                }
                let bytes = frame * FRAME_BYTES..(frame + 1) * FRAME_BYTES;
                bytes.contains(&at).then_some(Place::Stack(at, bytes.end))
            }
        }
    }
}

/// The number in at most eight bytes.
pub(crate) fn number(bytes: &[u8], endian: Endian) -> u64 {
    let mut value = [0; 8];
    match endian {
        Endian::Little => {
            value[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(value)
        }
        Endian::Big => {
            value[8 - bytes.len()..].copy_from_slice(bytes);
            u64::from_be_bytes(value)
        }
    }
}

/// The type of a helper's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Any number.
    Scalar,
    /// Anything with a value: the helper does not use a pointer.
    Anything,
    /// The pointer to the context that the program got.
    Context,
    /// A pointer to memory that the helper reads; the next argument is its size in bytes, at least 1.
    Readable,
    /// A pointer to memory that the helper writes completely; the next argument is its size in bytes, at least 1.
    Writable,
}

/// The code of a helper: a function of the five arguments. Arguments that the helper doesn't have are 0.
pub type HelperFn<'h> = Box<dyn FnMut([u64; 5], &mut Memory<'_>) -> Result<u64, AccessError> + 'h>;

/// The kinds of a helper's arguments: at most five, where memory counts two. The result is a number.
pub type Signature = Vec<Argument>;

/// A helper that keeps nothing: its number, the kinds of its arguments, and its code.
pub type PlainHelper = (
    i32,
    &'static [Argument],
    fn([u64; 5], &mut Memory<'_>) -> Result<u64, AccessError>,
);

/// The functions that a host offers to programs, by number.
#[derive(Default)]
pub struct Helpers<'h> {
    /// Those that take nothing to make.
    plain: &'static [PlainHelper],
    /// Others; absent without any, as making and dropping a map takes longer than many evaluations.
    by_number: Option<Box<ByNumber<'h>>>,
}

/// Helpers by number.
type ByNumber<'h> = BTreeMap<i32, (Signature, HelperFn<'h>)>;

impl fmt::Debug for Helpers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = self.plain.iter();
        let plain = plain.map(|(number, signature, _)| (number, *signature));
        let signatures = self.by_number.iter().flat_map(|others| others.iter());
        let signatures = signatures.map(|(number, (signature, _))| (number, signature.as_slice()));
        f.debug_map().entries(plain.chain(signatures)).finish()
    }
}

impl<'h> Helpers<'h> {
    /// None.
    pub fn none() -> Helpers<'h> {
        Helpers::default()
    }

    /// These, which others can be added to.
    pub fn plain(plain: &'static [PlainHelper]) -> Helpers<'h> {
        Helpers {
            plain,
            by_number: None,
        }
    }

    /// Adds a helper; it replaces another one with its number.
    ///
    /// # Panics
    /// If the signature has more than five arguments, where memory counts two.
    pub fn register(&mut self, number: i32, signature: Signature, function: HelperFn<'h>) {
        assert!(
            registers(&signature) <= 5,
            "helpers have at most five arguments"
        );
        let others = self.by_number.get_or_insert_default();
        others.insert(number, (signature, function));
    }

    /// The signature of a helper; `None` if there is none with this number.
    pub fn signature(&self, number: i32) -> Option<&[Argument]> {
        match self
            .by_number
            .as_ref()
            .and_then(|others| others.get(&number))
        {
            Some((signature, _)) => Some(signature),
            None => self.find_plain(number).map(|(_, signature, _)| *signature),
        }
    }

    /// Calls a helper; `None` if there is none with this number.
    pub fn call(
        &mut self,
        number: i32,
        arguments: [u64; 5],
        memory: &mut Memory<'_>,
    ) -> Option<Result<u64, AccessError>> {
        let other = self
            .by_number
            .as_mut()
            .and_then(|others| others.get_mut(&number));
        if let Some((_, function)) = other {
            return Some(function(arguments, memory));
        }
        let (_, _, function) = self.find_plain(number)?;
        Some(function(arguments, memory))
    }

    fn find_plain(&self, number: i32) -> Option<&'static PlainHelper> {
        self.plain.iter().find(|(known, ..)| *known == number)
    }
}

/// The number of registers that arguments take.
pub fn registers(signature: &[Argument]) -> usize {
    let counts = signature.iter().map(|argument| match argument {
        Argument::Scalar | Argument::Anything | Argument::Context => 1,
        Argument::Readable | Argument::Writable => 2,
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_that_exist_and_were_written_are_read() {
        let mut memory = Memory::new(Context::ReadOnly(&[1, 2, 3]), &[9], Endian::Big);
        memory.begin();
        assert_eq!(memory.read(CONTEXT, Size::H), Ok(0x0102));
        let outside = |address, bytes| Err(AccessError::Outside { address, bytes });
        assert_eq!(memory.read(CONTEXT + 2, Size::H), outside(CONTEXT + 2, 2));
        assert_eq!(memory.read(PACKET, Size::B), Ok(9));
        assert_eq!(memory.read(0, Size::B), outside(0, 1));
        assert_eq!(memory.read(u64::MAX, Size::D), outside(u64::MAX, 8));
        let address = CONTEXT;
        assert_eq!(
            memory.write(address, Size::B, 0),
            Err(AccessError::ReadOnly { address })
        );
        let end = memory.frame_end();
        let (address, bytes) = (end - 8, 8);
        assert_eq!(
            memory.read(address, Size::D),
            Err(AccessError::Unset { address, bytes })
        );
        memory
            .write(end - 8, Size::D, 0x0102_0304_0506_0708)
            .unwrap();
        assert_eq!(memory.read(end - 8, Size::H), Ok(0x0102));
        assert_eq!(
            memory.write(end - 4, Size::D, 0),
            outside(end - 4, 8).map(|_: u64| ())
        );
    }

    #[test]
    fn frames_end_after_eight() {
        let mut memory = Memory::new(Context::ReadOnly(&[]), &[], Endian::Little);
        memory.begin_checked(1);
        let first = memory.frame_end();
        assert_eq!((1..20).filter(|_| memory.enter()).count(), 7);
        assert_ne!(memory.frame_end(), first);
        memory.leave();
        assert!(memory.enter());
    }
}

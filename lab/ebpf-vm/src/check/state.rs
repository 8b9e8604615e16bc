//! The abstract state at a place of a program: the registers and the stack of each pending function.

use std::rc::Rc;

use super::range::Range;
use crate::insn::{Reg, Size};
use crate::memory::FRAME_BYTES;
use crate::program::Pc;

/// The region of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Region {
    Context,
    /// A frame, by its number from the outermost; offsets are from its end.
    Frame(usize),
}

/// The abstract value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Unset,
    Number(Range),
    /// An address: the region's, and the least and the greatest offset.
    Pointer(Region, i64, i64),
}

/// Eight aligned bytes of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// Stored at once.
    Whole(Value),
    /// Bytes of numbers; a bit for each that was written. The lowest bit is for the lowest address.
    Bytes(u8),
}

/// A pending function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) registers: [Value; 11],
    /// From the end of the frame downwards; missing ones were not written. Copies of a state share them until one is
    /// written.
    slots: Rc<Vec<Slot>>,
    /// Where the caller goes on.
    pub(super) back: Option<Pc>,
}

/// The reason why an access to the stack isn't safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StackError {
    Outside,
    Unset,
    PartOfPointer,
}

impl Value {
    pub(super) const ANY: Value = Value::Number(Range::ANY);

    /// Whether every program that is safe with this value is safe with the other one.
    fn covers(self, other: Value) -> bool {
        match (self, other) {
            (Value::Unset, _) => true,
            (Value::Number(a), Value::Number(b)) => a.contains(b),
            (Value::Pointer(a, low, high), Value::Pointer(b, other_low, other_high)) => {
                a == b && low <= other_low && other_high <= high
            }
            _ => false,
        }
    }
}

impl Slot {
    const UNSET: Slot = Slot::Bytes(0);

    fn covers(self, other: Slot) -> bool {
        match (self, other) {
            (Slot::Whole(a), Slot::Whole(b)) => a.covers(b),
            (Slot::Bytes(a), Slot::Bytes(b)) => a & !b == 0,
            (Slot::Bytes(0), Slot::Whole(_)) | (Slot::Bytes(_), Slot::Whole(Value::Number(_))) => {
                true
            }
            (Slot::Whole(Value::Number(a)), Slot::Bytes(0xff)) => a == Range::ANY,
            _ => false,
        }
    }

    fn points_to(self, to: Region) -> bool {
        matches!(self, Slot::Whole(Value::Pointer(region, ..)) if region == to)
    }

    /// The bytes that can be read as numbers; `None` for a pointer.
    fn readable(self) -> Option<u8> {
        match self {
            Slot::Whole(Value::Number(_)) => Some(0xff),
            Slot::Whole(Value::Unset) => Some(0),
            Slot::Whole(Value::Pointer(..)) => None,
            Slot::Bytes(bytes) => Some(bytes),
        }
    }
}

impl Frame {
    pub(super) fn new(number: usize, back: Option<Pc>) -> Frame {
        let mut registers = [Value::Unset; 11];
        registers[Reg::FRAME.index()] = Value::Pointer(Region::Frame(number), 0, 0);
        Frame {
            registers,
            slots: Rc::default(),
            back,
        }
    }

    /// Whether every continuation that is safe from this state is safe from the other one, if only the registers in
    /// `live` are read.
    pub(super) fn covers(&self, other: &Frame, live: u16) -> bool {
        let is_covered =
            |(index, (a, b)): (usize, (&Value, &Value))| live & 1 << index == 0 || a.covers(*b);
        let mut registers = self.registers.iter().zip(&other.registers).enumerate();
        self.back == other.back
            && registers.all(is_covered)
            && (0..self.slots.len()).all(|index| self.slot(index).covers(other.slot(index)))
    }

    fn slot(&self, index: usize) -> Slot {
        self.slots.get(index).copied().unwrap_or(Slot::UNSET)
    }

    fn slot_mut(&mut self, index: usize) -> &mut Slot {
        let slots = Rc::make_mut(&mut self.slots);
        if slots.len() <= index {
            slots.resize(index + 1, Slot::UNSET);
        }
        &mut slots[index]
    }

    /// Reads a number or pointer.
    pub(super) fn read(&self, [low, high]: [i64; 2], size: Size) -> Result<Value, StackError> {
        if low == high && size == Size::D {
            let (index, _) = place(low).ok_or(StackError::Outside)?;
            if let Slot::Whole(value) = self.slot(index)
                && value != Value::Unset
            {
                return Ok(value);
            }
        }
        self.read_bytes(low, high + size.bytes() as i64)?;
        Ok(Value::Number(Range::of_size(size)))
    }

    /// Checks that all bytes from an offset to another one are numbers.
    pub(super) fn read_bytes(&self, start: i64, end: i64) -> Result<(), StackError> {
        for offset in inside(start, end)? {
            let (index, bit) = place(offset).ok_or(StackError::Outside)?;
            match self.slot(index).readable() {
                None => return Err(StackError::PartOfPointer),
                Some(bytes) if bytes & bit == 0 => return Err(StackError::Unset),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Stores a value; a pointer has eight bytes and one place.
    pub(super) fn write(
        &mut self,
        [low, high]: [i64; 2],
        size: Size,
        value: Value,
    ) -> Result<(), StackError> {
        let bytes = size.bytes() as i64;
        if low != high {
            return self.write_bytes(low, low, high + bytes);
        }
        if size == Size::D && low % 8 == 0 {
            inside(low, low + 8)?;
            let (index, _) = place(low).ok_or(StackError::Outside)?;
            *self.slot_mut(index) = Slot::Whole(value);
            return Ok(());
        }
        self.write_bytes(low, low + bytes, low + bytes)
    }

    /// Numbers are written from `start` to `sure`, and perhaps on to `end`.
    pub(super) fn write_bytes(
        &mut self,
        start: i64,
        sure: i64,
        end: i64,
    ) -> Result<(), StackError> {
        for offset in inside(start, end)? {
            let (index, bit) = place(offset).ok_or(StackError::Outside)?;
            let slot = self.slot_mut(index);
            // The remaining bytes of a pointer are not a number.
            let before = slot.readable().unwrap_or(0);
            let written = if offset < sure { bit } else { 0 };
            *slot = Slot::Bytes(before | written);
        }
        Ok(())
    }

    /// Forgets pointers to a frame that ends.
    pub(super) fn forget(&mut self, ended: Region) {
        for slot in Rc::make_mut(&mut self.slots) {
            if slot.points_to(ended) {
                *slot = Slot::UNSET;
            }
        }
    }

    /// Whether the stack has a pointer to a frame.
    pub(super) fn points_to(&self, to: Region) -> bool {
        self.slots.iter().any(|slot| slot.points_to(to))
    }
}

/// The offsets from one to another, if all bytes are in the frame.
fn inside(start: i64, end: i64) -> Result<std::ops::Range<i64>, StackError> {
    if start < -(FRAME_BYTES as i64) || end > 0 || start >= end {
        return Err(StackError::Outside);
    }
    Ok(start..end)
}

/// The slot of an offset and the bit of its byte.
fn place(offset: i64) -> Option<(usize, u8)> {
    let from_end = usize::try_from(offset.checked_neg()?)
        .ok()
        .filter(|distance| (1..=FRAME_BYTES).contains(distance))?;
    let index = (from_end - 1) / 8;
    Some((index, 1 << (7 - (from_end - 1) % 8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_read_in_parts_and_pointers_may_not() {
        let mut frame = Frame::new(0, None);
        let pointer = Value::Pointer(Region::Context, 4, 4);
        frame.write([-8, -8], Size::D, pointer).unwrap();
        assert_eq!(frame.read([-8, -8], Size::D), Ok(pointer));
        assert_eq!(
            frame.read([-8, -8], Size::W),
            Err(StackError::PartOfPointer)
        );
        frame.write([-8, -8], Size::B, Value::ANY).unwrap();
        assert_eq!(frame.read([-7, -7], Size::B), Err(StackError::Unset));
        assert_eq!(
            frame.read([-8, -8], Size::B),
            Ok(Value::Number(Range { min: 0, max: 255 }))
        );
        let number = Value::Number(Range::exactly(5));
        frame.write([-16, -16], Size::D, number).unwrap();
        assert_eq!(frame.read([-16, -16], Size::D), Ok(number));
        assert!(frame.read([-12, -12], Size::W).is_ok());
        assert_eq!(
            frame.read([-16, -9], Size::B),
            Ok(Value::Number(Range { min: 0, max: 255 }))
        );
        assert_eq!(frame.read([-17, -9], Size::B), Err(StackError::Unset));
    }

    #[test]
    fn nothing_outside_of_the_frame() {
        let mut frame = Frame::new(0, None);
        for (offset, size) in [
            (0, Size::B),
            (-4, Size::D),
            (-516, Size::W),
            (i64::MIN, Size::B),
        ] {
            assert_eq!(
                frame.write([offset; 2], size, Value::ANY),
                Err(StackError::Outside)
            );
            assert_eq!(frame.read([offset; 2], size), Err(StackError::Outside));
        }
        assert_eq!(frame.write([-512; 2], Size::D, Value::ANY), Ok(()));
    }

    #[test]
    fn a_state_that_knows_less_covers_one_that_knows_more() {
        let known = |value| {
            let mut frame = Frame::new(0, None);
            frame.registers[1] = Value::Number(value);
            frame
                .write([-8, -8], Size::D, Value::Number(value))
                .unwrap();
            frame
        };
        let (exact, any, empty) = (
            known(Range::exactly(3)),
            known(Range::ANY),
            Frame::new(0, None),
        );
        let all = u16::MAX;
        assert!(any.covers(&exact, all) && empty.covers(&any, all));
        assert!(!exact.covers(&any, all) && !any.covers(&empty, all));
        let mut other = exact.clone();
        other.registers[1] = Value::Unset;
        assert!(exact.covers(&other, !(1 << 1)) && !exact.covers(&other, all));
    }
}

//! The functions of steps.
//!
//! Each ends with the call of the next step's function. They are generic over the source of the value, its destination
//! and its test, so that each combination is a separate function without a choice at run time.

use tamis_bpf::interp::{self, Ended, Input, Registers};
use tamis_bpf::packet::Size;
use tamis_bpf::{Operation, packet::Packet};

use super::{Frame, Machine, Seccomp, Sockets, Step};

/// A way to get a value.
pub(super) trait Fetch<M: Machine> {
    /// The value, and X; `None` ends the program with 0.
    fn fetch(step: &Step<M>, a: u32, x: u32, frame: &Frame<'_, '_, M>) -> Option<(u32, u32)>;
}

/// The value in A.
pub(super) struct Keep;
/// A + X.
pub(super) struct AddX;
/// A - X.
pub(super) struct SubX;
/// A | X.
pub(super) struct OrX;
/// A slot of the scratch memory.
pub(super) struct Slot;
/// The same + X.
pub(super) struct SlotAddX;
/// The same - X.
pub(super) struct SlotSubX;
/// A word of a call.
pub(super) struct WordOfCall;
/// A byte of a packet.
pub(super) struct Byte;
/// Two bytes of a packet.
pub(super) struct Half;
/// Four bytes of a packet.
pub(super) struct Word;
/// A byte of a packet, counted from X.
pub(super) struct IndexedByte;
/// Two bytes of a packet, counted from X.
pub(super) struct IndexedHalf;
/// A byte of a packet behind a header, whose length goes to X.
pub(super) struct HeaderByte;
/// Two bytes of a packet behind a header, whose length goes to X.
pub(super) struct HeaderHalf;

macro_rules! computed {
    ($($name:ident: |$a:ident, $x:ident| $value:expr;)*) => {$(
        impl<M: Machine> Fetch<M> for $name {
            #[inline(always)]
            fn fetch(_: &Step<M>, $a: u32, $x: u32, _: &Frame<'_, '_, M>) -> Option<(u32, u32)> {
                Some(($value, $x))
            }
        }
    )*};
}

computed! {
    Keep: |a, x| a;
    AddX: |a, x| a.wrapping_add(x);
    SubX: |a, x| a.wrapping_sub(x);
    OrX: |a, x| a | x;
}

impl<M: Machine> Fetch<M> for Slot {
    #[inline(always)]
    fn fetch(step: &Step<M>, _: u32, x: u32, frame: &Frame<'_, '_, M>) -> Option<(u32, u32)> {
        // The mask only informs the compiler of the checked bound.
        Some((frame.memory[step.place as usize & 15], x))
    }
}

/// Fetches from a slot, and computes with X.
macro_rules! slots {
    ($($name:ident: $computed:ident;)*) => {$(
        impl<M: Machine> Fetch<M> for $name {
            #[inline(always)]
            fn fetch(step: &Step<M>, a: u32, x: u32, frame: &Frame<'_, '_, M>) -> Option<(u32, u32)> {
                let (value, x) = Slot::fetch(step, a, x, frame)?;
                $computed::fetch(step, value, x, frame)
            }
        }
    )*};
}

slots! {
    SlotAddX: AddX;
    SlotSubX: SubX;
}

impl Fetch<Seccomp> for WordOfCall {
    #[inline(always)]
    fn fetch(
        step: &Step<Seccomp>,
        _: u32,
        x: u32,
        frame: &Frame<'_, '_, Seccomp>,
    ) -> Option<(u32, u32)> {
        Some((frame.input[step.place as usize & 15], x))
    }
}

/// The bytes at a place, if they are inside.
#[inline(always)]
fn bytes<const N: usize>(bytes: &[u8], place: u32) -> Option<[u8; N]> {
    let place = place as usize;
    bytes.get(place..place + N)?.try_into().ok()
}

#[inline(always)]
fn half(packet: &[u8], place: u32) -> Option<u32> {
    bytes(packet, place).map(|bytes| u32::from(u16::from_be_bytes(bytes)))
}

#[inline(always)]
fn byte(packet: &[u8], place: u32) -> Option<u32> {
    packet.get(place as usize).map(|byte| u32::from(*byte))
}

impl Fetch<Sockets> for Byte {
    #[inline(always)]
    fn fetch(
        step: &Step<Sockets>,
        _: u32,
        x: u32,
        frame: &Frame<'_, '_, Sockets>,
    ) -> Option<(u32, u32)> {
        Some((byte(frame.bytes, step.place)?, x))
    }
}

impl Fetch<Sockets> for Half {
    #[inline(always)]
    fn fetch(
        step: &Step<Sockets>,
        _: u32,
        x: u32,
        frame: &Frame<'_, '_, Sockets>,
    ) -> Option<(u32, u32)> {
        Some((half(frame.bytes, step.place)?, x))
    }
}

impl Fetch<Sockets> for Word {
    #[inline(always)]
    fn fetch(
        step: &Step<Sockets>,
        _: u32,
        x: u32,
        frame: &Frame<'_, '_, Sockets>,
    ) -> Option<(u32, u32)> {
        Some((bytes(frame.bytes, step.place).map(u32::from_be_bytes)?, x))
    }
}

/// The value at a place that isn't counted from the packet's start.
#[cold]
fn elsewhere(packet: &Packet<'_>, size: Size, place: u32) -> Option<u32> {
    packet.value(size, place)
}

/// The places that are counted from the packet's start.
const PLACES: u32 = 1 << 31;

impl Fetch<Sockets> for IndexedByte {
    #[inline(always)]
    fn fetch(
        step: &Step<Sockets>,
        _: u32,
        x: u32,
        frame: &Frame<'_, '_, Sockets>,
    ) -> Option<(u32, u32)> {
        let place = x.wrapping_add(step.place);
        if place >= PLACES {
            return Some((elsewhere(frame.input, Size::Byte, place)?, x));
        }
        Some((byte(frame.bytes, place)?, x))
    }
}

impl Fetch<Sockets> for IndexedHalf {
    #[inline(always)]
    fn fetch(
        step: &Step<Sockets>,
        _: u32,
        x: u32,
        frame: &Frame<'_, '_, Sockets>,
    ) -> Option<(u32, u32)> {
        let place = x.wrapping_add(step.place);
        if place >= PLACES {
            return Some((elsewhere(frame.input, Size::Half, place)?, x));
        }
        Some((half(frame.bytes, place)?, x))
    }
}

/// The length of a header.
#[inline(always)]
fn header(step: &Step<Sockets>, frame: &Frame<'_, '_, Sockets>) -> Option<u32> {
    Some(4 * (byte(frame.bytes, step.header)? & 15))
}

impl Fetch<Sockets> for HeaderByte {
    #[inline(always)]
    fn fetch(
        step: &Step<Sockets>,
        a: u32,
        _: u32,
        frame: &Frame<'_, '_, Sockets>,
    ) -> Option<(u32, u32)> {
        IndexedByte::fetch(step, a, header(step, frame)?, frame)
    }
}

impl Fetch<Sockets> for HeaderHalf {
    #[inline(always)]
    fn fetch(
        step: &Step<Sockets>,
        a: u32,
        _: u32,
        frame: &Frame<'_, '_, Sockets>,
    ) -> Option<(u32, u32)> {
        IndexedHalf::fetch(step, a, header(step, frame)?, frame)
    }
}

/// Where a value goes besides A.
pub(super) trait Sink<M: Machine> {
    /// X after that.
    fn put(step: &Step<M>, value: u32, x: u32, frame: &mut Frame<'_, '_, M>) -> u32;
}

/// Nowhere.
pub(super) struct Nothing;
/// To X.
pub(super) struct Tax;
/// To a slot of the scratch memory.
pub(super) struct Store;

impl<M: Machine> Sink<M> for Nothing {
    #[inline(always)]
    fn put(_: &Step<M>, _: u32, x: u32, _: &mut Frame<'_, '_, M>) -> u32 {
        x
    }
}

impl<M: Machine> Sink<M> for Tax {
    #[inline(always)]
    fn put(_: &Step<M>, value: u32, _: u32, _: &mut Frame<'_, '_, M>) -> u32 {
        value
    }
}

impl<M: Machine> Sink<M> for Store {
    #[inline(always)]
    fn put(step: &Step<M>, value: u32, x: u32, frame: &mut Frame<'_, '_, M>) -> u32 {
        frame.memory[usize::from(step.slot) & 15] = value;
        x
    }
}

/// A test with a constant.
pub(super) trait Holds {
    /// Whether it holds.
    fn holds(a: u32, k: u32) -> bool;
}

/// A == k.
pub(super) struct Eq;
/// A > k.
pub(super) struct Gt;
/// A >= k.
pub(super) struct Ge;
/// A & k != 0.
pub(super) struct SetBits;

macro_rules! tests {
    ($($name:ident: |$a:ident, $k:ident| $holds:expr;)*) => {$(
        impl Holds for $name {
            #[inline(always)]
            fn holds($a: u32, $k: u32) -> bool {
                $holds
            }
        }
    )*};
}

tests! {
    Eq: |a, k| a == k;
    Gt: |a, k| a > k;
    Ge: |a, k| a >= k;
    SetBits: |a, k| a & k != 0;
}

/// Continues with the first of these steps; the builder guarantees that there is one.
#[inline(always)]
fn next<M: Machine>(behind: &[Step<M>], a: u32, x: u32, frame: &mut Frame<'_, '_, M>) -> u32 {
    match behind.split_first() {
        Some((step, behind)) => (step.handler)(step, behind, a, x, frame),
        None => 0,
    }
}

/// Continues with the step at a place; the builder guarantees that there is one.
#[inline(always)]
pub(super) fn go<M: Machine>(place: u32, a: u32, x: u32, frame: &mut Frame<'_, '_, M>) -> u32 {
    let steps = frame.steps;
    next(steps.get(place as usize..).unwrap_or_default(), a, x, frame)
}

/// A value, which goes to A and a sink; `SHIFTS` is whether it is shifted before.
pub(super) fn load<M: Machine, F: Fetch<M>, S: Sink<M>, const SHIFTS: bool>(
    step: &Step<M>,
    behind: &[Step<M>],
    a: u32,
    x: u32,
    frame: &mut Frame<'_, '_, M>,
) -> u32 {
    let Some((value, x)) = F::fetch(step, a, x, frame) else {
        return 0;
    };
    let mut a = value & step.mask;
    if SHIFTS {
        let (left, right) = step.shifts;
        a = a.wrapping_shl(u32::from(left));
        a = a.wrapping_shr(u32::from(right));
    }
    let x = S::put(step, a, x, frame);
    next(behind, a, x, frame)
}

/// A value and a test of it with a constant, by the continuation if it holds and if not: [`GO_ON`], [`END_UNLESS`],
/// [`END_IF`] or [`END`].
pub(super) fn test<M: Machine, F: Fetch<M>, H: Holds, const ENDS: u8>(
    step: &Step<M>,
    behind: &[Step<M>],
    a: u32,
    x: u32,
    frame: &mut Frame<'_, '_, M>,
) -> u32 {
    let Some((value, x)) = F::fetch(step, a, x, frame) else {
        return 0;
    };
    let a = value & step.mask;
    let goes_on_behind = H::holds(a, step.k) == (ENDS == END_UNLESS);
    match (goes_on_behind, ENDS) {
        // The next step is a return.
        (true, END) => behind.first().map_or(0, |end| end.k),
        (true, _) => next(behind, a, x, frame),
        (false, GO_ON) => go(step.target, a, x, frame),
        (false, _) => step.target,
    }
}

/// A test that is followed by its target where it holds, and by the next step where not.
pub(super) const GO_ON: u8 = 0;
/// A test that is followed by the next step where it holds; where not, the target is the value of the program.
pub(super) const END_UNLESS: u8 = 1;
/// A test that is followed by the next step where it doesn't hold; where it does, the target is the value of the program.
pub(super) const END_IF: u8 = 2;
/// The same where the next step is a return of a constant.
pub(super) const END: u8 = 3;

/// A value and tests for equality with two constants. The second one and where it leads have the places of a header and
/// a mask, which there aren't.
pub(super) fn two<M: Machine, F: Fetch<M>>(
    step: &Step<M>,
    behind: &[Step<M>],
    a: u32,
    x: u32,
    frame: &mut Frame<'_, '_, M>,
) -> u32 {
    let Some((a, x)) = F::fetch(step, a, x, frame) else {
        return 0;
    };
    if a == step.k {
        go(step.target, a, x, frame)
    } else if a == step.header {
        go(step.mask, a, x, frame)
    } else {
        next(behind, a, x, frame)
    }
}

/// A value and tests for equality with sorted constants.
pub(super) fn cases<M: Machine, F: Fetch<M>>(
    step: &Step<M>,
    behind: &[Step<M>],
    a: u32,
    x: u32,
    frame: &mut Frame<'_, '_, M>,
) -> u32 {
    let Some((value, x)) = F::fetch(step, a, x, frame) else {
        return 0;
    };
    let a = value & step.mask;
    let (first, count) = (step.target as usize, step.k as usize);
    let cases = frame
        .tables
        .cases
        .get(first..first + count)
        .unwrap_or_default();
    let place = cases.partition_point(|(k, _)| *k < a);
    match cases.get(place) {
        Some((k, target)) if *k == a => go(*target, a, x, frame),
        _ => next(behind, a, x, frame),
    }
}

/// A value and a test of it with X; `ENDS` is whether returns of constants follow on both sides, as with [`END`].
pub(super) fn test_x<M: Machine, F: Fetch<M>, H: Holds, const ENDS: bool>(
    step: &Step<M>,
    behind: &[Step<M>],
    a: u32,
    x: u32,
    frame: &mut Frame<'_, '_, M>,
) -> u32 {
    let Some((a, x)) = F::fetch(step, a, x, frame) else {
        return 0;
    };
    match (H::holds(a, x), ENDS) {
        (true, true) => step.target,
        (true, false) => go(step.target, a, x, frame),
        (false, true) => behind.first().map_or(0, |end| end.k),
        (false, false) => next(behind, a, x, frame),
    }
}

/// Goes on elsewhere.
pub(super) fn go_to<M: Machine>(
    step: &Step<M>,
    _: &[Step<M>],
    a: u32,
    x: u32,
    frame: &mut Frame<'_, '_, M>,
) -> u32 {
    go(step.target, a, x, frame)
}

/// A return of a constant.
pub(super) fn ret<M: Machine>(
    step: &Step<M>,
    _: &[Step<M>],
    _: u32,
    _: u32,
    _: &mut Frame<'_, '_, M>,
) -> u32 {
    step.k
}

/// A return of A.
pub(super) fn ret_a<M: Machine>(
    _: &Step<M>,
    _: &[Step<M>],
    a: u32,
    _: u32,
    _: &mut Frame<'_, '_, M>,
) -> u32 {
    a
}

/// Any instruction that isn't a jump, a branch or a return, as the reference interpreter runs it.
pub(super) fn any<M: Machine>(
    step: &Step<M>,
    behind: &[Step<M>],
    a: u32,
    x: u32,
    frame: &mut Frame<'_, '_, M>,
) -> u32 {
    let op = frame.tables.ops[step.k as usize];
    match other::<M>(op, Registers { a, x }, frame) {
        Ok(Registers { a, x }) => next(behind, a, x, frame),
        Err(Ended { ret }) => ret,
    }
}

/// The registers after an instruction, unless it ends the program.
#[inline(never)]
fn other<M: Machine>(
    op: Operation<M::Load, M::Extra>,
    registers: Registers,
    frame: &mut Frame<'_, '_, M>,
) -> Result<Registers, Ended> {
    const ZERO: Ended = Ended { ret: 0 };
    let Registers { a, x } = registers;
    let with_a = |a| Ok(Registers { a, x });
    let with_x = |x| Ok(Registers { a, x });
    let Frame { input, memory, .. } = frame;
    match op {
        Operation::LoadData(load) => with_a(input.load(load, registers)?),
        Operation::LoadImm(k) => with_a(k),
        Operation::LoadMem(slot) => with_a(memory[slot as usize & 15]),
        Operation::LoadLen => with_a(input.len_bytes()),
        Operation::LoadXImm(k) => with_x(k),
        Operation::LoadXMem(slot) => with_x(memory[slot as usize & 15]),
        Operation::LoadXLen => with_x(input.len_bytes()),
        Operation::Store(slot) => {
            memory[slot as usize & 15] = a;
            Ok(registers)
        }
        Operation::StoreX(slot) => {
            memory[slot as usize & 15] = x;
            Ok(registers)
        }
        Operation::Alu(alu, operand) => {
            with_a(interp::arithmetic(alu, a, operand.value(x)).ok_or(ZERO)?)
        }
        Operation::Neg => with_a(a.wrapping_neg()),
        Operation::Tax => with_x(a),
        Operation::Txa => with_a(x),
        Operation::Extra(extra) => {
            let mut registers = registers;
            input.run_extra(extra, &mut registers).ok_or(ZERO)?;
            Ok(registers)
        }
        Operation::Jump(_) | Operation::Branch { .. } | Operation::RetImm(_) | Operation::RetA => {
            Err(ZERO)
        }
    }
}

//! The functions of steps.
//!
//! Each ends with the call of the next step's function. They are generic over what is loaded and how it is tested,
//! so that each combination is a function of its own without a choice at run time.

use tamis_bpf::Operation;
use tamis_bpf::interp::{self, Input, Registers};
use tamis_bpf::packet::Packet;

use super::{Link, Machine, Memory, Seccomp, Sockets, Step};

/// A way to get a value.
pub(super) trait Fetch<M: Machine> {
    /// The value; `None` ends the program with 0.
    fn fetch(step: &Step<M>, a: u32, x: u32, input: &M::Input<'_>) -> Option<u32>;
}

/// What is in A.
pub(super) struct Keep;
/// A word of a call.
pub(super) struct WordOfCall;
/// A byte of a packet.
pub(super) struct Byte;
/// Two bytes of a packet.
pub(super) struct Half;
/// Four bytes of a packet.
pub(super) struct Word;
/// Two bytes of a packet, counted from X.
pub(super) struct IndexedHalf;

impl<M: Machine> Fetch<M> for Keep {
    #[inline(always)]
    fn fetch(_: &Step<M>, a: u32, _: u32, _: &M::Input<'_>) -> Option<u32> {
        Some(a)
    }
}

impl Fetch<Seccomp> for WordOfCall {
    #[inline(always)]
    fn fetch(step: &Step<Seccomp>, _: u32, _: u32, image: &[u32; 16]) -> Option<u32> {
        // The mask only tells the compiler what the checker knows.
        Some(image[step.place as usize & 15])
    }
}

/// The bytes at a place, if they are inside.
#[inline(always)]
fn bytes<const N: usize>(packet: &Packet<'_>, place: u32) -> Option<[u8; N]> {
    let place = place as usize;
    packet.bytes.get(place..place + N)?.try_into().ok()
}

impl Fetch<Sockets> for Byte {
    #[inline(always)]
    fn fetch(step: &Step<Sockets>, _: u32, _: u32, packet: &Packet<'_>) -> Option<u32> {
        bytes::<1>(packet, step.place).map(|[byte]| u32::from(byte))
    }
}

impl Fetch<Sockets> for Half {
    #[inline(always)]
    fn fetch(step: &Step<Sockets>, _: u32, _: u32, packet: &Packet<'_>) -> Option<u32> {
        bytes(packet, step.place).map(|bytes| u32::from(u16::from_be_bytes(bytes)))
    }
}

impl Fetch<Sockets> for Word {
    #[inline(always)]
    fn fetch(step: &Step<Sockets>, _: u32, _: u32, packet: &Packet<'_>) -> Option<u32> {
        bytes(packet, step.place).map(u32::from_be_bytes)
    }
}

impl Fetch<Sockets> for IndexedHalf {
    #[inline(always)]
    fn fetch(step: &Step<Sockets>, _: u32, x: u32, packet: &Packet<'_>) -> Option<u32> {
        let place = x.wrapping_add(step.place);
        if place >= 1 << 31 {
            return packet.value(tamis_bpf::packet::Size::Half, place);
        }
        bytes(packet, place).map(|bytes| u32::from(u16::from_be_bytes(bytes)))
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

impl Holds for Eq {
    #[inline(always)]
    fn holds(a: u32, k: u32) -> bool {
        a == k
    }
}

impl Holds for Gt {
    #[inline(always)]
    fn holds(a: u32, k: u32) -> bool {
        a > k
    }
}

impl Holds for Ge {
    #[inline(always)]
    fn holds(a: u32, k: u32) -> bool {
        a >= k
    }
}

impl Holds for SetBits {
    #[inline(always)]
    fn holds(a: u32, k: u32) -> bool {
        a & k != 0
    }
}

/// Goes on with a step; the checker knows that there is one.
#[inline(always)]
fn go<M: Machine>(
    link: &Link<M>,
    a: u32,
    x: u32,
    input: &M::Input<'_>,
    memory: &mut Memory,
) -> u32 {
    match link {
        Some(step) => (step.handler)(step, a, x, input, memory),
        None => 0,
    }
}

/// A load.
pub(super) fn load<M: Machine, F: Fetch<M>>(
    step: &Step<M>,
    a: u32,
    x: u32,
    input: &M::Input<'_>,
    memory: &mut Memory,
) -> u32 {
    match F::fetch(step, a, x, input) {
        Some(a) => go(&step.no, a, x, input, memory),
        None => 0,
    }
}

/// A load, a mask and a test with a constant.
pub(super) fn test<M: Machine, F: Fetch<M>, H: Holds>(
    step: &Step<M>,
    a: u32,
    x: u32,
    input: &M::Input<'_>,
    memory: &mut Memory,
) -> u32 {
    let Some(value) = F::fetch(step, a, x, input) else {
        return 0;
    };
    let a = value & step.mask;
    // Two calls, so that the processor predicts where each goes.
    if H::holds(a, step.k) {
        go(&step.yes, a, x, input, memory)
    } else {
        go(&step.no, a, x, input, memory)
    }
}

/// A test with X.
pub(super) fn branch_any<M: Machine>(
    step: &Step<M>,
    a: u32,
    x: u32,
    input: &M::Input<'_>,
    memory: &mut Memory,
) -> u32 {
    match step.op {
        Operation::Branch { test, operand, .. } if test.holds(a, operand.value(x)) => {
            go(&step.yes, a, x, input, memory)
        }
        _ => go(&step.no, a, x, input, memory),
    }
}

macro_rules! arithmetic {
    ($($(#[$doc:meta])* $name:ident: |$a:ident, $x:ident, $k:ident| $result:expr;)*) => {$(
        $(#[$doc])*
        pub(super) fn $name<M: Machine>(
            step: &Step<M>,
            $a: u32,
            $x: u32,
            input: &M::Input<'_>,
            memory: &mut Memory,
        ) -> u32 {
            let $k = step.k;
            let _ = $k;
            go(&step.no, $result, $x, input, memory)
        }
    )*};
}

arithmetic! {
    /// A &= k.
    and: |a, x, k| a & k;
    /// A -= X.
    sub_x: |a, x, k| a.wrapping_sub(x);
    /// A <<= k.
    shift_left: |a, x, k| a.wrapping_shl(k);
    /// A >>= k.
    shift_right: |a, x, k| a.wrapping_shr(k);
}

/// X = A.
pub(super) fn tax<M: Machine>(
    step: &Step<M>,
    a: u32,
    _: u32,
    input: &M::Input<'_>,
    memory: &mut Memory,
) -> u32 {
    go(&step.no, a, a, input, memory)
}

/// A return of a constant.
pub(super) fn ret<M: Machine>(
    step: &Step<M>,
    _: u32,
    _: u32,
    _: &M::Input<'_>,
    _: &mut Memory,
) -> u32 {
    step.k
}

/// A return of A.
pub(super) fn ret_a<M: Machine>(
    _: &Step<M>,
    a: u32,
    _: u32,
    _: &M::Input<'_>,
    _: &mut Memory,
) -> u32 {
    a
}

/// Any instruction that isn't a jump, a branch or a return, as the reference interpreter runs it.
pub(super) fn any<M: Machine>(
    step: &Step<M>,
    a: u32,
    x: u32,
    input: &M::Input<'_>,
    memory: &mut Memory,
) -> u32 {
    match other::<M>(step.op, Registers { a, x }, input, memory) {
        Some(Registers { a, x }) => go(&step.no, a, x, input, memory),
        None => 0,
    }
}

/// The registers after an instruction; `None` if it ends the program with 0.
fn other<M: Machine>(
    op: Operation<M::Load, M::Extra>,
    registers: Registers,
    input: &M::Input<'_>,
    memory: &mut Memory,
) -> Option<Registers> {
    let Registers { a, x } = registers;
    let with_a = |a| Some(Registers { a, x });
    let with_x = |x| Some(Registers { a, x });
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
            Some(registers)
        }
        Operation::StoreX(slot) => {
            memory[slot as usize & 15] = x;
            Some(registers)
        }
        Operation::Alu(alu, operand) => with_a(interp::arithmetic(alu, a, operand.value(x))?),
        Operation::Neg => with_a(a.wrapping_neg()),
        Operation::Tax => with_x(a),
        Operation::Txa => with_a(x),
        Operation::Extra(extra) => {
            let mut registers = registers;
            input.run_extra(extra, &mut registers)?;
            Some(registers)
        }
        Operation::Jump(_) | Operation::Branch { .. } | Operation::RetImm(_) | Operation::RetA => {
            None
        }
    }
}

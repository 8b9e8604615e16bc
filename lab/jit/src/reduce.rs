//! Simplifications of a socket program before its code is written.
//!
//! `tcpdump`'s programs load the same values again and again. An instruction with an available or unused result is
//! removed: a header's length that X has, a slot that A was loaded from. And a number that is only compared with
//! constants for equality, or for common bits, stays in the order of the packet's bytes; the constants are swapped
//! instead.
//!
//! A program keeps its length: a removed instruction becomes a jump to the next one, which has no code.

use tamis_bpf::insn::Operation;
use tamis_bpf::live::Live;
use tamis_bpf::packet::{Ancillary, Extra, Load, Op, Size};
use tamis_bpf::{AluOp, Operand, Test};

use crate::ahead::asked_for;
use crate::classic::Machine;
use crate::program::{known_from, successors};
use crate::ranges::{Area, Facts};
use crate::socket::Packets;

/// A load, and the byte order of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fetch {
    pub(crate) load: Load,
    /// Whether the loaded bytes stay in the packet's order.
    pub(crate) is_unturned: bool,
    /// How many bytes must be there, for loads behind this one; no more than its own if it is 0. They are counted from the start of the
    /// packet, or from X if the load is.
    pub(crate) asked_bytes: u32,
}

/// An instruction as it is written.
pub(crate) type Step = Operation<Fetch, Extra>;

/// An instruction with another kind of load.
pub(crate) fn map_load<L, M>(
    op: Operation<L, Extra>,
    load: impl FnOnce(L) -> M,
) -> Operation<M, Extra> {
    match op {
        Operation::LoadData(place) => Operation::LoadData(load(place)),
        Operation::LoadImm(k) => Operation::LoadImm(k),
        Operation::LoadMem(slot) => Operation::LoadMem(slot),
        Operation::LoadLen => Operation::LoadLen,
        Operation::LoadXImm(k) => Operation::LoadXImm(k),
        Operation::LoadXMem(slot) => Operation::LoadXMem(slot),
        Operation::LoadXLen => Operation::LoadXLen,
        Operation::Store(slot) => Operation::Store(slot),
        Operation::StoreX(slot) => Operation::StoreX(slot),
        Operation::Alu(alu, operand) => Operation::Alu(alu, operand),
        Operation::Neg => Operation::Neg,
        Operation::Jump(skip) => Operation::Jump(skip),
        Operation::Branch {
            test,
            operand,
            jt,
            jf,
        } => Operation::Branch {
            test,
            operand,
            jt,
            jf,
        },
        Operation::RetImm(k) => Operation::RetImm(k),
        Operation::RetA => Operation::RetA,
        Operation::Tax => Operation::Tax,
        Operation::Txa => Operation::Txa,
        Operation::Extra(own) => Operation::Extra(own),
    }
}

/// A removed copy may have been the only use of an earlier value, and without that a slot may still equal A; the next
/// round finds it.
const ROUNDS: usize = 2;

/// The replacement of a removed instruction.
const NOTHING: Op = Op::Jump(0);

/// The program as it is written. In hardened code every load tests for its own bytes.
pub(crate) fn reduced(ops: &[Op], is_hardened: bool) -> Vec<Step> {
    let mut ops = ops.to_vec();
    for _ in 1..ROUNDS {
        leave_out(&mut ops);
    }
    let live = leave_out(&mut ops);
    let mut webs = Webs::new(&ops, &live);
    let asked = match is_hardened {
        true => vec![0; ops.len()],
        false => asked_for(&ops),
    };
    let step = |(pc, op): (usize, &Op)| webs.step(pc, *op, asked[pc]);
    ops.iter().enumerate().map(step).collect()
}

/// A number from a packet: loaded, masked, then shifted to higher bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    size: Size,
    start: u32,
    mask: u32,
    left: u32,
}

/// The facts before an instruction, on every path to it.
#[derive(Clone, Copy, Debug)]
struct Known {
    facts: Facts,
    a: Option<Number>,
    x: Option<Number>,
    /// A slot that equals A.
    copy: Option<u32>,
}

impl Number {
    fn loaded(size: Size, offset: u32) -> Option<Number> {
        let Area::Packet(start) = Area::from_offset(offset) else {
            return None;
        };
        let mask = u32::MAX >> (32 - 8 * size.bytes());
        Some(Number {
            size,
            start,
            mask,
            left: 0,
        })
    }

    /// The value of `ldx 4*([offset]&0xf)`.
    fn header_len(offset: u32) -> Option<Number> {
        let loaded = Number::loaded(Size::Byte, offset)?;
        Some(Number {
            mask: 15,
            left: 2,
            ..loaded
        })
    }

    fn after(self, alu: AluOp, operand: Operand) -> Option<Number> {
        match (alu, operand) {
            (AluOp::And, Operand::K(k)) if self.left == 0 => Some(Number {
                mask: self.mask & k,
                ..self
            }),
            (AluOp::Lsh, Operand::K(k)) if self.left + k < 32 => Some(Number {
                left: self.left + k,
                ..self
            }),
            _ => None,
        }
    }
}

impl Known {
    const START: Known = Known {
        facts: Facts::START,
        a: None,
        x: None,
        copy: None,
    };

    /// The facts after an instruction, unless it ended the program.
    fn after(self, op: Op) -> Known {
        let mut known = Known {
            facts: self.facts.after(op),
            ..self
        };
        match op {
            Op::LoadData(Load::Absolute(size, k)) => known.set_a(Number::loaded(size, k)),
            Op::Alu(alu, operand) => known.set_a(self.a.and_then(|a| a.after(alu, operand))),
            Op::LoadData(_) | Op::LoadImm(_) | Op::LoadLen | Op::Neg => known.set_a(None),
            Op::Extra(Extra::Mod(_)) => known.set_a(None),
            Op::Txa => known.set_a(self.x),
            Op::LoadMem(slot) => {
                known.set_a(None);
                known.copy = Some(slot);
            }
            Op::Store(slot) => known.copy = Some(slot),
            Op::StoreX(slot) if self.copy == Some(slot) => known.copy = None,
            Op::LoadXImm(_) | Op::LoadXMem(_) | Op::LoadXLen => known.x = None,
            Op::Extra(Extra::LoadXHeaderLen(k)) => known.x = Number::header_len(k),
            Op::Tax => known.x = self.a,
            Op::StoreX(_) | Op::Jump(_) | Op::Branch { .. } | Op::RetImm(_) | Op::RetA => {}
        }
        known
    }

    fn set_a(&mut self, a: Option<Number>) {
        self.a = a;
        self.copy = None;
    }

    /// The facts that hold if one of two does.
    fn or(self, other: Known) -> Known {
        fn same<T: Copy + PartialEq>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.filter(|one| other == Some(*one))
        }
        Known {
            facts: self.facts.or(other.facts),
            a: same(self.a, other.a),
            x: same(self.x, other.x),
            copy: same(self.copy, other.copy),
        }
    }

    /// Whether the result of an instruction is available. A place that was loaded before is inside of the packet.
    fn has_result(&self, op: Op) -> bool {
        match op {
            Op::Tax | Op::Txa => self.a.is_some() && self.a == self.x,
            Op::LoadMem(slot) | Op::Store(slot) => self.copy == Some(slot),
            Op::LoadData(Load::Absolute(size, k)) => {
                self.a.is_some() && self.a == Number::loaded(size, k)
            }
            Op::Extra(Extra::LoadXHeaderLen(k)) => {
                self.x.is_some() && self.x == Number::header_len(k)
            }
            _ => false,
        }
    }

    /// Whether a load can't end the program.
    fn is_inside(&self, size: Size, k: u32) -> bool {
        match Area::from_offset(k) {
            Area::Packet(start) => start + size.bytes() <= self.facts.readable_bytes,
            _ => false,
        }
    }

    /// The live state before an instruction if `live` is live after it; `None` if it has no effect.
    fn live_before(&self, op: Op, live: Live) -> Option<Live> {
        match op {
            Op::LoadData(Load::Absolute(size, k))
                if !live.meets(Live::A) && self.is_inside(size, k) =>
            {
                None
            }
            Op::Extra(Extra::LoadXHeaderLen(k))
                if !live.meets(Live::X) && self.is_inside(Size::Byte, k) =>
            {
                None
            }
            Op::LoadData(load) => live_before_load(load, live),
            Op::Extra(extra) => Packets::live_before_extra(extra, live),
            op => live.before(op),
        }
    }
}

fn live_before_load(load: Load, live: Live) -> Option<Live> {
    let fetch = Fetch {
        load,
        is_unturned: false,
        asked_bytes: 0,
    };
    Packets::live_before_load(fetch, live)
}

/// Removes instructions without effect; returns the live state of each reachable instruction, including its
/// successors'.
fn leave_out(ops: &mut [Op]) -> Vec<Live> {
    let known = known_from(Known::START, ops, |op, known| known.after(op), Known::or);
    let mut live = vec![Live::NONE; ops.len() + 1];
    for (pc, op) in ops.iter_mut().enumerate().rev() {
        let Some(known) = known[pc] else {
            continue;
        };
        let after = successors(pc, *op).fold(Live::NONE, |all, next| all.or(live[next]));
        let before = match known.has_result(*op) {
            true => None,
            false => known.live_before(*op, after),
        };
        if before.is_none() {
            *op = NOTHING;
        }
        live[pc] = before.unwrap_or(after);
    }
    live
}

/// The instructions between which A keeps a number: one web for all that it reaches from the same loads.
struct Webs {
    /// For each place A's web there, as a place of the same web, itself or one with a lower index.
    parents: Vec<usize>,
    /// The byte order of the input of each web.
    orders: Vec<Order>,
}

/// Whether a number can stay as it is in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Nothing is known against it.
    Free,
    /// It comes from loads of this size, and is compared for equality or common bits.
    Loaded(Size),
    /// It is used as a number.
    Host,
}

impl Order {
    fn and(self, other: Order) -> Order {
        match (self, other) {
            (Order::Free, order) | (order, Order::Free) => order,
            (one, other) if one == other => one,
            _ => Order::Host,
        }
    }
}

impl Webs {
    fn new(ops: &[Op], live: &[Live]) -> Webs {
        let mut webs = Webs {
            parents: (0..live.len()).collect(),
            orders: vec![Order::Free; live.len()],
        };
        // A is 0 at the beginning.
        webs.add(0, live, Order::Host);
        for (pc, op) in ops.iter().enumerate() {
            webs.add(pc, live, used_as(*op));
            for next in successors(pc, *op) {
                match defined_as(*op) {
                    Some(order) => webs.add(next, live, order),
                    None if live[next].meets(Live::A) => webs.unite(pc, next),
                    None => {}
                }
            }
        }
        webs
    }

    fn root(&mut self, mut place: usize) -> usize {
        while self.parents[place] != place {
            self.parents[place] = self.parents[self.parents[place]];
            place = self.parents[place];
        }
        place
    }

    fn add(&mut self, place: usize, live: &[Live], order: Order) {
        if live[place].meets(Live::A) {
            let root = self.root(place);
            self.orders[root] = self.orders[root].and(order);
        }
    }

    fn unite(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        let (low, high) = (one.min(other), one.max(other));
        self.parents[high] = low;
        self.orders[low] = self.orders[low].and(self.orders[high]);
    }

    fn order(&mut self, place: usize) -> Order {
        let root = self.root(place);
        self.orders[root]
    }

    /// An instruction as it is written.
    fn step(&mut self, pc: usize, op: Op, asked_bytes: u32) -> Step {
        let step = map_load(op, |load| Fetch {
            load,
            is_unturned: self.order(pc + 1) != Order::Host,
            asked_bytes,
        });
        match (step, self.order(pc)) {
            (
                Operation::Branch {
                    test,
                    operand: Operand::K(k),
                    jt,
                    jf,
                },
                Order::Loaded(size),
            ) => Operation::branch(test, turned(test, size, k), jt, jf),
            (step, _) => step,
        }
    }
}

/// The constant that an unswapped number is compared with instead.
fn turned(test: Test, size: Size, k: u32) -> u32 {
    match size {
        Size::Word => k.swap_bytes(),
        // No half-word equals it, in any order.
        Size::Half if test == Test::Eq && k > 0xffff => k,
        Size::Half => u32::from((k as u16).swap_bytes()),
        Size::Byte => k,
    }
}

/// The use of A by an instruction.
fn used_as(op: Op) -> Order {
    match op {
        Op::Branch {
            test: Test::Eq | Test::Set,
            operand: Operand::K(_),
            ..
        } => Order::Free,
        // The value that it may return.
        Op::LoadData(Load::Ancillary(_, one)) if one.is_of_device() => Order::Host,
        Op::Branch { .. }
        | Op::LoadData(Load::Ancillary(_, Ancillary::XorX))
        | Op::Store(_)
        | Op::Alu(..)
        | Op::Neg
        | Op::Tax
        | Op::RetA
        | Op::Extra(Extra::Mod(_)) => Order::Host,
        Op::LoadData(_)
        | Op::LoadImm(_)
        | Op::LoadMem(_)
        | Op::LoadLen
        | Op::LoadXImm(_)
        | Op::LoadXMem(_)
        | Op::LoadXLen
        | Op::StoreX(_)
        | Op::Txa
        | Op::Jump(_)
        | Op::RetImm(_)
        | Op::Extra(Extra::LoadXHeaderLen(_)) => Order::Free,
    }
}

/// The value of A after an instruction that changes it.
fn defined_as(op: Op) -> Option<Order> {
    match op {
        Op::LoadData(Load::Absolute(size, _) | Load::Indexed(size, _)) => Some(Order::Loaded(size)),
        Op::LoadData(Load::Ancillary(..))
        | Op::LoadImm(_)
        | Op::LoadMem(_)
        | Op::LoadLen
        | Op::Alu(..)
        | Op::Neg
        | Op::Txa
        | Op::Extra(Extra::Mod(_)) => Some(Order::Host),
        Op::LoadXImm(_)
        | Op::LoadXMem(_)
        | Op::LoadXLen
        | Op::Store(_)
        | Op::StoreX(_)
        | Op::Tax
        | Op::Jump(_)
        | Op::Branch { .. }
        | Op::RetImm(_)
        | Op::RetA
        | Op::Extra(Extra::LoadXHeaderLen(_)) => None,
    }
}

//! The number of bytes that a load tests on behalf of subsequent loads.
//!
//! A load outside of the packet ends the program with 0, and so do most paths that reject a packet. If every path
//! either returns 0 or loads at least some number of bytes of the packet, a shorter packet gets 0 in any case: programs
//! have no other effect. So the first load can test for all of these bytes, and the others need no comparison. The same
//! holds for bytes counted from X, as long as X is unchanged.
//!
//! Paths that may end with another value require nothing: there the exact comparisons stay.

use tamis_bpf::packet::{Extra, Load, Op};

use crate::program::{known_from, successors};
use crate::ranges::{Area, Facts};

/// Bytes that all ways on need, unless they return 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    /// Counted from the start of the packet.
    packet_bytes: u32,
    /// Counted from X, which isn't changed before.
    x_bytes: u32,
}

/// A need of ways that return 0 in any case.
const ANY: u32 = u32::MAX;

impl Need {
    const NOTHING: Need = Need {
        packet_bytes: 0,
        x_bytes: 0,
    };
    const ZERO: Need = Need {
        packet_bytes: ANY,
        x_bytes: ANY,
    };

    /// The common requirement of two paths.
    fn or(self, other: Need) -> Need {
        Need {
            packet_bytes: self.packet_bytes.min(other.packet_bytes),
            x_bytes: self.x_bytes.min(other.x_bytes),
        }
    }

    /// Before X changes: nothing is counted from the old one.
    fn with_other_x(self) -> Need {
        let x_bytes = if self.x_bytes == ANY { ANY } else { 0 };
        Need { x_bytes, ..self }
    }

    fn with_packet(self, end: u32) -> Need {
        let packet_bytes = self.packet_bytes.max(end);
        Need {
            packet_bytes,
            ..self
        }
    }

    /// Before an instruction where that is needed behind it.
    fn before(self, op: Op, facts: Facts) -> Need {
        match op {
            Op::RetImm(0) => Need::ZERO,
            Op::RetImm(_) | Op::RetA => Need::NOTHING,
            Op::LoadData(Load::Absolute(size, k)) => match Area::from_offset(k) {
                Area::Packet(start) => self.with_packet(start + size.bytes()),
                Area::Network(_) => self,
                Area::Nowhere => Need::ZERO,
            },
            Op::LoadData(Load::Indexed(size, k)) if facts.is_own_offset(k) => Need {
                x_bytes: self.x_bytes.max(k + size.bytes()),
                ..self
            },
            Op::Extra(Extra::LoadXHeaderLen(k)) => match Area::from_offset(k) {
                Area::Packet(start) => self.with_other_x().with_packet(start + 1),
                Area::Network(_) => self.with_other_x(),
                Area::Nowhere => Need::ZERO,
            },
            Op::LoadXImm(_) | Op::LoadXMem(_) | Op::LoadXLen | Op::Tax => self.with_other_x(),
            // It may end the program with A.
            Op::LoadData(Load::Ancillary(_, one)) if one.is_of_device() => Need::NOTHING,
            // Other early ends of the program return 0.
            Op::LoadData(Load::Indexed(..) | Load::Ancillary(..))
            | Op::Extra(Extra::Mod(_))
            | Op::LoadImm(_)
            | Op::LoadMem(_)
            | Op::LoadLen
            | Op::Store(_)
            | Op::StoreX(_)
            | Op::Alu(..)
            | Op::Neg
            | Op::Txa
            | Op::Jump(_)
            | Op::Branch { .. } => self,
        }
    }
}

/// For each instruction the bytes that its load tests in addition to its own, counted in the same way; 0 for other
/// instructions than loads of A from the packet.
pub(crate) fn asked_for(ops: &[Op]) -> Vec<u32> {
    let facts = known_from(Facts::START, ops, |op, facts| facts.after(op), Facts::or);
    let mut needs = vec![Need::NOTHING; ops.len() + 1];
    let mut asked = vec![0; ops.len()];
    for (pc, op) in ops.iter().enumerate().rev() {
        let Some(facts) = facts[pc] else {
            continue;
        };
        let ways = successors(pc, *op).map(|next| needs[next]);
        let behind = ways.reduce(Need::or).unwrap_or(Need::NOTHING);
        needs[pc] = behind.before(*op, facts);
        asked[pc] = match op {
            Op::LoadData(Load::Absolute(_, k))
                if matches!(Area::from_offset(*k), Area::Packet(_)) =>
            {
                behind.packet_bytes
            }
            Op::LoadData(Load::Indexed(_, k)) if facts.is_own_offset(*k) => behind.x_bytes,
            _ => 0,
        };
        if asked[pc] == ANY {
            asked[pc] = 0;
        }
    }
    asked
}

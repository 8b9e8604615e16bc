//! Facts about registers and packets before an instruction: bounds of A and X, and the number of bytes that are
//! readable on every path to it.
//!
//! A load at X needs no test for the areas of high offsets if X is small. A load below another one, or below the bytes
//! that another one tested, needs no test at all.

use tamis_bpf::packet::{Extra, LINK_OFFSET, Load, NETWORK_OFFSET, Op, Size};
use tamis_bpf::{AluOp, Operand};

/// The last offset of the packet's own bytes.
const LAST_OWN_OFFSET: u32 = 0x7fff_ffff;

/// Bounds that hold on every way to an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The largest value of A.
    pub a_max: u32,
    /// The largest value of X.
    pub x_max: u32,
    /// The packet has at least so many bytes.
    pub readable_bytes: u32,
    /// And from X on at least so many.
    pub x_readable_bytes: u32,
}

/// The area of an offset in a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    /// A place counted from the start of the packet.
    Packet(u32),
    /// A place counted from the start of the network layer.
    Network(u32),
    /// No place.
    Nowhere,
}

impl Area {
    pub(crate) const fn from_offset(offset: u32) -> Area {
        match offset {
            NETWORK_OFFSET.. => Area::Network(offset - NETWORK_OFFSET),
            LINK_OFFSET.. => Area::Packet(offset - LINK_OFFSET),
            0..=LAST_OWN_OFFSET => Area::Packet(offset),
            _ => Area::Nowhere,
        }
    }
}

impl Facts {
    /// The facts if both registers are 0.
    pub const START: Facts = Facts {
        a_max: 0,
        x_max: 0,
        readable_bytes: 0,
        x_readable_bytes: 0,
    };

    /// The facts of any state.
    pub const NOTHING: Facts = Facts {
        a_max: u32::MAX,
        x_max: u32::MAX,
        readable_bytes: 0,
        x_readable_bytes: 0,
    };

    /// Whether X + k is a place counted from the start of the packet for every X.
    pub(crate) const fn is_own_offset(self, k: u32) -> bool {
        match self.x_max.checked_add(k) {
            Some(last) => last <= LAST_OWN_OFFSET,
            None => false,
        }
    }

    /// The facts that hold if one of two does.
    pub(crate) fn or(self, other: Facts) -> Facts {
        Facts {
            a_max: self.a_max.max(other.a_max),
            x_max: self.x_max.max(other.x_max),
            readable_bytes: self.readable_bytes.min(other.readable_bytes),
            x_readable_bytes: self.x_readable_bytes.min(other.x_readable_bytes),
        }
    }

    /// The facts after an instruction, unless it ended the program.
    pub(crate) fn after(mut self, op: Op) -> Facts {
        const ANY: u32 = u32::MAX;
        match op {
            Op::LoadData(Load::Absolute(size, k)) => {
                self.read(size, k);
                self.a_max = largest(size);
            }
            Op::LoadData(Load::Indexed(size, k)) => {
                self.read_from_x(size, k);
                self.a_max = largest(size);
            }
            Op::LoadData(Load::Ancillary(..)) | Op::LoadMem(_) | Op::LoadLen | Op::Neg => {
                self.a_max = ANY;
            }
            Op::LoadImm(k) => self.a_max = k,
            Op::LoadXImm(k) => self.set_x(k),
            Op::LoadXMem(_) | Op::LoadXLen => self.set_x(ANY),
            Op::Alu(op, operand) => self.a_max = self.arithmetic(op, operand),
            Op::Extra(Extra::Mod(Operand::K(k))) => self.a_max = self.a_max.min(k.wrapping_sub(1)),
            Op::Extra(Extra::Mod(_)) => {}
            Op::Extra(Extra::LoadXHeaderLen(k)) => {
                self.read(Size::Byte, k);
                self.set_x(60);
            }
            Op::Tax => self.set_x(self.a_max),
            Op::Txa => self.a_max = self.x_max,
            Op::Store(_)
            | Op::StoreX(_)
            | Op::Jump(_)
            | Op::Branch { .. }
            | Op::RetImm(_)
            | Op::RetA => {}
        }
        self
    }

    /// The bound of A after an operation.
    fn arithmetic(self, op: AluOp, operand: Operand) -> u32 {
        let largest = match operand {
            Operand::K(k) => k,
            Operand::X => self.x_max,
            Operand::Variable(_) => u32::MAX,
        };
        let a = self.a_max;
        match op {
            AluOp::Add => a.saturating_add(largest),
            AluOp::Mul => a.saturating_mul(largest),
            AluOp::And => a.min(largest),
            // Divided or shifted to lower bits, A doesn't grow.
            AluOp::Div | AluOp::Rsh => a,
            AluOp::Sub | AluOp::Or | AluOp::Xor | AluOp::Lsh => u32::MAX,
        }
    }

    /// The facts after a load that tested for this many bytes in addition to its own, counted in the same way.
    pub(crate) fn after_asking(mut self, load: Load, asked_bytes: u32) -> Facts {
        match load {
            Load::Absolute(_, k) if matches!(Area::from_offset(k), Area::Packet(_)) => {
                self.readable_bytes = self.readable_bytes.max(asked_bytes);
            }
            Load::Indexed(_, k) if self.is_own_offset(k) => {
                self.x_readable_bytes = self.x_readable_bytes.max(asked_bytes);
            }
            // These test for no other bytes.
            Load::Absolute(..) | Load::Indexed(..) | Load::Ancillary(..) => {}
        }
        self
    }

    /// Notes another X.
    fn set_x(&mut self, x_max: u32) {
        self.x_max = x_max;
        self.x_readable_bytes = 0;
    }

    /// Notes a load at X that didn't end the program.
    fn read_from_x(&mut self, size: Size, k: u32) {
        if self.is_own_offset(k) {
            self.x_readable_bytes = self.x_readable_bytes.max(k + size.bytes());
        }
    }

    /// Notes a load that didn't end the program.
    fn read(&mut self, size: Size, k: u32) {
        if let Area::Packet(start) = Area::from_offset(k) {
            self.readable_bytes = self.readable_bytes.max(start + size.bytes());
        }
    }
}

const fn largest(size: Size) -> u32 {
    match size {
        Size::Byte => 0xff,
        Size::Half => 0xffff,
        Size::Word => u32::MAX,
    }
}

//! Runs a program in the kernel on any sixteen words, as a socket filter.
//!
//! The kernel uses the same code to convert and compile socket filters and seccomp filters. A packet of 64 bytes
//! represents `struct seccomp_data`, its words in network byte order, in which a socket filter loads them. So
//! number, architecture and instruction pointer can be arbitrary, no process has to die, and a test takes
//! microseconds.
//!
//! A socket filter's return value is the length to which the packet is truncated, which is too small a result for
//! an action. So each test is "does the program return *this*?": returns become 2 for yes and 1 for no. Only a
//! division by zero ends a program with 0 before it gets to a return, and the packet is dropped.
//!
//! Differences from seccomp filters: loads have network byte order, and the checks are less strict.
//!
//! Socket filters are tested the same way, on any packets. These have no device, so a load of device data ends the
//! program and returns A. The comparison is therefore placed before the load: it replaces A by the length for yes or
//! no.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;

use tamis_bpf::{Insn, Operation, Program, Test, packet};

use super::releases::ReleaseCounter;
use super::{AskError, CheckerAnswer};
use crate::sys::socket;

/// A pair of sockets; one has the program as its filter.
#[derive(Debug)]
pub struct Packets {
    sender: UnixDatagram,
    receiver: UnixDatagram,
    /// Each test replaces the previous filter.
    releases: ReleaseCounter,
}

/// The remaining length of a packet in bytes for yes and for no.
const YES: u32 = 2;
const NO: u32 = 1;
/// The remaining length if the program didn't reach a return.
const DIVIDED_BY_ZERO: u32 = 0;

impl Packets {
    /// Creates the sockets.
    ///
    /// # Errors
    /// [`AskError::Start`].
    pub fn new() -> Result<Packets, AskError> {
        let (sender, receiver) = UnixDatagram::pair()?;
        receiver.set_nonblocking(true)?;
        Ok(Packets {
            sender,
            receiver,
            releases: ReleaseCounter::default(),
        })
    }

    /// Whether the program returns `ret` in the kernel, for each of these images.
    ///
    /// The program may have at most 4093 instructions. The kernel limits the memory for long socket filters to
    /// `net.core.optmem_max` bytes.
    ///
    /// # Errors
    /// [`AskError::Start`] if the program is rejected or a packet can't be sent.
    pub fn returns<'a>(
        &self,
        program: &Program,
        ret: u32,
        images: impl IntoIterator<Item = &'a [u32; 16]>,
    ) -> Result<Vec<bool>, AskError> {
        let bytes = |image: &[u32; 16]| -> Vec<u8> {
            image.iter().flat_map(|word| word.to_be_bytes()).collect()
        };
        let packets: Vec<Vec<u8>> = images.into_iter().map(bytes).collect();
        let question = question(program.ops().collect(), ret, |_| false);
        self.ask(&question, ret, packets.iter().map(Vec::as_slice))
    }

    /// Whether a socket filter returns `ret` in the kernel, for each of these packets of at least two bytes. They have
    /// no device, no headers, and 0 for the other ancillary data. Each load of device data needs six additional
    /// instructions, which count towards the limit of a filter.
    ///
    /// # Errors
    /// [`AskError::Start`] if the program is rejected or a packet can't be sent.
    pub fn returns_on<'a>(
        &self,
        program: &packet::Program,
        ret: u32,
        packets: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<bool>, AskError> {
        let returns_a = |load: &packet::Load| match load {
            packet::Load::Ancillary(_, one) => one.is_of_device(),
            packet::Load::Absolute(..) | packet::Load::Indexed(..) => false,
        };
        let question = question(program.ops().collect(), ret, returns_a);
        self.ask(&question, ret, packets)
    }

    /// Whether a socket takes a list of instructions.
    pub fn takes(&self, insns: &[Insn]) -> CheckerAnswer {
        let insns = &insns[..insns.len().min(usize::from(u16::MAX))];
        let attached = socket::attach_filter(self.receiver.as_fd(), insns);
        self.releases.step();
        match attached {
            Ok(()) => CheckerAnswer::Accepted,
            Err(errno) => CheckerAnswer::Refused(errno),
        }
    }

    fn ask<'a>(
        &self,
        question: &[Insn],
        ret: u32,
        packets: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<bool>, AskError> {
        socket::attach_filter(self.receiver.as_fd(), question).map_err(AskError::Start)?;
        self.releases.step();
        let answer = |packet| {
            let kept = self.kept_bytes(packet)?;
            Ok(kept == YES || (kept == DIVIDED_BY_ZERO && ret == 0))
        };
        packets.into_iter().map(answer).collect()
    }

    /// The remaining length of the packet.
    fn kept_bytes(&self, packet: &[u8]) -> Result<u32, AskError> {
        self.sender.send(packet)?;
        let mut kept = [0; 64];
        match self.receiver.recv(&mut kept) {
            Ok(len_bytes) => Ok(len_bytes as u32),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

/// The program with returns that report whether the value is `ret`. Returns of A jump to a common sequence at the
/// end, and so does each load that returns A to one of its own; all other positions stay.
fn question<L, E>(ops: Vec<Operation<L, E>>, ret: u32, returns_a: impl Fn(&L) -> bool) -> Vec<Insn>
where
    Insn: From<Operation<L, E>>,
{
    let answer = |is_equal: bool| if is_equal { YES } else { NO };
    let compare = |unequal| Operation::branch(Test::Eq, ret, 0, unequal);
    let len_insns = ops.len();
    let mut end = vec![
        compare(1),
        Operation::RetImm(answer(true)),
        Operation::RetImm(answer(false)),
    ];
    let mut asked = Vec::with_capacity(len_insns);
    for (pc, op) in ops.into_iter().enumerate() {
        let to_end = len_insns - pc - 1;
        asked.push(match op {
            Operation::RetImm(value) => Operation::RetImm(answer(value == ret)),
            Operation::RetA => Operation::Jump(to_end as u32),
            Operation::LoadData(load) if returns_a(&load) => {
                let to_own = to_end + end.len();
                end.extend([
                    compare(2),
                    Operation::LoadImm(answer(true)),
                    Operation::Jump(1),
                    Operation::LoadImm(answer(false)),
                    Operation::LoadData(load),
                    // There is a device.
                    Operation::RetImm(answer(false)),
                ]);
                Operation::Jump(to_own as u32)
            }
            other => other,
        });
    }
    asked.into_iter().chain(end).map(Insn::from).collect()
}

//! What a program returns for any sixteen words, as the filter of a socket.
//!
//! The kernel translates and compiles the filters of sockets and of system calls with the same code. A
//! packet of 64 bytes stands for `struct seccomp_data`, its words in the order of the network, from
//! which a socket's filter loads them. So number, architecture and instruction pointer can be anything,
//! no process has to die, and a question takes microseconds.
//!
//! A filter's return value is the length that is left of the packet: too little to read a verdict from.
//! So the question is put as "does it return *this*?": returns become 2 for yes and 1 for no. Only a
//! division by zero ends a program with 0 before it gets to a return, and the packet is dropped.
//!
//! What differs from a filter of calls: the loads of words, which are those of the network, and checks
//! that are less strict.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;

use tamis_bpf::{Insn, Op, Program, Test};

use super::AskError;
use super::pace::Pace;
use crate::sys::socket;

/// A pair of sockets, of which one has programs as its filter.
#[derive(Debug)]
pub struct Packets {
    sender: UnixDatagram,
    receiver: UnixDatagram,
    /// Each question replaces the filter of the one before.
    pace: Pace,
}

/// What is left of a packet if the answer is yes, and if it is no, in bytes.
const YES: u32 = 2;
const NO: u32 = 1;
/// What is left of it if the program came to no return.
const DIVIDED_BY_ZERO: u32 = 0;

impl Packets {
    /// Makes the sockets.
    ///
    /// # Errors
    /// [`AskError::Start`].
    pub fn new() -> Result<Packets, AskError> {
        let (sender, receiver) = UnixDatagram::pair()?;
        receiver.set_nonblocking(true)?;
        Ok(Packets {
            sender,
            receiver,
            pace: Pace::default(),
        })
    }

    /// Whether the kernel returns `ret` when it runs the program, for each of these images.
    ///
    /// The program may have at most 4093 instructions. The kernel gives sockets little room for long
    /// ones: `net.core.optmem_max` bytes.
    ///
    /// # Errors
    /// [`AskError::Start`] if the program is not taken or a packet not sent.
    pub fn returns<'a>(
        &self,
        program: &Program,
        ret: u32,
        images: impl IntoIterator<Item = &'a [u32; 16]>,
    ) -> Result<Vec<bool>, AskError> {
        let question = question(program, ret);
        socket::attach_filter(self.receiver.as_fd(), &question).map_err(AskError::Start)?;
        self.pace.step();
        let answer = |image| {
            let kept = self.kept_bytes(image)?;
            Ok(kept == YES || (kept == DIVIDED_BY_ZERO && ret == 0))
        };
        images.into_iter().map(answer).collect()
    }

    /// How much the filter leaves of the packet for an image.
    fn kept_bytes(&self, image: &[u32; 16]) -> Result<u32, AskError> {
        let packet: Vec<u8> = image.iter().flat_map(|word| word.to_be_bytes()).collect();
        self.sender.send(&packet)?;
        let mut kept = [0; 64];
        match self.receiver.recv(&mut kept) {
            Ok(len_bytes) => Ok(len_bytes as u32),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

/// The program with returns that say whether they return `ret`. Those of A go to a common place at the
/// end; nothing else moves.
fn question(program: &Program, ret: u32) -> Vec<Insn> {
    let len_insns = program.len();
    let answer = |is_equal: bool| Op::RetImm(if is_equal { YES } else { NO });
    let asked = program.ops().enumerate().map(|(pc, op)| match op {
        Op::RetImm(value) => answer(value == ret),
        Op::RetA => Op::Jump((len_insns - pc - 1) as u32),
        other => other,
    });
    let compare = Op::branch(Test::Eq, ret, 0, 1);
    let end = [compare, answer(true), answer(false)];
    asked.chain(end).map(Insn::from).collect()
}

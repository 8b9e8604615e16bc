//! Evaluators of filters of sockets.

use tamis_bpf::interp;
use tamis_bpf::packet::{Ancillary, Packet, Program};
use tamis_jit::Socket;
use tamis_vm::threaded::{Sockets, Threaded};

use crate::choice::{Choice, Engine, choose};
use crate::{Error, Options};

/// A socket's filter, prepared to be run on many packets.
///
/// ```
/// use tamis_bpf::packet::{Load, Op, Packet, Program, Size};
/// use tamis_engine::{Options, PacketEvaluator};
/// let insns = [Op::LoadData(Load::Absolute(Size::Half, 12)), Op::RetA].map(Into::into);
/// let program = Program::new(insns.to_vec()).unwrap();
/// let evaluator = PacketEvaluator::new(&program, &[], &Options::default()).unwrap();
/// let mut frame = [0; 60];
/// frame[12] = 8;
/// assert_eq!(evaluator.run(&Packet::new(&frame)), 0x800);
/// ```
#[derive(Debug)]
pub struct PacketEvaluator {
    filter: Filter,
    choice: Choice,
}

#[derive(Debug)]
enum Filter {
    Reference(Program),
    Threaded(Threaded<Sockets>),
    Jit(Socket),
}

impl PacketEvaluator {
    /// Prepares a program for packets with these ancillary values.
    ///
    /// A packet may lack a device: a load of `#ifidx` or `#hatype` then ends the program with the value of A, as in the
    /// kernel. A load of another missing value ends the program with 0.
    ///
    /// # Errors
    /// If the program loads others, or the requested engine isn't available.
    pub fn new(
        program: &Program,
        known: &[Ancillary],
        options: &Options,
    ) -> Result<PacketEvaluator, Error> {
        if let Some((pc, ancillary)) = program.unanswered(|one| known.contains(&one)) {
            return Err(Error::Unanswered { pc, ancillary });
        }
        let compile = || {
            let harden = options.harden;
            Socket::compile(program, &tamis_jit::Options { harden })
        };
        let (choice, compiled) = choose(options.engine, options.evaluations, compile)?;
        let filter = match (choice.engine, compiled) {
            (_, Some(compiled)) => Filter::Jit(compiled),
            (Engine::Reference, None) => Filter::Reference(program.clone()),
            (_, None) => Filter::Threaded(Threaded::packet(program)),
        };
        Ok(PacketEvaluator { filter, choice })
    }

    /// The engine, and the reason for its choice.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The value for a packet: how many of its bytes are kept, 0 for none.
    #[inline]
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        match &self.filter {
            Filter::Reference(program) => interp::run_packet(program, packet).ret,
            Filter::Threaded(filter) => filter.run(packet),
            Filter::Jit(filter) => filter.run(packet),
        }
    }

    /// The values for packets, in order: faster than one by one if the packets aren't in the processor's cache.
    pub fn run_batch(&self, packets: &[Packet<'_>]) -> Vec<u32> {
        match &self.filter {
            Filter::Jit(filter) => {
                let mut rets = vec![0; packets.len()];
                filter.run_batch(packets, &mut rets);
                rets
            }
            _ => packets.iter().map(|packet| self.run(packet)).collect(),
        }
    }
}

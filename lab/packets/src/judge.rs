//! Comparison of two programs on the same packets, which are generated to take every branch each way.
//!
//! The reference interpreter runs both programs on a packet, and a walk notes for each tested value its source (bytes
//! of the packet) and the arithmetic after it. If an outcome hasn't occurred, these bytes get the value that leads to
//! it. Each load also gets a packet that ends one byte too early, and if the programs read the device, some packets
//! have none. The rest of the packets are random changes, near the constants, of packets that reached a new outcome.
//!
//! The work is bounded by executed instructions: long programs get fewer packets.

use std::collections::{BTreeSet, VecDeque};

use tamis_bpf::Pc;
use tamis_bpf::insn::{AluOp, Operand, Test};
use tamis_bpf::interp::{self, Input, Registers};
use tamis_bpf::packet::{Ancillary, Extra, Load, Metadata, Op, Packet, Program, Size};
use tamis_fuzz::rng::Rng;

/// The length of packets, unless the programs load from greater offsets.
const LEN_BYTES: usize = 128;
const MAX_LEN_BYTES: usize = 4096;
/// The most times that packets are generated for the other outcome of one branch.
const MAX_TURNS: u8 = 16;
/// The most packets that wait.
const MAX_WAITING: usize = 1 << 16;
/// The instructions of both programs after which no further packet is tried: 8192 packets for two programs that execute
/// 4096 instructions each.
pub(crate) const MAX_STEPS: u64 = 1 << 26;

/// The runs of both programs on the packets, with equal values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The packets.
    pub packets: usize,
    /// The outcomes of the branches of both programs that occurred, and all.
    pub taken_outcomes: usize,
    /// Two for each branch of both programs.
    pub outcomes: usize,
    /// The executed instructions of the first and of the second program.
    pub steps: [u64; 2],
}

/// A packet for which two programs return different values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The bytes of the packet.
    pub bytes: Vec<u8>,
    /// The programs' return values.
    pub rets: [u32; 2],
}

/// Runs two programs on this many generated packets, or more if the branches need more, or fewer if the programs execute
/// more than 2^26 instructions.
///
/// # Errors
/// The first packet with different return values.
pub fn compare(
    programs: [&Program; 2],
    packets: usize,
    seed: u64,
) -> Result<Comparison, Difference> {
    let mut search = Search::new(programs, seed);
    let mut comparison = Comparison::default();
    while comparison.steps.iter().sum::<u64>() < MAX_STEPS
        && let Some(case) = search.next(comparison.packets < packets)
    {
        let runs = programs.map(|program| interp::run_packet(program, &case.packet()));
        let rets = runs.map(|run| run.ret);
        if rets[0] != rets[1] {
            let bytes = case.bytes;
            return Err(Difference { bytes, rets });
        }
        comparison.packets += 1;
        for (steps, run) in comparison.steps.iter_mut().zip(runs) {
            *steps += u64::from(run.steps);
        }
        search.learn(case);
    }
    comparison.outcomes = search.outcomes();
    comparison.taken_outcomes = search.taken_outcomes();
    Ok(comparison)
}

/// A generated packet.
#[derive(Clone, Debug)]
struct Case {
    bytes: Vec<u8>,
    /// All values are known, except those of a missing device.
    metadata: Metadata,
}

impl Case {
    fn packet(&self) -> Packet<'_> {
        Packet {
            metadata: &self.metadata,
            ..Packet::new(&self.bytes)
        }
    }

    /// Gives the source this value.
    fn set(&mut self, source: Source, value: u32) {
        match source {
            Source::Bytes(size, at) => {
                let len = size.bytes() as usize;
                let value = value.to_be_bytes();
                if let Some(bytes) = self.bytes.get_mut(at..at + len) {
                    bytes.copy_from_slice(&value[4 - len..]);
                }
            }
            Source::Ancillary(ancillary) => self.metadata = self.metadata.with(ancillary, value),
        }
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Bytes(Size, usize),
    Ancillary(Ancillary),
}

/// A source, its value, and the arithmetic with constants after it.
#[derive(Clone, Debug)]
struct Chain {
    source: Source,
    value: u32,
    steps: Vec<(AluOp, u32)>,
}

impl Chain {
    /// The source's value that leads to this result, if the arithmetic can be inverted.
    fn undo(&self, wanted: u32) -> Option<u32> {
        // The results of all steps, which keep the bits that a mask or a shift drops.
        let mut results = vec![self.value];
        for (alu, k) in &self.steps {
            results.push(interp::arithmetic(*alu, results[results.len() - 1], *k)?);
        }
        let undone = self.steps.iter().zip(&results).rev();
        undone
            .into_iter()
            .try_fold(wanted, |wanted, ((alu, k), before)| {
                Some(match alu {
                    AluOp::Add => wanted.wrapping_sub(*k),
                    AluOp::Sub => wanted.wrapping_add(*k),
                    AluOp::Xor => wanted ^ k,
                    AluOp::And => before & !k | wanted & k,
                    AluOp::Or => before & k | wanted & !k,
                    AluOp::Lsh => wanted.checked_shr(*k)?,
                    AluOp::Rsh => wanted.checked_shl(*k)? | before & !u32::MAX.checked_shl(*k)?,
                    AluOp::Mul => wanted.checked_div(*k)?,
                    AluOp::Div => wanted.wrapping_mul(*k),
                })
            })
    }
}

/// A branch: the program and the instruction.
type ForkPlace = (usize, usize);

/// An executed branch.
struct Fork {
    place: ForkPlace,
    holds: bool,
    /// Where the tested value comes from, if that is known.
    source: Option<Source>,
    /// The test with its operand and the tested value's chain, if packets for the other outcome are wanted.
    turn: Option<(Test, u32, Chain)>,
}

/// The packets for a branch's outcomes.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    /// Whether the test has failed, and whether it has held.
    are_taken: [bool; 2],
    /// The times that packets were generated for the other outcome.
    turns: u8,
}

struct Search<'a> {
    programs: [&'a Program; 2],
    rng: Rng,
    waiting: VecDeque<Case>,
    kept: Vec<Case>,
    /// Per program and instruction.
    branches: [Vec<Outcomes>; 2],
    /// The tested sources.
    sources: Vec<Source>,
    /// The ends of loads that already have a packet cut one byte before them.
    cut: BTreeSet<usize>,
    constants: Vec<u32>,
    /// One of the programs reads the device.
    asks_for_device: bool,
}

impl<'a> Search<'a> {
    fn new(programs: [&'a Program; 2], seed: u64) -> Search<'a> {
        let mut constants = vec![0, 1, u32::MAX, 0x8000_0000];
        let mut len = LEN_BYTES;
        let mut asks_for_device = false;
        for op in programs.iter().flat_map(|program| program.ops()) {
            match op {
                Op::LoadImm(k) | Op::LoadXImm(k) => constants.push(k),
                Op::Alu(_, Operand::K(k))
                | Op::Branch {
                    operand: Operand::K(k),
                    ..
                } => {
                    constants.extend([k, k.wrapping_add(1), k.wrapping_sub(1)]);
                }
                Op::LoadData(Load::Absolute(_, k) | Load::Indexed(_, k))
                | Op::Extra(Extra::LoadXHeaderLen(k)) => {
                    len = len.max((k as usize).saturating_add(64)).min(MAX_LEN_BYTES);
                }
                Op::LoadData(Load::Ancillary(_, one)) => asks_for_device |= one.is_of_device(),
                _ => {}
            }
        }
        constants.sort_unstable();
        constants.dedup();
        let first = |byte: u8| Case {
            bytes: vec![byte; len],
            metadata: Ancillary::ALL
                .into_iter()
                .fold(Metadata::NONE, |known, one| known.with(one, byte.into())),
        };
        let mut waiting: VecDeque<Case> = [0, 0x45, 0xff].map(first).into();
        waiting.push_back(Case {
            bytes: Vec::new(),
            ..first(0)
        });
        if asks_for_device {
            let case = first(0x45);
            let metadata = case.metadata.without_device();
            waiting.push_back(Case { metadata, ..case });
        }
        Search {
            programs,
            rng: Rng::new(seed),
            waiting,
            kept: Vec::new(),
            branches: programs.map(|program| vec![Outcomes::default(); program.len()]),
            sources: Vec::new(),
            cut: BTreeSet::new(),
            constants,
            asks_for_device,
        }
    }

    /// Two for each branch.
    fn outcomes(&self) -> usize {
        let ops = self.programs.iter().flat_map(|program| program.ops());
        2 * ops.filter(|op| matches!(op, Op::Branch { .. })).count()
    }

    fn taken_outcomes(&self) -> usize {
        let branches = self.branches.iter().flatten();
        let taken = branches.flat_map(|outcomes| outcomes.are_taken);
        taken.filter(|is_taken| *is_taken).count()
    }

    /// The next packet: a queued one, or a random one if such are wanted.
    fn next(&mut self, is_random_wanted: bool) -> Option<Case> {
        let waiting = self.waiting.pop_front();
        waiting.or_else(|| is_random_wanted.then(|| self.random()))
    }

    /// A random change of a packet that reached a new outcome.
    fn random(&mut self) -> Case {
        let mut case = self.rng.choose(&self.kept).clone();
        for _ in 0..=self.rng.next_u64().trailing_ones().min(5) {
            let value = match self.rng.range(0..=3) {
                0 => self.rng.next_u32(),
                _ => *self.rng.choose(&self.constants),
            };
            if !self.sources.is_empty() && self.rng.chance(7, 8) {
                let source = *self.rng.choose(&self.sources);
                case.set(source, value);
            } else if !case.bytes.is_empty() {
                let at = self.rng.index(case.bytes.len());
                case.bytes[at] = value as u8;
            }
        }
        if self.rng.chance(1, 16) {
            let len = self.rng.index(case.bytes.len() + 1);
            case.bytes.truncate(len);
        }
        if self.asks_for_device && self.rng.chance(1, 8) {
            case.metadata = case.metadata.without_device();
        }
        case
    }

    /// Keeps a packet that reached a new outcome, and queues packets for the other outcomes of its branches.
    fn learn(&mut self, case: Case) {
        let mut is_new = self.kept.is_empty();
        for side in 0..self.programs.len() {
            let (forks, ends) = self.walk(side, &case);
            let mut last = None;
            for fork in &forks {
                let (program, pc) = fork.place;
                let is_taken = &mut self.branches[program][pc].are_taken[usize::from(fork.holds)];
                is_new |= !std::mem::replace(is_taken, true);
                if fork.source != last
                    && let Some(source) = fork.source
                    && !self.sources.contains(&source)
                {
                    self.sources.push(source);
                }
                last = fork.source;
            }
            for fork in forks {
                self.turn(fork, &case);
            }
            for end in ends {
                if self.cut.insert(end) && (1..=case.bytes.len()).contains(&end) {
                    let bytes = case.bytes[..end - 1].to_vec();
                    let case = case.clone();
                    self.waiting.push_back(Case { bytes, ..case });
                }
            }
        }
        if is_new {
            self.kept.push(case);
        }
    }

    /// Whether packets for the other outcome of a branch are to be generated.
    fn is_turned(&self, (program, pc): ForkPlace, holds: bool) -> bool {
        let branch = self.branches[program][pc];
        !branch.are_taken[usize::from(!holds)]
            && branch.turns < MAX_TURNS
            && self.waiting.len() < MAX_WAITING
    }

    /// Queues packets for a branch's other outcome.
    fn turn(&mut self, fork: Fork, case: &Case) {
        let Some((test, k, chain)) = fork.turn else {
            return;
        };
        let (program, pc) = fork.place;
        self.branches[program][pc].turns += 1;
        let near = [
            k,
            k.wrapping_add(1),
            k.wrapping_sub(1),
            0,
            u32::MAX,
            k & k.wrapping_neg(),
        ];
        for wanted in near {
            if test.holds(wanted, k) != fork.holds
                && let Some(value) = chain.undo(wanted)
            {
                let mut case = case.clone();
                case.set(chain.source, value);
                self.waiting.push_back(case);
            }
        }
    }

    /// The branches that a program executes on a packet, and the ends of its loads.
    fn walk(&self, side: usize, case: &Case) -> (Vec<Fork>, Vec<usize>) {
        let mut forks = Vec::new();
        let mut walk = Walk {
            packet: case.packet(),
            chains: Default::default(),
            values: [0; 18],
            ends: Vec::new(),
        };
        let mut pc = 0;
        loop {
            let op = self.programs[side].op(Pc(pc));
            let place = (side, pc);
            pc += 1;
            match op {
                Op::Jump(skip) => pc += skip as usize,
                Op::Branch {
                    test,
                    operand,
                    jt,
                    jf,
                } => {
                    let [a, x, ..] = walk.values;
                    let operand = operand.value(x);
                    let holds = test.holds(a, operand);
                    pc += usize::from(if holds { jt } else { jf });
                    let chain = walk.chains[0].as_ref();
                    let source = chain.map(|chain| chain.source);
                    let turned = chain.filter(|_| self.is_turned(place, holds));
                    let turn = turned.map(|chain| (test, operand, chain.clone()));
                    forks.push(Fork {
                        place,
                        holds,
                        source,
                        turn,
                    });
                }
                Op::RetImm(_) | Op::RetA => return (forks, walk.ends),
                op if walk.step(op).is_none() => return (forks, walk.ends),
                _ => {}
            }
        }
    }
}

/// The state of a program on a packet.
struct Walk<'a> {
    packet: Packet<'a>,
    /// The chains of A, X and the slots after them, where the source can be changed.
    chains: [Option<Chain>; 18],
    values: [u32; 18],
    /// The ends of loads.
    ends: Vec<usize>,
}

impl Walk<'_> {
    /// Runs an instruction that has one successor; `None` if it ends the program.
    fn step(&mut self, op: Op) -> Option<()> {
        let [a, x, ..] = self.values;
        match op {
            Op::LoadData(load) => {
                let source = source(load, x);
                if let Some(Source::Bytes(size, at)) = source {
                    self.ends.push(at + size.bytes() as usize);
                }
                let value = self.packet.load(load, Registers { a, x }).ok()?;
                let steps = Vec::new();
                let chain = source.map(|source| Chain {
                    source,
                    value,
                    steps,
                });
                self.put(0, value, chain);
            }
            Op::Extra(extra) => {
                let mut registers = Registers { a, x };
                if let Extra::LoadXHeaderLen(k) = extra {
                    self.ends.push((k as usize).saturating_add(1));
                }
                self.packet.run_extra(extra, &mut registers)?;
                let to = usize::from(matches!(extra, Extra::LoadXHeaderLen(_)));
                self.put(to, [registers.a, registers.x][to], None);
            }
            Op::LoadImm(k) => self.put(0, k, None),
            Op::LoadXImm(k) => self.put(1, k, None),
            Op::LoadLen => self.put(0, self.packet.len_bytes, None),
            Op::LoadXLen => self.put(1, self.packet.len_bytes, None),
            Op::Neg => self.put(0, a.wrapping_neg(), None),
            Op::Alu(alu, operand) => {
                let by = operand.value(x);
                self.values[0] = interp::arithmetic(alu, a, by)?;
                if let Some(chain) = &mut self.chains[0] {
                    chain.steps.push((alu, by));
                }
            }
            op => {
                let (from, to) = move_of(op);
                self.put(to, self.values[from], self.chains[from].clone());
            }
        }
        Some(())
    }

    fn put(&mut self, to: usize, value: u32, chain: Option<Chain>) {
        self.values[to] = value;
        self.chains[to] = chain;
    }
}

/// The source and the destination of a copy: A is 0, X is 1, and the slots follow.
fn move_of(op: Op) -> (usize, usize) {
    match op {
        Op::LoadMem(slot) => (slot as usize + 2, 0),
        Op::LoadXMem(slot) => (slot as usize + 2, 1),
        Op::Store(slot) => (0, slot as usize + 2),
        Op::StoreX(slot) => (1, slot as usize + 2),
        Op::Tax => (0, 1),
        _ => (1, 0),
    }
}

/// The source of a load, if it can be changed.
fn source(load: Load, x: u32) -> Option<Source> {
    let bytes = |size, at: u32| (at < 0x8000_0000).then_some(Source::Bytes(size, at as usize));
    match load {
        Load::Absolute(size, k) => bytes(size, k),
        Load::Indexed(size, k) => bytes(size, x.wrapping_add(k)),
        Load::Ancillary(_, Ancillary::XorX) => None,
        Load::Ancillary(_, ancillary) => Some(Source::Ancillary(ancillary)),
    }
}

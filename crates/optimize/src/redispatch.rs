//! Redispatch: rebuilds the dispatch of a program without lifting it to a ruleset.
//!
//! Most instructions that a filter executes are its dispatch by architecture and number. The constants that the program
//! compares these two words with divide them into intervals. For every interval the program is evaluated as far as the
//! two words decide its tests; the remainder consists of questions about arguments, in the program's own order. These
//! remainders become the leaves of the same search trees that rulesets get. A remainder with a computation that no
//! question of [`tamis_compiler::dag`] expresses is not changed: the leaf continues in the program itself.
//!
//! Redispatch does not improve questions about arguments. It is for programs without an equivalent ruleset, or whose
//! ruleset is much longer than they are.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use tamis_abi::{Arch, Word};
use tamis_bpf::cfg::{Block, BlockId, Cfg, End};
use tamis_bpf::{Op, Operand, Program, Test};
use tamis_rules::Section;

use super::lift::STAND_IN;
use super::remainder::{Entrance, Remainder, Remainders};
use tamis_compiler::CompileOptions;
use tamis_compiler::dag::{Dag, NodeId};
use tamis_compiler::passes::{PassCx, Remark};
use tamis_compiler::stages::{self, Continuations, Piece, arch_dispatch, number_line};
use tamis_compiler::weights::Weights;

/// The lowest bit whose tests divide the numbers into intervals: there are then at most sixteen.
const LEAST_CUTTING_BIT: u32 = 28;

/// The maximum number of intervals that programs are evaluated for.
const MAX_INTERVALS: usize = 20_000;

/// The program with a new dispatch, and the changes of the passes; `None` if it distinguishes architectures that it
/// does not name, or is too large to be evaluated.
pub(super) fn redispatch(
    program: &Program,
    archs: &[Arch],
    options: &CompileOptions,
) -> Option<(Program, Vec<Remark>)> {
    let graph = Cfg::from_program(program);
    let mut leaves = Leaves {
        remainders: Remainders::new(&graph),
        dag: Dag::new(),
        entered: Vec::new(),
    };
    let root = root(&graph, &mut leaves, &Weights::new(options))?;
    let open = stages::emit_open(&leaves.dag, root, graph.endian(), options.instructions);
    let (mut laid_out, continuations) = open.into_unproven();
    splice(&mut laid_out, &continuations, &graph, &leaves.entered);
    let mut cx = PassCx::with_options(options, archs.iter().copied());
    let passes = options.passes.bytecode_passes();
    let laid_out = stages::run_on_graph(laid_out, passes, &mut cx).into_unproven();
    let program = stages::linearise(&laid_out).ok()?;
    Some((program.into_unproven(), cx.into_remarks()))
}

/// The decision about all calls.
fn root(graph: &Cfg, leaves: &mut Leaves<'_>, weights: &Weights<'_>) -> Option<NodeId> {
    let [archs, numbers] =
        [Word::ARCH, Word::NR].map(|word| cuts(graph, word.offset(graph.endian())));
    let archs = intervals(&archs);
    let mut numbers = numbers;
    numbers.insert(Arch::X32_BIT);
    let numbers = intervals(&numbers);
    if archs.len() * numbers.len() > MAX_INTERVALS {
        return None;
    }
    if let [everything] = archs.as_slice() {
        let line = leaves.line(everything, &numbers, Some(STAND_IN))?;
        let unused = leaves.dag.ret(0);
        return Some(number_line(&mut leaves.dag, weights, 0, line, unused).node);
    }
    let (named, others): (Vec<_>, Vec<_>) = archs
        .iter()
        .partition(|audits| audits.start() == audits.end());
    let mut elsewhere = None;
    for audits in others {
        let line = leaves.line(audits, &numbers, None)?;
        let unused = leaves.dag.ret(0);
        let node = number_line(&mut leaves.dag, weights, 0, line, unused).node;
        if elsewhere.is_some_and(|other| other != node) {
            return None;
        }
        elsewhere = Some(node);
    }
    let elsewhere = elsewhere?;
    let mut lines = Vec::new();
    for audits in named {
        let audit = *audits.start();
        let arch = Arch::all().find(|arch| arch.audit() == audit);
        let line = leaves.line(audits, &numbers, arch)?;
        lines.push(number_line(
            &mut leaves.dag,
            weights,
            audit,
            line,
            elsewhere,
        ));
    }
    Some(arch_dispatch(
        &mut leaves.dag,
        lines,
        elsewhere,
        weights.prices(),
    ))
}

/// The decisions made so far, and the places where they continue in the program.
struct Leaves<'a> {
    remainders: Remainders<'a>,
    dag: Dag,
    /// The places, by the number of their `Continue` node.
    entered: Vec<Entrance>,
}

impl Leaves<'_> {
    /// The remainder of the program for each interval of numbers; `None` beyond a limit.
    fn line(
        &mut self,
        audits: &RangeInclusive<u32>,
        numbers: &[RangeInclusive<u32>],
        arch: Option<Arch>,
    ) -> Option<Vec<Piece>> {
        let mut line = Vec::with_capacity(numbers.len());
        for range in numbers {
            let node = match self.remainders.remainder(&mut self.dag, audits, range)? {
                Remainder::Decision(node) => node,
                Remainder::From(entrance) => self.entrance(entrance),
            };
            line.push(Piece {
                first: *range.start(),
                last: *range.end(),
                arch: arch.map(|arch| owner(arch, *range.start())),
                node,
            });
        }
        Some(line)
    }

    /// The decision by the program from a place on.
    fn entrance(&mut self, entrance: Entrance) -> NodeId {
        let known = self.entered.iter().position(|known| *known == entrance);
        let number = known.unwrap_or_else(|| {
            self.entered.push(entrance);
            self.entered.len() - 1
        });
        self.dag.continue_at(number as u32)
    }
}

/// The architecture that owns a number, among those that share an audit value.
fn owner(arch: Arch, nr: u32) -> Arch {
    let is_x32 = arch.audit() == Arch::X32.audit() && Section::domain(Arch::X32).contains(nr);
    if is_x32 { Arch::X32 } else { arch }
}

/// Adds the program behind the blocks that continue in it.
fn splice(laid_out: &mut Cfg, continuations: &Continuations, graph: &Cfg, entered: &[Entrance]) {
    if continuations.is_empty() {
        return;
    }
    // The blocks of a program precede their successors.
    let mut copies = vec![BlockId(0); graph.len()];
    let moved = |end: End, copies: &[BlockId]| match end {
        End::Goto(next) => End::Goto(copies[next.index()]),
        End::Branch {
            test,
            operand,
            yes,
            no,
        } => End::Branch {
            test,
            operand,
            yes: copies[yes.index()],
            no: copies[no.index()],
        },
        End::Ret(_) | End::RetA => end,
    };
    for index in (0..graph.len()).rev() {
        let block = graph.block(BlockId(index as u32));
        let end = moved(block.end, &copies);
        copies[index] = laid_out.push(Block {
            ops: block.ops.clone(),
            end,
        });
    }
    for (id, number) in continuations {
        let entrance = &entered[*number as usize];
        let end = match entrance.is_behind {
            true => moved(graph.block(entrance.block).end, &copies),
            false => End::Goto(copies[entrance.block.index()]),
        };
        let ops = vec![entrance.load];
        laid_out.block_mut(*id).end = End::Goto(laid_out.push(Block { ops, end }));
    }
}

/// The values where the program's treatment of the word at an offset may change.
fn cuts(graph: &Cfg, offset: u32) -> BTreeSet<u32> {
    let mut cuts = BTreeSet::new();
    for (test, k) in compared(graph, offset) {
        match test {
            Test::Eq => cuts.extend([Some(k), k.checked_add(1)].into_iter().flatten()),
            Test::Gt => cuts.extend(k.checked_add(1)),
            Test::Ge => cuts.extend([k]),
            Test::Set if k != 0 && k.trailing_zeros() >= LEAST_CUTTING_BIT => {
                let step = 1_usize << k.trailing_zeros();
                cuts.extend((0..=u32::MAX).step_by(step));
            }
            Test::Set => {}
        }
    }
    cuts.remove(&0);
    cuts
}

/// The tests that compare values derived from the word at an offset, with their constants.
fn compared(graph: &Cfg, offset: u32) -> Vec<(Test, u32)> {
    /// Whether A, X, or a word of memory may be derived from it.
    #[derive(Clone, Copy, Default)]
    struct Made {
        a: bool,
        x: bool,
        memory: bool,
    }
    let mut entries = vec![Made::default(); graph.len()];
    let mut compared = Vec::new();
    for id in graph.reverse_postorder() {
        let block = graph.block(id);
        let mut made = entries[id.index()];
        for op in &block.ops {
            match *op {
                Op::LoadData(loaded) => made.a = loaded == offset,
                Op::LoadImm(_) | Op::LoadLen => made.a = false,
                Op::LoadMem(_) => made.a = made.memory,
                Op::LoadXImm(_) | Op::LoadXLen => made.x = false,
                Op::LoadXMem(_) => made.x = made.memory,
                Op::Store(_) => made.memory |= made.a,
                Op::StoreX(_) => made.memory |= made.x,
                Op::Tax => made.x = made.a,
                Op::Txa => made.a = made.x,
                Op::Alu(_, Operand::X) => made.a |= made.x,
                _ => {}
            }
        }
        if let End::Branch {
            test,
            operand: Operand::K(k),
            ..
        } = block.end
            && made.a
        {
            compared.push((test, k));
        }
        for next in block.end.successors() {
            let entry = &mut entries[next.index()];
            entry.a |= made.a;
            entry.x |= made.x;
            entry.memory |= made.memory;
        }
    }
    compared
}

/// The intervals between cuts.
fn intervals(cuts: &BTreeSet<u32>) -> Vec<RangeInclusive<u32>> {
    let firsts = std::iter::once(0).chain(cuts.iter().copied());
    let lasts = cuts.iter().map(|cut| cut - 1);
    let lasts = lasts.chain(std::iter::once(u32::MAX));
    firsts
        .zip(lasts)
        .map(|(first, last)| first..=last)
        .collect()
}

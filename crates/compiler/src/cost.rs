//! What things cost: the prices that layout and statistics share.
//!
//! A *step* is one executed classic BPF instruction; `length` counts instructions whether executed or
//! not. *Kernel instructions* are what `bpf_convert_filter` (net/core/filter.c, Linux 6.12) makes of a
//! program before it is run or compiled: an unconditional part of three, and per instruction what
//! [`kernel_insns`] says. The limit on all filters of a task counts those.

use tamis_abi::Word;
use tamis_bpf::{AluOp, Op, Operand, Program, Test};

use crate::dag::{Dag, Node, NodeId, Question};

/// What a decision costs once it is reached, with nothing loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Instructions, shared returns not counted.
    pub length_insns: u64,
    /// Steps of the longest path, with its return.
    pub worst_steps: u64,
    /// Sixteen times the mean number of steps if every answer is equally likely.
    pub mean_steps_x16: u64,
}

/// The steps of asking, without loading the word: preparing A, and the conditional jump.
pub const fn question_steps(question: Question) -> u64 {
    match question {
        Question::Eq(_) | Question::Ge(_) | Question::AnySet(_) => 1,
        Question::Masked { .. } => 2,
        Question::EqWord(_) | Question::GeWord(_) => 3,
    }
}

/// Whether the word that was asked about is still in A afterwards.
pub const fn keeps_word(question: Question) -> bool {
    !matches!(question, Question::Masked { .. })
}

/// Measures a decision. Linear in its size.
pub fn measure(dag: &Dag, root: NodeId) -> Measure {
    let below = dag.below([root]);
    let place = |id: NodeId| below.binary_search(&id).unwrap_or(0);
    let mut steps: Vec<(u64, u64)> = Vec::with_capacity(below.len());
    let mut needs_load = vec![false; below.len()];
    let mut length_insns = 0;
    if let Some(load) = needs_load.last_mut() {
        *load = true;
    }
    for id in &below {
        let Node::Ask {
            word,
            question,
            yes,
            no,
        } = dag.node(*id)
        else {
            steps.push((1, 16));
            continue;
        };
        let own = question_steps(question);
        length_insns += own;
        let mut side = |child: NodeId| {
            let load = match dag.node(child) {
                Node::Ret(_) => false,
                Node::Ask { word: next, .. } => next != word || !keeps_word(question),
            };
            needs_load[place(child)] |= load;
            let (worst, mean) = steps[place(child)];
            (worst + u64::from(load), mean + 16 * u64::from(load))
        };
        let (yes, no) = (side(yes), side(no));
        steps.push((own + yes.0.max(no.0), 16 * own + (yes.1 + no.1) / 2));
    }
    let loads = needs_load.iter().filter(|load| **load).count() as u64;
    let (worst_steps, mean_steps_x16) = steps.last().copied().unwrap_or_default();
    Measure {
        length_insns: length_insns + loads,
        worst_steps: worst_steps + 1,
        mean_steps_x16: mean_steps_x16 + 16,
    }
}

/// Which numbers of an architecture are likely to be called: the dense part of its number space, by
/// the first number. Everything outside is known only to the rules, if at all.
pub const LIKELY_NUMBERS: u32 = 512;

/// The kernel instructions that every filter has besides its own.
pub const PROLOGUE_KERNEL_INSNS: usize = 3;

/// How many instructions the kernel makes of one.
pub fn kernel_insns(op: Op) -> usize {
    match op {
        Op::RetImm(_) => 2,
        Op::Alu(AluOp::Div, Operand::X) => 5,
        Op::Branch {
            test,
            operand,
            jt,
            jf,
        } => {
            let wide = matches!(operand, Operand::K(k) if k >= 0x8000_0000);
            let one_sided = jf == 0 || (jt == 0 && test != Test::Set);
            usize::from(wide) + if one_sided { 1 } else { 2 }
        }
        _ => 1,
    }
}

/// The kernel instructions of a program: what counts against the limit of 32768 per task.
pub fn program_kernel_insns(program: &Program) -> usize {
    let own = program.insns().iter().filter_map(|insn| insn.op());
    PROLOGUE_KERNEL_INSNS + own.map(kernel_insns).sum::<usize>()
}

/// The first likely number of an architecture; see [`LIKELY_NUMBERS`].
pub const fn first_likely_number(arch: tamis_abi::Arch) -> u32 {
    use tamis_abi::Arch;
    match arch {
        Arch::X32 => Arch::X32_BIT,
        Arch::Mips | Arch::Mipsel => 4000,
        Arch::Mips64 | Arch::Mipsel64 => 5000,
        Arch::Mips64n32 | Arch::Mipsel64n32 => 6000,
        _ => 0,
    }
}

/// The words that the kernel knows when it decides at install time which calls are always allowed.
pub const CACHE_WORDS: [Word; 2] = [Word::NR, Word::ARCH];

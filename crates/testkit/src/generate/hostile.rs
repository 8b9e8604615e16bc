//! Policies and programs that are as hard as possible to compare: for tests of limits. Those that are hard to read are
//! in [`texts`].
//!
//! Each is a small input for which some method of the prover, or a check of lint, is exponential: comparisons of
//! arguments with each other, satisfiability in conditions, arithmetic whose diagrams or circuits explode, values in
//! many states. Each comes with a second input that is equal or nearly so, to be compared with.

pub mod readers;
pub mod texts;

use tamis_abi::Endian;
use tamis_bpf::{AluOp, Insn, Op, Operand, Program, Test};

use super::program;
use crate::rng::Rng;

/// A hostile input and one to compare it with.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// The difficulty.
    pub name: String,
    /// The extension of both files, which determines their format.
    pub extension: &'static str,
    /// The files.
    pub sides: [Vec<u8>; 2],
}

/// All of them, of several sizes.
pub fn all() -> Vec<Hostile> {
    let mut all = policies();
    all.extend(programs());
    all
}

/// The 32-bit halves of all arguments, as the tamis language writes them.
fn halves() -> Vec<String> {
    let halves = ["low", "high"].into_iter();
    halves
        .flat_map(|half| (0..6).map(move |arg| format!("{half}(arg[{arg}])")))
        .collect()
}

/// Some ordered pairs of different halves; those of low halves first.
fn pairs(count: usize) -> Vec<(String, String)> {
    let halves = halves();
    let indices = 0..halves.len();
    let mut pairs: Vec<(usize, usize)> = indices
        .clone()
        .flat_map(|left| indices.clone().map(move |right| (left, right)))
        .filter(|(left, right)| left != right)
        .collect();
    pairs.sort_by_key(|(left, right)| *left.max(right) >= 6);
    let pairs = pairs.into_iter().take(count);
    pairs
        .map(|(left, right)| (halves[left].clone(), halves[right].clone()))
        .collect()
}

fn policy(name: String, rules: [String; 2]) -> Hostile {
    let text = |rules: String| format!("arch x86_64\ndefault kill\n{rules}allow sendto\n").into();
    Hostile {
        name,
        extension: "tamis",
        sides: rules.map(text),
    }
}

/// Rules that compare arguments with each other, with constants, or bit by bit.
fn policies() -> Vec<Hostile> {
    let mut all = Vec::new();
    for count in [16, 18, 20, 30, 132] {
        let conditions: Vec<String> = pairs(count)
            .iter()
            .map(|(left, right)| format!("{left} > {right}"))
            .collect();
        let numbered = conditions.iter().enumerate();
        let rules: String = numbered
            .map(|(index, when)| format!("errno({}) sendto({when})\n", index + 1))
            .collect();
        let disjunction = format!("errno(1) sendto({})\n", conditions.join(" || "));
        all.push(policy(
            format!("{count} comparisons of arguments and their disjunction"),
            [rules, disjunction],
        ));
    }
    for clauses in [30, 120] {
        let mut rng = Rng::new(clauses);
        let sides = [(), ()].map(|()| {
            let clauses: Vec<String> = (0..clauses).map(|_| clause(&mut rng)).collect();
            format!("errno(1) sendto({})\n", clauses.join(" && "))
        });
        all.push(policy(format!("{clauses} clauses of bits"), sides));
    }
    let mut rng = Rng::new(7);
    let ranges = [(), ()].map(|()| (0..200).map(|index| ranges(&mut rng, index)).collect());
    all.push(policy("200 rules of ranges".to_owned(), ranges));
    all
}

/// A clause of three bits of arguments.
fn clause(rng: &mut Rng) -> String {
    let literals = [(), (), ()].map(|()| {
        let (arg, bit) = (rng.range(0..=5), 1_u64 << rng.range(0..=31));
        let operator = *rng.choose(&["==", "!="]);
        format!("low(arg[{arg}]) & {bit} {operator} 0")
    });
    format!("({})", literals.join(" || "))
}

/// A rule for ranges of all arguments.
fn ranges(rng: &mut Rng, index: usize) -> String {
    let ranges: Vec<String> = (0..6)
        .map(|arg| {
            let start = rng.range(0..=1 << 40);
            let end = start + rng.range(1..=1 << 40);
            format!("full(arg[{arg}]) in {{{start}..{end}}}")
        })
        .collect();
    format!(
        "errno({}) sendto({})\n",
        index % 90 + 1,
        ranges.join(" && ")
    )
}

fn load(offset: u32) -> Op {
    Op::LoadData(offset)
}

fn with_x(op: AluOp) -> Op {
    Op::Alu(op, Operand::X)
}

fn with(op: AluOp, k: u32) -> Op {
    Op::Alu(op, Operand::K(k))
}

fn filters(name: String, sides: [Vec<Op>; 2]) -> Hostile {
    let bytes = |ops: Vec<Op>| {
        let insns: Vec<Insn> = ops.into_iter().map(Insn::from).collect();
        let program = Program::new(insns, Endian::Little);
        program.expect("the generator makes programs").to_bytes()
    };
    Hostile {
        name,
        extension: "bpf",
        sides: sides.map(bytes),
    }
}

/// Programs that compute.
fn programs() -> Vec<Hostile> {
    let mut all = arithmetic();
    all.push(filters(
        "all pairs of words compared".to_owned(),
        [Test::Gt, Test::Ge].map(comparisons),
    ));
    all.push(filters(
        "many states of scratch memory".to_owned(),
        [1, 2].map(|start| states(start, 12)),
    ));
    for body_insns in [300, 3000] {
        let mut rng = Rng::new(body_insns);
        let sides = [(), ()].map(|()| {
            let program = program::program(&mut rng, body_insns as usize, Endian::Little);
            program.to_bytes()
        });
        all.push(Hostile {
            name: format!("{body_insns} random instructions"),
            extension: "bpf",
            sides,
        });
    }
    all
}

fn arithmetic() -> Vec<Hostile> {
    let mut all = Vec::new();
    let words = [[16, 24, 32], [32, 16, 24]];
    for op in [AluOp::Mul, AluOp::Add, AluOp::Div, AluOp::Lsh] {
        let sides = words.map(|[a, b, c]| {
            let (op, tax) = (with_x(op), Op::Tax);
            vec![load(a), tax, load(b), op, tax, load(c), op, Op::RetA]
        });
        all.push(filters(format!("{op:?} of three words"), sides));
    }
    for (op, count) in [
        (AluOp::Mul, 300),
        (AluOp::Mul, 4000),
        (AluOp::Div, 200),
        (AluOp::Div, 4000),
        (AluOp::Lsh, 4000),
    ] {
        let sides = words.map(|[a, b, _]| {
            let mut ops = vec![load(a), Op::Tax, load(b)];
            ops.extend(vec![with_x(op); count]);
            ops.push(Op::RetA);
            ops
        });
        all.push(filters(format!("{count} times {op:?} by a word"), sides));
    }
    let factors = (0..4000).map(|index| with(AluOp::Mul, 0x1_0003 + 2 * index));
    let mut products = [
        factors.clone().collect::<Vec<Op>>(),
        factors.rev().collect(),
    ];
    for product in &mut products {
        product.insert(0, load(16));
        product.push(Op::RetA);
    }
    all.push(filters("4000 constant factors".to_owned(), products));
    for rounds in [4, 200] {
        let sides = [0x9e37_79b1, 0x85eb_ca77].map(|k| mixed(k, rounds));
        all.push(filters(format!("{rounds} rounds of a hash"), sides));
    }
    let wide = [0x7fff_0000, 0x0005_0000].map(|action| {
        let bits = with(AluOp::And, 0xf_ffff);
        vec![load(0), bits, with(AluOp::Or, action), Op::RetA]
    });
    all.push(filters("a million values".to_owned(), wide));
    all
}

/// A hash of two arguments, of which some bits are returned as data.
fn mixed(k: u32, rounds: usize) -> Vec<Op> {
    let mut ops = vec![load(16)];
    for round in 0..rounds {
        ops.extend([
            Op::Tax,
            with(AluOp::Rsh, 15),
            with_x(AluOp::Xor),
            with(AluOp::Mul, k),
            Op::Tax,
            load(if round % 2 == 0 { 24 } else { 20 }),
            with_x(AluOp::Add),
        ]);
    }
    ops.extend([
        with(AluOp::And, 0xfff),
        with(AluOp::Or, 0x0005_0000),
        Op::RetA,
    ]);
    ops
}

/// A return value for each pair of words of the arguments that compares so.
fn comparisons(test: Test) -> Vec<Op> {
    let words = || (16..64).step_by(4);
    let pairs = words().flat_map(|left| words().map(move |right| (left, right)));
    let mut ops = Vec::new();
    for (index, (left, right)) in pairs.filter(|(left, right)| left < right).enumerate() {
        let skip_unless = Op::Branch {
            test,
            operand: Operand::X,
            jt: 0,
            jf: 1,
        };
        let answer = Op::RetImm(0x0005_0001 + index as u32);
        ops.extend([load(left), Op::Tax, load(right), skip_unless, answer]);
    }
    ops.push(Op::RetImm(0x7fff_0000));
    ops
}

/// Branches on bits, each of which stores one of two values; all are combined in the end.
fn states(start: u32, count: u32) -> Vec<Op> {
    let mut ops = Vec::new();
    for slot in 0..count {
        ops.extend([
            load(16),
            Op::branch(Test::Set, 1 << slot, 0, 2),
            load(20 + 4 * (slot % 10)),
            Op::Jump(1),
            with(AluOp::Add, start + slot),
            Op::Store(slot),
        ]);
    }
    ops.push(Op::LoadImm(0));
    for slot in 0..count {
        ops.extend([Op::Tax, Op::LoadMem(slot), with_x(AluOp::Xor)]);
    }
    ops.push(Op::RetA);
    ops
}

//! Programs as SMT-LIB text, for a solver independent of the prover.
//!
//! Every instruction becomes a few definitions of bit-vector terms: whether it is reached, and the state of the
//! machine there, by the edges into it. The translation follows the interpreter; for the functions see the theory of
//! fixed-size bit vectors (`QF_BV`).

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use tamis_abi::Word;
use tamis_bpf::{AluOp, Op, Operand, Pc, Program, Test};

use crate::skip::{self, Need};

/// The registers and slots: A, X and the scratch memory.
pub const PLACES: usize = 18;
const A: usize = 0;
const X: usize = 1;
const FIRST_SLOT: usize = 2;

/// An edge into an instruction: the condition that it is taken, and the state of the machine, as terms.
struct Way {
    is_taken: String,
    places: Vec<String>,
}

/// Z3's answers to a script, one word per question.
///
/// # Panics
/// If Z3 fails.
pub fn ask_z3(script: &str) -> Vec<String> {
    let mut command = Command::new("z3");
    // A limit in Z3's own steps, which is the same on every machine; beyond it the answer is `unknown`.
    command.args(["-in", "rlimit=10000000"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        skip::because(Need::Peers, "there is no program z3");
    };
    let mut stdin = child.stdin.take().expect("it was asked for");
    let script = script.to_owned();
    // Z3 writes while it reads, so writing needs a thread of its own: a full pipe must block neither side.
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = child.wait_with_output().expect("Z3 ends");
    writer.join().expect("no panic").expect("Z3 reads all");
    let answers = String::from_utf8(output.stdout).expect("Z3 answers in ASCII");
    answers.lines().map(str::to_owned).collect()
}

/// A script that checks for each pair of programs whether an input distinguishes them: `sat` if so.
pub fn differences(pairs: &[(&Program, &Program)]) -> String {
    let mut script = String::from("(set-logic QF_BV)\n");
    for word in Word::all() {
        let _ = writeln!(script, "(declare-const w{} (_ BitVec 32))", word.index());
    }
    for (left, right) in pairs {
        script.push_str("(push)\n");
        define(&mut script, "l", left);
        define(&mut script, "r", right);
        script.push_str("(assert (distinct l r))\n(check-sat)\n(pop)\n");
    }
    script
}

/// Defines the return value of a program under a name, with auxiliary definitions that begin with it.
///
/// A program is read as one for little-endian machines.
fn define(script: &mut String, name: &str, program: &Program) {
    let start = Way {
        is_taken: "true".to_owned(),
        places: vec![constant(0); PLACES],
    };
    let mut ways: Vec<Vec<Way>> = (0..program.len()).map(|_| Vec::new()).collect();
    ways[0].push(start);
    // The return value without a return: a division by zero ends the program with 0.
    let mut returned = constant(0);
    for pc in 0..program.len() {
        let incoming = std::mem::take(&mut ways[pc]);
        if incoming.is_empty() {
            continue;
        }
        let here = meet(script, &format!("{name}{pc}"), &incoming);
        let mut go = |skip: usize, condition: &str, places: &[String]| {
            let is_taken = format!("(and {} {condition})", here.is_taken);
            let places = places.to_vec();
            ways[pc + 1 + skip].push(Way { is_taken, places });
        };
        let mut places = here.places.clone();
        let k = constant(program.insns()[pc].k);
        match program.op(Pc(pc)) {
            Op::RetImm(k) => {
                returned = format!("(ite {} {} {returned})", here.is_taken, constant(k));
            }
            Op::RetA => returned = format!("(ite {} {} {returned})", here.is_taken, places[A]),
            Op::Jump(skip) => go(skip as usize, "true", &places),
            Op::Branch {
                test,
                operand,
                jt,
                jf,
            } => {
                let holds = test_term(test, &places[A], &operand_term(operand, &places, &k));
                go(usize::from(jt), &holds, &places);
                go(usize::from(jf), &format!("(not {holds})"), &places);
            }
            Op::Alu(AluOp::Div, operand) => {
                let divisor = operand_term(operand, &places, &k);
                places[A] = format!("(bvudiv {} {divisor})", places[A]);
                go(0, &format!("(distinct {divisor} {})", constant(0)), &places);
            }
            op => {
                transfer(op, &mut places, &k);
                go(0, "true", &places);
            }
        }
    }
    let _ = writeln!(script, "(define-fun {name} () (_ BitVec 32) {returned})");
}

/// Defines the state where edges merge.
fn meet(script: &mut String, name: &str, ways: &[Way]) -> Way {
    let conditions: Vec<&str> = ways.iter().map(|way| way.is_taken.as_str()).collect();
    let _ = writeln!(
        script,
        "(define-fun {name}t () Bool (or false {}))",
        conditions.join(" ")
    );
    let mut places = Vec::new();
    for place in 0..PLACES {
        let (last, others) = ways.split_last().expect("a way leads here");
        let term = others.iter().fold(last.places[place].clone(), |term, way| {
            match way.places[place] == term {
                true => term,
                false => format!("(ite {} {} {term})", way.is_taken, way.places[place]),
            }
        });
        if term.starts_with('(') {
            let _ = writeln!(
                script,
                "(define-fun {name}p{place} () (_ BitVec 32) {term})"
            );
            places.push(format!("{name}p{place}"));
        } else {
            places.push(term);
        }
    }
    Way {
        is_taken: format!("{name}t"),
        places,
    }
}

/// The effect of an instruction that neither branches nor ends the program on A, X and the scratch memory, in this
/// order. Its constant is a term, which need not be the number in the instruction.
pub fn transfer(op: Op, places: &mut [String], k: &str) {
    let slot = |slot: u32| FIRST_SLOT + slot as usize;
    match op {
        Op::LoadData(offset) => places[A] = format!("w{}", offset / 4),
        Op::LoadImm(_) => places[A] = k.to_owned(),
        Op::LoadMem(from) => places[A] = places[slot(from)].clone(),
        Op::LoadLen => places[A] = constant(64),
        Op::LoadXImm(_) => places[X] = k.to_owned(),
        Op::LoadXMem(from) => places[X] = places[slot(from)].clone(),
        Op::LoadXLen => places[X] = constant(64),
        Op::Store(to) => places[slot(to)] = places[A].clone(),
        Op::StoreX(to) => places[slot(to)] = places[X].clone(),
        Op::Neg => places[A] = format!("(bvneg {})", places[A]),
        Op::Tax => places[X] = places[A].clone(),
        Op::Txa => places[A] = places[X].clone(),
        Op::Alu(alu, operand) => {
            let mut right = operand_term(operand, places, k);
            if matches!(alu, AluOp::Lsh | AluOp::Rsh) {
                right = format!("(bvand {right} {})", constant(31));
            }
            places[A] = format!("({} {} {right})", function(alu), places[A]);
        }
        Op::Jump(_) | Op::Branch { .. } | Op::RetImm(_) | Op::RetA => {}
    }
}

/// A number as a term.
pub fn constant(k: u32) -> String {
    format!("#x{k:08x}")
}

/// An operand as a term, given A, X and the scratch memory and the term for a constant.
pub fn operand_term(operand: Operand, places: &[String], k: &str) -> String {
    match operand {
        Operand::K(_) => k.to_owned(),
        Operand::X => places[X].clone(),
        Operand::Variable(_) => unreachable!("programs have no variables"),
    }
}

/// Whether a test of two terms holds, as a term.
pub fn test_term(test: Test, a: &str, b: &str) -> String {
    match test {
        Test::Eq => format!("(= {a} {b})"),
        Test::Gt => format!("(bvugt {a} {b})"),
        Test::Ge => format!("(bvuge {a} {b})"),
        Test::Set => format!("(distinct (bvand {a} {b}) #x00000000)"),
    }
}

const fn function(op: AluOp) -> &'static str {
    match op {
        AluOp::Add => "bvadd",
        AluOp::Sub => "bvsub",
        AluOp::Mul => "bvmul",
        AluOp::Div => "bvudiv",
        AluOp::And => "bvand",
        AluOp::Or => "bvor",
        AluOp::Xor => "bvxor",
        AluOp::Lsh => "bvshl",
        AluOp::Rsh => "bvlshr",
    }
}

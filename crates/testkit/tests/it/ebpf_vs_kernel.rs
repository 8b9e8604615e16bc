//! The checker against the running kernel's verifier, and the interpreter against the kernel's machine code.
//!
//! Generated socket filters are checked and loaded. Programs that both accept are run by both on packets and contexts.
//! Programs that tamis accepts and the verifier rejects must be of a kind that is named here.

use std::collections::BTreeMap;

use tamis_abi::Endian;
use tamis_ebpf_vm::check::{Layout, Options, check};
use tamis_ebpf_vm::insn::Address;
use tamis_ebpf_vm::interp;
use tamis_ebpf_vm::memory::{Context, Memory};
use tamis_ebpf_vm::socket::{CONTEXT_BYTES, helpers};
use tamis_ebpf_vm::{AluOp, Insn, Op, Program, Reg, Size, Source, text};
use tamis_kernel::bpf::{LoadError, Loaded, load_socket_filter};
use tamis_testkit::generate::extended::{altered, program};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

/// The header that the kernel takes off a frame.
const HEADER_BYTES: usize = 14;
/// The EtherType of the frames, which is none that the kernel looks into.
const PROTOCOL: [u8; 2] = [0x88, 0xb5];

/// Why the verifier refuses a program that is safe for tamis, by a part of its reason.
const STRICTER: [(&str, &str); 1] = [(
    "!read_ok",
    "a register without a value may be cleared by `^=` with itself",
)];

const UNKNOWN: &str =
    "it knows less of quotients, remainders, shifts by registers and loads from the packet";

/// The program with unknown numbers instead of results that the verifier tracks less precisely: quotients, remainders,
/// shifts by a register, whose distance may be as large as the width, and loads from the packet. The verifier may
/// follow paths that are infeasible for tamis, and misses bounds. The programs have the context in r6, so that register
/// and r1 stay.
fn blurred(program: &Program) -> Program {
    let cb = Address {
        base: Reg::R6,
        offset: 48,
    };
    let ops = program.ops().map(|(_, op)| match op {
        Op::Alu(_, _, dst, _) if is_unknown(op) => Op::Load(Size::D, dst, cb),
        Op::LoadPacket(..) => Op::Load(Size::D, Reg::R0, cb),
        other => other,
    });
    Program::from_ops(&ops.collect::<Vec<Op>>(), program.endian()).expect("places stay")
}

/// Whether the verifier doesn't know a result as well.
fn is_unknown(op: Op) -> bool {
    match op {
        Op::Alu(_, _, Reg::R1 | Reg::R6, _) => false,
        Op::Alu(_, AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod, ..) => true,
        Op::Alu(_, AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, _, source) => {
            matches!(source, Source::Reg(_))
        }
        other => matches!(other, Op::LoadPacket(..)),
    }
}

/// The kind of the verifier's rule that rejects a program that tamis accepts.
fn stricter_rule(program: &Program, error: &LoadError) -> Option<&'static str> {
    let mut known = STRICTER.iter();
    if let Some((_, class)) = known.find(|(part, _)| error.reason().contains(part)) {
        return Some(class);
    }
    let layout = Layout::socket_filter();
    let refusal = check(blurred(program), &layout, &helpers(), &Options::default()).err()?;
    // Arithmetic that was replaced is refused if r6 isn't the context there; a load from the packet needs that anyway.
    let refused = program.op(refusal.pc);
    let is_changed = refused.is_some_and(|op| is_unknown(op) && matches!(op, Op::Alu(..)));
    (!is_changed).then_some(UNKNOWN)
}

/// The context that the kernel sets for a frame from the loopback interface.
fn context_of(given: &[u8; CONTEXT_BYTES], packet_bytes: usize) -> [u8; CONTEXT_BYTES] {
    let mut context = *given;
    context[..4].copy_from_slice(&(packet_bytes as u32).to_ne_bytes());
    context[16..18].copy_from_slice(&PROTOCOL);
    context[40..44].copy_from_slice(&1_u32.to_ne_bytes());
    context
}

/// Compares results and the context's writable words.
fn agree(rng: &mut Rng, program: &Program, loaded: &Loaded) {
    for _ in 0..3 {
        let packet_bytes = rng.range(2..=48) as usize;
        let mut frame = vec![0; HEADER_BYTES + packet_bytes];
        frame[12..HEADER_BYTES].copy_from_slice(&PROTOCOL);
        frame[HEADER_BYTES..].fill_with(|| rng.next_u32() as u8);
        let mut given = [0; CONTEXT_BYTES];
        for offset in [8, 32, 48, 52, 56, 60, 64] {
            let word = rng.interesting_u64() as u32;
            given[offset..offset + 4].copy_from_slice(&word.to_ne_bytes());
        }
        let mut context = context_of(&given, packet_bytes);
        let kernel = loaded.test_run(&frame, &mut given, 1).expect("it runs");
        let packet = &frame[HEADER_BYTES..];
        let mut memory = Memory::new(Context::Writable(&mut context), packet, program.endian());
        let run = interp::run(program, &mut memory, &mut helpers(), 1 << 20);
        let text = || text::disassemble(program.insns());
        let run = run.unwrap_or_else(|fault| panic!("{fault}\n{}", text()));
        assert_eq!(run.ret as u32, kernel.ret, "{packet:x?}\n{}", text());
        assert_eq!(context[48..68], given[48..68], "{packet:x?}\n{}", text());
    }
}

#[test]
fn verdicts_and_results() {
    let exit = text_program("r0 = 0\nexit\n");
    if cfg!(target_endian = "big") {
        skip::because(
            Need::Live,
            "the layouts here are those of little-endian machines",
        );
    }
    if let Err(error) = load_socket_filter(exit.insns()) {
        skip::because(Need::Live, error);
    }
    let mut classes: BTreeMap<String, u32> = BTreeMap::new();
    for seed in seeds::selected(0..1800) {
        let mut rng = Rng::new(seed);
        let body = rng.range(0..=40) as usize;
        let program = program(&mut rng, body, Endian::Little);
        let insns = match rng.chance(1, 3) {
            true => altered(&mut rng, &program),
            false => program.insns().to_vec(),
        };
        *classes.entry(class_of(&mut rng, insns, seed)).or_default() += 1;
    }
    for (class, count) in &classes {
        println!("{count:6} {class}");
    }
    assert!(classes["both accept"] >= seeds::least(900));
}

/// The results of tamis and the kernel for a list of instructions. Accepted programs are run by both.
fn class_of(rng: &mut Rng, insns: Vec<Insn>, seed: u64) -> String {
    let loaded = load_socket_filter(&insns);
    let program = match (Program::new(insns, Endian::Little), &loaded) {
        (Ok(program), _) => program,
        (Err(_), Err(_)) => return "both refuse: no program".to_owned(),
        (Err(error), Ok(_)) => {
            let reason = kind(&error.reason);

            return format!("only the kernel accepts: no program, {reason}");
        }
    };
    let layout = Layout::socket_filter();
    let checked = check(program.clone(), &layout, &helpers(), &Options::default());
    match (checked, loaded) {
        (Ok(checked), Ok(loaded)) => {
            agree(rng, checked.program(), &loaded);
            "both accept".to_owned()
        }
        (Ok(_), Err(error)) => {
            let class = stricter_rule(&program, &error).unwrap_or_else(|| {
                let text = text::disassemble(program.insns());
                panic!("seed {seed}: {error}\n{text}\n{}", error.log)
            });
            format!("only tamis accepts: {class}")
        }
        (Err(refusal), Ok(_)) => format!("only the kernel accepts: {}", kind(&refusal.rule)),
        (Err(refusal), Err(_)) => format!("both refuse: {}", kind(&refusal.rule)),
    }
}

/// The name of a rule without its arguments.
fn kind(rule: &impl std::fmt::Debug) -> String {
    let name = format!("{rule:?}");
    name.split(['(', ' ']).next().unwrap_or_default().to_owned()
}

fn text_program(written: &str) -> Program {
    let mut sources = tamis_diag::Sources::new();
    let source = sources.add("test.s", written);
    let assembly = text::assemble(written, source).expect("it is well-formed");
    assembly
        .into_program(Endian::Little)
        .expect("it is a program")
}

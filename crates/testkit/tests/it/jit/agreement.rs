//! Machine code and the reference interpreter return the same values.

use tamis_abi::{Endian, SeccompData, Word};
use tamis_bpf::packet::{self, Extra, Load};
use tamis_bpf::{AluOp, Insn, Op, Operand, Pc, Program, Stack, Test, interp};
use tamis_jit::{Entry, Error, Filters, Options, Seccomp, Socket};
use tamis_testkit::corpus;
use tamis_testkit::generate;
use tamis_testkit::generate::input::Neighbourhood;
use tamis_testkit::generate::program::{data, program};
use tamis_testkit::generate::shape;
use tamis_testkit::guarded::Guarded;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};
use tamis_vm::cache::{Residual, Table};

/// The inputs for each random program.
const INPUTS: usize = 400;

/// The packets for each random program.
const PACKETS: usize = 400;

/// Ends the test if nothing can be compiled here.
pub(super) fn unless_jit() {
    if let Err(reason) = tamis_jit::probe() {
        skip::because(Need::Live, reason);
    }
}

fn compile(program: &Program, options: &Options) -> Seccomp {
    Seccomp::compile(program, options).expect("short programs are compiled here")
}

/// The result of the reference interpreter for an image in the program's byte order.
fn expected(decoded: &interp::Decoded, call: &SeccompData) -> u32 {
    decoded.run_traced(call, &mut |_| {}).ret
}

#[test]
fn random_programs_return_the_same_at_both_ends_of_readable_memory() {
    unless_jit();
    let mut guarded = Guarded::page();
    let mut evaluations = 0;
    for seed in seeds::selected(0..2500) {
        let mut rng = Rng::new(seed);
        let endian = *rng.choose(&[Endian::Little, Endian::Little, Endian::Big]);
        let body_insns = *rng.choose(&[3, 10, 40, 120]);
        let program = program(&mut rng, body_insns, endian);
        let options = Options {
            harden: rng.chance(1, 4).then_some(seed),
        };
        let (compiled, decoded) = (compile(&program, &options), interp::Decoded::new(&program));
        let mut call = SeccompData::default();
        for round in 0..INPUTS {
            if round % 40 == 0 {
                call = data(&mut rng, &program);
            } else {
                let arg = &mut call.args[rng.index(6)];
                *arg = rng.interesting_u64();
            }
            let image = guarded.words(round % 2 == 0, &call.image(endian));
            let ret = compiled.run(image);
            assert_eq!(ret, expected(&decoded, &call), "seed {seed}, {call:x?}");
            evaluations += 1;
        }
    }
    println!("{evaluations} evaluations");
}

/// The program with some of its loads moved to offsets of the link or the network layer, or to none.
fn with_areas(rng: &mut Rng, program: &packet::Program) -> packet::Program {
    let mut moved = |insn: &Insn| {
        let is_load = matches!(
            packet::op(*insn),
            Some(packet::Op::LoadData(Load::Absolute(..) | Load::Indexed(..)))
                | Some(packet::Op::Extra(Extra::LoadXHeaderLen(_)))
        );
        let area = *rng.choose(&[0, 0, 0, 0, 0xffe0_0000, 0xfff0_0000, 0x8000_0000]);
        match is_load {
            true => Insn {
                k: (insn.k & 0xfff) | area,
                ..*insn
            },
            false => *insn,
        }
    };
    let insns = program.insns().iter().map(&mut moved).collect();
    packet::Program::new(insns).expect("these offsets are legal")
}

#[test]
fn random_programs_of_sockets_read_packets_and_nothing_around_them() {
    unless_jit();
    let mut guarded = Guarded::page();
    let mut returned = [0; 2];
    for seed in seeds::selected(0..2500) {
        let mut rng = Rng::new(seed);
        let body_insns = *rng.choose(&[3, 10, 40]);
        let program = generate::packet::program(&mut rng, body_insns);
        let program = with_areas(&mut rng, &program);
        let options = Options {
            harden: rng.chance(1, 4).then_some(seed),
        };
        let compiled = Socket::compile(&program, &options).expect("short programs are compiled");
        let mut bytes = Vec::new();
        for round in 0..PACKETS {
            if round % 20 == 0 {
                bytes = generate::packet::bytes(&mut rng, &program);
            } else {
                let at = rng.index(bytes.len());
                bytes[at] = rng.next_u32() as u8;
                bytes.truncate(rng.range(1..=100) as usize);
            }
            let bytes = match round % 2 {
                0 => guarded.at_end(&bytes),
                _ => guarded.at_start(&bytes),
            };
            let mut packet = generate::packet::from_anywhere(&mut rng, bytes);
            packet.network_start = rng.range(0..=30) as u32;
            packet.len_bytes += rng.range(0..=3) as u32;
            let ret = compiled.run(&packet);
            let expected = interp::run_packet(&program, &packet).ret;
            assert_eq!(ret, expected, "seed {seed}, {packet:x?}\n{program:x?}");
            returned[usize::from(ret != 0)] += 1;
        }
    }
    println!("{returned:?} evaluations with 0 and with others");
    assert!(returned.iter().all(|count| *count > seeds::least(80_000)));
}

#[test]
fn real_programs_return_the_same() {
    all_return_the_same(corpus::all_programs());
}

#[test]
fn programs_of_real_shapes_return_the_same() {
    all_return_the_same(shape::programs());
}

fn all_return_the_same(programs: Vec<(String, Program)>) {
    unless_jit();
    let mut compared = 0;
    for (seed, (name, program)) in (0..).zip(programs) {
        if !program.is_installable() {
            let refused = Seccomp::compile(&program, &Options::default());
            assert!(matches!(refused, Err(Error::TooLong { .. })), "{name}");
            continue;
        }
        let plain = compile(&program, &Options::default());
        let hardened = compile(&program, &Options { harden: Some(seed) });
        let (decoded, near) = (
            interp::Decoded::new(&program),
            Neighbourhood::from_programs(&[&program]),
        );
        let mut rng = Rng::new(seed);
        for _ in 0..seeds::share(400) {
            let call = near.draw(&mut rng);
            let image = call.image(program.endian());
            let rets = [plain.run(&image), hardened.run(&image)];
            assert_eq!(rets, [expected(&decoded, &call); 2], "{name}: {call:x?}");
            compared += 1;
        }
    }
    println!("{compared} calls");
}

#[test]
fn programs_go_on_where_the_table_of_results_ends() {
    unless_jit();
    let mut entered = 0;
    for seed in seeds::selected(0..1500) {
        let mut rng = Rng::new(seed);
        let program = match rng.chance(1, 2) {
            true => program(&mut rng, 30, Endian::Little),
            false => by_number(&mut rng),
        };
        let stack = Stack::from(program.clone());
        let table = Table::new(&stack);
        let entry = |residual: &Residual| Entry {
            pc: residual.pc,
            a: residual.state.a,
            x: residual.state.x,
            memory: residual.state.memory,
        };
        let entries: Vec<Entry> = table.residuals().iter().map(entry).collect();
        let options = Options {
            harden: rng.chance(1, 4).then_some(seed),
        };
        let compiled = Seccomp::compile_with_entries(&program, &entries, &options);
        let compiled = compiled.expect("short programs are compiled here");
        for _ in 0..100 {
            let call = data(&mut rng, &program);
            let image = call.image(Endian::Little);
            let ret = table.answer(call.arch, call.nr, |residual| {
                entered += 1;
                compiled.run_entry(residual as usize, &image)
            });
            assert_eq!(ret, stack.run(&call).ret, "seed {seed}, {call:x?}");
        }
    }
    println!("{entered} runs from the middle");
    assert!(entered > seeds::least(20_000));
}

/// A program that compares the number, then tests arguments and the number again.
fn by_number(rng: &mut Rng) -> Program {
    let mut ops = vec![Op::LoadData(0), Op::Tax];
    ops.extend((0..8).map(|step| Op::branch(Test::Ge, 60 * step, rng.range(0..=9) as u8, 0)));
    ops.push(Op::Alu(AluOp::Add, Operand::K(rng.next_u32())));
    ops.push(Op::Store(3));
    let (yes, no) = (rng.range(0..=1) as u8, rng.range(0..=1) as u8);
    ops.push(Op::branch(Test::Set, rng.next_u32(), yes, no));
    ops.push(Op::LoadData(16));
    ops.extend([
        Op::Alu(AluOp::Xor, Operand::X),
        Op::Alu(AluOp::Sub, Operand::K(7)),
    ]);
    ops.extend([Op::RetA; 9]);
    Program::from_ops(&ops, Endian::Little).expect("jumps end inside")
}

/// The state of the reference interpreter before every instruction of a run.
fn states(program: &Program, image: &[u32; 16]) -> Vec<Entry> {
    let (mut entry, mut states) = (at_start(), Vec::new());
    let mut trace = Vec::new();
    let call = of_image(image);
    interp::run_traced(program, &call, &mut |pc| trace.push(pc));
    for pc in trace {
        entry.pc = pc;
        states.push(entry);
        let Entry { a, x, memory, .. } = &mut entry;
        match program.op(pc) {
            Op::LoadData(offset) => *a = image[offset as usize / 4],
            Op::LoadImm(k) => *a = k,
            Op::LoadMem(slot) => *a = memory[slot as usize],
            Op::LoadLen => *a = 64,
            Op::LoadXImm(k) => *x = k,
            Op::LoadXMem(slot) => *x = memory[slot as usize],
            Op::LoadXLen => *x = 64,
            Op::Store(slot) => memory[slot as usize] = *a,
            Op::StoreX(slot) => memory[slot as usize] = *x,
            Op::Alu(alu, operand) => {
                *a = interp::arithmetic(alu, *a, operand.value(*x)).unwrap_or_default();
            }
            Op::Neg => *a = a.wrapping_neg(),
            Op::Tax => *x = *a,
            Op::Txa => *a = *x,
            Op::Jump(_) | Op::Branch { .. } | Op::RetImm(_) | Op::RetA => {}
        }
    }
    states
}

fn at_start() -> Entry {
    Entry {
        pc: Pc(0),
        a: 0,
        x: 0,
        memory: [0; 16],
    }
}

/// The call whose little-endian image this is.
fn of_image(image: &[u32; 16]) -> SeccompData {
    let words = Word::all().zip(image);
    words.fold(SeccompData::default(), |call, (word, value)| {
        call.with_word(word, *value)
    })
}

#[test]
fn a_run_from_any_of_its_states_ends_the_same() {
    unless_jit();
    let mut entries = 0;
    for seed in seeds::selected(0..1000) {
        let mut rng = Rng::new(seed);
        let program = program(&mut rng, 30, Endian::Little);
        let call = data(&mut rng, &program);
        let image = call.image(Endian::Little);
        let states = states(&program, &image);
        let options = Options {
            harden: rng.chance(1, 4).then_some(seed),
        };
        let compiled = Seccomp::compile_with_entries(&program, &states, &options);
        let compiled = compiled.expect("short programs are compiled here");
        let ret = interp::run(&program, &call).ret;
        assert_eq!(compiled.run(&image), ret, "seed {seed}");
        for (index, state) in states.iter().enumerate() {
            let from_there = compiled.run_entry(index, &image);
            assert_eq!(from_there, ret, "seed {seed}, {state:?}");
            entries += 1;
        }
    }
    println!("{entries} entries");
}

/// Filters of a stack, with entries in all of them in any order, have the same results as each alone.
#[test]
fn the_filters_of_a_stack_run_alone_and_from_their_entries() {
    unless_jit();
    for seed in seeds::selected(0..200) {
        let mut rng = Rng::new(seed);
        let filters = rng.range(1..=4) as usize;
        let programs: Vec<Program> = (0..filters)
            .map(|_| program(&mut rng, 20, Endian::Little))
            .collect();
        let call = data(&mut rng, &programs[0]);
        let image = call.image(Endian::Little);
        let rets: Vec<u32> = programs
            .iter()
            .map(|one| interp::run(one, &call).ret)
            .collect();
        let entries: Vec<(usize, Entry)> = (0..rng.range(0..=30))
            .map(|_| {
                let filter = rng.range(0..=filters as u64 - 1) as usize;
                (filter, *rng.choose(&states(&programs[filter], &image)))
            })
            .collect();
        let options = Options {
            harden: rng.chance(1, 4).then_some(seed),
        };
        let compiled = Filters::compile(&programs, &entries, &options).expect("short enough");
        assert_eq!(compiled.run_each(&image).collect::<Vec<u32>>(), rets);
        for (index, (filter, state)) in entries.iter().enumerate() {
            let ret = compiled.run_entry(index, &image);
            assert_eq!(ret, rets[*filter], "seed {seed}, {state:?}");
        }
    }
}

#[test]
fn far_jumps_reach_their_targets() {
    unless_jit();
    // As long as a filter may be: every jump has the same few targets, at all distances.
    for far in [0, 1, 100, 255] {
        let mut ops = vec![Op::LoadData(0)];
        let last = Program::MAX_INSNS - 1;
        while ops.len() < last {
            let behind = (last - ops.len() - 1).min(far) as u8;
            ops.push(Op::branch(Test::Eq, ops.len() as u32 * 7, behind, 0));
        }
        ops.push(Op::RetA);
        let program = Program::from_ops(&ops, Endian::Little).expect("jumps end inside");
        let compiled = compile(&program, &Options::default());
        for nr in (0..40_000).step_by(7) {
            let mut image = [0; 16];
            image[0] = nr;
            assert_eq!(compiled.run(&image), nr);
        }
    }
}

#[test]
fn what_cannot_be_compiled_is_an_error() {
    let ret = Insn::from(Op::RetImm(1));
    let long = Program::new(vec![ret; Program::MAX_INSNS + 1], Endian::Little).expect("legal");
    let refused = Seccomp::compile(&long, &Options::default()).expect_err("too long");
    assert_eq!(
        refused.to_string(),
        "the program has 4097 instructions; a filter has at most 4096"
    );
    let short = Program::new(vec![ret], Endian::Little).expect("legal");
    let outside = Entry {
        pc: Pc(1),
        ..at_start()
    };
    let refused = Seccomp::compile_with_entries(&short, &[outside], &Options::default());
    assert!(matches!(refused, Err(Error::EntryOutside { pc: Pc(1) })));
}

#[test]
fn hardened_code_has_no_constant_of_the_program() {
    unless_jit();
    let mut rng = Rng::new(1);
    let constants: Vec<u32> = (0..200).map(|_| rng.next_u32()).collect();
    let mut ops = Vec::new();
    for (index, k) in constants.iter().enumerate() {
        let operand = Operand::K(*k);
        let alu = AluOp::ALL[index % 7];
        ops.push(match index % 4 {
            0 => Op::branch(Test::ALL[index / 4 % 4], *k, 0, 1),
            1 => Op::LoadXImm(*k),
            _ => Op::Alu(alu, operand),
        });
        ops.push(Op::Alu(AluOp::Add, Operand::X));
    }
    ops.push(Op::RetA);
    let program = Program::from_ops(&ops, Endian::Little).expect("legal");
    let found = |options| {
        let compiled = compile(&program, &options);
        let windows = compiled.code().windows(4);
        let found = windows.filter(|bytes| {
            let mut marks = constants.iter().map(|k| k.to_le_bytes());
            marks.any(|mark| mark == **bytes)
        });
        let found = found.count();
        (found, compiled.run(&[0; 16]))
    };
    let (plain, ret) = found(Options::default());
    let (hardened, same) = found(Options { harden: Some(3) });
    assert_eq!(ret, same);
    assert!(plain >= 190, "{plain}");
    assert_eq!(hardened, 0);
}

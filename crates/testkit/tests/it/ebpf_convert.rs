//! A converted filter returns the same as the classic one, and runs as many instructions as are counted for it.

use tamis_abi::Endian;
use tamis_bpf::ebpf_len::{PROLOGUE_INSNS, kernel_len_insns, op_executed_insns};
use tamis_bpf::{AluOp, Op, Operand, Pc, Program};
use tamis_ebpf_vm::check::{Layout, Options, check};
use tamis_ebpf_vm::convert::{
    converted, converted_packet, packet_context, packet_helpers, seccomp_context,
};
use tamis_ebpf_vm::interp;
use tamis_ebpf_vm::memory::{Context, Helpers, Memory};
use tamis_ebpf_vm::threaded::Threaded;
use tamis_testkit::corpus;
use tamis_testkit::generate::input::Neighbourhood;
use tamis_testkit::generate::packet;
use tamis_testkit::generate::program::program;
use tamis_testkit::generate::shape;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

/// The converted instructions that are counted for an execution. The last instruction is not counted if it is a
/// division by zero, which isn't counted as one.
fn counted(program: &Program, trace: &[Pc]) -> usize {
    let steps = trace.iter().enumerate().map(|(step, pc)| {
        let op = program.op(*pc);
        let is_taken = match op {
            Op::Branch { jt, jf, .. } => {
                jt != jf && trace[step + 1].0 == pc.0 + 1 + usize::from(jt)
            }
            _ => false,
        };
        op_executed_insns(op, is_taken)
    });
    PROLOGUE_INSNS + steps.sum::<usize>()
}

/// Compares the results for inputs near the program's constants; returns how many there were.
fn agree(rng: &mut Rng, program: &Program, inputs: usize) -> usize {
    let extended = converted(program).expect("it is short enough");
    assert_eq!(extended.len(), kernel_len_insns(program));
    let threaded = Threaded::of_filter(program).expect("as above");
    let near = Neighbourhood::from_programs(&[program]);
    for _ in 0..inputs {
        let call = near.draw(rng);
        let mut trace = Vec::new();
        let expected = tamis_bpf::interp::run_traced(program, &call, &mut |pc| trace.push(pc));
        let context = seccomp_context(&call, program.endian());
        let mut memory = Memory::new(Context::ReadOnly(&context), &[], program.endian());
        let run = interp::run(&extended, &mut memory, &mut Helpers::none(), 1 << 20);
        let run = run.unwrap_or_else(|fault| panic!("{fault} in {:?}", program.insns()));
        let result = threaded.run(&mut memory, &mut Helpers::none());
        assert_eq!(result, Ok(run.ret), "{call:x?} {:?}", program.insns());
        assert_eq!(
            run.ret,
            u64::from(expected.ret),
            "{call:x?} {:?}",
            program.insns()
        );
        let last = program.op(trace[trace.len() - 1]);
        let is_same_on_both_sides =
            |pc: &Pc| matches!(program.op(*pc), Op::Branch { jt, jf, .. } if jt == jf);
        let is_division = last == Op::Alu(AluOp::Div, Operand::X);
        if !is_division && !trace.iter().any(is_same_on_both_sides) {
            assert_eq!(run.steps as usize, counted(program, &trace));
        }
    }
    inputs
}

#[test]
fn generated_filters_mean_the_same() {
    let mut pairs = 0;
    for seed in seeds::selected(0..4000) {
        let mut rng = Rng::new(seed);
        let body_insns = rng.range(0..=if seed % 20 == 0 { 400 } else { 30 }) as usize;
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let program = program(&mut rng, body_insns, endian);
        pairs += agree(&mut rng, &program, 12);
    }
    println!("{pairs} pairs of program and input");
}

/// The threaded interpreter returns the same as the reference. A filter has no loops and computes no addresses, so its
/// conversion is safe.
#[test]
fn real_filters_pass_the_checker() {
    all_pass_the_checker(corpus::all_programs());
}

/// The threaded interpreter returns the same as the reference. A filter has no loops and computes no addresses, so its
/// conversion is safe.
#[test]
fn filters_of_real_shapes_pass_the_checker() {
    all_pass_the_checker(shape::programs());
}

fn all_pass_the_checker(programs: Vec<(String, Program)>) {
    let options = Options {
        permits_unreachable: true,
        ..Options::default()
    };
    let mut rng = Rng::new(17);
    for (name, program) in programs {
        if !program.is_installable() {
            continue;
        }
        let extended = converted(&program).expect("it is short enough");
        let checked = check(extended, &Layout::seccomp(), &Helpers::none(), &options);
        let checked = checked.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let threaded = Threaded::new(&checked);
        let near = Neighbourhood::from_programs(&[&program]);
        for _ in 0..40 {
            let call = near.draw(&mut rng);
            let expected = tamis_bpf::interp::run(&program, &call).ret;
            let context = seccomp_context(&call, program.endian());
            let mut memory = Memory::new(Context::ReadOnly(&context), &[], program.endian());
            let result = threaded.run(&mut memory, &mut Helpers::none());
            assert_eq!(result, Ok(u64::from(expected)), "{name} {call:x?}");
        }
    }
}

#[test]
fn real_filters_mean_the_same() {
    all_mean_the_same(corpus::all_programs());
}

#[test]
fn filters_of_real_shapes_mean_the_same() {
    all_mean_the_same(shape::programs());
}

fn all_mean_the_same(programs: Vec<(String, Program)>) {
    let mut pairs = 0;
    let mut rng = Rng::new(17);
    for (_, program) in programs {
        if program.is_installable() {
            pairs += agree(&mut rng, &program, 40);
        }
    }
    println!("{pairs} pairs of program and input");
}

#[test]
fn generated_filters_of_sockets_mean_the_same() {
    let (mut pairs, mut too_far) = (0, 0);
    for seed in seeds::selected(0..4000) {
        let mut rng = Rng::new(seed);
        let body_insns = rng.range(0..=if seed % 20 == 0 { 400 } else { 30 }) as usize;
        let program = packet::program(&mut rng, body_insns);
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let Ok(extended) = converted_packet(&program, endian) else {
            too_far += 1;
            continue;
        };
        let threaded = Threaded::of_packet_filter(&program, endian).expect("as above");
        for _ in 0..12 {
            let bytes = packet::bytes(&mut rng, &program);
            let packet = packet::from_anywhere(&mut rng, &bytes);
            let expected = tamis_bpf::interp::run_packet(&program, &packet).ret;
            let context = packet_context(&packet, endian);
            let mut memory = Memory::new(Context::ReadOnly(&context), packet.bytes, endian);
            let mut helpers = packet_helpers(&packet);
            let run = interp::run(&extended, &mut memory, &mut helpers, 1 << 20);
            let run = run.unwrap_or_else(|fault| panic!("{fault} in {:?}", program.insns()));
            assert_eq!(run.ret as u32, expected, "{bytes:x?} {:?}", program.insns());
            let result = threaded.run(&mut memory, &mut helpers);
            assert_eq!(result, Ok(run.ret), "{bytes:x?} {:?}", program.insns());
            pairs += 1;
        }
    }
    assert_eq!(too_far, 0);
    println!("{pairs} pairs of program and packet");
}

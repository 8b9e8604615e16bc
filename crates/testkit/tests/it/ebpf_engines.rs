//! The threaded interpreter of extended programs has the results of the reference: values, the written context, and the
//! same fault if the context is too short. The reference never faults on checked programs.

use tamis_abi::Endian;
use tamis_ebpf_vm::check::{Checked, Layout, Options, check};
use tamis_ebpf_vm::interp::{self, Fault, FaultReason};
use tamis_ebpf_vm::memory::{AccessError, Context, Helpers, Memory};
use tamis_ebpf_vm::socket::{LOAD_BYTES, load_bytes_signature};
use tamis_ebpf_vm::threaded::Threaded;
use tamis_ebpf_vm::{AluOp, Op, Program, Reg, Source, Width, text};
use tamis_testkit::generate::extended::{altered, noise, program};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

/// A helper that fills the memory with the low byte of its second argument.
fn helpers<'h>() -> Helpers<'h> {
    let fill = |[_, value, to, len, _]: [u64; 5], memory: &mut Memory<'_>| {
        memory.write_bytes(to, &vec![value as u8; len as usize])?;
        Ok::<u64, AccessError>(value)
    };
    let mut helpers = Helpers::none();
    helpers.register(LOAD_BYTES, load_bytes_signature(), Box::new(fill));
    helpers
}

/// The result of both engines with the context that they leave.
fn results(
    checked: &Checked,
    threaded: &Threaded,
    context: &[u8],
    packet: &[u8],
) -> [(Result<u64, Fault>, Vec<u8>); 2] {
    let endian = checked.program().endian();
    let run = |engine: &dyn Fn(&mut Memory<'_>) -> Result<u64, Fault>| {
        let mut context = context.to_vec();
        let mut memory = Memory::new(Context::Writable(&mut context), packet, endian);
        let result = engine(&mut memory);
        (result, context)
    };
    let reference = |memory: &mut Memory<'_>| {
        let run = interp::run(checked.program(), memory, &mut helpers(), 1 << 20);
        run.map(|run| run.ret)
    };
    [
        run(&reference),
        run(&|memory| threaded.run(memory, &mut helpers())),
    ]
}

#[test]
fn threaded_and_reference_agree() {
    let layout = Layout::socket_filter();
    let (mut pairs, mut faults) = (0_u32, 0_u32);
    for seed in seeds::selected(0..4000) {
        let mut rng = Rng::new(seed);
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let body = rng.range(0..=60) as usize;
        let program = program(&mut rng, body, endian);
        let program = match rng.chance(1, 3) {
            true => Program::new(altered(&mut rng, &program), endian).unwrap_or(program),
            false => program,
        };
        let Ok(checked) = check(program, &layout, &helpers(), &Options::default()) else {
            continue;
        };
        let threaded = Threaded::new(&checked);
        for _ in 0..6 {
            let mut context = [0; 88];
            context.fill_with(|| rng.interesting_u64() as u8);
            let packet: Vec<u8> = (0..rng.range(0..=40))
                .map(|_| rng.next_u32() as u8)
                .collect();
            let len = if rng.chance(1, 8) { 50 } else { 88 };
            let [expected, result] = results(&checked, &threaded, &context[..len], &packet);
            let text = || text::disassemble(checked.program().insns());
            assert_eq!(result, expected, "seed {seed}\n{}", text());
            let is_access = |fault: &Fault| matches!(fault.reason, FaultReason::Access(_));
            match &expected.0 {
                Ok(_) => pairs += 1,
                Err(fault) => {
                    assert!(len < 88 && is_access(fault), "{fault}\n{}", text());
                    faults += 1;
                }
            }
        }
    }
    println!("{pairs} results and {faults} faults");
    assert!(pairs > seeds::least(10_000) && faults > seeds::least(200));
}

/// Calls nest in the engine without optimisation, but no deeper than a part of the program.
#[test]
fn long_programs_run() {
    let add = Op::Alu(Width::W64, AluOp::Add, Reg::R0, Source::Imm(1));
    let zero = Op::Alu(Width::W64, AluOp::Mov, Reg::R0, Source::Imm(0));
    let adds = std::iter::repeat_n(add, 90_000);
    let ops: Vec<Op> = [zero].into_iter().chain(adds).chain([Op::Exit]).collect();
    let program = Program::from_ops(&ops, Endian::Little).expect("it ends");
    let options = Options::default();
    let checked = check(program, &Layout::none(), &Helpers::none(), &options).expect("it is safe");
    let mut memory = Memory::new(Context::ReadOnly(&[]), &[], Endian::Little);
    let result = Threaded::new(&checked).run(&mut memory, &mut Helpers::none());
    assert_eq!(result, Ok(90_000));
}

/// The same where every jump leads over the first instruction of the next part.
#[test]
fn long_programs_whose_jumps_skip_instructions_run() {
    const PART: usize = 1023;
    let mov = |value| Op::Alu(Width::W64, AluOp::Mov, Reg::R0, Source::Imm(value));
    let add = Op::Alu(Width::W64, AluOp::Add, Reg::R0, Source::Imm(1));
    let mut ops = vec![mov(0); PART - 1];
    for _ in 0..80 {
        ops.push(Op::Jump(1));
        ops.push(mov(-1));
        ops.extend(std::iter::repeat_n(add, PART - 2));
    }
    ops.push(Op::Exit);
    let program = Program::from_ops(&ops, Endian::Little).expect("it ends");
    let options = Options {
        permits_unreachable: true,
        ..Options::default()
    };
    let checked = check(program, &Layout::none(), &Helpers::none(), &options).expect("it is safe");
    let mut memory = Memory::new(Context::ReadOnly(&[]), &[], Endian::Little);
    let result = Threaded::new(&checked).run(&mut memory, &mut Helpers::none());
    assert_eq!(result, Ok(80 * (PART as u64 - 2)));
}

/// Any instructions have a text that is read back; any program is checked and run to an end, a fault or the limit.
#[test]
fn noise_is_printed_checked_and_run() {
    let (mut programs, mut accepted) = (0_u32, 0_u32);
    for seed in seeds::selected(0..20_000) {
        let mut rng = Rng::new(seed);
        let len = rng.range(1..=12) as usize;
        let insns = noise(&mut rng, len);
        let written = text::disassemble(&insns);
        let mut sources = tamis_diag::Sources::new();
        let source = sources.add("noise.s", written.as_str());
        let read = text::assemble(&written, source).map(|assembly| assembly.insns);
        assert_eq!(read.as_ref(), Ok(&insns), "{written}");
        let Ok(program) = Program::new(insns, Endian::Little) else {
            continue;
        };
        programs += 1;
        let mut context = [0; 88];
        let mut memory = Memory::new(Context::Writable(&mut context), &[1; 20], Endian::Little);
        let run = interp::run(&program, &mut memory, &mut helpers(), 10_000);
        let options = Options {
            max_steps: 10_000,
            ..Options::default()
        };
        if check(program, &Layout::socket_filter(), &helpers(), &options).is_ok() {
            accepted += 1;
            assert!(run.is_ok(), "{run:?}\n{written}");
        }
    }
    println!("{programs} programs, {accepted} of them safe");
    assert!(programs > seeds::least(2000) && accepted > seeds::least(20));
}

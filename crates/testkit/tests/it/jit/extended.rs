//! Machine code of extended programs has the results of the interpreters: values, the written context, faults. Contexts
//! and packets are between inaccessible pages.

use tamis_abi::Endian;
use tamis_ebpf_vm::check::{Checked, Field, Layout, check};
use tamis_ebpf_vm::insn::Address;
use tamis_ebpf_vm::interp::{self, Fault, FaultReason};
use tamis_ebpf_vm::memory::{AccessError, Argument, Context, Frames, Helpers, Memory};
use tamis_ebpf_vm::socket::{LOAD_BYTES, load_bytes_signature};
use tamis_ebpf_vm::threaded::Threaded;
use tamis_ebpf_vm::{AluOp, Cond, Op, Program, Reg, Size, Source, Width, check as checker, text};
use tamis_jit::{Error, Extended, Options};
use tamis_testkit::generate::extended::{altered, program};
use tamis_testkit::guarded::Guarded;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

use super::agreement::unless_jit;

/// A helper that fails for one value in a hundred, and else fills memory.
fn helpers<'h>() -> Helpers<'h> {
    let fill = |[_, value, to, len, _]: [u64; 5], memory: &mut Memory<'_>| {
        if value % 100 == 99 {
            let (address, bytes) = (value, 1);
            return Err(AccessError::Outside { address, bytes });
        }
        memory.write_bytes(to, &vec![value as u8; len as usize])?;
        Ok(value.rotate_left(9))
    };
    let mut helpers = Helpers::none();
    helpers.register(LOAD_BYTES, load_bytes_signature(), Box::new(fill));
    helpers
}

fn checked(text: &str, layout: &Layout, helpers: &Helpers<'_>) -> Checked {
    let mut sources = tamis_diag::Sources::new();
    let source = sources.add("test.s", text);
    let assembly = text::assemble(text, source).unwrap_or_else(|errors| panic!("{errors:?}"));
    let program = assembly
        .into_program(Endian::Little)
        .expect("it is a program");
    let options = checker::Options::default();
    check(program, layout, helpers, &options).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"))
}

fn compile(checked: &Checked, options: &Options) -> Extended {
    Extended::compile(checked, options).expect("programs are compiled here")
}

#[test]
fn random_programs_give_the_same_and_touch_nothing_else() {
    unless_jit();
    let layout = Layout::socket_filter();
    let mut guarded = [Guarded::page(), Guarded::page()];
    let (mut results, mut alone, mut faults, mut loops) = (0_u32, 0_u32, 0_u32, 0_u32);
    // The next evaluation sees the stack of an earlier one.
    let mut frames = Frames::default();
    for seed in seeds::selected(0..8000) {
        let mut rng = Rng::new(seed);
        let body = rng.range(0..=60) as usize;
        let program = program(&mut rng, body, Endian::Little);
        let program = match rng.chance(1, 3) {
            true => Program::new(altered(&mut rng, &program), Endian::Little).unwrap_or(program),
            false => program,
        };
        let Ok(checked) = check(program, &layout, &helpers(), &checker::Options::default()) else {
            continue;
        };
        let back = |(_, op): (_, Op)| op.skip().is_some_and(|skip| skip < 0);
        loops += u32::from(checked.program().ops().any(back));
        let options = Options {
            harden: rng.chance(1, 4).then_some(seed),
        };
        let (jit, threaded) = (compile(&checked, &options), Threaded::new(&checked));
        for round in 0..20 {
            let mut context = [0; 88];
            context.fill_with(|| rng.interesting_u64() as u8);
            let len = if rng.chance(1, 8) { 50 } else { 88 };
            let packet: Vec<u8> = (0..rng.range(1..=40))
                .map(|_| rng.next_u32() as u8)
                .collect();
            let [for_context, for_packet] = &mut guarded;
            let packet = for_packet.at(round % 2 == 0, &packet);
            let mut run = |engine: &dyn Fn(&mut Memory<'_>) -> Result<u64, Fault>| {
                let context = for_context.at(round % 3 == 0, &context[..len]);
                let mut memory = Memory::new(Context::Writable(context), packet, Endian::Little);
                let result = engine(&mut memory);
                (result, memory.context().to_vec())
            };
            let expected = run(&|memory| {
                interp::run(checked.program(), memory, &mut helpers(), 1 << 20).map(|run| run.ret)
            });
            let text = || text::disassemble(checked.program().insns());
            let of_jit = run(&|memory| jit.run(memory, &mut helpers()));
            assert_eq!(of_jit, expected, "seed {seed}\n{}", text());
            let of_threaded = run(&|memory| threaded.run(memory, &mut helpers()));
            assert_eq!(of_threaded, expected, "seed {seed}\n{}", text());
            let own = for_context.at(round % 3 == 0, &context[..len]);
            let mut own = Context::Writable(own);
            if let Some(ret) = jit.run_without_helpers(&mut own, packet, &mut frames) {
                let result = (Ok(ret), own.bytes().to_vec());
                assert_eq!(result, expected, "seed {seed}\n{}", text());
                alone += 1;
            }
            match expected.0 {
                Ok(_) => results += 1,
                Err(_) => faults += 1,
            }
        }
    }
    println!(
        "{results} results, {alone} without helpers, and {faults} faults; {loops} programs with loops"
    );
    assert!(results > seeds::least(60_000) && faults > seeds::least(1000));
    assert!(alone > seeds::least(10_000));
}

/// A missing part of an evaluation is the same fault of every engine, with the instruction that needs it.
#[test]
fn what_is_missing_is_the_same_fault_of_every_engine() {
    unless_jit();
    let text =
        "r6 = *(u32 *)(r1 + 84)\nr2 = 0\nr3 = r10\nr3 += -8\nr4 = 8\ncall 26\nr0 += r6\nexit\n";
    let layout = Layout::socket_filter();
    let checked = checked(text, &layout, &helpers());
    let threaded = Threaded::new(&checked);
    let compiled = compile(&checked, &Options::default());
    let fault = |context_bytes: usize, endian, helpers: fn() -> Helpers<'static>| {
        let on = |engine: &dyn Fn(&mut Memory<'_>, &mut Helpers<'_>) -> Result<u64, Fault>| {
            let context = vec![0; context_bytes];
            let mut memory = Memory::new(Context::ReadOnly(&context), &[], endian);
            engine(&mut memory, &mut helpers()).unwrap_err()
        };
        let reference = on(&|memory, helpers| {
            interp::run(checked.program(), memory, helpers, 100).map(|run| run.ret)
        });
        assert_eq!(
            on(&|memory, helpers| threaded.run(memory, helpers)),
            reference
        );
        assert_eq!(
            on(&|memory, helpers| compiled.run(memory, helpers)),
            reference
        );
        (reference.pc.0, reference.reason)
    };
    let little = Endian::Little;
    assert_eq!(
        fault(192, little, Helpers::none),
        (5, FaultReason::UnknownHelper(LOAD_BYTES))
    );
    let (pc, reason) = fault(84, little, helpers);
    assert!(
        pc == 0 && matches!(reason, FaultReason::Access(_)),
        "{reason}"
    );
    assert_eq!(
        fault(192, Endian::Big, helpers),
        (0, FaultReason::OtherByteOrder)
    );
}

/// A loop whose body is longer or shorter than the range of short jumps.
#[test]
fn loops_have_exact_jumps() {
    unless_jit();
    let mut forms = [0; 2];
    for insns in 1..=60 {
        let body = "r0 += 3\n".repeat(insns);
        let back = insns + 2;
        let text = format!("r0 = 0\nr2 = 0\n{body}r2 += 1\nif r2 != 9 goto -{back}\nexit\n");
        let jit = compile(
            &checked(&text, &Layout::none(), &Helpers::none()),
            &Options::default(),
        );
        let mut memory = Memory::new(Context::ReadOnly(&[]), &[], Endian::Little);
        let ret = jit.run(&mut memory, &mut Helpers::none());
        assert_eq!(ret, Ok(9 * 3 * insns as u64));
        // `jne`, short or long, after the comparison of r2.
        let is_short = jit.code().windows(2).any(|bytes| bytes[0] == 0x75);
        let distance = 4 * insns + 4 + 4 + 2;
        assert_eq!(is_short, distance <= 128, "{insns}");
        forms[usize::from(is_short)] += 1;
    }
    assert!(forms.iter().all(|count| *count > 0));
}

/// Loops in loops, and a jump over both, each near the reach of short jumps.
#[test]
fn loops_in_loops_have_exact_jumps() {
    unless_jit();
    for (inner, outer) in (26..=33).flat_map(|inner| (0..=8).map(move |outer| (inner, outer))) {
        let (in_body, out_body) = ("r0 += 3\n".repeat(inner), "r0 += 1\n".repeat(outer));
        let (in_back, out_back) = (inner + 2, inner + outer + 6);
        let text = format!(
            "r0 = 0\nr2 = 0\nif r2 > 100 goto +{}\nr3 = 0\n{out_body}{in_body}r3 += 1\nif r3 != 3 goto -{in_back}\n\
             r2 += 1\nif r2 != 4 goto -{out_back}\nexit\n",
            inner + outer + 5,
        );
        for harden in [None, Some(9)] {
            let checked = checked(&text, &Layout::none(), &Helpers::none());
            let jit = compile(&checked, &Options { harden });
            let mut memory = Memory::new(Context::ReadOnly(&[]), &[], Endian::Little);
            let ret = jit.run(&mut memory, &mut Helpers::none());
            assert_eq!(ret, Ok(4 * (outer + 9 * inner) as u64), "{inner} {outer}");
        }
    }
}

/// Functions of the program and of the host, nested as deep as they may be; addresses that are passed, stored and read.
#[test]
fn calls_keep_what_they_must() {
    unless_jit();
    let mut helpers = Helpers::none();
    let sum = |[to, len, add, address, four]: [u64; 5], memory: &mut Memory<'_>| {
        let old = memory.bytes(to, len as usize)?.to_vec();
        memory.write_bytes(to, &old.iter().map(|byte| byte + 1).collect::<Vec<u8>>())?;
        Ok(old.iter().map(|byte| u64::from(*byte)).sum::<u64>() + add + address % 1009 + four)
    };
    let signature = vec![
        Argument::Readable,
        Argument::Scalar,
        Argument::Anything,
        Argument::Scalar,
    ];
    helpers.register(7, signature, Box::new(sum));
    // Each function puts a number in r6 to r9, calls the next, and adds the preserved ones; the last calls the host.
    let mut text = String::from(
        "*(u64 *)(r10 - 8) = 5\nr6 = r1\nr7 = 1\nr8 = 2\nr9 = 3\nr1 = r10\nr1 += -8\n*(u64 *)(r10 - 16) = r1\n\
         r1 = *(u64 *)(r10 - 16)\ncall pc+7\nr0 += r7\nr0 += r8\nr0 += r9\nr2 = *(u64 *)(r10 - 8)\nr0 += r2\n\
         r2 = *(u32 *)(r6 + 0)\nexit\n",
    );
    for depth in 1..7 {
        text.push_str(&format!(
            "r6 = {depth}\nr7 = 10\nr8 = 20\nr9 = r1\ncall pc+6\nr0 += r6\nr0 += r7\nr0 += r8\n\
             r2 = *(u64 *)(r9 + 0)\nr0 += r2\nexit\n"
        ));
    }
    text.push_str(
        "*(u64 *)(r10 - 512) = 77\nr2 = 8\nr3 = 9\nr4 = r10\nr5 = 4\nr6 = r1\ncall 7\n\
         r3 = *(u64 *)(r6 + 0)\nr0 += r3\nr2 = *(u64 *)(r10 - 512)\nr0 += r2\nexit\n",
    );
    let checked = checked(&text, &Layout::seccomp(), &helpers);
    assert_eq!(checked.accesses().frames(), 8);
    let (jit, context) = (compile(&checked, &Options::default()), [1; 64]);
    let mut rets =
        [0; 3].map(|_: i32| Memory::new(Context::ReadOnly(&context), &[], Endian::Little));
    let [one, two, three] = &mut rets;
    let expected = interp::run(checked.program(), one, &mut helpers, 1000).map(|run| run.ret);
    assert!(expected.is_ok(), "{expected:?}");
    assert_eq!(jit.run(two, &mut helpers), expected);
    // The memory can be used again, by any engine.
    assert_eq!(jit.run(one, &mut helpers), expected);
    assert_eq!(Threaded::new(&checked).run(two, &mut helpers), expected);
    assert_eq!(
        interp::run(checked.program(), two, &mut helpers, 1000).map(|run| run.ret),
        expected
    );
    let missing = jit
        .run(three, &mut Helpers::none())
        .map_err(|fault| fault.reason);
    assert_eq!(missing, Err(FaultReason::UnknownHelper(7)));
}

/// A helper that panics ends the evaluation with its panic.
#[test]
fn panics_of_helpers_pass_through() {
    unless_jit();
    let mut helpers = Helpers::none();
    helpers.register(1, vec![], Box::new(|_, _| panic!("from the helper")));
    let checked = checked(
        "r6 = r1\ncall pc+1\nexit\ncall 1\nexit\n",
        &Layout::none(),
        &helpers,
    );
    let jit = compile(&checked, &Options::default());
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut memory = Memory::new(Context::ReadOnly(&[]), &[], Endian::Little);
        jit.run(&mut memory, &mut helpers)
    }));
    let payload = caught.expect_err("it panics");
    assert_eq!(payload.downcast_ref(), Some(&"from the helper"));
}

/// One instruction that reaches the context on one way and the stack on the other.
#[test]
fn an_access_may_vary() {
    unless_jit();
    let text = "*(u64 *)(r10 - 8) = 12345\nr2 = *(u32 *)(r1 + 0)\nr3 = r1\nr3 += 64\nif r2 == 1 goto +6\nr3 = r1\nr3 += 68\n\
                if r2 == 2 goto +3\nr3 = r10\nif r2 == 3 goto +1\nr3 += 0\nr0 = *(u32 *)(r3 - 8)\nexit\n";
    let words = Field {
        offset: 0,
        bytes: 72,
        smallest: Size::W,
        largest: Size::W,
        is_writable: false,
    };
    let layout = Layout {
        fields: vec![words],
    };
    let checked = checked(text, &layout, &Helpers::none());
    let jit = compile(&checked, &Options::default());
    for first in 0..=4_u32 {
        let mut context = [9; 72];
        context[..4].copy_from_slice(&first.to_le_bytes());
        context[60..64].copy_from_slice(&600_u32.to_le_bytes());
        let mut memory = Memory::new(Context::ReadOnly(&context), &[], Endian::Little);
        let expected = interp::run(checked.program(), &mut memory, &mut Helpers::none(), 100);
        let ret = jit.run(&mut memory, &mut Helpers::none());
        assert_eq!(ret, expected.map(|run| run.ret), "{first}");
    }
}

#[test]
fn hardened_code_has_no_constant_of_the_program() {
    unless_jit();
    let mut rng = Rng::new(1);
    let constants: Vec<u32> = (0..400).map(|_| rng.next_u32()).collect();
    let at = Address {
        base: Reg::FRAME,
        offset: -8,
    };
    let mut ops = vec![Op::LoadImm64(Reg::R0, 1)];
    for (index, k) in constants.iter().enumerate() {
        let (width, k) = (Width::ALL[index / 4 % 2], *k as i32);
        let alu = AluOp::ALL[index / 8 % 10];
        ops.push(match index % 4 {
            0 => Op::Branch(width, Cond::ALL[index / 8 % 11], Reg::R0, Source::Imm(k), 0),
            1 => Op::StoreImm(width.size(), at, k),
            2 => Op::LoadImm64(Reg::ALL[7], (k as u64) << 32 | u64::from(k as u32)),
            _ => Op::Alu(width, alu, Reg::R0, Source::Imm(k)),
        });
    }
    ops.push(Op::Exit);
    let program = Program::from_ops(&ops, Endian::Little).expect("it ends");
    let options = checker::Options::default();
    let checked = check(program, &Layout::none(), &Helpers::none(), &options).expect("it is safe");
    let found = |harden| {
        let jit = compile(&checked, &Options { harden });
        let is_mark = |bytes: &&[u8]| constants.iter().any(|k| k.to_le_bytes() == **bytes);
        let found = jit.code().windows(4).filter(is_mark).count();
        let mut memory = Memory::new(Context::ReadOnly(&[]), &[], Endian::Little);
        (found, jit.run(&mut memory, &mut Helpers::none()))
    };
    let ((plain, ret), (hardened, same)) = (found(None), found(Some(3)));
    assert_eq!(ret, same);
    assert!(plain >= 200, "{plain}");
    assert_eq!(hardened, 0);
}

#[test]
fn programs_of_the_other_byte_order_are_refused() {
    let program = Program::from_ops(&[Op::LoadImm64(Reg::R0, 1), Op::Exit], Endian::Big);
    let options = checker::Options::default();
    let program = program.expect("it ends");
    let checked = check(program, &Layout::none(), &Helpers::none(), &options).expect("it is safe");
    let refused = Extended::compile(&checked, &Options::default());
    assert!(matches!(refused, Err(Error::OtherByteOrder)));
}

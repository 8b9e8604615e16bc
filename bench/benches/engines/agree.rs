//! Random programs on all evaluators: counts of evaluations, and of those with another value than the reference's.

use std::collections::BTreeMap;

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::packet::Ancillary;
use tamis_bpf::{Program, Stack, interp};
use tamis_ebpf::check::{self, Checked, Layout, check};
use tamis_ebpf::convert::{converted, seccomp_context};
use tamis_ebpf::interp::Fault;
use tamis_ebpf::memory::{Context, Frames, Helpers, Memory};
use tamis_ebpf::socket::{LOAD_BYTES, load_bytes_signature};
use tamis_ebpf::threaded;
use tamis_engine::{Engine, Evaluator, Options, PacketEvaluator};
use tamis_jit::Extended;
use tamis_testkit::generate::{extended, packet, program};
use tamis_testkit::rng::Rng;
use tamis_vm::Code;

/// The inputs of a program.
const INPUTS: usize = 256;

/// The engines, with and without the result cache.
const ENGINES: [(&str, Engine, bool); 4] = [
    ("threaded", Engine::Threaded, false),
    ("cache + threaded", Engine::Threaded, true),
    ("jit", Engine::Jit, false),
    ("cache + jit", Engine::Jit, true),
];

/// Evaluations and differences by the name of an evaluator.
#[derive(Default)]
struct Counts {
    by_name: BTreeMap<String, (u64, u64)>,
    total: u64,
}

impl Counts {
    fn add(&mut self, name: &str, kind: &str, is_same: bool) {
        let entry = self.by_name.entry(format!("{kind}, {name}")).or_default();
        entry.0 += 1;
        entry.1 += u64::from(!is_same);
        self.total += 1;
    }
}

/// Compares at least so many evaluations and prints how many there were.
pub(crate) fn run(evaluations: u64) {
    let mut counts = Counts::default();
    let mut programs = 0_u64;
    let mut rng = Rng::new(1);
    while counts.total < evaluations {
        match programs % 3 {
            0 => calls(&mut rng, &mut counts),
            1 => packets(&mut rng, &mut counts),
            _ => extended_programs(&mut rng, &mut counts),
        }
        programs += 1;
    }
    println!("{programs} programs, {} evaluations", counts.total);
    let mut differences = 0;
    for (name, (count, different)) in &counts.by_name {
        println!("  {name:<28} {count:>12}, {different} different");
        differences += different;
    }
    assert_eq!(differences, 0, "evaluators differ");
}

/// A program of random length, mostly short.
fn body_insns(rng: &mut Rng) -> usize {
    let max = if rng.chance(1, 20) { 400 } else { 40 };
    rng.range(0..=max) as usize
}

fn calls(rng: &mut Rng, counts: &mut Counts) {
    let endian = *rng.choose(&[Endian::Little, Endian::Big]);
    let body = body_insns(rng);
    let program = program::program(rng, body, endian);
    let calls: Vec<SeccompData> = (0..INPUTS).map(|_| program::data(rng, &program)).collect();
    let ret = |call: &SeccompData| interp::run(&program, call).ret;
    let expected: Vec<u32> = calls.iter().map(ret).collect();
    let code = Code::of_program(&program);
    let mut seen = code.nothing_seen();
    for (call, expected) in calls.iter().zip(&expected) {
        let ret = code.run(&call.image(Endian::Little), &mut seen);
        counts.add("coverage", "calls", ret == *expected);
    }
    converted_program(&program, &calls, &expected, counts);
    // A stack's answer isn't the value of its only filter: all that is no stricter than allow is allow.
    let stack = Stack::from(program);
    let expected: Vec<u32> = calls.iter().map(|call| stack.run(call).ret).collect();
    for (name, evaluator) in evaluators(&stack) {
        for (call, expected) in calls.iter().zip(&expected) {
            counts.add(name, "calls", evaluator.run(call) == *expected);
        }
    }
}

/// The evaluators that are there.
fn evaluators(stack: &Stack) -> Vec<(&'static str, Evaluator)> {
    let evaluator = |(name, engine, is_cached)| {
        let options = Options {
            engine,
            is_cached,
            ..Options::default()
        };
        let made = Evaluator::new(stack, &options);
        made.ok().map(|evaluator| (name, evaluator))
    };
    ENGINES.into_iter().filter_map(evaluator).collect()
}

fn packets(rng: &mut Rng, counts: &mut Counts) {
    let body = body_insns(rng);
    let program = packet::program(rng, body);
    let frames: Vec<Vec<u8>> = (0..INPUTS).map(|_| packet::bytes(rng, &program)).collect();
    let packets: Vec<_> = frames.iter().map(|frame| packet::local(frame)).collect();
    let ret = |packet| interp::run_packet(&program, packet).ret;
    let expected: Vec<u32> = packets.iter().map(ret).collect();
    let given = packet::METADATA_OF_LOCAL_PACKETS;
    let is_known = |one: &Ancillary| given.get(*one).is_some();
    let known: Vec<Ancillary> = Ancillary::ALL.into_iter().filter(is_known).collect();
    for (name, engine, _) in ENGINES.iter().filter(|(.., is_cached)| !is_cached) {
        let options = Options {
            engine: *engine,
            ..Options::default()
        };
        let Ok(evaluator) = PacketEvaluator::new(&program, &known, &options) else {
            continue;
        };
        for (packet, expected) in packets.iter().zip(&expected) {
            counts.add(name, "packets", evaluator.run(packet) == *expected);
        }
        for (ret, expected) in evaluator.run_batch(&packets).iter().zip(&expected) {
            counts.add(&format!("{name}, batch"), "packets", ret == expected);
        }
    }
}

/// A filter as the kernel converts it, on the engines for extended programs.
fn converted_program(
    program: &Program,
    calls: &[SeccompData],
    expected: &[u32],
    counts: &mut Counts,
) {
    let Ok(extended) = converted(program) else {
        return;
    };
    let endian = program.endian();
    let options = check::Options {
        max_steps: 1_000_000,
        permits_unreachable: true,
    };
    let checked = check(extended, &Layout::seccomp(), &Helpers::none(), &options);
    let checked = checked.unwrap_or_else(|refusal| panic!("a conversion is safe: {refusal}"));
    let jit = Extended::compile(&checked, &jit_options(calls.len() as u64)).ok();
    let threaded = threaded::Threaded::new(&checked);
    let mut frames = Frames::default();
    for (call, expected) in calls.iter().zip(expected) {
        let context = seccomp_context(call, endian);
        let mut memory = Memory::new(Context::ReadOnly(&context), &[], endian);
        let mut helpers = Helpers::none();
        let is_same = |result: Result<u64, Fault>| result == Ok(u64::from(*expected));
        let ret = threaded.run(&mut memory, &mut helpers);
        counts.add("threaded", "converted calls", is_same(ret));
        if let Some(jit) = &jit {
            let ret = jit.run(&mut memory, &mut helpers);
            counts.add("jit", "converted calls", is_same(ret));
            let mut context = Context::ReadOnly(&context);
            if let Some(ret) = jit.run_without_helpers(&mut context, &[], &mut frames) {
                counts.add("jit, no helpers", "converted calls", is_same(Ok(ret)));
            }
        }
    }
}

fn jit_options(seed: u64) -> tamis_jit::Options {
    tamis_jit::Options {
        harden: seed.is_multiple_of(4).then_some(seed),
    }
}

/// Programs for sockets that use the stack, the context, the packet, a helper and functions.
fn extended_programs(rng: &mut Rng, counts: &mut Counts) {
    let body = rng.range(0..=40) as usize;
    let program = extended::program(rng, body, Endian::Little);
    let (layout, options) = (Layout::socket_filter(), check::Options::default());
    let Ok(checked) = check(program, &layout, &helpers(), &options) else {
        return;
    };
    let jit = Extended::compile(&checked, &jit_options(rng.range(0..=40))).ok();
    let threaded = threaded::Threaded::new(&checked);
    let mut helpers = helpers();
    for _ in 0..INPUTS {
        let mut context = [0; 88];
        context.fill_with(|| rng.interesting_u64() as u8);
        let packet: Vec<u8> = (0..rng.range(0..=40))
            .map(|_| rng.next_u32() as u8)
            .collect();
        let mut result =
            |engine: &dyn Fn(&mut Memory<'_>, &mut Helpers<'_>) -> Result<u64, Fault>| {
                let mut context = context;
                let mut memory =
                    Memory::new(Context::Writable(&mut context), &packet, Endian::Little);
                let result = engine(&mut memory, &mut helpers);
                (result, context)
            };
        let expected = result(&|memory, helpers| reference(&checked, memory, helpers));
        let is_same = result(&|memory, helpers| threaded.run(memory, helpers)) == expected;
        counts.add("threaded", "extended programs", is_same);
        if let Some(jit) = &jit {
            let is_same = result(&|memory, helpers| jit.run(memory, helpers)) == expected;
            counts.add("jit", "extended programs", is_same);
        }
    }
}

fn reference(
    checked: &Checked,
    memory: &mut Memory<'_>,
    helpers: &mut Helpers<'_>,
) -> Result<u64, Fault> {
    let run = tamis_ebpf::interp::run(checked.program(), memory, helpers, 1 << 20);
    run.map(|run| run.ret)
}

/// A helper that fills memory.
fn helpers<'h>() -> Helpers<'h> {
    let fill = |[_, value, to, len, _]: [u64; 5], memory: &mut Memory<'_>| {
        memory.write_bytes(to, &vec![value as u8; len as usize])?;
        Ok(value)
    };
    let mut helpers = Helpers::none();
    helpers.register(LOAD_BYTES, load_bytes_signature(), Box::new(fill));
    helpers
}

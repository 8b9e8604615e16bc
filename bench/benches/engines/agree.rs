//! Random programs on all evaluators: counts of evaluations, and of those with another value than the reference's.

use std::collections::BTreeMap;

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::packet::Packet;
use tamis_bpf::{Program, Stack, interp};
use tamis_ebpf_vm::check::{self, Checked, Layout, check};
use tamis_ebpf_vm::convert::{converted, seccomp_context};
use tamis_ebpf_vm::interp::Fault;
use tamis_ebpf_vm::memory::{Context, Frames, Helpers, Memory};
use tamis_ebpf_vm::socket::{LOAD_BYTES, load_bytes_signature};
use tamis_ebpf_vm::threaded;
use tamis_engine::{Engine, Evaluator, Options, PacketEvaluator};
use tamis_jit::Extended;
use tamis_testkit::generate::{extended, packet, program};
use tamis_testkit::guarded::Guarded;
use tamis_testkit::rng::Rng;
use tamis_vm::Code;

/// The inputs of a program.
const INPUTS: usize = 256;

/// The engines, with and without the result cache and constants of the program in machine code.
const ENGINES: [(&str, Engine, bool, bool); 6] = [
    ("threaded", Engine::Threaded, false, false),
    ("cache + threaded", Engine::Threaded, true, false),
    ("jit", Engine::Jit, false, false),
    ("cache + jit", Engine::Jit, true, false),
    ("hardened jit", Engine::Jit, false, true),
    ("cache + hardened jit", Engine::Jit, true, true),
];

/// Evaluations and differences by the kind of program and the name of an evaluator.
#[derive(Default)]
struct Counts {
    by_name: BTreeMap<(&'static str, &'static str), [u64; 2]>,
    total: u64,
}

impl Counts {
    /// Counts evaluations, given whether each value is that of the reference.
    fn add(
        &mut self,
        kind: &'static str,
        name: &'static str,
        are_same: impl IntoIterator<Item = bool>,
    ) {
        let [all, different] = self.by_name.entry((kind, name)).or_default();
        for is_same in are_same {
            *all += 1;
            *different += u64::from(!is_same);
            self.total += 1;
        }
    }
}

/// Compares at least so many evaluations of the programs that follow from a seed, on inputs between inaccessible pages, and
/// prints how many there were.
pub(crate) fn run(evaluations: u64, seed: u64) {
    let mut counts = Counts::default();
    let mut programs = 0_u64;
    let mut rng = Rng::new(seed);
    let mut guarded = [Guarded::page(), Guarded::page()];
    while counts.total < evaluations {
        match programs % 3 {
            0 => calls(&mut rng, &mut guarded[0], &mut counts),
            1 => packets(&mut rng, &mut guarded[0], &mut counts),
            _ => extended_programs(&mut rng, &mut guarded, &mut counts),
        }
        programs += 1;
    }
    println!(
        "seed {seed}: {programs} programs, {} evaluations",
        counts.total
    );
    let mut differences = 0;
    for ((kind, name), [count, different]) in &counts.by_name {
        println!("  {kind:<18} {name:<20} {count:>12}, {different} different");
        differences += different;
    }
    assert_eq!(differences, 0, "evaluators differ");
}

/// A program of random length, mostly short.
fn body_insns(rng: &mut Rng) -> usize {
    let max = if rng.chance(1, 20) { 400 } else { 40 };
    rng.range(0..=max) as usize
}

fn calls(rng: &mut Rng, guarded: &mut Guarded, counts: &mut Counts) {
    let endian = *rng.choose(&[Endian::Little, Endian::Big]);
    let body = body_insns(rng);
    let program = program::program(rng, body, endian);
    let calls: Vec<SeccompData> = (0..INPUTS).map(|_| program::data(rng, &program)).collect();
    let ret = |call: &SeccompData| interp::run(&program, call).ret;
    let expected: Vec<u32> = calls.iter().map(ret).collect();
    let code = Code::of_program(&program);
    let mut seen = code.nothing_seen();
    let are_same = calls
        .iter()
        .zip(&expected)
        .map(|(call, expected)| code.run(&call.image(Endian::Little), &mut seen) == *expected);
    counts.add("calls", "coverage", are_same);
    converted_program(&program, &calls, &expected, harden(rng), counts);
    // A stack's answer isn't the value of its only filter: all that is no stricter than allow is allow.
    let stack = Stack::from(program);
    let expected: Vec<u32> = calls.iter().map(|call| stack.run(call).ret).collect();
    for (name, evaluator) in evaluators(rng, &stack) {
        let pairs = calls.iter().zip(&expected).enumerate();
        let are_same = pairs.map(|(index, (call, expected))| {
            let image = guarded.words(is_at_end(index), &call.image(endian));
            evaluator.run_image(image) == *expected
        });
        counts.add("calls", name, are_same);
    }
}

/// Options for all engines.
fn all_options(rng: &mut Rng) -> [(&'static str, Options); ENGINES.len()] {
    ENGINES.map(|(name, engine, is_cached, is_hardened)| {
        let options = Options {
            engine,
            is_cached,
            harden: is_hardened.then(|| rng.next_u64()),
            ..Options::default()
        };
        (name, options)
    })
}

/// The evaluators that are there.
fn evaluators(rng: &mut Rng, stack: &Stack) -> Vec<(&'static str, Evaluator)> {
    let evaluator = |(name, options)| Some((name, Evaluator::new(stack, &options).ok()?));
    let all = all_options(rng).into_iter();
    all.filter_map(evaluator).collect()
}

fn packets(rng: &mut Rng, guarded: &mut Guarded, counts: &mut Counts) {
    let body = body_insns(rng);
    let program = packet::program(rng, body);
    let frames: Vec<Vec<u8>> = (0..INPUTS).map(|_| packet::bytes(rng, &program)).collect();
    let network_start = rng.range(0..=30) as u32;
    let from_anywhere = frames.iter().map(|frame| Packet {
        network_start,
        ..packet::from_anywhere(rng, frame)
    });
    let packets: Vec<Packet<'_>> = from_anywhere.collect();
    let ret = |packet| interp::run_packet(&program, packet).ret;
    let expected: Vec<u32> = packets.iter().map(ret).collect();
    let known = packet::answered();
    for (name, options) in all_options(rng) {
        if options.is_cached {
            continue;
        }
        let Ok(evaluator) = PacketEvaluator::new(&program, &known, &options) else {
            continue;
        };
        let pairs = packets.iter().zip(&expected).enumerate();
        let are_same = pairs.map(|(index, (packet, expected))| {
            let bytes = guarded.at(is_at_end(index), packet.bytes);
            evaluator.run(&Packet { bytes, ..*packet }) == *expected
        });
        counts.add("packets", name, are_same);
        let rets = evaluator.run_batch(&packets);
        let are_same = rets
            .iter()
            .zip(&expected)
            .map(|(ret, expected)| ret == expected);
        counts.add("packets in batches", name, are_same);
    }
}

/// Whether an input lies at the end of its page, else at the beginning.
fn is_at_end(index: usize) -> bool {
    index.is_multiple_of(2)
}

/// A seed for one in four programs.
fn harden(rng: &mut Rng) -> Option<u64> {
    rng.chance(1, 4).then(|| rng.next_u64())
}

/// A filter as the kernel converts it, on the engines for extended programs.
fn converted_program(
    program: &Program,
    calls: &[SeccompData],
    expected: &[u32],
    harden: Option<u64>,
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
    let jit = Extended::compile(&checked, &tamis_jit::Options { harden }).ok();
    let threaded = threaded::Threaded::new(&checked);
    let mut frames = Frames::default();
    let (mut of_threaded, mut of_jit, mut of_jit_alone) = (Vec::new(), Vec::new(), Vec::new());
    for (call, expected) in calls.iter().zip(expected) {
        let context = seccomp_context(call, endian);
        let mut memory = Memory::new(Context::ReadOnly(&context), &[], endian);
        let mut helpers = Helpers::none();
        let is_same = |result: Result<u64, Fault>| result == Ok(u64::from(*expected));
        of_threaded.push(is_same(threaded.run(&mut memory, &mut helpers)));
        if let Some(jit) = &jit {
            of_jit.push(is_same(jit.run(&mut memory, &mut helpers)));
            let mut context = Context::ReadOnly(&context);
            let alone = jit.run_without_helpers(&mut context, &[], &mut frames);
            of_jit_alone.extend(alone.map(|ret| is_same(Ok(ret))));
        }
    }
    counts.add("converted calls", "threaded", of_threaded);
    counts.add("converted calls", "jit", of_jit);
    counts.add("converted calls", "jit, no helpers", of_jit_alone);
}

/// Programs for sockets that use the stack, the context, the packet, a helper and functions.
fn extended_programs(
    rng: &mut Rng,
    [for_context, for_packet]: &mut [Guarded; 2],
    counts: &mut Counts,
) {
    let body = rng.range(0..=40) as usize;
    let program = extended::program(rng, body, Endian::Little);
    let (layout, options) = (Layout::socket_filter(), check::Options::default());
    let Ok(checked) = check(program, &layout, &helpers(), &options) else {
        return;
    };
    let options = tamis_jit::Options {
        harden: harden(rng),
    };
    let jit = Extended::compile(&checked, &options).ok();
    let threaded = threaded::Threaded::new(&checked);
    let (mut of_threaded, mut of_jit) = (Vec::new(), Vec::new());
    let mut helpers = helpers();
    for index in 0..INPUTS {
        let mut context = [0; 88];
        context.fill_with(|| rng.interesting_u64() as u8);
        let packet: Vec<u8> = (0..rng.range(0..=40))
            .map(|_| rng.next_u32() as u8)
            .collect();
        let packet = for_packet.at(is_at_end(index), &packet);
        let mut result =
            |engine: &dyn Fn(&mut Memory<'_>, &mut Helpers<'_>) -> Result<u64, Fault>| {
                let context = for_context.at(is_at_end(index), &context);
                let context = Context::Writable(context);
                let mut memory = Memory::new(context, packet, Endian::Little);
                let result = engine(&mut memory, &mut helpers);
                (result, memory.context().to_vec())
            };
        let expected = result(&|memory, helpers| reference(&checked, memory, helpers));
        of_threaded.push(result(&|memory, helpers| threaded.run(memory, helpers)) == expected);
        if let Some(jit) = &jit {
            of_jit.push(result(&|memory, helpers| jit.run(memory, helpers)) == expected);
        }
    }
    counts.add("extended programs", "threaded", of_threaded);
    counts.add("extended programs", "jit", of_jit);
}

fn reference(
    checked: &Checked,
    memory: &mut Memory<'_>,
    helpers: &mut Helpers<'_>,
) -> Result<u64, Fault> {
    let run = tamis_ebpf_vm::interp::run(checked.program(), memory, helpers, 1 << 20);
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

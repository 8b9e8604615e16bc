//! Filters of seccomp on calls.

use std::hint::black_box;

use tamis_abi::{Arch, Endian, SeccompData};
use tamis_bench::gvisor::{Compiler, Interpreter};
use tamis_bench::ratio::{Contestant, compare};
use tamis_bpf::{Program, Stack, interp, packet};
use tamis_ebpf_vm::convert::{converted, seccomp_context};
use tamis_engine::{Engine, Evaluator};
use tamis_jit::{Options, Seccomp};
use tamis_pcap::Libpcap;
use tamis_testkit::rng::Rng;
use tamis_vm::Code;

use crate::rbpf_vm::{Vm, bytes};
use crate::table::Table;
use crate::{EVALUATIONS, sum};

/// The evaluators of `tamis-engine` that are compared.
const ENGINES: [(&str, Engine, bool); 5] = [
    ("reference", Engine::Reference, false),
    ("threaded", Engine::Threaded, false),
    ("jit", Engine::Jit, false),
    ("cache + threaded", Engine::Threaded, true),
    ("cache + jit", Engine::Jit, true),
];

/// The interpreters of others that can be there or not.
#[derive(Clone, Copy)]
pub(crate) struct Peers<'p> {
    pub(crate) libpcap: Option<&'p Libpcap>,
    pub(crate) gvisor: Option<&'p Compiler>,
}

/// Times all evaluators on single calls, and on a mix of random numbers.
pub(crate) fn run(peers: Peers<'_>, name: &str, program: &Program, rounds: usize) {
    println!("{name}, {} instructions", program.len());
    let mut rng = Rng::new(1);
    let mix: Vec<SeccompData> = (0..EVALUATIONS)
        .map(|_| call(rng.range(0..=450) as u32))
        .collect();
    let cases = [
        ("read", 0),
        ("futex", 202),
        ("clone", 56),
        ("personality", 135),
        ("999", 999),
    ];
    let mut cases: Vec<(&str, Vec<SeccompData>)> = cases
        .into_iter()
        .map(|(name, nr)| (name, vec![call(nr); EVALUATIONS]))
        .collect();
    cases.push(("any number", mix));
    let extended = converted(program).expect("it is short enough");
    let bytes = bytes(&extended);
    let vm = Vm::new(&bytes).expect("rbpf takes what the kernel takes");
    for (name, calls) in &cases {
        println!("{name}");
        table(peers, program, &vm, calls, rounds).print();
    }
}

fn call(nr: u32) -> SeccompData {
    SeccompData {
        nr,
        arch: Arch::X86_64.audit(),
        ..SeccompData::default()
    }
}

/// The evaluators of a filter by their names.
fn evaluators(program: &Program) -> [(&'static str, Evaluator); ENGINES.len()] {
    ENGINES.map(|(name, engine, is_cached)| {
        let options = tamis_engine::Options {
            engine,
            is_cached,
            ..tamis_engine::Options::default()
        };
        let evaluator = Evaluator::new(&Stack::from(program.clone()), &options);
        (name, evaluator.expect("probed"))
    })
}

fn table(
    peers: Peers<'_>,
    program: &Program,
    vm: &Vm<'_>,
    calls: &[SeccompData],
    rounds: usize,
) -> Table {
    let little = Endian::Little;
    let images: Vec<[u32; 16]> = calls.iter().map(|call| call.image(little)).collect();
    let contexts: Vec<[u8; 64]> = calls
        .iter()
        .map(|call| seccomp_context(call, little))
        .collect();
    let swapped: Vec<[u8; 64]> = calls
        .iter()
        .map(|call| seccomp_context(call, Endian::Big))
        .collect();
    let evaluators = evaluators(program);
    let socket = packet::Program::new(program.insns().to_vec()).expect("sockets take it too");
    let code = Code::of_program(program);
    let mut seen = code.nothing_seen();
    let expected = interp::run(program, &calls[0]).ret;
    assert_eq!(vm.run(&[], &contexts[0]), expected);
    let mut contestants = Vec::new();
    if let Some(libpcap) = peers.libpcap {
        assert_eq!(libpcap.run(&socket, &swapped[0], 64), expected);
        let (swapped, socket) = (&swapped, &socket);
        contestants.push(Contestant::new("libpcap", move || {
            sum(swapped, |bytes| libpcap.run(socket, bytes, 64))
        }));
    }
    for (name, evaluator) in &evaluators {
        let images = &images;
        contestants.push(Contestant::new(name, move || {
            sum(images, |image| evaluator.run_image(image))
        }));
    }
    contestants.push(Contestant::new("reading the call", || {
        sum(&images, |[nr, audit, ..]| nr ^ audit)
    }));
    contestants.push(Contestant::new("coverage", || {
        sum(&images, |image| code.run(image, &mut seen))
    }));
    contestants.push(Contestant::new("rbpf", || {
        sum(&contexts, |context| vm.run(&[], context))
    }));
    if vm.has_machine_code {
        contestants.push(Contestant::new("rbpf, jit", || {
            sum(&contexts, |context| {
                vm.run_machine_code(&mut [], &mut context.to_owned())
            })
        }));
    }
    let gvisor = peers
        .gvisor
        .map(|gvisor| gvisor.interpreter(program, &images));
    if let Some(interpreter) = gvisor {
        let rets = calls
            .iter()
            .map(|call| u64::from(interp::run(program, call).ret));
        contestants.push(of_gvisor(interpreter.expect("it starts"), rets.sum()));
    }
    Table::new(contestants, rounds, calls.len())
}

/// A process of its own, which has its own clock.
fn of_gvisor<'a>(interpreter: Interpreter, expected: u64) -> Contestant<'a> {
    Contestant::with_own_clock("gvisor", move || {
        let (sum, time) = interpreter
            .round()
            .expect("gVisor takes what the kernel takes");
        assert_eq!(sum, expected, "the sum of all values");
        time
    })
}

/// The cost of compilation, and the share of memory in it: a program of one instruction needs the same calls.
pub(crate) fn compilation(name: &str, program: &Program, rounds: usize) {
    const COUNT: usize = 100;
    println!("{name}: compiled {COUNT} times");
    let ret = tamis_bpf::Op::RetImm(0).into();
    let shortest = Program::new(vec![ret], Endian::Little).expect("legal");
    let compile = |program: &Program| -> usize {
        let compiled = |_| Seccomp::compile(black_box(program), &Options::default());
        (0..COUNT)
            .filter_map(|index| compiled(index).ok())
            .map(|made| made.code().len())
            .sum()
    };
    let mut contestants = [
        Contestant::new("the program", || compile(program)),
        Contestant::new("one instruction", || compile(&shortest)),
    ];
    print!("{}", compare(&mut contestants, rounds));
}

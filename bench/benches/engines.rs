//! Evaluators side by side, in one run: machine code, the interpreters, and libpcap's interpreter, on programs of
//! `tcpdump` and on Docker's filters by libseccomp.
//!
//! `cargo bench -p tamis-bench --bench engines`; the first number is the count of rounds.

use std::env;
use std::hint::black_box;

use tamis_abi::{Arch, Endian, SeccompData};
use tamis_bench::ratio::{Contestant, compare};
use tamis_bpf::packet::{self, Packet};
use tamis_bpf::{Program, Stack, interp};
use tamis_jit::{Entry, Options, Seccomp, Socket};
use tamis_testkit::corpus;
use tamis_testkit::libpcap::Libpcap;
use tamis_testkit::rng::Rng;
use tamis_testkit::skip::{self, Need};
use tamis_vm::Code;
use tamis_vm::cache::{Residual, Table};
use tamis_vm::threaded::{State, Threaded};

const ROUNDS: usize = 31;

/// Evaluations in a round.
const EVALUATIONS: usize = 10_000;

/// The distance of packets, more than what the machine brings into its caches for one.
const DISTANCE_BYTES: usize = 2048;

/// The expressions for which the patch of extended BPF gives times.
const EXPRESSIONS: [&str; 2] = [
    "port 22",
    "tcp port 22 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)",
];

fn main() {
    let rounds = env::args().find_map(|argument| argument.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS);
    if let Err(reason) = tamis_jit::probe() {
        return skip::because(Need::Live, reason);
    }
    let libpcap = Libpcap::open();
    match &libpcap {
        Ok(libpcap) => EXPRESSIONS
            .iter()
            .for_each(|text| packets(libpcap, text, rounds)),
        Err(reason) => skip::because(Need::Peers, reason),
    }
    for name in [
        "docker/docker-libseccomp-opt1.bpf",
        "docker/docker-libseccomp-opt2.bpf",
    ] {
        if let Some(program) = corpus::program(name) {
            calls(libpcap.as_ref().ok(), name, &program, rounds);
            compilation(name, &program, rounds);
        }
    }
}

/// The sum of what a function gives for each input; a function of its own for each evaluator, so that all are called
/// in the same way.
fn sum<T>(inputs: &[T], mut run: impl FnMut(&T) -> u32) -> usize {
    let rets = inputs.iter().map(|input| run(black_box(input)) as usize);
    rets.sum()
}

/// A segment of TCP to port 22 with one byte.
fn segment() -> Vec<u8> {
    let mut bytes = vec![0; 14];
    bytes[12] = 8;
    bytes.extend([
        0x45, 0, 0, 41, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    bytes.extend([
        0x30, 0x39, 0, 22, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0, 0, 0, 0, 0, 0, 7,
    ]);
    bytes
}

fn packets(libpcap: &Libpcap, expression: &str, rounds: usize) {
    let insns = libpcap.compile(expression).expect("a legal expression");
    let program = packet::Program::new(insns).expect("libpcap's programs are legal");
    let compiled = Socket::compile(&program, &Options::default()).expect("probed");
    let threaded = Threaded::packet(&program);
    let segment = segment();
    let memory: Vec<u8> = (0..EVALUATIONS)
        .flat_map(|_| {
            let mut place = segment.clone();
            place.resize(DISTANCE_BYTES, 0);
            place
        })
        .collect();
    let far: Vec<Packet<'_>> = memory
        .chunks(DISTANCE_BYTES)
        .map(|place| Packet::new(&place[..segment.len()]))
        .collect();
    let same: Vec<Packet<'_>> = far.iter().map(|_| Packet::new(&segment[..])).collect();
    for (name, list) in [("the same packet", &same), ("10,000 packets", &far)] {
        println!("{expression}, {} instructions, {name}", program.len());
        let mut rets = vec![0; list.len()];
        assert_eq!(
            compiled.run(&list[0]),
            interp::run_packet(&program, &list[0]).ret
        );
        let mut contestants = [
            Contestant::new("machine code", || sum(list, |packet| compiled.run(packet))),
            Contestant::new("machine code, batch", || {
                compiled.run_batch(black_box(list), &mut rets);
                rets[0] as usize
            }),
            Contestant::new("touching the packet", || {
                sum(list, |packet| u32::from(packet.bytes[12]))
            }),
            Contestant::new("threaded", || sum(list, |packet| threaded.run(packet))),
            Contestant::new("reference", || {
                sum(list, |packet| interp::run_packet(&program, packet).ret)
            }),
            Contestant::new("libpcap", || {
                sum(list, |packet| {
                    libpcap.run(&program, packet.bytes, packet.len_bytes)
                })
            }),
        ];
        print!("{}", compare(&mut contestants, rounds));
    }
}

/// Calls with one number each, and with any.
fn call_lists() -> Vec<(&'static str, Vec<SeccompData>)> {
    let call = |nr| SeccompData {
        nr,
        arch: Arch::X86_64.audit(),
        ..SeccompData::default()
    };
    let mut rng = Rng::new(1);
    let mix = (0..EVALUATIONS).map(|_| call(rng.range(0..=450) as u32));
    let mix = ("any number", mix.collect());
    let cases = [
        ("read", 0),
        ("futex", 202),
        ("clone", 56),
        ("personality", 135),
        ("999", 999),
    ];
    let of_one = cases.map(|(name, nr)| (name, vec![call(nr); EVALUATIONS]));
    of_one.into_iter().chain([mix]).collect()
}

fn calls(libpcap: Option<&Libpcap>, name: &str, program: &Program, rounds: usize) {
    let compiled = Seccomp::compile(program, &Options::default()).expect("probed");
    let threaded = Threaded::seccomp(program).expect("as long as a filter may be");
    let (decoded, code) = (interp::Decoded::new(program), Code::of_program(program));
    let table = Table::new(&Stack::from(program.clone()));
    let entries: Vec<Entry> = table.residuals().iter().map(entry).collect();
    let from_table = Seccomp::compile_with_entries(program, &entries, &Options::default());
    let from_table = from_table.expect("probed");
    let bytes = compiled.code().len();
    println!(
        "{name}, {} instructions, {bytes} bytes of code",
        program.len()
    );
    let socket = packet::Program::new(program.insns().to_vec()).expect("sockets take it too");
    for (name, list) in &call_lists() {
        println!("{name}");
        let images: Vec<[u32; 16]> = list.iter().map(|call| call.image(Endian::Little)).collect();
        let swapped: Vec<Vec<u8>> = images
            .iter()
            .map(|image| image.iter().flat_map(|word| word.to_be_bytes()).collect())
            .collect();
        let mut seen = code.nothing_seen();
        let mut contestants = vec![
            Contestant::new("machine code", || sum(&images, |image| compiled.run(image))),
            Contestant::new("cache, machine code", || {
                sum(&images, |image| {
                    let rest = |entry: u32| from_table.run_entry(entry as usize, image);
                    table.answer(image[1], image[0], rest)
                })
            }),
            Contestant::new("threaded", || sum(&images, |image| threaded.run(image))),
            Contestant::new("coverage", || {
                sum(&images, |image| code.run(image, &mut seen))
            }),
            Contestant::new("reference", || {
                let ret = |call| decoded.run_traced(call, &mut |_| {}).ret as usize;
                list.iter().map(ret).sum()
            }),
        ];
        if let Some(libpcap) = libpcap {
            let (socket, swapped) = (&socket, &swapped);
            contestants.push(Contestant::new("libpcap", move || {
                let ret = |bytes: &Vec<u8>| libpcap.run(socket, bytes, 64) as usize;
                swapped.iter().map(ret).sum()
            }));
        }
        print!("{}", compare(&mut contestants, rounds));
    }
}

/// Where a program goes on after a look at the table of results.
fn entry(residual: &Residual) -> Entry {
    let State { a, x, memory } = residual.state;
    Entry {
        pc: residual.pc,
        a,
        x,
        memory,
    }
}

/// What compilation costs, and how much of it is memory: a program of one instruction needs the same calls.
fn compilation(name: &str, program: &Program, rounds: usize) {
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

//! Programs of `tcpdump` on packets, among them the table with which the patch of extended BPF began.

use std::hint::black_box;
use std::time::Instant;

use tamis_bench::ratio::Contestant;
use tamis_bpf::interp;
use tamis_bpf::packet::{Packet, Program};
use tamis_ebpf_vm::direct::{self, Given};
use tamis_jit::{Options, Socket};
use tamis_kernel::bpf::{Loaded, load_classifier};
use tamis_pcap::Libpcap;
use tamis_testkit::skip::{self, Need};
use tamis_vm::threaded::Threaded;

use crate::rbpf_vm::{Vm, bytes};
use crate::table::Table;
use crate::{EVALUATIONS, sum};

/// The distance of packets, more than the machine prefetches for one.
const DISTANCE_BYTES: usize = 2048;

/// The size of `struct __sk_buff`.
const SOCKET_BUFFER_BYTES: usize = 192;

/// An expression with times in the patch of extended BPF.
struct Seed {
    expression: &'static str,
    /// The patch's nanoseconds for the same packet, and for 10,000.
    patch: [PatchTimes; 2],
}

/// The times in the patch of extended BPF (Linux commit bd4cf0ed331a, x86-64), in nanoseconds.
#[derive(Clone, Copy)]
struct PatchTimes {
    old_interpreter: f64,
    new_interpreter: f64,
    old_jit: f64,
}

const SEEDS: [Seed; 2] = [
    Seed {
        expression: "port 22",
        patch: [patch(90.0, 31.0, 12.0), patch(101.0, 71.0, 34.0)],
    },
    Seed {
        expression: "tcp port 22 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)",
        patch: [patch(192.0, 47.0, 17.0), patch(202.0, 97.0, 44.0)],
    },
];

const fn patch(old_interpreter: f64, new_interpreter: f64, old_jit: f64) -> PatchTimes {
    PatchTimes {
        old_interpreter,
        new_interpreter,
        old_jit,
    }
}

/// Times all evaluators on both programs.
pub(crate) fn run(libpcap: &Libpcap, rounds: usize) {
    for seed in &SEEDS {
        let insns = libpcap.compile(seed.expression);
        let insns = insns.expect("a legal expression");
        let program = Program::new(insns).expect("libpcap's programs are legal");
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
        let cases = [("the same packet", &same), ("10,000 packets", &far)];
        for ((name, list), patch) in cases.into_iter().zip(seed.patch) {
            println!(
                "{}, {} instructions, {name}",
                seed.expression,
                program.len()
            );
            let kernel = kernel(&program, name == "the same packet");
            let table = table(libpcap, &program, list, kernel.as_ref(), rounds);
            table.print();
            beside_the_patch(patch, &table);
        }
    }
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

/// The patch's columns beside ours: times, and ratios to the classic interpreter, which is the kernel's old one and libpcap's.
fn beside_the_patch(patch: PatchTimes, table: &Table) {
    let old = patch.old_interpreter;
    let ours = |name| table.ns(name).unwrap_or(f64::NAN);
    println!(
        "  {:<36} {:>8} {:>7} {:>8} {:>7}",
        "", "patch", "x", "here", "x"
    );
    for (kind, patch_ns, here) in [
        ("classic interpreter", old, "libpcap"),
        ("new interpreter", patch.new_interpreter, "threaded"),
        ("machine code", patch.old_jit, "jit"),
        ("machine code, batch", f64::NAN, "jit, batch"),
    ] {
        let number = |value: f64| match value.is_nan() {
            true => "-".to_owned(),
            false => format!("{value:.1}"),
        };
        let ns = ours(here);
        let [patch_x, x] = [old / patch_ns, ours("libpcap") / ns];
        println!(
            "  {kind:<36} {:>8} {:>7} {:>8} {:>7}",
            number(patch_ns),
            number(patch_x),
            number(ns),
            number(x)
        );
    }
}

/// The program in the kernel, and the one that does nothing.
fn kernel(program: &Program, is_wanted: bool) -> Option<[Loaded; 2]> {
    if !is_wanted {
        return None;
    }
    let nothing = Program::new(vec![tamis_bpf::packet::Op::RetImm(0).into()]).expect("legal");
    let loaded = |program: &Program| {
        let extended = direct::packet(program, Given::SocketBuffer)?;
        let loaded = load_classifier(extended.insns());
        Some(loaded.unwrap_or_else(|reason| skip::because(Need::Live, reason)))
    };
    Some([loaded(program)?, loaded(&nothing)?])
}

fn table(
    libpcap: &Libpcap,
    program: &Program,
    list: &[Packet<'_>],
    kernel: Option<&[Loaded; 2]>,
    rounds: usize,
) -> Table {
    let compiled = Socket::compile(program, &Options::default()).expect("probed");
    let threaded = Threaded::packet(program);
    // The minimal cost of a call: no program is shorter.
    let shortest = Program::new(vec![tamis_bpf::packet::Op::RetImm(1).into()]).expect("legal");
    let shortest_jit = Socket::compile(&shortest, &Options::default()).expect("probed");
    let shortest_threaded = Threaded::packet(&shortest);
    let direct = direct::packet(program, Given::Ends).map(|extended| bytes(&extended));
    let vm = direct.as_ref().and_then(|bytes| Vm::new(bytes).ok());
    let expected = interp::run_packet(program, &list[0]).ret;
    assert_eq!(compiled.run(&list[0]), expected);
    assert_eq!(threaded.run(&list[0]), expected);
    let (mut rets, mut shortest_rets) = (vec![0; list.len()], vec![0; list.len()]);
    let mut contestants = vec![
        Contestant::new("libpcap", || {
            sum(list, |packet| {
                libpcap.run(program, packet.bytes, packet.len_bytes)
            })
        }),
        Contestant::new("reference", || {
            sum(list, |packet| interp::run_packet(program, packet).ret)
        }),
        Contestant::new("threaded", || sum(list, |packet| threaded.run(packet))),
        Contestant::new("jit", || sum(list, |packet| compiled.run(packet))),
        Contestant::new("jit, batch", || {
            compiled.run_batch(black_box(list), &mut rets);
            rets[0] as usize
        }),
        Contestant::new("touching the packet", || {
            sum(list, |packet| u32::from(packet.bytes[12]))
        }),
        Contestant::new("threaded, one return", || {
            sum(list, |packet| shortest_threaded.run(packet))
        }),
        Contestant::new("jit, one return", || {
            sum(list, |packet| shortest_jit.run(packet))
        }),
        // The cost of prefetching the bytes.
        Contestant::new("jit, one return, batch", || {
            shortest_jit.run_batch(black_box(list), &mut shortest_rets);
            shortest_rets[0] as usize
        }),
    ];
    if let Some(vm) = &vm {
        contestants.extend(of_rbpf(vm, list, expected));
    }
    if let Some(loaded) = kernel {
        contestants.extend(of_kernel(loaded, list, expected));
    }
    let mut table = Table::new(contestants, rounds, list.len());
    table.subtract("kernel", "kernel, empty");
    table
}

fn of_rbpf<'a>(vm: &'a Vm<'_>, list: &'a [Packet<'_>], expected: u32) -> Vec<Contestant<'a>> {
    let interpreted = |packet: &Packet<'_>| vm.run(packet.bytes, &ends(packet.bytes));
    assert_eq!(interpreted(&list[0]), expected);
    let mut contestants = vec![Contestant::new("rbpf", move || sum(list, interpreted))];
    if vm.has_machine_code {
        // It has the packet from the addresses in its context.
        let compiled = |packet: &Packet<'_>| vm.run_machine_code(&mut [], &mut ends(packet.bytes));
        assert_eq!(compiled(&list[0]), expected);
        contestants.push(Contestant::new("rbpf, jit", move || sum(list, compiled)));
    }
    contestants
}

/// The kernel on the first packet, as often as there are packets: one system call is a round.
fn of_kernel<'a>(
    [program, nothing]: &'a [Loaded; 2],
    list: &'a [Packet<'_>],
    expected: u32,
) -> Vec<Contestant<'a>> {
    let contestant = |name, loaded: &'a Loaded, expected| {
        let mut context = vec![0; SOCKET_BUFFER_BYTES];
        Contestant::with_own_clock(name, move || {
            let start = Instant::now();
            let run = loaded.test_run(list[0].bytes, &mut context, list.len() as u32);
            let time = start.elapsed();
            assert_eq!(run.expect("it runs").ret, expected);
            time
        })
    };
    vec![
        contestant("kernel", program, expected),
        contestant("kernel, empty", nothing, 0),
    ]
}

/// Where a packet begins and ends.
fn ends(packet: &[u8]) -> [u8; 16] {
    let range = packet.as_ptr_range();
    let mut ends = [0; 16];
    ends[..8].copy_from_slice(&(range.start as u64).to_le_bytes());
    ends[8..].copy_from_slice(&(range.end as u64).to_le_bytes());
    ends
}

//! The vectors of the kernel's `lib/test_bpf.c`: every evaluator of packet filters and of extended programs has the
//! results that the kernel's own tests state.
//!
//! The vectors are not committed. `cargo xtask vectors` extracts them from the kernel's source package and runs these
//! tests with the file in `TAMIS_KERNEL_VECTORS`.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader};

use tamis_abi::{Endian, host};
use tamis_bpf::Insn;
use tamis_bpf::packet::{Ancillary, Metadata, Packet, Program};
use tamis_bpf::program::insns_from_bytes;
use tamis_ebpf_vm::Program as ExtendedProgram;
use tamis_ebpf_vm::check::{Layout, Options as CheckOptions, check};
use tamis_ebpf_vm::convert::converted_packet;
use tamis_ebpf_vm::interp::{self, Fault};
use tamis_ebpf_vm::memory::{Context, Helpers, Memory};
use tamis_ebpf_vm::program::insns_from_bytes as insns_of_extended;
use tamis_ebpf_vm::threaded::Threaded;
use tamis_engine::{Engine, Options, PacketEvaluator};
use tamis_jit::Extended;
use tamis_testkit::skip::{self, Need};

/// The values beside the packet, as `populate_skb` of the kernel's tests sets them.
const METADATA: Metadata = Metadata::NONE
    .with(Ancillary::Protocol, 0x0800)
    .with(Ancillary::PacketType, 3)
    .with(Ancillary::InterfaceIndex, 577)
    .with(Ancillary::Mark, 0x1234_aaaa)
    .with(Ancillary::Queue, 123)
    .with(Ancillary::HardwareType, 588)
    .with(Ancillary::FlowHash, 0x1234_aaab)
    .with(Ancillary::Cpu, 0)
    .with(Ancillary::VlanTag, 0xffff)
    .with(Ancillary::HasVlanTag, 1)
    .with(Ancillary::VlanProtocol, 0x0800);

/// The values that [`METADATA`] has. The others the kernel finds in the packet or makes up: none of them is kept with a
/// captured packet.
fn known() -> Vec<Ancillary> {
    let mut known = Ancillary::ALL.to_vec();
    known.retain(|one| *one == Ancillary::XorX || METADATA.get(*one).is_some());
    known
}

/// More than any of the extended programs takes.
const MAX_STEPS: u64 = 1 << 24;

/// The kernel's tests don't check their programs, some of which have code that nothing reaches.
const CHECK: CheckOptions = CheckOptions {
    max_steps: 1 << 20,
    permits_unreachable: true,
};

/// The header of the link layer in bytes, `ETH_HLEN`.
const LINK_HEADER_BYTES: u32 = 14;

/// The byte order of the instructions in the file.
fn endian() -> Endian {
    host::TARGET.endian
}

/// A line of the file.
struct Vector {
    name: String,
    is_classic: bool,
    is_refused: bool,
    /// Whether the program gets a memory of the case's size, and no packet.
    has_memory: bool,
    /// The rest of a packet in two parts.
    fragment: Vec<u8>,
    packet: Vec<u8>,
    insns: Vec<u8>,
    /// The bytes of the packet or memory, and the result.
    cases: Vec<(usize, u32)>,
}

impl Vector {
    fn parse(line: &str) -> Vector {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, kind, error, memory, fragment, packet, insns, cases] = fields[..] else {
            panic!("{line:.80}: not eight fields");
        };
        let case = |text: &str| {
            let (size, result) = text.split_once(':')?;
            Some((size.parse().ok()?, result.parse().ok()?))
        };
        Vector {
            name: name.to_owned(),
            is_classic: kind == "classic",
            is_refused: error != "0",
            has_memory: memory != "0",
            fragment: bytes(fragment),
            packet: bytes(packet),
            insns: bytes(insns),
            cases: cases.split(',').filter_map(case).collect(),
        }
    }

    /// The packet of a case.
    fn bytes(&self, size: usize) -> Vec<u8> {
        [&self.packet[..size], &self.fragment].concat()
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16).expect("a digit") as u8;
    let pairs = hex.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// Calls `see` with every vector of one kind.
fn for_each(is_classic: bool, mut see: impl FnMut(&Vector)) {
    let Some(path) = env::var_os("TAMIS_KERNEL_VECTORS") else {
        skip::because(Need::Vectors, "TAMIS_KERNEL_VECTORS names no file");
    };
    let file = File::open(&path).expect("the file can be read");
    for line in BufReader::new(file).lines() {
        let vector = Vector::parse(&line.expect("a line of text"));
        if vector.is_classic == is_classic {
            see(&vector);
        }
    }
}

#[test]
fn of_packet_filters() {
    let known = known();
    let (mut refused, mut cases, mut without_value) = (0, 0, Vec::new());
    for_each(true, |vector| {
        let insns: Vec<Insn> =
            insns_from_bytes(&vector.insns, endian()).expect("whole instructions");
        let program = Program::new(insns).ok();
        // The kernel also refuses what it can't convert.
        let program = program.filter(|program| converted_packet(program, endian()).is_ok());
        assert_eq!(program.is_none(), vector.is_refused, "{}", vector.name);
        let Some(program) = program else {
            refused += 1;
            return;
        };
        if program.unanswered(|one| known.contains(&one)).is_some() {
            without_value.push(vector.name.clone());
            return;
        }
        for (size, result) in &vector.cases {
            let bytes = vector.bytes(*size);
            let packet = Packet {
                network_start: LINK_HEADER_BYTES.min(*size as u32),
                metadata: &METADATA,
                ..Packet::new(&bytes)
            };
            for engine in [Engine::Reference, Engine::Threaded, Engine::Jit] {
                let options = Options {
                    engine,
                    ..Options::default()
                };
                let Ok(evaluator) = PacketEvaluator::new(&program, &known, &options) else {
                    assert!(engine == Engine::Jit, "{}: {engine:?}", vector.name);
                    continue;
                };
                let ret = evaluator.run(&packet);
                assert_eq!(ret, *result, "{}: {engine:?}", vector.name);
            }
            cases += 1;
        }
    });
    println!(
        "{refused} refused; {cases} cases agree; no captured packet has the value: {without_value:?}"
    );
    assert!(refused >= 9 && cases >= 90 && without_value.len() < 25);
}

#[test]
fn of_extended_programs() {
    let (mut results, mut on_all_engines, mut unchecked) = (0, 0, Vec::new());
    for_each(false, |vector| {
        let insns = insns_of_extended(&vector.insns, endian()).expect("whole instructions");
        let program = match ExtendedProgram::new(insns, endian()) {
            Ok(program) => program,
            Err(error) => return unchecked.push(format!("{}: {error}", vector.name)),
        };
        let layout = Layout::none();
        let checked = check(program.clone(), &layout, &Helpers::none(), &CHECK);
        let threaded = checked.as_ref().ok().map(Threaded::new);
        let compiled = checked
            .as_ref()
            .ok()
            .and_then(|checked| Extended::compile(checked, &tamis_jit::Options::default()).ok());
        for (size, result) in &vector.cases {
            let mut context = vec![0; if vector.has_memory { *size } else { 0 }];
            let packet = if vector.has_memory {
                Vec::new()
            } else {
                vector.bytes(*size)
            };
            let mut run = |engine: &dyn Fn(&mut Memory<'_>) -> Result<u64, Fault>| {
                engine(&mut Memory::new(
                    Context::Writable(&mut context),
                    &packet,
                    endian(),
                ))
            };
            let reference = run(&|memory| {
                interp::run(&program, memory, &mut Helpers::none(), MAX_STEPS).map(|run| run.ret)
            });
            match reference {
                Ok(ret) => assert_eq!(ret as u32, *result, "{}", vector.name),
                Err(fault) => {
                    assert!(checked.is_err(), "{}: {fault}", vector.name);
                    unchecked.push(format!("{}: {fault}", vector.name));
                    continue;
                }
            }
            results += 1;
            if let Some(threaded) = &threaded {
                let ret = run(&|memory| threaded.run(memory, &mut Helpers::none()));
                assert_eq!(ret.map(|ret| ret as u32), Ok(*result), "{}", vector.name);
            }
            if let Some(compiled) = &compiled {
                let ret = run(&|memory| compiled.run(memory, &mut Helpers::none()));
                assert_eq!(ret.map(|ret| ret as u32), Ok(*result), "{}", vector.name);
                on_all_engines += 1;
            }
        }
    });
    println!(
        "{results} results agree, {on_all_engines} of them on all engines; no checker would accept:"
    );
    for program in &unchecked {
        println!("  {program}");
    }
    assert!(results >= 900 && unchecked.len() < 25);
}

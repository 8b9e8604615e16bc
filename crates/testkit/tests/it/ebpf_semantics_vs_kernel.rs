//! Every operation of extended BPF on numbers at the edges has the same result in the running kernel.
//!
//! A filter of sockets takes two numbers from its context, applies one operation and stores the result there, so all 64
//! bits are compared.

use tamis_abi::Endian;
use tamis_ebpf_vm::insn::Address;
use tamis_ebpf_vm::interp;
use tamis_ebpf_vm::memory::{Context, Helpers, Memory};
use tamis_ebpf_vm::{AluOp, Atomic, Bits, Cond, Op, Program, Reg, Size, Source, Swap, Width, text};
use tamis_kernel::bpf::load_socket_filter;
use tamis_testkit::skip::{self, Need};

const EDGES: [u64; 14] = [
    0,
    1,
    2,
    31,
    33,
    64,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x0102_0304_0506_0708,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];
/// Where the two numbers are in `struct __sk_buff`: in `cb`.
const NUMBERS: [usize; 2] = [48, 56];
const CONTEXT_BYTES: usize = 192;

const A: Reg = Reg::R0;
const B: Reg = Reg::ALL[2];

/// The operations under test, on A and B; the result is in A.
fn operations() -> Vec<Vec<Op>> {
    let mut all = Vec::new();
    let frame = Address {
        base: Reg::FRAME,
        offset: -8,
    };
    for width in Width::ALL {
        for op in AluOp::ALL {
            all.push(vec![Op::Alu(width, op, A, Source::Reg(B))]);
            for imm in [1, 7, 31, -1, i32::MIN] {
                let is_shift = matches!(op, AluOp::Lsh | AluOp::Rsh | AluOp::Arsh);
                if !is_shift || imm >= 0 {
                    all.push(vec![Op::Alu(width, op, A, Source::Imm(imm))]);
                }
            }
        }
        all.push(vec![Op::Neg(width, A)]);
        for bits in [Bits::B8, Bits::B16, Bits::B32] {
            if bits != Bits::B32 || width == Width::W64 {
                all.push(vec![Op::MoveSigned(width, bits, A, B)]);
            }
        }
        for cond in Cond::ALL {
            for source in [Source::Reg(B), Source::Imm(31), Source::Imm(-1)] {
                let no = Op::Alu(Width::W64, AluOp::Mov, A, Source::Imm(0));
                all.push(vec![Op::Branch(width, cond, A, source, 1), no]);
            }
        }
        for atomic in Atomic::ALL {
            let [stored, sum] = [
                Op::Store(Size::D, frame, B),
                Op::Alu(Width::W64, AluOp::Add, A, Source::Reg(B)),
            ];
            let memory = [
                Op::Load(Size::D, Reg::R1, frame),
                Op::Alu(Width::W64, AluOp::Mul, A, Source::Imm(31)),
                Op::Alu(Width::W64, AluOp::Add, A, Source::Reg(Reg::R1)),
            ];
            let apply = Op::Atomic(width, atomic, frame, B);
            all.push([&[stored, apply, sum][..], &memory].concat());
            // With the value that a comparing exchange expects, in part or whole.
            let same = Op::Alu(width, AluOp::Mov, A, Source::Reg(B));
            all.push([&[stored, same, apply, sum][..], &memory].concat());
        }
    }
    for swap in [Swap::Little, Swap::Big, Swap::Always] {
        for bits in [Bits::B16, Bits::B32, Bits::B64] {
            all.push(vec![Op::Swap(swap, bits, A)]);
        }
    }
    for size in Size::ALL {
        let store = Op::Store(Size::D, frame, A);
        all.push(vec![store, Op::Load(size, A, frame)]);
        all.push(vec![
            store,
            Op::StoreImm(size, frame, -2),
            Op::Load(Size::D, A, frame),
        ]);
        if size != Size::D {
            all.push(vec![store, Op::LoadSigned(size, A, frame)]);
        }
    }
    all.push(vec![Op::LoadImm64(A, 0x8877_6655_4433_2211)]);
    all
}

fn program(operation: &[Op]) -> Program {
    let at = |number: usize| Address {
        base: Reg::R6,
        offset: NUMBERS[number] as i16,
    };
    let mov = |dst, source| Op::Alu(Width::W64, AluOp::Mov, dst, source);
    let begin = [
        mov(Reg::R6, Source::Reg(Reg::R1)),
        Op::Load(Size::D, A, at(0)),
        Op::Load(Size::D, B, at(1)),
    ];
    let end = [
        Op::Store(Size::D, at(0), A),
        mov(A, Source::Imm(0)),
        Op::Exit,
    ];
    let ops = [&begin[..], operation, &end].concat();
    Program::from_ops(&ops, Endian::Little).expect("it ends")
}

#[test]
fn on_the_edges() {
    if cfg!(target_endian = "big") {
        skip::because(
            Need::Live,
            "the programs here are for little-endian machines",
        );
    }
    if let Err(error) = load_socket_filter(program(&[]).insns()) {
        skip::because(Need::Live, error);
    }
    let mut results = 0;
    for operation in operations() {
        let program = program(&operation);
        let text = || text::disassemble(program.insns());
        let loaded = load_socket_filter(program.insns());
        let loaded = loaded.unwrap_or_else(|error| panic!("{error}\n{}", text()));
        for (a, b) in EDGES.iter().flat_map(|a| EDGES.iter().map(move |b| (a, b))) {
            let mut ours = [0; CONTEXT_BYTES];
            ours[NUMBERS[0]..NUMBERS[1]].copy_from_slice(&a.to_le_bytes());
            ours[NUMBERS[1]..NUMBERS[1] + 8].copy_from_slice(&b.to_le_bytes());
            let mut kernel = ours;
            loaded.test_run(&[0; 64], &mut kernel, 1).expect("it runs");
            let mut memory = Memory::new(Context::Writable(&mut ours), &[], Endian::Little);
            let run = interp::run(&program, &mut memory, &mut Helpers::none(), 100);
            run.unwrap_or_else(|fault| panic!("{fault}\n{}", text()));
            let result = |context: [u8; CONTEXT_BYTES]| context[NUMBERS[0]..NUMBERS[1]].to_vec();
            assert_eq!(result(ours), result(kernel), "{a:#x} {b:#x}\n{}", text());
            results += 1;
        }
    }
    println!("{results} results");
}

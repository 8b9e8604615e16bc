//! The cost of programs at the tracepoints of calls for every call of the machine: empty ones, which are the bound, and
//! those of the recorder while it records another task.
//!
//! Prints nanoseconds per call of `getppid`: the minimum and the median of interleaved rounds, and the difference from
//! none. Needs root, and is imprecise on a busy machine.

use std::any::Any;
use std::time::Instant;

use tamis_abi::Arch;
use tamis_bpf::extended::Insn;
use tamis_kernel::NATIVE_ENDIAN;
use tamis_kernel::bpf::{self, Attached};
use tamis_recorder::ebpf::{Btf, Options, Recorder};

const ROUNDS: usize = 41;
const CALLS: u32 = 200_000;

/// Programs that do nothing at these tracepoints.
fn empty(tracepoints: &[&str]) -> Vec<Attached> {
    let types = bpf::types().expect("the kernel's types");
    let btf = Btf::parse(&types).expect("types");
    // `r0 = 0`, `exit`.
    let program = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    let program = program.map(|bytes| Insn::from_bytes(bytes, NATIVE_ENDIAN));
    let attach = |tracepoint: &&str| {
        let name = format!("btf_trace_{tracepoint}");
        let ([id], []) = btf.find([name.as_str()], [], []).expect("types");
        let id = id.expect("a tracepoint");
        bpf::attach_tracepoint(id, &program).expect("root")
    };
    tracepoints.iter().map(attach).collect()
}

/// Nanoseconds a call.
fn round() -> f64 {
    let began = Instant::now();
    for _ in 0..CALLS {
        // SAFETY: the call has no arguments and always succeeds.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
    began.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// A value that keeps a program attached.
type Attach = fn() -> Box<dyn Any>;

const CASES: [(&str, Attach); 6] = [
    ("none", || Box::new(())),
    ("empty, entries", || Box::new(empty(&["sys_enter"]))),
    ("empty, exits", || Box::new(empty(&["sys_exit"]))),
    ("empty, both", || {
        Box::new(empty(&["sys_enter", "sys_exit"]))
    }),
    ("recorder", || {
        Box::new(Recorder::new(Options::default()).expect("root"))
    }),
    ("recorder, values and times", || {
        let options = Options {
            values: true,
            times: true,
            ..Options::default()
        };
        Box::new(Recorder::new(options).expect("root"))
    }),
];

fn main() {
    if tamis_abi::host::arch() != Some(Arch::X86_64) {
        return println!("the recorder's programs are for x86-64");
    }
    let mut taken = vec![Vec::new(); CASES.len()];
    for _ in 0..ROUNDS {
        for ((_, attach), taken) in CASES.iter().zip(&mut taken) {
            let attached = attach();
            taken.push(round());
            drop(attached);
        }
    }
    let mut none = [0.0; 2];
    println!(
        "{:<28} {:>16} {:>16}",
        "at the tracepoints", "least", "median"
    );
    for ((name, _), taken) in CASES.iter().zip(&mut taken) {
        taken.sort_by(f64::total_cmp);
        let shown = [taken[0], taken[ROUNDS / 2]];
        if *name == "none" {
            none = shown;
        }
        let cell = |at: usize| format!("{:.0} ns {:+.0}", shown[at], shown[at] - none[at]);
        println!("{name:<28} {:>16} {:>16}", cell(0), cell(1));
    }
}

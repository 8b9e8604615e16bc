//! The integration tests of the workspace's libraries, in one executable: random and real programs and policies
//! through the compiler, the prover, the languages, the fuzzer and the running kernel.
//!
//! One executable is linked once, with every library once. Tests that install filters do so in child processes or in
//! threads of their own, so no test needs a separate process; those that fork thousands of times are in
//! `../vs_kernel`. `cargo test -p tamis-testkit NAME::` runs one module.

#[macro_use]
extern crate tamis_testkit;

mod algebra;
mod bpf_asm_oracle;
mod cacheable;
mod certificates;
mod compile_corpus;
mod compile_random;
mod container_defaults;
mod corpus_vectors;
mod decompile;
mod degenerate;
mod difference;
mod docker_libseccomp;
mod dropin_hostile;
mod dropin_libseccomp;
mod dropin_man;
mod dropin_next;
mod dropin_work;
mod ebpf_convert;
mod ebpf_engines;
mod ebpf_semantics_vs_kernel;
mod ebpf_vs_kernel;
mod engines;
mod evaluators;
mod exports;
mod firecracker;
mod fleets;
mod formats;
mod fuzz_corpus;
mod fuzz_mutants;
mod fuzz_smoke;
mod harmless;
mod hypercall_policies;
mod idempotence;
mod jit;
mod kafel;
mod kafel_oracle;
mod kernel_vectors;
mod languages;
mod learn;
mod learn_selectors;
mod list_lengths;
mod minijail;
mod minijail_oracle;
mod misreadings;
mod never_worse;
mod objectives;
mod oci_input;
mod oci_libseccomp;
mod oci_readings;
mod optimise;
mod pass_goldens;
mod pass_orders;
mod passes;
mod profiles;
mod program_forms;
mod program_text;
mod prover_corpus;
mod prover_gates;
mod prover_random;
mod prover_sabotage;
mod prover_z3;
mod python_module;
mod reading_work;
mod real_programs;
mod recorder;
mod result_cache;
mod rule_passes;
mod scmp_libseccomp;
mod snap_oracle;
mod sockets_vs_kernel;
mod spo_oracle;
mod systemd;
mod systemd_oracle;
mod variables;
mod widths_vs_kernel;

use std::process::ExitCode;

use tamis_testkit::harness;

fn main() -> ExitCode {
    harness::main()
}

/// Some properties of texts bound the allocations of readers.
#[global_allocator]
static COUNTING: tamis_testkit::work::Counting = tamis_testkit::work::Counting;

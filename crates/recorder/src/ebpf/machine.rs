//! Where kernels keep the registers of a call, by architecture, and which interfaces of calls they have.
//!
//! The offsets are those in `struct pt_regs`. Its beginning is a part of the kernel's interface for tracers; what is
//! behind it on AArch64 (the first argument as it was, and the call's number) has not moved since 4.15.

use tamis_abi::Arch;

use super::programs::INTERFACES;

/// An architecture, for the programs.
#[derive(Debug)]
pub(super) struct Machine {
    /// The interfaces in the order of their rows: its own, that of 32-bit programs, and x32. At most [`INTERFACES`].
    pub(super) arches: &'static [Arch],
    /// The arguments of its own calls.
    pub(super) args: [u32; 6],
    /// The arguments of 32-bit calls.
    pub(super) compat_args: [u32; 6],
    /// The address behind the call.
    pub(super) ip: u32,
    /// The call's number, when it returns.
    pub(super) nr: u32,
    /// The member of `thread_info` that the programs read of the calling task.
    pub(super) flags: &'static str,
    /// Instructions after which w1 isn't zero if the call is a 32-bit one. The context is in r6, the flags are at
    /// r10 - 64; they change r1 only.
    pub(super) is_compat: &'static str,
    /// Whether bit 30 of a number stands for x32.
    pub(super) has_x32: bool,
}

/// x86-64: for 32-bit calls the kernel sets `TS_COMPAT` in the task.
pub(super) const X86_64: Machine = Machine {
    arches: &[Arch::X86_64, Arch::X86, Arch::X32],
    args: [112, 104, 96, 56, 72, 64],
    compat_args: [40, 88, 96, 104, 112, 32],
    ip: 128,
    nr: 120,
    flags: "status",
    is_compat: "
    r1 = *(u64 *)(r10 - 64)
    w1 &= 2 // TS_COMPAT
",
    has_x32: true,
};

/// AArch64: a 32-bit program runs in a mode of its own, which its saved state has. The result of a call takes the place of
/// the first argument, of which the kernel keeps a copy.
pub(super) const AARCH64: Machine = Machine {
    arches: &[Arch::Aarch64, Arch::Arm],
    args: [272, 8, 16, 24, 32, 40],
    compat_args: [272, 8, 16, 24, 32, 40],
    ip: 256,
    nr: 280,
    flags: "flags",
    is_compat: "
    r1 = *(u64 *)(r6 + 0)
    r1 = *(u64 *)(r1 + 264)
    w1 &= 16 // PSR_MODE32_BIT
",
    has_x32: false,
};

/// That of this program; elsewhere nothing is recorded.
pub(super) const HOST: &Machine = if cfg!(target_arch = "aarch64") {
    &AARCH64
} else {
    &X86_64
};

/// Whether the programs know this architecture.
pub(super) const IS_KNOWN: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

const _: () = assert!(X86_64.arches.len() <= INTERFACES && AARCH64.arches.len() <= INTERFACES);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ebpf::programs::{self, Facts};
    use crate::ebpf::view_programs;
    use tamis_bpf::{Op, Program};
    use tamis_kernel::NATIVE_ENDIAN;

    const MAPS: [&str; 12] = [
        "states",
        "counts",
        "totals",
        "times",
        "values",
        "lost_values",
        "numbers",
        "signals",
        "interest",
        "starts",
        "ring",
        "wanted",
    ];

    fn facts(machine: &'static Machine) -> Facts {
        Facts {
            machine,
            tasks: 1 << 15,
            cpus: 2,
            status: 8,
            pid: 16,
            seccomp_mode: 24,
            exit_code: 32,
            process: 40,
            pending: 48,
            signals: 56,
            threads: 64,
            has_values: true,
            has_times: true,
            is_confined: true,
            cgroup: None,
        }
    }

    /// Labels, names and registers are right on each machine, also on those that this isn't.
    #[test]
    fn the_programs_of_every_machine_can_be_assembled() {
        let filter = vec![Op::RetImm(0).into()];
        let filter = Program::new(filter, NATIVE_ENDIAN).expect("a program");
        let maps = MAPS.map(|name| (name, 3));
        for machine in [&X86_64, &AARCH64] {
            let facts = facts(machine);
            for text in programs::all(&facts) {
                let insns = programs::assemble(&text, &[], &facts, &maps);
                insns.unwrap_or_else(|error| panic!("{machine:?}: {error}"));
            }
            for text in view_programs::all(&filter).expect("a filter") {
                let insns = view_programs::assemble(&text, &facts, &maps);
                insns.unwrap_or_else(|error| panic!("{machine:?}: {error}"));
            }
        }
    }
}

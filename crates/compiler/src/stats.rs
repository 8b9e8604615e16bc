//! Figures about a program, for people and for tests that watch them.

use tamis_abi::{Arch, SeccompData, syscall};
use tamis_bpf::cache::is_cacheable;
use tamis_bpf::convert::kernel_len_insns;
use tamis_bpf::interp;

use tamis_bpf::Program;

/// Figures about a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// How many instructions it has.
    pub length_insns: usize,
    /// How many the kernel makes of them; the limit on all filters of a task counts these.
    pub kernel_insns: usize,
    /// Figures per architecture, in the order asked for.
    pub archs: Vec<ArchStats>,
}

/// Figures about the calls of one architecture: all that its table knows, each called once with all
/// arguments and the instruction pointer zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchStats {
    /// The architecture.
    pub arch: Arch,
    /// How many calls there are.
    pub calls: u32,
    /// How many of them the kernel allows without running the program, if its bitmap covers them; none
    /// of x32, which no bitmap covers.
    pub cacheable: u32,
    /// The steps of all of them together.
    pub total_steps: u64,
    /// The steps of the one that takes most.
    pub max_steps: u32,
}

impl ArchStats {
    /// The mean number of steps per call; 0 if there are no calls.
    pub fn mean_steps(&self) -> f64 {
        self.total_steps as f64 / f64::from(self.calls.max(1))
    }
}

impl Stats {
    /// The figures of a program for these architectures, by whatever compiler it was made. Runs the
    /// program once for every call that the architectures have.
    pub fn of(program: &Program, archs: impl IntoIterator<Item = Arch>) -> Stats {
        let archs = archs.into_iter();
        Stats {
            length_insns: program.len(),
            kernel_insns: kernel_len_insns(program),
            archs: archs.map(|arch| of_arch(program, arch)).collect(),
        }
    }
}

fn of_arch(program: &Program, arch: Arch) -> ArchStats {
    let mut stats = ArchStats {
        arch,
        calls: 0,
        cacheable: 0,
        total_steps: 0,
        max_steps: 0,
    };
    for (nr, _) in syscall::all(arch) {
        let data = SeccompData {
            nr: nr.0,
            arch: arch.audit(),
            ..SeccompData::default()
        };
        let steps = interp::run(program, &data).steps;
        stats.calls += 1;
        let has_bitmap = arch != Arch::X32;
        stats.cacheable += u32::from(has_bitmap && is_cacheable(program, arch.audit(), nr.0));
        stats.total_steps += u64::from(steps);
        stats.max_steps = stats.max_steps.max(steps);
    }
    stats
}

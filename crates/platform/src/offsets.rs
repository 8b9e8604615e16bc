//! The offsets of the parts of a call in `struct seccomp_data`, for filters.

#[cfg(target_arch = "x86_64")]
use tamis_abi::ArgIndex;
use tamis_abi::Word;
#[cfg(target_arch = "x86_64")]
use tamis_bpf::Test;
use tamis_bpf::{Op, Program};
use tamis_kernel::NATIVE_ENDIAN;

pub(crate) const NR: u32 = Word::NR.offset(NATIVE_ENDIAN);
pub(crate) const ARCH: u32 = Word::ARCH.offset(NATIVE_ENDIAN);
pub(crate) const IP_LOW: u32 = Word::IP_LOW.offset(NATIVE_ENDIAN);
pub(crate) const IP_HIGH: u32 = Word::IP_HIGH.offset(NATIVE_ENDIAN);

/// The lower half of an argument, 0 to 5.
#[cfg(target_arch = "x86_64")]
pub(crate) const fn low(arg: u32) -> u32 {
    Word::arg_low(ArgIndex::ALL[arg as usize]).offset(NATIVE_ENDIAN)
}

/// The upper half of an argument, 0 to 5.
#[cfg(target_arch = "x86_64")]
pub(crate) const fn high(arg: u32) -> u32 {
    Word::arg_high(ArgIndex::ALL[arg as usize]).offset(NATIVE_ENDIAN)
}

/// Whether a filter reads the address of calls.
pub(crate) fn reads_ip(filter: &Program) -> bool {
    filter
        .ops()
        .any(|op| matches!(op, Op::LoadData(IP_LOW | IP_HIGH)))
}

/// Instructions that continue behind themselves for calls that return to one of these addresses. For others they skip
/// `own_insns` more, which decide about a platform's own calls.
#[cfg(target_arch = "x86_64")]
pub(crate) fn branch_by_ip(ips: &[u64], own_insns: usize) -> Vec<Op> {
    let mut ops = Vec::new();
    for (index, ip) in ips.iter().enumerate() {
        let left = (ips.len() - 1 - index) * 4;
        ops.extend([
            Op::LoadData(IP_HIGH),
            Op::branch(Test::Eq, (ip >> 32) as u32, 0, 2),
            Op::LoadData(IP_LOW),
            Op::branch(Test::Eq, *ip as u32, left as u8 + 1, 0),
        ]);
    }
    ops.push(Op::Jump(own_insns as u32));
    ops
}

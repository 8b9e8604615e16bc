//! The cost of filters for calls that most services make.

use tamis_abi::{Arch, call};
use tamis_bpf::{Program, Stack};
use tamis_report::harden::{CallEntry, StackEntry};

/// Calls with arguments that most services allow.
const CALLS: [&str; 6] = [
    "read(0)",
    "futex()",
    "openat(AT_FDCWD)",
    "mmap(0, 4096, PROT_READ)",
    "socket(AF_UNIX)",
    "clone()",
];

/// The cost of filters, the oldest first.
pub(super) fn entry(filters: &[Program], arch: Arch) -> StackEntry {
    let stack = Stack::new(filters.to_vec()).unwrap_or_default();
    let calls = CALLS.iter().filter_map(|text| {
        let call = call::parse(text, arch).ok()?;
        Some(CallEntry {
            call: text.split('(').next().unwrap_or(text).to_owned(),
            steps: match stack.is_cacheable(call.arch, call.nr) {
                true => 0,
                false => stack.run(&call).steps,
            },
        })
    });
    StackEntry {
        filters: filters.len(),
        length_insns: filters.iter().map(Program::len).sum(),
        calls: calls.collect(),
    }
}

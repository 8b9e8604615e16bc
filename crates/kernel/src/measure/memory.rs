//! The memory of filters in the kernel, as far as it is visible.
//!
//! A filter has several parts in the kernel: the converted program in separate pages, a copy of the original and
//! the bitmaps in the slab, the machine code in areas shared by all BPF programs. Only the first is visible from
//! outside: `/proc/vmallocinfo` lists each area with the allocating function, to root. The result is the size of
//! the areas that appear while a child installs the filters. Other processes may install filters at the same time,
//! which can only increase it: the smallest of several results counts, once it was found twice.
//!
//! The kernel's limit is unrelated to bytes: see [`Stack::charge_insns`](tamis_bpf::Stack::charge_insns).

use std::collections::HashSet;
use std::error;
use std::fmt;
use std::fs;
use std::io;

use tamis_bpf::{Program, ebpf_len::kernel_len_insns};

use crate::sys::page;
use crate::sys::timing;

use super::MeasureError;
use super::child::Child;

/// The list of the kernel's memory areas.
const AREAS: &str = "/proc/vmallocinfo";
/// The names, or beginnings of names, of the kernel's functions that allocate the memory of a program. The second
/// is for programs that grow by conversion.
const ALLOCATIONS: [&str; 2] = ["bpf_prog_alloc", "bpf_prog_realloc"];
/// The most attempts.
const MAX_TRIES: usize = 12;
/// The size of a converted instruction.
const INSN_BYTES: u64 = 8;

/// The reason why the memory is unknown.
#[derive(Debug)]
#[non_exhaustive]
pub enum MemoryError {
    /// The list of memory areas can't be read; it needs root.
    NotReadable(io::Error),
    /// Other processes change the list too much at the same time.
    Unsteady,
    /// No child could install the filters.
    Measure(MeasureError),
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryError::NotReadable(error) => write!(f, "{AREAS} can't be read: {error}"),
            MemoryError::Unsteady => {
                f.write_str("other processes install BPF programs all the time")
            }
            MemoryError::Measure(error) => error.fmt(f),
        }
    }
}

impl error::Error for MemoryError {}

/// The bytes of pages for the converted programs of a stack. This isn't the total: see the [module](self).
///
/// # Errors
/// See [`MemoryError`].
pub fn program_bytes(stack: &[Program]) -> Result<u64, MemoryError> {
    let child = Child {
        calls: &[],
        series: &[],
        cpu: timing::last_cpu()
            .map_err(|errno| MemoryError::Measure(MeasureError::Start(errno)))?,
    };
    let insns: usize = stack.iter().map(kernel_len_insns).sum();
    let least_bytes = insns as u64 * INSN_BYTES;
    let mut answers = Vec::new();
    for _ in 0..MAX_TRIES {
        let before = areas()?;
        let mut with = Err(MemoryError::Unsteady);
        child
            .measure_and_look(0, stack, &mut || with = areas())
            .map_err(MemoryError::Measure)?;
        let bytes = new_pages(&before, &with?) * page::size_bytes();
        // A new area can have the address of one just freed, and not look new.
        if bytes >= least_bytes {
            answers.push(bytes);
        }
        if let Some(bytes) = agreed(&answers) {
            return Ok(bytes);
        }
    }
    Err(MemoryError::Unsteady)
}

/// The smallest result, if it was found twice.
fn agreed(answers: &[u64]) -> Option<u64> {
    let least = answers.iter().min()?;
    let votes = answers.iter().filter(|answer| *answer == least).count();
    (votes >= 2).then_some(*least)
}

fn areas() -> Result<String, MemoryError> {
    fs::read_to_string(AREAS).map_err(MemoryError::NotReadable)
}

/// The bytes of programs in one list of memory areas that aren't in another.
fn new_pages(before: &str, with: &str) -> u64 {
    let before: HashSet<&str> = before.lines().collect();
    let is_program = |line: &&str| {
        let mut fields = line.split_whitespace();
        fields.any(|field| ALLOCATIONS.iter().any(|name| field.starts_with(name)))
    };
    let pages = |line: &str| {
        let mut fields = line.split_whitespace();
        fields.find_map(|field| field.strip_prefix("pages=")?.parse::<u64>().ok())
    };
    let is_new = |line: &&str| !before.contains(line);
    let new = with.lines().filter(is_program).filter(is_new);
    new.filter_map(pages).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_programs_count_and_the_guard_page_does_not() {
        let old = "0x0000000012c94f1f-0x0000000007dfe7c3    8192 bpf_prog_alloc_no_stats+0x39/0x230 pages=1 vmalloc N0=1\n";
        let new = "\
0x0000000074b11850-0x00000000ff0ab318 2101248 bpf_prog_pack_alloc+0x28b/0x3a0 pages=512 vmalloc N0=512
0x0000000078902462-0x000000001769e592   20480 bpf_prog_alloc_no_stats+0x39/0x230 pages=4 vmalloc N0=4
0x0000000078902462-0x000000001769e593   12288 bpf_prog_realloc+0x39/0x230 pages=2 vmalloc N0=2
0x0000000078902462-0x000000001769e592   20480 load_module+0x39/0x230 pages=4 vmalloc N0=4
";
        assert_eq!(new_pages(old, &format!("{old}{new}")), 6);
        assert_eq!(new_pages(old, new), 6);
        assert_eq!(new_pages("", old), 1);
    }

    #[test]
    fn the_least_answer_counts_once_it_was_given_twice() {
        assert_eq!(agreed(&[12288, 4096, 8192, 4096]), Some(4096));
        assert_eq!(agreed(&[8192, 8192, 4096]), None);
        assert_eq!(agreed(&[]), None);
    }
}

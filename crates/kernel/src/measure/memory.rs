//! How much memory the kernel takes for filters, as far as it shows it.
//!
//! A filter lies in several places of the kernel: the converted program in pages of its own, a copy of the
//! original and the bitmaps in the slab, the machine code in areas that all BPF programs share. Only the
//! first can be seen from outside: `/proc/vmallocinfo` lists each piece with the function that asked for it,
//! to root. What is said here is how much more of it there is while a child has the filters than before.
//! Other processes may install filters at the same time, so that is asked several times, and the answer is
//! what most times agree on.
//!
//! The limit that the kernel sets has nothing to do with bytes: see
//! [`Stack::charge_insns`](tamis_bpf::Stack::charge_insns).

use std::error;
use std::fmt;
use std::fs;
use std::io;

use tamis_bpf::Program;

use crate::sys::page;
use crate::sys::timing;

use super::MeasureError;
use super::child::Child;

/// The list of the kernel's memory areas.
const AREAS: &str = "/proc/vmallocinfo";
/// The kernel's function that asks for the memory of a program, or how its name begins.
const ALLOCATION: &str = "bpf_prog_alloc";
/// How often it is asked.
const TRIES: usize = 5;
/// How many of the answers must agree.
const MIN_AGREEING: usize = 3;

/// Why it can't be told.
#[derive(Debug)]
#[non_exhaustive]
pub enum MemoryError {
    /// The list of memory areas can't be read; it needs root.
    NotReadable(io::Error),
    /// Other processes change too much at the same time.
    Unsteady,
    /// There was no child with the filters.
    Measure(MeasureError),
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryError::NotReadable(error) => write!(f, "{AREAS} can't be read: {error}"),
            MemoryError::Unsteady => {
                f.write_str("other processes install or drop BPF programs at the same time")
            }
            MemoryError::Measure(error) => error.fmt(f),
        }
    }
}

impl error::Error for MemoryError {}

/// How many bytes of pages the kernel takes for the converted programs of a stack. That isn't all: see
/// the [module](self).
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
    let mut answers = Vec::new();
    for _ in 0..TRIES {
        let before = used_bytes()?;
        let mut with = Err(MemoryError::Unsteady);
        child
            .measure_and_look(0, stack, &mut || with = used_bytes())
            .map_err(MemoryError::Measure)?;
        answers.push(with?.checked_sub(before));
    }
    agreed(&answers).ok_or(MemoryError::Unsteady)
}

/// The answer that most agree on, if enough do.
fn agreed(answers: &[Option<u64>]) -> Option<u64> {
    let votes = |answer: &u64| {
        answers
            .iter()
            .filter(|other| **other == Some(*answer))
            .count()
    };
    let best = answers
        .iter()
        .flatten()
        .max_by_key(|answer| votes(answer))?;
    (votes(best) >= MIN_AGREEING).then_some(*best)
}

/// What all BPF programs of the machine take together.
fn used_bytes() -> Result<u64, MemoryError> {
    let text = fs::read_to_string(AREAS).map_err(MemoryError::NotReadable)?;
    Ok(pages(&text) * page::size_bytes())
}

/// The pages of programs in a list of memory areas.
fn pages(areas: &str) -> u64 {
    let is_program = |line: &&str| {
        let mut fields = line.split_whitespace();
        fields.any(|field| field.starts_with(ALLOCATION))
    };
    let pages = |line: &str| {
        let mut fields = line.split_whitespace();
        fields.find_map(|field| field.strip_prefix("pages=")?.parse::<u64>().ok())
    };
    areas.lines().filter(is_program).filter_map(pages).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_count_and_the_guard_page_does_not() {
        let areas = "\
0x0000000012c94f1f-0x0000000007dfe7c3    8192 bpf_prog_alloc_no_stats+0x39/0x230 pages=1 vmalloc N0=1
0x0000000074b11850-0x00000000ff0ab318 2101248 bpf_prog_pack_alloc+0x28b/0x3a0 pages=512 vmalloc N0=512
0x0000000078902462-0x000000001769e592   20480 bpf_prog_alloc_no_stats+0x39/0x230 pages=4 vmalloc N0=4
0x0000000078902462-0x000000001769e592   20480 load_module+0x39/0x230 pages=4 vmalloc N0=4
";
        assert_eq!(pages(areas), 5);
    }

    #[test]
    fn one_disturbed_answer_does_not_count_and_three_do() {
        let answers = |list: [u64; 5]| agreed(&list.map(Some));
        assert_eq!(answers([4096, 4096, 12288, 4096, 4096]), Some(4096));
        assert_eq!(answers([4096, 8192, 12288, 4096, 0]), None);
        assert_eq!(agreed(&[None; 5]), None);
    }
}

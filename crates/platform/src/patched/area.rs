//! The memory that is mapped into a guest's process near the patched code: the stub, two tables, and trampolines.

use std::fs;
use std::ops::Range;

use tamis_abi::{Action, ActionKind, Arch, SeccompData, errno};
use tamis_bpf::{Program, cache};
use tamis_vm::Evaluator;

use crate::sys::stub;

/// The offset of the table of numbers, which has an action for the low half of each call's number.
pub(super) const NUMBERS: usize = 0x2000;
/// The offset of the trampolines.
pub(super) const TRAMPOLINES: usize = NUMBERS + 0x1_0000;
/// The size of an area in bytes.
pub(super) const LEN_BYTES: usize = TRAMPOLINES + 0x4000;
/// The distance of an area from its mapping, so that neither grows into the other.
const MARGIN_BYTES: u64 = 0x1_0000;
/// The greatest distance between the ends of a jump.
const REACH_BYTES: u64 = (1 << 31) - 0x10_0000;
/// More bytes than any trampoline has.
const LARGEST_BYTES: usize = 128;
/// The lowest address of a mapping, `vm.mmap_min_addr`.
const LOWEST: u64 = 0x1_0000;

/// An area of a guest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) start: u64,
    /// The bytes of trampolines in use.
    pub(super) used: usize,
}

impl Area {
    /// The address of the next trampoline.
    pub(super) const fn next(&self) -> u64 {
        self.start + (TRAMPOLINES + self.used) as u64
    }

    /// Whether the area contains an address.
    pub(super) const fn contains(&self, address: u64) -> bool {
        address >= self.start && address < self.start + LEN_BYTES as u64
    }

    /// Whether its trampolines reach the code, and it has room for one more.
    const fn serves(&self, code: &Range<u64>) -> bool {
        reaches(self.start, code) && TRAMPOLINES + self.used + LARGEST_BYTES <= LEN_BYTES
    }
}

/// The first of these areas that has room for a trampoline and reaches the code.
pub(super) fn serving(areas: &[Area], code: &Range<u64>) -> Option<usize> {
    areas.iter().position(|area| area.serves(code))
}

const fn reaches(area: u64, code: &Range<u64>) -> bool {
    area.abs_diff(code.end) < REACH_BYTES
        && (area + LEN_BYTES as u64).abs_diff(code.start) < REACH_BYTES
        && area.abs_diff(code.start) < REACH_BYTES
}

/// The guest's filter, reduced to actions by call numbers, for the tables of areas.
#[derive(Debug)]
pub(crate) struct Numbers {
    actions: Vec<Option<Action>>,
}

impl Numbers {
    /// The numbers of a filter.
    pub(crate) fn new(program: &Program, evaluator: &Evaluator) -> Numbers {
        let action = |nr| match cache::is_cacheable(program, Arch::X86_64.audit(), nr) {
            true => Some(Action::ALLOW),
            false => constant(evaluator, nr),
        };
        Numbers {
            actions: (0..stub::ERRORS as u32).map(action).collect(),
        }
    }

    /// Whether the filter allows all calls with a number.
    pub(super) fn allows(&self, nr: i64) -> bool {
        self.actions[nr as usize].is_some_and(|action| action.kind == ActionKind::Allow)
    }

    /// The filter's action for all calls with a number, if it is constant.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn action(&self, nr: i64) -> Option<Action> {
        let action = self.actions.get(usize::try_from(nr).ok()?)?;
        *action
    }

    /// The tables for code in a guest.
    pub(crate) fn tables(&self) -> Tables {
        let mut tables = Tables {
            numbers: [stub::BY_KERNEL; stub::ERRORS],
            errors: [0; stub::ERRORS],
        };
        let places = tables.numbers.iter_mut().zip(&mut tables.errors);
        for (action, (number, error)) in self.actions.iter().zip(places) {
            let action = action.unwrap_or(ASK_FIRST);
            (*number, *error) = match action.kind {
                ActionKind::Notify => (stub::ASK, 0),
                ActionKind::Errno => (stub::FAIL, -(action.data.min(errno::MAX) as i16)),
                _ => (stub::BY_KERNEL, 0),
            };
        }
        tables
    }

    /// The contents of an area, without trampolines, as pieces with their offsets.
    pub(super) fn contents(&self, threads: u64) -> [(usize, Vec<u8>); 3] {
        let Tables { numbers, errors } = self.tables();
        let errors = errors.iter().flat_map(|error| error.to_le_bytes());
        [
            (0, stub::code(threads)),
            (stub::ERRORS_OFFSET, errors.collect()),
            (NUMBERS, numbers.to_vec()),
        ]
    }
}

/// The actions that code in a guest takes by the number of a call. The guest can change them without bypassing the
/// filter: the kernel decides about calls that the guest makes itself.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// Whether the kernel decides, the supervisor decides, or the call fails.
    pub(crate) numbers: [u8; stub::ERRORS],
    /// Negative error numbers.
    pub(crate) errors: [i16; stub::ERRORS],
}

/// The action for calls that the filter decides by their arguments.
const ASK_FIRST: Action = Action::new(ActionKind::Notify, 0);

/// The filter's action for all calls with a number, if it is constant.
fn constant(evaluator: &Evaluator, nr: u32) -> Option<Action> {
    let table = evaluator.table()?;
    let mut is_constant = true;
    let ret = table.answer(Arch::X86_64.audit(), nr, |_| {
        is_constant = false;
        0
    });
    is_constant.then(|| Action::from_ret(ret))
}

/// Whether the filter allows one call.
pub(super) fn allows(evaluator: &Evaluator, call: &SeccompData) -> bool {
    Action::from_ret(evaluator.run(call)).kind.executes()
}

/// A mapping of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) range: Range<u64>,
    pub(super) access: String,
    /// Device, inode and offset, which identify the bytes of the file.
    pub(super) source: String,
    pub(super) is_file: bool,
}

/// The mappings of a process, in order.
pub(super) fn mappings(tid: i32) -> Option<Vec<Mapping>> {
    let maps = fs::read_to_string(format!("/proc/{tid}/maps")).ok()?;
    maps.lines().map(parse).collect()
}

fn parse(line: &str) -> Option<Mapping> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let access = fields.next()?.to_owned();
    let (offset, device, inode) = (fields.next()?, fields.next()?, fields.next()?);
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        range: address(start)?..address(end)?,
        access,
        source: format!("{offset} {device} {inode}"),
        is_file: inode != "0",
    })
}

/// An unmapped address for an area that reaches the code: the highest below it, else the lowest above.
pub(super) fn place(mappings: &[Mapping], code: &Range<u64>) -> Option<u64> {
    let starts = mappings.iter().map(|one| one.range.start);
    let ends = std::iter::once(LOWEST).chain(mappings.iter().map(|one| one.range.end));
    let gaps = ends.zip(starts);
    let wanted = LEN_BYTES as u64 + 2 * MARGIN_BYTES;
    let fits = gaps.filter(|(end, start)| start.saturating_sub(*end) >= wanted);
    let (below, above): (Vec<_>, Vec<_>) = fits.partition(|(_, start)| *start <= code.start);
    let below = below
        .into_iter()
        .rev()
        .map(|(_, start)| start - MARGIN_BYTES - LEN_BYTES as u64);
    let above = above.into_iter().map(|(end, _)| end + MARGIN_BYTES);
    below.chain(above).find(|address| reaches(*address, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_near_code_and_apart_from_mappings() {
        let maps = "00400000-00500000 r-xp 00000000 08:01 42 /bin/x\n\
            7f0000000000-7f0000100000 r-xp 00001000 08:01 43 /lib/a b.so\n\
            7fff00000000-7fff00021000 rw-p 00000000 00:00 0 [stack]\n";
        let all: Vec<Mapping> = maps.lines().map(|line| parse(line).unwrap()).collect();
        assert_eq!((all[1].is_file, all[2].is_file), (true, false));
        assert_eq!(all[1].source, "00001000 08:01 43");
        for mapping in &all[..2] {
            let at = place(&all, &mapping.range).unwrap();
            let own = at..at + LEN_BYTES as u64;
            assert!(own.end <= mapping.range.start && own.start >= LOWEST);
            assert!(reaches(at, &mapping.range));
        }
    }
}

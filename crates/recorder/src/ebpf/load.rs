//! Loading programs, each by itself.
//!
//! Kernels differ in what their verifiers know of a tracepoint's arguments. A program that can't be loaded costs what it alone records,
//! if others do without; for the rest nothing is recorded.

use std::fmt;

use tamis_ebpf::Insn;
use tamis_kernel::bpf::{self, Attached};

use super::Unavailable;
use super::btf::BtfError;

/// The tracepoints whose programs others do without, and what those record.
const COLUMNS: [(&str, &str); 2] = [
    ("signal_generate", "calls for which filters send signals"),
    ("signal_deliver", "signals"),
];

/// What isn't recorded, because a program can't be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What, as a noun phrase in the plural.
    pub column: &'static str,
    /// Why the program can't be loaded.
    pub reason: Unavailable,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} are not recorded: {}", self.column, self.reason)
    }
}

/// A program: its tracepoint, the number of that one's type if the kernel has it, and its text.
pub(super) struct Program {
    pub(super) tracepoint: &'static str,
    pub(super) id: Option<u32>,
    pub(super) text: String,
}

/// Programs of these tracepoints.
pub(super) fn programs<const N: usize>(
    tracepoints: [&'static str; N],
    ids: [Option<u32>; N],
    texts: [String; N],
) -> impl Iterator<Item = Program> {
    let all = tracepoints.into_iter().zip(ids).zip(texts);
    all.map(|((tracepoint, id), text)| Program {
        tracepoint,
        id,
        text,
    })
}

/// Programs at their tracepoints, in order, and what isn't recorded.
///
/// # Errors
/// A program can't be loaded that others depend on.
pub(super) fn attach(
    programs: impl Iterator<Item = Program>,
    assemble: impl Fn(&str) -> Result<Vec<Insn>, String>,
) -> Result<(Vec<Attached>, Vec<Missing>), Unavailable> {
    let (mut attached, mut missing) = (Vec::new(), Vec::new());
    for program in programs {
        let column = COLUMNS
            .iter()
            .find(|(tracepoint, _)| *tracepoint == program.tracepoint);
        match (attach_one(&program, &assemble), column) {
            (Ok(one), _) => attached.push(one),
            (Err(reason), Some((_, column))) if !reason.is_denied() => {
                missing.push(Missing { column, reason });
            }
            (Err(reason), _) => return Err(reason),
        }
    }
    Ok((attached, missing))
}

fn attach_one(
    program: &Program,
    assemble: impl Fn(&str) -> Result<Vec<Insn>, String>,
) -> Result<Attached, Unavailable> {
    let tracepoint = program.tracepoint;
    let insns = assemble(&program.text);
    let insns = insns.map_err(|error| Unavailable::Bug(format!("{tracepoint}: {error}")))?;
    let no_type = || BtfError::NoType(format!("btf_trace_{tracepoint}"));
    let id = program.id.ok_or_else(|| Unavailable::Types(no_type()))?;
    bpf::attach_tracepoint(id, &insns).map_err(|error| Unavailable::Program { tracepoint, error })
}

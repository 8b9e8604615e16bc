//! Calls and values that programs and libraries need since a version.
//!
//! The rows are those of `needs.tsv`, each with its source; the columns are described there.

use std::sync::LazyLock;

use tamis_abi::{Arch, consts};
use tamis_rules::CmpOp;

use crate::target::Version;

const TABLE: &str = include_str!("needs.tsv");

/// A program or library that rows name.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    /// The newest version that was examined; `None` if the rows are about every version.
    newest: Option<&'static str>,
}

/// All of them, by name.
pub(crate) const TARGETS: [Known; 16] = [
    known("bash", "5.3"),
    Known {
        name: "chromium",
        newest: None,
    },
    known("crun", "1.21"),
    known("gcc-runtime", "15"),
    known("glibc", "2.44"),
    known("go", "1.26"),
    known("java", "25"),
    known("jemalloc", "5.3.1"),
    known("linux", "7.2"),
    known("mimalloc", "3.1"),
    known("musl", "1.2.6"),
    known("node", "25"),
    known("python", "3.14"),
    known("runc", "1.5"),
    known("rust", "1.90"),
    known("systemd", "262"),
];

const fn known(name: &'static str, newest: &'static str) -> Known {
    Known {
        name,
        newest: Some(newest),
    }
}

impl Known {
    /// The oldest version that a row names, and the newest known one; `None` if the rows are about every version.
    pub(crate) fn versions(&self) -> Option<(Version, Version)> {
        let newest = version(self.newest?);
        let own = ROWS.iter().filter(|row| row.who == self.name);
        let oldest = own.map(|row| row.since.clone()).min();
        Some((oldest.unwrap_or_else(|| newest.clone()), newest))
    }
}

/// A version of the tables.
fn version(text: &str) -> Version {
    text.parse().expect("the tables have versions")
}

/// A need.
pub(crate) struct Row {
    pub(crate) who: &'static str,
    pub(crate) since: Version,
    /// The last version with the need, if it ended.
    pub(crate) until: Option<Version>,
    arch: &'static str,
    pub(crate) call: &'static str,
    /// The condition on an argument, if only some calls are needed.
    pub(crate) when: Option<Condition>,
    /// The purpose of the call.
    pub(crate) why: &'static str,
    pub(crate) fallback: Fallback,
    /// What the table adds about the answers.
    pub(crate) remark: Option<&'static str>,
    pub(crate) source: &'static str,
}

/// The errors after which a program goes on by other means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// Every error.
    AnyError,
    /// These, separated by `, `.
    Errors(&'static str),
    /// None: the function fails.
    No,
}

/// `argument & mask == value` or `!= value`; without a mask all bits that the kernel reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// As written.
    pub(crate) text: &'static str,
    pub(crate) argument: &'static str,
    mask: Option<&'static str>,
    pub(crate) op: CmpOp,
    value: &'static str,
}

impl Condition {
    /// The mask and the value; `None` if the architecture lacks a constant.
    pub(crate) fn numbers(&self, arch: Arch) -> Option<(u32, u32)> {
        let mask = self
            .mask
            .map_or(Some(u32::MAX), |mask| number(arch, mask))?;
        Some((mask, number(arch, self.value)?))
    }
}

impl Row {
    /// Whether the need exists on an architecture.
    pub(crate) fn is_of(&self, arch: Arch) -> bool {
        match self.arch {
            "*" => true,
            "32-bit" => {
                let is_n32 = matches!(arch, Arch::Mips64n32 | Arch::Mipsel64n32);
                is_n32 || !arch.has_64_bit_registers()
            }
            name => Arch::from_name(name) == Some(arch),
        }
    }
}

fn number(arch: Arch, text: &str) -> Option<u32> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    parsed.or_else(|| consts::value(arch, text).map(|value| value as u32))
}

/// All rows.
pub(crate) static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines
        .skip(1)
        .map(|line| row(line).unwrap_or_else(|| panic!("`{line}` is no row")))
        .collect()
});

fn row(line: &'static str) -> Option<Row> {
    let columns: Vec<&'static str> = line.split('\t').collect();
    let [who, since, arch, call, when, why, answer, source] = columns.try_into().ok()?;
    let (answer, remark) = match answer.split_once("; ") {
        Some((answer, remark)) => (answer, Some(remark)),
        None => (answer, None),
    };
    Some(Row {
        who,
        since: since.parse().ok()?,
        until: match why.split_once("up to ") {
            Some((_, last)) => Some(last.parse().ok()?),
            None => None,
        },
        arch,
        call,
        when: match when {
            "" => None,
            text => Some(condition(text)?),
        },
        why,
        fallback: match answer {
            "any" => Fallback::AnyError,
            "none" => Fallback::No,
            errors => Fallback::Errors(errors),
        },
        remark,
        source,
    })
}

fn condition(text: &'static str) -> Option<Condition> {
    let (operand, op, value) = match text.split_once(" == ") {
        Some((operand, value)) => (operand, CmpOp::Eq, value),
        None => {
            let (operand, value) = text.split_once(" != ")?;
            (operand, CmpOp::Ne, value)
        }
    };
    let (argument, mask) = match operand.split_once(" & ") {
        Some((argument, mask)) => (argument, Some(mask)),
        None => (operand, None),
    };
    Some(Condition {
        text,
        argument,
        mask,
        op,
        value,
    })
}

#[cfg(test)]
mod tests {
    use tamis_abi::signature::Width;
    use tamis_abi::{errno, signature, syscall};

    use super::*;

    /// A row with a name that no architecture has would be skipped silently. Conditions have 32 bits.
    #[test]
    fn every_row_has_a_meaning() {
        for row in ROWS.iter() {
            let text = format!("{} {} {}", row.who, row.since, row.call);
            assert!(TARGETS.iter().any(|known| known.name == row.who), "{text}");
            assert!(syscall::is_known(row.call), "{text}");
            assert!(!row.why.is_empty() && !row.source.is_empty(), "{text}");
            let arches: Vec<Arch> = Arch::all()
                .filter(|arch| row.is_of(*arch) && syscall::number(*arch, row.call).is_some())
                .collect();
            assert!(!arches.is_empty(), "{text}");
            if let Some(when) = row.when {
                let has_meaning = |arch: &Arch| {
                    let index = signature::index(*arch, row.call, when.argument);
                    index.is_some() && when.numbers(*arch).is_some()
                };
                assert!(arches.iter().any(has_meaning), "{text}({})", when.text);
                let is_wide = |arch: &Arch| {
                    let index = signature::index(*arch, row.call, when.argument);
                    let arg = index.and_then(|index| signature::at(*arch, row.call, index));
                    let width = arg.map(|arg| signature::width(*arch, row.call, arg));
                    width == Some(Width::Bits64)
                };
                assert!(!arches.iter().any(is_wide), "{text}({})", when.text);
            }
            if let Fallback::Errors(errors) = row.fallback {
                let mut errors = errors.split(", ");
                assert!(errors.all(errno::is_name), "{text}");
            }
        }
    }

    /// A call that is needed by a kernel release must have come with it or before.
    #[test]
    fn no_kernel_needs_a_call_before_it_has_it() {
        for row in ROWS.iter().filter(|row| row.who == "linux") {
            for arch in Arch::all().filter(|arch| row.is_of(*arch)) {
                let nr = syscall::number(arch, row.call);
                let since = nr.and_then(|nr| syscall::since(arch, nr));
                let kernel = format!("{}", row.since).parse().ok();
                assert!(
                    since.is_none() || row.arch == "*" || since <= kernel,
                    "{} {arch}",
                    row.call
                );
            }
        }
    }

    #[test]
    fn targets_are_sorted_and_have_rows() {
        assert!(TARGETS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for known in &TARGETS {
            let own = ROWS.iter().filter(|row| row.who == known.name);
            let newest = own.map(|row| row.since.clone()).max();
            let last = known.versions().map_or(version("0"), |(_, last)| last);
            assert!(
                newest.is_some_and(|newest| newest <= last),
                "{}",
                known.name
            );
        }
    }
}

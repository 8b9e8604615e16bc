//! Pseudo filter code: libseccomp's text form of a filter (`seccomp_export_pfc`), for people and for comparison
//! with libseccomp's output.
//!
//! ```text
//! # filter for arch x86_64 (3221225534)
//! if ($arch == 3221225534)
//!   # filter for syscall "write" (1)
//!   if ($syscall == 1)
//!     if ($a0.hi32 == 0)
//!       if ($a0.lo32 == 2)
//!         action ALLOW;
//!     action ERRNO(1);
//!   # default action
//!   action ERRNO(1);
//! # invalid architecture action
//! action KILL;
//! ```
//!
//! A branch without an action continues after its `if`. Tests are of 32-bit words, `==`, `>`, `>=` and masks with
//! `==`; the negation of a test is an `else`. libseccomp has no syntax for the instruction pointer, comparisons of
//! two arguments and data of `trap`, so they can't be expressed. libseccomp sorts calls by descending priority;
//! here they are in ascending order of their numbers.

use std::error::Error;
use std::fmt::{self, Write};

use tamis_abi::{Action, ActionKind, Nr, syscall};
use tamis_rules::{
    CmpOp, IntervalSet, Operand, OperandSource, Part, Predicate, Ruleset, Section, Test,
};

/// The most text, in bytes. Pseudo code has no jumps, so the text after a branch is repeated for each path to it.
pub const MAX_BYTES: usize = 4 << 20;

/// A feature that pseudo filter code can't express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PfcExportError {
    /// An action with unsupported data.
    Action(Action),
    /// The instruction pointer.
    Ip,
    /// A comparison of two arguments.
    Between,
    /// Run-time variables.
    Variables,
    /// A text longer than [`MAX_BYTES`].
    TooLong,
}

impl fmt::Display for PfcExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PfcExportError::Action(action) => {
                write!(f, "pseudo filter code has no action {action}")
            }
            PfcExportError::Ip => f.write_str("pseudo filter code has no instruction pointer"),
            PfcExportError::Between => {
                f.write_str("pseudo filter code cannot compare arguments with each other")
            }
            PfcExportError::Variables => {
                f.write_str("the policy has run-time variables: bind them first")
            }
            PfcExportError::TooLong => write!(f, "it would be longer than {} MiB", MAX_BYTES >> 20),
        }
    }
}

impl Error for PfcExportError {}

/// A ruleset as pseudo filter code.
///
/// # Errors
/// If pseudo filter code can't express the ruleset.
pub fn text(ruleset: &Ruleset) -> Result<String, PfcExportError> {
    if !ruleset.variables().is_empty() {
        return Err(PfcExportError::Variables);
    }
    let mut writer = Writer {
        text: String::from("#\n# pseudo filter code start\n#\n"),
        is_wide: true,
    };
    for section in ruleset.sections() {
        writer.section(section)?;
    }
    writer.text.push_str("# invalid architecture action\n");
    writer.action(0, ruleset.bad_arch)?;
    writer.text.push_str("#\n# pseudo filter code end\n#\n");
    Ok(writer.text)
}

/// A condition as tests of words.
#[derive(Clone, Debug)]
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Word { test: WordTest, holds: bool },
}

/// A test of a word.
#[derive(Clone, Copy, Debug)]
struct WordTest {
    arg: usize,
    is_high: bool,
    mask: u32,
    op: &'static str,
    value: u32,
}

impl Condition {
    fn truth(holds: bool) -> Condition {
        match holds {
            true => Condition::All(Vec::new()),
            false => Condition::Any(Vec::new()),
        }
    }

    /// A predicate, or its negation.
    fn from_predicate(when: &Predicate, is_negated: bool) -> Result<Condition, PfcExportError> {
        let all = |parts: &[Predicate]| -> Result<Vec<Condition>, PfcExportError> {
            parts
                .iter()
                .map(|part| Condition::from_predicate(part, is_negated))
                .collect()
        };
        Ok(match (when, is_negated) {
            (Predicate::True, _) => Condition::truth(!is_negated),
            (Predicate::False, _) => Condition::truth(is_negated),
            (Predicate::Not(inner), _) => Condition::from_predicate(inner, !is_negated)?,
            (Predicate::All(parts), false) | (Predicate::Any(parts), true) => {
                Condition::All(all(parts)?)
            }
            (Predicate::Any(parts), false) | (Predicate::All(parts), true) => {
                Condition::Any(all(parts)?)
            }
            (Predicate::Test(test), true) => Condition::of_test(test)?.opposite(),
            (Predicate::Test(test), false) => Condition::of_test(test)?,
        })
    }

    fn opposite(self) -> Condition {
        let all = |parts: Vec<Condition>| parts.into_iter().map(Condition::opposite).collect();
        match self {
            Condition::All(parts) => Condition::Any(all(parts)),
            Condition::Any(parts) => Condition::All(all(parts)),
            Condition::Word { test, holds } => Condition::Word {
                test,
                holds: !holds,
            },
        }
    }

    fn of_test(test: &Test) -> Result<Condition, PfcExportError> {
        match test {
            Test::Compare { operand, op, value } => Condition::compare(*operand, *op, *value),
            Test::Masked {
                operand,
                mask,
                value,
            } => Condition::masked(*operand, *mask, *value),
            Test::In { operand, set } => {
                let range = |(first, last): &(u64, u64)| {
                    if first == last {
                        return Condition::compare(*operand, CmpOp::Eq, *first);
                    }
                    Ok(Condition::All(vec![
                        Condition::compare(*operand, CmpOp::Ge, *first)?,
                        Condition::compare(*operand, CmpOp::Le, *last)?,
                    ]))
                };
                let ranges: Result<Vec<Condition>, PfcExportError> =
                    set.intervals().iter().map(range).collect();
                Ok(Condition::Any(ranges?))
            }
            Test::Between { .. } => Err(PfcExportError::Between),
        }
    }

    fn word(arg: usize, is_high: bool, mask: u32, op: &'static str, value: u32) -> Condition {
        let test = WordTest {
            arg,
            is_high,
            mask,
            op,
            value,
        };
        Condition::Word { test, holds: true }
    }

    fn compare(operand: Operand, op: CmpOp, value: u64) -> Result<Condition, PfcExportError> {
        let arg = argument(operand)?;
        let name = match op {
            CmpOp::Eq => "==",
            CmpOp::Gt => ">",
            CmpOp::Ge => ">=",
            CmpOp::Ne | CmpOp::Lt | CmpOp::Le => {
                return Ok(Condition::compare(operand, op.negated(), value)?.opposite());
            }
        };
        let word = |is_high, op, value| Condition::word(arg, is_high, u32::MAX, op, value);
        let (high, low) = ((value >> 32) as u32, value as u32);
        Ok(match operand.part {
            // A half can't have this value.
            Part::Low | Part::High if high > 0 => Condition::truth(false),
            Part::Low => word(false, name, low),
            Part::High => word(true, name, low),
            Part::Full => {
                let same = Condition::All(vec![word(true, "==", high), word(false, name, low)]);
                match op {
                    CmpOp::Eq => same,
                    _ => Condition::Any(vec![word(true, ">", high), same]),
                }
            }
        })
    }

    fn masked(operand: Operand, mask: u64, value: u64) -> Result<Condition, PfcExportError> {
        let arg = argument(operand)?;
        if value & !mask != 0 || operand.part != Part::Full && value > u64::from(u32::MAX) {
            return Ok(Condition::truth(false));
        }
        let word = |is_high, mask: u32, value: u32| match mask {
            0 => Condition::truth(true),
            mask => Condition::word(arg, is_high, mask, "==", value),
        };
        let low = |is_high| word(is_high, mask as u32, value as u32);
        Ok(match operand.part {
            Part::Low => low(false),
            Part::High => low(true),
            Part::Full => Condition::All(vec![
                word(true, (mask >> 32) as u32, (value >> 32) as u32),
                low(false),
            ]),
        })
    }
}

fn argument(operand: Operand) -> Result<usize, PfcExportError> {
    match operand.source {
        OperandSource::Arg(arg) => Ok(arg.index()),
        OperandSource::Ip => Err(PfcExportError::Ip),
        OperandSource::Variable(_) => Err(PfcExportError::Variables),
    }
}

/// The clauses of a number: the first condition that holds decides.
type Clauses = Vec<(Condition, Action)>;

struct Writer {
    text: String,
    /// Whether arguments of the architecture have two halves.
    is_wide: bool,
}

impl Writer {
    fn section(&mut self, section: &Section) -> Result<(), PfcExportError> {
        let (arch, audit) = (section.arch, section.arch.audit());
        self.is_wide = arch.has_64_bit_registers();
        let _ = writeln!(self.text, "# filter for arch {arch} ({audit})");
        self.line(0, &format!("if ($arch == {audit})"))?;
        let mut named = IntervalSet::empty();
        for (nr, name) in syscall::all(arch) {
            named = named.union(&IntervalSet::single(nr.0));
            if syscall::name(arch, nr) == Some(name) {
                self.call(section, nr, name)?;
            }
        }
        let others = Section::domain(arch).difference(&named);
        for (first, last) in pieces(section, &others) {
            self.numbers(section, first, last)?;
        }
        self.line(1, "# default action")?;
        self.action(1, section.default)
    }

    fn call(&mut self, section: &Section, nr: Nr, name: &str) -> Result<(), PfcExportError> {
        let Some(clauses) = clauses(section, nr.0)? else {
            return Ok(());
        };
        self.line(1, &format!("# filter for syscall \"{name}\" ({})", nr.0))?;
        self.line(1, &format!("if ($syscall == {})", nr.0))?;
        self.clauses(2, &clauses)
    }

    /// Writes numbers without a name that have the same clauses.
    fn numbers(&mut self, section: &Section, first: u32, last: u32) -> Result<(), PfcExportError> {
        let Some(clauses) = clauses(section, first)? else {
            return Ok(());
        };
        if first == last {
            self.line(1, &format!("if ($syscall == {first})"))?;
            return self.clauses(2, &clauses);
        }
        self.line(1, &format!("if ($syscall >= {first})"))?;
        self.line(2, &format!("if ($syscall > {last})"))?;
        self.line(2, "else")?;
        self.clauses(3, &clauses)
    }

    fn clauses(&mut self, depth: usize, clauses: &Clauses) -> Result<(), PfcExportError> {
        for (condition, action) in clauses {
            self.branches(depth, &[condition], *action)?;
        }
        Ok(())
    }

    /// Writes the action under the condition that all of these hold.
    fn branches(
        &mut self,
        depth: usize,
        conditions: &[&Condition],
        action: Action,
    ) -> Result<(), PfcExportError> {
        let Some((first, rest)) = conditions.split_first() else {
            return self.action(depth, action);
        };
        match first {
            Condition::All(parts) => {
                let all: Vec<&Condition> = parts.iter().chain(rest.iter().copied()).collect();
                self.branches(depth, &all, action)
            }
            Condition::Any(parts) => parts.iter().try_for_each(|part| {
                let all = [&[part], rest].concat();
                self.branches(depth, &all, action)
            }),
            Condition::Word { test, holds } => {
                self.line(depth, &self.test(*test))?;
                if !holds {
                    self.line(depth, "else")?;
                }
                self.branches(depth + 1, rest, action)
            }
        }
    }

    fn test(&self, test: WordTest) -> String {
        let half = match (test.is_high, self.is_wide) {
            (true, _) => ".hi32",
            (false, true) => ".lo32",
            (false, false) => "",
        };
        let mask = match test.mask {
            u32::MAX => String::new(),
            mask => format!(" & 0x{mask:08x}"),
        };
        let WordTest { arg, op, value, .. } = test;
        format!("if ($a{arg}{half}{mask} {op} {value})")
    }

    fn action(&mut self, depth: usize, action: Action) -> Result<(), PfcExportError> {
        let name = match action.kind {
            ActionKind::KillProcess => "KILL_PROCESS",
            ActionKind::KillThread => "KILL",
            ActionKind::Trap => "TRAP",
            ActionKind::Errno => "ERRNO",
            ActionKind::Notify => "NOTIFY",
            ActionKind::Trace => "TRACE",
            ActionKind::Log => "LOG",
            ActionKind::Allow => "ALLOW",
        };
        match (action.kind, action.data) {
            (ActionKind::Errno | ActionKind::Trace, data) => {
                self.line(depth, &format!("action {name}({data});"))
            }
            (ActionKind::Trap, 1..) => Err(PfcExportError::Action(action)),
            // The data of other actions is unused.
            _ => self.line(depth, &format!("action {name};")),
        }
    }

    fn line(&mut self, depth: usize, line: &str) -> Result<(), PfcExportError> {
        if self.text.len() > MAX_BYTES {
            return Err(PfcExportError::TooLong);
        }
        let _ = writeln!(self.text, "{:width$}{line}", "", width = 2 * depth);
        Ok(())
    }
}

/// The clauses of a number, unless they are only the default. The last condition always holds.
fn clauses(section: &Section, nr: u32) -> Result<Option<Clauses>, PfcExportError> {
    let rules = section.rules.iter();
    let mut clauses = Clauses::new();
    for rule in rules.filter(|rule| rule.syscalls.contains(nr)) {
        clauses.push((Condition::from_predicate(&rule.when, false)?, rule.action));
        if rule.when == Predicate::True {
            return Ok(Some(clauses));
        }
    }
    if clauses.is_empty() {
        return Ok(None);
    }
    clauses.push((Condition::truth(true), section.default));
    Ok(Some(clauses))
}

/// Splits a set of numbers at the bounds of rules.
fn pieces(section: &Section, set: &IntervalSet<u32>) -> Vec<(u32, u32)> {
    let starts = section.borders();
    let mut pieces = Vec::new();
    for (first, last) in set.intervals() {
        let mut from = *first;
        let inner = starts.partition_point(|start| start <= first);
        for start in starts[inner..].iter().take_while(|start| *start <= last) {
            pieces.push((from, start - 1));
            from = *start;
        }
        pieces.push((from, *last));
    }
    pieces
}

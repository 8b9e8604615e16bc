//! Rulesets, rules and predicates as text.

use std::fmt;

use tamis_abi::{Arch, Nr, syscall};

use crate::predicate::{Operand, OperandSource, Part, Predicate, Test};
use crate::ruleset::{Origin, Rule, Ruleset, Section};
use crate::set::IntervalSet;

impl fmt::Display for Ruleset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "ruleset bad-arch {}", self.bad_arch)?;
        for variable in self.variables() {
            writeln!(f, "{variable}")?;
        }
        self.sections()
            .iter()
            .try_for_each(|section| section.fmt(f))
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "section {} default {}", self.arch, self.default)?;
        for rule in &self.rules {
            f.write_str("  ")?;
            rule.write(self.arch, f)?;
            writeln!(f)?;
        }
        Ok(())
    }
}

impl Rule {
    /// Writes the rule on one line, with the names of its numbers on `arch`.
    fn write(&self, arch: Arch, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_numbers(&self.syscalls, arch, f)?;
        if self.when != Predicate::True {
            write!(f, " if {}", self.when)?;
        }
        write!(f, ": {}", self.action)?;
        if let Some(Origin { file, line, column }) = &self.origin {
            write!(f, " @ {file:?}:{line}:{column}")?;
        }
        Ok(())
    }
}

fn write_numbers(set: &IntervalSet<u32>, arch: Arch, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if set.is_full() {
        return f.write_str("all");
    }
    if set.is_empty() {
        return f.write_str("none");
    }
    for (index, (first, last)) in set.intervals().iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        match syscall::name(arch, Nr(*first)) {
            Some(name) if first == last => f.write_str(name)?,
            _ if first == last => write!(f, "{first}")?,
            _ => write!(f, "{first}..{last}")?,
        }
    }
    Ok(())
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, name: &str, parts: &[Predicate]| {
            write!(f, "{name}(")?;
            for (index, part) in parts.iter().enumerate() {
                let separator = if index > 0 { ", " } else { "" };
                write!(f, "{separator}{part}")?;
            }
            f.write_str(")")
        };
        match self {
            Predicate::True => f.write_str("true"),
            Predicate::False => f.write_str("false"),
            Predicate::Not(inner) => write!(f, "not({inner})"),
            Predicate::All(parts) => list(f, "all", parts),
            Predicate::Any(parts) => list(f, "any", parts),
            Predicate::Test(test) => test.fmt(f),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Compare { operand, op, value } => {
                write!(f, "{operand} {} {value:#x}", op.symbol())
            }
            Test::Masked {
                operand,
                mask,
                value,
            } => write!(f, "{operand} & {mask:#x} == {value:#x}"),
            Test::In { operand, set } => {
                write!(f, "{operand} in {{")?;
                for (index, (first, last)) in set.intervals().iter().enumerate() {
                    let separator = if index > 0 { ", " } else { "" };
                    write!(f, "{separator}{first:#x}")?;
                    if first != last {
                        write!(f, "..{last:#x}")?;
                    }
                }
                f.write_str("}")
            }
            Test::Between { left, op, right } => write!(f, "{left} {} {right}", op.symbol()),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            OperandSource::Arg(arg) => write!(f, "arg{}", arg.index())?,
            OperandSource::Ip => f.write_str("ip")?,
            OperandSource::Variable(variable) => write!(f, "var{}", variable.index())?,
        }
        f.write_str(match self.part {
            Part::Full => "",
            Part::Low => ".low",
            Part::High => ".high",
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

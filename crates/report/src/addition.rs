//! The smallest change of a policy's text that allows a denied call.
//!
//! A line is proposed for the languages below. It fixes only the arguments that select what the call does, such as a
//! socket's family. The caller must verify it: parse the changed text and check that it allows this call and no others.
//! Without a proposal, the reason is returned.

use std::fmt::Write;

use tamis_abi::signature::{self, Width};
use tamis_abi::{Arch, ArgIndex, Nr, SeccompData, family, selector, syscall};
use tamis_diag::escape::on_one_line;
use tamis_export::tamis::{self as export, Style};
use tamis_profile::interest::{self, Interesting};
use tamis_rules::{CmpOp, Operand, Origin, Predicate};

/// A change of a text: lines that are inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// The number of preceding lines of the text.
    at: usize,
    /// The lines.
    lines: Vec<String>,
    /// The description of the allowed calls.
    pub opens: String,
    /// The call and the fixed arguments of that description.
    name: &'static str,
    fixed: Vec<Fixed>,
}

/// The call that the change must allow, and the place of its denial.
#[derive(Clone, Copy, Debug)]
pub struct Denial<'d> {
    /// The call.
    pub data: &'d SeccompData,
    /// Whether the arguments are known; audit records have none.
    pub has_args: bool,
    /// The denying rule; `None` for the default.
    pub rule: Option<&'d Origin>,
    /// The arguments that the policy tests for such calls.
    pub tested: &'d [ArgIndex],
}

/// Proposes the change of a policy in the language with this name.
///
/// # Errors
/// The reason, if there is none to propose.
pub fn propose(language: &str, text: &str, denial: &Denial<'_>) -> Result<Addition, String> {
    let named = Arch::of_call(denial.data.arch, denial.data.nr).and_then(|arch| {
        let name = syscall::name(arch, Nr(denial.data.nr))?;
        Some((arch, name))
    });
    let Some((arch, name)) = named else {
        return Err("the call has no name".to_owned());
    };
    let fixed = match denial.has_args {
        true => selected(arch, name, denial),
        false => Vec::new(),
    };
    let (at, lines) = match language {
        "tamis" => in_tamis(text, arch, name, &fixed, denial)?,
        "oci" => in_oci(text, name, &fixed, denial)?,
        "systemd" => in_unit(text, name)?,
        _ => return Err(format!("no lines are proposed for policies of {language}")),
    };
    let fixed = match language {
        "systemd" => Vec::new(),
        _ => fixed,
    };
    Ok(Addition {
        at,
        lines,
        opens: opens(arch, name, &fixed),
        name,
        fixed,
    })
}

impl Addition {
    /// The call's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The calls of an architecture that the change should allow: those with the number that satisfy the condition.
    /// `None` if an argument isn't in a register there.
    pub fn opened(&self, arch: Arch) -> Option<(Nr, Predicate)> {
        let number = syscall::number(arch, self.name)?;
        let tests = self.fixed.iter().map(|fixed| {
            let index = signature::index(arch, self.name, fixed.argument)?;
            Some(test(index, fixed.width, fixed.value))
        });
        let tests = tests.collect::<Option<Vec<Predicate>>>()?;
        Some((number, Predicate::All(tests)))
    }

    /// The changed text, with the line ends of the original.
    pub fn apply(&self, text: &str) -> String {
        let end = line_end(text);
        let mut changed = String::with_capacity(text.len());
        let mut lines = text.split_inclusive('\n');
        changed.extend(lines.by_ref().take(self.at));
        if !changed.is_empty() && !changed.ends_with('\n') {
            changed.push_str(end);
        }
        for line in &self.lines {
            changed.extend([line, end]);
        }
        changed.extend(lines);
        changed
    }

    /// The change as a unified diff with a line of context on either side.
    pub fn diff(&self, name: &str, text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let at = self.at.min(lines.len());
        let before = lines[..at].last();
        let after = lines.get(at);
        let context = usize::from(before.is_some()) + usize::from(after.is_some());
        let first = if before.is_some() { at } else { at + 1 };
        let name = on_one_line(name);
        let mut diff = format!("--- {name}\n+++ {name}\n");
        let _ = writeln!(
            diff,
            "@@ -{first},{context} +{first},{} @@",
            context + self.lines.len()
        );
        let end = line_end(text);
        let added = self.lines.iter().map(|line| ('+', line.as_str()));
        let before = before.map(|line| (' ', *line)).into_iter();
        let after = after.map(|line| (' ', *line));
        for (sign, line) in before.chain(added).chain(after) {
            diff.push(sign);
            diff.push_str(line);
            diff.push_str(end);
        }
        diff
    }
}

/// The line end of a text.
fn line_end(text: &str) -> &'static str {
    match text.split_inclusive('\n').next() {
        Some(first) if first.ends_with("\r\n") => "\r\n",
        _ => "\n",
    }
}

/// An argument with a fixed value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fixed {
    argument: &'static str,
    /// The index on the architecture of the denied call.
    index: ArgIndex,
    width: Width,
    value: u64,
}

/// The selecting arguments and the named arguments that the policy tests, with their values.
fn selected(arch: Arch, name: &str, denial: &Denial<'_>) -> Vec<Fixed> {
    let chosen = interest::arguments(arch, name).into_iter();
    let chosen = chosen.filter(|argument| {
        selector::at(arch, name, argument.index).is_some()
            || denial.tested.contains(&argument.index)
    });
    chosen
        .filter_map(|Interesting { index, width }| {
            let argument = signature::at(arch, name, index)?;
            Some(Fixed {
                argument: argument.name(),
                index,
                width,
                value: denial.data.args[index.index()] & width.max(),
            })
        })
        .collect()
}

/// The test for the value of an argument.
fn test(index: ArgIndex, width: Width, value: u64) -> Predicate {
    let operand = match width {
        Width::Bits64 => Operand::arg(index),
        Width::Bits32 | Width::Bits16 => Operand::arg_low(index),
    };
    Predicate::compare(operand, CmpOp::Eq, value)
}

fn in_tamis(
    text: &str,
    arch: Arch,
    name: &str,
    fixed: &[Fixed],
    denial: &Denial<'_>,
) -> Result<(usize, Vec<String>), String> {
    let tests = fixed
        .iter()
        .map(|fixed| test(fixed.index, fixed.width, fixed.value));
    let when = match tests.collect::<Vec<_>>() {
        none if none.is_empty() => None,
        mut one if one.len() == 1 => one.pop(),
        several => Some(Predicate::All(several)),
    };
    let line = match when {
        Some(when) => {
            let condition = export::condition(arch, Some(name), &when, Style::Named);
            let condition = condition.map_err(|_| "its values can't be written".to_owned())?;
            format!("allow {name}({condition})")
        }
        None => format!("allow {name}"),
    };
    // The first matching rule decides.
    let at = match denial.rule {
        Some(origin) => origin.line as usize - 1,
        None => text.lines().count(),
    };
    let indent: String = match denial.rule {
        Some(_) => text
            .lines()
            .nth(at)
            .unwrap_or_default()
            .chars()
            .take_while(|c| *c == ' ')
            .collect(),
        None => String::new(),
    };
    Ok((at, vec![format!("{indent}{line}")]))
}

fn in_oci(
    text: &str,
    name: &str,
    fixed: &[Fixed],
    denial: &Denial<'_>,
) -> Result<(usize, Vec<String>), String> {
    if denial.rule.is_some() {
        // Runtimes reject two entries of a call with different actions.
        return Err("an entry of the profile denies it: take the call out of that one".to_owned());
    }
    let mut lines = text.lines();
    let begins_list = |line: &str| line.trim_end().ends_with("\"syscalls\": [");
    let at = lines.position(begins_list);
    // `position` has consumed the first line of the list.
    let Some((at, next)) = at.zip(lines.next()) else {
        return Err("the profile's entries don't stand on lines of their own".to_owned());
    };
    let args: Vec<String> = fixed
        .iter()
        .map(|Fixed { index, value, .. }| {
            let index = index.index();
            format!("{{\"index\": {index}, \"value\": {value}, \"op\": \"SCMP_CMP_EQ\"}}")
        })
        .collect();
    let args = match args.is_empty() {
        true => String::new(),
        false => format!(", \"args\": [{}]", args.join(", ")),
    };
    let line = format!("{{\"names\": [\"{name}\"], \"action\": \"SCMP_ACT_ALLOW\"{args}}},");
    let indent: String = next.chars().take_while(|c| c.is_whitespace()).collect();
    Ok((at + 1, vec![format!("{indent}{line}")]))
}

/// After the last `SystemCallFilter=`: systemd applies them in order.
fn in_unit(text: &str, name: &str) -> Result<(usize, Vec<String>), String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_list = |line: &&str| line.trim_start().starts_with("SystemCallFilter=");
    let Some(mut last) = lines.iter().rposition(is_list) else {
        return Err("the unit has no list of calls".to_owned());
    };
    // Comments between continued lines belong to them.
    while joins_next(lines[last]) {
        let is_comment = |line: &&str| line.trim_start().starts_with(['#', ';']);
        let skipped = lines[last + 1..]
            .iter()
            .take_while(|line| is_comment(line))
            .count();
        last += 1 + skipped;
        if last >= lines.len() {
            return Err("the unit's last list of calls doesn't end".to_owned());
        }
    }
    // Without `~`, a call is added to an allow list and removed from a deny list.
    Ok((last + 1, vec![format!("SystemCallFilter={name}")]))
}

/// Whether the next line continues this one: it ends with an unescaped backslash.
fn joins_next(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// The description of the allowed calls.
fn opens(arch: Arch, name: &str, fixed: &[Fixed]) -> String {
    let args = signature::args(name).unwrap_or_default();
    let part = |fixed: &Fixed| {
        let arg = args.iter().find(|arg| arg.name() == fixed.argument)?;
        let bits = signature::width(arch, name, arg).bits();
        let names = family::names(arch, name, arg.name(), fixed.value, bits);
        let value = names.map_or_else(|| format!("{:#x}", fixed.value), |names| names.join("|"));
        Some(format!("{} {value}", arg.name()))
    };
    let parts: Vec<String> = fixed.iter().filter_map(part).collect();
    let others = args.len().saturating_sub(parts.len());
    match (parts.is_empty(), others) {
        (true, _) => format!("every `{name}`, whatever its arguments"),
        (false, 0) => format!("`{name}` with {}", parts.join(" and ")),
        (false, _) => format!(
            "every `{name}` with {}, whatever its other arguments",
            parts.join(" and ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_abi::call;

    fn denial(data: &SeccompData) -> Denial<'_> {
        Denial {
            data,
            has_args: true,
            rule: None,
            tested: &[],
        }
    }

    #[test]
    fn named_values_of_tested_arguments_are_conditions() {
        let data = call::parse("x86_64 unlinkat(AT_FDCWD, 7, AT_REMOVEDIR)", Arch::X86_64).unwrap();
        let text = "default errno(EPERM)\n";
        let added = |tested: &[usize]| {
            let tested: Vec<ArgIndex> = tested.iter().map(|index| ArgIndex::ALL[*index]).collect();
            let denial = Denial {
                tested: &tested,
                ..denial(&data)
            };
            propose("tamis", text, &denial).unwrap().apply(text)[text.len()..].to_owned()
        };
        assert_eq!(added(&[]), "allow unlinkat\n");
        let line = "allow unlinkat(flag == AT_REMOVEDIR)\n";
        assert_eq!(added(&[1, 2]), line);
    }

    #[test]
    fn what_decides_is_a_condition_and_the_rest_is_said() {
        let data = call::parse("x86_64 socket(AF_NETLINK, SOCK_RAW, 0)", Arch::X86_64).unwrap();
        let text = "default errno(EPERM)\nallow read\n";
        let addition = propose("tamis", text, &denial(&data)).unwrap();
        let line = "allow socket(family == AF_NETLINK, type == SOCK_RAW, protocol == 0)";
        assert_eq!(addition.apply(text), format!("{text}{line}\n"));
        let diff = addition.diff("a.tamis", text);
        assert!(
            diff.ends_with(&format!("@@ -2,1 +2,2 @@\n allow read\n+{line}\n")),
            "{diff}"
        );
        let data = call::parse("x86_64 ioctl(1, TCGETS, 7)", Arch::X86_64).unwrap();
        let addition = propose("tamis", text, &denial(&data)).unwrap();
        assert!(
            addition
                .opens
                .contains("cmd TCGETS, whatever its other arguments"),
            "{}",
            addition.opens
        );
    }

    #[test]
    fn a_unit_gets_its_line_behind_the_whole_of_its_last_list() {
        let data = call::parse("x86_64 mkdir", Arch::X86_64).unwrap();
        let list = "SystemCallFilter=read \\\n# of the list\n  write \\\n  exit\n";
        let text = format!("[Service]\n{list}NoNewPrivileges=yes\n");
        let addition = propose("systemd", &text, &denial(&data)).unwrap();
        let line = "SystemCallFilter=mkdir\n";
        let changed = format!("[Service]\n{list}{line}NoNewPrivileges=yes\n");
        assert_eq!(addition.apply(&text), changed);
        let open = "SystemCallFilter=read \\\n";
        assert!(propose("systemd", open, &denial(&data)).is_err());
    }

    #[test]
    fn lines_end_as_those_of_the_text() {
        let data = call::parse("x86_64 mkdir", Arch::X86_64).unwrap();
        let text = "default errno(EPERM)\r\nallow read\r\n";
        let addition = propose("tamis", text, &denial(&data)).unwrap();
        assert_eq!(addition.apply(text), format!("{text}allow mkdir\r\n"));
        let diff = addition.diff("a.tamis", text);
        assert!(diff.ends_with(" allow read\r\n+allow mkdir\r\n"), "{diff}");
        let addition = propose("tamis", "default errno(EPERM)", &denial(&data)).unwrap();
        assert_eq!(
            addition.apply("default errno(EPERM)"),
            "default errno(EPERM)\nallow mkdir\n"
        );
    }

    #[test]
    fn a_rule_that_denies_comes_after_the_new_one() {
        let data = call::parse("x86_64 mkdir", Arch::X86_64).unwrap();
        let text = "default allow\n  deny mkdir\n";
        let origin = Origin {
            file: "a".into(),
            line: 2,
            column: 3,
        };
        let denial = Denial {
            data: &data,
            has_args: true,
            rule: Some(&origin),
            tested: &[],
        };
        let addition = propose("tamis", text, &denial).unwrap();
        assert_eq!(
            addition.apply(text),
            "default allow\n  allow mkdir\n  deny mkdir\n"
        );
    }
}

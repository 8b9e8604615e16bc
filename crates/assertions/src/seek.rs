//! The calls that a `never allow` concerns: those that it names, multiplexers, and other ways.

use std::collections::HashMap;
use std::iter;

use tamis_abi::{Arch, ArgIndex, signature, syscall};
use tamis_diag::Sources;
use tamis_policy::sink::Sink;
use tamis_policy::tamis::ast::{Condition, ConditionKind};
use tamis_policy::tamis::parser::Parser;
use tamis_policy::tamis::resolve::{named_arguments, with_constants};
use tamis_prover::{Function, Limited};
use tamis_rules::{Operand, Predicate, Test};

use crate::checks::{Check, Checks, Part, Target};
use crate::judge::{DENIED, Judge};
use crate::outcome::Way;
use crate::region::{both, without};
use crate::ways::{self, Arguments, Member, RING, Row, without_width};

/// Calls of one number, or of several with the same function, that a check concerns.
#[derive(Clone, Debug)]
pub(crate) struct Sought {
    pub(crate) arch: Arch,
    pub(crate) name: Option<&'static str>,
    pub(crate) nr: u32,
    /// The last number of a range with the same function; else the number.
    pub(crate) last: u32,
    /// The condition on their arguments.
    pub(crate) region: Function,
    pub(crate) way: Way,
    /// The calls in the language of policies.
    pub(crate) text: String,
}

/// The conditions of the table of ways, parsed on first use.
pub(crate) struct Rows {
    conditions: HashMap<&'static str, Condition>,
}

impl Rows {
    /// None parsed yet.
    pub(crate) fn new() -> Rows {
        Rows {
            conditions: HashMap::new(),
        }
    }

    /// The condition with this text.
    ///
    /// # Panics
    /// If the table has a text that is no condition.
    fn condition(&mut self, text: &'static str) -> Condition {
        let parsed = self.conditions.entry(text).or_insert_with(|| {
            let mut sources = Sources::new();
            let source = sources.add("ways", text);
            let mut sink = Sink::new(false);
            let mut parser = Parser::new(source, text, |_| false, &mut sink);
            let condition = parser.condition();
            condition.unwrap_or_else(|_| panic!("`{text}` is no condition"))
        });
        parsed.clone()
    }
}

impl Judge<'_> {
    /// All calls that a check forbids, those that it names first.
    pub(crate) fn sought(
        &mut self,
        checks: &Checks,
        check: &Check,
        any_way: bool,
        notice: &mut dyn FnMut(String),
    ) -> Limited<Vec<Sought>> {
        let arches = self.arches(check, self.with_detours());
        let mut sought = Vec::new();
        for arch in &arches {
            sought.extend(self.named(checks, check, *arch, notice)?);
        }
        for target in check.claim.targets() {
            for arch in &arches {
                self.multiplexed(target, *arch, &mut sought)?;
            }
        }
        let targets = check.claim.targets().iter().filter(|_| any_way);
        for target in targets {
            for arch in &arches {
                self.other_ways(checks, target, *arch, &mut sought)?;
            }
        }
        if sought.is_empty() {
            notice("no architecture of the policy has these calls".to_owned());
        }
        Ok(sought)
    }

    fn multiplexed(
        &mut self,
        target: &Target,
        arch: Arch,
        sought: &mut Vec<Sought>,
    ) -> Limited<()> {
        for name in target.names() {
            sought.extend(self.through_multiplexer(name, arch, Way::Multiplexer(name))?);
        }
        Ok(())
    }

    /// The calls of a multiplexer that make this call.
    fn through_multiplexer(&mut self, name: &str, arch: Arch, way: Way) -> Limited<Option<Sought>> {
        let Some(by) = syscall::multiplexed(arch, name) else {
            return Ok(None);
        };
        let multiplexer = syscall::name(arch, by.nr).unwrap_or("a multiplexer");
        // The upper half of ipc's selector is a version.
        let (mask, selector) = match multiplexer {
            "ipc" => (0xffff, "call & 0xffff"),
            _ => (u64::from(u32::MAX), "call"),
        };
        let selects = Predicate::Test(Test::Masked {
            operand: Operand::arg_low(ArgIndex::ALL[0]),
            mask,
            value: u64::from(by.call),
        });
        Ok(Some(Sought {
            arch,
            name: Some(multiplexer),
            nr: by.nr.0,
            last: by.nr.0,
            region: self.condition(&selects)?,
            way,
            text: format!("{multiplexer}({selector} == {})", by.call),
        }))
    }

    /// Notes that rings execute operations that the check names.
    pub(crate) fn note_rings(
        &mut self,
        check: &Check,
        targets: &[Target],
        notice: &mut dyn FnMut(String),
    ) -> Limited<()> {
        let arches = self.arches(check, self.with_detours());
        for target in targets {
            for arch in &arches {
                self.note_ring(target, *arch, notice)?;
            }
        }
        Ok(())
    }

    /// Notes that a ring executes operations that the check names.
    fn note_ring(
        &mut self,
        target: &Target,
        arch: Arch,
        notice: &mut dyn FnMut(String),
    ) -> Limited<()> {
        let Some(ring) = syscall::number(arch, RING) else {
            return Ok(());
        };
        let mut operations = target
            .names()
            .iter()
            .filter_map(|name| ways::operation(name));
        let Some(operation) = operations.next() else {
            return Ok(());
        };
        let fate = self.at(arch, ring.0)?.fate;
        if fate != self.shared.space.constant(DENIED)? {
            notice(format!(
                "io_uring is open on {arch}: {operation} does the same, and no filter sees it; `never allow any way` \
                 counts it"
            ));
        }
        Ok(())
    }

    fn other_ways(
        &mut self,
        checks: &Checks,
        target: &Target,
        arch: Arch,
        sought: &mut Vec<Sought>,
    ) -> Limited<()> {
        for name in target.names() {
            self.other_widths(checks, target, name, arch, sought)?;
            for row in self.rows_of(checks, target, name, arch)? {
                let is_own = |member: &&Member| member.call != *name;
                for member in row.members.iter().chain(row.more).filter(is_own) {
                    self.member(checks, target, row, member, arch, sought)?;
                }
            }
            let operation = ways::operation(name).zip(syscall::number(arch, RING));
            if let Some((operation, nr)) = operation {
                sought.push(Sought {
                    arch,
                    name: Some(RING),
                    nr: nr.0,
                    last: nr.0,
                    region: Function::TRUE,
                    way: Way::Ring(operation),
                    text: RING.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Calls that differ in the width of times, sizes or identities alone.
    fn other_widths(
        &mut self,
        checks: &Checks,
        target: &Target,
        name: &str,
        arch: Arch,
        sought: &mut Vec<Sought>,
    ) -> Limited<()> {
        const WIDTH: Member = Member {
            call: "",
            when: None,
            arguments: Arguments::Same,
            reason: "it is the same call with another width of a type",
        };
        let base = without_width(name);
        for (_, other) in syscall::all(arch) {
            if other != name && other.starts_with(base) && without_width(other) == base {
                let member = Member {
                    call: other,
                    ..WIDTH
                };
                let row = Row {
                    effect: "do the same",
                    members: &[],
                    more: &[],
                };
                self.member(checks, target, &row, &member, arch, sought)?;
            }
        }
        Ok(())
    }

    /// An architecture on which a filter sees the arguments that a target's condition tests, with that condition: this
    /// one if possible.
    fn readable(
        &mut self,
        checks: &Checks,
        target: &Target,
        name: &str,
        arch: Arch,
    ) -> Limited<Option<(Arch, Function)>> {
        for arch in iter::once(arch).chain(Arch::all()) {
            if syscall::number(arch, name).is_none() {
                continue;
            }
            if let Part::Where(when) = checks.part(target, Some(name), arch) {
                return Ok(Some((arch, self.condition(&when)?)));
            }
        }
        Ok(None)
    }

    /// The rows that concern these calls: those with conditions that all of the calls satisfy, then those with
    /// conditions that some satisfy, then, unless there are any of the first kind, those without conditions.
    fn rows_of(
        &mut self,
        checks: &Checks,
        target: &Target,
        name: &str,
        arch: Arch,
    ) -> Limited<Vec<&'static Row>> {
        let own = self.readable(checks, target, name, arch)?;
        let (mut covering, mut narrow, mut wide) = (Vec::new(), Vec::new(), Vec::new());
        for row in ways::ALL {
            let Some(member) = row.members.iter().find(|member| member.call == name) else {
                continue;
            };
            let Some(text) = member.when else {
                wide.push(row);
                continue;
            };
            let Some((arch, own)) = own else {
                narrow.push(row);
                continue;
            };
            let condition = self.shared.rows.condition(text);
            let Part::Where(when) = checks.part_where(&condition, Some(name), arch) else {
                narrow.push(row);
                continue;
            };
            let when = self.condition(&when)?;
            if without(&mut self.shared.space, own, when)? == Function::FALSE {
                covering.push(row);
            } else if both(&mut self.shared.space, own, when)? != Function::FALSE {
                narrow.push(row);
            }
        }
        let is_covered = !covering.is_empty();
        covering.extend(narrow);
        if !is_covered {
            covering.extend(wide);
        }
        Ok(covering)
    }

    fn member(
        &mut self,
        checks: &Checks,
        target: &Target,
        row: &Row,
        member: &Member,
        arch: Arch,
        sought: &mut Vec<Sought>,
    ) -> Limited<()> {
        let Some(condition) = self.condition_of(checks, target, row, member, arch)? else {
            return Ok(());
        };
        let way = |reason| Way::Twin {
            effect: row.effect,
            reason,
        };
        let by = way("its arguments are in memory, where no filter reads them");
        sought.extend(self.through_multiplexer(member.call, arch, by)?);
        let Some(nr) = syscall::number(arch, member.call) else {
            return Ok(());
        };
        let (part, text) = match &condition {
            None => (Part::Where(Predicate::True), member.call.to_owned()),
            Some(when) => {
                let shown = with_constants(when, &checks.constants);
                let part = checks.part_where(when, Some(member.call), arch);
                (part, format!("{}({shown})", member.call))
            }
        };
        let (region, text) = match part {
            Part::Where(when) => (self.condition(&when)?, text),
            Part::InMemory => (Function::TRUE, member.call.to_owned()),
            Part::Undefined(_) => return Ok(()),
        };
        let name = syscall::Name::find(member.call).map(syscall::Name::text);
        sought.push(Sought {
            arch,
            name,
            nr: nr.0,
            last: nr.0,
            region,
            way: way(member.reason),
            text,
        });
        Ok(())
    }

    /// The condition under which calls of a member are a way; `None` if none are.
    fn condition_of(
        &mut self,
        checks: &Checks,
        target: &Target,
        row: &Row,
        member: &Member,
        arch: Arch,
    ) -> Limited<Option<Option<Condition>>> {
        let own = target.when.as_ref();
        let own = own.map(|own| ways::renamed(own, member.call));
        let readable = own
            .as_ref()
            .filter(|own| has_arguments(member.call, own))
            .cloned();
        if let Some(text) = member.when {
            let when = self.shared.rows.condition(text);
            let Some(own) = readable else {
                return Ok(Some(Some(when)));
            };
            return self
                .conjunction(checks, when, own, member.call, arch)
                .map(|both| Some(Some(both)));
        }
        Ok(match member.arguments {
            _ if own.is_none() => Some(None),
            Arguments::Memory => Some(None),
            Arguments::Other if row.has_conditions() => Some(None),
            Arguments::Other => None,
            Arguments::Nearly => Some(readable),
            Arguments::Same => readable.map(Some),
        })
    }

    /// The condition that both hold, as one of them if that implies the other.
    fn conjunction(
        &mut self,
        checks: &Checks,
        left: Condition,
        right: Condition,
        call: &str,
        arch: Arch,
    ) -> Limited<Condition> {
        let part = |condition| checks.part_where(condition, Some(call), arch);
        if let (Part::Where(own), Part::Where(other)) = (part(&left), part(&right)) {
            let (own, other) = (self.condition(&own)?, self.condition(&other)?);
            if without(&mut self.shared.space, own, other)? == Function::FALSE {
                return Ok(left);
            }
            if without(&mut self.shared.space, other, own)? == Function::FALSE {
                return Ok(right);
            }
        }
        let span = left.span;
        let kind = ConditionKind::All(vec![left, right]);
        Ok(Condition { kind, span })
    }
}

/// Whether a call has all arguments that a condition names.
fn has_arguments(call: &str, condition: &Condition) -> bool {
    let args = signature::args(call).unwrap_or_default();
    let has = |name: &String| args.iter().any(|arg| arg.name() == name);
    named_arguments(condition).iter().all(has)
}

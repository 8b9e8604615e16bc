//! The second method: both filters as circuits of gates, and a search for an input for which they differ.
//!
//! Some functions are too large for decision diagrams, such as the sum of two arguments or a whole returned word. Gates
//! represent every program: [`graph`] stores them without duplicates; [`words`] has the machine's arithmetic;
//! [`program`] and [`ruleset`] translate, [`packets`] has the loads of socket filters; [`solve`] runs a SAT solver,
//! with a limit on its conflicts and no clock. It returns an input, or a refutation for every input; if it reaches the
//! limit the answer is *unknown*.

mod branches;
mod composed;
mod graph;
mod packets;
mod program;
mod ruleset;
mod solve;
mod words;

use tamis_abi::{ActionKind, Word};
use tamis_rules::{Input, IntervalSet, Section};

use crate::code::Code;
use crate::comparison::Scope;
use crate::diagram::Limited;
use crate::misreading::{self, Reading, Rule};
use crate::sat::Refutation;
use crate::space::Limits;
use crate::stop::Stop;
use crate::subject::Subject;
pub use branches::Branches;
pub use composed::Composed;
pub(crate) use graph::Gate;
use graph::Gates;
pub use packets::agree_on_packets;
use words::Bits;

/// `SECCOMP_RET_ALLOW`, the result of a stack without stricter filters.
const ALLOW: u32 = 0x7fff_0000;

/// Two filters as one circuit.
pub(crate) struct Circuit<'a> {
    gates: Gates,
    left: Bits,
    right: Bits,
    max_conflicts: u64,
    stop: &'a Stop,
}

/// The conditions that two filters differ, by kind of difference.
#[derive(Clone, Copy)]
pub(crate) struct Differences {
    /// The first filter has the stricter action.
    pub(crate) stricter: Gate,
    /// The first filter has the looser action.
    pub(crate) looser: Gate,
    /// Both have the same action, with different data.
    pub(crate) data_only: Gate,
    /// Any of them.
    pub(crate) any: Gate,
}

impl<'a> Circuit<'a> {
    /// The circuit of two filters.
    ///
    /// # Errors
    /// If there are too many gates, or the caller stops.
    pub(crate) fn new(
        left: &Subject<'_>,
        right: &Subject<'_>,
        limits: &Limits,
        stop: &'a Stop,
    ) -> Limited<Circuit<'a>> {
        let mut gates = Gates::new(limits.max_gates, stop.clone());
        let left = function(&mut gates, left)?;
        let right = function(&mut gates, right)?;
        Ok(Circuit {
            gates,
            left,
            right,
            max_conflicts: limits.max_conflicts,
            stop,
        })
    }

    /// The condition that the filters return different values.
    pub(crate) fn difference(&mut self) -> Limited<Gate> {
        words::equal(&mut self.gates, &self.left, &self.right).map(Gate::not)
    }

    /// The conditions that a call of the scope has different results.
    pub(crate) fn differences(&mut self, scope: &Scope) -> Limited<Differences> {
        let gates = &mut self.gates;
        let domain = domain(gates, scope)?;
        let left_rank = strictness(gates, &self.left, scope)?;
        let right_rank = strictness(gates, &self.right, scope)?;
        let stricter = words::greater(gates, &right_rank, &left_rank, Gate::FALSE)?;
        let looser = words::greater(gates, &left_rank, &right_rank, Gate::FALSE)?;
        let data_only = if scope.actions_only {
            Gate::FALSE
        } else {
            let same_action = words::equal(gates, &left_rank, &right_rank)?;
            let same = words::equal(gates, &self.left, &self.right)?;
            gates.and(same_action, same.not())?
        };
        let mut inside = |condition| gates.and(domain, condition);
        let [stricter, looser, data_only] =
            [inside(stricter)?, inside(looser)?, inside(data_only)?];
        let any = gates.or(stricter, looser)?;
        let any = gates.or(any, data_only)?;
        Ok(Differences {
            stricter,
            looser,
            data_only,
            any,
        })
    }

    /// The refutation that a condition holds; else an input for which it does.
    ///
    /// # Errors
    /// As [`input_for`](Self::input_for).
    pub(crate) fn refutation(&self, condition: Gate) -> Limited<Result<Refutation, Input>> {
        solve::search(&self.gates, condition, self.max_conflicts, self.stop)
    }

    /// An input for which a condition holds; `None` if there is none.
    ///
    /// # Errors
    /// If the solver reaches its limit, or the caller stops.
    pub(crate) fn input_for(&self, condition: Gate) -> Limited<Option<Input>> {
        solve::input_for(&self.gates, condition, self.max_conflicts, self.stop)
    }
}

/// The return value of a subject.
fn function(gates: &mut Gates, subject: &Subject<'_>) -> Limited<Bits> {
    match subject {
        Subject::Ruleset(rules) => ruleset::returned(gates, rules),
        Subject::Program(program) => {
            program::returned(gates, Code::Program(program), &mut |_, _| ())
        }
        Subject::Template(template) => {
            program::returned(gates, Code::Template(template), &mut |_, _| ())
        }
        Subject::Stack(filters) => {
            let mut kept = words::constant(ALLOW);
            for filter in filters.iter().rev() {
                let older = function(gates, filter)?;
                let replaces = replaces(gates, &older, &kept)?;
                kept = words::select(gates, replaces, &older, &kept)?;
            }
            Ok(kept)
        }
    }
}

/// The condition that an older filter's return value replaces the one kept so far: its action is smaller, as a
/// signed number.
fn replaces(gates: &mut Gates, older: &Bits, kept: &Bits) -> Limited<Gate> {
    let misreads = |rule| misreading::has(Reading::Gates, rule);
    let place = |ret: &Bits| {
        let mut place = *ret;
        if !misreads(Rule::StackData) {
            place[..16].fill(Gate::FALSE);
        }
        if !misreads(Rule::StackOrder) {
            place[31] = place[31].not();
        }
        place
    };
    let [kept_place, older_place] = [place(kept), place(older)];
    let tie = match misreads(Rule::StackAllow) {
        true => words::equal(gates, kept, &words::constant(ALLOW))?,
        false => Gate::from(misreads(Rule::StackTies)),
    };
    words::greater(gates, &kept_place, &older_place, tie)
}

/// The strictness of a return value: smaller is stricter.
fn strictness(gates: &mut Gates, ret: &Bits, scope: &Scope) -> Limited<Bits> {
    // Unknown actions kill the process.
    let mut rank = words::constant(0);
    for (number, kind) in ActionKind::ALL.into_iter().enumerate() {
        let is_kill = matches!(kind, ActionKind::KillProcess | ActionKind::KillThread);
        let number = if is_kill && scope.actions_only {
            0
        } else {
            number
        };
        let mut action = *ret;
        action[..16].fill(Gate::FALSE);
        let is_kind = words::equal(gates, &action, &words::constant(kind.ret()))?;
        rank = words::select(gates, is_kind, &words::constant(number as u32), &rank)?;
    }
    Ok(rank)
}

/// The condition that a call is in the scope.
fn domain(gates: &mut Gates, scope: &Scope) -> Limited<Gate> {
    let nr = words::input(gates, Word::NR)?;
    let arch = words::input(gates, Word::ARCH)?;
    let mut domain = Gate::from(scope.arches.is_empty());
    for known in &scope.arches {
        let is_arch = words::equal(gates, &arch, &words::constant(known.audit()))?;
        let is_own = ruleset::in_set(gates, &nr, &Section::domain(*known))?;
        let applies = gates.and(is_arch, is_own)?;
        domain = gates.or(domain, applies)?;
    }
    if scope.native_only {
        let native = IntervalSet::from_iter([0..=(1 << 30) - 1]);
        let is_native = ruleset::in_set(gates, &nr, &native)?;
        domain = gates.and(domain, is_native)?;
    }
    Ok(domain)
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Endian, SeccompData};
    use tamis_bpf::{Op, Program, validate};

    use super::*;

    /// The sources of the translation to gates, without tests.
    const SOURCES: [&str; 7] = [
        include_str!("mod.rs"),
        include_str!("composed.rs"),
        include_str!("program.rs"),
        include_str!("packets.rs"),
        include_str!("words.rs"),
        include_str!("graph.rs"),
        include_str!("branches.rs"),
    ];

    #[test]
    fn nothing_of_the_reading_is_shared_with_the_diagrams_or_the_interpreter() {
        let shared = [
            "from_offset",
            ".offset(",
            "DATA_SIZE_BYTES",
            "validate",
            "precedence",
            "interp",
            "arithmetic",
            ".holds(",
            "explore",
            "value::",
            "bits::",
            "liveness",
            "relation",
            "word_test",
            "order::",
            "stack::",
        ];
        for source in SOURCES {
            let code: String = source
                .lines()
                .take_while(|line| !line.starts_with("#[cfg(test)]"))
                .filter(|line| !line.trim_start().starts_with("//"))
                .collect();
            let found: Vec<_> = shared.iter().filter(|name| code.contains(*name)).collect();
            assert!(found.is_empty(), "{found:?}");
        }
    }

    #[test]
    fn words_and_sizes_are_those_of_the_machine() {
        let (limits, stop) = (Limits::default(), Stop::default());
        let words = (0..validate::DATA_SIZE_BYTES).step_by(4).map(Op::LoadData);
        for load in words.chain([Op::LoadLen]) {
            for endian in [Endian::Little, Endian::Big] {
                let insns = [load, Op::RetA].map(Into::into).to_vec();
                let program = Program::new(insns, endian).unwrap();
                let subject = Subject::Program(&program);
                let circuit = Circuit::new(&subject, &subject, &limits, &stop).unwrap();
                let value = |data: &SeccompData| {
                    let bits = circuit.left.iter().enumerate();
                    bits.fold(0, |value, (bit, gate)| {
                        let is_set = match circuit.gates.driver(gate.number()) {
                            graph::Driver::False => false,
                            graph::Driver::Input(word, bit) => data.word(word) >> bit & 1 == 1,
                            graph::Driver::And(..) | graph::Driver::Free(_) => {
                                panic!("a word is no computation")
                            }
                        };
                        value | u32::from(is_set != gate.is_inverted()) << bit
                    })
                };
                let data = SeccompData {
                    nr: 0x0123_4567,
                    arch: 0x89ab_cdef,
                    ip: 0x1122_3344_5566_7788,
                    args: std::array::from_fn(|arg| 0x1020_3040_5060_7080 * (arg as u64 + 1)),
                };
                assert_eq!(
                    value(&data),
                    subject.answer(&data.into()),
                    "{load:?} {endian:?}"
                );
            }
        }
    }
}

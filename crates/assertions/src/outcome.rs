//! Results of checks: whether each holds, and calls that contradict those that don't.

use tamis_abi::{Action, Arch, SeccompData, signature};
use tamis_bpf::{Pc, Program, interp, stack};
use tamis_prover::{LimitReached, Subject};
use tamis_rules::{Cause, Input, Origin};

/// The result of a check for a policy.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The answer.
    pub verdict: Verdict,
    /// The counterexamples; empty unless the check fails.
    pub violations: Vec<Violation>,
    /// The number of further calls that contradict it.
    pub further: usize,
    /// Facts that the answer doesn't contain, each a sentence.
    pub notices: Vec<String>,
}

/// The answer of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds for every call.
    Holds,
    /// Something contradicts it.
    Fails,
    /// A limit was reached.
    Undecided(LimitReached),
    /// It could not be made, for this reason: there is no program to measure.
    NotMade(String),
}

/// A counterexample of a check.
#[derive(Clone, Debug)]
pub enum Violation {
    /// A call with the wrong action.
    Call(Example),
    /// A call with another action than the reference has.
    Reference {
        /// The call.
        example: Example,
        /// The action of the reference.
        reference: Action,
    },
    /// More instructions than permitted.
    Size {
        /// The number of instructions.
        length_insns: usize,
    },
    /// A call for which the kernel runs the filter.
    NotCached(Example),
}

/// A call, its action, and the rule or instruction that decides it.
#[derive(Clone, Debug)]
pub struct Example {
    /// The call, and the values of the policy's variables.
    pub input: Input,
    /// Its action.
    pub action: Action,
    /// The reason why the check concerns the call.
    pub way: Way,
    /// The rule or instruction that decides.
    pub decider: Decider,
}

/// The reason why a check concerns a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// The check names it.
    Direct,
    /// The check names it, and its condition tests memory, which no filter reads.
    InMemory,
    /// A multiplexer makes this call, with arguments in memory.
    Multiplexer(&'static str),
    /// It has the same effect.
    Twin {
        /// The effect: completes "it can …".
        effect: &'static str,
        /// The part that a filter can't see, or the way to the effect.
        reason: &'static str,
    },
    /// A ring executes this operation.
    Ring(&'static str),
}

/// The most calls that are listed for a check.
const MAX_VIOLATIONS: usize = 12;

/// The results of a check, so far.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) violations: Vec<Violation>,
    pub(crate) further: usize,
    pub(crate) notices: Vec<String>,
    /// The reason why the check could not be made.
    pub(crate) not_made: Option<String>,
}

impl Found {
    /// Whether no further call is listed.
    pub(crate) fn is_full(&self) -> bool {
        self.violations.len() == MAX_VIOLATIONS
    }

    pub(crate) fn add(&mut self, violation: Violation) {
        match self.is_full() {
            true => self.further += 1,
            false => self.violations.push(violation),
        }
    }

    pub(crate) fn notice(&mut self, text: String) {
        if !self.notices.contains(&text) && self.not_made.as_ref() != Some(&text) {
            self.notices.push(text);
        }
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        Outcome {
            verdict: match (self.violations.is_empty(), self.not_made) {
                (false, _) => Verdict::Fails,
                (true, Some(reason)) => Verdict::NotMade(reason),
                (true, None) => Verdict::Holds,
            },
            violations: self.violations,
            further: self.further,
            notices: self.notices,
        }
    }
}

/// The rule, default or instruction that decides the action of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decider {
    /// A rule, with its place if known.
    Rule(Option<Origin>),
    /// The default of an architecture's rules.
    Default(Arch),
    /// The action for architectures without rules.
    BadArch,
    /// There is no filter.
    NoFilter,
    /// An instruction of a program.
    Insn {
        /// The index of the program, counted from the oldest.
        filter: usize,
        /// The instruction.
        pc: Pc,
    },
}

/// An argument with set bits that the kernel doesn't read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawArgument {
    /// The name of the argument.
    pub name: &'static str,
    /// The whole register.
    pub value: u64,
    /// The number of bits that the kernel reads.
    pub read_bits: u32,
}

impl Example {
    /// The call as the kernel reads it, and the arguments with set bits that the kernel doesn't read.
    pub fn as_read(&self) -> (SeccompData, Vec<RawArgument>) {
        as_read(&self.input.data)
    }
}

/// A call as the kernel reads it, and the arguments with set bits that the kernel doesn't read.
///
/// ```
/// use tamis_abi::{Arch, call};
/// let made = call::parse("x86_64 socket(0x100000026)", Arch::X86_64).unwrap();
/// let (read, raw) = tamis_assertions::as_read(&made);
/// assert_eq!(call::describe_briefly(&read), "x86_64 socket(family=AF_ALG)");
/// assert_eq!((raw[0].name, raw[0].value, raw[0].read_bits), ("family", 0x1_0000_0026, 32));
/// ```
pub fn as_read(data: &SeccompData) -> (SeccompData, Vec<RawArgument>) {
    let (mut read, mut raw) = (*data, Vec::new());
    let Some(arch) = Arch::of_call(data.arch, data.nr) else {
        return (read, raw);
    };
    let Some(call) = tamis_abi::syscall::name(arch, tamis_abi::Nr(data.nr)) else {
        return (read, raw);
    };
    for arg in signature::args(call).unwrap_or_default() {
        let Some(index) = signature::index(arch, call, arg.name()) else {
            continue;
        };
        let width = signature::width(arch, call, arg);
        let value = data.args[index.index()];
        let extended = i64::from(value as u32 as i32).cast_unsigned();
        let is_sign = width == signature::Width::Bits32 && value == extended;
        if value > width.max() && !is_sign {
            read.args[index.index()] = value & width.max();
            raw.push(RawArgument {
                name: arg.name(),
                value,
                read_bits: width.bits(),
            });
        }
    }
    (read, raw)
}

/// The rule, default or instruction that decides the action of a call.
pub(crate) fn decider(subject: &Subject<'_>, input: &Input) -> Decider {
    decider_in(subject, input, 0)
}

fn decider_in(subject: &Subject<'_>, input: &Input, filter: usize) -> Decider {
    let last_insn = |program: &Program| {
        let mut last = Pc(0);
        interp::run_traced(program, &input.data, &mut |pc| last = pc);
        Decider::Insn { filter, pc: last }
    };
    match subject {
        Subject::Ruleset(ruleset) => match ruleset.decide_with(&input.data, &input.variables).cause
        {
            Cause::Rule(_, rule) => Decider::Rule(rule.origin.clone()),
            Cause::Default(section) => Decider::Default(section.arch),
            Cause::BadArch => Decider::BadArch,
        },
        Subject::Program(program) => last_insn(program),
        Subject::Template(template) => last_insn(&template.bind(input.variables.as_slice())),
        Subject::Stack(filters) => {
            let answers: Vec<u32> = filters.iter().map(|own| own.answer(input)).collect();
            match stack::winner(&answers) {
                Some(index) => decider_in(&filters[index], input, index),
                None => Decider::NoFilter,
            }
        }
    }
}

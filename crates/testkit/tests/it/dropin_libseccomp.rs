//! The replacement of libseccomp against the system's libseccomp: random sequences of calls get the same return values,
//! the same pseudo code, and programs with the same meaning.
//!
//! The library behaves as 2.6.1; the system's may be older. Known differences are excluded, with the reason beside the
//! code; docs/book/libseccomp.md lists the same.

use tamis_abi::{Action, ActionKind, Arch, Endian};
use tamis_bpf::{Insn, Program};
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_testkit::libseccomp::{Condition, Errno, Filter, Library, Op, built_library};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

/// The sequences, and every how many-th is compared by the prover.
const SEQUENCES: u64 = 100_000;
const PROVED: u64 = 20;

/// The most calls of a sequence.
const CALLS: u64 = 14;

const ACTIONS: [Action; 8] = [
    Action::ALLOW,
    Action::KILL_THREAD,
    Action::KILL_PROCESS,
    Action::errno(1),
    Action::errno(38),
    Action::errno(4095),
    Action::new(ActionKind::Trace, 3),
    Action::new(ActionKind::Trap, 0),
];
const ARCHES: [Arch; 5] = [
    Arch::X86_64,
    Arch::X86,
    Arch::X32,
    Arch::Arm,
    Arch::Mipsel64n32,
];
const NAMES: [&str; 16] = [
    "read",
    "openat",
    "socket",
    "socketcall",
    "clone",
    "madvise",
    "chown32",
    "send",
    "semop",
    "ipc",
    "open",
    "accept",
    "personality",
    "mmap",
    "getpid",
    "fork",
];
const NUMBERS: [i32; 6] = [-1, -5, -101, 999, -10_001, 0x4000_0001];
const VALUES: [u64; 7] = [0, 1, 5, 0xff, 0xffff_ffff, 0x1_0000_0005, u64::MAX];

/// The library of this build.
fn ours() -> Library {
    Library::open_file(&built_library()).expect("the library has all functions")
}

/// A call to both libraries.
#[derive(Clone, Debug)]
enum Call {
    AddArch(Arch),
    RemoveArch(Arch),
    HasArch(Arch),
    SetAttribute(u32, u32),
    Attribute(u32),
    Priority(i32, u8),
    Rule(Action, i32, Vec<Condition>),
    ExactRule(Action, i32, Vec<Condition>),
    Reset(Action),
    /// Takes over the architectures of a filter with this default action, which these calls made.
    Merge(Action, Vec<Call>),
}

impl Call {
    fn make<'l>(&self, library: &'l Library, filter: &mut Filter<'l>) -> Result<u32, Errno> {
        match self {
            Call::Attribute(number) => return filter.attribute(*number),
            Call::AddArch(arch) => filter.add_arch(*arch),
            Call::RemoveArch(arch) => filter.remove_arch(*arch),
            Call::HasArch(arch) => filter.has_arch(*arch),
            Call::SetAttribute(number, value) => filter.set_attribute(*number, *value),
            Call::Priority(nr, priority) => filter.set_priority(*nr, *priority),
            Call::Rule(action, nr, conditions) => filter.add_rule(*action, *nr, conditions),
            Call::ExactRule(action, nr, conditions) => {
                filter.add_exact_rule(*action, *nr, conditions)
            }
            Call::Reset(action) => filter.reset(*action),
            Call::Merge(default, calls) => {
                let mut other = library.filter(*default).ok_or(Errno(22))?;
                for call in calls {
                    // The pseudo code shows which of them were refused, but for internal errors.
                    if call.make(library, &mut other) == Err(Errno(14)) {
                        return Err(Errno(14));
                    }
                }
                filter.merge(other).map_err(|(errno, _)| errno)
            }
        }
        .map(|()| 0)
    }

    const fn changes_arches(&self) -> bool {
        matches!(
            self,
            Call::AddArch(_) | Call::RemoveArch(_) | Call::Merge(..)
        )
    }

    const fn is_rule(&self) -> bool {
        matches!(self, Call::Rule(..) | Call::ExactRule(..))
    }
}

/// The common calls and arguments of a sequence, so that rules interact.
struct Theme {
    actions: [Action; 3],
    numbers: [i32; 3],
    values: [u64; 3],
}

impl Theme {
    fn new(rng: &mut Rng, library: &Library) -> Theme {
        let number = |rng: &mut Rng| match rng.chance(1, 20) {
            true => *rng.choose(&NUMBERS),
            false => library
                .resolve(rng.choose::<&str>(&NAMES))
                .expect("a known call"),
        };
        let value = |rng: &mut Rng| match rng.chance(1, 4) {
            true => rng.next_u64(),
            false => *rng.choose(&VALUES),
        };
        Theme {
            actions: [(); 3].map(|()| *rng.choose(&ACTIONS)),
            numbers: [(); 3].map(|()| number(rng)),
            values: [(); 3].map(|()| value(rng)),
        }
    }

    /// A call; merges are with filters of this default action, mostly.
    fn call(&self, rng: &mut Rng, default: Action) -> Call {
        match rng.range(0..=20) {
            20 => self.merge(rng, default),
            0 | 1 => Call::AddArch(*rng.choose(&ARCHES)),
            2 => Call::RemoveArch(*rng.choose(&ARCHES[..3])),
            3 => Call::HasArch(*rng.choose(&ARCHES)),
            // Attribute 10 and actions with a greater number than in 2.5.4 are excluded.
            4 => Call::SetAttribute(
                *rng.choose(&[0, 1, 2, 3, 5, 8, 9, 11]),
                rng.range(0..=3) as u32,
            ),
            5 => Call::Attribute(rng.range(0..=9) as u32),
            6 => Call::Priority(*rng.choose(&self.numbers), rng.range(0..=255) as u8),
            7 if rng.chance(1, 4) => Call::Reset(*rng.choose(&self.actions)),
            8 => Call::ExactRule(
                *rng.choose(&self.actions),
                *rng.choose(&self.numbers),
                self.conditions(rng),
            ),
            _ => self.rule(rng),
        }
    }

    fn rule(&self, rng: &mut Rng) -> Call {
        Call::Rule(
            *rng.choose(&self.actions),
            *rng.choose(&self.numbers),
            self.conditions(rng),
        )
    }

    fn merge(&self, rng: &mut Rng, default: Action) -> Call {
        let default = match rng.chance(1, 6) {
            true => *rng.choose(&self.actions),
            false => default,
        };
        let mut calls = Vec::new();
        if rng.chance(4, 5) {
            calls.push(Call::RemoveArch(Arch::X86_64));
        }
        for _ in 0..rng.range(0..=2) {
            calls.push(Call::AddArch(*rng.choose(&ARCHES)));
        }
        if rng.chance(1, 8) {
            calls.push(Call::SetAttribute(3, 0));
        }
        for _ in 0..rng.range(0..=3) {
            calls.push(self.rule(rng));
        }
        Call::Merge(default, calls)
    }

    fn conditions(&self, rng: &mut Rng) -> Vec<Condition> {
        let count = *rng.choose(&[0, 1, 1, 1, 2, 2, 3]);
        let condition = |rng: &mut Rng| Condition {
            arg: *rng.choose(&[0, 0, 1, 2, 5]),
            op: *rng.choose(&Op::ALL),
            value: *rng.choose(&self.values),
            value_two: *rng.choose(&self.values),
        };
        (0..count).map(|_| condition(rng)).collect()
    }
}

/// Whether before 2.6.1 the merge of these rules was wrong: two 64-bit limits from above.
fn has_limits_from_above(history: &[Call]) -> bool {
    limits_from_above(history) > 1
}

fn limits_from_above(history: &[Call]) -> usize {
    let is_limit = |condition: &Condition| matches!(condition.op, Op::Lt | Op::Le | Op::Ne);
    let limits = history.iter().map(|call| match call {
        Call::Rule(_, _, conditions) | Call::ExactRule(_, _, conditions) => {
            usize::from(conditions.iter().any(is_limit))
        }
        Call::Merge(_, calls) => limits_from_above(calls),
        _ => 0,
    });
    limits.sum()
}

/// The results of the sequences.
#[derive(Debug, Default)]
struct Tally {
    calls: u64,
    refused: u64,
    merged: u64,
    compared: u64,
    equal: u64,
    /// The library's program differs from its own pseudo code.
    contradictions: u64,
}

fn compare(libraries: [&Library; 2], seed: u64, tally: &mut Tally) {
    let rng = &mut Rng::new(seed);
    let theme = Theme::new(rng, libraries[1]);
    let default = *rng.choose(&ACTIONS);
    let filters = libraries.map(|library| library.filter(default));
    let [Some(mut ours), Some(mut theirs)] = filters else {
        assert!(filters.iter().all(Option::is_none), "{default} as default");
        return;
    };
    let mut history: Vec<Call> = Vec::new();
    let mut has_rules = false;
    let mut now = default;
    for _ in 0..rng.range(1..=CALLS) {
        let call = theme.call(rng, now);
        // After a refused rule, libseccomp returns to the architectures of the last accepted one.
        if call.changes_arches() && has_rules {
            continue;
        }
        let answer = call.make(libraries[0], &mut ours);
        history.push(call.clone());
        // Rules that make libseccomp loop forever are internal errors here.
        let has_rules_in_it = call.is_rule() || matches!(call, Call::Merge(..));
        if has_rules_in_it && answer == Err(Errno(14)) {
            return;
        }
        tally.calls += 1;
        tally.refused += u64::from(answer.is_err());
        let their_answer = call.make(libraries[1], &mut theirs);
        assert_eq!(answer, their_answer, "seed {seed}: {history:#x?}");
        tally.merged += u64::from(matches!(call, Call::Merge(..)) && answer.is_ok());
        match call {
            Call::Reset(action) if answer.is_ok() => {
                now = action;
                has_rules = false;
            }
            _ => has_rules |= call.is_rule() && answer.is_ok(),
        }
    }
    if libraries[1].version() < (2, 6, 1) && has_limits_from_above(&history) {
        return;
    }
    tally.compared += 1;
    let texts = [&ours, &theirs].map(Filter::pseudo_code_text);
    // The priority of a call depends on how often shared tests are counted when a rule makes others redundant.
    let without = |text: &Result<String, Errno>| {
        text.as_deref()
            .map(without_priorities)
            .map_err(Clone::clone)
    };
    assert_eq!(
        without(&texts[0]),
        without(&texts[1]),
        "seed {seed}: {history:#x?}"
    );
    if seed.is_multiple_of(PROVED) {
        compare_programs(&ours, &theirs, seed, tally);
    }
}

fn without_priorities(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split(" [priority").next().unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Compares the programs with the prover. If they differ for some call, the library's pseudo code defines the correct
/// result for it, which our program must return.
fn compare_programs(ours: &Filter<'_>, theirs: &Filter<'_>, seed: u64, tally: &mut Tally) {
    let code = theirs.pseudo_code();
    let program = |insns: Vec<Insn>| Program::new(insns, Endian::Little).expect("a valid program");
    // Filters without architectures have no program.
    let (Ok(ours), Ok(theirs)) = (ours.export(), theirs.export()) else {
        return;
    };
    let (ours, theirs) = (program(ours), program(theirs));
    let subjects = [Subject::Program(&ours), Subject::Program(&theirs)];
    match decide(&subjects[0], &subjects[1], &Limits::default()) {
        Answer::Equal(_) => tally.equal += 1,
        Answer::Different { input, left, .. } => {
            let meant = code.expect("it was exported").decide(&input.data);
            assert_eq!(
                Action::from_ret(left),
                meant,
                "seed {seed}: {}",
                input.describe()
            );
            tally.contradictions += 1;
        }
        Answer::Unknown(limit) => panic!("seed {seed}: {limit:?}"),
    }
}

#[test]
fn sequences_of_calls_get_the_same_answers() {
    let system = Library::open().unwrap_or_else(|reason| skip::because(Need::Peers, reason));
    skip::unless_x86_64();
    let ours = ours();
    assert_eq!(ours.version(), (2, 6, 1));
    assert_ne!(
        ours.address(),
        system.address(),
        "two libraries with one name"
    );
    let mut tally = Tally::default();
    for seed in seeds::selected(0..SEQUENCES) {
        compare([&ours, &system], seed, &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.compared > seeds::least(SEQUENCES / 4), "{tally:?}");
    assert!(tally.refused > seeds::least(SEQUENCES), "{tally:?}");
    assert!(tally.merged > seeds::least(SEQUENCES / 50), "{tally:?}");
    assert!(
        tally.equal > seeds::least(SEQUENCES / PROVED / 4),
        "{tally:?}"
    );
}

/// The sequences with transactions, which libseccomp has only since 2.6.
const TRANSACTIONS: u64 = 2000;

/// Makes calls that concern rules and architectures; transactions end in one of both ways. Returns the most that were
/// open at once.
fn transact<'l>(
    library: &'l Library,
    filter: &mut Filter<'l>,
    (rng, theme): (&mut Rng, &Theme),
    seed: u64,
) -> usize {
    let text = |filter: &Filter<'_>| filter.pseudo_code_text();
    let mut open = Vec::new();
    let mut most = 0;
    for _ in 0..rng.range(8..=24) {
        match rng.range(0..=7) {
            0 | 1 => {
                filter.start_transaction().expect("it has architectures");
                open.push(text(filter));
                most = most.max(open.len());
            }
            2 => {
                let before = text(filter);
                let committed = filter.commit_transaction();
                assert_eq!((committed, text(filter)), (Ok(()), before), "seed {seed}");
                open.pop();
            }
            3 => {
                let before = text(filter);
                filter.reject_transaction();
                let expected = open.pop().unwrap_or(before);
                assert_eq!(text(filter), expected, "seed {seed}");
            }
            4 => {
                // The native architecture stays, so that transactions can be started.
                let _ = filter.add_arch(*rng.choose(&ARCHES));
            }
            _ => {
                let _ = theme.rule(rng).make(library, filter);
            }
        }
    }
    most
}

#[test]
fn a_rejected_transaction_leaves_no_trace_and_a_committed_one_its_rules() {
    let library = ours();
    let mut nested = 0;
    for seed in seeds::selected(0..TRANSACTIONS) {
        let rng = &mut Rng::new(seed);
        let theme = Theme::new(rng, &library);
        let Some(mut filter) = library.filter(*rng.choose(&ACTIONS)) else {
            continue;
        };
        let most = transact(&library, &mut filter, (rng, &theme), seed);
        nested += u64::from(most > 1);
    }
    assert!(nested > seeds::least(TRANSACTIONS / 4), "{nested}");
}

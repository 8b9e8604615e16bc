//! Random OCI profiles, small and from small pools, so that their entries overlap, cover and contradict each other.

use std::fmt::Write;

use tamis_abi::{Action, ActionKind, Arch};

use crate::libseccomp::{Condition, Errno, Filter, Library, Op};
use crate::rng::Rng;

/// Calls with a number everywhere, calls that x86 multiplexes with and without a number of their own, the
/// multiplexers, and an unknown name.
const NAMES: [&str; 12] = [
    "read",
    "clone",
    "futex",
    "socket",
    "accept",
    "bind",
    "semop",
    "shmget",
    "socketcall",
    "ipc",
    "stat64",
    "no_such_call",
];

/// The architectures of such profiles besides x86-64: all with its byte order in libseccomp 2.5.
pub const OTHER_ARCHES: [Arch; 9] = [
    Arch::X86,
    Arch::X32,
    Arch::Aarch64,
    Arch::Arm,
    Arch::Mipsel,
    Arch::Mipsel64,
    Arch::Mipsel64n32,
    Arch::Ppc64le,
    Arch::Riscv64,
];

const ARGS: [u32; 4] = [0, 1, 2, 5];

const VALUES: [u64; 11] = [
    0,
    1,
    5,
    7,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x1_0000_0005,
    0x2_0000_0007,
    0xffff_ffff_0000_0000,
    u64::MAX,
];

const ACTIONS: [(&str, ActionKind); 5] = [
    ("SCMP_ACT_ALLOW", ActionKind::Allow),
    ("SCMP_ACT_ERRNO", ActionKind::Errno),
    ("SCMP_ACT_KILL_PROCESS", ActionKind::KillProcess),
    ("SCMP_ACT_TRAP", ActionKind::Trap),
    ("SCMP_ACT_TRACE", ActionKind::Trace),
];

/// An action with its errno, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The name in a profile.
    pub name: &'static str,
    /// The action.
    pub action: Action,
}

/// An entry of a profile.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The calls.
    pub names: Vec<&'static str>,
    /// The action.
    pub answer: Answer,
    /// The conditions; several may be on one argument.
    pub args: Vec<Condition>,
}

/// A profile for x86-64 and other architectures.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The action where no entry matches.
    pub default: Answer,
    /// Architectures in addition to x86-64.
    pub arches: Vec<Arch>,
    /// The entries.
    pub entries: Vec<Entry>,
}

fn answer(rng: &mut Rng) -> Answer {
    let (name, kind) = *rng.choose(&ACTIONS);
    let takes_errno = matches!(kind, ActionKind::Errno | ActionKind::Trace);
    let data = if takes_errno {
        rng.range(1..=2) as u16
    } else {
        0
    };
    Answer {
        name,
        action: Action::new(kind, data),
    }
}

/// A few items of a pool, shared by the entries of one profile.
fn few<T: Copy>(rng: &mut Rng, pool: &[T]) -> Vec<T> {
    (0..rng.range(1..=4)).map(|_| *rng.choose(pool)).collect()
}

/// A profile.
pub fn profile(rng: &mut Rng) -> Profile {
    let names = few(rng, &NAMES);
    let mut profile = of_names(rng, &names);
    profile.entries.push(anchor());
    profile.arches = match rng.range(0..=2) {
        0 => few(rng, &OTHER_ARCHES),
        _ => vec![Arch::X86, Arch::X32],
    };
    profile.arches.retain(|_| rng.chance(1, 2));
    profile.arches.sort_unstable();
    profile.arches.dedup();
    profile
}

/// A profile for x86-64 alone with at least two entries, each for one or two of these calls.
pub fn of_names(rng: &mut Rng, names: &[&'static str]) -> Profile {
    let (args, values) = (few(rng, &ARGS), few(rng, &VALUES));
    let answers: Vec<Answer> = (0..rng.range(1..=3)).map(|_| answer(rng)).collect();
    let most_conditions = rng.range(1..=3);
    let condition = |rng: &mut Rng| Condition {
        arg: *rng.choose(&args),
        op: *rng.choose(&Op::ALL),
        value: *rng.choose(&values),
        value_two: *rng.choose(&values),
    };
    let entry = |rng: &mut Rng| Entry {
        names: (0..rng.range(1..=2)).map(|_| *rng.choose(names)).collect(),
        answer: *rng.choose(&answers),
        args: (0..rng.range(0..=most_conditions))
            .map(|_| condition(rng))
            .collect(),
    };
    let mut entries: Vec<Entry> = (0..rng.range(2..=6)).map(|_| entry(rng)).collect();
    // At least two rules for one call.
    entries[1].names[0] = entries[0].names[0];
    let agrees = rng.chance(1, 3);
    Profile {
        default: if agrees { answers[0] } else { answer(rng) },
        arches: Vec::new(),
        entries,
    }
}

/// A profile for x86-64 alone that mostly allows one call, each entry by conditions on one to three arguments in order,
/// most of them inequalities: of such entries libseccomp shares tests.
pub fn of_inequalities(rng: &mut Rng, name: &'static str) -> Profile {
    let values = few(rng, &VALUES);
    let [allow, deny] = [(ACTIONS[0], 0), (ACTIONS[1], 1)].map(|((name, kind), data)| Answer {
        name,
        action: Action::new(kind, data),
    });
    let is_mixed = rng.chance(1, 4);
    let entry = |rng: &mut Rng| {
        let args = match rng.range(0..=5) {
            0 => 1..=1,
            1 => 0..=2,
            _ => 0..=1,
        };
        let condition = |arg| Condition {
            arg,
            op: *rng.choose(&Op::ALL),
            value: *rng.choose(&values),
            value_two: *rng.choose(&values),
        };
        Entry {
            names: vec![name],
            args: args.map(condition).collect(),
            answer: if is_mixed { answer(rng) } else { allow },
        }
    };
    Profile {
        default: deny,
        arches: Vec::new(),
        entries: (0..rng.range(2..=4)).map(|_| entry(rng)).collect(),
    }
}

/// An unconditional rule for a call that all architectures have and no other entry names. Without one, libseccomp
/// 2.5.4 puts calls that an architecture lacks first, and drops them when it emits the program, together with the
/// instruction that loads the number.
fn anchor() -> Entry {
    Entry {
        names: vec!["close"],
        answer: Answer {
            name: "SCMP_ACT_LOG",
            action: Action::new(ActionKind::Log, 0),
        },
        args: Vec::new(),
    }
}

impl Profile {
    /// The text.
    pub fn to_json(&self) -> String {
        let action = |key: &str, errno_key: &str, answer: Answer| {
            let mut text = format!("\"{key}\": \"{}\"", answer.name);
            if answer.action.data != 0 {
                write!(text, ", \"{errno_key}\": {}", answer.action.data).unwrap();
            }
            text
        };
        let arch = |arch: &Arch| format!("\"SCMP_ARCH_{}\"", arch.name().to_uppercase());
        let entry = |entry: &Entry| {
            let args: Vec<String> = entry.args.iter().map(condition_json).collect();
            format!(
                "{{\"names\": {:?}, {}, \"args\": [{}]}}",
                entry.names,
                action("action", "errnoRet", entry.answer),
                args.join(", ")
            )
        };
        let arches: Vec<String> = self.arches.iter().map(arch).collect();
        let entries: Vec<String> = self.entries.iter().map(entry).collect();
        format!(
            "{{{}, \"architectures\": [{}], \"syscalls\": [\n  {}\n]}}",
            action("defaultAction", "defaultErrnoRet", self.default),
            arches.join(", "),
            entries.join(",\n  ")
        )
    }

    /// Adds the rules as runc does.
    ///
    /// # Errors
    /// The library's.
    pub fn load(&self, filter: &mut Filter<'_>, library: &Library) -> Result<(), Errno> {
        for arch in &self.arches {
            filter.add_arch(*arch)?;
        }
        for entry in &self.entries {
            if entry.answer.action == self.default.action {
                continue;
            }
            for nr in entry.names.iter().filter_map(|name| library.resolve(name)) {
                if entry.repeats_an_argument() {
                    for condition in &entry.args {
                        filter.add_rule(entry.answer.action, nr, &[*condition])?;
                    }
                } else {
                    filter.add_rule(entry.answer.action, nr, &entry.args)?;
                }
            }
        }
        Ok(())
    }
}

impl Entry {
    /// Whether two conditions are on one argument.
    pub fn repeats_an_argument(&self) -> bool {
        let mut args: Vec<u32> = self.args.iter().map(|condition| condition.arg).collect();
        args.sort_unstable();
        args.windows(2).any(|pair| pair[0] == pair[1])
    }
}

fn condition_json(condition: &Condition) -> String {
    let mut text = format!(
        "{{\"index\": {}, \"value\": {}, \"op\": \"{}\"",
        condition.arg,
        condition.value,
        condition.op.oci_name()
    );
    if condition.op == Op::MaskedEq {
        write!(text, ", \"valueTwo\": {}", condition.value_two).unwrap();
    }
    text + "}"
}

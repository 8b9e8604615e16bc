//! Random profiles are equivalent to the filters that the system's libseccomp makes of them when used as by runc.
//!
//! The profiles are small and draw from small pools, so that their entries overlap, cover and contradict each other.
//! Both sides must reject the same profiles, and otherwise return the same action for every input; the inputs are
//! those that the tests of the program and of the ruleset distinguish.
//!
//! libseccomp 2.5 sometimes emits a program that does not follow the rules: after a test of one word it continues as
//! if another were loaded. If program and ruleset differ, the library's pseudo code for the same rules decides, and
//! such inputs are counted.

use std::fmt::Write;

use tamis_abi::{Action, ActionKind, Arch, Endian, SeccompData, Word};
use tamis_bpf::{Program, interp};
use tamis_diag::{Sources, code};
use tamis_policy::oci::{self, OciOptions, ParsedProfile};
use tamis_rules::Ruleset;
use tamis_testkit::inputs::Tests;
use tamis_testkit::libseccomp::{Condition, Errno, Filter, Library, Op};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

/// The number of profiles.
const PROFILES: u64 = 8000;

/// The number of inputs per call number.
const INPUTS_PER_NUMBER: usize = 300;

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
struct Answer {
    name: &'static str,
    action: Action,
}

#[derive(Debug)]
struct Entry {
    names: Vec<&'static str>,
    answer: Answer,
    args: Vec<Condition>,
}

#[derive(Debug)]
struct Profile {
    default: Answer,
    /// Architectures in addition to x86_64.
    arches: Vec<Arch>,
    entries: Vec<Entry>,
}

fn random_answer(rng: &mut Rng) -> Answer {
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

/// A few items of a pool, from which the entries of one profile draw.
fn few<T: Copy>(rng: &mut Rng, pool: &[T]) -> Vec<T> {
    (0..rng.range(1..=4)).map(|_| *rng.choose(pool)).collect()
}

fn random_profile(rng: &mut Rng) -> Profile {
    let (names, args, values) = (few(rng, &NAMES), few(rng, &ARGS), few(rng, &VALUES));
    let answers: Vec<Answer> = (0..rng.range(1..=3)).map(|_| random_answer(rng)).collect();
    let most_conditions = rng.range(1..=3);
    let condition = |rng: &mut Rng| Condition {
        arg: *rng.choose(&args),
        op: *rng.choose(&Op::ALL),
        value: *rng.choose(&values),
        value_two: *rng.choose(&values),
    };
    let entry = |rng: &mut Rng| Entry {
        names: (0..rng.range(1..=2)).map(|_| *rng.choose(&names)).collect(),
        answer: *rng.choose(&answers),
        args: (0..rng.range(0..=most_conditions))
            .map(|_| condition(rng))
            .collect(),
    };
    let mut entries: Vec<Entry> = (0..rng.range(1..=6)).map(|_| entry(rng)).collect();
    entries.push(anchor());
    let agrees = rng.chance(1, 3);
    Profile {
        default: if agrees {
            answers[0]
        } else {
            random_answer(rng)
        },
        arches: [Arch::X86, Arch::X32]
            .into_iter()
            .filter(|_| rng.chance(1, 2))
            .collect(),
        entries,
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
    fn to_json(&self) -> String {
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
    fn load(&self, filter: &mut Filter<'_>, library: &Library) -> Result<(), Errno> {
        for arch in &self.arches {
            filter.add_arch(*arch)?;
        }
        for entry in &self.entries {
            if entry.answer.action == self.default.action {
                continue;
            }
            for nr in entry.names.iter().filter_map(|name| library.resolve(name)) {
                let mut counts = [0; 6];
                for condition in &entry.args {
                    counts[condition.arg as usize] += 1;
                }
                if counts.iter().any(|count| *count > 1) {
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

impl Profile {
    /// Whether versions from 2.6.1 on differ from earlier ones for this input: if two conditions have the same upper
    /// half and their complement is reached through one node of the graph - two `!=`, or two of `<` and `<=` - the
    /// tighter one has precedence since then, before it was the first.
    fn is_merged_otherwise(&self, input: &SeccompData) -> bool {
        let conditions: Vec<(&Entry, &Condition)> = self
            .entries
            .iter()
            .flat_map(|entry| entry.args.iter().map(move |condition| (entry, condition)))
            .collect();
        let is_bound = |op| matches!(op, Op::Lt | Op::Le);
        let is_pair = |(first, a): (&Entry, &Condition), (second, b): (&Entry, &Condition)| {
            let kinds_meet = a.op == Op::Ne && b.op == Op::Ne || is_bound(a.op) && is_bound(b.op);
            let places_meet = a.arg == b.arg && a.value >> 32 == b.value >> 32;
            let names_meet = first.names.iter().any(|name| second.names.contains(name));
            kinds_meet && places_meet && names_meet && first.answer != second.answer
        };
        let is_wide = Arch::of_call(input.arch, input.nr) == Some(Arch::X86_64);
        let mut later = (0..conditions.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        is_wide
            && later.any(|(a, b)| {
                let tighter = conditions[b].1.value < conditions[a].1.value;
                tighter && is_pair(conditions[a], conditions[b])
            })
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

fn parse(json: &str) -> ParsedProfile {
    let mut sources = Sources::new();
    let source = sources.add("random.json", json);
    oci::parse(&sources, source, &OciOptions::docker(Arch::X86_64))
}

/// The results of the comparisons.
#[derive(Debug, Default)]
struct Tally {
    /// Profiles with equivalent results.
    same: usize,
    /// Profiles that both sides reject.
    refused: usize,
    /// Profiles on which the library would not terminate.
    endless: usize,
    /// Profiles in which 2.6.1 merges two 64-bit bounds differently from 2.5.
    merged_otherwise: usize,
    /// The number of inputs compared.
    inputs: usize,
    /// Inputs for which the library's program differs from its pseudo code.
    miscompiled: usize,
}

impl Tally {
    /// Compares on inputs; returns the first with a difference, and the difference.
    fn difference(
        &mut self,
        filter: &Filter<'_>,
        ruleset: &Ruleset,
        rng: &mut Rng,
    ) -> Option<(SeccompData, Action, Action)> {
        let program = Program::new(filter.export().expect("a program"), Endian::Little)
            .expect("a valid program");
        let pseudo_code = filter.pseudo_code().expect("pseudo code");
        for input in inputs(&program, ruleset, rng) {
            self.inputs += 1;
            let ours = ruleset.decide(&input).action;
            let theirs = interp::run(&program, &input).ret;
            if ours.ret() == theirs {
                continue;
            }
            let meant = pseudo_code.decide(&input);
            if ours != meant {
                return Some((input, ours, meant));
            }
            self.miscompiled += 1;
        }
        None
    }

    fn compare(&mut self, profile: &Profile, library: &Library, rng: &mut Rng) {
        let json = profile.to_json();
        let parsed = parse(&json).parsed;
        let has = |code| {
            parsed
                .diagnostics
                .iter()
                .any(|diagnostic| diagnostic.code == code)
        };
        if has(code::OCI_ENDLESS) {
            // The library would not terminate.
            self.endless += 1;
            return;
        }
        let filter = library.filter(profile.default.action);
        let mut filter = filter.expect("a plain action");
        let loaded = profile.load(&mut filter, library);
        match (parsed.ruleset, loaded) {
            (None, Err(Errno::EEXIST)) if has(code::OCI_CONFLICT) => self.refused += 1,
            (Some(ruleset), Ok(())) => match self.difference(&filter, &ruleset, rng) {
                None => self.same += 1,
                Some((input, ..)) if profile.is_merged_otherwise(&input) => {
                    self.merged_otherwise += 1;
                }
                Some((input, ours, theirs)) => {
                    panic!("{input:x?}: ours {ours}, libseccomp {theirs}\n{json}")
                }
            },
            (ours, theirs) => {
                panic!(
                    "accepted by us: {}, libseccomp: {theirs:?}\n{json}",
                    ours.is_some()
                )
            }
        }
    }
}

/// Inputs that the tests of the program and of the ruleset distinguish.
fn inputs(program: &Program, ruleset: &Ruleset, rng: &mut Rng) -> Vec<SeccompData> {
    let mut all = Vec::new();
    for arch in [Arch::X86_64, Arch::X86, Arch::Aarch64].map(Arch::audit) {
        let mut numbers = Tests::new();
        numbers.add_program(program, &[(Word::ARCH, arch)]);
        numbers.add(Word::NR, u32::MAX, Arch::X32_BIT);
        let sections = ruleset.sections().iter();
        sections
            .filter(|section| section.arch.audit() == arch)
            .for_each(|section| numbers.add_numbers(section));
        for nr in numbers.values(Word::NR) {
            let mut tests = Tests::new();
            tests.add_program(program, &[(Word::ARCH, arch), (Word::NR, nr)]);
            if let Some(section) = Arch::of_call(arch, nr).and_then(|arch| ruleset.section(arch)) {
                tests.add_section(section, nr);
            }
            let base = SeccompData {
                nr,
                arch,
                ..SeccompData::default()
            };
            all.extend(tests.inputs(base, INPUTS_PER_NUMBER, rng));
        }
    }
    all
}

#[test]
fn random_profiles_mean_the_same_to_libseccomp() {
    let library = match Library::open() {
        Ok(library) => library,
        Err(reason) => return skip::because(Need::Peers, reason),
    };
    let mut tally = Tally::default();
    for seed in seeds::of(0..PROFILES) {
        let mut rng = Rng::new(seed);
        let profile = random_profile(&mut rng);
        tally.compare(&profile, &library, &mut rng);
    }
    println!(
        "{} profiles, libseccomp {:?}: {tally:?}",
        seeds::share(PROFILES),
        library.version()
    );
    assert!(tally.same > seeds::least(1000) && tally.refused > seeds::least(100));
    assert!(tally.inputs > seeds::least(100_000));
}

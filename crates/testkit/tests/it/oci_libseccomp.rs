//! Random profiles are equivalent to the filters that the system's libseccomp makes of them when used as by runc.
//!
//! Both sides must reject the same profiles, and otherwise the prover must find ruleset and program equal. libseccomp 2.5
//! sometimes emits a program that does not follow the rules: after a test of one word it continues as if another were
//! loaded. If program and ruleset differ, the library's pseudo code for the same rules decides on the prover's input and
//! on those that the tests of program and ruleset distinguish, and such profiles are counted.

use tamis_abi::{Action, Arch, Endian, SeccompData, Word};
use tamis_bpf::{Program, interp};
use tamis_diag::Sources;
use tamis_policy::code;
use tamis_policy::oci::{self, OciOptions, ParsedProfile};
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_rules::Ruleset;
use tamis_testkit::generate::oci::{self as generate, Entry, Profile};
use tamis_testkit::inputs::Tests;
use tamis_testkit::libseccomp::{Condition, Errno, Filter, Library, Op};
use tamis_testkit::oracle::{Class, Classes};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

/// The number of profiles.
const PROFILES: u64 = 8000;

/// The number of inputs per call number.
const INPUTS_PER_NUMBER: usize = 300;

/// Whether versions from 2.6.1 on differ from earlier ones for this input: if two conditions have the same upper half and
/// their complement is reached through one node of the graph - two `!=`, or two of `<` and `<=` - the tighter one has
/// precedence since then, before it was the first.
fn is_merged_otherwise(profile: &Profile, input: &SeccompData) -> bool {
    let conditions: Vec<(&Entry, &Condition)> = profile
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
    let is_wide = Arch::of_call(input.arch, input.nr).is_some_and(Arch::is_64_bit);
    let mut later = (0..conditions.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    is_wide
        && later.any(|(a, b)| {
            let tighter = conditions[b].1.value < conditions[a].1.value;
            tighter && is_pair(conditions[a], conditions[b])
        })
}

fn parse(json: &str) -> ParsedProfile {
    let mut sources = Sources::new();
    let source = sources.add("random.json", json);
    oci::parse(&sources, source, &OciOptions::docker(Arch::X86_64))
}

/// The profiles, by the result of their comparison.
#[derive(Debug, Default)]
struct Tally {
    /// The prover finds program and ruleset equal.
    equal: usize,
    /// Both sides reject it.
    refused: usize,
    /// The library would not terminate.
    endless: usize,
    /// The library's program differs from its own pseudo code wherever it differs from the ruleset.
    miscompiled: usize,
    /// As well, or it merges 64-bit bounds as versions before 2.6.1 do.
    merged_otherwise: usize,
}

impl Tally {
    /// The profiles for the table of formats. None is stricter or looser: a difference that no class explains ends the
    /// test.
    fn classes(&self) -> Classes {
        let not_comparable = |count, reason| (count, Class::NotComparable(reason));
        let counted = [
            (self.refused, Class::BothRefuse),
            (self.equal, Class::Equal),
            not_comparable(self.miscompiled, "the program contradicts its rules"),
            not_comparable(self.merged_otherwise, "limits are merged as before 2.6.1"),
            not_comparable(self.endless, "the library would not terminate"),
        ];
        let mut classes = Classes::default();
        for (count, class) in counted {
            for _ in 0..count {
                classes.add(class.clone(), "");
            }
        }
        classes
    }

    /// Compares a filter with the ruleset; `Err` for an input with a difference that no class explains.
    fn judge(
        &mut self,
        profile: &Profile,
        filter: &Filter<'_>,
        ruleset: &Ruleset,
        rng: &mut Rng,
    ) -> Result<(), (SeccompData, Action, Action)> {
        let program = Program::new(filter.export().expect("a program"), Endian::Little)
            .expect("a valid program");
        let sides = [Subject::Ruleset(ruleset), Subject::Program(&program)];
        let witness = match decide(&sides[0], &sides[1], &Limits::default()) {
            Answer::Equal(_) => {
                self.equal += 1;
                return Ok(());
            }
            Answer::Different { input, .. } => Some(input.data),
            Answer::Unknown(limit) => panic!("{limit}"),
        };
        let pseudo_code = filter.pseudo_code().expect("pseudo code");
        let mut is_merged = false;
        for input in witness.into_iter().chain(inputs(&program, ruleset, rng)) {
            let ours = ruleset.decide(&input).action;
            let meant = pseudo_code.decide(&input);
            if interp::run(&program, &input).ret != ours.ret() && ours != meant {
                is_merged = true;
                if !is_merged_otherwise(profile, &input) {
                    return Err((input, ours, meant));
                }
            }
        }
        match is_merged {
            true => self.merged_otherwise += 1,
            false => self.miscompiled += 1,
        }
        Ok(())
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
            (Some(ruleset), Ok(())) => {
                if let Err((input, ours, meant)) = self.judge(profile, &filter, &ruleset, rng) {
                    panic!("{input:x?}: ours {ours}, libseccomp {meant}\n{json}")
                }
            }
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
    let mut arches: Vec<u32> = ruleset
        .sections()
        .iter()
        .map(|section| section.arch.audit())
        .collect();
    arches.push(Arch::S390x.audit());
    arches.dedup();
    for arch in arches {
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
    let library = Library::open().unwrap_or_else(|reason| skip::because(Need::Peers, reason));
    let mut tally = Tally::default();
    for seed in seeds::selected(0..PROFILES) {
        let mut rng = Rng::new(seed);
        let profile = generate::profile(&mut rng);
        tally.compare(&profile, &library, &mut rng);
    }
    println!("{tally:?}");
    if library.version() == (2, 5, 4) {
        tally.classes().check_row("oci", "libseccomp 2.5.4", 0);
    }
    assert!(tally.equal > seeds::least(4000) && tally.refused > seeds::least(100));
}

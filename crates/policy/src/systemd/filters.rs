//! From a unit's restrictions to the actions of its calls.
//!
//! systemd installs a filter for each directive and architecture, and the kernel runs all of them: the strictest action
//! applies, and of two errnos that of the newer filter. Each filter allows all calls that it doesn't deny, so together
//! they are one list of denials, the strictest and newest first.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::{Action, Arch, ArgIndex, consts, syscall};
use tamis_diag::Span;
use tamis_rules::{CmpOp, IntervalSet, Operand, Predicate, Section, Test};

use super::calls::{Answer, CallList};
use super::settings::{Settings, Switch, all_namespaces, namespaces};
use super::tables::{self, Membership};

const PROT_WRITE: u64 = 2;
const PROT_EXEC: u64 = 4;
const SHM_EXEC: u64 = 0o100_000;
const S_ISUID: u64 = 0o4000;
const S_ISGID: u64 = 0o2000;
/// The personality of a program of a non-native architecture.
const PER_LINUX32: u64 = 8;
/// SCHED_OTHER, SCHED_BATCH, SCHED_IDLE.
const SCHEDULERS: [u64; 3] = [0, 3, 5];

/// Denied calls.
#[derive(Clone, Debug)]
pub(super) struct Denial {
    pub(super) syscalls: IntervalSet<u32>,
    pub(super) when: Predicate,
    pub(super) action: Action,
    /// The directive or word that denies them.
    pub(super) span: Span,
    /// The count of older filters.
    age: usize,
}

/// The denials of all filters of a unit on an architecture; the first match decides.
pub(super) fn denials(settings: &Settings, native: Arch, arch: Arch) -> Vec<Denial> {
    let mut filters = Filters {
        arch,
        age: 0,
        denials: Vec::new(),
    };
    // In systemd's order of installation.
    filters.calls(
        settings,
        Switch::ProtectHostname,
        ["sethostname", "setdomainname"],
    );
    filters.families(settings);
    filters.write_and_execute(settings);
    filters.realtime(settings);
    filters.set_id_bits(settings);
    filters.namespaces(settings);
    filters.calls(settings, Switch::ProtectKernelTunables, ["_sysctl"]);
    let set = |name| tables::calls_from(name, settings.version, Membership::Possible);
    filters.calls(settings, Switch::ProtectKernelModules, set("@module"));
    filters.calls(settings, Switch::ProtectKernelLogs, ["syslog"]);
    filters.calls(settings, Switch::ProtectClock, set("@clock"));
    filters.calls(settings, Switch::PrivateDevices, set("@raw-io"));
    filters.personality(settings, native);
    filters.log(settings);
    filters.filter(settings, native);
    let mut denials = filters.denials;
    denials.sort_by_key(|denial| {
        let strictness = Action::precedence(denial.action.ret());
        (strictness, std::cmp::Reverse(denial.age))
    });
    denials
}

/// The number of filters that systemd installs for a unit on a machine of these architectures, the native one first.
pub(super) fn count(settings: &Settings, arches: &[Arch]) -> usize {
    let Some(native) = arches.first().copied() else {
        return 0;
    };
    let early = settings.early();
    let early = arches.iter().map(|arch| {
        // A filter that denies no call of an architecture isn't installed for it.
        let denials = denials(&early, native, *arch).into_iter();
        let ages: BTreeSet<usize> = denials.map(|denial| denial.age).collect();
        ages.len()
    });
    let is_allowed = |arch: &&Arch| match &settings.arches {
        Some((allowed, _)) => allowed.contains(arch),
        None => true,
    };
    let allowed = arches.iter().filter(is_allowed).count();
    let own = usize::from(allowed < arches.len());
    early.sum::<usize>() + own + allowed * settings.late_count()
}

/// The architectures that a kernel of the native architecture runs and systemd filters, including the native one.
pub fn local_arches(native: Arch) -> Vec<Arch> {
    let others: &[Arch] = match native {
        Arch::X86_64 => &[Arch::X86, Arch::X32],
        Arch::X32 => &[Arch::X86, Arch::X86_64],
        Arch::Aarch64 => &[Arch::Arm],
        Arch::Mips64 => &[Arch::Mips, Arch::Mips64n32],
        Arch::Mipsel64 => &[Arch::Mipsel, Arch::Mipsel64n32],
        Arch::Ppc64 => &[Arch::Ppc],
        Arch::Ppc64le => &[Arch::Ppc],
        Arch::S390x => &[Arch::S390],
        _ => &[],
    };
    [&[native], others].concat()
}

/// Whether systemd restricts families on an architecture: not if sockets can be created by `socketcall`.
pub fn restricts_families(arch: Arch) -> bool {
    let has_socketcall = syscall::multiplexed(arch, "socket").is_some();
    let is_in_doubt = matches!(arch, Arch::Mips | Arch::Mipsel | Arch::S390x);
    !has_socketcall && !is_in_doubt
}

struct Filters {
    arch: Arch,
    age: usize,
    denials: Vec<Denial>,
}

impl Filters {
    /// `RestrictAddressFamilies=`.
    fn families(&mut self, settings: &Settings) {
        let Some(list) = &settings.families else {
            return;
        };
        if !restricts_families(self.arch) {
            return;
        }
        let mut families = list.families.clone();
        if list.is_allow_list {
            families.remove(&0);
        }
        let set = IntervalSet::from_iter(families.into_iter().map(|family| family..=family));
        let listed = Predicate::Test(Test::In {
            operand: self.operand(0),
            set,
        });
        let when = match list.is_allow_list {
            true => Predicate::Not(Box::new(listed)),
            false => listed,
        };
        let errno = self.errno("EAFNOSUPPORT");
        self.deny("socket", when, errno, list.span);
        self.age += 1;
    }

    fn write_and_execute(&mut self, settings: &Settings) {
        let Some(span) = settings.switch(Switch::MemoryDenyWriteExecute) else {
            return;
        };
        // Older calls for mapping memory have arguments that a filter cannot see, and are denied.
        let (mapping, closed, has_shmat) = match self.arch {
            Arch::X86 | Arch::S390 => ("mmap2", Some("mmap"), false),
            Arch::Ppc | Arch::Ppc64 | Arch::Ppc64le | Arch::S390x => ("mmap", None, false),
            Arch::Arm => ("mmap2", None, true),
            Arch::X86_64 | Arch::X32 | Arch::Aarch64 | Arch::Riscv64 | Arch::Loongarch64 => {
                ("mmap", None, true)
            }
            _ => return,
        };
        let eperm = self.errno("EPERM");
        let both = has_bits(2, PROT_WRITE | PROT_EXEC);
        self.deny(mapping, both, eperm, span);
        if let Some(closed) = closed {
            self.deny(closed, Predicate::True, eperm, span);
        }
        for call in ["mprotect", "pkey_mprotect"] {
            self.deny(call, has_bits(2, PROT_EXEC), eperm, span);
        }
        if has_shmat {
            self.deny("shmat", has_bits(2, SHM_EXEC), eperm, span);
        }
        self.age += 1;
    }

    fn realtime(&mut self, settings: &Settings) {
        let Some(span) = settings.switch(Switch::RestrictRealtime) else {
            return;
        };
        let set = IntervalSet::from_iter(SCHEDULERS.map(|scheduler| scheduler..=scheduler));
        let when = Predicate::Not(Box::new(Predicate::Test(Test::In {
            operand: self.operand(1),
            set,
        })));
        let eperm = self.errno("EPERM");
        self.deny("sched_setscheduler", when, eperm, span);
        self.age += 1;
    }

    fn set_id_bits(&mut self, settings: &Settings) {
        let switch = settings.switch(Switch::RestrictSuidSgid);
        let Some(span) = switch.or_else(|| settings.switch(Switch::DynamicUser)) else {
            return;
        };
        let eperm = self.errno("EPERM");
        let modes = [
            ("chmod", 1),
            ("fchmod", 1),
            ("fchmodat", 2),
            ("fchmodat2", 2),
            ("mkdir", 1),
            ("mkdirat", 2),
            ("mknod", 1),
            ("mknodat", 2),
            ("creat", 1),
        ];
        let set_id = |arg| Predicate::Any(vec![has_bits(arg, S_ISUID), has_bits(arg, S_ISGID)]);
        for (call, arg) in modes {
            self.deny(call, set_id(arg), eperm, span);
        }
        let o_creat = consts::value(self.arch, "O_CREAT").unwrap_or(0o100);
        for (call, flags) in [("open", 1), ("openat", 2)] {
            let when = Predicate::All(vec![has_bits(flags, o_creat), set_id(flags + 1)]);
            self.deny(call, when, eperm, span);
        }
        // Its mode is in memory, inaccessible to a filter: with `ENOSYS` programs fall back to another call.
        let enosys = self.errno("ENOSYS");
        self.deny("openat2", Predicate::True, enosys, span);
        self.age += 1;
    }

    fn namespaces(&mut self, settings: &Settings) {
        let Some((stay, span)) = settings.namespaces else {
            return;
        };
        let all = all_namespaces(settings.version);
        if stay & all == all {
            return;
        }
        let (eperm, enosys) = (self.errno("EPERM"), self.errno("ENOSYS"));
        self.deny("clone3", Predicate::True, enosys, span);
        let denied: Vec<u64> = namespaces()
            .map(|(_, flag)| flag)
            .filter(|flag| stay & flag == 0)
            .collect();
        let any = |arg| Predicate::Any(denied.iter().map(|flag| has_bits(arg, *flag)).collect());
        let flags = match self.arch {
            Arch::S390 | Arch::S390x => 1,
            _ => 0,
        };
        self.deny("clone", any(flags), eperm, span);
        self.deny("unshare", any(0), eperm, span);
        let joins = match stay & all {
            0 => Predicate::True,
            // With zero the kernel determines the kind itself.
            _ => {
                let zero = Predicate::compare(self.operand(1), CmpOp::Eq, 0);
                Predicate::Any(vec![zero, any(1)])
            }
        };
        self.deny("setns", joins, eperm, span);
        self.age += 1;
    }

    /// A switch that denies some calls.
    fn calls(
        &mut self,
        settings: &Settings,
        switch: Switch,
        calls: impl IntoIterator<Item = &'static str>,
    ) {
        if let Some(span) = settings.switch(switch) {
            let eperm = self.errno("EPERM");
            let named = self.named(calls);
            self.deny_named(&named, eperm, span);
            self.age += 1;
        }
    }

    fn personality(&mut self, settings: &Settings, native: Arch) {
        let Some(span) = settings.switch(Switch::LockPersonality) else {
            return;
        };
        let personality = match settings.personality {
            Some(arch) if arch != native => PER_LINUX32,
            _ => 0,
        };
        let when = Predicate::compare(self.operand(0), CmpOp::Ne, personality);
        let eperm = self.errno("EPERM");
        self.deny("personality", when, eperm, span);
        self.age += 1;
    }

    fn log(&mut self, settings: &Settings) {
        let Some(list) = settings.log.as_ref().filter(|list| list.is_installed()) else {
            return;
        };
        let log = Action::new(tamis_abi::ActionKind::Log, 0);
        let named = self.named(list.calls.keys().map(String::as_str));
        match list.is_allow_list {
            true => self.deny_named(&named, log, list.span),
            false => self.deny_others(&named, &IntervalSet::empty(), log, list.span),
        }
        self.age += 1;
    }

    fn filter(&mut self, settings: &Settings, native: Arch) {
        let Some(list) = &settings.filter else {
            return;
        };
        let usual = action(settings.errno);
        let all = self.named(list.calls.keys().map(String::as_str));
        if list.is_allow_list {
            let removed = self.removed(list);
            let denied: BTreeSet<u32> = removed.iter().flat_map(|(_, own)| own).copied().collect();
            let denied = IntervalSet::from_iter(denied.into_iter().map(|nr| nr..=nr));
            match settings.version.answers_unknown_calls_with_enosys() {
                false => {
                    for (span, numbers) in removed {
                        let numbers = IntervalSet::from_iter(numbers.into_iter().map(|nr| nr..=nr));
                        self.push(numbers, Predicate::True, usual, span);
                    }
                    self.deny_others(&all, &denied, usual, list.span);
                }
                true => {
                    let known = self.known(settings, native);
                    for (span, numbers) in removed {
                        let (known, others): (Vec<u32>, Vec<u32>) = numbers
                            .into_iter()
                            .partition(|nr| known.numbers.contains(nr));
                        let set = |own: Vec<u32>| {
                            IntervalSet::from_iter(own.into_iter().map(|nr| nr..=nr))
                        };
                        let enosys = self.errno("ENOSYS");
                        self.push(set(known), Predicate::True, usual, span);
                        self.push(set(others), Predicate::True, enosys, span);
                    }
                    self.deny_known_and_others(&all, &known, &denied, usual, list.span);
                }
            }
        }
        for group in groups(list) {
            if list.is_allow_list && group.answer.is_none() {
                continue;
            }
            let mut named = self.named(group.calls);
            // In libseccomp, a rule for all calls of a multiplexer replaces those for its subcalls.
            named.through.retain(|nr, _| !all.numbers.contains(nr));
            self.deny_named(&named, group.answer.map_or(usual, action), group.span);
        }
        self.age += 1;
    }

    // Building blocks of the filters.

    fn errno(&self, name: &str) -> Action {
        let number = consts::value(self.arch, name).and_then(|value| u16::try_from(value).ok());
        Action::errno(number.unwrap_or(1))
    }

    /// An argument as libseccomp compares it.
    fn operand(&self, arg: u8) -> Operand {
        let arg = argument(arg);
        match self.arch.is_64_bit() {
            true => Operand::arg(arg),
            false => Operand::arg_low(arg),
        }
    }

    fn deny(&mut self, call: &str, when: Predicate, action: Action, span: Span) {
        if let Some(nr) = syscall::number(self.arch, call) {
            self.push(IntervalSet::single(nr.0), when, action, span);
        }
    }

    fn push(&mut self, syscalls: IntervalSet<u32>, when: Predicate, action: Action, span: Span) {
        if !syscalls.is_empty() {
            self.denials.push(Denial {
                syscalls,
                when,
                action,
                span,
                age: self.age,
            });
        }
    }

    /// Resolves names of calls to numbers and to subcalls of multiplexers.
    fn named<'n>(&self, calls: impl IntoIterator<Item = &'n str>) -> Named {
        let multiplexes = syscall::multiplexed(self.arch, "socket").is_some();
        let mut named = Named::default();
        for call in calls {
            named
                .numbers
                .extend(syscall::number(self.arch, call).map(|nr| nr.0));
            if multiplexes && let Some(through) = syscall::multiplexed(self.arch, call) {
                let calls = named.through.entry(through.nr.0).or_default();
                calls.insert(u64::from(through.call));
            }
        }
        named
    }

    fn deny_named(&mut self, named: &Named, action: Action, span: Span) {
        self.push(named.set(), Predicate::True, action, span);
        for (nr, calls) in &named.through {
            let when = self.is_one_of(calls);
            self.push(IntervalSet::single(*nr), when, action, span);
        }
    }

    /// The calls that words removed from an allow list, by word, so that explanations can name the word. Calls through
    /// a multiplexer are omitted.
    fn removed(&self, list: &CallList) -> Vec<(Span, BTreeSet<u32>)> {
        let kept = self.named(list.calls.keys().map(String::as_str));
        let mut words: Vec<(Span, BTreeSet<u32>)> = Vec::new();
        for (call, span) in &list.removed {
            let nr = syscall::number(self.arch, call).map(|nr| nr.0);
            let is_direct = |nr: &u32| !kept.numbers.contains(nr) && !kept.through.contains_key(nr);
            let Some(nr) = nr.filter(is_direct) else {
                continue;
            };
            match words.iter_mut().find(|(known, _)| known == span) {
                Some((_, numbers)) => numbers.extend([nr]),
                None => words.push((*span, BTreeSet::from([nr]))),
            }
        }
        words
    }

    /// The calls known to systemd that are not in a list, by names that the native architecture also has. If systemd
    /// may or may not know a name, the stricter action of the two applies.
    fn known(&self, settings: &Settings, native: Arch) -> Named {
        // systemd takes the nested set for a name, and so omits its calls.
        let known = tables::own_calls_from("@known", settings.version, Membership::Possible);
        self.named(known.filter(|call| syscall::number(native, call).is_some()))
    }

    /// Denies all calls that are not in a list: known ones with one action, all others with `ENOSYS`.
    fn deny_known_and_others(
        &mut self,
        listed: &Named,
        known: &Named,
        denied: &IntervalSet<u32>,
        action: Action,
        span: Span,
    ) {
        let enosys = self.errno("ENOSYS");
        let multiplexers = listed.through.keys().chain(known.through.keys());
        let multiplexers: BTreeSet<u32> = multiplexers.copied().collect();
        let partly = multiplexers.iter().filter(|nr| !known.numbers.contains(nr));
        let partly: Vec<u32> = partly.copied().collect();
        let affected = listed
            .set()
            .union(denied)
            .union(&IntervalSet::from_iter(partly.iter().map(|nr| *nr..=*nr)));
        let others = Section::domain(self.arch).difference(&affected);
        let known_numbers = others.difference(&others.difference(&known.set()));
        self.push(known_numbers.clone(), Predicate::True, action, span);
        self.push(
            others.difference(&known_numbers),
            Predicate::True,
            enosys,
            span,
        );
        for nr in partly.into_iter().filter(|nr| !listed.numbers.contains(nr)) {
            let none = BTreeSet::new();
            let listed = listed.through.get(&nr).unwrap_or(&none);
            let known = known.through.get(&nr).unwrap_or(&none);
            let known: BTreeSet<u64> = known.difference(listed).copied().collect();
            let either: BTreeSet<u64> = known.union(listed).copied().collect();
            let (known, either) = (self.is_one_of(&known), self.is_one_of(&either));
            let number = IntervalSet::single(nr);
            self.push(number.clone(), known, action, span);
            self.push(number, Predicate::Not(Box::new(either)), enosys, span);
        }
    }

    /// Denies all calls that are not yet denied.
    fn deny_others(
        &mut self,
        named: &Named,
        denied: &IntervalSet<u32>,
        action: Action,
        span: Span,
    ) {
        let multiplexers = named.through.keys().map(|nr| *nr..=*nr);
        let affected = named
            .set()
            .union(&IntervalSet::from_iter(multiplexers))
            .union(denied);
        let others = Section::domain(self.arch).difference(&affected);
        self.push(others, Predicate::True, action, span);
        for (nr, calls) in &named.through {
            if !named.numbers.contains(nr) {
                let when = Predicate::Not(Box::new(self.is_one_of(calls)));
                self.push(IntervalSet::single(*nr), when, action, span);
            }
        }
    }

    fn is_one_of(&self, calls: &BTreeSet<u64>) -> Predicate {
        Predicate::Test(Test::In {
            operand: self.operand(0),
            set: IntervalSet::from_iter(calls.iter().map(|call| *call..=*call)),
        })
    }
}

/// Calls on an architecture.
#[derive(Debug, Default)]
struct Named {
    numbers: BTreeSet<u32>,
    /// The subcalls by the number of their multiplexer.
    through: BTreeMap<u32, BTreeSet<u64>>,
}

impl Named {
    fn set(&self) -> IntervalSet<u32> {
        IntervalSet::from_iter(self.numbers.iter().map(|nr| *nr..=*nr))
    }
}

/// Calls of a list with the same action and place.
struct Group<'l> {
    answer: Option<Answer>,
    span: Span,
    calls: Vec<&'l str>,
}

fn groups(list: &CallList) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for (call, entry) in &list.calls {
        let is_alike =
            |group: &&mut Group| (group.answer, group.span) == (entry.answer, entry.span);
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.calls.push(call),
            None => groups.push(Group {
                answer: entry.answer,
                span: entry.span,
                calls: vec![call],
            }),
        }
    }
    groups
}

fn action(answer: Answer) -> Action {
    match answer {
        Answer::Kill => Action::KILL_PROCESS,
        Answer::Errno(errno) => Action::errno(errno),
    }
}

/// A test that all of these bits of an argument are set; none of them is in its upper half.
fn has_bits(arg: u8, bits: u64) -> Predicate {
    Predicate::Test(Test::Masked {
        operand: Operand::arg_low(argument(arg)),
        mask: bits,
        value: bits,
    })
}

fn argument(index: u8) -> ArgIndex {
    ArgIndex::new(index).expect("directives look at the first six arguments")
}

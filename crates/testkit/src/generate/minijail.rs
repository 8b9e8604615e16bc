//! Random minijail policies for x86_64 with their meaning: the grammar of its two parsers, and rejected lines.
//!
//! The compilers of minijail are in no registry. So a policy is generated together with its meaning, which an evaluator
//! here derives from the drawn values, not from the text; and mistakes are lines that the grammar rejects. The front
//! end is not involved.

use tamis_abi::{Action, ActionKind, Arch, syscall};

use crate::rng::Rng;

const CALLS: [&str; 12] = [
    "read", "write", "openat", "mmap", "ioctl", "socket", "kill", "futex", "prctl", "clone",
    "fcntl", "getpid",
];
/// Constants with their values on x86_64.
const CONSTANTS: [(&str, u64); 14] = [
    ("O_RDONLY", 0),
    ("O_WRONLY", 1),
    ("O_CREAT", 0x40),
    ("O_CLOEXEC", 0x8_0000),
    ("PROT_READ", 1),
    ("PROT_EXEC", 4),
    ("MAP_SHARED", 1),
    ("MAP_ANONYMOUS", 0x20),
    ("TCGETS", 0x5401),
    ("AF_UNIX", 1),
    ("AF_INET6", 10),
    ("SIGTERM", 15),
    ("CLONE_NEWUSER", 0x1000_0000),
    ("FUTEX_WAIT", 0),
];
const ERRNOS: [(&str, u16); 6] = [
    ("EPERM", 1),
    ("ENOENT", 2),
    ("EACCES", 13),
    ("ENOSYS", 38),
    ("1", 1),
    ("0x26", 38),
];
const VALUES: [u64; 12] = [
    0,
    1,
    2,
    7,
    0xff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0xffff_ffff_0000_0001,
    u64::MAX - 1,
    u64::MAX,
];
/// Lines that the compile tool refuses.
const REFUSED: [&str; 58] = [
    "read",
    "read:",
    ": 1",
    "read: 2",
    "read: 0",
    "read 1",
    "read: 1 1",
    "read: arg0",
    "read: arg0 ==",
    "read: arg0 == 1 &&",
    "read: arg0 == 1 ||",
    "read: && arg0 == 1",
    "read: arg0 = 1",
    "read: arg0 === 1",
    "read: arg0 <> 1",
    "read: arg6 == 1",
    "read: arg == 1",
    "read: 1 == arg0",
    "read: arg0 == arg1",
    "read: (arg0 == 1)",
    "read: !arg0 == 1",
    "read: arg0 == (1",
    "read: arg0 == 1)",
    "read: arg0 == ~~1",
    "read: arg0 == 1 |",
    "read: arg0 == | 1",
    "read: arg0 == 1 2",
    "read: arg0 == NO_SUCH",
    "read: arg0 == 0x",
    "read: arg0 == 0xg",
    "read: arg0 == 18446744073709551616",
    "read: arg0 == -9223372036854775809",
    "read: arg0 == 1;",
    "read: ; return 1",
    "read: arg0 == 1; return",
    "read: return",
    "read: return NO_SUCH",
    "read: return EPERM EPERM",
    "read: deny",
    "read: Allow",
    "read: allow, kill",
    "read: {}",
    "read: { 1",
    "read: { 1, }",
    "read: 1 }",
    "{}: 1",
    "{read: 1",
    "{read,}: 1",
    "{read write}: 1",
    "read, write: 1",
    "nosuchcall: 1",
    "read[arch=]: 1",
    "read[arch=x86_64: 1",
    "read[cpu]: 1",
    "group@nosuch: 1",
    "@default allow",
    "@default",
    "@nosuch",
];
/// Lines that the library refuses.
const REFUSED_BY_LIBRARY: [&str; 24] = [
    "read",
    "read:",
    "read: 2",
    "read: allow",
    "read: kill",
    "read: trap",
    "read: log",
    "read: arg0==1",
    "read: arg0 ==1",
    "read: arg0== 1",
    "read: arg0 == O_RDONLY | O_CREAT",
    "read: arg0",
    "read: arg0 ==",
    "read: arg0 = 1",
    "read: arg == 1",
    "read: arg0 == NO_SUCH",
    "read: arg0 == 1; deny",
    "read: arg0 == 1; return NO_SUCH",
    "read: return NO_SUCH",
    "read: { arg0 == 1, 1 }",
    "{read, write}: 1",
    "read[arch=x86_64]: 1",
    "nosuchcall: 1",
    "@default trap",
];

/// A policy with its meaning.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The file.
    pub text: String,
    /// Whether it is for the library of `minijail0 -S`, not for the compile tool.
    pub is_for_library: bool,
    /// The option `--denylist` of the compile tool.
    pub is_denylist: bool,
    /// The meaning; `None` if the policy is rejected.
    pub meaning: Option<Meaning>,
}

/// The actions of a policy for calls of x86_64.
#[derive(Clone, Debug)]
pub struct Meaning {
    lines: Vec<Line>,
    default: Action,
}

#[derive(Clone, Debug)]
struct Line {
    calls: Vec<&'static str>,
    filters: Vec<Filter>,
}

#[derive(Clone, Debug)]
struct Filter {
    /// Alternatives of conjunctions; none holds always.
    alternatives: Vec<Vec<Atom>>,
    action: Action,
}

#[derive(Clone, Copy, Debug)]
struct Atom {
    arg: usize,
    op: &'static str,
    value: u64,
}

impl Meaning {
    /// The answer to a call.
    pub fn action(&self, nr: u32, args: &[u64; 6]) -> Action {
        let is_of = |line: &&Line| line.calls.iter().any(|call| number(call) == nr);
        let filters = self
            .lines
            .iter()
            .filter(is_of)
            .flat_map(|line| &line.filters);
        let found = filters.into_iter().find(|filter| filter.holds(args));
        found.map_or(self.default, |filter| filter.action)
    }

    /// Calls near the values of the policy, and others.
    pub fn calls(&self, rng: &mut Rng) -> Vec<(u32, [u64; 6])> {
        let filters = || self.lines.iter().flat_map(|line| &line.filters);
        let atoms = filters().flat_map(|filter| filter.alternatives.iter().flatten());
        let mut values: Vec<u64> = atoms.map(|atom| atom.value).collect();
        values.extend(VALUES);
        let near = |rng: &mut Rng| {
            let value = *rng.choose(&values);
            match rng.range(0..=5) {
                0 => value.wrapping_add(1),
                1 => value.wrapping_sub(1),
                2 => !value,
                3 => value ^ 1 << 32,
                4 => value & *rng.choose(&values),
                _ => value,
            }
        };
        let mut calls = Vec::new();
        for call in CALLS {
            for _ in 0..8 {
                calls.push((number(call), std::array::from_fn(|_| near(rng))));
            }
        }
        calls.push((number("getppid"), [0; 6]));
        calls
    }
}

impl Filter {
    fn holds(&self, args: &[u64; 6]) -> bool {
        let all = |atoms: &Vec<Atom>| atoms.iter().all(|atom| atom.holds(args[atom.arg]));
        self.alternatives.is_empty() || self.alternatives.iter().any(all)
    }
}

impl Atom {
    fn holds(&self, arg: u64) -> bool {
        let value = self.value;
        match self.op {
            "==" => arg == value,
            "!=" => arg != value,
            "<" => arg < value,
            "<=" => arg <= value,
            ">" => arg > value,
            ">=" => arg >= value,
            "&" => arg & value != 0,
            _ => arg & !value == 0,
        }
    }
}

fn number(call: &str) -> u32 {
    syscall::number(Arch::X86_64, call)
        .expect("a call of x86_64")
        .0
}

/// A policy for one of the parsers.
pub fn policy(rng: &mut Rng) -> Policy {
    let is_for_library = rng.chance(1, 3);
    let mut policy = Policy {
        text: String::new(),
        is_for_library,
        is_denylist: !is_for_library && rng.chance(1, 5),
        meaning: None,
    };
    let mut meaning = Meaning {
        lines: Vec::new(),
        default: Action::KILL_THREAD,
    };
    if policy.is_denylist {
        meaning.default = Action::ALLOW;
        policy.text.push_str("@denylist\n");
    } else if !is_for_library && rng.chance(1, 4) {
        let (word, action) = *rng.choose(&[
            ("kill", Action::KILL_THREAD),
            ("kill-thread", Action::KILL_THREAD),
            ("kill-process", Action::KILL_PROCESS),
            ("trap", Action::new(ActionKind::Trap, 0)),
            ("user-notify", Action::new(ActionKind::Notify, 0)),
        ]);
        meaning.default = action;
        policy.text.push_str(&format!("@default {word}\n"));
    }
    let mistake = rng.chance(1, 4).then(|| rng.range(0..=3));
    let mut free: Vec<&str> = CALLS.to_vec();
    for index in 0..rng.range(1..=4) {
        if mistake == Some(index) {
            let lines: &[&str] = match is_for_library {
                true => &REFUSED_BY_LIBRARY,
                false => &REFUSED,
            };
            policy.text.push_str(&format!("{}\n", rng.choose(lines)));
        }
        let line = line(rng, &mut policy, &mut free);
        meaning.lines.push(line);
    }
    // A mistake behind the last line is not written.
    let is_refused = mistake.is_some_and(|index| index < meaning.lines.len() as u64);
    policy.meaning = (!is_refused).then_some(meaning);
    policy
}

/// Draws a line and writes it. A call whose filters end with one that always holds is used up.
fn line(rng: &mut Rng, policy: &mut Policy, free: &mut Vec<&'static str>) -> Line {
    let most = if policy.is_for_library { 1 } else { 3 };
    let mut calls = Vec::new();
    for _ in 0..rng.range(1..=most).min(free.len() as u64) {
        calls.push(free.remove(rng.index(free.len())));
    }
    let (filters, text) = match policy.is_for_library {
        true => library_filter(rng),
        false => filters(rng, policy.is_denylist),
    };
    let is_final = filters.iter().any(|filter| filter.alternatives.is_empty());
    if !policy.is_for_library && !is_final {
        free.extend(&calls);
    }
    if rng.chance(1, 5) {
        policy
            .text
            .push_str(rng.choose::<&str>(&["\n", "# a comment: 1\n", "  \n"]));
    }
    let names = match calls.as_slice() {
        [call] if policy.is_for_library || rng.chance(3, 4) => (*call).to_owned(),
        calls => format!(
            "{{{}}}",
            calls.join(rng.choose::<&str>(&[",", ", ", " , "]))
        ),
    };
    let names = match !policy.is_for_library
        && names.starts_with(char::is_alphabetic)
        && rng.chance(1, 8)
    {
        true => format!("{names}[arch={}]", rng.choose(&["x86_64", "arm64,x86_64"])),
        false => names,
    };
    let colon = *rng.choose(&[":", ": ", " : ", ":  "]);
    policy.text.push_str(&format!("{names}{colon}{text}\n"));
    Line { calls, filters }
}

/// The filters of a line for the compile tool.
fn filters(rng: &mut Rng, is_denylist: bool) -> (Vec<Filter>, String) {
    let count = if rng.chance(1, 4) {
        rng.range(2..=3)
    } else {
        1
    };
    let mut filters = Vec::new();
    let mut texts = Vec::new();
    for index in 0..count {
        let is_last = index + 1 == count;
        let (action, word) = action(rng, is_denylist);
        if is_last && rng.chance(1, 2) {
            texts.push(word);
            filters.push(Filter {
                alternatives: Vec::new(),
                action,
            });
            continue;
        }
        let (alternatives, mut text) = condition(rng, false);
        // Without an action the condition allows, which no line of a deny list may.
        let action = match is_denylist || rng.chance(1, 2) {
            true => {
                text.push_str(&format!("{}{word}", rng.choose(&["; ", ";", " ; "])));
                action
            }
            false => Action::ALLOW,
        };
        texts.push(text);
        filters.push(Filter {
            alternatives,
            action,
        });
    }
    let text = match count == 1 && rng.chance(4, 5) {
        true => texts.remove(0),
        false => format!(
            "{{ {} }}",
            texts.join(rng.choose::<&str>(&[", ", ",", " , "]))
        ),
    };
    (filters, text)
}

/// The filter of a line for the library: calls that meet the condition are allowed, all others get the action.
fn library_filter(rng: &mut Rng) -> (Vec<Filter>, String) {
    let always = |action| Filter {
        alternatives: Vec::new(),
        action,
    };
    let (name, errno) = *rng.choose(&ERRNOS);
    match rng.range(0..=4) {
        0 => (vec![always(Action::ALLOW)], "1".to_owned()),
        1 => (vec![always(Action::errno(errno))], format!("return {name}")),
        kind => {
            let (alternatives, mut text) = condition(rng, true);
            let mut filters = vec![Filter {
                alternatives,
                action: Action::ALLOW,
            }];
            if kind == 2 {
                text.push_str(&format!("{}return {name}", rng.choose(&["; ", ";"])));
                filters.push(always(Action::errno(errno)));
            }
            (filters, text)
        }
    }
}

fn action(rng: &mut Rng, is_denylist: bool) -> (Action, String) {
    let (name, errno) = *rng.choose(&ERRNOS);
    if is_denylist || rng.chance(1, 3) {
        return (Action::errno(errno), format!("return {name}"));
    }
    let (word, action) = *rng.choose(&[
        ("1", Action::ALLOW),
        ("allow", Action::ALLOW),
        ("kill", Action::KILL_THREAD),
        ("kill-thread", Action::KILL_THREAD),
        ("kill-process", Action::KILL_PROCESS),
        ("trap", Action::new(ActionKind::Trap, 0)),
        ("trace", Action::new(ActionKind::Trace, 0)),
        ("log", Action::new(ActionKind::Log, 0)),
        ("user-notify", Action::new(ActionKind::Notify, 0)),
    ]);
    (action, word.to_owned())
}

fn condition(rng: &mut Rng, is_for_library: bool) -> (Vec<Vec<Atom>>, String) {
    let (mut alternatives, mut texts) = (Vec::new(), Vec::new());
    for _ in 0..rng.range(1..=5).saturating_sub(2).max(1) {
        let (mut atoms, mut parts) = (Vec::new(), Vec::new());
        for _ in 0..rng.range(1..=5).saturating_sub(2).max(1) {
            let (atom, text) = atom(rng, is_for_library);
            atoms.push(atom);
            parts.push(text);
        }
        alternatives.push(atoms);
        texts.push(parts.join(" && "));
    }
    (alternatives, texts.join(" || "))
}

fn atom(rng: &mut Rng, is_for_library: bool) -> (Atom, String) {
    let arg = rng.index(6);
    let op = *rng.choose(&["==", "!=", "<", "<=", ">", ">=", "&", "in"]);
    let (value, text) = value(rng, is_for_library);
    let needs_blank = is_for_library || op == "in" || text.starts_with('|');
    let text = match needs_blank || rng.chance(2, 3) {
        true => format!("arg{arg} {op} {text}"),
        false => format!("arg{arg}{op}{text}"),
    };
    (Atom { arg, op, value }, text)
}

/// A value: constants with `|` between them.
fn value(rng: &mut Rng, is_for_library: bool) -> (u64, String) {
    let mut bits = 0;
    let mut texts = Vec::new();
    for _ in 0..rng.range(1..=5).saturating_sub(2).max(1) {
        let (mut value, mut text) = constant(rng);
        if rng.chance(1, 8) {
            let (other, behind) = constant(rng);
            value |= other;
            text = format!("({text}|{behind})");
        }
        if rng.chance(1, 5) {
            value = !value;
            text.insert(0, '~');
        }
        bits |= value;
        texts.push(text);
    }
    let between = match is_for_library {
        true => "|",
        false => *rng.choose(&["|", " | ", "| "]),
    };
    (bits, texts.join(between))
}

fn constant(rng: &mut Rng) -> (u64, String) {
    if rng.chance(1, 2) {
        let (name, value) = *rng.choose(&CONSTANTS);
        return (value, name.to_owned());
    }
    let value = *rng.choose(&VALUES);
    let text = match rng.range(0..=4) {
        0 => format!("{value:#x}"),
        1 => format!("0X{value:X}"),
        2 if value > 0 => format!("0{value:o}"),
        3 => (value as i64).to_string(),
        _ => value.to_string(),
    };
    (value, text)
}

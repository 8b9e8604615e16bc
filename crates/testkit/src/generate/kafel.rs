//! Random kafel policies for x86_64: the whole grammar, with mistakes.
//!
//! Few calls with several rules each, so that the order of rules counts; constants with the names of calls and
//! arguments; numbers in all forms and of all widths, folded, masked and joined; renamed arguments; architectures;
//! policies that are used, used twice or not at all; comments. Some texts are damaged afterwards.

use tamis_abi::signature;

use crate::rng::Rng;

/// Calls with arguments of 32 and 64 bits.
const CALLS: [&str; 18] = [
    "read",
    "write",
    "ioctl",
    "mmap",
    "socket",
    "futex",
    "fcntl",
    "clone",
    "prctl",
    "openat",
    "newstat",
    "newuname",
    "sendfile64",
    "umount",
    "lseek",
    "getpid",
    "exit_group",
    "ptrace",
];
/// Other names: of user space, of other architectures, of none.
const STRANGE: [&str; 14] = [
    "stat",
    "uname",
    "sendfile",
    "umount2",
    "fstat",
    "socketcall",
    "mmap2",
    "_llseek",
    "exitgroup",
    "Read",
    "nosuchcall",
    "define",
    "ON",
    "ARG",
];
const ARCHES: [&str; 14] = [
    "x86_64", "amd64", "X86_64", "AMD64", "i386", "x86", "aarch64", "arm64", "arm", "riscv64",
    "mips", "mipso32", "mips64", "m68k",
];
const NO_ARCHES: [&str; 4] = ["x32", "s390x", "nosucharch", "amd-64"];
const NAMES: [&str; 10] = [
    "A", "B", "fd", "read", "ioctl", "x_1", "flags", "ALLOWED", "include", "socket",
];
const ACTIONS: [&str; 8] = [
    "ALLOW",
    "LOG",
    "KILL",
    "KILL_THREAD",
    "KILL_PROCESS",
    "DENY",
    "USER_NOTIF",
    "NOTIFY",
];
/// Numbers that are none, two, or larger than 64 bits.
const NO_NUMBERS: [&str; 17] = [
    "08",
    "0X1",
    "0x",
    "0b2",
    "1a",
    "00",
    "-0",
    "-01",
    "-0x1",
    "- 1",
    "+1",
    "0b",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "-18446744073709551616",
    "1u",
];
const OPS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
/// Values near the borders of widths, and such that several conditions meet.
const VALUES: [u64; 18] = [
    0,
    1,
    2,
    3,
    7,
    8,
    0xff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x1_0000_0003,
    0xf0f0_0000_0f0f,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];
/// Text between words.
const BLANKS: [&str; 9] = [
    "\n",
    "\t",
    "  ",
    "// to the end\n",
    "/* a comment */",
    "/**/",
    "/* 1 * 2 */",
    "/* a ** b\n */",
    "/* a ***/",
];
/// The same, but it is none to kafel, or it doesn't end there.
const NO_BLANKS: [&str; 6] = ["\r\n", "\u{a0}", "\u{c}", "/***/", "/* a **/", "/*"];

/// A policy.
pub fn kafel(rng: &mut Rng) -> String {
    let pool = (0..rng.range(1..=4)).map(|_| *rng.choose(&CALLS));
    let pool = pool.collect();
    let is_careless = rng.chance(1, 4);
    let crossings = rng.range(0..=3).saturating_sub(1);
    let mut writer = Writer {
        rng,
        words: Vec::new(),
        is_careless,
        crossings,
        pool,
        constants: Vec::new(),
        policies: Vec::new(),
    };
    writer.program();
    let mut words = writer.words;
    if is_careless && rng.chance(1, 3) {
        damage(rng, &mut words);
    }
    let text = joined(rng, &words, is_careless);
    match is_careless && rng.chance(1, 8) {
        true => scratched(rng, text),
        false => text,
    }
}

struct Writer<'a> {
    rng: &'a mut Rng,
    words: Vec<String>,
    /// Whether there may be mistakes.
    is_careless: bool,
    /// How many more comparisons may have several arguments: those are compared bit by bit.
    crossings: u64,
    pool: Vec<&'static str>,
    constants: Vec<String>,
    policies: Vec<String>,
}

impl Writer<'_> {
    fn word(&mut self, word: impl Into<String>) {
        self.words.push(word.into());
    }

    /// Whether to make a mistake at one of so many places.
    fn slips(&mut self, places: u64) -> bool {
        self.is_careless && self.rng.chance(1, places)
    }

    fn program(&mut self) {
        for _ in 0..self.rng.range(0..=6).saturating_sub(3) {
            self.constant();
        }
        for _ in 0..self.rng.range(1..=6) {
            match self.rng.range(0..=9) {
                0..=2 => self.policy(),
                3 if self.rng.chance(1, 3) => self.constant(),
                _ => self.entries(2),
            }
        }
        if self.rng.chance(1, 2) {
            self.default();
        }
        if self.slips(15) {
            self.default();
        }
    }

    fn constant(&mut self) {
        let name = (*self.rng.choose(&NAMES)).to_owned();
        if self.constants.contains(&name) && !self.slips(3) {
            return;
        }
        let start = *self.rng.choose(&["#define", "#define", "# define"]);
        let number = match self.slips(15) {
            true => name.clone(),
            false => self.number(),
        };
        // A directive ends with the number, wherever that is.
        self.words.extend([start.to_owned(), name.clone(), number]);
        self.word("\n");
        self.constants.push(name);
    }

    fn policy(&mut self) {
        let name = match self.slips(15) {
            true => "p0".to_owned(),
            false => format!("p{}", self.policies.len()),
        };
        self.word("POLICY");
        self.word(name.clone());
        self.word("{");
        if self.rng.chance(9, 10) {
            self.entries(3);
        }
        self.word("}");
        self.policies.push(name);
    }

    fn default(&mut self) {
        self.word("DEFAULT");
        self.action();
    }

    /// Blocks and uses, usually with commas between them.
    fn entries(&mut self, most: u64) {
        for index in 0..self.rng.range(1..=most) {
            if index > 0 && !self.slips(20) {
                self.word(",");
            }
            if self.rng.chance(1, 4) && !self.policies.is_empty() {
                let name = match self.slips(15) {
                    true => "p9".to_owned(),
                    false => self.rng.choose(&self.policies).clone(),
                };
                self.word("USE");
                self.word(name);
            } else {
                self.block();
            }
        }
    }

    fn block(&mut self) {
        self.action();
        self.word("{");
        let rules = self.rng.range(0..=4);
        for index in 0..rules {
            if index > 0 {
                self.word(",");
            }
            self.rule();
        }
        self.word("}");
    }

    fn action(&mut self) {
        if self.rng.chance(2, 3) {
            let most = if self.slips(30) { 7 } else { 6 };
            let index = self.rng.range(0..=most) as usize;
            return self.word(ACTIONS[index]);
        }
        let name = *self.rng.choose(&["ERRNO", "TRAP", "TRACE"]);
        let number = match self.rng.range(0..=79) {
            0 if self.is_careless => self.number(),
            1..=3 => "65535".to_owned(),
            4..=6 => "0".to_owned(),
            _ if self.slips(10) => (*self.rng.choose(&["65536", "-1", "EPERM"])).to_owned(),
            _ => {
                let value = self.rng.range(1..=133);
                written(self.rng, value)
            }
        };
        for word in [name, "(", &number, ")"] {
            self.word(word);
        }
    }

    fn rule(&mut self) {
        let call = self.call();
        let mut names: Vec<String> = signature::args(kernel_name(call.as_deref().unwrap_or("")))
            .unwrap_or_default()
            .iter()
            .map(|arg| arg.name().to_owned())
            .collect();
        if self.rng.chance(1, 5) {
            names = self.renamed();
        }
        if self.rng.chance(1, 8) {
            self.guard();
        }
        match self.rng.range(0..=19) {
            0..=7 => {}
            8 => {
                self.word("{");
                self.word("}");
            }
            _ => {
                self.word("{");
                self.condition(3, &names);
                self.word("}");
            }
        }
    }

    /// Its name, unless it has a number.
    fn call(&mut self) -> Option<String> {
        if self.rng.chance(1, 10) {
            self.word("SYSCALL");
            self.word("[");
            let number = match self.rng.range(0..=5) {
                0 if self.slips(2) => self.number(),
                0..=1 => "0x40000001".to_owned(),
                _ => {
                    let value = self.rng.range(0..=20);
                    written(self.rng, value)
                }
            };
            self.word(number);
            self.word("]");
            return None;
        }
        let name = match self.rng.range(0..=119) {
            _ if self.slips(40) => (*self.rng.choose(&STRANGE)).to_owned(),
            0..=4 if self.is_careless && !self.constants.is_empty() => {
                self.rng.choose(&self.constants).clone()
            }
            _ => (*self.rng.choose(&self.pool)).to_owned(),
        };
        self.word(name.clone());
        Some(name)
    }

    fn renamed(&mut self) -> Vec<String> {
        let most = if self.slips(10) { 7 } else { 6 };
        let count = self.rng.range(0..=most);
        let names = (0..count).map(|index| match self.rng.range(0..=90) {
            0 if self.is_careless => "a0".to_owned(),
            1 => "fd".to_owned(),
            _ => format!("a{index}"),
        });
        let names: Vec<String> = names.collect();
        self.word("(");
        for (index, name) in names.iter().enumerate() {
            if index > 0 {
                self.word(",");
            }
            self.word(name.clone());
        }
        self.word(")");
        names
    }

    fn guard(&mut self) {
        self.word("ON");
        let is_careless = self.is_careless;
        let arch = |rng: &mut Rng| match rng.range(0..=29) {
            0..=1 if is_careless => *rng.choose(&NO_ARCHES),
            0..=15 => *rng.choose(&ARCHES[..6]),
            _ => *rng.choose(&ARCHES),
        };
        if self.rng.chance(1, 2) {
            let arch = arch(self.rng);
            return self.word(arch);
        }
        self.word("{");
        let count = if self.slips(2) { 3 } else { 1 };
        for index in 0..count {
            if index > 0 {
                self.word(",");
            }
            let arch = arch(self.rng);
            self.word(arch);
        }
        self.word("}");
    }

    fn condition(&mut self, depth: u32, names: &[String]) {
        let kind = if depth == 0 { 9 } else { self.rng.range(0..=9) };
        match kind {
            0..=2 => {
                let join = *self.rng.choose(&["||", "&&", ",", "&&"]);
                self.condition(depth - 1, names);
                self.word(join);
                self.condition(depth - 1, names);
            }
            3 => {
                self.word("!");
                self.condition(depth - 1, names);
            }
            4..=5 => {
                self.word("(");
                self.condition(depth - 1, names);
                self.word(")");
            }
            _ => self.comparison(names),
        }
    }

    fn comparison(&mut self, names: &[String]) {
        let op = *self.rng.choose(&OPS);
        let kind = self.rng.range(0..=9);
        let most = match kind {
            0..=3 if self.crossings > 0 => {
                self.crossings -= 1;
                2
            }
            _ => 1,
        };
        let most = most.min(names.len());
        let start = self.rng.index(names.len() + 1 - most);
        let names = &names[start..start + most];
        match kind {
            0 => {
                self.value(2, names);
                self.word(op);
                self.value(0, names);
            }
            1 => {
                self.value(0, names);
                self.word(op);
                self.value(0, names);
            }
            2 => {
                let number = self.number();
                self.word(number);
                self.word(op);
                self.value(1, names);
            }
            3 => {
                for part in ["(", "", "&", "", ")", op] {
                    match part {
                        "" => self.leaf(&[]),
                        part => self.word(part),
                    }
                }
                self.value(0, names);
            }
            _ => {
                self.masked(names);
                self.word(op);
                let number = self.number();
                self.word(number);
            }
        }
    }

    /// An argument, perhaps with masks.
    fn masked(&mut self, names: &[String]) {
        let masks = self.rng.range(0..=4).saturating_sub(2);
        if masks == 0 {
            return self.leaf(names);
        }
        let is_bare = self.rng.chance(1, 3);
        if !is_bare {
            self.word("(");
        }
        let before = self.rng.range(0..=masks);
        for index in 0..=masks {
            if index > 0 {
                let join = *self.rng.choose(&["&", "&", "&", "|"]);
                self.word(join);
            }
            match index == before {
                true => self.leaf(names),
                false => {
                    let number = self.number();
                    self.word(number);
                }
            }
        }
        if !is_bare {
            self.word(")");
        }
    }

    fn value(&mut self, depth: u32, names: &[String]) {
        if depth == 0 || self.rng.chance(1, 3) {
            return self.leaf(names);
        }
        let is_bare = self.rng.chance(1, 4);
        if !is_bare {
            self.word("(");
        }
        self.value(depth - 1, names);
        let join = *self.rng.choose(&["&", "&", "|"]);
        self.word(join);
        self.value(depth - 1, names);
        if !is_bare {
            self.word(")");
        }
    }

    /// A number, constant or argument: the latter if there are names.
    fn leaf(&mut self, names: &[String]) {
        let word = match self.rng.range(0..=39) {
            0 if self.slips(3) => "nosucharg".to_owned(),
            1..=5 if !self.constants.is_empty() => self.rng.choose(&self.constants).clone(),
            _ if !names.is_empty() => self.rng.choose(names).clone(),
            _ => self.number(),
        };
        self.word(word);
    }

    fn number(&mut self) -> String {
        if !self.constants.is_empty() && self.slips(60) {
            return self.rng.choose(&self.constants).clone();
        }
        let value = match self.rng.chance(4, 5) {
            true => *self.rng.choose(&VALUES),
            false => self.rng.interesting_u64(),
        };
        match self.slips(60) {
            true => (*self.rng.choose(&NO_NUMBERS)).to_owned(),
            false => written(self.rng, value),
        }
    }
}

/// The table's name of a call with arguments.
fn kernel_name(name: &str) -> &str {
    match name {
        "newstat" => "stat",
        "newuname" => "uname",
        "sendfile64" => "sendfile",
        "umount" => "umount2",
        name => name,
    }
}

/// A number in one of its forms.
fn written(rng: &mut Rng, value: u64) -> String {
    match rng.range(0..=39) {
        0..=15 => value.to_string(),
        16..=27 => format!("{value:#x}"),
        28 => format!("0x{value:X}"),
        29 => format!("0x00{value:x}"),
        30..=31 => format!("{value:#b}"),
        32..=34 => format!("0{value:o}"),
        35..=36 => (value as i64).to_string(),
        _ => value.to_string(),
    }
}

/// Takes a word out, doubles one, exchanges two or puts one in.
fn damage(rng: &mut Rng, words: &mut Vec<String>) {
    let at = rng.index(words.len());
    match rng.range(0..=3) {
        0 => drop(words.remove(at)),
        1 => words.insert(at, words[at].clone()),
        2 => {
            let other = rng.index(words.len());
            words.swap(at, other);
        }
        _ => {
            let word = *rng.choose(&[
                ",",
                ";",
                "{",
                "}",
                "(",
                ")",
                "[",
                "&",
                "|",
                "&&",
                "!",
                "=",
                "==",
                "ON",
                "USE",
                "POLICY",
                "DEFAULT",
                "ALLOW",
                "SYSCALL",
                "#",
                "#include \"x\"",
                "#include",
                "0",
                "@",
                "\u{e9}",
                "_",
                "/*",
                "*/",
                "//",
            ]);
            words.insert(at, word.to_owned());
        }
    }
}

/// The words with something between them.
fn joined(rng: &mut Rng, words: &[String], is_careless: bool) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-#".contains(c);
    let mut text = String::new();
    let has_comments = rng.chance(1, 3);
    for word in words {
        let is_needed = text.ends_with(is_word) && word.starts_with(is_word);
        if has_comments && rng.chance(1, 25) {
            text.push_str(match is_careless && rng.chance(1, 8) {
                true => rng.choose::<&str>(&NO_BLANKS),
                false => rng.choose::<&str>(&BLANKS),
            });
        } else if is_needed || rng.chance(1, 2) {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

/// The text with one character changed or cut off behind it.
fn scratched(rng: &mut Rng, text: String) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    if chars.is_empty() {
        return text;
    }
    let at = rng.index(chars.len());
    match rng.range(0..=2) {
        0 => chars.truncate(at),
        1 => drop(chars.remove(at)),
        _ => {
            chars[at] = *rng.choose(&[
                'x', '0', ' ', '{', '}', ',', '\n', '*', '/', '\u{1}', '\u{a0}',
            ]);
        }
    }
    chars.into_iter().collect()
}

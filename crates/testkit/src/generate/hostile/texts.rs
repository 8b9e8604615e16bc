//! Texts that are as hard as possible to read, and policies that are as hard as possible to lower.
//!
//! Each is of a size that a reader accepts: long texts without any word of the language, with one mistake for every
//! few bytes, with many unknown names, with lists that grow in a product, or nested as deeply as is allowed.

use crate::rng::Rng;

/// A text and the kind it is to be read as.
#[derive(Clone, Debug)]
pub struct HostileText {
    /// The difficulty.
    pub name: String,
    /// The value of `--from`.
    pub kind: &'static str,
    /// The file.
    pub bytes: Vec<u8>,
    /// Whether it has no mistake, so that the work is behind the reader.
    pub is_valid: bool,
}

/// All of them. Those that are limited by nothing but the size of a file have this many megabytes; readers accept 16.
pub fn all(long_mb: usize) -> Vec<HostileText> {
    [
        without_words(long_mb),
        unknown_names(long_mb),
        unknown_calls(),
        policies(),
        nested(),
    ]
    .concat()
}

/// A megabyte.
const MB: usize = 1_000_000;

fn broken(name: impl Into<String>, kind: &'static str, text: impl Into<Vec<u8>>) -> HostileText {
    HostileText {
        name: name.into(),
        kind,
        bytes: text.into(),
        is_valid: false,
    }
}

fn valid(name: impl Into<String>, kind: &'static str, text: impl Into<Vec<u8>>) -> HostileText {
    HostileText {
        is_valid: true,
        ..broken(name, kind, text)
    }
}

/// Texts with hardly any word of the language.
fn without_words(long_mb: usize) -> Vec<HostileText> {
    let long = long_mb * MB;
    let many = |what: &str| format!("{long_mb} MB of {what}");
    let lines = |line: &str, bytes: usize| line.repeat(bytes / line.len());
    vec![
        broken("128 KB of NULs as hex", "hex", vec![0; 128 << 10]),
        broken("128 KB of `$` as rules", "rules", "$".repeat(128 << 10)),
        broken(
            "128 KB of bad codes in one line",
            "c-array",
            lines("{ 0x7b, 9, 9, 9 }, ", 128 << 10),
        ),
        broken(
            "128 KB of bad numbers",
            "decimal",
            lines("99999999999 ", 128 << 10),
        ),
        broken(many("zeros as rules"), "rules", "0".repeat(long)),
        broken(many("zeros as tamis"), "tamis", "0".repeat(long)),
        broken(many("lines of `0` as rules"), "rules", lines("0\n", long)),
        broken(many("lines of `a` as tamis"), "tamis", lines("a\n", long)),
        broken(many("lines of `a` as rules"), "rules", lines("a\n", long)),
        broken(
            many("lines of `a` as minijail"),
            "minijail",
            lines("a\n", long),
        ),
        broken(
            many("lines of `a` as a unit"),
            "systemd",
            lines("a\n", long),
        ),
        broken(many("words as kafel"), "kafel", lines("a ", long)),
        broken(
            "2 MB of lines of `a` as assembler",
            "asm",
            lines("a\n", 2 * MB),
        ),
        broken(
            "2 MB of lines as a listing",
            "seccomp-tools",
            lines("a\n", 2 * MB),
        ),
        broken(many("brackets as JSON"), "oci", "[".repeat(long)),
        broken(many("quotes as JSON"), "firecracker", "\"".repeat(long)),
        broken(many("dashes as YAML"), "spo", lines("- ", long)),
        broken(many("`{` as tamis"), "tamis", "{".repeat(long)),
        broken(
            many("`(` in a condition"),
            "tamis",
            format!("allow read({}", "(".repeat(long)),
        ),
        broken(many("zeros as a program"), "bpf", vec![0; long]),
        broken(
            many("zeros in a list"),
            "oci",
            format!("[{}0]", lines("0,", long)),
        ),
        broken(many("numbers in a C array"), "c-array", lines("9,", long)),
        broken(
            "4 MB of empty members",
            "oci",
            format!("{{{}}}", lines("\"a\":0,", 4 * MB)),
        ),
    ]
}

/// A list of names that no architecture has, of a seed.
fn names(count: usize) -> impl Iterator<Item = String> {
    let mut rng = Rng::new(5);
    (0..count).map(move |_| format!("sys{}call", rng.range(0..=u64::from(u32::MAX))))
}

fn joined(count: usize, before: &str, after: &str) -> String {
    names(count)
        .map(|name| format!("{before}{name}{after}"))
        .collect()
}

fn unknown_names(long_mb: usize) -> Vec<HostileText> {
    let long = long_mb * MB;
    let many = |what: &str| format!("{long_mb} MB of {what}");
    let quoted = |count: usize| joined(count, "\"", "\",") + "\"read\"";
    let spo = |list: &str| {
        format!(
            "apiVersion: security-profiles-operator.x-k8s.io/v1beta1\nkind: SeccompProfile\nmetadata:\n  name: a\n\
             spec:\n  defaultAction: SCMP_ACT_ERRNO\n  syscalls:\n  - action: SCMP_ACT_ALLOW\n    names:\n{list}"
        )
    };
    let rule = joined(100_000, "{\"syscall\":\"", "\"},") + "{\"syscall\":\"read\"}";
    let long_lines = "    - read\n".repeat(18 * MB / 11);
    vec![
        broken(
            "80,000 unknown names in an OCI profile",
            "oci",
            format!(
                "{{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{{\"names\":[{}],\"action\":\"SCMP_ACT_ALLOW\"}}]}}",
                quoted(80_000)
            ),
        ),
        broken(
            "100,000 unknown names in a unit",
            "systemd",
            format!("[Service]\n{}", joined(100_000, "SystemCallFilter=", "\n")),
        ),
        broken(
            "100,000 unknown names for Firecracker",
            "firecracker",
            format!(
                "{{\"vmm\":{{\"default_action\":\"trap\",\"filter_action\":\"allow\",\"filter\":[{rule}]}}}}"
            ),
        ),
        broken(
            "100,000 unknown names in a resource",
            "spo",
            spo(&joined(100_000, "    - ", "\n")),
        ),
        broken("18 MB of a resource", "spo", spo(&long_lines)),
        broken(
            many("a resource"),
            "spo",
            spo(&long_lines[..long / 11 * 11]),
        ),
    ]
}

fn unknown_calls() -> Vec<HostileText> {
    vec![
        broken(
            "100,000 unknown calls in tamis",
            "tamis",
            joined(100_000, "allow ", "\n"),
        ),
        broken(
            "100,000 unknown calls in one rule",
            "tamis",
            format!("default kill\nallow {}", joined(100_000, "", ", ") + "read"),
        ),
        broken(
            "100,000 unknown calls as kafel",
            "kafel",
            format!("ALLOW {{ {} }}", joined(100_000, "", ", ") + "read"),
        ),
        broken(
            "100,000 unknown calls as minijail",
            "minijail",
            joined(100_000, "", ": 1\n"),
        ),
        broken(
            "100,000 unknown constants",
            "minijail",
            joined(100_000, "read: arg0 == ", "\n"),
        ),
        valid(
            "200,000 times `@system-service`",
            "systemd",
            format!(
                "[Service]\n{}",
                format!("SystemCallFilter={}\n", "@system-service ".repeat(20_000)).repeat(10)
            ),
        ),
    ]
}

/// Policies without mistakes whose meaning is large.
fn policies() -> Vec<HostileText> {
    let mut rng = Rng::new(11);
    let (entries, overlapping) = (entries(&mut rng), overlapping(&mut rng));
    let of_numbers: String = (0..30_000)
        .map(|index| {
            format!(
                "errno({}) nr {}(arg[0] == {index})\n",
                index % 90 + 1,
                index % 400
            )
        })
        .collect();
    let names = ["read", "write", "ioctl", "prctl", "mmap", "futex"];
    let of_names: String = (0..30_000)
        .map(|index| {
            format!(
                "errno({}) {}(arg[0] == {index})\n",
                index % 90 + 1,
                names[index % 6]
            )
        })
        .collect();
    let arches = "arch x86_64, x86, x32, arm, aarch64, riscv64, s390x, ppc64le, mips\n";
    let values: Vec<String> = (0..30_000).map(|index| (index * 7).to_string()).collect();
    let values = values.join(", ");
    let lines: String = (0..100_000)
        .map(|index| format!("ioctl: arg1 == {index}\n"))
        .collect();
    let tamis = |name: &str, rules: &str| valid(name, "tamis", format!("default kill\n{rules}"));
    vec![
        valid("300 OCI entries of 6 conditions", "oci", entries),
        tamis("3,000 overlapping ranges", &overlapping),
        tamis("30,000 rules of numbers", &of_numbers),
        tamis(
            "30,000 rules on nine architectures",
            &format!("{arches}{of_names}"),
        ),
        tamis(
            "30,000 values",
            &format!("allow ioctl(cmd in {{{values}}})\n"),
        ),
        valid("100,000 lines of minijail", "minijail", lines),
    ]
}

/// A profile in which every entry has a random condition on each argument.
fn entries(rng: &mut Rng) -> String {
    let entries: Vec<String> = (0..300)
        .map(|_| {
            let args: Vec<String> = (0..6)
                .map(|index| {
                    let op = rng.choose(&["GT", "GE", "LT", "LE", "EQ", "NE"]);
                    let value = rng.range(0..=1 << 40);
                    format!("{{\"index\":{index},\"value\":{value},\"op\":\"SCMP_CMP_{op}\"}}")
                })
                .collect();
            let args = args.join(",");
            format!("{{\"names\":[\"mmap\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{args}]}}")
        })
        .collect();
    let entries = entries.join(",");
    format!("{{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{entries}]}}")
}

/// Rules for ranges of one argument that overlap, each with a condition on another.
fn overlapping(rng: &mut Rng) -> String {
    (0..3000)
        .map(|_| {
            let start = rng.range(0..=1 << 20);
            let end = start + rng.range(0..=1 << 20);
            let (arg, errno, other) = (rng.range(0..=5), rng.range(1..=90), rng.range(0..=1 << 20));
            format!(
                "errno({errno}) sendto(full(arg[0]) in {{{start}..{end}}} && full(arg[{arg}]) > {other})\n"
            )
        })
        .collect()
}

/// Conditions and documents that are nested as deeply as is allowed, or more.
fn nested() -> Vec<HostileText> {
    let condition = |depth: usize| {
        format!(
            "default kill\nallow read({}fd == 1{})\n",
            "!(".repeat(depth),
            ")".repeat(depth)
        )
    };
    let list = |operator: &str, count: usize| {
        let terms: Vec<String> = (0..count)
            .map(|index| format!("low(arg[{}]) != {index}", index % 6))
            .collect();
        format!("default kill\nallow sendto({})\n", terms.join(operator))
    };
    let sets: String = (1..2000)
        .map(|index| format!("set @s{index} = {{ @s{}, write }}\n", index - 1))
        .collect();
    vec![
        valid("a condition nested 100 deep", "tamis", condition(100)),
        broken(
            "a condition nested 100,000 deep",
            "tamis",
            condition(100_000),
        ),
        valid(
            "10,000 terms that all must hold",
            "tamis",
            list(" && ", 10_000),
        ),
        valid(
            "10,000 terms of which one must hold",
            "tamis",
            list(" || ", 10_000),
        ),
        broken(
            "2,000 sets of sets",
            "tamis",
            format!("default kill\nset @s0 = {{ read }}\n{sets}allow @s1999\n"),
        ),
        broken(
            "JSON nested 1,000,000 deep",
            "oci",
            format!("{}{}", "{\"a\":".repeat(MB), "}".repeat(MB)),
        ),
        broken("aliases of YAML", "spo", aliases()),
    ]
}

/// Lists that contain the one before nine times.
fn aliases() -> String {
    let lists = (1..30).map(|index| {
        let before = format!("*a{}, ", index - 1).repeat(9);
        format!("a{index}: &a{index} [{}]\n", before.trim_end_matches(", "))
    });
    format!("a0: &a0 [lol]\n{}", lists.collect::<String>())
}

//! Files besides policies: configurations of containers, units to harden, captures, objects, rules to inject.

use super::{List, Reading, VALUES, lines, list};

pub(super) fn all(long: usize) -> Vec<Reading> {
    [
        configurations(long),
        units(long.min(MOST_UNIT_BYTES)),
        captures(long),
        objects(long),
        rules(long.min(MOST_RULE_BYTES)),
    ]
    .concat()
}

/// The limit of a unit in `harden`, and of rules in `inject`.
const MOST_UNIT_BYTES: usize = 1 << 18;
const MOST_RULE_BYTES: usize = 1 << 16;

fn configurations(long: usize) -> Vec<Reading> {
    let array = "{\"ociVersion\":\"1.0.2\",\"process\":[";
    let wide = list(array, ",", "]}", long).up_to(VALUES);
    let object = list("{\"ociVersion\":\"1.0.2\",", ",", "}", long).up_to(VALUES);
    let in_lines = list("{\"ociVersion\":\"1.0.2\",\n", ",\n", "}", long).up_to(VALUES);
    let deep = format!(
        "{array}{}{}]}}",
        "[".repeat(long / 2 - 20),
        "]".repeat(long / 2 - 20)
    );
    let text = |letters: &str| {
        let letters = letters.repeat((long - 100) / letters.len());
        format!("{array}\"{letters}\"]}}").into_bytes()
    };
    let inputs = [
        ("a wide array of config.json", wide.text(|_| "0".to_owned())),
        (
            "empty objects of config.json",
            wide.text(|_| "{}".to_owned()),
        ),
        (
            "members of config.json",
            object.text(|index| format!("\"{index}\":0")),
        ),
        (
            "lines of config.json",
            in_lines.text(|index| format!("\"{index}\":0")),
        ),
        ("deep arrays of config.json", deep.into_bytes()),
        ("a long text of config.json", text("a")),
        ("escapes of config.json", text("\\n")),
    ];
    let apply = "oci apply pure-compute config.json -o new.json";
    let source = "crates/tamis/src/command/oci.rs";
    inputs
        .map(|(name, bytes)| Reading::new(source, name, ("config.json", bytes), apply))
        .to_vec()
}

/// The content of an executable file.
const PROGRAM: &[u8] = b"#!/bin/sh\n";

fn units(long: usize) -> Vec<Reading> {
    let unit = |line: &dyn Fn(usize) -> String| {
        let head = "[Service]\nExecStart=/usr/bin/true\nSystemCallFilter=read\n";
        list(head, "\n", "\n", long).text(line)
    };
    let words = "[Service]\nSystemCallFilter=read\nExecStart=/usr/bin/true ";
    let words = list(words, " ", "\n", long).text(|_| "a".to_owned());
    let inputs = [
        (
            "filters of a unit to harden",
            unit(&|_| "SystemCallFilter=read".to_owned()),
        ),
        (
            "commands of a unit to harden",
            unit(&|_| "ExecStartPre=/usr/bin/true".to_owned()),
        ),
        (
            "variables of a unit to harden",
            unit(&|index| format!("Environment=A{index}=b")),
        ),
        ("words of a unit to harden", words),
    ];
    let harden = "harden a --root . --installer /tamis-exec -o out --dry-run";
    inputs
        .map(|(name, bytes)| {
            let file = ("etc/systemd/system/a.service", bytes);
            let source = "crates/deploy/src/root.rs";
            let reading = Reading::new(source, name, file, harden);
            reading
                .with("usr/bin/true", PROGRAM)
                .with("tamis-exec", PROGRAM)
        })
        .to_vec()
}

/// A capture of so many packets of so many bytes each.
fn capture(packets: usize, length_bytes: u32) -> Vec<u8> {
    let words = |words: &[u32]| {
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let mut bytes = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 0xffff, 1]);
    let header = words(&[0, 0, length_bytes, length_bytes]);
    for _ in 0..packets {
        bytes.extend_from_slice(&header);
        bytes.resize(bytes.len() + length_bytes as usize, 0);
    }
    bytes
}

fn captures(long: usize) -> Vec<Reading> {
    let mut lying = capture(1, 1);
    lying[32..40].copy_from_slice(&[0xff; 8]);
    lying.resize(long, 0xff);
    let inputs = [
        ("empty packets", capture(long / 16, 0)),
        ("packets of a byte", capture(long / 17, 1)),
        ("long packets", capture(long / 60_000, 59_000)),
        ("a packet that says that it is long", lying),
    ];
    let eval = "packets eval a.asm a.pcap";
    let source = "lab/tamis-lab/src/packet.rs";
    inputs
        .map(|(name, bytes)| {
            let reading = Reading::new(source, name, ("a.pcap", bytes), eval);
            reading.with("a.asm", b"ret #0\n")
        })
        .to_vec()
}

/// A header of a section: the place of its name, its type, flags, place and size.
fn section((name, kind, flags): (u32, u32, u64), (offset, size): (usize, usize)) -> Vec<u8> {
    let mut bytes = [name, kind].map(u32::to_le_bytes).concat();
    for part in [flags, 0, offset as u64, size as u64, 0, 1, 0] {
        bytes.extend(part.to_le_bytes());
    }
    bytes
}

/// An object with this many sections of code; the functions return the offsets of their names in the table of names and
/// of their contents in the file.
fn object(
    (long, count): (usize, usize),
    name: impl Fn(usize) -> u32,
    contents: impl Fn(usize) -> (usize, usize),
) -> Vec<u8> {
    const STRINGS: u32 = 3;
    const CODE: (u32, u64) = (1, 6);
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let sections = count as u16 + 2;
    bytes.extend([1_u16, 247].map(u16::to_le_bytes).concat());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend([0_u64, 0, 64].map(u64::to_le_bytes).concat());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend([64, 0, 0, 64, sections, 1].map(u16::to_le_bytes).concat());
    let strings = bytes.len() + 64 * usize::from(sections);
    bytes.extend(section((0, 0, 0), (0, 0)));
    bytes.extend(section((0, STRINGS, 0), (strings, long - strings)));
    for index in 0..count {
        bytes.extend(section((name(index), CODE.0, CODE.1), contents(index)));
    }
    bytes.resize(long - 1, b'a');
    bytes.push(0);
    bytes
}

fn objects(long: usize) -> Vec<Reading> {
    let many = (long / 128).min(0xfe00);
    // The last bytes of the names.
    let short = |index: usize| (long - 64 * (many + 3) - 9 - index % 4) as u32;
    let few = 1000;
    let short_of_few = |index: usize| (long - 64 * (few + 3) - 9 - index % 4) as u32;
    let code = |_| (0, long / 8 * 8);
    let inputs = [
        ("many sections", object((long, many), short, |_| (0, 8))),
        (
            "sections whose names overlap",
            object((long, few), |index| index as u32, |_| (0, 8)),
        ),
        (
            "sections that overlap",
            object((long, few), short_of_few, code),
        ),
    ];
    let source = "lab/tamis-lab/src/packets/eval.rs";
    inputs
        .map(|(name, bytes)| {
            let reading = Reading::new(source, name, ("a.o", bytes), "ebpf disasm a.o");
            reading.with("a.pcap", &capture(9, 1))
        })
        .to_vec()
}

fn rules(long: usize) -> Vec<Reading> {
    let in_a_line: List<'_> = list("", ";", "", long);
    let inputs = [
        (
            "rules to inject",
            lines(long, |_| "getpid return 5".to_owned()),
        ),
        (
            "rules to inject on one line",
            in_a_line.text(|_| "getpid kill".to_owned()),
        ),
        (
            "lines that are no rules to inject",
            lines(long, |_| "a".to_owned()),
        ),
    ];
    let source = "crates/tamis/src/command/inject.rs";
    inputs
        .map(|(name, bytes)| {
            Reading::new(
                source,
                name,
                ("rules.txt", bytes),
                "inject rules.txt -- /bin/true",
            )
        })
        .to_vec()
}

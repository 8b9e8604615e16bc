//! Filters of sockets and programs of objects on the command line.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tamis_testkit::capture::{ETHERNET, ethernet, ipv4, pcap};

/// `tcpdump -y EN10MB -dd 'tcp port 22'`, without IPv6.
const PORT_22: &str = "\
{ 0x28, 0, 0, 0x0000000c },
{ 0x15, 0, 10, 0x00000800 },
{ 0x30, 0, 0, 0x00000017 },
{ 0x15, 0, 8, 0x00000006 },
{ 0x28, 0, 0, 0x00000014 },
{ 0x45, 6, 0, 0x00001fff },
{ 0xb1, 0, 0, 0x0000000e },
{ 0x48, 0, 0, 0x0000000e },
{ 0x15, 2, 0, 0x00000016 },
{ 0x48, 0, 0, 0x00000010 },
{ 0x15, 0, 1, 0x00000016 },
{ 0x6, 0, 0, 0x00040000 },
{ 0x6, 0, 0, 0x00000000 },
";

fn file(name: &str, content: &[u8]) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("packets");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

fn tamis(args: &[&str]) -> Output {
    let mut command = Command::new(crate::TAMIS_LAB);
    command.args(args).stdin(Stdio::null()).output().unwrap()
}

/// The text of a command that succeeds.
fn text(args: &[&str]) -> String {
    let output = tamis(args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The first line of the error of a command that fails as for wrong input.
fn error(args: &[&str]) -> String {
    let output = tamis(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    error.lines().next().unwrap_or_default().to_owned()
}

/// A capture with packets to and from port 22, and others.
fn capture() -> Vec<u8> {
    let rest = [0; 16];
    let packets = [
        ipv4(6, [1000, 22], &rest),
        ipv4(6, [22, 1000], &rest),
        ipv4(6, [1000, 80], &rest),
        ipv4(17, [1000, 22], &rest),
        ethernet(0x0806, &rest),
        ipv4(6, [1000, 22], &rest)[..20].to_vec(),
    ];
    pcap(ETHERNET, &packets)
}

#[test]
fn every_form_of_a_program_is_the_same_filter() {
    let array = file("22.c", PORT_22.as_bytes());
    let numbers: Vec<String> = PORT_22
        .lines()
        .map(|line| {
            let fields = line.trim_matches(|c| "{}, ".contains(c)).split(", ");
            let value = |field: &str| match field.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16).unwrap().to_string(),
                None => field.to_owned(),
            };
            fields.map(value).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let numbers = format!("{}\n{}\n", numbers.len(), numbers.join("\n"));
    let numbers = file("22.txt", numbers.as_bytes());
    let listing = text(&["packets", "disasm", "--plain", &array]);
    assert!(listing.contains("ldx 4*([14]&0xf)"), "{listing}");
    assert_eq!(text(&["packets", "disasm", "--plain", &numbers]), listing);
    let listed = file("22.asm", listing.as_bytes());
    let raw = file("22.bpf", b"");
    text(&["packets", "asm", &listed, "-o", &raw]);
    assert_eq!(fs::read(&raw).unwrap().len(), 8 * PORT_22.lines().count());
    assert_eq!(text(&["packets", "disasm", "--plain", &raw]), listing);
}

#[test]
fn a_jump_that_conversion_makes_too_far_is_refused() {
    // The kernel converts each load to about 19 instructions, and a jump has 16 bits.
    let loads = |count: usize| "ldx 4*([14]&0xf)\n".repeat(count);
    let filter = |count| format!("jmp far\n{}far: ret #1\n", loads(count));
    let raw = file("far.bpf", b"");
    let near = file("near.asm", filter(1700).as_bytes());
    text(&["packets", "asm", &near, "-o", &raw]);
    let far = file("far.asm", filter(1900).as_bytes());
    let said = error(&["packets", "asm", &far, "-o", &raw]);
    assert!(said.contains("the jump at 0 is too far"), "{said}");
}

#[test]
fn packets_are_accepted_or_dropped_by_every_engine() {
    let program = file("eval.c", PORT_22.as_bytes());
    let capture = file("eval.pcap", &capture());
    for engine in ["reference", "threaded", "auto"] {
        let json = text(&[
            "packets", "eval", &program, &capture, "--engine", engine, "--json",
        ]);
        let document: Value = serde_json::from_str(&json).unwrap();
        let packets = document["packets"].as_array().unwrap().iter();
        let kept: Vec<bool> = packets.map(|packet| packet["ret"] != 0).collect();
        assert_eq!(kept, [true, true, false, false, false, false], "{engine}");
        assert_eq!(document["accepted"], 2);
    }
    let none = file("none.pcap", &pcap(ETHERNET, &[ethernet(0x0806, &[0; 28])]));
    let output = tamis(&["packets", "eval", &program, &none]);
    assert_eq!(output.status.code(), Some(1), "none accepted");
}

#[test]
fn a_capture_tells_the_protocol_and_nothing_else_beside_the_bytes() {
    let capture = file("beside.pcap", &capture());
    let protocol = file("proto.asm", b"ld #proto\nret a\n");
    let said = text(&["packets", "eval", &protocol, &capture]);
    assert!(
        said.contains("accept(2048)") && said.contains("accept(2054)"),
        "{said}"
    );
    let random = file("rand.asm", b"ld #rand\nret a\n");
    let error = error(&["packets", "eval", &random, &capture]);
    assert!(error.contains("instruction 0 loads `#rand`"), "{error}");
}

#[test]
fn what_is_no_capture_or_no_filter_is_an_error() {
    let program = file("bad.c", PORT_22.as_bytes());
    let mut cut = capture();
    cut.truncate(cut.len() - 3);
    for (name, bytes, expected) in [
        ("cut.pcap", cut.as_slice(), "it ends within packet 6"),
        (
            "text.pcap",
            b"no capture at all, but text",
            "it is no capture",
        ),
        ("empty.pcap", b"", "it is no capture"),
        ("link.pcap", &pcap(147, &[vec![0; 20]]), "link type 147"),
    ] {
        let said = error(&["packets", "eval", &program, &file(name, bytes)]);
        assert!(said.contains(expected), "{name}: {said}");
    }
    let capture = file("bad.pcap", &capture());
    let seccomp = file("seccomp.asm", b"ld [nr]\nret a\n");
    let said = error(&["packets", "eval", &seccomp, &capture]);
    assert!(said.contains("expected an offset or `x`"), "{said}");
    let far = file("far.asm", b"ld [0xfffff044]\nret a\n");
    let said = error(&["packets", "asm", &far]);
    assert!(said.contains("which has no meaning"), "{said}");
}

#[test]
fn engines_answer_calls_as_the_reference_does() {
    for engine in ["reference", "threaded", "auto"] {
        let said = text(&[
            "engines",
            "eval",
            "container-default",
            "read",
            "--engine",
            engine,
        ]);
        assert!(said.contains("the reference interpreter agrees"), "{said}");
    }
    let said = error(&[
        "engines",
        "eval",
        "container-default",
        "read",
        "--engine",
        "fast",
    ]);
    assert!(said.contains("the engines are reference"), "{said}");
}

#[test]
fn an_optimised_filter_does_the_same_and_is_no_longer() {
    // The second load and test of the protocol are redundant.
    let filter = "{ 0x28, 0, 0, 12 },\n{ 0x15, 0, 3, 0x800 },\n{ 0x28, 0, 0, 12 },\n\
                  { 0x15, 0, 1, 0x800 },\n{ 0x6, 0, 0, 96 },\n{ 0x6, 0, 0, 0 },\n";
    let given = file("twice.c", filter.as_bytes());
    let better = file("twice.bpf", b"");
    let output = tamis(&["packets", "optimize", "--stats", &given, "-o", &better]);
    let stats = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stats}");
    assert!(
        stats.starts_with("6 -> 4 instructions, proved for every packet\n"),
        "{stats}"
    );
    assert_eq!(fs::read(&better).unwrap().len(), 4 * 8);
    let capture = file("twice.pcap", &capture());
    let kept = |filter: &str| text(&["packets", "eval", filter, &capture, "--json"]);
    let rets = |text: String| {
        let document: Value = serde_json::from_str(&text).unwrap();
        let packets = document["packets"].as_array().unwrap().clone();
        packets
            .iter()
            .map(|packet| packet["ret"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(rets(kept(&given)), rets(kept(&better)));
}

#[test]
fn an_optimised_filter_is_called_proved_only_where_it_is() {
    let said = |name: &str, filter: &str, form: &[&str]| {
        let filter = file(name, filter.as_bytes());
        let args = [&["packets", "optimize", &filter, "--emit", "json"], form].concat();
        let output = tamis(&args);
        assert!(output.status.success());
        serde_json::from_slice::<Value>(&output.stdout).unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    // No improvement needs no proof; equivalence with a random number can't be proved.
    let random = "{ 0x20, 0, 0, 0xfffff038 },\n{ 0x16, 0, 0, 0 },\n";
    for filter in ["{ 0x6, 0, 0, 1 },\n", random] {
        let stats = said("unchanged.c", filter, &["--stats"]);
        assert!(stats.contains("no better filter was found"), "{stats}");
        assert!(
            !stats.contains("proved") && !stats.contains("packets"),
            "{stats}"
        );
        assert_eq!(said("unchanged.c", filter, &[]), "");
    }
    // The constant is overwritten.
    let better = format!("{{ 0x1, 0, 0, 7 }},\n{{ 0x1, 0, 0, 7 }},\n{random}");
    let unproved = said("unproved.c", &better, &[]);
    assert!(
        unproved.starts_with("4 -> 4 instructions, the input: "),
        "{unproved}"
    );
    assert!(unproved.contains("not proved"), "{unproved}");
}

/// An object in clang's format, with a filter that keeps 64 bytes of packets of IPv4.
pub(crate) fn ipv4_object() -> Vec<u8> {
    // r6 = r1; r0 = half at 12; if r0 != 0x800 goto +2; r0 = 64; exit; r0 = 0; exit
    object(&[
        0x16bf,
        0x0c_0000_0028,
        0x0800_0002_0055,
        0x40_0000_00b7,
        0x95,
        0xb7,
        0x95,
    ])
}

/// The same with other instructions, in the section `socket`.
fn object(insns: &[u64]) -> Vec<u8> {
    const NAMES: &[u8] = b"\0socket\0.strtab\0";
    const HEADER_BYTES: u64 = 64;
    let code: Vec<u8> = insns.iter().flat_map(|insn| insn.to_le_bytes()).collect();
    let names_at = HEADER_BYTES + code.len() as u64;
    let sections_at = (names_at + NAMES.len() as u64).next_multiple_of(8);
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    // A relocatable file for the machine BPF, with three sections; the third has the names.
    file.extend([1_u16, 247].into_iter().flat_map(u16::to_le_bytes));
    file.extend(1_u32.to_le_bytes());
    file.extend([0, 0, sections_at].into_iter().flat_map(u64::to_le_bytes));
    file.extend(0_u32.to_le_bytes());
    file.extend(
        [64_u16, 0, 0, 64, 3, 2]
            .into_iter()
            .flat_map(u16::to_le_bytes),
    );
    file.extend(&code);
    file.extend(NAMES);
    file.resize(sections_at as usize + 64, 0);
    for (name, kind, flags, at, len) in [
        (1_u32, 1_u32, 6_u64, HEADER_BYTES, code.len() as u64),
        (8, 3, 0, names_at, NAMES.len() as u64),
    ] {
        file.extend([name, kind].into_iter().flat_map(u32::to_le_bytes));
        file.extend([flags, 0, at, len].into_iter().flat_map(u64::to_le_bytes));
        file.extend([0; 8]);
        file.extend([8_u64, 0].into_iter().flat_map(u64::to_le_bytes));
    }
    file
}

#[test]
fn an_object_is_run_on_packets_if_it_is_safe() {
    let safe = file("safe.o", &ipv4_object());
    let capture = file("object.pcap", &capture());
    for engine in ["reference", "threaded", "auto"] {
        let arguments = [&capture, "--engine", engine, "--json"];
        let json = text(&[&["packets", "eval", &safe], &arguments[..]].concat());
        let document: Value = serde_json::from_str(&json).unwrap();
        let packets = document["packets"].as_array().unwrap().iter();
        let rets: Vec<u64> = packets
            .map(|packet| packet["ret"].as_u64().unwrap())
            .collect();
        assert_eq!(rets, [64, 64, 64, 64, 0, 64], "{engine}");
    }
    let unsafe_one = file("unsafe.o", &object(&[0x95]));
    let refusal = error(&["packets", "eval", &unsafe_one, &capture]);
    assert!(refusal.contains("isn't safe: instruction 0"), "{refusal}");
    let refusal = error(&["ebpf", "eval", &safe, &capture, "--section", "other"]);
    assert!(refusal.contains("has the sections socket"), "{refusal}");
}

/// Programs of every input kind that all engines reject, and a part of the error, with the instruction.
fn bad_programs() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    // `r0 = 0`, the wrong instructions, and `exit`.
    let around = |insns: &[u64]| object(&[&[0xb7], insns, &[0x95]].concat());
    let whole = ipv4_object();
    let ret = [6, 0, 0, 0, 1, 0, 0, 0];
    let raw = |code: u8, k: u8| [&ret[..], &[code, 0, 0, 0, k, 0, 0, 0], &ret].concat();
    let array = |count: usize| format!("{count}\n{}", "6 0 0 1\n".repeat(count)).into_bytes();
    let header = "not an ELF object of 64 bits: Invalid ELF header size or alignment";
    let sections = "not an ELF object of 64 bits: Invalid ELF section header offset/size/alignment";
    vec![
        ("head.o", whole[..20].to_vec(), header),
        ("cut.o", whole[..whole.len() - 20].to_vec(), sections),
        (
            "unknown.o",
            around(&[0xff]),
            "instruction 1: not an instruction: ff 00 00 00 00 00 00 00",
        ),
        (
            "inside.o",
            around(&[0x0001_0005, 0x18, 0]),
            "instruction 1: jump to instruction 3, the second half of a wide instruction",
        ),
        (
            "called_inside.o",
            around(&[0x1_0000_1085, 0x18, 0]),
            "instruction 1: jump to instruction 3, the second half of a wide instruction",
        ),
        (
            "outside.o",
            around(&[0x0007_0005]),
            "instruction 1: jump to instruction 9, outside the program",
        ),
        (
            "recursion.o",
            around(&[0xffff_fffe_0000_1085]),
            "the program isn't safe: instruction 1: recursion: calls are nested more than seven deep",
        ),
        (
            "helper.o",
            around(&[0x3e7_0000_0085]),
            "the program isn't safe: instruction 1: there is no helper 999",
        ),
        (
            "empty.o",
            object(&[]),
            "the object has no section with code",
        ),
        ("unknown.bpf", raw(0xff, 0), "instruction 1: code 0x00ff"),
        (
            "unknown.ddd",
            b"2\n6 0 0 1\n255 0 0 0\n".to_vec(),
            "unknown.ddd:3:1",
        ),
        ("slot.bpf", raw(0x60, 16), "instruction 1: scratch slot 16"),
        (
            "jump.bpf",
            raw(0x05, 1),
            "instruction 1: jump to instruction 3",
        ),
        (
            "divide.bpf",
            raw(0x34, 0),
            "instruction 1: division by the constant 0",
        ),
        ("empty.bpf", Vec::new(), "the program is empty"),
        ("empty.ddd", array(0), "the program is empty"),
        ("long.ddd", array(4097), "the program has 4097 instructions"),
    ]
}

/// The error of a command, equal for every engine.
fn error_of_every_engine(args: &[&str]) -> String {
    let on = |engine| {
        let output = tamis(&[args, &["--engine", engine]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let expected = on("reference");
    for engine in ["threaded", "jit", "auto"] {
        assert_eq!(on(engine), expected, "{args:?}");
    }
    expected
}

#[test]
fn bad_programs_are_the_same_error_for_every_engine() {
    let capture = file("bad.pcap", &capture());
    for (name, bytes, expected) in bad_programs() {
        let path = file(name, &bytes);
        let said = error_of_every_engine(&["packets", "eval", &path, &capture]);
        assert!(
            said.contains(name) && said.contains(expected),
            "{name}: {said}"
        );
        // A filter of seccomp is a list of the same instructions.
        if ["unknown.bpf", "empty.ddd", "long.ddd"].contains(&name) {
            let said = error_of_every_engine(&["engines", "eval", &path, "read"]);
            let expected = match name {
                "long.ddd" => "program 0 has 4097 instructions",
                _ => expected,
            };
            assert!(
                said.contains(name) && said.contains(expected),
                "{name}: {said}"
            );
        }
    }
}

/// Packets of all lengths, also without bytes.
#[test]
fn short_packets_are_dropped_by_every_engine() {
    let packet = ipv4(6, [1000, 22], &[0; 16]);
    let prefixes: Vec<Vec<u8>> = (0..=packet.len())
        .map(|len| packet[..len].to_vec())
        .collect();
    let capture = file("short.pcap", &pcap(ETHERNET, &prefixes));
    let classic = file("short.c", PORT_22.as_bytes());
    let object = file("short.o", &ipv4_object());
    // The destination's port ends with byte 38, the protocol with byte 14.
    for (program, first) in [(&classic, 38), (&object, 14)] {
        for engine in ["reference", "threaded", "jit", "auto"] {
            let args = [
                "packets", "eval", program, &capture, "--engine", engine, "--json",
            ];
            let output = tamis(&args);
            if engine == "jit" && output.status.code() == Some(4) {
                continue;
            }
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            let packets = document["packets"].as_array().unwrap().iter();
            let dropped = packets.take_while(|packet| packet["ret"] == 0).count();
            assert_eq!(dropped, first, "{engine}: {program}");
            assert_eq!(document["accepted"], packet.len() + 1 - first);
        }
    }
}

//! Every kind is detected, and reported where it is given as another.

use tamis_abi::{Arch, Endian};
use tamis_policy::loader::NoIncludes;

use super::*;
use crate::code;
use crate::{Error, LoadOptions, load};

fn kind(name: &str, text: &str) -> &'static str {
    Input::new(name, text).kind().name()
}

#[test]
fn kinds_are_told_by_content_where_the_name_is_silent() {
    assert_eq!(kind("x", "# comment\n\nallow read\n"), "tamis");
    assert_eq!(kind("x", "  {\"defaultAction\": 1\n"), "oci");
    assert_eq!(
        kind("x", "{\"vmm\": {\"filter_action\": \"allow\"}}"),
        "firecracker"
    );
    assert_eq!(kind("x", "# comment\n@include ./y\n"), "minijail");
    assert_eq!(kind("x", "read: 1\n"), "minijail");
    assert_eq!(kind("x", "{open, openat}: return ENOENT\n"), "minijail");
    assert_eq!(
        kind("x", "/* a */ #define X 1\nPOLICY a { ALLOW { read } }"),
        "kafel"
    );
    assert_eq!(kind("x", "; a\n# b\n[Service]\nUser=a\n"), "systemd");
    assert_eq!(kind("x", "ruleset bad-arch allow\n"), "rules");
    assert_eq!(kind("x", "; comment\n ld [4]\n"), "asm");
    assert_eq!(kind("x", "start: ret #0\n"), "asm");
    assert_eq!(kind("x", "{ 0x20, 0, 0, 0x00000004 },\n"), "c-array");
    assert_eq!(kind("x", "{\n  {6, 0, 0, 0},\n}\n"), "c-array");
    assert_eq!(kind("x", "1\n6 0 0 0\n"), "decimal");
    assert_eq!(kind("x", "0\n"), "decimal");
    assert_eq!(kind("x", "0600000000000000\n"), "hex");
    assert_eq!(kind("x", "A = sys_number\n"), "seccomp-tools");
    assert_eq!(kind("x", "\u{6}\0\0\0\0\0\0\0"), "bpf");
}

/// A text of every kind.
const SAMPLES: [(&str, &str); 19] = [
    ("tamis", "default errno(EPERM)\nallow read\n"),
    ("systemd", "[Service]\nSystemCallFilter=read\n"),
    ("oci", "{\"defaultAction\": \"SCMP_ACT_ERRNO\"}"),
    (
        "spo",
        "apiVersion: security-profiles-operator.x-k8s.io/v1\nkind: SeccompProfile\nspec:\n  \
         defaultAction: SCMP_ACT_ERRNO\n",
    ),
    (
        "firecracker",
        "{\"a\": {\"mismatch_action\": \"trap\", \"match_action\": \"allow\", \"filter\": []}}",
    ),
    ("minijail", "read: 1\nwrite: arg0 == 1\n"),
    (
        "nsjail",
        "mode: ONCE\nseccomp_string: \"ALLOW { read } DEFAULT KILL\"\n",
    ),
    ("kafel", "ALLOW { read } DEFAULT KILL\n"),
    ("lxc", "2\ndenylist\nptrace errno 1\n"),
    ("snap", "socket AF_NETLINK - NETLINK_ROUTE\n"),
    (
        "rules",
        "ruleset bad-arch allow\nsection x86_64 default allow\n",
    ),
    ("c-array", "{ 0x06, 0, 0, 0x7fff0000 },\n"),
    ("asm", "ld [4]\nret #allow\n"),
    ("seccomp-tools", "A = sys_number\nreturn ALLOW\n"),
    ("decimal", "1\n6 0 0 2147418112\n"),
    ("hex", "060000000000ff7f\n"),
    ("annotation", "run.oci.seccomp_bpf_data=BgAAAAAA/38=\n"),
    (
        "document",
        "{\"schema\": \"tamis.disasm/1\", \"insns\": [{\"code\": 6, \"jt\": 0, \"jf\": 0, \"k\": 2147418112}]}",
    ),
    ("bpf", "\u{6}\0\0\0\0\0\0\0"),
];

/// The reported kind of an input that is given as another one; `None` if it is accepted.
fn mistaken(given_as: InputKind, name: &str, bytes: &[u8]) -> Option<String> {
    refused(Some(given_as), name, bytes).map(|first| {
        let is_named = [code::WRONG_KIND, code::NOT_UTF8].contains(&first.code);
        format!("{is_named}: {} {:?}", first.message, first.help)
    })
}

/// The first error for an input on x86-64; `None` if it is accepted.
fn refused(kind: Option<InputKind>, name: &str, bytes: &[u8]) -> Option<Diagnostic> {
    let options = LoadOptions {
        kind,
        ..LoadOptions::new(Arch::X86_64)
    };
    match load(Input::new(name, bytes), &options, &mut NoIncludes) {
        Ok(_) => None,
        Err(Error::Diagnostics(diagnostics, _)) => diagnostics.into_iter().next(),
        Err(_) => panic!("{name}: no diagnostics"),
    }
}

#[test]
fn a_file_of_another_world_is_told_by_its_beginning() {
    let files: [(&[u8], &str); 4] = [
        (
            b"\x7fELF\x02\x01\x01\xff",
            "an executable or a library (ELF)",
        ),
        (b"PK\x03\x04 and text", "a zip archive"),
        (b"\n<html lang=en>", "XML or HTML"),
        (
            b"\xfe\xff\xff\xff\0\0\0\0",
            "binary data other than a filter",
        ),
    ];
    for (bytes, what) in files {
        let first = refused(None, "x", bytes).expect("it is no policy");
        assert_eq!(first.code, code::WRONG_KIND);
        assert!(first.message.ends_with(what), "{}: {what}", first.message);
    }
}

/// A filter that begins with these instructions, for a big-endian machine.
fn big_endian(text: &str) -> Vec<u8> {
    let text = format!("{text}\ndenied: ret #0x50001\nallow: ret #0x7fff0000");
    let mut sources = Sources::new();
    let source = sources.add("a.asm", text.as_str());
    let assembly = tamis_bpf::asm::assemble(&text, source, Endian::Big).expect("it is right");
    let program = assembly.into_program().expect("it is valid");
    tamis_bpf::program::insns_to_bytes(program.insns(), Endian::Big)
}

#[test]
fn a_filter_of_the_other_order_of_bytes_is_told_with_its_architecture() {
    let by_arch = "name its architecture: `--arch ppc64`";
    let by_none = "name the architecture of that machine: `--arch ARCH`";
    let filters = [
        (
            "ld [4]\njne #0x80000015, denied\nld [20]\njeq #20, denied, allow",
            by_arch,
        ),
        ("ld [0]", by_none),
        // 20 is the number of ppc, and also an offset and the number of a call.
        ("ld [20]\njeq #1, denied, allow", by_none),
        ("ld [0]\njeq #20, denied, allow", by_none),
        ("ld [4]\nld [0]\njeq #0x80000015, denied, allow", by_none),
        (
            "ld [4]\njeq #0x80000015, allow\njeq #20, allow, denied",
            by_none,
        ),
        ("ld [4]\njge #0x80000015, allow, denied", by_none),
    ];
    for (text, help) in filters {
        let bytes = big_endian(text);
        for (kind, name) in [(None, "x"), (None, "x.bpf"), (Some(InputKind::Bpf), "x")] {
            let first = refused(kind, name, &bytes).expect("it isn't this machine's");
            assert!(first.message.contains("big-endian"), "{}", first.message);
            assert_eq!(first.help.as_deref(), Some(help), "{text}");
        }
    }
}

#[test]
fn no_architecture_is_proposed_for_a_filter_that_cannot_run_here() {
    let options = LoadOptions {
        is_for_this_machine: true,
        ..LoadOptions::new(Arch::X86_64)
    };
    let input = Input::new("x.bpf", big_endian("ld [4]").as_slice());
    match load(input, &options, &mut NoIncludes) {
        Err(Error::Diagnostics(diagnostics, _)) => {
            let help = diagnostics[0].help.as_deref().unwrap_or_default();
            assert!(
                help.contains("that byte order") && !help.contains("--arch"),
                "{help}"
            );
        }
        _ => panic!("it isn't this machine's"),
    }
}

/// The inputs whose kind is reported wrongly when they are given as other kinds.
fn confusions(kind: &str, name: &str, bytes: &[u8]) -> Vec<String> {
    let mut wrong = Vec::new();
    for other in InputKind::all() {
        let answer = mistaken(other, name, bytes);
        let is_right = match &answer {
            // The input may need other files or an option.
            _ if other.name() == kind => {
                !answer.as_ref().is_some_and(|text| text.starts_with("true"))
            }
            Some(text) => text.starts_with("true") && text.contains(&format!("--from {kind}`")),
            None => false,
        };
        if !is_right {
            wrong.push(format!("{name}: {kind} as {}: {answer:?}", other.name()));
        }
    }
    wrong
}

#[test]
fn every_kind_given_as_any_other_is_named() {
    let mut wrong = Vec::new();
    for kind in InputKind::all() {
        let sample = SAMPLES.iter().find(|(name, _)| *name == kind.name());
        let (name, text) = sample.expect("every kind has a sample");
        assert_eq!(self::kind("x", text), *name);
        wrong.extend(confusions(name, "x", text.as_bytes()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_extension_of_ours_is_believed() {
    assert_eq!(kind("x.json", "\u{6}\0\0\0\0\0\0\0"), "oci");
    assert_eq!(
        kind("x.json", "{\"vmm\": {\"filter_action\": 1}}"),
        "firecracker"
    );
    assert_eq!(kind("x.policy", "not a policy"), "minijail");
    assert_eq!(kind("x.policy", "ALLOW { read }"), "kafel");
    assert_eq!(kind("x.bpf", "allow read\n"), "bpf");
    assert_eq!(kind("x.txt", "allow read\n"), "tamis");
}

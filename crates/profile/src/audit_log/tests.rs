//! Each format of a log with each kind of record yields the same record.

use tamis_abi::{ActionKind, Arch};
use tamis_diag::Sources;

use super::*;

/// A call in the kernel's terms, and its parsed record.
struct Case {
    /// The kernel's form.
    comm: &'static str,
    exe: &'static str,
    arch: u32,
    nr: u32,
    code: u32,
    /// The form of `ausearch -i`.
    interpreted: [&'static str; 3],
    expected: (Arch, ActionKind, &'static str),
}

const CASES: [Case; 6] = [
    Case {
        comm: "\"oomd\"",
        exe: "\"/usr/bin/oomd\"",
        arch: 0xc000_003e,
        nr: 448,
        code: 0x8000_0000,
        interpreted: ["x86_64", "process_mrelease", "kill-process"],
        expected: (Arch::X86_64, ActionKind::KillProcess, "/usr/bin/oomd"),
    },
    Case {
        // The kernel writes names with spaces as digits.
        comm: "6120736967",
        exe: "2F6F70742F6120736967",
        arch: 0x4000_0003,
        nr: 39,
        code: 0x50000,
        interpreted: ["i386", "mkdir", "errno"],
        expected: (Arch::X86, ActionKind::Errno, "/opt/a sig"),
    },
    Case {
        comm: "\"deadbeef\"",
        exe: "\"/deadbeef\"",
        arch: 0xc000_00b7,
        nr: 34,
        code: 0x7ffc_0000,
        interpreted: ["aarch64", "mkdirat", "log"],
        expected: (Arch::Aarch64, ActionKind::Log, "/deadbeef"),
    },
    Case {
        comm: "\"a\"",
        exe: "(null)",
        arch: 0xc000_00f3,
        nr: 101_010,
        code: 0x30000,
        interpreted: [
            "unknown-elf-type(c00000f3)",
            "unknown-syscall(101010)",
            "trap",
        ],
        expected: (Arch::Riscv64, ActionKind::Trap, "a"),
    },
    Case {
        comm: "\"a\"",
        exe: "\"/a\"",
        arch: 0x8000_0016,
        nr: 102,
        code: 0x7fc0_0000,
        interpreted: ["s390x", "socketcall(connect)", "user-notify"],
        expected: (Arch::S390x, ActionKind::Notify, "/a"),
    },
    Case {
        comm: "\"a\"",
        exe: "\"/a\"",
        arch: 0xc000_003e,
        nr: 0x4000_0053,
        code: 0,
        interpreted: ["x86_64", "unknown-syscall(1073741907)", "kill"],
        expected: (Arch::X32, ActionKind::KillThread, "/a"),
    },
];

impl Case {
    /// The fields in the kernel's form.
    fn raw(&self) -> String {
        let Case {
            comm,
            exe,
            arch,
            nr,
            code,
            ..
        } = self;
        format!(
            "auid=4294967295 uid=0 gid=0 ses=4294967295 subj==unconfined (enforce) pid=18 comm={comm} exe={exe} sig=31 \
             arch={arch:x} syscall={nr} compat=0 ip=0x7f4b8f30713d code=0x{code:x}"
        )
    }

    /// The fields with names instead of numbers.
    fn interpreted(&self) -> String {
        let [arch, call, code] = self.interpreted;
        let plain = |name: &str| match name.strip_prefix('"') {
            Some(name) => name.trim_end_matches('"').to_owned(),
            None if name == "6120736967" => "a sig".to_owned(),
            None if name == "2F6F70742F6120736967" => "/opt/a sig".to_owned(),
            None => name.to_owned(),
        };
        let (comm, exe) = (plain(self.comm), plain(self.exe));
        format!(
            "auid=unset uid=root gid=root ses=unset subj==unconfined (enforce) pid=18 comm={comm} exe={exe} sig=SIGSYS \
             arch={arch} syscall={call} compat=0 ip=0x7f4b8f30713d code={code}"
        )
    }

    fn is_expected(&self, record: &Record) -> bool {
        let (arch, kind, program) = self.expected;
        record.arch == arch
            && record.kind == Some(kind)
            && record.program.as_deref() == Some(program)
            && [Some(self.nr), syscall_of(self.interpreted[1], arch)].contains(&Some(record.nr.0))
    }
}

fn syscall_of(name: &str, arch: Arch) -> Option<u32> {
    let name = name.split('(').next()?;
    tamis_abi::syscall::number(arch, name).map(|nr| nr.0)
}

/// Lines that name the kernel or its audit as the writer: `@K` is the kernel's record, `@J` the journal's, `@A`
/// auditd's, small letters the same in a JSON string.
const OF_SYSTEM: &[&str] = &[
    "@A",
    "node=host.example @A",
    "@A\x1dAUID=\"unset\" UID=\"root\" GID=\"root\" ARCH=x86_64 SYSCALL=mount",
    "@AAUID=\"unset\" UID=\"root\" GID=\"root\" ARCH=x86_64 SYSCALL=mount",
    "@A^]AUID=\"unset\" UID=\"root\"",
    "@A#035AUID=\"unset\" UID=\"root\"",
    "/var/log/audit/audit.log:@A",
    "12:@A",
    "audit.log:12:@A",
    "Nov 28 05:00:01 host audispd: node=host @A",
    "Nov 28 05:00:01 host audisp-syslog[7]: @A",
    "2026-11-28T05:00:01.123456+00:00 host tag_audit_log: @A",
    "<13>Nov 28 05:00:01 host audisp-syslog: @A#035AUID=\"unset\"",
    "[   12.345678] @K",
    "[   12.345678][  T123] @K",
    "[   12.345678][    C0] @K",
    "<5>[   12.345678] @K",
    "kern  :notice: [   12.345678] @K",
    "kern  :warn  : [   12.345678] @K",
    "[Sat Nov 28 05:00:01 2026] @K",
    "2026-11-28T05:00:01,123456+00:00 @K",
    "\x1b[32m[   12.345678] \x1b[0m\x1b[33maudit: \x1b[0m@L",
    "[   12.345678] @L",
    "Nov 28 05:00:01 host kernel: @K",
    "Nov 28 05:00:01 host kernel: [   12.345678] @K",
    "Nov  8 05:00:01 host kernel: @K",
    "nov. 28 05:00:01 host kernel: @K",
    "11月 28 05:00:01 host kernel: @K",
    "Nov 28 05:00:01 kernel: @K",
    "2026-11-28T05:00:01.123456+00:00 host kernel: [   12.345678] @K",
    "2026-11-28T05:00:01.123456Z NOTICE kernel: [   12.345678] @K",
    "<5>1 2026-11-28T05:00:01.123456+00:00 host kernel - - - [   12.345678] @K",
    "<5>1 2026-11-28T05:00:01.123456+00:00 host kernel - - - @K",
    "/var/log/kern.log:7:Nov 28 05:00:01 host kernel: [   12.345678] @K",
    "kern.log:2026-11-28T05:00:01.123456+00:00 host kernel: @K",
    "Nov 28 05:00:01 host audit[18]: @J",
    "Nov 28 05:00:01.123456 host audit[18]: @J",
    "Sat 2026-11-28 05:00:01 UTC host audit[18]: @J",
    "Sat 2026-11-28 05:00:01.123456 UTC host kernel: @K",
    "2026-11-28T05:00:01+0000 host audit[18]: @J",
    "2026-11-28T05:00:01.123456+00:00 host audit[18]: @J",
    "[   12.345678] host audit[18]: @J",
    "[   12.345678 <    0.000123 >] host kernel: @K",
    "1764306001.123456 host audit[18]: @J",
    "1764306001.123456 host kernel: @K",
    "Nov 28 05:00:01 host audit: @J",
    "Nov 28 05:00:01 host audit[18]: <audit-1326> @F",
    "Nov 28 05:00:01 host audit[18]: AUDIT1326 @F",
    r#"{"MESSAGE":"@j","_TRANSPORT":"audit","_AUDIT_TYPE":"1326","_AUDIT_TYPE_NAME":"SECCOMP"}"#,
    r#"{"_TRANSPORT":"kernel","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"@k"}"#,
    r#"data: {"_TRANSPORT":"kernel","MESSAGE":"@k"}"#,
    "\x1e{\"_TRANSPORT\":\"kernel\",\"MESSAGE\":\"@k\"}",
    "{\n\t\"_TRANSPORT\" : \"audit\",\n\t\"MESSAGE\" : \"@j\"\n}",
    "[\n{\n\"_TRANSPORT\" : \"kernel\",\n\"MESSAGE\" : \"@k\"\n}\n]",
    "{\n   \"dmesg\": [\n      {\n         \"pri\": 5,\n         \"time\":    12.345678,\n         \"msg\": \"@k\"\n      }\n   ]\n}",
    "Sat 2026-11-28 05:00:01.123456 UTC [s=1;i=2;b=3;m=4;t=5;x=6]\n    _TRANSPORT=audit\n    _AUDIT_TYPE=1326\n    MESSAGE=@J",
    "Sat 2026-11-28 05:00:01.123456 UTC [s=1;i=2;b=3;m=4;t=5;x=6]\n    MESSAGE=@K\n    _TRANSPORT=kernel",
    "__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1764306001123456\n_TRANSPORT=kernel\nMESSAGE=@K\n",
    r#"{"_TRANSPORT":"syslog","_UID":"0","SYSLOG_IDENTIFIER":"audisp-syslog","MESSAGE":"@a"}"#,
];

/// Lines without a writer.
const UNNAMED: &[&str] = &[
    "@K",
    "@L",
    "@J",
    "@F",
    "MESSAGE=@K",
    "2026-11-28T05:00:01.123456789Z @K",
    "2026-11-28T05:00:01.123456789Z [   12.345678] @K",
    "2026-11-28T05:00:01.123456789Z stdout F @K",
    "2026-11-28T05:00:01.123456789Z stderr F Nov 28 05:00:01 host kernel: [   12.345678] @K",
    "[pod/name/container] @A",
    "name-1  | @K",
    "11-28 05:00:01.123   123   124 W auditd  : @L",
    r#"{"log":"@k\n","stream":"stdout","time":"2026-11-28T05:00:01.123456789Z"}"#,
    r#"{"log":"Nov 28 05:00:01 host kernel: @k\n","stream":"stdout"}"#,
    r#"{"host":"a","line":{"message":"@a"}}"#,
    r#"{"MESSAGE":"@k"}"#,
    "__CURSOR=s=1\n_TRANSPORT=kernel\nA_TEXT\n\u{1}\0\0\0\0\0\0\0x\nMESSAGE=@K\n",
];

/// Lines of other programs.
const OF_PROGRAMS: &[&str] = &[
    "[x] a [ 1.2] @K",
    "Nov 28 05:00:01 host app: @K",
    "Nov 28 05:00:01 host app: @A",
    "Nov 28 05:00:01 host app: @J",
    "Nov 28 05:00:01 host app[7]: kernel: @K",
    "Nov 28 05:00:01 host app[7]: audit[18]: @J",
    "Nov 28 05:00:01 host x kernel: @K",
    "Nov 28 05:00:01 host kernel[7]: @K",
    "app: @K",
    "hello @K",
    "2026-11-28T05:00:01.123456Z app @K",
    r#"{"_TRANSPORT":"syslog","MESSAGE":"@k"}"#,
    r#"{"_TRANSPORT":"stdout","_AUDIT_TYPE":"1400","MESSAGE":"@j"}"#,
    r#"{"_TRANSPORT":"syslog","_UID":"7","SYSLOG_IDENTIFIER":"audisp-syslog","MESSAGE":"@a"}"#,
    r#"{"log":"app: @k\n"}"#,
    "    _TRANSPORT=stdout\n    MESSAGE=@K",
    // A long message isn't a field.
    "    _TRANSPORT=stdout\n    MESSAGE=a\n            _TRANSPORT=kernel\n            MESSAGE=@K\n    MESSAGE=@J",
];

/// Lines that are not seccomp records.
const OTHERS: &[&str] = &[
    "",
    "type=SYSCALL msg=audit(1700.1:8): arch=c000003e syscall=41 success=yes exit=3 a0=1",
    "type=AVC msg=audit(1700.1:8): avc: denied { read }",
    "type=PROCTITLE msg=audit(1700.1:8): proctitle=2@F",
    "time->Sat Nov 28 05:00:01 2026",
    "----",
    "Nov 28 05:00:01 host systemd[1]: Started.",
    r#"{"_TRANSPORT":"audit","_AUDIT_TYPE":"1400","MESSAGE":"AVC apparmor=\"DENIED\""}"#,
    "{\"cut\": \"",
    "[   12.345678] audit: type=1400 audit(1700.1:8): apparmor=\"DENIED\"",
    "_CMDLINE=type=1326 audit(1.1:1): auid=0 arch=c000003e syscall=1",
];

/// A line with the record of a case.
fn filled(form: &str, case: &Case, is_interpreted: bool) -> String {
    let fields = match is_interpreted {
        true => case.interpreted(),
        false => case.raw(),
    };
    let bodies = [
        (
            "@K",
            format!("audit: type=1326 audit(1700000000.492:264): {fields}"),
        ),
        (
            "@L",
            format!("type=1326 audit(1700000000.492:264): {fields}"),
        ),
        ("@J", format!("SECCOMP {fields}")),
        (
            "@A",
            format!("type=SECCOMP msg=audit(1700000000.492:264): {fields}"),
        ),
        ("@F", fields.clone()),
    ];
    bodies.iter().fold(form.to_owned(), |text, (place, body)| {
        let escaped = body.replace('"', "\\\"");
        text.replace(place, body)
            .replace(&place.to_lowercase(), &escaped)
    })
}

/// The results for a text.
fn found(text: &str) -> Vec<ParseResult> {
    let mut all = Vec::new();
    let source = Sources::new().add("log", text);
    each(text, source, Arch::X86_64, &mut |line, found| {
        assert!(text[line.start..].starts_with(line.text));
        all.push(found);
    });
    all
}

/// The texts of a format: with each line end, alone and within other lines.
fn texts(form: &str, case: &Case) -> Vec<String> {
    let is_of_kernel = ["@K", "@k", "@L"].iter().any(|place| form.contains(place));
    let mut texts = vec![filled(form, case, false)];
    // `ausearch -i` reads auditd's log.
    if form.contains("@A") && !is_of_kernel && !form.contains("AUID") && !form.contains("UID=") {
        texts.push(filled(form, case, true));
    }
    let with_returns = texts[0].replace('\n', "\r\n");
    let within = format!(
        "Nov 28 05:00:01 host app: x\n{}\n\nNov 28 05:00:01 host app: y\n",
        texts[0]
    );
    texts.extend([with_returns, within]);
    texts
}

#[test]
fn every_form_has_the_same_record() {
    let forms = OF_SYSTEM.iter().map(|form| (form, Writer::System));
    let forms = forms.chain(UNNAMED.iter().map(|form| (form, Writer::Unnamed)));
    for (form, writer) in forms {
        for case in &CASES {
            for text in texts(form, case) {
                let found = found(&text);
                let [Ok((record, found_writer))] = &found[..] else {
                    panic!("{text}\n{found:?}");
                };
                assert!(case.is_expected(record), "{text}\n{record:?}");
                assert_eq!(*found_writer, writer, "{text}");
            }
        }
    }
}

#[test]
fn records_of_programs_are_not_read() {
    for form in OF_PROGRAMS {
        for text in texts(form, &CASES[0]) {
            assert_eq!(found(&text), [Err(UnreadReason::Program)], "{text}");
        }
    }
}

#[test]
fn other_lines_are_skipped() {
    for line in OTHERS {
        assert_eq!(found(line), [], "{line}");
    }
}

#[test]
fn records_without_a_call_are_named() {
    let start = "type=SECCOMP msg=audit(1.1:1): auid=0 pid=1 comm=\"a\" sig=31";
    for (text, reason) in [
        (format!("{start} arch=c000003e"), UnreadReason::Call),
        (format!("{start} arch=zzz syscall=1"), UnreadReason::Call),
        (
            format!("{start} arch=x86_64 syscall=no_such_call"),
            UnreadReason::Call,
        ),
        (
            format!("{start} arch=12345678 syscall=1"),
            UnreadReason::Call,
        ),
        (
            "type=SECCOMP 05:00 arch=c000003e syscall=1".to_owned(),
            UnreadReason::Form,
        ),
        (
            "x: auid=0 sig=31 arch=c000003e syscall=1 compat=0 ip=0x7f code=0x0".to_owned(),
            UnreadReason::Form,
        ),
        (
            ",11/28/2026,05:00:01,264,,SECCOMP,,unset,root,,violated,".to_owned(),
            UnreadReason::Summary,
        ),
        (
            "At 05:00:01 11/28/2026 system, acting as root, violated-seccomp-policy".to_owned(),
            UnreadReason::Summary,
        ),
    ] {
        assert_eq!(found(&text), [Err(reason)], "{text}");
    }
}

#[test]
fn a_record_without_architecture_is_of_the_machine() {
    for (text, expected) in [
        (
            "[ 1.1] type=1326 audit(1.1:2): auid=0 pid=5 comm=\"chrome\" sig=31 syscall=2 compat=0 ip=0x7f code=0x0",
            (Arch::X86_64, 2, Some(ActionKind::KillThread), "chrome"),
        ),
        (
            "[ 1.1] type=1326 audit(1.1:2): auid=0 pid=5 comm=\"chrome\" sig=31 syscall=5 compat=1 ip=0x7f code=0x30000",
            (Arch::X86, 5, Some(ActionKind::Trap), "chrome"),
        ),
        (
            "I0705 12:08:18.729660 1843190 enricher.go:136] log-enricher \"msg\"=\"audit\"  \"container\"=\"redis\" \"executable\"=\"/bin/redis\" \"pid\"=7 \"syscallID\"=232 \"syscallName\"=\"epoll_wait\" \"timestamp\"=\"1.1:2\" \"type\"=\"seccomp\"",
            (Arch::X86_64, 232, None, "/bin/redis"),
        ),
    ] {
        let found = found(text);
        let [Ok((record, _))] = &found[..] else {
            panic!("{text}\n{found:?}");
        };
        let read = (
            record.arch,
            record.nr.0,
            record.kind,
            record.program.as_deref(),
        );
        let (arch, nr, kind, program) = expected;
        assert_eq!(read, (arch, nr, kind, Some(program)), "{text}");
    }
}

#[test]
fn a_name_of_a_task_is_no_field() {
    let text = "type=SECCOMP msg=audit(11/28/2026 05:00:01.123:264) : auid=unset pid=18 comm=a sig=0 arch=i386 syscall=read code=log \
                exe=/a sig=SIGSYS arch=x86_64 syscall=mkdir compat=0 ip=0x7f code=errno";
    let found = found(text);
    let [Ok((record, _))] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        (record.arch, record.nr.0, record.kind),
        (Arch::X86_64, 83, Some(ActionKind::Errno))
    );
    assert_eq!(record.program.as_deref(), Some("/a"));
}

#[test]
fn values_that_do_not_end_are_read_in_linear_time() {
    for line in ["{\n", "{\"a\":\n", "[\n", "{}x\n{\n", "[1] [\n"] {
        assert_eq!(found(&line.repeat(200_000)), []);
    }
}

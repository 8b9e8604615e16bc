//! The meaning of policies: actions for calls.

use tamis_abi::{Action, Arch, SeccompData};
use tamis_policy::tamis::{self, Arches, TamisOptions};

use crate::{call, decide, parse, parse_files, ruleset};

const ENOSYS: Action = Action::errno(38);
const EPERM: Action = Action::errno(1);

#[test]
fn the_first_rule_that_matches_decides() {
    let rules = ruleset(
        "default errno(5)\nallow write(fd == 1)\nerrno(7) write(fd < 10)\nallow read, write\n",
        &[Arch::X86_64],
    );
    let write = |fd| decide(&rules, Arch::X86_64, "write", &[fd]);
    assert_eq!(write(1), Action::ALLOW);
    assert_eq!(write(2), Action::errno(7));
    assert_eq!(write(10), Action::ALLOW);
    assert_eq!(decide(&rules, Arch::X86_64, "close", &[]), Action::errno(5));
}

#[test]
fn without_a_default_everything_kills() {
    let rules = ruleset("allow close", &[Arch::X86_64]);
    assert_eq!(
        decide(&rules, Arch::X86_64, "read", &[]),
        Action::KILL_PROCESS
    );
    assert_eq!(
        decide(&rules, Arch::Aarch64, "read", &[]),
        Action::KILL_PROCESS
    );
}

/// Every comparison of a 16-bit argument, compared with the definition.
#[test]
fn sixteen_bits_are_compared_whatever_stands_above_them() {
    type Case = (&'static str, fn(u64) -> bool);
    let conditions: [Case; 9] = [
        ("mode == 0o4755", |mode| mode == 0o4755),
        ("mode != 0o4755", |mode| mode != 0o4755),
        ("mode < 0x1234", |mode| mode < 0x1234),
        ("mode <= 0xfffe", |mode| mode <= 0xfffe),
        ("mode > 0x7fff", |mode| mode > 0x7fff),
        ("mode >= 1", |mode| mode >= 1),
        ("mode in {3..0x4001, 0x8000, 0xfff0..0xffff}", |mode| {
            (3..=0x4001).contains(&mode) || mode == 0x8000 || mode >= 0xfff0
        }),
        ("mode & ~0o777 == 0", |mode| mode & !0o777 == 0),
        ("mode & 0o7000 in {0o1000, 0o2000}", |mode| {
            matches!(mode & 0o7000, 0o1000 | 0o2000)
        }),
    ];
    for (condition, expected) in conditions {
        let rules = ruleset(&format!("allow fchmod({condition})"), &[Arch::X86_64]);
        for mode in (0..=0xffff)
            .step_by(7)
            .chain([0o4755, 0x4001, 0x4002, 0xfffe, 0xffff])
        {
            for above in [0, 0x1_0000, 0xffff_0000, 1 << 32, !0xffff] {
                let action = decide(&rules, Arch::X86_64, "fchmod", &[0, above | mode]);
                assert_eq!(
                    action == Action::ALLOW,
                    expected(mode),
                    "{condition} {mode:#x}"
                );
            }
        }
    }
    let rules = ruleset(
        "deny setuid(uid == 0)\nallow setuid",
        &[Arch::X86, Arch::X86_64],
    );
    assert_eq!(decide(&rules, Arch::X86, "setuid", &[0x1_0000]), EPERM);
    assert_eq!(
        decide(&rules, Arch::X86_64, "setuid", &[0x1_0000]),
        Action::ALLOW
    );
}

#[test]
fn registers_of_32_bit_calls_count_with_32_bits() {
    let rules = ruleset(
        "on x86 { deny nr 6(arg0 == 1), close_range(arg[5] == 2), ioctl(arg == 3)\n\
         allow nr 6, close_range, ioctl }",
        &[Arch::X86],
    );
    let dirty = 0xdead_0000_0000;
    assert_eq!(decide(&rules, Arch::X86, "close", &[dirty | 1]), EPERM);
    assert_eq!(decide(&rules, Arch::X86, "close", &[dirty]), Action::ALLOW);
    let ranges = [0, 0, 0, 0, 0, dirty | 2];
    assert_eq!(decide(&rules, Arch::X86, "close_range", &ranges), EPERM);
    assert_eq!(
        decide(&rules, Arch::X86, "ioctl", &[0, 0, dirty | 3]),
        EPERM
    );
}

#[test]
fn arguments_that_the_kernel_cuts_off_are_compared_so() {
    let rules = ruleset(
        "deny writev(fd == 1), clone(clone_flags == 5), mmap(fd == -1)\nallow writev, clone, mmap",
        &[Arch::X86_64],
    );
    let denies = |name, args: &[u64]| decide(&rules, Arch::X86_64, name, args) == EPERM;
    assert!(denies("writev", &[1 << 32 | 1]) && !denies("writev", &[2]));
    assert!(denies("clone", &[1 << 63 | 5]));
    assert!(denies("mmap", &[0, 0, 0, 0, 0xffff_ffff]) && denies("mmap", &[0, 0, 0, 0, u64::MAX]));
}

#[test]
fn every_verb_gives_its_action() {
    let text = "log read\nnotify write\ntrace(3) open\ntrace close\nerrno(ENOSYS) stat\ndeny fstat\n\
                trap(7) poll\ntrap lseek\nkill-thread mmap\nkill-process mprotect\nkill munmap\n\
                allow brk\ndefault errno(95)";
    let rules = ruleset(text, &[Arch::X86_64]);
    let decisions: Vec<String> = [
        "read", "write", "open", "close", "stat", "fstat", "poll", "lseek", "mmap", "mprotect",
        "munmap", "brk", "getpid",
    ]
    .into_iter()
    .map(|name| decide(&rules, Arch::X86_64, name, &[]).to_string())
    .collect();
    let expected = "log notify trace(3) trace(0) errno(38) errno(1) trap(7) trap(0) kill_thread \
                    kill_process kill_process allow errno(95)";
    assert_eq!(decisions.join(" "), expected);
}

#[test]
fn an_argument_is_compared_at_the_kernels_width() {
    let rules = ruleset(
        "allow socket(family == AF_UNIX)\nallow lseek(offset == 1)\nallow write(full(fd) == 1)\n\
         allow read(high(fd) == 1)\nallow mmap(low(addr) == 1)",
        &[Arch::X86_64],
    );
    let allows = |name, args: &[u64]| decide(&rules, Arch::X86_64, name, args) == Action::ALLOW;
    let high = 1 << 32;
    assert!(
        allows("socket", &[high | 1]),
        "an int is 32 bits to the kernel"
    );
    assert!(!allows("lseek", &[0, high | 1]), "an offset is 64 bits");
    assert!(allows("lseek", &[0, 1]));
    assert!(!allows("write", &[high | 1]), "full looks at all bits");
    assert!(allows("read", &[high | 9]), "high looks at the upper half");
    assert!(allows("mmap", &[high | 1]), "low looks at the lower half");
}

#[test]
fn negative_values_are_taken_modulo_the_width() {
    let rules = ruleset(
        "allow close(fd == -1)\nallow openat(dfd == AT_FDCWD)\nallow lseek(offset == -1)\n\
         allow read(fd in {-3..-1, 7})\nallow write(fd == ~0xff)",
        &[Arch::X86_64],
    );
    let allows = |name, args: &[u64]| decide(&rules, Arch::X86_64, name, args) == Action::ALLOW;
    assert!(allows("close", &[0xffff_ffff]) && allows("close", &[u64::MAX]));
    assert!(allows("openat", &[0xffff_ff9c]));
    assert!(allows("lseek", &[0, u64::MAX]) && !allows("lseek", &[0, 0xffff_ffff]));
    assert!(allows("read", &[0xffff_fffd]) && allows("read", &[7]));
    assert!(!allows("read", &[0xffff_fffc]));
    assert!(allows("write", &[0xffff_ff00]));
}

#[test]
fn conditions_combine_as_in_c_but_masks_bind_tighter() {
    let rules = ruleset(
        "allow fcntl(cmd == F_GETFL || cmd == F_SETFL && !(arg & O_APPEND != 0))\n\
         allow socket(family in {AF_UNIX, 4..6}, type & SOCK_TYPE_MASK == SOCK_STREAM)\n\
         allow ioctl(cmd & 0xff in {1, 3..4})\nallow dup2(oldfd == newfd)\n\
         allow read(arg0 == 3 && arg[2] > 5 || false)",
        &[Arch::X86_64],
    );
    let allows = |name, args: &[u64]| decide(&rules, Arch::X86_64, name, args) == Action::ALLOW;
    let (get, set, append) = (3, 4, 0o2000);
    assert!(allows("fcntl", &[0, get, append]) && allows("fcntl", &[0, set, 0]));
    assert!(!allows("fcntl", &[0, set, append]));
    assert!(allows("socket", &[1, 0x80001]) && !allows("socket", &[1, 2]));
    assert!(allows("socket", &[5, 1]) && !allows("socket", &[7, 1]));
    assert!(allows("ioctl", &[0, 0x1204]) && !allows("ioctl", &[0, 2]));
    assert!(allows("dup2", &[4, 4]) && !allows("dup2", &[4, 5]));
    assert!(allows("read", &[3, 0, 6]) && !allows("read", &[3, 0, 5]));
}

#[test]
fn names_stand_for_values_sets_and_calls() {
    let rules = ruleset(
        "let STREAM = SOCK_STREAM | SOCK_CLOEXEC\nlet LOCAL = {AF_UNIX, 1 << 1}\n\
         let MORE = {LOCAL, 10}\nset @mine = {read, @basic-io}\nallow @mine\n\
         allow socket(family in MORE, type == STREAM)",
        &[Arch::X86_64],
    );
    let allows = |name, args: &[u64]| decide(&rules, Arch::X86_64, name, args) == Action::ALLOW;
    for family in [1, 2, 10] {
        assert!(allows("socket", &[family, 0o2000001]));
    }
    assert!(!allows("socket", &[3, 0o2000001]));
    assert!(allows("pwritev2", &[]));
}

#[test]
fn a_block_is_about_its_architectures_and_comes_before_the_top() {
    let rules = ruleset(
        "arch x86_64, x32, aarch64\ndefault errno(1)\nunknown errno(38)\nallow read\n\
         on aarch64, x32 { default errno(2)\n allow write }\n\
         on x86_64 { unknown errno(3)\n allow nr 470..475(arg0 == 1) }",
        &[],
    );
    let nr = |arch: Arch, nr: u32, first: u64| {
        let args = [first, 0, 0, 0, 0, 0];
        let arch = arch.audit();
        rules
            .decide(&SeccompData {
                nr,
                arch,
                ip: 0,
                args,
            })
            .action
    };
    assert_eq!(decide(&rules, Arch::X86_64, "write", &[]), EPERM);
    assert_eq!(decide(&rules, Arch::X32, "write", &[]), Action::ALLOW);
    assert_eq!(
        decide(&rules, Arch::Aarch64, "close", &[]),
        Action::errno(2)
    );
    assert_eq!(nr(Arch::X86_64, 475, 1), Action::ALLOW);
    assert_eq!(nr(Arch::X86_64, 900, 0), Action::errno(3));
    assert_eq!(nr(Arch::Aarch64, 900, 0), ENOSYS);
    assert_eq!(
        nr(Arch::X86, 3, 0),
        Action::KILL_PROCESS,
        "a bad architecture"
    );
}

#[test]
fn clone_flags_are_found_where_the_architecture_has_them() {
    let rules = ruleset(
        "allow clone(clone_flags == 5)",
        &[Arch::X86_64, Arch::S390x],
    );
    assert_eq!(
        decide(&rules, Arch::X86_64, "clone", &[5, 0]),
        Action::ALLOW
    );
    assert_eq!(decide(&rules, Arch::S390x, "clone", &[0, 5]), Action::ALLOW);
    assert_eq!(
        decide(&rules, Arch::S390x, "clone", &[5, 0]),
        Action::KILL_PROCESS
    );
}

#[test]
fn the_instruction_pointer_can_be_tested() {
    let rules = ruleset(
        "allow read(ip in {0x7000_0000_0000..0x7000_0000_ffff})",
        &[Arch::X86_64],
    );
    let mut data = call(Arch::X86_64, "read", &[]);
    assert_eq!(rules.decide(&data).action, Action::KILL_PROCESS);
    data.ip = 0x7000_0000_1234;
    assert_eq!(rules.decide(&data).action, Action::ALLOW);
}

#[test]
fn a_caller_can_insist_on_architectures() {
    let mut sources = tamis_diag::Sources::new();
    let root = sources.add(
        "a.tamis",
        "arch x86_64\nallow read\non x86_64 { allow arch_prctl }",
    );
    let options = TamisOptions {
        choices: Vec::new(),
        arches: Arches::Exactly(vec![Arch::Aarch64]),
        strict: true,
    };
    let none = &mut tamis_policy::loader::NoIncludes;
    let parsed = tamis::parse(&mut sources, root, none, &options);
    let codes: Vec<_> = parsed.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, [tamis_policy::code::ARCH_OVERRIDDEN]);
    let rules = parsed.ruleset.expect("strictness doesn't forbid to insist");
    assert_eq!(rules.sections().len(), 1);
    assert_eq!(decide(&rules, Arch::Aarch64, "read", &[]), Action::ALLOW);

    let same = TamisOptions {
        choices: Vec::new(),
        arches: Arches::Exactly(vec![Arch::X86_64]),
        strict: true,
    };
    let parsed = tamis::parse(&mut sources, root, none, &same);
    assert_eq!(parsed.diagnostics, []);
}

#[test]
fn a_rule_remembers_where_it_was_written() {
    let (parsed, _) = parse_files(&[
        ("root", "include \"part\"\nallow read, write(fd == 1)\n"),
        ("part", "# shared\n\n  allow close\n"),
    ]);
    let rules = parsed.ruleset.expect("no errors");
    let origins: Vec<(String, u32, u32)> = rules.sections()[0]
        .rules
        .iter()
        .map(|rule| rule.origin.clone().expect("an origin"))
        .map(|origin| (origin.file.to_string(), origin.line, origin.column))
        .collect();
    let expected = [("part", 3, 3), ("root", 2, 13), ("root", 2, 1)];
    assert_eq!(
        origins,
        expected.map(|(file, line, column)| (file.to_owned(), line, column))
    );
}

#[test]
fn a_file_counts_once_however_often_it_is_included() {
    let (parsed, _) = parse_files(&[
        ("root", "include \"a\"\ninclude \"b\"\nallow @both\n"),
        ("a", "include \"b\"\n"),
        ("b", "set @both = {read, write}\n"),
    ]);
    assert_eq!(parsed.diagnostics, []);
    assert!(parsed.ruleset.is_some());
}

#[test]
fn strict_makes_errors_of_warnings() {
    let text = "allow read\ndeny read\n";
    let (lenient, _) = parse(text, &[Arch::X86_64]);
    assert!(lenient.ruleset.is_some() && lenient.diagnostics.len() == 1);
    let mut sources = tamis_diag::Sources::new();
    let root = sources.add("a.tamis", text);
    let options = TamisOptions {
        strict: true,
        ..TamisOptions::new(vec![Arch::X86_64])
    };
    let none = &mut tamis_policy::loader::NoIncludes;
    let strict = tamis::parse(&mut sources, root, none, &options);
    assert!(strict.ruleset.is_none() && strict.diagnostics[0].is_error());
}

//! The policies of the thread about `KVM_HC_HOST_SYSCALL` have the meaning of its mail, and the patch of
//! `lab/hypercall` rejects the calls that it must.
//!
//! The lists here are the specification. Everything else is compared with them by proof, for every number and argument.

use std::collections::BTreeSet;

use tamis_abi::{Action, ActionKind, Arch, syscall};
use tamis_compiler::{CompileOptions, compile};
use tamis_diag::Sources;
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis::{self, TamisOptions};
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_rules::{IntervalSet, Predicate, Rule, Ruleset, Section};

const NEVER_TEXT: &str = include_str!("../../../policy/policies/hypercall-never.tamis");
const SENTRY_TEXT: &str = include_str!("../../../policy/policies/hypercall-sentry.tamis");
const PATCH: &str = include_str!("../../../../lab/hypercall/patches/host-syscall.patch");
const VMM: &str = include_str!("../../../../lab/hypercall/vmm.c");

/// The calls that the mail never lets through the hypercall; its `sigprocmask` is `rt_sigprocmask`.
const NEVER: [&str; 8] = [
    "clone",
    "exit",
    "exit_group",
    "ioctl",
    "rt_sigreturn",
    "mmap",
    "arch_prctl",
    "rt_sigprocmask",
];

/// The further calls that the patch rejects.
const REFUSED_TOO: [&str; 9] = [
    "clone3",
    "fork",
    "vfork",
    "execve",
    "execveat",
    "ptrace",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
];

/// The permitted calls of the Sentry, in the mail's order; its `ppol` is `ppoll`, its `settimer` is `setitimer`.
const SENTRY: &str = "clock_gettime close dup dup3 epoll_create1 epoll_ctl epoll_pwait eventfd2 exit exit_group fallocate
    fchmod fcntl fstat fsync ftruncate futex getcpu getpid getrandom getsockopt gettid gettimeofday ioctl lseek madvise
    membarrier mincore mmap mprotect munmap nanosleep ppoll pread64 preadv preadv2 pwrite64 pwritev pwritev2 read recvmsg
    recvmmsg sendmsg sendmmsg restart_syscall rt_sigaction rt_sigprocmask rt_sigreturn sched_yield setitimer shutdown
    sigaltstack statx sync_file_range tee timer_create timer_delete timer_settime tgkill utimensat write writev";

const DENIED: Action = Action {
    kind: ActionKind::Errno,
    data: 1,
};
const KILLED: Action = Action {
    kind: ActionKind::KillProcess,
    data: 0,
};

fn ruleset(text: &str) -> Ruleset {
    let mut sources = Sources::new();
    let root = sources.add("a.tamis", text);
    let options = TamisOptions::new(vec![Arch::X86_64]);
    let parsed = tamis::parse(&mut sources, root, &mut NoIncludes, &options);
    let told = tamis_diag::render::render(&parsed.diagnostics, &sources, false);
    parsed.ruleset.unwrap_or_else(|| panic!("{told}"))
}

/// One answer for these calls of x86-64, whatever their arguments, and another for all other numbers.
fn listed<'a>(names: impl IntoIterator<Item = &'a str>, action: Action, others: Action) -> Ruleset {
    let numbers = names.into_iter().map(|name| {
        let nr = syscall::number(Arch::X86_64, name).unwrap_or_else(|| panic!("{name}"));
        nr.0..=nr.0
    });
    let section = Section {
        arch: Arch::X86_64,
        rules: vec![Rule {
            syscalls: IntervalSet::from_iter(numbers),
            when: Predicate::True,
            action,
            origin: None,
        }],
        default: others,
    };
    Ruleset::new(vec![section], KILLED).expect("one section")
}

#[track_caller]
fn assert_equal(left: &Subject<'_>, right: &Subject<'_>) {
    let answer = decide(left, right, &Limits::default());
    assert!(matches!(answer, Answer::Equal(_)), "{answer:?}");
}

#[test]
fn they_mean_what_the_mail_says() {
    let sentry: Vec<&str> = SENTRY.split_whitespace().collect();
    assert_eq!(sentry.len(), 62);
    assert_eq!(sentry.iter().collect::<BTreeSet<_>>().len(), 62);
    let cases = [
        (NEVER_TEXT, listed(NEVER, DENIED, Action::ALLOW)),
        (SENTRY_TEXT, listed(sentry, Action::ALLOW, DENIED)),
    ];
    for (text, meant) in cases {
        let policy = ruleset(text);
        assert_equal(&Subject::Ruleset(&policy), &Subject::Ruleset(&meant));
        let compiled = compile(&policy, &CompileOptions::default()).expect("it compiles");
        let program = compiled.program().expect("it has no variables");
        assert_equal(&Subject::Program(program), &Subject::Ruleset(&meant));
    }
}

#[test]
fn both_together_let_56_calls_through() {
    let policies = [SENTRY_TEXT, NEVER_TEXT].map(ruleset);
    let both = policies.each_ref().map(Subject::Ruleset);
    let names = || {
        SENTRY
            .split_whitespace()
            .filter(|name| !NEVER.contains(name))
    };
    assert_eq!(names().count(), 56);
    let meant = listed(names(), Action::ALLOW, DENIED);
    assert_equal(&Subject::Stack(&both), &Subject::Ruleset(&meant));
}

#[test]
fn the_patch_refuses_the_list_and_its_descendants() {
    let expected: BTreeSet<&str> = NEVER.into_iter().chain(REFUSED_TOO).collect();
    let refused = PATCH
        .lines()
        .filter_map(|line| line.strip_prefix("+\tcase __NR_")?.strip_suffix(':'));
    assert_eq!(refused.collect::<BTreeSet<_>>(), expected);
    let tried = VMM
        .split("NEVER_MADE(")
        .skip(2)
        .filter_map(|rest| Some(rest.split_once(')')?.0));
    assert_eq!(tried.collect::<BTreeSet<_>>(), expected);
}

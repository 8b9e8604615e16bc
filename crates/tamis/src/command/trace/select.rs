//! Which calls are asked for: expressions, and the filter that selects the calls.
//!
//! ```text
//! expression = [ "trace=" ] [ "!" ] item { "," item }
//! item       = "all" | "%" CLASS | TARGET
//! ```
//!
//! A target is that of a rule in the tamis language: a call, a call with a condition, a set of calls. Several expressions
//! ask for what any of them asks for; those with `!` for all others.

use tamis_abi::{Arch, syscall};
use tamis_bpf::Program;
use tamis_recorder::caught::Counting;
use tamis_recorder::view;
use tamis_session::{Input, InputKind};

use crate::cli::load::{LoadArgs, native_arch};
use crate::cli::target::TargetArgs;
use crate::cli::{Failure, Global};

/// Classes of strace: calls and sets.
const LISTS: [(&str, &[&str]); 11] = [
    ("network", &["@network-io", "sendfile", "sendfile64"]),
    ("net", &["@network-io", "sendfile", "sendfile64"]),
    (
        "process",
        &[
            "clone",
            "clone3",
            "execve",
            "execveat",
            "exit",
            "exit_group",
            "fork",
            "kill",
            "pidfd_send_signal",
            "rt_sigqueueinfo",
            "rt_tgsigqueueinfo",
            "tgkill",
            "tkill",
            "vfork",
            "wait4",
            "waitid",
            "waitpid",
        ],
    ),
    (
        "signal",
        &[
            "@signal",
            "kill",
            "pause",
            "pidfd_send_signal",
            "rt_sigqueueinfo",
            "rt_sigreturn",
            "rt_tgsigqueueinfo",
            "sigreturn",
            "tgkill",
            "tkill",
        ],
    ),
    (
        "ipc",
        &[
            "ipc",
            "msgctl",
            "msgget",
            "msgrcv",
            "msgsnd",
            "semctl",
            "semget",
            "semop",
            "semtimedop",
            "semtimedop_time64",
            "shmat",
            "shmctl",
            "shmdt",
            "shmget",
        ],
    ),
    (
        "clock",
        &[
            "adjtimex",
            "clock_adjtime",
            "clock_adjtime64",
            "clock_getres",
            "clock_getres_time64",
            "clock_gettime",
            "clock_gettime64",
            "clock_settime",
            "clock_settime64",
            "gettimeofday",
            "settimeofday",
            "stime",
            "time",
        ],
    ),
    (
        "memory",
        &[
            "brk",
            "madvise",
            "mbind",
            "memfd_secret",
            "mincore",
            "mlock",
            "mlock2",
            "mlockall",
            "mmap",
            "mmap2",
            "mprotect",
            "mremap",
            "mseal",
            "msync",
            "munlock",
            "munlockall",
            "munmap",
            "pkey_mprotect",
            "process_madvise",
            "process_mrelease",
            "remap_file_pages",
            "shmat",
            "shmdt",
        ],
    ),
    (
        "creds",
        &[
            "capget",
            "capset",
            "getegid",
            "geteuid",
            "getgid",
            "getgroups",
            "getresgid",
            "getresuid",
            "getuid",
            "setfsgid",
            "setfsuid",
            "setgid",
            "setgroups",
            "setregid",
            "setresgid",
            "setresuid",
            "setreuid",
            "setuid",
        ],
    ),
    ("stat", &["stat", "stat64"]),
    ("lstat", &["lstat", "lstat64"]),
    ("fstat", &["fstat", "fstat64", "fstatat64", "newfstatat"]),
];

/// A program that says `notify` for the calls that are asked for and allows the rest, on these architectures.
pub(super) fn filter(
    expressions: &[String],
    arches: &[Arch],
    global: &Global,
) -> Result<Program, Failure> {
    let mut wanted = Vec::new();
    let mut unwanted = Vec::new();
    for expression in expressions {
        let expression = expression.strip_prefix("trace=").unwrap_or(expression);
        let (items, into) = match expression.strip_prefix('!') {
            Some(items) => (items, &mut unwanted),
            None => (expression, &mut wanted),
        };
        for item in items_of(items)? {
            into.extend(targets(item, arches)?);
        }
    }
    if !wanted.is_empty() && !unwanted.is_empty() {
        return Err(Failure::usage(
            "calls are asked for, and others are excluded",
            "write only what is to be seen, or only, with `!`, what isn't",
        ));
    }
    let is_all = wanted.iter().any(|target| target == "all");
    let (targets, action, rest) = match unwanted.is_empty() {
        true if wanted.is_empty() || is_all => return Ok(Counting::filter()),
        true => (wanted, "notify", "allow"),
        false => (unwanted, "allow", "notify"),
    };
    compiled(&targets, action, rest, arches, global)
}

/// The items between commas that aren't in parentheses or braces.
fn items_of(text: &str) -> Result<Vec<&str>, Failure> {
    let mut items = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(text[start..].trim());
    match items.iter().any(|item| item.is_empty()) {
        true => Err(Failure::usage(
            format!("the expression `{text}` has an empty part"),
            "write calls with commas between them: `-e openat,connect`",
        )),
        false => Ok(items),
    }
}

/// The targets of the language that an item stands for.
fn targets(item: &str, arches: &[Arch]) -> Result<Vec<String>, Failure> {
    let Some(class) = item.strip_prefix('%') else {
        return Ok(vec![item.to_owned()]);
    };
    if let Some((_, calls)) = LISTS.iter().find(|(name, _)| *name == class) {
        return Ok(calls.iter().map(|call| (*call).to_owned()).collect());
    }
    let is_in: fn(Arch, &str) -> bool = match class {
        "file" => view::takes_path,
        "desc" => view::takes_descriptor,
        _ => {
            return Err(Failure::usage(
                format!("no class of calls is called `%{class}`"),
                "there are %file, %desc, %network, %process, %signal, %ipc, %memory, %creds, %clock, %stat, %lstat and \
                 %fstat; `@NAME` is a set of the tamis language",
            ));
        }
    };
    let mut calls: Vec<&str> = arches
        .iter()
        .flat_map(|arch| syscall::all(*arch).map(|(_, name)| (*arch, name)))
        .filter(|(arch, name)| is_in(*arch, name))
        .map(|(_, name)| name)
        .collect();
    calls.sort_unstable();
    calls.dedup();
    Ok(calls.into_iter().map(str::to_owned).collect())
}

/// The filter of a policy with a rule for each target.
fn compiled(
    targets: &[String],
    action: &str,
    rest: &str,
    arches: &[Arch],
    global: &Global,
) -> Result<Program, Failure> {
    let mut load = LoadArgs::of_kind(InputKind::named("tamis")?).for_filter();
    load.arches = arches.to_vec();
    let end = format!("default {rest}\nbad-arch {rest}\n");
    let rule = |target: &str| format!("{action} {target}\n");
    // An argument may have no place on another architecture than the machine's: there all such calls are shown.
    let native = native_arch();
    let (everywhere, here): (Vec<&String>, Vec<&String>) = targets.iter().partition(|target| {
        let is_conditional = target.contains('(') && arches != [native];
        !is_conditional
            || load
                .load_input(Input::new("-e", rule(target) + &end))
                .is_ok()
    });
    let rules = |targets: &[&String]| {
        targets
            .iter()
            .map(|target| rule(target))
            .collect::<String>()
    };
    let mut text = rules(&everywhere);
    if !here.is_empty() {
        text += &format!("on {native} {{\n{}}}\n", rules(&here));
        let others: Vec<&str> = arches
            .iter()
            .filter(|arch| **arch != native)
            .map(|arch| arch.name())
            .collect();
        if action == "notify" && !others.is_empty() {
            let calls = here.iter().filter_map(|target| target.split('(').next());
            let calls: String = calls.map(|call| format!("notify {call}\n")).collect();
            text += &format!("on {} {{\n{calls}}}\n", others.join(", "));
        }
    }
    let loaded = load.load_input(Input::new("-e", text + &end))?;
    let options = TargetArgs::default().options(&load.options(), global)?;
    Ok(loaded.into_program(&options)?.program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_conditions_do_not_separate_items() {
        let items = items_of("openat, socket(family in {AF_INET, AF_INET6}, type & 15 == 1),%file")
            .unwrap();
        assert_eq!(
            items,
            [
                "openat",
                "socket(family in {AF_INET, AF_INET6}, type & 15 == 1)",
                "%file"
            ]
        );
        assert!(items_of("openat,,read").is_err());
        assert!(items_of("").is_err());
    }

    #[test]
    fn classes_have_the_calls_that_belong_to_them() {
        let of = |class: &str| targets(class, &[Arch::X86_64, Arch::X86]).unwrap();
        for call in ["openat", "stat", "rename", "execve", "mount", "chown32"] {
            assert!(of("%file").iter().any(|known| known == call), "{call}");
        }
        assert!(
            !of("%file")
                .iter()
                .any(|known| known == "read" || known == "memfd_create")
        );
        assert!(of("%desc").iter().any(|known| known == "read"));
        assert!(of("%process").iter().any(|known| known == "execve"));
        assert!(targets("%nothing", &[]).is_err());
        for (_, calls) in LISTS {
            let is_known = |call: &&str| call.starts_with('@') || syscall::is_known(call);
            assert!(calls.iter().all(is_known), "{calls:?}");
        }
    }

    #[test]
    fn conditions_without_a_place_elsewhere_change_no_other_expression() {
        use clap::Parser;
        use tamis_abi::SeccompData;

        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            global: Global,
        }
        let Line { global } = Line::parse_from(["tamis"]);
        let arches = [Arch::X86_64, Arch::X86];
        let shows = |expressions: &[&str], call: &str| {
            let expressions: Vec<String> = expressions.iter().map(|e| (*e).to_owned()).collect();
            let filter = filter(&expressions, &arches, &global).unwrap();
            let call: SeccompData = tamis_abi::call::parse(call, Arch::X86_64).unwrap();
            let ret = tamis_bpf::interp::run(&filter, &call).ret;
            tamis_abi::Action::from_ret(ret).kind == tamis_abi::ActionKind::Notify
        };
        let both = ["mmap(prot & PROT_EXEC != 0),openat(flags & O_CREAT != 0)"];
        assert!(shows(&both, "x86 mmap(0)"));
        assert!(!shows(&both, "mmap(0, 1, PROT_READ)"));
        assert!(shows(&both, "x86 openat(0, 0, O_CREAT)"));
        assert!(!shows(&both, "x86 openat(0, 0, 0)"));
        let others = ["!mmap(prot & PROT_EXEC == 0),read"];
        assert!(shows(&others, "x86 mmap(0)"));
        assert!(!shows(&others, "mmap(0, 1, PROT_READ)"));
        assert!(!shows(&others, "x86 read(0)"));
    }
}

//! The expressions that select calls, and the filter for them.
//!
//! ```text
//! expression = [ "trace=" ] [ "!" ] item { "," item }
//! item       = "all" | "%" CLASS | TARGET
//! ```
//!
//! A target has the syntax of a rule in the tamis language: a call, a call with a condition, a set of calls. Several
//! expressions select the union of their calls; those with `!` select the complement.

use tamis_abi::{Arch, syscall};
use tamis_bpf::Program;
use tamis_recorder::caught::Counting;
use tamis_recorder::view;
use tamis_session::{Input, InputKind};

use crate::cli::load::{LoadArgs, native_arch};
use crate::cli::target::TargetArgs;
use crate::cli::{Failure, Global};

use super::item::Item;

/// Classes of strace, with their calls and sets.
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

/// A program with the action `notify` for the selected calls of these architectures; it allows all others.
pub(super) fn filter(
    expressions: &[String],
    arches: &[Arch],
    global: &Global,
) -> Result<Program, Failure> {
    let mut wanted = Vec::new();
    let mut unwanted = Vec::new();
    for expression in expressions {
        let (items, is_unwanted) = items_of(expression)?;
        let into = if is_unwanted {
            &mut unwanted
        } else {
            &mut wanted
        };
        for item in items {
            into.extend(targets(item, arches)?);
        }
    }
    if !wanted.is_empty() && !unwanted.is_empty() {
        return Err(Failure::usage(
            "calls are asked for, and others are excluded",
            "write only what is to be seen, or only, with `!`, what isn't",
        ));
    }
    let is_all = wanted.iter().any(|target| target.text() == "all");
    let (targets, action, rest) = match unwanted.is_empty() {
        true if wanted.is_empty() || is_all => return Ok(Counting::filter()),
        true => (wanted, "notify", "allow"),
        false => (unwanted, "allow", "notify"),
    };
    compiled(&targets, action, rest, arches, global)
}

/// Splits an expression at commas outside parentheses and braces; also returns whether it is negated.
fn items_of(expression: &str) -> Result<(Vec<Item<'_>>, bool), Failure> {
    let text = expression.strip_prefix("trace=").unwrap_or(expression);
    let is_unwanted = text.starts_with('!');
    let first = expression.len() - text.len() + usize::from(is_unwanted);
    let mut items = Vec::new();
    let (mut depth, mut start) = (0, first);
    for (at, character) in expression.char_indices().skip_while(|(at, _)| *at < first) {
        match character {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(Item::new(expression, start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(Item::new(expression, start..expression.len()));
    match items.iter().any(|item| item.text().is_empty()) {
        true => Err(Failure::usage(
            format!(
                "the expression `{}` has an empty part",
                &expression[first..]
            ),
            "write calls with commas between them: `-e openat,connect`",
        )),
        false => Ok((items, is_unwanted)),
    }
}

/// The targets of the tamis language for an item.
fn targets<'e>(item: Item<'e>, arches: &[Arch]) -> Result<Vec<Item<'e>>, Failure> {
    let text = item.text();
    let Some(class) = text.strip_prefix('%') else {
        let mut classes = LISTS.iter().map(|(name, _)| *name).chain(["file", "desc"]);
        // 32-bit calls, such as `signal` and `ipc`, are selected only if their architecture is named.
        if let Some(arch) = arches.first()
            && syscall::number(*arch, text).is_none()
            && classes.any(|class| class == text)
        {
            return Err(Failure::usage(
                format!("{arch} has no call `{text}`"),
                format!("the class of calls is `%{text}`"),
            ));
        }
        return Ok(vec![item]);
    };
    if let Some((_, calls)) = LISTS.iter().find(|(name, _)| *name == class) {
        return Ok(calls.iter().copied().map(Item::known).collect());
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
    Ok(calls.into_iter().map(Item::known).collect())
}

/// The filter of a policy with a rule for each target.
fn compiled(
    targets: &[Item<'_>],
    action: &str,
    rest: &str,
    arches: &[Arch],
    global: &Global,
) -> Result<Program, Failure> {
    let mut load = LoadArgs::of_kind(InputKind::named("tamis")?).for_filter();
    load.arches = arches.to_vec().into();
    let mut text = String::new();
    for target in targets {
        let name = target.checked()?;
        let other = arches
            .contains(&Arch::X86)
            .then(|| view::multiplexed(&name));
        if let Some(other) = other.flatten()
            && (action == "notify" || !target.is_conditional())
        {
            // Conditions on the arguments of such a call are about memory, so all its calls are shown.
            text += &format!("on x86 {{\n{action} {other}\n}}\n");
        }
        if !target.is_conditional() {
            text += &format!("{action} {}\n", target.text());
            target.load(&load)?;
            continue;
        }
        // An argument may be missing on some architecture: all its calls are shown there.
        let mut mistakes = Vec::new();
        let mut rules = String::new();
        for arch in arches {
            load.arches = vec![*arch].into();
            let rule = match target.load(&load) {
                Ok(()) => format!("{action} {}", target.text()),
                Err(mistake) => {
                    mistakes.push((*arch != native_arch(), mistake));
                    let is_shown = action == "notify" && syscall::number(*arch, &name).is_some();
                    if !is_shown {
                        continue;
                    }
                    format!("{action} {name}")
                }
            };
            rules += &format!("on {arch} {{\n{rule}\n}}\n");
        }
        load.arches = arches.to_vec().into();
        // An error on all architectures is reported for this machine's, if it is one of them.
        if mistakes.len() == arches.len() {
            mistakes.sort_by_key(|(is_foreign, _)| *is_foreign);
            if let Some((_, mistake)) = mistakes.into_iter().next() {
                return Err(mistake);
            }
        }
        text += &rules;
    }
    text += &format!("default {rest}\nbad-arch {rest}\n");
    let loaded = load.load_input(Input::new("-e", text))?;
    let options = TargetArgs::default().options(&load.options(), global)?;
    Ok(loaded.into_program(&options)?.program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_conditions_do_not_separate_items() {
        let texts = |expression| {
            let (items, is_unwanted) = items_of(expression).unwrap();
            let texts: Vec<String> = items.iter().map(|item| item.text().to_owned()).collect();
            (texts, is_unwanted)
        };
        let expression =
            "trace=!openat, socket(family in {AF_INET, AF_INET6}, type & 15 == 1),%file";
        let (items, is_unwanted) = texts(expression);
        assert!(is_unwanted && !texts("openat").1);
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
        let of = |class: &str| {
            let targets =
                targets(Item::new(class, 0..class.len()), &[Arch::X86_64, Arch::X86]).unwrap();
            let names: Vec<String> = targets.iter().map(|item| item.text().to_owned()).collect();
            names
        };
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
        assert!(targets(Item::new("%nothing", 0..8), &[]).is_err());
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
        let arches = [Arch::X86_64, Arch::X86, Arch::X32];
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
        assert!(!shows(&both, "x32 mmap(0, 1, PROT_READ)"));
        assert!(shows(&both, "x32 mmap(0, 1, PROT_EXEC)"));
        assert!(shows(&both, "x86 openat(0, 0, O_CREAT)"));
        assert!(!shows(&both, "x86 openat(0, 0, 0)"));
        // By the multiplexer of several of these calls.
        assert!(shows(&["accept,shmget"], "x86 socketcall(5)"));
        assert!(shows(&["socket(family == AF_INET)"], "x86 socketcall(1)"));
        assert!(!shows(&["accept,shmget"], "x86 socketcall(1)"));
        assert!(shows(&["accept,shmget"], "x86 ipc(23)"));
        assert!(
            !shows(&["!accept"], "x86 socketcall(5)") && shows(&["!accept"], "x86 socketcall(1)")
        );
        let others = ["!mmap(prot & PROT_EXEC == 0),read"];
        assert!(shows(&others, "x86 mmap(0)"));
        assert!(!shows(&others, "mmap(0, 1, PROT_READ)"));
        assert!(!shows(&others, "x86 read(0)"));
    }
}

//! The embedded files of checks, by name: those of the folder `checks`.

/// An embedded file of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standard {
    /// The name on the command line and in `include`.
    pub name: &'static str,
    /// The text.
    pub text: &'static str,
}

/// All embedded files, sorted by name.
pub const ALL: &[Standard] = &[
    Standard {
        name: "af-alg",
        text: include_str!("../checks/af-alg.checks"),
    },
    Standard {
        name: "af-vsock",
        text: include_str!("../checks/af-vsock.checks"),
    },
    Standard {
        name: "agent",
        text: include_str!("../checks/agent.checks"),
    },
    Standard {
        name: "bpf",
        text: include_str!("../checks/bpf.checks"),
    },
    Standard {
        name: "build",
        text: include_str!("../checks/build.checks"),
    },
    Standard {
        name: "container",
        text: include_str!("../checks/container.checks"),
    },
    Standard {
        name: "container-escape",
        text: include_str!("../checks/container-escape.checks"),
    },
    Standard {
        name: "debug-no",
        text: include_str!("../checks/debug-no.checks"),
    },
    Standard {
        name: "execveat",
        text: include_str!("../checks/execveat.checks"),
    },
    Standard {
        name: "glibc",
        text: include_str!("../checks/glibc.checks"),
    },
    Standard {
        name: "io-uring",
        text: include_str!("../checks/io-uring.checks"),
    },
    Standard {
        name: "keyrings",
        text: include_str!("../checks/keyrings.checks"),
    },
    Standard {
        name: "machine",
        text: include_str!("../checks/machine.checks"),
    },
    Standard {
        name: "modules",
        text: include_str!("../checks/modules.checks"),
    },
    Standard {
        name: "mounts",
        text: include_str!("../checks/mounts.checks"),
    },
    Standard {
        name: "musl",
        text: include_str!("../checks/musl.checks"),
    },
    Standard {
        name: "nested-no",
        text: include_str!("../checks/nested-no.checks"),
    },
    Standard {
        name: "network-full",
        text: include_str!("../checks/network-full.checks"),
    },
    Standard {
        name: "network-none",
        text: include_str!("../checks/network-none.checks"),
    },
    Standard {
        name: "network-proxy",
        text: include_str!("../checks/network-proxy.checks"),
    },
    Standard {
        name: "network-unix",
        text: include_str!("../checks/network-unix.checks"),
    },
    Standard {
        name: "obsolete-families",
        text: include_str!("../checks/obsolete-families.checks"),
    },
    Standard {
        name: "other-abis",
        text: include_str!("../checks/other-abis.checks"),
    },
    Standard {
        name: "ptrace",
        text: include_str!("../checks/ptrace.checks"),
    },
    Standard {
        name: "raw-sockets",
        text: include_str!("../checks/raw-sockets.checks"),
    },
    Standard {
        name: "service",
        text: include_str!("../checks/service.checks"),
    },
    Standard {
        name: "tty-injection",
        text: include_str!("../checks/tty-injection.checks"),
    },
    Standard {
        name: "user-namespaces",
        text: include_str!("../checks/user-namespaces.checks"),
    },
    Standard {
        name: "userfaultfd",
        text: include_str!("../checks/userfaultfd.checks"),
    },
    Standard {
        name: "workload",
        text: include_str!("../checks/workload.checks"),
    },
    Standard {
        name: "wx",
        text: include_str!("../checks/wx.checks"),
    },
];

/// The embedded file with this name.
pub fn standard(name: &str) -> Option<Standard> {
    ALL.iter().copied().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use tamis_abi::Arch;
    use tamis_diag::Sources;
    use tamis_policy::loader::NoIncludes;
    use tamis_policy::sink::Sink;
    use tamis_policy::tamis;
    use tamis_prover::{Limits, Stop, Subject};
    use tamis_rules::Ruleset;
    use tamis_testkit::compiled;

    use super::*;
    use crate::{Checks, Judge, Resources, Verdict, load, parser, print};

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../checks")
    }

    fn loaded(file: Standard) -> Checks {
        let mut sources = Sources::new();
        let root = sources.add(file.name, file.text);
        let loaded = load(&mut sources, root, &mut NoIncludes, &[]);
        assert_eq!(loaded.diagnostics, [], "{}", file.name);
        loaded.checks.expect("it has no errors")
    }

    /// A check with a policy that breaks it and one that just doesn't.
    struct Case {
        check: String,
        breaks: String,
        holds: String,
    }

    fn cases(file: &str) -> Vec<Case> {
        let path = folder().join(format!("tests/{file}.cases"));
        let text = fs::read_to_string(path).unwrap_or_default();
        let text = format!("\n{text}");
        let parts = text.split("\n== ").skip(1);
        let case = |part: &str| {
            let (check, policies) = part.split_once("\n-- breaks\n").unwrap();
            let (breaks, holds) = policies.split_once("-- holds\n").unwrap();
            Case {
                check: check.trim().to_owned(),
                breaks: breaks.to_owned(),
                holds: holds.trim_end().to_owned() + "\n",
            }
        };
        parts.map(case).collect::<Vec<Case>>()
    }

    fn policy(text: &str) -> Ruleset {
        let mut sources = Sources::new();
        let root = sources.add("case", text);
        let options = tamis::TamisOptions::new(vec![Arch::X86_64]);
        let parsed = tamis::parse(&mut sources, root, &mut NoIncludes, &options);
        let diagnostics = parsed.diagnostics;
        parsed
            .ruleset
            .unwrap_or_else(|| panic!("{text}{diagnostics:?}"))
    }

    /// The checks that hold, and those that don't.
    fn verdicts(checks: &Checks, text: &str) -> Vec<(String, bool)> {
        let ruleset = policy(text);
        let subject = Subject::Ruleset(&ruleset);
        let programs = [compiled::program(&ruleset)];
        let resources = Resources {
            reference: None,
            programs: &|| Ok(&programs),
        };
        let mut judge =
            Judge::new(subject, Arch::X86_64, Limits::default(), Stop::default()).unwrap();
        let verdict = |check: &crate::Check| {
            let verdict = judge.check(checks, check, &resources).verdict;
            assert!(matches!(verdict, Verdict::Holds | Verdict::Fails));
            (check.text.clone(), verdict == Verdict::Holds)
        };
        checks.all.iter().map(verdict).collect()
    }

    #[test]
    fn every_file_of_the_folder_is_embedded_by_its_name() {
        let files = fs::read_dir(folder()).unwrap();
        let names = files.filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".checks").map(str::to_owned)
        });
        let names: BTreeSet<String> = names.collect();
        let known: Vec<&str> = ALL.iter().map(|file| file.name).collect();
        assert!(names.iter().eq(&known), "{names:?} {known:?}");
    }

    #[test]
    fn every_check_has_a_policy_that_breaks_it_and_one_that_just_does_not() {
        let mut broken: BTreeSet<String> = BTreeSet::new();
        for file in ALL {
            let checks = loaded(*file);
            for case in cases(file.name) {
                let failing = verdicts(&checks, &case.breaks);
                let fails = |(text, holds): &(String, bool)| *text == case.check && !holds;
                assert!(failing.iter().any(fails), "{}: {}", file.name, case.check);
                let own = failing.iter().filter(|(text, _)| *text == case.check);
                assert!(
                    own.clone().all(|(_, holds)| !holds),
                    "{}: {}",
                    file.name,
                    case.check
                );
                let holding = verdicts(&checks, &case.holds);
                let own = holding.iter().filter(|(text, _)| *text == case.check);
                assert!(
                    own.clone().all(|(_, holds)| *holds),
                    "{}: {}",
                    file.name,
                    case.check
                );
                let [left, right] = [&case.breaks, &case.holds].map(|text| text.lines());
                let (left, right): (BTreeSet<&str>, BTreeSet<&str>) =
                    (left.collect(), right.collect());
                let differing = left
                    .difference(&right)
                    .count()
                    .max(right.difference(&left).count());
                assert_eq!(differing, 1, "{}: {}: not near", file.name, case.check);
                broken.insert(case.check);
            }
        }
        for file in ALL {
            for check in &loaded(*file).all {
                assert!(
                    broken.contains(&check.text),
                    "{}: {} has no case",
                    file.name,
                    check.text
                );
                let group = check.group.expect("a shipped check has a group");
                let group = &loaded(*file).groups[group];
                assert!(
                    group.reason.is_some() && !group.sources.is_empty(),
                    "{}",
                    group.title
                );
            }
        }
    }

    #[test]
    fn what_is_printed_parses_to_the_same_text() {
        let statements = |text: &str| {
            let mut sources = Sources::new();
            let root = sources.add("printed", text);
            let mut sink = Sink::new(false);
            let statements = parser::parse(root, text, &mut sink);
            assert!(!sink.has_failed(), "{text}");
            statements
        };
        const ALL_FORMS: &str = "include \"a\"\nparam A = B | (C & D)\nparam E = {1, 2..3}\nlet F = ~(1 << 2)\n\
            set @g = {read, @h}\non x86_64, arm\nnever allow any way a(b & (C | D) == E), nr 3..4, @i\n\
            always allow a(!(b == 1) && (c in D || low(e) > 2))\nexpect a, b(c == d) -> errno(E)\n\
            stricter than \"x\"\nlooser than \"y\"\nequal to \"z\"\nat most 30 instructions\ncached: read, write\n\
            group \"h\" { reason \"i\" \"j\" source \"k\" on x32 never allow l }\n";
        for text in ALL.iter().map(|file| file.text).chain([ALL_FORMS]) {
            let printed = print::checks(&statements(text));
            assert_eq!(printed, print::checks(&statements(&printed)));
            let words = |text: &str| {
                let lines = text.lines().filter(|line| !line.starts_with('#'));
                let lines: Vec<&str> = lines.map(|line| line.split('#').next().unwrap()).collect();
                let kept = |sign: &char| !sign.is_whitespace() && !",()".contains(*sign);
                lines.join("\n").chars().filter(kept).collect::<String>()
            };
            assert_eq!(words(&printed), words(text));
        }
    }
}

//! The embedded policies, call by call, beside the default profiles of Docker, Podman and containerd.
//!
//! The book's table has a row with a reason for each call of x86-64 that an embedded policy allows more than one of these
//! defaults, and for each that `container-default` allows less; the cells are compared with the profiles as far as the
//! machine has them. Docker's is in the corpus; Podman's and containerd's, whose calls are read from its source, come from the
//! cache of Go modules (`go mod download github.com/containers/common@v0.64.2
//! github.com/containerd/containerd/v2@v2.4.2`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use tamis_abi::{Action, Arch, Word, syscall};
use tamis_analysis::with_word;
use tamis_diag::Sources;
use tamis_policy::embedded;
use tamis_policy::loader::NoIncludes;
use tamis_policy::oci::{self, OciOptions};
use tamis_policy::tamis::{self, TamisOptions};
use tamis_prover::{Limits, Space};
use tamis_rules::Ruleset;
use tamis_testkit::corpus::{self, repository};
use tamis_testkit::skip::{self, Need};

/// How much of a call is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    Denied,
    Conditional,
    Allowed,
}

impl Access {
    fn from_cell(cell: &str) -> Access {
        match cell.split(',').next() {
            Some("denied") => Access::Denied,
            Some("conditional") => Access::Conditional,
            Some("allowed") => Access::Allowed,
            _ => panic!("`{cell}` is no access"),
        }
    }
}

/// The access to every call of x86-64.
type Accesses = BTreeMap<&'static str, Access>;

/// The access of a ruleset to each call.
fn accesses(ruleset: &Ruleset) -> Accesses {
    let mut space = Space::new(Limits::default());
    let all = space.ruleset(ruleset).unwrap();
    let of_arch = with_word(&mut space, all, Word::ARCH, Arch::X86_64.audit()).unwrap();
    let calls = syscall::all(Arch::X86_64).map(|(nr, name)| {
        let function = with_word(&mut space, of_arch, Word::NR, nr.0).unwrap();
        let answers: BTreeSet<bool> = space
            .values(function)
            .into_iter()
            .map(|ret| ret == Action::ALLOW.ret())
            .collect();
        let access = match (answers.contains(&true), answers.contains(&false)) {
            (true, false) => Access::Allowed,
            (true, true) => Access::Conditional,
            _ => Access::Denied,
        };
        (name, access)
    });
    calls.collect()
}

fn embedded_policy(name: &str) -> Accesses {
    let policy = embedded(name).expect("it is embedded");
    let mut sources = Sources::new();
    let source = sources.add(policy.name, policy.text);
    let options = TamisOptions::new(vec![Arch::X86_64]);
    let parsed = tamis::parse(&mut sources, source, &mut NoIncludes, &options);
    accesses(&parsed.ruleset.expect("it has no errors"))
}

/// A profile for a container with the engine's default capabilities.
fn profile(text: &str, capabilities: Option<&[&str]>) -> Accesses {
    let mut options = OciOptions::docker(Arch::X86_64);
    if let Some(capabilities) = capabilities {
        let full = capabilities.iter().map(|name| format!("CAP_{name}"));
        options.capabilities = full.collect();
    }
    let mut sources = Sources::new();
    let source = sources.add("profile.json", text);
    let parsed = oci::parse(&sources, source, &options).parsed;
    accesses(&parsed.ruleset.expect("it is a profile"))
}

/// A file of the cache of Go modules; the test ends without it.
fn go_module(path: &str) -> String {
    let root = std::env::var_os("GOMODCACHE").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join("go/pkg/mod"));
    let file = root.or_else(home).map(|root| root.join(path));
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    let missing = || format!("the cache of Go modules has no {path}");
    text.unwrap_or_else(|| skip::because(Need::EngineDefaults, missing()))
}

fn docker() -> Accesses {
    let text = corpus::text("docker/docker-default-x86_64.json");
    profile(&text, None)
}

fn podman() -> Accesses {
    const CAPABILITIES: [&str; 11] = [
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    let text = go_module("github.com/containers/common@v0.64.2/pkg/seccomp/seccomp.json");
    profile(&text, Some(&CAPABILITIES))
}

/// The calls of containerd's source: every list of names with its context.
fn containerd() -> Accesses {
    let path = "github.com/containerd/containerd/v2@v2.4.2/contrib/seccomp/seccomp_default.go";
    let source = go_module(path);
    let capabilities = OciOptions::docker(Arch::X86_64).capabilities;
    let mut calls: Accesses = syscall::all(Arch::X86_64)
        .map(|(_, name)| (name, Access::Denied))
        .collect();
    let (mut applies, mut names, mut is_listing) = (true, Vec::new(), false);
    for line in source.lines().map(str::trim) {
        let code = line.split("//").next().unwrap_or_default();
        let quoted = || code.split('"').skip(1).step_by(2).map(str::to_owned);
        if code.starts_with("case ") {
            applies = quoted().any(|case| case == "amd64" || capabilities.contains(&case));
        } else if ["default:", "admin :=", "if !admin"]
            .into_iter()
            .any(|start| code.starts_with(start))
        {
            applies = true;
        } else if code.starts_with("Names:") || is_listing {
            names.extend(quoted());
            is_listing = !code.contains('}');
        }
        let access = match code {
            _ if code.starts_with("Args:") && code.contains("{}") => Access::Allowed,
            _ if code.starts_with("Args:") => Access::Conditional,
            _ if code.starts_with("ErrnoRet:") => Access::Denied,
            _ => continue,
        };
        for name in names.drain(..) {
            if applies && let Some(known) = calls.get_mut(name.as_str()) {
                *known = access;
            }
        }
    }
    calls
}

/// A row of the table: embedded policies, calls, their access in each default and here.
struct Row {
    policies: Vec<String>,
    names: Vec<String>,
    cells: [Access; 4],
}

fn rows() -> Vec<Row> {
    let book = std::fs::read_to_string(repository().join("docs/book/language.md")).unwrap();
    let table = book
        .split("<!-- defaults -->")
        .nth(1)
        .expect("the marks of the table");
    let lines = table.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 7, "{line}");
        assert!(!cells[6].is_empty(), "a reason: {line}");
        let quoted = |cell: &str| {
            cell.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        Row {
            policies: quoted(cells[0]),
            names: quoted(cells[1]),
            cells: [2, 3, 4, 5].map(|at| Access::from_cell(cells[at])),
        }
    };
    lines.map(row).collect()
}

#[test]
fn the_table_has_every_call_that_differs_from_dockers_default() {
    check(0, &docker());
}

#[test]
fn the_table_has_every_call_that_differs_from_podmans_default() {
    check(1, &podman());
}

#[test]
fn the_table_has_every_call_that_differs_from_containerds_default() {
    check(2, &containerd());
}

/// The policies that stand for an engine's default, or allow less. The others confine ordinary users: what needs
/// capabilities is left to the kernel.
const COMPARED: [&str; 3] = ["container-default", "network-service", "pure-compute"];

/// Compares the embedded policies with the default of an engine, which has this column of the table.
fn check(column: usize, default: &Accesses) {
    let rows = rows();
    let mut missing = Vec::new();
    for policy in embedded::ALL
        .iter()
        .filter(|own| COMPARED.contains(&own.name))
    {
        let of_policy = |row: &&Row| row.policies.iter().any(|name| name == policy.name);
        let of_policy: Vec<&Row> = rows.iter().filter(of_policy).collect();
        for (name, access) in &embedded_policy(policy.name) {
            let theirs = &default[name];
            let has_name = |row: &&&Row| row.names.iter().any(|known| known == name);
            let row = of_policy.iter().find(has_name);
            let differs = access > theirs || access < theirs && policy.name == "container-default";
            let is_right =
                row.is_none_or(|row| (row.cells[column], row.cells[3]) == (*theirs, *access));
            if differs && row.is_none() || !is_right {
                let policy = policy.name;
                missing.push(format!("{policy} {name}: {theirs:?}, here {access:?}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

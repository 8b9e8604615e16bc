//! Policies that are read to the end, and matrices of options.

use super::{Reading, VALUES, call, lines, list};

const SOURCE: &str = "crates/cli/src/load.rs";
/// A rule takes up to this, and there are at most so many.
const RULE_BYTES: usize = 1 << 10;
const RULES: usize = 1 << 17;

pub(super) fn all(long: usize) -> Vec<Reading> {
    let compiled = [documents(long), texts(long)].concat();
    let compiled = compiled.into_iter().map(|(name, file, bytes)| {
        let command = match file {
            "a.json" => "compile a.json -o /dev/null",
            "a.yaml" => "compile a.yaml -o /dev/null",
            "a.kafel" => "compile a.kafel -o /dev/null",
            "a.policy" => "compile a.policy -o /dev/null",
            "a.service" => "compile a.service -o /dev/null",
            _ => "compile a.tamis -o /dev/null",
        };
        Reading {
            rules_bytes: match file {
                "a.tamis" => RULES * RULE_BYTES,
                _ => 0,
            },
            ..Reading::new(SOURCE, name, (file, bytes), command)
        }
    });
    compiled.chain(matrices(long)).chain(table(long)).collect()
}

type Input = (&'static str, &'static str, Vec<u8>);

/// JSON and YAML.
fn documents(long: usize) -> Vec<Input> {
    let allow = |name: &str| format!("{{\"names\":[\"{name}\"],\"action\":\"SCMP_ACT_ALLOW\"}}");
    let oci = "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[";
    let oci = list(oci, ",", "]}", long).up_to(VALUES / 2);
    let resource = "apiVersion: security-profiles-operator.x-k8s.io/v1beta1\nkind: SeccompProfile\nmetadata:\n  \
                    name: a\nspec:\n  defaultAction: SCMP_ACT_ERRNO\n";
    let entries = format!("{resource}  syscalls:\n  - ");
    let entries = list(&entries, "\n  - ", "\n", long).up_to(VALUES / 8);
    let flow = format!("{resource}  syscalls:\n  - action: SCMP_ACT_ALLOW\n    names: [");
    let flow = list(&flow, ",", "]\n", long).up_to(VALUES);
    let members = format!("{resource}  ");
    let members = list(&members, "", "\n", long).up_to(VALUES / 2);
    let rules = "{\"vmm\":{\"default_action\":\"trap\",\"filter_action\":\"allow\",\"filter\":[";
    let rules = list(rules, ",", "]}}", long).up_to(VALUES);
    let rule = |index| format!("{{\"syscall\":\"{}\"}}", call(index));
    let block = |index| format!("action: SCMP_ACT_ALLOW\n    names:\n    - {}", call(index));
    vec![
        (
            "entries of OCI",
            "a.json",
            oci.text(|index| allow(call(index))),
        ),
        (
            "unknown names of OCI",
            "a.json",
            oci.text(|index| allow(&index.to_string())),
        ),
        ("rules for Firecracker", "a.json", rules.text(rule)),
        ("entries of a resource", "a.yaml", entries.text(block)),
        (
            "names in a flow",
            "a.yaml",
            flow.text(|index| call(index).to_owned()),
        ),
        (
            "empty texts in a flow",
            "a.yaml",
            flow.text(|_| "''".to_owned()),
        ),
        (
            "unknown names in a flow",
            "a.yaml",
            flow.text(|index| format!("a{index}")),
        ),
        (
            "members of a resource",
            "a.yaml",
            members.text(|index| format!("x{index}:\n  ")),
        ),
    ]
}

/// Languages of their own.
fn texts(long: usize) -> Vec<Input> {
    let kafel = list("ALLOW { ", ", ", " } DEFAULT KILL\n", long).up_to(VALUES / 2);
    let unit = list("[Service]\n", "\n", "\n", long);
    let setting = |index| format!("X{index}=1");
    let family = |index| format!("RestrictAddressFamilies=AF_{index}");
    let tamis = list("default kill\n", "\n", "\n", long).up_to(RULES);
    vec![
        (
            "names of kafel",
            "a.kafel",
            kafel.text(|index| call(index).to_owned()),
        ),
        (
            "lines of minijail",
            "a.policy",
            lines(long, |index| format!("{}: 1", call(index))),
        ),
        (
            "lines of a unit",
            "a.service",
            unit.text(|_| "SystemCallFilter=read".to_owned()),
        ),
        (
            "unknown settings of a unit",
            "a.service",
            unit.text(setting),
        ),
        ("unknown families of a unit", "a.service", unit.text(family)),
        (
            "rules of tamis",
            "a.tamis",
            tamis.text(|index| format!("allow {}", call(index))),
        ),
    ]
}

/// Matrices of options.
fn matrices(long: usize) -> Vec<Reading> {
    const SOURCE: &str = "crates/tamis/src/command/precompile.rs";
    let matrix = list("policy = \"a.tamis\"\n", "\n", "\n", long);
    let array = list("policy = \"a.tamis\"\na = [", ",", "]\n", long);
    let option = |index| format!("[option.a{index}]\non = {{}}\noff = {{}}");
    let inputs = [
        (
            "keys of a matrix",
            matrix.text(|index| format!("a{index} = 1")),
        ),
        (
            "tables of a matrix",
            matrix.text(|index| format!("[a{index}]")),
        ),
        ("options of a matrix", matrix.text(option)),
        ("mistakes of a matrix", matrix.text(|_| "a".to_owned())),
        ("a wide array of a matrix", array.text(|_| "1".to_owned())),
    ];
    inputs
        .map(|(name, bytes)| {
            let command = "precompile a.toml -o out";
            let reading = Reading::new(SOURCE, name, ("a.toml", bytes), command);
            reading.with("a.tamis", b"default allow\n")
        })
        .to_vec()
}

/// The table of minijail's compile tool.
fn table(long: usize) -> [Reading; 1] {
    let head = "{\"arch_nr\":3221225534,\"arch_name\":\"x86_64\",\"bits\":64,\"constants\":{},\"syscalls\":{";
    let names = list(head, ",", "}}", long).up_to(VALUES);
    let bytes = names.text(|index| format!("\"a{index}\":0"));
    let command = "compile a.policy --arch-json a.json -o /dev/null";
    let reading = Reading::new(SOURCE, "a table for minijail", ("a.json", bytes), command);
    [reading.with("a.policy", b"a1: 1\n")]
}

//! Profiles in every form, and audit records.

use super::{Reading, VALUES, call, lines, list};

const SOURCE: &str = "crates/cli/src/profile.rs";
const HEAD: &str = "{\"schema\":\"tamis-profile/1\",";

pub(super) fn all(long: usize) -> Vec<Reading> {
    let own = own(long).into_iter();
    let others = [tables(long), logs(long), documents(long)].concat();
    let of_own = own.flat_map(|(name, bytes)| both(name, "profile.json", &bytes));
    let of_others = others
        .into_iter()
        .flat_map(|(name, bytes)| both(name, "counts.txt", &bytes));
    let mut all: Vec<Reading> = of_own.chain(of_others).collect();
    for command in [
        "profile merge profile.json other.json -o sum.json",
        "profile merge profile.json other.json --to parquet -o sum.parquet",
    ] {
        let name = "many runs of two machines";
        let reading = Reading::new(SOURCE, name, ("profile.json", runs(long)), command);
        all.push(reading.with("other.json", &runs(long)));
    }
    all.extend(records(long));
    all
}

/// A sum and a learned policy of a profile.
fn both(name: &'static str, file: &'static str, bytes: &[u8]) -> [Reading; 2] {
    let commands = match file {
        "profile.json" => [
            "profile merge profile.json -o sum.json",
            "learn profile.json -o learned.tamis",
        ],
        _ => [
            "profile merge counts.txt -o sum.json",
            "learn counts.txt -o learned.tamis",
        ],
    };
    commands.map(|command| Reading::new(SOURCE, name, (file, bytes.to_vec()), command))
}

type Named = (&'static str, Vec<u8>);

fn runs(long: usize) -> Vec<u8> {
    let head = format!("{HEAD}\"calls\":[],\"runs\":[");
    let runs = list(&head, ",", "]}", long).up_to(VALUES);
    runs.text(|id| format!("{{\"id\":\"{id}\"}}"))
}

/// Profiles in tamis's own form.
fn own(long: usize) -> Vec<Named> {
    let of_call = |member: &str| {
        format!(
            "{HEAD}\"calls\":[{{\"arch\":\"x86_64\",\"call\":16,\"count\":9000000,\"{member}\":["
        )
    };
    let values = list(&of_call("values"), ",", "]}]}", long)
        .up_to(VALUES / 3)
        .text(|value| format!("{{\"arg\":1,\"value\":\"{value:#x}\",\"count\":1}}"));
    let samples = list(&of_call("samples"), ",", "]}]}", long)
        .up_to(VALUES / 7)
        .text(|value| format!("{{\"args\":[\"{value:#x}\",0,0,0,0,0],\"count\":1}}"));
    let calls = list(&format!("{HEAD}\"calls\":["), ",", "]}", long)
        .up_to(VALUES / 3)
        .text(|nr| format!("{{\"arch\":\"x86_64\",\"call\":{},\"count\":1}}", nr + 2000));
    let passed_over = format!("{HEAD}\"calls\":[],\"diagnostics\":[");
    let passed_over = |element: &'static str| {
        let list = list(&passed_over, ",", "]}", long).up_to(VALUES);
        list.text(move |_| element.to_owned())
    };
    let string = format!(
        "{HEAD}\"calls\":[],\"diagnostics\":\"{}\"}}",
        "a".repeat(long)
    );
    let keys = list(
        &format!("{HEAD}\"calls\":[],\"diagnostics\":{{"),
        ",",
        "}}",
        long,
    )
    .up_to(VALUES)
    .text(|_| "\"\":0".to_owned());
    vec![
        ("many runs", runs(long)),
        ("many values of an argument", values),
        ("many samples", samples),
        ("many calls", calls),
        ("a long string", string.into_bytes()),
        ("a wide array that is passed over", passed_over("0")),
        ("empty objects that are passed over", passed_over("{}")),
        (
            "nested arrays that are passed over",
            passed_over("[[[[[[[[]]]]]]]]"),
        ),
        ("one key many times", keys),
    ]
}

/// Tables of counts.
fn tables(long: usize) -> Vec<Named> {
    let rule = "------ ----------- ----------- --------- --------- ----------------\n";
    let head = format!("% time     seconds  usecs/call     calls    errors syscall\n{rule}");
    let tail = format!("\n{rule}100.00    0.000000           0         1           total\n");
    let row = |name: &str| format!("  0.00    0.000000           0         1           {name}");
    vec![
        (
            "a table of strace",
            list(&head, "\n", &tail, long).text(|index| row(call(index))),
        ),
        (
            "tables of strace",
            lines(long, |_| format!("{head}{}{tail}", row("read"))),
        ),
        (
            "counts of minijail",
            lines(long, |index| format!("{}: 1", call(index))),
        ),
        (
            "counts of numbers",
            lines(long, |index| format!("{index}: 1")),
        ),
        ("lines that are nothing", lines(long, |_| "a".to_owned())),
    ]
}

/// Logs with a line for each call.
fn logs(long: usize) -> Vec<Named> {
    let different = |index| format!("ioctl({index}, {index}, {index:#x}) = 0");
    let unfinished = |index| format!("[pid {index}] read({index} <unfinished ...>");
    let of_perf = |index| format!("1.0 ( ): a/{index} read(fd: 1) ...");
    vec![
        (
            "small lines of strace",
            lines(long, |index| format!("{}() = 0", call(index))),
        ),
        ("different values of strace", lines(long, different)),
        ("calls of strace that never go on", lines(long, unfinished)),
        ("calls of perf that never go on", lines(long, of_perf)),
        ("audit records as counts", lines(long, record)),
    ]
}

/// Documents of other tools.
fn documents(long: usize) -> Vec<Named> {
    let journal = |index| {
        let record = record(index).replace("type=SECCOMP", "audit: type=1326");
        let record = record.replace("msg=", "").replace('"', "'");
        format!("{{\"_TRANSPORT\":\"audit\",\"MESSAGE\":\"{record}\"}}")
    };
    let event = |index| {
        let name = call(index);
        format!("{{\"evt.num\":{index},\"evt.type\":\"{name}\",\"evt.dir\":\">\"}}")
    };
    let json = "{\"apiVersion\":\"v1\",\"kind\":\"SeccompProfile\",\"spec\":{\"syscalls\":[{\"action\":\
                \"SCMP_ACT_ALLOW\",\"names\":[";
    let json = list(json, ",", "]}]}}", long).up_to(VALUES);
    let yaml = "apiVersion: v1\nkind: SeccompProfile\nspec:\n  syscalls:\n  - action: SCMP_ACT_ALLOW\n    names:\n    - ";
    let yaml = list(yaml, "\n    - ", "\n", long).up_to(VALUES);
    vec![
        ("a journal", lines(long, journal)),
        ("events", lines(long, event)),
        (
            "names as JSON",
            json.text(|index| format!("\"{}\"", call(index))),
        ),
        ("names as YAML", yaml.text(|index| call(index).to_owned())),
        (
            "different names as YAML",
            yaml.text(|index| index.to_string()),
        ),
    ]
}

/// An audit record.
fn record(index: usize) -> String {
    format!(
        "type=SECCOMP msg=audit(1730230000.492:{index}): auid=0 uid=0 gid=0 ses=1 pid={index} comm=\"a\" exe=\"/a\" \
         sig=31 arch=c000003e syscall={} compat=0 ip=0x0 code=0x80000000",
        index % 5000
    )
}

/// Audit records to be explained.
fn records(long: usize) -> Vec<Reading> {
    const SOURCE: &str = "crates/tamis/src/command/explain/records.rs";
    let short = |index| format!("type=1326 arch=c000003e syscall={index} code=0x0");
    let enriched = |index| record(index) + "\u{1d}AUID=\"unset\" ARCH=x86_64 SYSCALL=read";
    let inputs = [
        ("audit records", lines(long, record)),
        ("short audit records", lines(long, short)),
        ("enriched records", lines(long, enriched)),
        ("lines that are none", lines(long, |_| "a".to_owned())),
        (
            "lines that are nearly records",
            lines(long, |_| "type=SECCOMP".to_owned()),
        ),
    ];
    let explain = "explain container-default --audit audit.log";
    inputs
        .map(|(name, bytes)| Reading::new(SOURCE, name, ("audit.log", bytes), explain))
        .to_vec()
}

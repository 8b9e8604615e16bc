//! Profiles: written profiles read back, merging is commutative, no text makes a reader panic, and the tables of real
//! tools are read correctly.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use tamis_abi::{Arch, syscall};
use tamis_diag::Sources;
use tamis_profile::{Format, Profile, Reading};
use tamis_testkit::corpus;
use tamis_testkit::generate::profile::profile;
use tamis_testkit::rng::Rng;
use tamis_testkit::skip::{self, Need};

const ROUNDS: u64 = 300;
const MAX_CALLS: usize = 12;

fn read(text: &str) -> Reading {
    let mut sources = Sources::new();
    let source = sources.add("profile", text);
    tamis_profile::read(&sources, source, Arch::X86_64)
}

fn merged(profiles: &[&Profile]) -> Profile {
    let mut sum = Profile::default();
    for profile in profiles {
        sum.merge(profile);
    }
    sum
}

#[test]
fn json_reads_back_to_the_same_profile() {
    for seed in 0..ROUNDS {
        let written = profile(&mut Rng::new(seed), MAX_CALLS);
        let reading = read(&written.to_json());
        assert_eq!(reading.diagnostics, [], "seed {seed}");
        assert_eq!(reading.profile, Some(written), "seed {seed}");
    }
}

#[test]
fn merging_is_associative_and_commutative_and_the_empty_profile_changes_nothing() {
    for seed in 0..ROUNDS {
        let mut rng = Rng::new(seed);
        let [a, b, c] = [(); 3].map(|()| profile(&mut rng, MAX_CALLS));
        let left = merged(&[&merged(&[&a, &b]), &c]);
        let right = merged(&[&a, &merged(&[&b, &c])]);
        assert_eq!(left, right, "seed {seed}");
        assert_eq!(merged(&[&a, &b]), merged(&[&b, &a]), "seed {seed}");
        assert_eq!(merged(&[&a, &Profile::default()]), a, "seed {seed}");
        let reading = read(&left.to_json());
        assert_eq!(
            reading.profile,
            Some(left),
            "a sum is a profile, seed {seed}"
        );
    }
}

const STRACE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 75.00    0.000300           5        57        12 openat
 25.00    0.000100           2        40           close
------ ----------- ----------- --------- --------- ----------------
100.00    0.000400           4        97        12 total
";
const PERF: &str = "   syscall            calls  errors  total       min       avg
   --------------- --------  ------ -------- --------- ---------
   openat                39     19     0.071     0.001     0.002
";
const FREQUENCY: &str = "# counts\nread: 3\n{write, close[arch=x86_64]}: 4\n";

/// A text with a few bytes changed, removed or repeated, made valid UTF-8 again.
fn damaged(rng: &mut Rng, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..rng.range(1..=6) {
        let at = rng.index(bytes.len());
        match rng.range(0..=3) {
            0 => bytes[at] = rng.next_u32() as u8,
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, *rng.choose(b"{}[]\":,-#0 \n")),
            _ => bytes.truncate(at.max(1)),
        }
        if bytes.is_empty() {
            bytes.push(b'{');
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn no_text_makes_a_reader_panic_and_failures_say_why() {
    for seed in 0..3 * ROUNDS {
        let mut rng = Rng::new(seed);
        let json = profile(&mut rng, MAX_CALLS).to_json();
        let text = *rng.choose(&[STRACE, PERF, FREQUENCY, &json]);
        let text = damaged(&mut rng, text);
        let reading = read(&text);
        let has_error = reading
            .diagnostics
            .iter()
            .any(tamis_diag::Diagnostic::is_error);
        assert_eq!(reading.profile.is_none(), has_error, "seed {seed}: {text}");
        for diagnostic in &reading.diagnostics {
            let span = diagnostic.labels[0].span;
            let place = text.get(span.start as usize..span.end as usize);
            assert!(place.is_some(), "seed {seed}: {span:?} of {text}");
        }
        if let Some(profile) = &reading.profile {
            let again = read(&profile.to_json()).profile;
            assert_eq!(again.as_ref(), Some(profile), "seed {seed}: {text}");
        }
    }
}

#[test]
fn a_hundred_mistakes_are_reported_of_any_number() {
    let rows = "no_such_call: 1\n".repeat(100_000);
    let reading = read(&rows);
    assert_eq!(reading.diagnostics.len(), 100);
    assert!(reading.profile.is_some_and(|profile| profile.is_empty()));
    let calls = vec![r#"{"arch": "x86_64", "call": "raed", "count": 1}"#; 1000].join(",");
    let json = format!(r#"{{"schema": "tamis-profile/1", "calls": [{calls}]}}"#);
    assert_eq!(read(&json).diagnostics.len(), 100);
}

/// The file that a tool writes when it traces [`COPY`]; the test ends if it can't.
fn table(need: Need, tool: &str, args: &[&str]) -> String {
    let name = format!("profiles-{tool}-{}.txt", args.concat());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut watch = Command::new(tool);
    watch.args(args).arg("-o").arg(&path).args(COPY);
    let output = watch.output();
    let text = fs::read_to_string(&path).unwrap_or_default();
    if output.is_ok_and(|output| output.status.success()) && !text.is_empty() {
        return text;
    }
    skip::because(need, format_args!("{tool} can't watch a program here"))
}

fn count(profile: &Profile, name: &str) -> u64 {
    let nr = syscall::number(Arch::X86_64, name).expect("a call of x86_64");
    profile.call(Arch::X86_64, nr).map_or(0, |call| call.count)
}

/// Reads and writes one byte 1234 times, with few other calls.
const COPY: [&str; 5] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1234"];

#[test]
fn tables_of_strace_mean_what_they_say() {
    skip::unless_x86_64();
    let columns = "errors,calls,name";
    for args in [
        vec!["-c"],
        vec!["-c", "-f", "-w"],
        vec!["-c", "-S", "calls"],
        vec!["-c", "-U", columns],
    ] {
        let text = table(Need::Peers, "strace", &args);
        let reading = read(&text);
        assert_eq!(reading.format, Some(Format::Strace), "{text}");
        let profile = reading.profile.unwrap_or_else(|| panic!("{text}"));
        assert!((1234..1300).contains(&count(&profile, "read")), "{text}");
        assert!((1234..1300).contains(&count(&profile, "write")), "{text}");
        let sum: u64 = profile.calls().map(|(_, _, call)| call.count).sum();
        let total = text.lines().find(|line| line.ends_with(" total"));
        let total = total.expect("a table has a sum").split_whitespace();
        assert!(
            total.into_iter().any(|word| word == sum.to_string()),
            "{sum}: {text}"
        );
    }
}

#[test]
fn logs_of_perf_mean_what_they_say() {
    let text = table(Need::Tracing, "perf", &["trace"]);
    let reading = read(&text);
    assert_eq!(reading.format, Some(Format::PerfLog), "{text}");
    let profile = reading.profile.unwrap_or_else(|| panic!("{text}"));
    for name in ["read", "write", "openat"] {
        // A call that is continued stands in two lines.
        let lines = text
            .lines()
            .filter(|line| line.contains(&format!(" {name}(")));
        let lines = lines.filter(|line| line.contains(" = "));
        let (lines, counted) = (lines.count() as u64, count(&profile, name));
        assert!(
            (lines..=lines + 1).contains(&counted),
            "{name}: {counted}, {lines} lines"
        );
    }
}

#[test]
fn dockers_profile_is_refused_as_counts() {
    let text = corpus::text("docker/docker-default-x86_64.json");
    let reading = read(&text);
    assert!(reading.profile.is_none());
    assert_eq!(reading.diagnostics[0].code.id, "TM0613");
}

#[test]
fn a_million_calls_are_bounded() {
    let rows = "read: 1\n".repeat(1_000_000);
    assert_eq!(
        count(&read(&rows).profile.expect("rows"), "read"),
        1_000_000
    );
    // Names that are cut at the limit of words, with an error and not half of them.
    let call = r#"{"arch": "x86_64", "call": 500, "count": 1}"#;
    let calls = vec![call; 300_000].join(",");
    let json = format!(r#"{{"schema": "tamis-profile/1", "calls": [{calls}]}}"#);
    let reading = read(&json);
    assert!(reading.profile.is_none() && reading.diagnostics.len() <= 100);
    let lines = "{\"evt.type\":\"read\"}\n".repeat(300_000);
    assert_eq!(
        count(&read(&lines).profile.expect("events"), "read"),
        300_000
    );
}

#[test]
fn summaries_of_perf_mean_what_they_say() {
    skip::unless_x86_64();
    let text = table(Need::Tracing, "perf", &["trace", "-s"]);
    let reading = read(&text);
    assert_eq!(reading.format, Some(Format::Perf), "{text}");
    let profile = reading.profile.unwrap_or_else(|| panic!("{text}"));
    // On a busy machine perf loses events, so the table is the reference and not the calls made.
    for name in ["read", "write"] {
        let words = text.lines().map(|line| line.split_whitespace());
        let mut row = words.map(Iterator::collect::<Vec<&str>>);
        let row = row.find(|row| row.first() == Some(&name));
        let shown = row.expect("dd reads and writes")[1].parse();
        assert_eq!(Ok(count(&profile, name)), shown, "{name}: {text}");
    }
}

#[test]
fn real_frequency_files_are_read() {
    let text = corpus::text("minijail/common_device.frequency");
    let reading = read(&text);
    assert_eq!(reading.format, Some(Format::Frequency));
    let profile = reading.profile.expect("a real file");
    assert!(profile.calls().count() > 30, "{:?}", reading.diagnostics);
}

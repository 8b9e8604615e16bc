//! The conformance suite: the same guests on every platform.
//!
//! Each pair of a platform and a case runs in its own process with a time limit, and leaks neither descriptors nor
//! children. Cases beyond a platform's capabilities are ignored, as are those of platforms that don't work here. At the end the
//! matrix is printed. `TAMIS_REPEATS=100` runs each case 100 times in a row.

mod cases;
mod evasion;
mod guests;
mod host;
mod limits;
mod newborn;
mod rush;
mod storms;

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use tamis_platform::{Platform, Unavailable};
use tamis_testkit::child;
use tamis_testkit::harness;
use tamis_testkit::patience;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Judge, Need};

use cases::{CASES, Case, Outcome};

/// The first argument of a process that runs a case.
const MARK: &str = "--play";
/// The first argument of a process that runs a case if its user's privileges suffice.
const PROBE: &str = "--play-if-it-works";
/// The first argument of a supervisor in a guest.
pub(crate) const NESTED: &str = "--play-nested";
/// The first argument of a process that will be killed.
const ORPHAN: &str = "--play-orphan";
/// The beginning of the line with which a process of a case says that the platform can't do it.
const SKIPPED: &str = "skipped: ";
/// The limit of one run of a case, in seconds; the slowest takes 2 s on an idle machine, and a million calls take a
/// minute.
const LIMIT_S: u32 = 60;
/// The limit of a run with all cases.
const FULL_LIMIT_S: u32 = 5 * LIMIT_S;

/// The ends of cases, by platform and case.
type Matrix = Arc<Mutex<BTreeMap<(usize, String), char>>>;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [MARK, platform, case] => return play(platform, case),
        [PROBE, platform, case] => return probe_and_play(platform, case),
        [NESTED, platform] => {
            cases::play_nested(by_name(platform));
            return ExitCode::SUCCESS;
        }
        [ORPHAN, platform, ref rest @ ..] => {
            cases::play_orphan(by_name(platform), rest);
            return ExitCode::FAILURE;
        }
        _ => {}
    }
    let matrix = Matrix::default();
    let mut trials = Vec::new();
    for (index, platform) in tamis_platform::all().iter().enumerate() {
        for case in cases() {
            trials.push(trial(index, *platform, case.name, &matrix));
        }
        trials.push(orphans(index, *platform, &matrix));
        trials.push(unprivileged(index, *platform, &matrix));
    }
    let code = harness::run(trials, Some(2));
    print_matrix(&matrix);
    code
}

/// Ends the test if guests can't be built, or a platform doesn't work here.
fn unless_works(platform: &dyn Platform) {
    const OF_THE_PRODUCT: [&str; 3] = ["notify", "ptrace-seccomp", "patched"];
    static GUESTS: LazyLock<Result<(), String>> = LazyLock::new(guests::build);
    skip::unless_live();
    if !OF_THE_PRODUCT.contains(&platform.name()) {
        skip::unless_asked(Judge::Platforms);
    }
    if let Err(reason) = &*GUESTS {
        skip::because(Need::Toolchains, reason);
    }
    static PROBES: Mutex<BTreeMap<&str, Result<(), Unavailable>>> = Mutex::new(BTreeMap::new());
    let probe = {
        let mut probes = PROBES.lock().expect("no panic");
        let probe = probes.entry(platform.name());
        probe.or_insert_with(|| platform.probe()).clone()
    };
    if let Err(unavailable) = probe {
        skip::because(Need::Platform, unavailable);
    }
}

fn cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain([&cases::GO])
}

fn by_name(name: &str) -> &'static dyn Platform {
    tamis_platform::by_name(name).expect("a platform")
}

/// The process of a case.
fn play(platform: &str, case: &str) -> ExitCode {
    let mut all = cases();
    let case = all.find(|one| one.name == case).expect("a case");
    let platform = by_name(platform);
    let repeats = env::var("TAMIS_REPEATS").map_or(1, |text| text.parse().expect("a number"));
    let limit_s = limit_s();
    for _ in 0..repeats {
        // SAFETY: takes no pointers. The signal ends this process, and with it the guest.
        unsafe { libc::alarm(limit_s) };
        if let Outcome::Skipped(reason) = case.play(platform) {
            println!("{SKIPPED}{reason}");
            break;
        }
    }
    ExitCode::SUCCESS
}

/// The limit of one run of a case on this machine.
fn limit_s() -> u32 {
    let limit_s = match seeds::is_full() {
        true => FULL_LIMIT_S,
        false => LIMIT_S,
    };
    let scaled = patience::scaled(Duration::from_secs(limit_s.into()));
    scaled.as_secs() as u32
}

fn trial(
    index: usize,
    platform: &'static dyn Platform,
    case: &'static str,
    matrix: &Matrix,
) -> Trial {
    let name = platform.name();
    let matrix = Arc::clone(matrix);
    harness::trial(format!("{name}: {case}"), move || {
        unless_works(platform);
        let mut command = Command::new(env::current_exe()?);
        command.args([MARK, name, case]).stdin(Stdio::null());
        let output = child::output(&mut command)?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let skipped = stdout.lines().find_map(|line| line.strip_prefix(SKIPPED));
        match (output.status.success(), skipped) {
            (true, None) => {
                note(&matrix, index, case, '+');
                Ok(())
            }
            (true, Some(reason)) => {
                note(&matrix, index, case, '-');
                skip::because(Need::Platform, reason)
            }
            (false, _) => {
                note(&matrix, index, case, '!');
                let stderr = String::from_utf8_lossy(&output.stderr);
                Err(format!("{}: {stderr}", output.status).into())
            }
        }
    })
}

/// The name of the case for a user without privileges.
const UNPRIVILEGED: &str = "unprivileged";

/// A platform with `is_unprivileged` works for a user without privileges; the probe of another may report the
/// requirement.
fn unprivileged(index: usize, platform: &'static dyn Platform, matrix: &Matrix) -> Trial {
    const NOBODY: u32 = 65534;
    const CASE_OF_USER: &str = "threads";
    let (name, caps) = (platform.name(), platform.caps());
    let matrix = Arc::clone(matrix);
    harness::trial(format!("{name}: {UNPRIVILEGED}"), move || {
        unless_works(platform);
        let play = || {
            let mut command = Command::new(env::current_exe()?);
            command.args([PROBE, name, CASE_OF_USER]);
            command.stdin(Stdio::null()).uid(NOBODY).gid(NOBODY);
            child::output(&mut command)
        };
        let output = match play() {
            Ok(output) => output,
            // A namespace of users may have no other user.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::InvalidInput
                ) =>
            {
                note(&matrix, index, UNPRIVILEGED, '-');
                skip::because(Need::Root, format!("another user can't run this: {error}"));
            }
            Err(error) => return Err(error.into()),
        };
        let stdout = String::from_utf8_lossy(&output.stdout);
        let is_told = stdout.contains("unavailable: ") && !caps.is_unprivileged;
        let cell = match (output.status.success(), stdout.contains("unavailable: ")) {
            (true, false) => '+',
            (true, true) if is_told => '-',
            _ => '!',
        };
        note(&matrix, index, UNPRIVILEGED, cell);
        match cell {
            '-' => skip::because(Need::Platform, "it needs privileges, and says so"),
            '!' => {
                let stderr = String::from_utf8_lossy(&output.stderr);
                Err(format!("{}: {stdout}{stderr}", output.status).into())
            }
            _ => Ok(()),
        }
    })
}

/// Runs a case if the platform works.
fn probe_and_play(platform: &str, case: &str) -> ExitCode {
    match by_name(platform).probe() {
        Ok(()) => play(platform, case),
        Err(unavailable) => {
            println!("unavailable: {unavailable}");
            ExitCode::SUCCESS
        }
    }
}

fn note(matrix: &Matrix, index: usize, case: &str, cell: char) {
    let mut matrix = matrix.lock().expect("no panic");
    matrix.insert((index, case.to_owned()), cell);
}

/// A guest whose supervisor is killed dies: its tasks that block in calls, and those that make no calls.
fn orphans(index: usize, platform: &'static dyn Platform, matrix: &Matrix) -> Trial {
    const CASE: &str = "supervisor killed";
    let (name, caps) = (platform.name(), platform.caps());
    let matrix = Arc::clone(matrix);
    harness::trial(format!("{name}: {CASE}"), move || {
        unless_works(platform);
        if !caps.has_forks || !caps.has_threads {
            note(&matrix, index, CASE, '-');
            skip::because(Need::Platform, "it has no forks or no threads");
        }
        note(&matrix, index, CASE, '!');
        for args in [&[][..], &["busy"]] {
            kill_supervisor(name, args)?;
        }
        note(&matrix, index, CASE, '+');
        Ok(())
    })
}

fn kill_supervisor(platform: &str, args: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let mut supervisor = Command::new(env::current_exe()?)
        .args([ORPHAN, platform])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let stdout = supervisor.stdout.take().ok_or("a pipe")?;
    BufReader::new(stdout).read_line(&mut line)?;
    supervisor.kill()?;
    supervisor.wait()?;
    let start = Instant::now();
    for pid in line.split_whitespace() {
        let path = format!("/proc/{pid}/stat");
        // A zombie is dead; its reaping is up to the machine.
        while std::fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z ")) {
            if start.elapsed() > Duration::from_secs(limit_s().into()) {
                return Err(format!("process {pid} of {platform} lives on").into());
            }
            thread::yield_now();
        }
    }
    match line.split_whitespace().count() {
        2 => Ok(()),
        _ => Err(format!("the guest said `{line}`").into()),
    }
}

/// Prints the outcome of each case on each platform: passed `+`, skipped `-`, failed `!`.
fn print_matrix(matrix: &Matrix) {
    let matrix = matrix.lock().expect("no panic");
    if matrix.is_empty() {
        return;
    }
    let platforms = tamis_platform::all();
    let mut rows: Vec<&str> = cases().map(|case| case.name).collect();
    rows.extend(["supervisor killed", UNPRIVILEGED]);
    println!("passed +, can't -, failed !");
    for (index, platform) in platforms.iter().enumerate() {
        println!("{}{}", "| ".repeat(index), platform.name());
    }
    for row in rows {
        let cells = (0..platforms.len()).map(|index| {
            let cell = matrix.get(&(index, row.to_owned()));
            format!("{} ", cell.copied().unwrap_or(' '))
        });
        println!("{}  {row}", cells.collect::<String>());
    }
}

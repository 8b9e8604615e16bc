//! Two hundred workloads: recorded as `strace` counts them, and run again under what was learned of them.
//!
//! The table `workloads.tsv` has them. Each runs once under `strace` and the recorder, once recorded alone, and again under the
//! policy that is learned from that within Docker's profile, with the same output. A workload to which Docker's profile
//! denies something is also learned without a base.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tamis_abi::{Arch, syscall};
use tamis_bpf::Program;
use tamis_compiler::{CompileOptions, compile};
use tamis_kernel::spawn::Spawn;
use tamis_kernel::{Ended, Flags};
use tamis_learn::{Learned, Options, Run, learn};
use tamis_profile::Profile;
use tamis_recorder::ebpf::{self, Recorder, Start};
use tamis_rules::Ruleset;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::{seeds, toolchains};

use super::against_strace::difference;
use super::support::recorder;
use crate::learn::docker;

const TABLE: &str = include_str!("workloads.tsv");

/// The compiled programs of the table, with their sources.
const PROGRAMS: [(&str, &str); 12] = [
    ("chain", include_str!("programs/chain.c")),
    ("denying", include_str!("programs/denying.c")),
    ("forks", include_str!("programs/forks.c")),
    ("i386", include_str!("programs/i386.c")),
    ("interrupted", include_str!("programs/interrupted.c")),
    ("orphans", include_str!("programs/orphans.c")),
    ("rings", include_str!("programs/rings.c")),
    ("threadexec", include_str!("programs/threadexec.c")),
    ("threads", include_str!("programs/threads.c")),
    ("unknown", include_str!("programs/unknown.c")),
    ("vforks", include_str!("programs/vforks.c")),
    ("wx", include_str!("programs/wx.c")),
];

/// How often a workload runs under what was learned of it.
const REPEATS: usize = 3;

/// A row of the table.
struct Workload {
    name: &'static str,
    /// Whether it isn't run under `strace`.
    is_alone: bool,
    /// The programs that it needs.
    needs: Vec<&'static str>,
    /// What the shell runs.
    command: &'static str,
}

fn workloads() -> Vec<Workload> {
    let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
    let workloads = rows.map(|row| {
        let columns: Vec<&str> = row.split('\t').collect();
        let [name, needs, command] = columns[..] else {
            panic!("{row}");
        };
        let words = needs.split(' ');
        Workload {
            name: name.trim_end_matches('!'),
            is_alone: name.ends_with('!'),
            needs: words.filter(|word| *word != "-").collect(),
            command,
        }
    });
    workloads.collect()
}

#[test]
fn the_table_has_two_hundred_workloads_with_different_names() {
    let mut names: Vec<&str> = workloads().iter().map(|workload| workload.name).collect();
    assert_eq!(names.len(), 200);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 200);
}

#[test]
fn workloads_are_counted_as_strace_counts_and_run_under_what_was_learned() {
    skip::unless_live();
    drop(recorder(ebpf::Options::default()));
    if !is_installed("strace") {
        skip::because(Need::Peers, "no strace");
    }
    let base = docker();
    let only = std::env::var("TAMIS_WORKLOADS").ok();
    let mut place = Place::new();
    let mut failures = Vec::new();
    for (number, workload) in workloads().iter().enumerate() {
        let is_chosen = match &only {
            Some(names) => names.split(',').any(|name| name == workload.name),
            None => seeds::is_full() || number % 8 == 3,
        };
        if !is_chosen {
            continue;
        }
        if !workload.needs.iter().all(|program| is_installed(program)) || !place.provides(workload)
        {
            println!("{}\tneeds {}", workload.name, workload.needs.join(" "));
            continue;
        }
        let counts = match !workload.is_alone {
            true => difference(&place.spawn(workload, &[]), &place.folder.join("table")),
            false => None,
        };
        let run = learned_and_run(&place, workload, &base);
        let told = |result: &Option<String>| result.clone().unwrap_or_else(|| "yes".to_owned());
        let (run, kind) = match run {
            Ok(kind) => (None, kind),
            Err(error) => (Some(error), ""),
        };
        println!(
            "{}\t{}\t{}\t{kind}",
            workload.name,
            told(&counts),
            told(&run)
        );
        if counts.is_some() || run.is_some() {
            failures.push(format!("{}: {counts:?} {run:?}", workload.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Whether a shell would find the program.
fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&paths);
    Path::new(program).is_absolute() && Path::new(program).exists()
        || folders.any(|folder| folder.join(program).is_file())
}

/// Where workloads run.
struct Place {
    folder: PathBuf,
    /// The programs of C, of Go and of Java that were compiled, or that can't be.
    c: Option<Option<PathBuf>>,
    go: Option<Option<PathBuf>>,
    java: Option<Option<PathBuf>>,
}

impl Place {
    fn new() -> Place {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("workloads");
        fs::create_dir_all(&folder).expect("a folder");
        Place {
            folder,
            c: None,
            go: None,
            java: None,
        }
    }

    /// Compiles the programs of a workload. True if they are there.
    fn provides(&mut self, workload: &Workload) -> bool {
        let folder = self.folder.clone();
        let has = |built: &Option<Option<PathBuf>>| matches!(built, Some(Some(_)));
        if workload.command.contains("{bin}") {
            self.c.get_or_insert_with(|| c_programs(&folder));
            return has(&self.c);
        }
        if workload.command.contains("{go}") {
            self.go
                .get_or_insert_with(|| built(&folder, "go", "hello.go", &["build", "-o", "hello"]));
            return has(&self.go);
        }
        if workload.command.contains("{java}") {
            self.java
                .get_or_insert_with(|| built(&folder, "javac", "Hello.java", &[]));
            return has(&self.java);
        }
        true
    }

    /// The workload in an empty directory, with the output in a file beside it.
    fn spawn<'p>(&self, workload: &Workload, filters: &[&'p Program]) -> Spawn<'p> {
        let work = self.folder.join("work");
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work).expect("a folder");
        let built = |built: &Option<Option<PathBuf>>| {
            let path = built.clone().flatten().unwrap_or_default();
            path.display().to_string()
        };
        let command = workload
            .command
            .replace("{bin}", &built(&self.c))
            .replace("{go}", &built(&self.go))
            .replace("{java}", &built(&self.java));
        let script = format!(
            "exec > {} 2>&1 < /dev/null; cd {}; {command}",
            self.output().display(),
            work.display()
        );
        // A workload that hangs under a filter is ended.
        let mut spawn = Spawn::new("timeout");
        let args = ["-k", "1", "60", "sh", "-c", &script];
        spawn.args = args.map(Into::into).to_vec();
        spawn.no_new_privs = !filters.is_empty();
        spawn.filters = filters
            .iter()
            .map(|filter| (*filter, Flags::default()))
            .collect();
        spawn
    }

    fn output(&self) -> PathBuf {
        self.folder.join("output")
    }

    /// What a workload prints, and how it ends.
    fn run(
        &self,
        workload: &Workload,
        filters: &[&Program],
        recorder: Option<&Recorder>,
    ) -> (String, Ended) {
        let _ = fs::remove_file(self.output());
        let held = self.spawn(workload, filters).start().expect("a child");
        if let Some(recorder) = recorder {
            assert!(recorder.record(held.pid(), Start::AtExec));
        }
        let ended = held.release().wait().expect("it ends");
        let output = fs::read(self.output()).expect("output");
        (String::from_utf8_lossy(&output).into_owned(), ended)
    }
}

fn c_programs(folder: &Path) -> Option<PathBuf> {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).ok()?;
    for (name, source) in PROGRAMS {
        let at = toolchains::C.folder(folder, name);
        let program = toolchains::C.build(&at, source);
        fs::copy(program, bin.join(name)).ok()?;
    }
    Some(bin)
}

/// Compiles a source of the folder `programs` with arguments before its name.
fn built(folder: &Path, compiler: &str, source: &str, args: &[&str]) -> Option<PathBuf> {
    let at = folder.join(compiler);
    fs::create_dir_all(&at).ok()?;
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recorder/programs");
    fs::copy(programs.join(source), at.join(source)).ok()?;
    let mut command = Command::new(compiler);
    command.args(args).arg(source).current_dir(&at);
    let output = command.output().ok()?;
    assert!(output.status.success(), "{output:?}");
    Some(at)
}

/// Learns a policy of a workload within the base, or without if the base denies what it does, and runs it under that.
/// Returns which it was, or what went wrong.
fn learned_and_run(
    place: &Place,
    workload: &Workload,
    base: &Ruleset,
) -> Result<&'static str, String> {
    let options = ebpf::Options {
        values: true,
        ..Default::default()
    };
    let recorder = Recorder::new(options).expect("there was one before");
    let before = place.run(workload, &[], Some(&recorder));
    let recording = recorder.recording().expect("counts");
    if !recording.lost.is_nothing() {
        return Err(format!("lost: {:?}", recording.lost));
    }
    let within = learned(&recording.profile, Some(base))?;
    let denied = within
        .refused
        .iter()
        .any(|refused| refused.is_certain && !refused.has_fallback);
    let (learned, kind) = match denied {
        true => (learned(&recording.profile, None)?, "without a base"),
        false => (within, "within Docker's profile"),
    };
    let compiled = compile(&learned.ruleset, &CompileOptions::default());
    let compiled = compiled.map_err(|error| error.to_string())?;
    let filter = compiled.program().expect("no variables");
    for _ in 0..if seeds::is_full() { REPEATS } else { 1 } {
        let recorder = Recorder::new(options).expect("there was one before");
        let after = place.run(workload, &[filter], Some(&recorder));
        if after != before {
            let denied = recorder.recording().expect("counts").profile;
            return Err(format!(
                "{before:?}, under the filter {after:?}; denied: {}; {kind}\n{}",
                denied_calls(&denied),
                learned.policy
            ));
        }
    }
    Ok(kind)
}

fn learned(profile: &Profile, base: Option<&Ruleset>) -> Result<Learned, String> {
    let run = Run {
        name: "workload",
        profile,
    };
    let options = Options {
        base: base.map(|base| ("docker", base)),
        ..Options::default()
    };
    learn(&[run], &options).map_err(|error| error.to_string())
}

/// The calls that a filter denied.
fn denied_calls(profile: &Profile) -> String {
    let denied = profile.calls().filter(|(_, _, call)| call.denied > 0);
    let names: Vec<String> = denied
        .map(|(arch, nr, call)| {
            let name = syscall::name(arch, nr).unwrap_or("?");
            let arch = if arch == Arch::X86_64 {
                ""
            } else {
                arch.name()
            };
            format!("{arch} {name} {:?} {:?}", call.errors, call.values)
        })
        .collect();
    names.join(", ")
}

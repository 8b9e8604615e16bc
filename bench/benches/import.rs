//! The time from the text of a policy to a proved program, for every policy of the corpus in every language: reading
//! with its includes, compiling, and the proof.
//!
//! Prints the shortest of several rounds for each file, in milliseconds.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tamis_abi::Arch;
use tamis_compiler::{CompileOptions, compile};
use tamis_diag::Sources;
use tamis_policy::firecracker;
use tamis_policy::front_end::{self, ParseOptions};
use tamis_policy::loader::Loaded;
use tamis_testkit::{corpus, harness};

const ROUNDS: u32 = 20;

/// Reads and compiles a policy; returns the times of both, and the length of the program. `None` if its language is
/// not that of its name.
fn round(name: &str, text: &str, thread: Option<&str>) -> Option<[Duration; 2]> {
    let mut sources = Sources::new();
    let root = sources.add(name, text);
    let front_end = front_end::of_file(name, text)?;
    let options = ParseOptions {
        asked_arches: vec![Arch::X86_64],
        firecracker: firecracker::Settings {
            thread: thread.map(str::to_owned),
        },
        ..ParseOptions::new(Arch::X86_64)
    };
    // Includes of the corpus are absolute; the files are in one directory.
    let mut load = |path: &str, _: &str| {
        let base = path.rsplit('/').next().unwrap_or(path);
        let name = format!("minijail/{base}");
        let text = corpus::text(&name);
        Ok(Loaded { name, text })
    };
    let start = Instant::now();
    let read = (front_end.parse)(&mut sources, root, &mut load, &options);
    let ruleset = read.parsed.ruleset?;
    let reading = start.elapsed();
    let start = Instant::now();
    compile(&ruleset, &CompileOptions::default()).ok()?;
    Some([reading, start.elapsed()])
}

fn main() -> ExitCode {
    harness::measure(measure_all)
}

fn measure_all() {
    let mut cases: Vec<(String, Option<&str>)> = Vec::new();
    let folders = [
        ("docker", ".json"),
        ("minijail", ".policy"),
        ("kafel", ".policy"),
    ];
    for (folder, suffix) in folders {
        let files = corpus::files(folder, suffix);
        cases.extend(files.into_iter().map(|file| (file, None)));
    }
    let firecracker = "firecracker/firecracker-vmm-x86_64.json";
    for thread in ["vmm", "api", "vcpu"] {
        cases.push((firecracker.to_owned(), Some(thread)));
    }
    let mut largest = Duration::ZERO;
    for (name, thread) in cases {
        let text = corpus::text(&name);
        let rounds = (0..ROUNDS).filter_map(|_| round(&name, &text, thread));
        let Some([reading, compiling]) = rounds.min_by_key(|[a, b]| *a + *b) else {
            println!("{name}: no policy");
            continue;
        };
        largest = largest.max(reading + compiling);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "{name} {}: {:.3} ms = {:.3} reading + {:.3} compiling and proving",
            thread.unwrap_or_default(),
            ms(reading + compiling),
            ms(reading),
            ms(compiling),
        );
    }
    println!("largest: {:.3} ms", largest.as_secs_f64() * 1e3);
}

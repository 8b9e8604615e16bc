//! What others wrote takes at most twenty times its size in memory, and its time is in proportion, whichever reader
//! gets it. The readers are listed, and the list is compared with the source.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tamis_testkit::generate::hostile::readers::{self, By, SOURCES};
use tamis_testkit::{limited, seeds};

#[test]
fn readers_take_memory_and_time_in_proportion_to_their_files() {
    let mut all = readers::all(4_000_000);
    assert!(all.len() >= 90, "{}", all.len());
    // The others are read by the laboratory's command, in its own test.
    all.retain(|reading| !reading.is_of_lab());
    let step = seeds::step(all.len());
    let mut failures = Vec::new();
    for (index, reading) in all.iter().enumerate().step_by(step) {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("reading-{index}"));
        failures.extend(limited::failure(Path::new(crate::TAMIS), &folder, reading));
        // A folder that stays is written anew by the next run.
        let _ = fs::remove_dir_all(&folder);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Readers of files by the kernel or tamis itself, or of the program to run.
const OF_SYSTEM: [&str; 27] = [
    "crates/check/src/main.rs",
    "crates/cli/src/trust.rs",
    "crates/kernel/src/affinity.rs",
    "crates/kernel/src/bpf/map.rs",
    "crates/kernel/src/bpf/mod.rs",
    "crates/kernel/src/measure/memory.rs",
    "crates/kernel/src/probe.rs",
    "crates/kernel/src/status.rs",
    "crates/kernel/src/tracee/last_call.rs",
    "crates/platform/src/attached/stopping.rs",
    "crates/platform/src/in_process/image.rs",
    "crates/platform/src/kvm/residence.rs",
    "crates/platform/src/patched/area.rs",
    "crates/platform/src/patched/channels.rs",
    "crates/recorder/src/ebpf/mod.rs",
    "crates/deploy/src/audit.rs",
    "crates/deploy/src/harden/release.rs",
    "crates/deploy/src/owner.rs",
    "crates/deploy/src/harden/mod.rs",
    "crates/deploy/src/harden/process.rs",
    "crates/deploy/src/harden/undo.rs",
    "crates/tamis/src/command/libseccomp.rs",
    "lab/tamis-lab/src/platforms/bench.rs",
    "crates/tamis/src/command/precompile/folder.rs",
    "crates/tamis/src/command/record/group.rs",
    "crates/tamis/src/command/record/origin.rs",
    "crates/tamis/src/command/run/lines.rs",
];

#[test]
fn every_reader_of_the_source_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = reading_files(&root);
    let listed: BTreeSet<String> = SOURCES
        .iter()
        .map(|(file, _)| *file)
        .chain(OF_SYSTEM)
        .map(str::to_owned)
        .collect();
    let missing: Vec<&String> = found.difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "these files read others: give them inputs in testkit's `generate::hostile::readers`, or say here whose they are: \
         {missing:#?}"
    );
    let stale: Vec<&String> = listed.difference(&found).collect();
    assert!(stale.is_empty(), "these read nothing: {stale:#?}");
    let with_inputs: BTreeSet<&str> = readers::all(200_000).iter().map(|one| one.source).collect();
    let promised = SOURCES.iter().filter(|(_, by)| *by == By::Inputs);
    let promised: BTreeSet<&str> = promised.map(|(file, _)| *file).collect();
    assert_eq!(with_inputs, promised);
}

/// The files of the product's source that read files, without tests.
fn reading_files(root: &Path) -> BTreeSet<String> {
    const CALLS: [&str; 6] = [
        "fs::read(",
        "read_to_string(",
        "read_to_end(",
        "files::read(",
        "read_file(",
        "Mmap",
    ];
    let mut found = BTreeSet::new();
    let mut folders = vec![root.join("crates"), root.join("lab")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let inside = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let is_product = !inside.contains("/tests") && !inside.starts_with("crates/testkit");
            if path.is_dir() && is_product {
                folders.push(path);
            } else if inside.ends_with(".rs") && inside.contains("/src/") && is_product {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let mut lines = code.lines().map(str::trim_start);
                if lines.any(|line| {
                    !line.starts_with("//") && CALLS.iter().any(|call| line.contains(call))
                }) {
                    found.insert(inside);
                }
            }
        }
    }
    found
}

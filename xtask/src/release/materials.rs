//! The bill of materials: the crates in the programs, as CycloneDX 1.5.
//!
//! `cargo tree` lists the crates that are linked with these features on this target, without those of tests, build
//! scripts and macros; `cargo metadata` has their licences and edges, `Cargo.lock` their checksums.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{VERSION, cargo, shell};
use crate::arch::Arch;
use crate::tidy::root;

/// A crate: its name and version.
type Crate = (String, String);

/// Writes it.
pub(super) fn write(path: &Path, epoch: &str, arch: Arch) -> Result<()> {
    let linked = linked(arch)?;
    let sums = checksums(&fs::read_to_string(root().join("Cargo.lock"))?);
    let time = shell(&format!("date -u +%Y-%m-%dT%H:%M:%SZ -d @{epoch}"), &root())?;
    let components: Vec<Value> = linked
        .iter()
        .map(|(of, licence)| component(of, licence, sums.get(of)))
        .collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.trim(),
            "component": {"type": "application", "bom-ref": "release", "name": "tamis", "version": VERSION},
        },
        "components": components,
        "dependencies": edges(&linked, arch)?,
    });
    let text = serde_json::to_string_pretty(&document)?;
    fs::write(path, text + "\n").with_context(|| path.display().to_string())
}

/// The crates in the programs, with their licences.
fn linked(arch: Arch) -> Result<BTreeMap<Crate, String>> {
    let output = cargo()
        .args([
            "tree",
            "--locked",
            "--prefix",
            "none",
            "--edges",
            "normal,no-proc-macro",
        ])
        .args(["--target", arch.static_target(), "--format", "{p}\t{l}"])
        .args(["-p", "tamis", "-p", "tamis-exec", "-p", "tamis-check"])
        .args(["-p", "tamis-libseccomp"])
        .current_dir(root())
        .output()
        .context("cargo tree")?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo tree: {problem}");
    let text = String::from_utf8(output.stdout)?;
    let row = |line: &str| {
        let (of, licence) = line.split_once('\t')?;
        let (name, rest) = of.split_once(" v")?;
        let version = rest.split(' ').next()?;
        // Repeated crates are marked.
        let licence = licence.trim_end_matches(" (*)").replace('/', " OR ");
        Some(((name.to_owned(), version.to_owned()), licence))
    };
    Ok(text.lines().filter_map(row).collect())
}

fn component((name, version): &Crate, licence: &str, sum: Option<&String>) -> Value {
    let hashes = sum.map(|sum| json!([{"alg": "SHA-256", "content": sum}]));
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(name, version),
        "name": name,
        "version": version,
        "purl": reference(name, version),
        "licenses": [{"expression": licence}],
    });
    if let Some(hashes) = hashes {
        component["hashes"] = hashes;
    }
    component
}

fn reference(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}

/// The SHA-256 of each crate of a registry.
fn checksums(lock: &str) -> BTreeMap<Crate, String> {
    let value = |part: &str, key: &str| {
        let line = part.lines().find_map(|line| line.strip_prefix(key));
        line.map(|text| text.trim_matches(['"', ' ', '=']).to_owned())
    };
    let row = |part: &str| {
        let of = (value(part, "name = ")?, value(part, "version = ")?);
        Some((of, value(part, "checksum = ")?))
    };
    lock.split("[[package]]").filter_map(row).collect()
}

/// Which crates each crate uses.
fn edges(linked: &BTreeMap<Crate, String>, arch: Arch) -> Result<Value> {
    let output = cargo()
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
            arch.static_target(),
        ])
        .current_dir(root())
        .output()
        .context("cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names: BTreeMap<String, Crate> = list(&metadata["packages"])
        .iter()
        .map(|package| {
            (
                text(&package["id"]),
                (text(&package["name"]), text(&package["version"])),
            )
        })
        .filter(|(_, of)| linked.contains_key(of))
        .collect();
    let mut rows = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let Some((name, version)) = names.get(&text(&node["id"])) else {
            continue;
        };
        let used = list(&node["deps"]);
        let used = used.iter().filter(|used| {
            let kinds = list(&used["dep_kinds"]);
            kinds.iter().any(|kind| kind["kind"].is_null())
        });
        let mut used: Vec<String> = used
            .filter_map(|used| names.get(&text(&used["pkg"])))
            .map(|(name, version)| reference(name, version))
            .collect();
        used.sort();
        rows.insert(reference(name, version), used);
    }
    let rows = rows
        .into_iter()
        .map(|(of, used)| json!({"ref": of, "dependsOn": used}));
    Ok(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0\"\nchecksum = \"ff\"\n\n\
                    [[package]]\nname = \"own\"\nversion = \"0.1\"\n";
        let sums = checksums(lock);
        let one = ("a".to_owned(), "1.0".to_owned());
        assert_eq!(sums, BTreeMap::from([(one, "ff".to_owned())]));
    }

    #[test]
    fn every_crate_of_a_registry_has_a_checksum_and_no_crate_of_tests_is_linked() {
        let linked = linked(Arch::X86_64).unwrap();
        let sums = checksums(&fs::read_to_string(root().join("Cargo.lock")).unwrap());
        for of in linked.keys() {
            assert_eq!(of.0.starts_with("tamis"), !sums.contains_key(of), "{of:?}");
            assert_ne!(of.0, "tamis-testkit");
        }
        assert!(linked.keys().any(|(name, _)| name == "clap_builder"));
    }
}

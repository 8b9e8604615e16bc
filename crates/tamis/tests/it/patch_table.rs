//! A filter with variables can be bound by the table of patches in its document alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tamis_embed::digest::sha256;

/// Both widths, a set, a range.
const POLICY: &str = "\
let log_fd: u32 in 3..1023
let address: u64
let peers: u64[3]
default allow
bad-arch kill-process
errno(EPERM) write(fd != log_fd), mprotect(start == address || start in peers), munmap(addr < address)
";

/// Values with different halves, and their names for `--bind`.
const BINDINGS: [(&str, &[u64]); 3] = [
    ("log_fd", &[700]),
    ("address", &[0x0123_4567_89ab_cdef]),
    ("peers", &[0x1_0000_0002, 0x3_0000_0004, 5]),
];

fn policy() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("patch_table.tamis");
    fs::write(&path, POLICY).unwrap();
    path
}

fn compile(arch: &str, more: &[String]) -> Vec<u8> {
    let output = Command::new(crate::TAMIS)
        .arg("compile")
        .arg(policy())
        .args(["--arch", arch])
        .args(more)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    output.stdout
}

/// The raw program of a document's instructions.
fn raw(document: &Value) -> Vec<u8> {
    let is_big = document["byte_order"] == "big";
    let mut bytes = Vec::new();
    for insn in document["insns"].as_array().unwrap() {
        let number = |key: &str| insn[key].as_u64().unwrap();
        let (code, k) = (number("code") as u16, number("k") as u32);
        bytes.extend(if is_big {
            code.to_be_bytes()
        } else {
            code.to_le_bytes()
        });
        bytes.extend([number("jt") as u8, number("jf") as u8]);
        bytes.extend(if is_big {
            k.to_be_bytes()
        } else {
            k.to_le_bytes()
        });
    }
    bytes
}

/// Stores the halves of values as the table says, as a program in any language would.
fn patch(document: &mut Value) {
    let patches = document["patches"].as_array().unwrap().clone();
    for patch in patches {
        let named = BINDINGS.iter().find(|(name, _)| patch["variable"] == *name);
        let values = named.expect("a variable of the policy").1;
        let value = values[patch["element"].as_u64().unwrap_or(0) as usize];
        let half = match patch["half"].as_str().unwrap() {
            "low" => value & 0xffff_ffff,
            _ => value >> 32,
        };
        let place = patch["insn"].as_u64().unwrap() as usize;
        document["insns"][place]["k"] = half.into();
    }
}

#[test]
fn what_the_table_patches_is_what_bind_compiles() {
    let emit = |form: &str| ["--emit".to_owned(), form.to_owned()];
    for arch in ["x86_64", "s390x"] {
        let text = compile(arch, &emit("json"));
        let mut document: Value = serde_json::from_slice(&text).unwrap();
        let digest = format!("sha256:{}", sha256(&raw(&document)));
        assert_eq!(document["digest"], *digest, "{arch}");
        let declared: Vec<&Value> = document["variables"].as_array().unwrap().iter().collect();
        assert_eq!(declared.len(), BINDINGS.len());
        assert_eq!(declared[2]["count"], 3);
        assert!(document["patches"].as_array().unwrap().len() > 6, "{arch}");
        patch(&mut document);
        let patched = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("patched-{arch}.bpf"));
        fs::write(&patched, raw(&document)).unwrap();
        // The compiler makes another program for constants, so that equivalence has to be proved.
        let mut prove = Command::new(crate::TAMIS);
        prove
            .arg("prove")
            .arg(policy())
            .arg(&patched)
            .args(["--arch", arch]);
        for (name, values) in BINDINGS {
            let values: Vec<String> = values.iter().map(u64::to_string).collect();
            prove
                .arg("--bind")
                .arg(format!("{name}={}", values.join(",")));
        }
        let output = prove.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arch}: {printed}");
        assert!(printed.starts_with("yes"), "{arch}: {printed}");
    }
}

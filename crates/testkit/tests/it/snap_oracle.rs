//! Profiles of snaps against the programs that snapd's compiler makes of them.
//!
//! Random profiles, a twentieth with mistakes. A call has at most one line with conditions: libseccomp before 2.6 mixes
//! the lines of a call that compare one argument by order.

use std::fs;
use std::path::Path;
use std::process::Command;

use tamis_abi::{Arch, Endian};
use tamis_bpf::Program;
use tamis_bpf::program::insns_from_bytes;
use tamis_diag::Sources;
use tamis_policy::front_end::ParseOptions;
use tamis_policy::loader::NoIncludes;
use tamis_policy::{Parsed, snap};
use tamis_testkit::oracle::{Class, Classes};
use tamis_testkit::rng::Rng;
use tamis_testkit::scratch::Scratch;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::{child, seeds};

/// Random profiles; only `.ci/run full` tries all.
const RANDOM: u64 = 500;
/// The time limit of a compilation: libseccomp 2.5 doesn't end for some rules.
const LIMIT_S: &str = "20";

const CALLS: [&str; 18] = [
    "read",
    "write",
    "socket",
    "socketpair",
    "bind",
    "setpriority",
    "ioctl",
    "clone",
    "mknod",
    "prctl",
    "quotactl",
    "shmget",
    "getuid32",
    "_llseek",
    "mmap2",
    "personality",
    "ptrace",
    "get_tls",
];
/// Calls whose arguments may be negative.
const SIGNED: [&str; 4] = ["chown", "fchownat", "setuid", "copy_file_range"];
const VALUES: [&str; 12] = [
    "AF_UNIX",
    "PF_INET",
    "AF_NETLINK",
    "PRIO_PROCESS",
    "CLONE_NEWUSER",
    "TIOCSTI",
    "S_IFIFO",
    "PR_SET_NAME",
    "0",
    "1",
    "5",
    "4294967295",
];
const WRONG: [&str; 6] = ["AF_NOPE", "4294967296", "0x10", "-3", "x", "<"];

fn line(rng: &mut Rng, call: &str, is_signed: bool) -> String {
    let mut words = vec![call.to_owned()];
    for _ in 0..rng.range(0..=3) {
        words.push(match rng.range(0..=39) {
            0 => (*rng.choose(&WRONG)).to_owned(),
            1..=12 => "-".to_owned(),
            13..=15 if is_signed => (*rng.choose(&["-1", "u:root", "g:root"])).to_owned(),
            _ => {
                let operator = *rng.choose(&["", "", "!", "<", "<=", ">", ">=", "|"]);
                let operator = if is_signed { "" } else { operator };
                format!("{operator}{}", rng.choose(&VALUES))
            }
        });
    }
    words.join(" ")
}

fn profile(rng: &mut Rng) -> String {
    let mut text = String::from("# A profile.\n");
    for call in CALLS.iter().chain(&SIGNED) {
        if rng.chance(1, 3) {
            text += &line(rng, call, SIGNED.contains(call));
            text.push('\n');
        }
        if rng.chance(1, 10) {
            text += &format!("{call}\n");
        }
    }
    text + *rng.choose(&["", "", "", "no_such_call - 1\n", "@complain\n"])
}

/// The compiler's program; `None` if it refuses the profile.
fn compiled(folder: &Path, text: &str) -> Option<Program> {
    let (source, output) = (folder.join("a.src"), folder.join("a.bpf"));
    fs::write(&source, text).expect("the folder is ours");
    let _ = fs::remove_file(&output);
    let mut command = Command::new("timeout");
    command.args([LIMIT_S, "snap-seccomp", "compile"]);
    let ended = child::output(command.arg(&source).arg(&output)).expect("it can be run");
    let bytes = ended.status.success().then(|| fs::read(&output).ok())??;
    let insns = insns_from_bytes(&bytes, Endian::Little)?;
    Program::new(insns, Endian::Little).ok()
}

fn read(text: &str) -> Parsed {
    let mut sources = Sources::new();
    let root = sources.add("a.src", text);
    let options = ParseOptions::new(Arch::X86_64);
    (snap::FRONT_END.parse)(&mut sources, root, &mut NoIncludes, &options).parsed
}

#[test]
fn random_profiles_are_what_snapd_makes_of_them() {
    skip::unless_x86_64();
    skip::unless_runs(Need::Snapd, "snap-seccomp", &["version-info"]);
    let folder = Scratch::new("snap").expect("a folder");
    let mut classes = Classes::default();
    for seed in seeds::selected(0..RANDOM) {
        let text = profile(&mut Rng::new(seed));
        let theirs = compiled(folder.path(), &text);
        let ours = read(&text);
        let class = Class::from_results(ours.ruleset.as_ref(), theirs.as_ref(), || None);
        classes.add(class, &text);
    }
    classes.check();
    classes.check_row("snap", "snapd 2.57.6", 0);
}

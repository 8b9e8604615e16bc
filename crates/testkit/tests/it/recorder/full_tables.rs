//! More values than a recorder has room for: what is known isn't taken for all.

use std::path::{Path, PathBuf};
use std::process::Command;

use tamis_abi::Arch;
use tamis_platform::{Guest, Options};
use tamis_recorder::Recording;
use tamis_recorder::caught::Counting;
use tamis_recorder::ebpf;
use tamis_testkit::toolchains;

use super::backends::platform;
use super::support::{call, recorded, recorder};

/// More than the pairs of an argument and its value that are told apart.
const COMMANDS: u64 = 40_000;
const ROOM: usize = 1 << 15;

const PROGRAM: &str = r"
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    for (long command = 0; command < 40000; command++) syscall(SYS_ioctl, -1L, 0x100000L + command, 0L);
    return 0;
}
";

fn check(name: &str, recording: &Recording) {
    let ioctl = call(recording, Arch::X86_64, "ioctl");
    assert!(ioctl.count >= COMMANDS, "{name}: {}", ioctl.count);
    let known: u64 = ioctl.values[&1].values().sum();
    let lost = ioctl.lost_values[&1];
    assert_eq!(known + lost, ioctl.count, "{name}");
    assert!(ioctl.values[&1].len() <= ROOM, "{name}");
    assert!(recording.lost.counts >= lost, "{name}");
}

fn program(name: &str) -> PathBuf {
    let folder = toolchains::C.folder(Path::new(env!("CARGO_TARGET_TMPDIR")), name);
    let program = toolchains::C.build(&folder, PROGRAM);
    assert!(Command::new(&program).status().expect("it runs").success());
    program
}

#[test]
fn programs_in_the_kernel_store_values_without_room_as_lost() {
    let options = ebpf::Options {
        values: true,
        ..ebpf::Options::default()
    };
    let recorder = recorder(options);
    let program = program("full-tables-ebpf");
    check("ebpf", &recorded(&recorder, &program, &[]).0);
}

#[test]
fn notify_stores_values_without_room_as_lost() {
    let notify = platform("notify");
    let counting = Counting::new(true);
    let filter = Counting::filter();
    let guest = Guest {
        program: program("full-tables-notify").into_os_string(),
        args: Vec::new(),
        filter: &filter,
        has_results: false,
    };
    notify
        .run(&guest, &counting, &Options::default())
        .expect("it runs");
    check("notify", &counting.recording());
}

//! What the tests share: a recorder where one is possible, and commands that are recorded to their end.

use std::path::Path;

use tamis_abi::{Arch, syscall};
use tamis_bpf::Program;
use tamis_kernel::spawn::Spawn;
use tamis_kernel::{Ended, Flags};
use tamis_profile::Call;
use tamis_recorder::Recording;
use tamis_recorder::ebpf::{Options, Recorder, Start, Unavailable};
use tamis_testkit::skip::{self, Need};

/// A recorder; the test ends where there can't be one.
pub(crate) fn recorder(options: Options) -> Recorder {
    match Recorder::new(options) {
        Ok(recorder) => recorder,
        Err(error @ (Unavailable::Program { .. } | Unavailable::Bug(_))) => panic!("{error}"),
        Err(error) => skip::because(Need::Tracepoints, error),
    }
}

/// What a program does, recorded from its first instruction to its end, and how it ended.
pub(crate) fn recorded(
    recorder: &Recorder,
    program: &Path,
    filters: &[&Program],
) -> (Recording, Ended) {
    let mut spawn = Spawn::new(program);
    spawn.filters = filters
        .iter()
        .map(|filter| (*filter, Flags::default()))
        .collect();
    let held = spawn.start().expect("a child");
    assert!(recorder.record(held.pid(), Start::AtExec));
    let mut child = held.release();
    let ended = child.wait().expect("it ends");
    assert_eq!(child.error(), None);
    (recorder.recording().expect("counts"), ended)
}

/// The counts of a call by its name.
pub(crate) fn call<'r>(recording: &'r Recording, arch: Arch, name: &str) -> &'r Call {
    let nr = syscall::number(arch, name).expect("a call");
    let call = recording.profile.call(arch, nr);
    call.unwrap_or_else(|| panic!("{arch} {name} was not recorded"))
}

//! Workloads under timers and ending children: their output is the same as natively.

use std::fs;
use std::path::Path;
use std::process::Command;

use tamis_abi::KernelVersion;
use tamis_kernel::Ended;
use tamis_platform::{Options, Platform};
use tamis_testkit::seeds;

use crate::cases::{Outcome, is_before, run};
use crate::guests;
use crate::host::{Asked, Host};

/// The number of workloads, in a full and in an ordinary run.
const WORKLOADS: u64 = 200;
const FEW: u64 = 5;

pub(crate) fn storms(platform: &dyn Platform) -> Outcome {
    if platform.name() == "notify" && is_before(KernelVersion::new(5, 19)) {
        return Outcome::Skipped(
            "before Linux 5.19 a signal ends a call that waits for its answer",
        );
    }
    let count = match seeds::is_full() {
        true => WORKLOADS,
        false => FEW,
    };
    let process = std::process::id();
    let file = |what| Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{what}-{process}"));
    let [native, caught] = ["native", "caught"].map(file);
    for seed in 0..count {
        let seed = seed.to_string();
        let status = Command::new(guests::path("storms"))
            .args([seed.as_ref(), native.as_os_str()])
            .status();
        assert!(status.expect("it starts").success(), "natively: {seed}");
        let args = [&seed, caught.to_str().expect("a path of UTF-8")];
        let (host, options) = (Host::default(), Options::default());
        let ended = run(platform, "storms", &args, Asked::All, &host, &options);
        assert_eq!(ended.expect("it runs"), Ended::Exited(0), "{seed}");
        let read = |path| fs::read_to_string(path).expect("what it has written");
        assert_eq!(read(&caught), read(&native), "workload {seed}");
    }
    for path in [native, caught] {
        fs::remove_file(path).expect("it is there");
    }
    Outcome::Passed
}

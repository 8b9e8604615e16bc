//! gVisor's compiler as it is run beside tamis: its programs are those that gVisor has.

use tamis_bench::gvisor::{Builder, Compiler};
use tamis_testkit::corpus;
use tamis_testkit::skip::{self, Need};

/// The compiler with a file of the corpus; `None` if either is missing.
fn with_policy(file: &str) -> Option<Builder> {
    let compiler = Compiler::open().map_err(|reason| skip::because(Need::Gvisor, reason));
    corpus::path(file)?;
    Some(
        compiler
            .ok()?
            .with_policy(file)
            .expect("it was built to be run"),
    )
}

#[test]
fn each_build_makes_what_gvisor_made() {
    for name in [
        "gvisor-gofer-directfs",
        "gvisor-sentry-nvproxy",
        "gvisor-sentry-systrap",
        "gvisor-systrap-stub",
        "gvisor-systrap-sysmsg-thread",
    ] {
        let Some(builder) = with_policy(&format!("gvisor/{name}.json")) else {
            return;
        };
        let stored =
            corpus::path(&format!("gvisor/{name}.opt.bpf")).expect("it lies beside the policy");
        let stored = std::fs::read(stored).expect("it can be read");
        // The second build would get rules rewritten by the first, if these were shared.
        for _ in 0..2 {
            let (program, time) = builder.build().expect("gVisor builds what it has built");
            assert_eq!(program.to_bytes(), stored, "{name}");
            assert!(!time.is_zero());
        }
    }
}

#[test]
fn why_a_file_is_refused_is_said() {
    let Some(builder) = with_policy("peers/docker.pol.json") else {
        return;
    };
    let refusal = builder.build().expect_err("it is no policy of gVisor");
    assert!(refusal.contains("docker.pol.json"), "{refusal}");
    builder.build().expect_err("the program has ended");
}

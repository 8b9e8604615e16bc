//! gVisor's compiler and interpreter as they are run beside tamis: programs are those that gVisor has, and values those of
//! the reference interpreter.

use tamis_abi::{Arch, Endian, SeccompData};
use tamis_bench::gvisor::{Builder, Compiler};
use tamis_bpf::interp;
use tamis_testkit::corpus;
use tamis_testkit::skip::{self, Need};

fn compiler() -> Compiler {
    Compiler::open().unwrap_or_else(|reason| skip::because(Need::Gvisor, reason))
}

/// The compiler with a file of the corpus.
fn with_policy(file: &str) -> Builder {
    corpus::path(file);
    let builder = compiler().with_policy(file);
    builder.expect("it was built to be run")
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
        let builder = with_policy(&format!("gvisor/{name}.json"));
        let stored = corpus::path(&format!("gvisor/{name}.opt.bpf"));
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
    let builder = with_policy("peers/docker.pol.json");
    let refusal = builder.build().expect_err("it is no policy of gVisor");
    assert!(refusal.contains("docker.pol.json"), "{refusal}");
    builder.build().expect_err("the program has ended");
}

#[test]
fn its_interpreter_gives_the_values_of_the_reference() {
    let peer = compiler();
    let program = corpus::program("gvisor/gvisor-sentry-systrap.opt.bpf");
    let call = |nr| SeccompData {
        nr,
        arch: Arch::X86_64.audit(),
        args: [u64::from(nr); 6],
        ..SeccompData::default()
    };
    let calls: Vec<SeccompData> = (0..450).map(call).collect();
    let images: Vec<_> = calls
        .iter()
        .map(|call| call.image(Endian::Little))
        .collect();
    let rets = calls
        .iter()
        .map(|call| u64::from(interp::run(&program, call).ret));
    let expected: u64 = rets.sum();
    let interpreter = peer
        .interpreter(&program, &images)
        .expect("it was built to be run");
    for _ in 0..2 {
        let (sum, _) = interpreter.round().expect("it takes its own filter");
        assert_eq!(sum, expected);
    }
}

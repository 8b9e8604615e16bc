//! The prover on real programs: pairs that must be equal, and every difference confirmed.

use std::time::Instant;

use tamis_abi::Endian;
use tamis_bpf::Program;
use tamis_prover::{Equality, Limits, Space};
use tamis_testkit::corpus;

fn program(name: &str) -> Option<Program> {
    let insns = corpus::insns(name)?;
    Some(Program::new(insns).expect("a corpus program is valid"))
}

/// Compares two programs in a fresh space and prints what it took.
fn compare(left: &str, right: &str) -> Option<Equality> {
    let (left_program, right_program) = (program(left)?, program(right)?);
    let start = Instant::now();
    let mut space = Space::new(Limits::default());
    let left_function = space
        .program(&left_program, Endian::Little)
        .expect("within the limits");
    let right_function = space
        .program(&right_program, Endian::Little)
        .expect("within the limits");
    let equality = space.compare(left_function, right_function);
    println!(
        "{left} ({}) ~ {right} ({}): {equality:?}, {} nodes, {:?}",
        left_program.len(),
        right_program.len(),
        space.len_nodes(),
        start.elapsed()
    );
    Some(equality)
}

#[test]
fn the_two_levels_of_libseccomp_mean_the_same() {
    for (left, right) in [
        (
            "docker/docker-libseccomp-opt1.bpf",
            "docker/docker-libseccomp-opt2.bpf",
        ),
        (
            "docker/libseccomp306-opt1.bpf",
            "docker/libseccomp306-opt2.bpf",
        ),
        (
            "peers/docker-libseccomp-2.5.4.bpf",
            "peers/docker-libseccomp-2.5.4-opt2.bpf",
        ),
    ] {
        let Some(equality) = compare(left, right) else {
            return;
        };
        assert_eq!(equality, Equality::Equal);
    }
}

#[test]
fn gvisors_optimiser_kept_the_meaning() {
    let Some(files) = corpus::files("gvisor", ".unopt.bpf") else {
        return;
    };
    for unoptimised in files {
        let optimised = unoptimised.replace(".unopt.", ".opt.");
        assert_eq!(compare(&unoptimised, &optimised), Some(Equality::Equal));
    }
}

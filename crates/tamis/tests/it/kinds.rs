//! Files of the corpus that are given as another kind: the message names theirs. Samples of all kinds are tested by
//! `tamis-session`.

use tamis_abi::Arch;
use tamis_policy::code;
use tamis_policy::loader::NoIncludes;
use tamis_session::{Error, Input, InputKind, LoadOptions, load};
use tamis_testkit::corpus;

#[test]
fn every_file_of_the_corpus_given_as_another_kind_is_named() {
    let folders = [
        ("docker", ".json", "oci"),
        ("firecracker", ".json", "firecracker"),
        ("minijail", ".policy", "minijail"),
        ("kafel", ".policy", "kafel"),
        ("systemd/stack", ".bpf", "bpf"),
    ];
    for (folder, suffix, kind) in folders {
        for file in corpus::files(folder, suffix) {
            let bytes = std::fs::read(corpus::path(&file)).expect("it can be read");
            let others = InputKind::all().filter(|other| other.name() != kind);
            others.for_each(|other| assert_named(kind, &file, &bytes, other));
        }
    }
}

/// The first error of an input that is given as another kind names its own.
fn assert_named(kind: &str, name: &str, bytes: &[u8], given_as: InputKind) {
    let options = LoadOptions {
        kind: Some(given_as),
        ..LoadOptions::new(Arch::X86_64)
    };
    let Err(Error::Diagnostics(diagnostics, _)) =
        load(Input::new(name, bytes), &options, &mut NoIncludes)
    else {
        panic!("{name} is taken for {}", given_as.name());
    };
    let first = diagnostics.first().expect("a reason");
    let help = first.help.as_deref().unwrap_or_default();
    assert!(
        [code::WRONG_KIND, code::NOT_UTF8].contains(&first.code)
            && help.contains(&format!("--from {kind}`")),
        "{name} as {}: {first:?}",
        given_as.name()
    );
}

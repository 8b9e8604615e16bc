//! Every document of the laboratory follows its schema in `lab/schemas` or `docs/schemas`.

use std::fs;
use std::path::{Path, PathBuf};

use tamis_testkit::capture::{ETHERNET, pcap};
use tamis_testkit::corpus::repository;
use tamis_testkit::{schema, skip};

use crate::TAMIS_LAB;

/// A filter of a socket, and a capture of one packet.
fn packets() -> [PathBuf; 2] {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let paths = ["schemas-socket.asm", "schemas.pcap"].map(|name| folder.join(name));
    fs::write(&paths[0], "ldb [0]\nret #1\n").unwrap();
    fs::write(&paths[1], pcap(ETHERNET, &[vec![0; 20]])).unwrap();
    paths
}

#[test]
fn every_document_fits_its_schema_and_every_schema_has_a_document() {
    let own = repository().join("lab/schemas");
    let check = |line: &str| schema::check(Path::new(TAMIS_LAB), &own, line);
    let product = repository().join("docs/schemas");
    let check_as_product = |line: &str| schema::check(Path::new(TAMIS_LAB), &product, line);
    let [filter, capture] = packets().map(|path| path.display().to_string());
    let covered = [
        check("engines bench pure-compute --calls read --rounds 1 --json"),
        check(&format!("packets eval {filter} {capture} --json")),
        check("ebpf disasm pure-compute --json"),
        check("platforms --json"),
    ];
    check_as_product("engines eval container-default read --engine threaded --json");
    check_as_product(&format!("packets disasm {filter} --json"));
    check_as_product("ebpf disasm no/such/file --json");
    for entry in fs::read_dir(own).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            covered.iter().any(|name| schema::file(name) == file),
            "no document was checked against {file}"
        );
    }
}

#[test]
fn the_document_of_a_measurement_fits_its_schema() {
    skip::unless_live();
    let own = repository().join("lab/schemas");
    let line = "platforms --bench --rounds 1 --platform notify --json";
    let name = schema::check(Path::new(TAMIS_LAB), &own, line);
    assert_eq!(name, "tamis.platforms/1");
}

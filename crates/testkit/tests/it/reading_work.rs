//! The allocations and messages of readers are in proportion to the text, also for hostile ones. The bounds are those
//! of the fuzz targets.

use tamis_testkit::generate::hostile::texts;
use tamis_testkit::property;

#[test]
fn reading_hostile_texts_takes_work_in_proportion() {
    let mut read = 0;
    for text in texts::all(1) {
        let property = match text.kind {
            "tamis" => property::policy_tamis,
            "oci" => property::policy_oci,
            "spo" => property::policy_spo,
            "firecracker" => property::policy_firecracker,
            "minijail" => property::policy_minijail,
            "kafel" => property::policy_kafel,
            "systemd" => property::policy_systemd,
            "bpf" | "rules" => continue,
            _ => property::program_forms,
        };
        // The meaning of those without mistakes is another matter.
        if !text.is_valid {
            property(&text.bytes);
            read += 1;
        }
    }
    assert!(read >= 25, "{read}");
}

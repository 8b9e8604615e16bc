//! The goldens of passes: each pass has one that it changes, and a near miss that it leaves alone.

use std::fs;
use std::path::Path;

use tamis_abi::Endian;
use tamis_bpf::asm;
use tamis_compiler::passes::registry::{self, Selection};
use tamis_compiler::passes::{PassCx, Stage};
use tamis_compiler::stages;
use tamis_diag::Sources;

/// The input of a golden: the section `input`.
fn input(golden: &str) -> &str {
    let (_, from) = golden
        .split_once("\n-- input\n")
        .expect("a golden of a pass has an input");
    from.split_once("\n-- ").map_or(from, |(input, _)| input)
}

/// Whether a pass applies a change to an input.
fn is_changed(pass: &str, stage: Stage, input: &str) -> bool {
    let selection = Selection::named([pass]).expect("the registry has it");
    let mut cx = PassCx::new(None);
    let mut sources = Sources::new();
    let source = sources.add("input", input);
    match stage {
        Stage::Rules => {
            let ruleset = tamis_rules::text::parse(&sources, source).expect("it is a ruleset");
            drop(stages::run_on_rules(
                &ruleset,
                selection.rule_passes(),
                &mut cx,
            ));
        }
        Stage::Bytecode => {
            let assembly = asm::assemble(input, source, Endian::Little).expect("it is assembler");
            let program = assembly.into_program().expect("the kernel accepts it");
            drop(stages::optimise(
                &program,
                selection.bytecode_passes(),
                &mut cx,
            ));
        }
    }
    !cx.into_remarks().is_empty()
}

#[test]
fn every_pass_has_a_golden_that_it_changes_and_a_near_miss() {
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/pass");
    for info in registry::all() {
        let files = fs::read_dir(goldens.join(info.name)).expect("each pass has goldens");
        let mut found = [0, 0];
        for file in files {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            found[usize::from(is_changed(info.name, info.stage, input(&text)))] += 1;
        }
        let [left_alone, changed] = found;
        assert!(changed > 0, "{}: no golden that it changes", info.name);
        assert!(left_alone > 0, "{}: no near miss", info.name);
    }
}

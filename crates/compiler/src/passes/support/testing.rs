//! Common functions of the tests of passes: text in, one pass, text out.

use tamis_abi::Endian;
use tamis_bpf::asm::assemble;
use tamis_bpf::cfg::Cfg;
use tamis_bpf::disasm::{Style, disassemble};
use tamis_diag::Sources;

use crate::linearise::linearise;
use crate::passes::registry::{BYTECODE_PASSES, RULE_PASSES};
use crate::passes::{Changed, PassCx, PassInfo, run_on_blocks, run_on_rules};

/// Runs one pass over a program until it changes nothing, and compares the result.
#[track_caller]
pub(in crate::passes) fn check_bytecode(info: &PassInfo, before: &str, after: &str) {
    let mut passes = BYTECODE_PASSES.into_iter();
    let pass = passes.find(|pass| pass.info.name == info.name);
    let pass = pass.expect("the registry has the pass");
    let mut sources = Sources::new();
    let source = sources.add("before", before);
    let assembly = assemble(before, source, Endian::Little).expect("the text assembles");
    let program = assembly.into_program().expect("the program is valid");
    let mut graph = Cfg::from_program(&program);
    let mut cx = PassCx::new(None);
    while run_on_blocks(&pass, &mut graph, &mut cx) == Changed::Yes {}
    let source = sources.add("after", after);
    let wanted = assemble(after, source, Endian::Little).expect("the text assembles");
    let wanted = wanted.into_program().expect("the program is valid");
    assert_eq!(
        disassemble(
            &linearise(&graph).expect("a pass keeps it valid"),
            Style::Plain
        ),
        disassemble(&wanted, Style::Plain),
    );
}

/// Runs one pass over the rules of an x86_64 section with a denying default, and compares the result.
#[track_caller]
pub(in crate::passes) fn check_rules(info: &PassInfo, before: &str, after: &str) {
    const HEAD: &str = "ruleset bad-arch kill_process\nsection x86_64 default errno(1)\n";
    let parse = |rules: &str| {
        let mut sources = Sources::new();
        let source = sources.add("rules", format!("{HEAD}{rules}"));
        tamis_rules::text::parse(&sources, source).expect("the text parses")
    };
    let mut passes = RULE_PASSES.into_iter();
    let pass = passes.find(|pass| pass.info.name == info.name);
    let pass = pass.expect("the registry has the pass");
    let made = run_on_rules(&parse(before), &[pass], &mut PassCx::new(None));
    assert_eq!(made.to_string(), parse(after).to_string());
}

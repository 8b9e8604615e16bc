//! The result cache gives the answers of the whole stack.

use tamis_abi::{Arch, Endian, SeccompData};
use tamis_bpf::{Insn, Op, Operand, Program, Stack};
use tamis_testkit::corpus;
use tamis_testkit::generate::program::{data, program};
use tamis_testkit::generate::shape;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_vm::cache::{Plan, Table};
use tamis_vm::threaded::Threaded;

/// The answer of the cache, whose residuals run in the threaded interpreter.
fn cached(
    table: &Table,
    filters: &[Threaded<tamis_vm::threaded::Seccomp>],
    call: &SeccompData,
) -> u32 {
    let image = call.image(Endian::Little);
    table.answer(call.arch, call.nr, |residual| {
        let residual = &table.residuals()[residual as usize];
        filters[residual.filter].run_from(residual.pc, residual.state, &image)
    })
}

/// Calls whose numbers lie around every constant of the programs.
fn calls(rng: &mut Rng, programs: &[Program]) -> Vec<SeccompData> {
    let mut calls = Vec::new();
    for insn in programs.iter().flat_map(Program::insns) {
        for nr in [insn.k.wrapping_sub(1), insn.k, insn.k.wrapping_add(1)] {
            calls.push(SeccompData {
                nr,
                ..data(rng, &programs[0])
            });
        }
    }
    calls.extend((0..20).map(|_| data(rng, &programs[0])));
    calls
}

fn assert_cached(programs: Vec<Program>, calls: &[SeccompData]) -> Table {
    let filters: Vec<_> = programs
        .iter()
        .map(|program| Threaded::seccomp(program).expect("short enough"))
        .collect();
    let stack = Stack::new(programs).expect("one byte order");
    let table = Table::new(&stack);
    for call in calls {
        let expected = stack.run(call).ret;
        assert_eq!(
            cached(&table, &filters, call),
            expected,
            "{call:x?} {stack:?}"
        );
    }
    table
}

/// Any instructions, many of them with the number in A, in stacks of up to two filters.
#[test]
fn of_generated_stacks() {
    let mut rng = Rng::new(0x6361_6368);
    let (mut answers, mut all) = (0, 0);
    for _ in 0..seeds::share(600) {
        let filters = rng.range(1..=2);
        let programs: Vec<Program> = (0..filters)
            .map(|_| {
                let body_insns = rng.range(0..=30) as usize;
                about_numbers(&mut rng, body_insns)
            })
            .collect();
        let calls = calls(&mut rng, &programs);
        let table = assert_cached(programs, &calls);
        let plan = |call: &&SeccompData| matches!(table.plan(call.arch, call.nr), Plan::Answer(_));
        answers += calls.iter().filter(plan).count();
        all += calls.len();
    }
    println!("{all} calls, {answers} answered by the table");
    assert!((all / 10..all - all / 10).contains(&answers));
}

/// A random program with mostly loads of the number or the architecture, which tests the latter first.
fn about_numbers(rng: &mut Rng, body_insns: usize) -> Program {
    let random = program(rng, body_insns, Endian::Little);
    let arch = Op::Branch {
        test: tamis_bpf::Test::Eq,
        operand: Operand::K(Arch::X86_64.audit()),
        jt: 0,
        jf: 0,
    };
    let mut insns = vec![Insn::from(Op::LoadData(4)), arch.into()];
    insns.extend(random.ops().map(|op| match op {
        Op::LoadData(_) if rng.chance(29, 30) => Op::LoadData(*rng.choose(&[0, 0, 0, 4])).into(),
        other => Insn::from(other),
    }));
    Program::new(insns, Endian::Little).expect("the same jumps and slots")
}

#[test]
fn of_the_corpus() {
    assert_all_cached(corpus::all_programs());
}

#[test]
fn of_shapes_of_the_corpus() {
    assert_all_cached(shape::programs());
}

fn assert_all_cached(programs: Vec<(String, Program)>) {
    let mut rng = Rng::new(0x636f_7270);
    for (_, program) in programs {
        if !program.is_installable() {
            continue;
        }
        let mut calls = calls(&mut rng, std::slice::from_ref(&program));
        calls.truncate(3000);
        assert_cached(vec![program], &calls);
    }
}

/// Docker's filter as libseccomp compiles it: calls are decided by the number, or continue at the first load of an
/// argument.
#[test]
fn of_dockers_filter() {
    let program = corpus::program("docker/docker-libseccomp-opt1.bpf");
    let table = Table::new(&Stack::from(program.clone()));
    let residuals = table.residuals().iter().filter(|one| one.pc.0 != 0);
    for residual in residuals {
        let op = program.op(residual.pc);
        assert!(matches!(op, Op::LoadData(8..)), "{residual:?} {op:?}");
    }
    println!(
        "{} bytes, {} residuals",
        table.size_bytes(),
        table.residuals().len()
    );
    let resumed =
        (0..500).filter(|nr| !matches!(table.plan(Arch::X86_64.audit(), *nr), Plan::Answer(_)));
    assert!(
        resumed.count() < 10,
        "few calls of Docker's profile depend on arguments"
    );
}

/// Tests of many bits would distinguish millions of numbers; the table stays small all the same.
#[test]
fn of_a_filter_that_tells_all_numbers_apart() {
    let arch = Op::branch(tamis_bpf::Test::Eq, Arch::X86_64.audit(), 0, 0);
    let mut ops = vec![Op::LoadData(4), arch, Op::LoadData(0)];
    ops.extend(
        (0..=20)
            .rev()
            .map(|bit| Op::branch(tamis_bpf::Test::Set, 1 << bit, 0, 0)),
    );
    ops.push(Op::RetImm(0x7fff_0000));
    let program = Program::from_ops(&ops, Endian::Little).expect("legal");
    let mut rng = Rng::new(0x6a73_6574);
    let calls = calls(&mut rng, std::slice::from_ref(&program));
    let table = assert_cached(vec![program], &calls);
    assert!(table.size_bytes() < 1 << 20, "{}", table.size_bytes());
}

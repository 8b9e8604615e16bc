//! Which programs pass, and which rule refuses the others where.

use tamis_abi::Endian;
use tamis_diag::Sources;

use super::*;
use crate::memory::Argument;
use crate::text::assemble;

fn refusal(text: &str) -> Option<Refusal> {
    let mut sources = Sources::new();
    let source = sources.add("test.s", text);
    let assembly = assemble(text, source).unwrap_or_else(|errors| panic!("{errors:?}"));
    let program = assembly.into_program(Endian::Little).unwrap();
    let mut helpers = Helpers::none();
    let signature = vec![Argument::Context, Argument::Scalar, Argument::Writable];
    helpers.register(26, signature, Box::new(|_, _| Ok(0)));
    helpers.register(1, vec![Argument::Readable], Box::new(|_, _| Ok(0)));
    let layout = Layout::socket_filter();
    let options = Options {
        max_steps: 10_000,
        ..Options::default()
    };
    check(program, &layout, &helpers, &options).err()
}

/// The place and the rule of the refusal.
fn rule(text: &str) -> Option<(usize, Rule)> {
    refusal(text).map(|refusal| (refusal.pc.0, refusal.rule))
}

#[test]
fn values_come_before_their_use() {
    assert_eq!(rule("r0 = 1\nexit"), None);
    assert_eq!(
        rule("r0 = r2\nexit"),
        Some((0, Rule::UnsetRegister(Reg::ALL[2])))
    );
    assert_eq!(
        rule("r0 = *(u64 *)(r10 - 8)\nexit"),
        Some((0, Rule::UnsetStack))
    );
    let one_side = "r0 = *(u32 *)(r1 + 0)\nif r0 == 0 goto +1\n*(u64 *)(r10 - 8) = 1\nr0 = *(u64 *)(r10 - 8)\nexit";
    assert_eq!(rule(one_side), Some((3, Rule::UnsetStack)));
    let half = "*(u32 *)(r10 - 8) = 1\nr0 = *(u64 *)(r10 - 8)\nexit";
    assert_eq!(rule(half), Some((1, Rule::UnsetStack)));
    assert_eq!(rule("w3 ^= w3\nr0 = r3\nexit"), None);
}

#[test]
fn the_path_leads_to_the_refused_instruction() {
    let text = "r0 = *(u32 *)(r1 + 0)\nif r0 > 5 goto +1\nexit\nr0 = r9\nexit";
    let refusal = refusal(text).unwrap();
    assert_eq!(
        (refusal.pc, refusal.rule),
        (Pc(3), Rule::UnsetRegister(Reg::ALL[9]))
    );
    assert_eq!(refusal.path, [Pc(0), Pc(1)]);
}

#[test]
fn accesses_lie_inside_and_are_aligned() {
    let access =
        |access: &str| rule(&format!("r0 = 0\nr2 = 0\n{access}\nexit")).map(|(_, rule)| rule);
    assert_eq!(access("*(u64 *)(r10 - 512) = 1"), None);
    assert_eq!(access("*(u64 *)(r10 - 520) = 1"), Some(Rule::OutsideStack));
    assert_eq!(access("*(u8 *)(r10 + 0) = 1"), Some(Rule::OutsideStack));
    assert_eq!(access("*(u32 *)(r10 - 6) = 1"), Some(Rule::MisalignedStack));
    assert_eq!(access("*(u32 *)(r1 + 48) = 1"), None);
    assert_eq!(access("*(u32 *)(r1 + 8) = 1"), Some(Rule::OutsideContext));
    assert_eq!(access("r0 = *(u32 *)(r1 + 76)"), Some(Rule::OutsideContext));
    assert_eq!(access("r0 = *(u32 *)(r2 + 0)"), Some(Rule::NumberAsAddress));
    assert_eq!(
        access("lock *(u32 *)(r1 + 48) += r2"),
        Some(Rule::OutsideContext)
    );
}

#[test]
fn offsets_of_pointers_have_bounds() {
    let at = |bound: &str, access: &str| {
        let text = format!(
            "r2 = *(u32 *)(r1 + 0)\n*(u64 *)(r10 - 8) = 0\n*(u64 *)(r10 - 16) = 0\n{bound}\nr3 = r10\nr3 -= 16\n\
             r3 += r2\nr0 = *({access})(r3 + 0)\nexit"
        );
        rule(&text).map(|(_, rule)| rule)
    };
    assert_eq!(at("r2 &= 15", "u8 *"), None);
    assert_eq!(at("r2 &= 31", "u8 *"), Some(Rule::OutsideStack));
    assert_eq!(at("r2 &= 8", "u64 *"), Some(Rule::MisalignedStack));
    assert_eq!(at("r2 <<= 1", "u8 *"), Some(Rule::UnboundedOffset));
    assert_eq!(at("r2 %= 16", "u8 *"), None);
}

#[test]
fn pointers_are_not_numbers() {
    let with = |line: &str| rule(&format!("{line}\nr0 = 0\nexit")).map(|(_, rule)| rule);
    for line in [
        "r1 *= 2",
        "w1 += 4",
        "r1 = -r1",
        "if r1 == 0 goto +0",
        "w2 = w1",
        "r1 -= r10",
    ] {
        assert_eq!(with(line), Some(Rule::PointerAsNumber), "{line}");
    }
    assert_eq!(with("*(u32 *)(r10 - 8) = r1"), Some(Rule::PointerAsNumber));
    assert_eq!(with("*(u64 *)(r1 + 48) = r1"), Some(Rule::PointerAsNumber));
    assert_eq!(
        with("*(u64 *)(r10 - 8) = r1\nr3 = *(u32 *)(r10 - 8)"),
        Some(Rule::PartOfPointer)
    );
    assert_eq!(
        with("*(u64 *)(r10 - 8) = r1\nr3 = *(u64 *)(r10 - 8)\nr4 = *(u32 *)(r3 + 0)"),
        None
    );
    assert_eq!(rule("r0 = r1\nexit"), Some((1, Rule::ReturnsPointer)));
}

#[test]
fn loops_end_or_are_refused() {
    assert_eq!(rule("r0 = 0\nr0 += 1\nif r0 < 50 goto -2\nexit"), None);
    assert_eq!(
        rule("r0 = 0\ngoto -1\nexit").map(|(_, rule)| rule),
        Some(Rule::Unreachable)
    );
    let same = "r0 = *(u32 *)(r1 + 0)\nr2 = *(u32 *)(r1 + 0)\nif r2 != 0 goto -2\nexit";
    assert_eq!(rule(same).map(|(_, rule)| rule), Some(Rule::EndlessLoop));
    let long = "r0 = 0\nr0 += 1\nif r0 < 100000 goto -2\nexit";
    assert_eq!(rule(long).map(|(_, rule)| rule), Some(Rule::TooComplex));
}

#[test]
fn ways_that_meet_are_followed_once() {
    // Two to the power of 60 ways.
    let mut text = String::from("r6 = r1\nr0 = 0\n");
    for _ in 0..60 {
        text.push_str("r2 = *(u32 *)(r6 + 0)\nif r2 > 7 goto +1\nr0 = 1\n");
    }
    text.push_str("r0 = 0\nexit\n");
    assert_eq!(rule(&text), None);
}

#[test]
fn functions_and_their_frames() {
    let call = |function: &str| {
        rule(&format!(
            "*(u64 *)(r10 - 8) = 7\nr1 = r10\nr1 += -8\ncall f\nexit\nf: {function}\nexit"
        ))
    };
    assert_eq!(call("r0 = *(u64 *)(r1 + 0)"), None);
    assert_eq!(call("r0 = r10"), Some((6, Rule::ReturnsPointer)));
    assert_eq!(
        call("r0 = *(u64 *)(r10 - 8)").map(|(_, rule)| rule),
        Some(Rule::UnsetStack)
    );
    assert_eq!(
        call("r0 = r6").map(|(_, rule)| rule),
        Some(Rule::UnsetRegister(Reg::R6))
    );
    assert_eq!(
        call("r0 = 0\nif r0 == 1 goto -3").map(|(_, rule)| rule),
        Some(Rule::LeavesFunction)
    );
    assert_eq!(rule("f: call f\nexit"), Some((0, Rule::Recursion)));
    let each_other = "call f\nexit\nf: call g\nexit\ng: call f\nexit";
    assert_eq!(rule(each_other), Some((2, Rule::Recursion)));
    let deep = "call pc+1\nexit\n".repeat(8);
    assert_eq!(
        rule(&format!("{deep}r0 = 0\nexit")),
        Some((14, Rule::TooManyFrames))
    );
    // A pointer to the function's frame in that of the caller.
    let left = "call f\nr1 = *(u64 *)(r10 - 8)\nexit\nf: *(u64 *)(r1 + 0) = r10\nr0 = 0\nexit";
    let text = format!("r1 = r10\nr1 += -8\n{left}");
    assert_eq!(rule(&text).map(|(_, rule)| rule), Some(Rule::UnsetStack));
}

#[test]
fn helpers_get_what_they_expect() {
    let load = |size: &str| {
        rule(&format!(
            "r2 = 0\nr3 = r10\nr3 += -8\n{size}\ncall 26\nr0 = *(u64 *)(r10 - 8)\nexit"
        ))
        .map(|(_, rule)| rule)
    };
    let size = Reg::ALL[4];
    assert_eq!(load("r4 = 8"), None);
    assert_eq!(load("r4 = 7"), Some(Rule::UnsetStack));
    assert_eq!(load("r4 = 9"), Some(Rule::OutsideStack));
    assert_eq!(load("r4 = 0"), Some(Rule::HelperArgument(size)));
    assert_eq!(load("r4 = r3"), Some(Rule::HelperArgument(size)));
    assert_eq!(load("r1 = 5"), Some(Rule::HelperArgument(Reg::R1)));
    assert_eq!(load("call 99"), Some(Rule::UnknownHelper(99)));
    assert_eq!(
        rule("r1 = r10\nr1 += -8\nr2 = 8\ncall 1\nexit"),
        Some((3, Rule::UnsetStack))
    );
    assert_eq!(
        rule("r0 = *(u8 *)skb[0]\nexit"),
        Some((0, Rule::UnsetRegister(Reg::R6)))
    );
    assert_eq!(rule("r6 = r1\nr0 = *(u8 *)skb[0]\nexit"), None);
}

#[test]
fn code_that_nothing_reaches_may_be_permitted() {
    let ops = [
        crate::Op::Alu(
            crate::Width::W32,
            crate::AluOp::Mov,
            Reg::R0,
            crate::Source::Imm(1),
        ),
        crate::Op::Exit,
        crate::Op::Exit,
    ];
    let result = |permits_unreachable| {
        let program = Program::from_ops(&ops, Endian::Little).unwrap();
        let options = Options {
            permits_unreachable,
            ..Options::default()
        };
        check(program, &Layout::none(), &Helpers::none(), &options).map(|_| ())
    };
    assert_eq!(result(true), Ok(()));
    assert_eq!(result(false), Err(Refusal::at(Pc(2), Rule::Unreachable)));
}

/// The memory of a state is that of one frame, independent of the number of pending functions and of their stacks.
#[test]
fn states_share_the_frames_that_do_not_differ() {
    const BRANCHES: usize = 2000;
    let mut text = String::new();
    for slot in 1..=64 {
        text.push_str(&format!("*(u64 *)(r10 - {}) = {slot}\n", 8 * slot));
    }
    text.push_str("r1 = *(u32 *)(r1 + 0)\ncall pc+1\nexit\n");
    // Six functions that only call the next one, and one with branches.
    text.push_str(&"call pc+1\nexit\n".repeat(6));
    text.push_str("r0 = 0\n");
    for _ in 0..BRANCHES {
        text.push_str("if r1 & 1 goto +1\nr2 = 1\n");
    }
    text.push_str("exit\n");
    let mut sources = Sources::new();
    let source = sources.add("test.s", text.as_str());
    let assembly = assemble(&text, source).unwrap_or_else(|errors| panic!("{errors:?}"));
    let program = assembly.into_program(Endian::Little).unwrap();
    let options = Options {
        max_steps: 1_000_000,
        ..Options::default()
    };
    let structure = structure::find(&program, &options).unwrap();
    let (layout, helpers) = (Layout::socket_filter(), Helpers::none());
    let walked = walk::walk(&program, &structure, &layout, &helpers, &options);
    let (refusal, copied) = match walked {
        Ok(walked) => (None, walked.copied),
        Err(refusal) => (Some(refusal.rule), 0),
    };
    assert_eq!(refusal, None);
    // One for the other side of each branch, and a few for the rest.
    assert!(copied <= BRANCHES + 100, "{copied}");
}

//! A whole extended program as machine code.
//!
//! Instructions are written from the last to the first. The target of a backward jump is written later: its distance is
//! that of the previous round, at first with short forms only. The space between jumps can lengthen and shorten
//! distances, so a backward jump that was once too far for the short form has the long one in all subsequent rounds.
//! Then code with the same forms is the same code, and after a few rounds nothing moves. Programs without loops are
//! written once.

use tamis_ebpf_vm::check::{Access, Checked};
use tamis_ebpf_vm::{Op, Pc, Size};

use super::emit::{Emitter, Ends, REGISTERS, Site, State};
use super::{Needs, target};
use crate::Options;
use crate::assembler::{Assembler, Code, Label};
use crate::blind::Blinding;
use crate::x86::{Binary, Inst, Reg, Shift, Width};

/// The bytes of code for an instruction that are made room for at first.
const ROOM_PER_INSN_BYTES: usize = 12;

/// The BPF registers whose machine registers belong to the caller of the code: r5 to r9.
const KEPT: std::ops::RangeInclusive<usize> = 5..=9;

/// The bytes of a word of the machine's stack.
const WORD_BYTES: i32 = 8;

/// Writes a program: its code and the label of its beginning.
pub(super) fn write(checked: &Checked, options: &Options) -> (Code, Label) {
    let program = checked.program();
    let has_loops = program.ops().any(|(pc, op)| goes_back(pc, op));
    let mut before = Round {
        places: vec![None; program.len()],
        is_far: vec![false; program.len()],
    };
    loop {
        let mut writer = Writer::new(checked, options, &before);
        let start = writer.write();
        let Writer { emitter, round, .. } = writer;
        if !has_loops || round == before {
            return (emitter.out.finish(), start);
        }
        before = round;
    }
}

/// Whether an instruction leads to one that isn't behind it.
fn goes_back(pc: Pc, op: Op) -> bool {
    target(pc, op).is_some_and(|to| to.0 <= pc.0)
}

/// The results of a round of writing, for each place in the program.
#[derive(Clone, PartialEq, Eq)]
struct Round {
    /// Its label; `None` before it is written.
    places: Vec<Option<Label>>,
    /// Whether it jumps backward, and was too far from there for the short form in some round.
    is_far: Vec<bool>,
}

struct Writer<'c> {
    checked: &'c Checked,
    emitter: Emitter,
    round: Round,
    before: &'c Round,
    /// The end of the whole program.
    exit: Label,
    /// How many of the first stored instructions belong to the main function.
    main_insns: usize,
    /// Whether the program calls its main function, which then ends as others do.
    is_main_called: bool,
    /// Whether it calls functions, which may end it with calls pending.
    has_functions: bool,
    /// The registers that the prologue saves.
    saved: Vec<Reg>,
    /// Whether a word is added below that.
    is_padded: bool,
}

impl<'c> Writer<'c> {
    fn new(checked: &'c Checked, options: &Options, before: &'c Round) -> Writer<'c> {
        let program = checked.program();
        let calls = program
            .ops()
            .filter(|(_, op)| matches!(op, Op::CallLocal(_)));
        let functions: Vec<Pc> = calls.filter_map(|(pc, op)| target(pc, op)).collect();
        let others = functions.iter().filter(|start| start.0 > 0);
        let main_insns = others.map(|start| start.0).min().unwrap_or(program.len());
        let is_main_called = functions.contains(&Pc(0));
        let has_functions = !functions.is_empty();
        let saved = saved(checked);
        let is_padded = is_padded(checked, &saved, is_main_called);
        let mut out = Assembler::with_capacity(program.len() * ROOM_PER_INSN_BYTES);
        out.space_jumps();
        out.push(Inst::Return);
        for reg in &saved {
            out.push(Inst::Pop(*reg));
        }
        if is_padded {
            out.push(Inst::BinaryImm(
                Binary::Add,
                Width::Full,
                Reg::Rsp,
                WORD_BYTES,
            ));
        }
        let exit = out.here();
        // An end inside of a function leaves calls pending.
        if has_functions {
            out.push(Inst::LoadFull(Reg::Rsp, State::STACK_POINTER));
        }
        let abort = out.here();
        out.push(Inst::Binary(Binary::Xor, Width::Half, Reg::Rax, Reg::Rax));
        let ends = Ends {
            zero: out.here(),
            abort,
        };
        Writer {
            checked,
            emitter: Emitter {
                out,
                blinding: Blinding::new(options.harden),
                ends,
                needs: Needs::from_checked(checked),
            },
            round: Round {
                places: vec![None; program.len()],
                is_far: before.is_far.clone(),
            },
            before,
            exit,
            main_insns,
            is_main_called,
            has_functions,
            saved,
            is_padded,
        }
    }

    /// Writes all, and returns where it begins.
    fn write(&mut self) -> Label {
        let ops: Vec<(Pc, Op)> = self.checked.program().ops().collect();
        for (pc, op) in ops.into_iter().rev() {
            self.write_op(pc, op);
        }
        self.write_prologue();
        self.emitter.out.here()
    }

    fn write_op(&mut self, pc: Pc, op: Op) {
        let access = self.checked.accesses().at(pc);
        if access == Access::Unreached {
            // Nothing leads here.
            self.round.places[pc.0] = Some(self.emitter.ends.zero);
            return;
        }
        let next = match op.falls_through() {
            true => self.label(Pc(pc.0 + op.places())),
            false => self.emitter.ends.zero,
        };
        let site = Site {
            pc,
            access,
            next,
            taken: match target(pc, op).map(|to| self.label(to)) {
                Some(label) if self.round.is_far[pc.0] => label.far(),
                label => label.unwrap_or(next),
            },
            end: (!self.is_main_called && pc.0 < self.main_insns).then_some(self.exit),
        };
        self.emitter.emit(op, site);
        self.round.is_far[pc.0] |= self.emitter.out.take_far_jump_back();
        self.round.places[pc.0] = Some(self.emitter.out.here());
    }

    fn label(&self, pc: Pc) -> Label {
        let known = self.round.places[pc.0].or(self.before.places[pc.0]);
        known.unwrap_or_else(|| self.emitter.out.just_before())
    }

    /// Writes the prologue: saves registers, loads those with addresses, and r1.
    fn write_prologue(&mut self) {
        let main = self.label(Pc(0));
        let out = &mut self.emitter.out;
        if self.is_main_called {
            out.jump(self.exit);
            out.call(main);
        } else {
            out.jump(main);
        }
        let [_, context, ..] = REGISTERS;
        out.push(Inst::Shift(Shift::Left, Width::Full, context, 32));
        out.push(Inst::Set(context, 1));
        self.emitter.load_places();
        let out = &mut self.emitter.out;
        if self.has_functions {
            out.push(Inst::StoreSized(Size::D, State::STACK_POINTER, Reg::Rsp));
        }
        if self.is_padded {
            out.push(Inst::BinaryImm(
                Binary::Sub,
                Width::Full,
                Reg::Rsp,
                WORD_BYTES,
            ));
        }
        out.push(Inst::Binary(Binary::Mov, Width::Full, Reg::Rbp, Reg::Rdi));
        for reg in self.saved.iter().rev() {
            out.push(Inst::Push(*reg));
        }
    }
}

/// The registers that belong to the caller of the code and that it changes, in the order of pushing them.
fn saved(checked: &Checked) -> Vec<Reg> {
    let program = checked.program();
    let is_written = |number: usize| {
        let mut ops = program.ops();
        // A call of a function saves all of them.
        ops.any(|(_, op)| {
            op.destination().is_some_and(|reg| reg.index() == number)
                || matches!(op, Op::CallLocal(_))
        })
    };
    let written = KEPT.filter(|number| is_written(*number));
    let written = written.map(|number| REGISTERS[number]);
    written.chain([Reg::Rbp]).collect()
}

/// Whether a word is added below the saved registers, so that the stack pointer is a multiple of 16 bytes in the main
/// function, as the host's function for helpers expects: at the entry of each function it is that plus 8.
fn is_padded(checked: &Checked, saved: &[Reg], is_main_called: bool) -> bool {
    let mut ops = checked.program().ops();
    let pushed = saved.len() + 1 + usize::from(is_main_called);
    ops.any(|(_, op)| matches!(op, Op::CallHelper(_))) && !pushed.is_multiple_of(2)
}

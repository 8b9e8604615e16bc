//! From instructions to steps.

use tamis_bpf::packet::{Extra, Load, Size};
use tamis_bpf::{AluOp, Operand, Operation, Test};

use super::handlers::{
    self, AddX, Byte, END, END_IF, END_UNLESS, Eq, Fetch, GO_ON, Ge, Gt, Half, HeaderByte,
    HeaderHalf, Holds, IndexedByte, IndexedHalf, Keep, Nothing, OrX, SetBits, Sink, Slot, SlotAddX,
    SlotSubX, Store, SubX, Tax, Word, WordOfCall,
};
use super::{Handler, Machine, Seccomp, Sockets, Step, Tables, Threaded};

/// A load that has functions of its own.
pub(super) trait Loads: Machine {
    /// Whether it has functions for computations with slots: seccomp's filters seldom have any.
    const COMPUTES_WITH_SLOTS: bool;

    /// How the load gets its value, and the place it is from.
    fn fetched(load: Self::Load) -> Option<(Fetched, u32)>;

    /// The place of the byte with a header's length, if the instruction loads that.
    fn header(extra: Self::Extra) -> Option<u32>;

    /// The function that fetches so and gives the value to a sink, shifted before or not.
    fn load_handler<S: Sink<Self>>(fetched: Fetched, shifts: bool) -> Handler<Self>;

    /// The function that fetches so and tests the value against a constant.
    fn test_handler(fetched: Fetched, test: Test, ends: Ends) -> Handler<Self>;

    /// The function that fetches so and compares the value with sorted constants.
    fn cases_handler(fetched: Fetched) -> Handler<Self>;

    /// The function that fetches so and compares the value with two constants.
    fn two_handler(fetched: Fetched) -> Handler<Self>;
}

/// How a value is got.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetched {
    /// It is in A.
    Keep,
    /// From a slot of the scratch memory.
    Slot,
    /// The same, and X added or subtracted.
    SlotAddX,
    SlotSubX,
    /// From the input: a byte, two, or four.
    Byte,
    Half,
    Word,
    /// From the input at X.
    IndexedByte,
    IndexedHalf,
    /// From the input behind a header whose length goes to X.
    HeaderByte,
    HeaderHalf,
}

/// Chooses the function for a way to fetch, where `$F` is its type.
macro_rules! by_fetch {
    ($fetched:expr, $machine:ty, [$($name:ident => $F:ty),*], $function:ident) => {
        match $fetched {
            $(Fetched::$name => $function!($machine, $F),)*
            // The machine has no such loads.
            _ => $function!($machine, Keep),
        }
    };
}

macro_rules! loads {
    ($machine:ty, $computes:literal, $fetched:ident, $header:ident, [$($name:ident => $F:ty),*]) => {
        impl Loads for $machine {
            const COMPUTES_WITH_SLOTS: bool = $computes;

            fn fetched(load: Self::Load) -> Option<(Fetched, u32)> {
                $fetched(load)
            }

            fn header(extra: Self::Extra) -> Option<u32> {
                $header(extra)
            }

            fn load_handler<S: Sink<Self>>(fetched: Fetched, shifts: bool) -> Handler<Self> {
                macro_rules! function {
                    ($m:ty, $f:ty) => {
                        match shifts {
                            true => handlers::load::<$m, $f, S, true>,
                            false => handlers::load::<$m, $f, S, false>,
                        }
                    };
                }
                by_fetch!(fetched, $machine, [$($name => $F),*], function)
            }

            fn test_handler(fetched: Fetched, test: Test, ends: Ends) -> Handler<Self> {
                macro_rules! function {
                    ($m:ty, $f:ty) => { tested::<$m, $f>(test, ends) };
                }
                by_fetch!(fetched, $machine, [$($name => $F),*], function)
            }

            fn cases_handler(fetched: Fetched) -> Handler<Self> {
                macro_rules! function {
                    ($m:ty, $f:ty) => {
                        handlers::cases::<$m, $f>
                    };
                }
                by_fetch!(fetched, $machine, [$($name => $F),*], function)
            }

            fn two_handler(fetched: Fetched) -> Handler<Self> {
                macro_rules! function {
                    ($m:ty, $f:ty) => {
                        handlers::two::<$m, $f>
                    };
                }
                by_fetch!(fetched, $machine, [$($name => $F),*], function)
            }
        }
    };
}

loads!(Seccomp, false, word_of_call, no_header, [Slot => Slot, Word => WordOfCall]);
loads!(Sockets, true, part_of_packet, header_of_packet, [
    Slot => Slot, SlotAddX => SlotAddX, SlotSubX => SlotSubX, Byte => Byte, Half => Half, Word => Word, IndexedByte => IndexedByte,
    IndexedHalf => IndexedHalf, HeaderByte => HeaderByte, HeaderHalf => HeaderHalf
]);

#[expect(
    clippy::unnecessary_wraps,
    reason = "the other machine has loads without functions of their own"
)]
fn word_of_call(offset: u32) -> Option<(Fetched, u32)> {
    Some((Fetched::Word, offset / 4))
}

fn no_header(extra: std::convert::Infallible) -> Option<u32> {
    match extra {}
}

/// The largest offset that is counted from a packet's start.
const MAX_OFFSET: u32 = i32::MAX as u32;

fn part_of_packet(load: Load) -> Option<(Fetched, u32)> {
    let (fetched, offset) = match load {
        Load::Absolute(Size::Byte, k) => (Fetched::Byte, k),
        Load::Absolute(Size::Half, k) => (Fetched::Half, k),
        Load::Absolute(Size::Word, k) => (Fetched::Word, k),
        Load::Indexed(Size::Byte, k) => (Fetched::IndexedByte, k),
        Load::Indexed(Size::Half, k) => (Fetched::IndexedHalf, k),
        Load::Indexed(Size::Word, _) | Load::Ancillary(..) => return None,
    };
    (offset <= MAX_OFFSET).then_some((fetched, offset))
}

fn header_of_packet(extra: Extra) -> Option<u32> {
    match extra {
        Extra::LoadXHeaderLen(k) => (k <= MAX_OFFSET).then_some(k),
        Extra::Mod(_) => None,
    }
}

/// The continuations of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// Steps on both sides.
    Neither,
    /// A return of a constant where it doesn't hold.
    Unless,
    /// A return of a constant where it holds.
    If,
    /// Returns of constants.
    Both,
}

/// The function that fetches by `F` and tests the value against a constant.
fn tested<M: Machine, F: Fetch<M>>(test: Test, ends: Ends) -> Handler<M> {
    match test {
        Test::Eq => tested_by::<M, F, Eq>(ends),
        Test::Gt => tested_by::<M, F, Gt>(ends),
        Test::Ge => tested_by::<M, F, Ge>(ends),
        Test::Set => tested_by::<M, F, SetBits>(ends),
    }
}

fn tested_by<M: Machine, F: Fetch<M>, H: Holds>(ends: Ends) -> Handler<M> {
    match ends {
        Ends::Neither => handlers::test::<M, F, H, GO_ON>,
        Ends::Unless => handlers::test::<M, F, H, END_UNLESS>,
        Ends::If => handlers::test::<M, F, H, END_IF>,
        Ends::Both => handlers::test::<M, F, H, END>,
    }
}

/// The functions that fetch by `F` and test the value against X: one that goes on, one for tests that end the program.
fn tested_with_x<M: Machine, F: Fetch<M>>(test: Test) -> [Handler<M>; 2] {
    match test {
        Test::Eq => tested_with_x_by::<M, F, Eq>(),
        Test::Gt => tested_with_x_by::<M, F, Gt>(),
        Test::Ge => tested_with_x_by::<M, F, Ge>(),
        Test::Set => tested_with_x_by::<M, F, SetBits>(),
    }
}

fn tested_with_x_by<M: Machine, F: Fetch<M>, H: Holds>() -> [Handler<M>; 2] {
    [
        handlers::test_x::<M, F, H, false>,
        handlers::test_x::<M, F, H, true>,
    ]
}

/// Prepares a valid program.
pub(super) fn threaded<M: Loads>(ops: &[Operation<M::Load, M::Extra>]) -> Threaded<M> {
    let mut builder = Builder {
        ops,
        steps: Vec::with_capacity(ops.len()),
        jumps: Vec::new(),
        seconds: Vec::new(),
        cases: Vec::new(),
        places: vec![None; ops.len()],
        open: (0..ops.len()).rev().collect(),
    };
    while let Some(pc) = builder.open.pop() {
        builder.trace(pc);
    }
    let places: Vec<u32> = builder
        .places
        .into_iter()
        .map(Option::unwrap_or_default)
        .collect();
    let place = |pc: u32| places.get(pc as usize).copied().unwrap_or_default();
    let (mut steps, mut cases) = (builder.steps, builder.cases);
    for at in builder.jumps {
        steps[at].target = place(steps[at].target);
    }
    for at in builder.seconds {
        steps[at].mask = place(steps[at].mask);
    }
    for (_, target) in &mut cases {
        *target = place(*target);
    }
    let tables = Tables {
        ops: ops.to_vec(),
        places,
        cases,
    };
    Threaded { steps, tables }
}

struct Builder<'o, M: Machine> {
    ops: &'o [Operation<M::Load, M::Extra>],
    steps: Vec<Step<M>>,
    /// Steps whose target is an instruction so far.
    jumps: Vec<usize>,
    /// Steps of two tests, the target of whose second is an instruction so far.
    seconds: Vec<usize>,
    /// Tests for equality, with the instructions where they lead.
    cases: Vec<(u32, u32)>,
    /// Where the step of an instruction stands, if it does.
    places: Vec<Option<u32>>,
    /// Instructions that need a step.
    open: Vec<usize>,
}

/// A step, and the instruction whose step must follow.
type Following<M> = (Step<M>, Option<usize>);

impl<M: Loads> Builder<'_, M> {
    /// The instruction at `pc`, or where the jumps there lead.
    fn skip_jumps(&self, mut pc: usize) -> usize {
        while let Operation::Jump(skip) = self.ops[pc] {
            pc += 1 + skip as usize;
        }
        pc
    }

    /// Writes the steps from an instruction on, up to a return or an existing step.
    fn trace(&mut self, start: usize) {
        if self.places[start].is_some() {
            return;
        }
        let mut pc = start;
        loop {
            let target = self.skip_jumps(pc);
            let is_return = matches!(self.ops[target], Operation::RetImm(_) | Operation::RetA);
            if let Some(known) = self.places[target]
                && !is_return
            {
                if pc == start {
                    self.places[pc] = Some(known);
                } else {
                    // The previous step continues with the step after it.
                    self.place(pc);
                    let step = self.plain(handlers::go_to::<M>, target);
                    let step = self.jump(step, target);
                    self.steps.push(step);
                }
                return;
            }
            self.place(pc);
            self.place(target);
            let (step, next) = self.step(target);
            self.steps.push(step);
            match next {
                Some(next) => pc = next,
                None => return,
            }
        }
    }

    fn place(&mut self, pc: usize) {
        let place = self.steps.len() as u32;
        self.places[pc].get_or_insert(place);
    }

    /// The step, which will be the next one, with an instruction where it may lead.
    fn jump(&mut self, mut step: Step<M>, target: usize) -> Step<M> {
        self.jumps.push(self.steps.len());
        step.target = target as u32;
        step
    }

    fn plain(&self, handler: Handler<M>, pc: usize) -> Step<M> {
        Step {
            handler,
            target: 0,
            k: pc as u32,
            place: 0,
            mask: u32::MAX,
            shifts: (0, 0),
            slot: 0,
            header: 0,
        }
    }

    /// The step that begins with an instruction which isn't a jump.
    fn step(&mut self, pc: usize) -> Following<M> {
        let straight = |handler: Handler<M>| (self.plain(handler, pc), Some(pc + 1));
        match self.ops[pc] {
            Operation::RetImm(k) => {
                let step = self.plain(handlers::ret::<M>, pc);
                (Step { k, ..step }, None)
            }
            Operation::RetA => (self.plain(handlers::ret_a::<M>, pc), None),
            Operation::LoadData(load) => match M::fetched(load) {
                Some((fetched, place)) => {
                    let step = self.plain(handlers::any::<M>, pc);
                    self.value(fetched, Step { place, ..step }, pc + 1)
                }
                None => straight(handlers::any::<M>),
            },
            Operation::LoadMem(slot) => {
                let step = self.plain(handlers::any::<M>, pc);
                let (fetched, next) = self.slot(pc + 1);
                let step = Step {
                    place: slot,
                    ..step
                };
                self.value(fetched, step, next)
            }
            Operation::Extra(extra) => self.header(pc, extra),
            Operation::Branch { .. } | Operation::Alu(AluOp::And, Operand::K(_)) => {
                let step = self.plain(handlers::any::<M>, pc);
                self.value(Fetched::Keep, step, pc)
            }
            Operation::Tax => straight(handlers::load::<M, Keep, Tax, false>),
            Operation::Store(slot) => {
                let step = self.plain(handlers::load::<M, Keep, Store, false>, pc);
                let slot = slot as u8;
                (Step { slot, ..step }, Some(pc + 1))
            }
            Operation::Alu(alu, Operand::X) => self.with_x(pc, alu),
            _ => straight(handlers::any::<M>),
        }
    }

    /// A header's length, with the load behind it.
    fn header(&mut self, pc: usize, extra: M::Extra) -> Following<M> {
        let step = self.plain(handlers::any::<M>, pc);
        let load = match self.ops.get(pc + 1) {
            Some(Operation::LoadData(load)) => M::fetched(*load),
            _ => None,
        };
        let fetched = match load {
            Some((Fetched::IndexedByte, place)) => Some((Fetched::HeaderByte, place)),
            Some((Fetched::IndexedHalf, place)) => Some((Fetched::HeaderHalf, place)),
            _ => None,
        };
        match (M::header(extra), fetched) {
            (Some(header), Some((fetched, place))) => {
                let step = Step {
                    header,
                    place,
                    ..step
                };
                self.value(fetched, step, pc + 2)
            }
            _ => (step, Some(pc + 1)),
        }
    }

    /// The fetch of a value from a slot, with the instruction that follows it, and the next instruction.
    fn slot(&self, pc: usize) -> (Fetched, usize) {
        match self.ops.get(pc) {
            Some(Operation::Alu(AluOp::Add, Operand::X)) if M::COMPUTES_WITH_SLOTS => {
                (Fetched::SlotAddX, pc + 1)
            }
            Some(Operation::Alu(AluOp::Sub, Operand::X)) if M::COMPUTES_WITH_SLOTS => {
                (Fetched::SlotSubX, pc + 1)
            }
            _ => (Fetched::Slot, pc),
        }
    }

    /// The instructions after a value: masks and shifts, then its destination.
    fn value(&mut self, fetched: Fetched, mut step: Step<M>, mut pc: usize) -> Following<M> {
        if let Some(Operation::Alu(AluOp::And, Operand::K(mask))) = self.ops.get(pc) {
            step.mask = *mask;
            pc += 1;
        }
        match self.ops.get(pc) {
            Some(Operation::Alu(AluOp::Lsh, Operand::K(k))) => step.shifts.0 = *k as u8,
            Some(Operation::Alu(AluOp::Rsh, Operand::K(k))) => step.shifts.1 = *k as u8,
            _ => {}
        }
        let shifts = step.shifts != (0, 0);
        pc += usize::from(shifts);
        match self.ops.get(pc) {
            Some(Operation::Tax) => {
                step.handler = M::load_handler::<Tax>(fetched, shifts);
                (step, Some(pc + 1))
            }
            Some(Operation::Store(slot)) => {
                step.handler = M::load_handler::<Store>(fetched, shifts);
                step.slot = *slot as u8;
                (step, Some(pc + 1))
            }
            Some(Operation::Branch { .. } | Operation::Jump(_)) if !shifts => {
                self.tests(fetched, step, pc)
            }
            _ => {
                step.handler = M::load_handler::<Nothing>(fetched, shifts);
                (step, Some(pc))
            }
        }
    }

    /// Tests of a value.
    fn tests(&mut self, fetched: Fetched, mut step: Step<M>, pc: usize) -> Following<M> {
        let first = self.skip_jumps(pc);
        let Operation::Branch {
            test,
            operand,
            jt,
            jf,
        } = self.ops[first]
        else {
            step.handler = M::load_handler::<Nothing>(fetched, false);
            return (step, Some(first));
        };
        let [yes, no] = [jt, jf].map(|skip| first + 1 + usize::from(skip));
        let end = |pc| match self.ops[self.skip_jumps(pc)] {
            Operation::RetImm(k) => Some(k),
            _ => None,
        };
        let Operand::K(k) = operand else {
            let handlers = match fetched {
                Fetched::Keep if step.mask == u32::MAX => tested_with_x::<M, Keep>(test),
                Fetched::Slot if step.mask == u32::MAX => tested_with_x::<M, Slot>(test),
                _ => {
                    step.handler = M::load_handler::<Nothing>(fetched, false);
                    return (step, Some(first));
                }
            };
            if let (Some(value), Some(_)) = (end(yes), end(no)) {
                (step.handler, step.target) = (handlers[1], value);
                return (step, Some(no));
            }
            step.handler = handlers[0];
            return (self.jump(step, yes), Some(no));
        };
        let has_header = matches!(fetched, Fetched::HeaderByte | Fetched::HeaderHalf);
        let is_whole = step.mask == u32::MAX && !has_header;
        let (mut cases, other) = self.equalities(first, is_whole);
        if let [(k, target), (second, target_of_second)] = cases[..]
            && is_whole
        {
            step.handler = M::two_handler(fetched);
            (step.k, step.header) = (k, second);
            step.mask = target_of_second;
            self.seconds.push(self.steps.len());
            return (self.jump(step, target as usize), Some(other));
        }
        if cases.len() > 1 {
            cases.sort_unstable();
            step.handler = M::cases_handler(fetched);
            step.target = self.cases.len() as u32;
            step.k = cases.len() as u32;
            self.cases.extend(cases);
            return (step, Some(other));
        }
        let (ends, value, next) = match (end(yes), end(no)) {
            (Some(k), Some(_)) => (Ends::Both, k, no),
            (Some(k), None) => (Ends::If, k, no),
            (None, Some(k)) => (Ends::Unless, k, yes),
            (None, None) => (Ends::Neither, 0, no),
        };
        step.handler = M::test_handler(fetched, test, ends);
        (step.k, step.target) = (k, value);
        if ends == Ends::Neither {
            step = self.jump(step, yes);
        }
        (step, Some(next))
    }

    /// The consecutive tests for equality from here on, and the instruction after them: two, as the most likely ones
    /// may come first in a list, or if two precede them the rest of it.
    fn equalities(&self, first: usize, is_whole: bool) -> (Vec<(u32, u32)>, usize) {
        let is_rest = first > 0
            && matches!(
                self.ops[first - 1],
                Operation::Branch {
                    test: Test::Eq,
                    operand: Operand::K(_),
                    jf: 0,
                    ..
                }
            );
        let max = if is_rest || !is_whole { MAX_CASES } else { 2 };
        let mut pc = first;
        let mut cases: Vec<(u32, u32)> = Vec::new();
        while cases.len() < max
            && let Operation::Branch {
                test: Test::Eq,
                operand: Operand::K(k),
                jt,
                jf,
            } = self.ops[self.skip_jumps(pc)]
        {
            pc = self.skip_jumps(pc);
            // The first test of a constant decides.
            if !cases.iter().any(|(known, _)| *known == k) {
                cases.push((k, (pc + 1 + usize::from(jt)) as u32));
            }
            pc += 1 + usize::from(jf);
        }
        (cases, pc)
    }

    /// An operation with X, and where its result goes.
    fn with_x(&self, pc: usize, alu: AluOp) -> Following<M> {
        let step = self.plain(handlers::any::<M>, pc);
        let handlers: [Handler<M>; 3] = match alu {
            AluOp::Add => by_sink::<M, AddX>(),
            AluOp::Sub => by_sink::<M, SubX>(),
            AluOp::Or => by_sink::<M, OrX>(),
            _ => return (step, Some(pc + 1)),
        };
        let (sink, slot, next) = match self.ops.get(pc + 1) {
            Some(Operation::Tax) => (1, 0, pc + 2),
            Some(Operation::Store(slot)) => (2, *slot as u8, pc + 2),
            _ => (0, 0, pc + 1),
        };
        let handler = handlers[sink];
        (
            Step {
                handler,
                slot,
                ..step
            },
            Some(next),
        )
    }
}

/// The most tests for equality in one step: every instruction of a list may need a step with the rest of the list.
const MAX_CASES: usize = 64;

/// The functions of a fetch, by the destination of the value: A only, X too, a slot too.
fn by_sink<M: Machine, F: Fetch<M>>() -> [Handler<M>; 3] {
    [
        handlers::load::<M, F, Nothing, false>,
        handlers::load::<M, F, Tax, false>,
        handlers::load::<M, F, Store, false>,
    ]
}

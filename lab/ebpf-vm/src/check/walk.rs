//! All paths through a program, one after the other.
//!
//! At a branch both feasible sides are followed. Where paths meet, the state is compared with earlier ones there: a
//! path with more information than a completed one needs not be followed again, and a path that reaches one of its own
//! places with an equal state never ends. Recorded states share equal frames and stacks of frames.

use std::rc::Rc;

use super::access::Accesses;
use super::layout::Layout;
use super::range::{self, Range};
use super::state::{Frame, Region, StackError, Value};
use super::structure::Structure;
use super::{Options, Refusal, Rule};
use crate::insn::{Address, AluOp, Atomic, Op, Place, Reg, Size, Source, Width};
use crate::memory::{Argument, Helpers, MAX_FRAMES};
use crate::program::{Pc, Program, target};
use crate::semantics::{immediate, negate, swapped};

/// The most states that are kept for a place. Without the others more is followed, with the same result.
const MAX_STATES: usize = 32;

/// The largest distance of a pointer from its region.
const MAX_OFFSET: i64 = 1 << 29;

/// A state that came to a place.
struct Seen {
    frames: Vec<Rc<Frame>>,
    /// Where it is in the path, as long as it is there.
    at: usize,
    id: usize,
}

/// An instruction of the way that is followed, and the id of the state that was kept there.
#[derive(Clone, Copy)]
struct Passed {
    pc: Pc,
    seen: Option<usize>,
}

/// The side of a branch that is followed later.
struct Pending {
    pc: Pc,
    frames: Vec<Rc<Frame>>,
    path_len: usize,
}

/// The result of following all paths.
#[derive(Debug)]
pub(super) struct Walked {
    /// The memory accesses of instructions.
    pub(super) accesses: Accesses,
    /// How many frames were copied.
    #[cfg(test)]
    pub(super) copied: usize,
}

/// Follows all ways.
///
/// # Errors
/// The first rule that is broken.
pub(super) fn walk(
    program: &Program,
    structure: &Structure,
    layout: &Layout,
    helpers: &Helpers<'_>,
    options: &Options,
) -> Result<Walked, Refusal> {
    let mut main = Frame::new(0, None);
    main.registers[Reg::R1.index()] = Value::Pointer(Region::Context, 0, 0);
    let mut walker = Walker {
        program,
        layout,
        helpers,
        pc: Pc(0),
        here: Pc(0),
        frames: vec![Rc::new(main)],
        path: Vec::new(),
        pending: Vec::new(),
        accesses: Accesses::none(program.len()),
        copied: 0,
    };
    let mut seen: Vec<Vec<Seen>> = Vec::new();
    seen.resize_with(program.len(), Vec::new);
    let mut next_id = 0;
    for _ in 0..options.max_steps {
        let pc = walker.pc;
        let mut kept = None;
        walker.accesses.reach(pc, walker.frames.len());
        if structure.is_meeting[pc.0] {
            match walker.compare(&seen[pc.0], structure.live[pc.0]) {
                Compared::Again => return Err(walker.refusal(Rule::EndlessLoop)),
                Compared::Followed if walker.resume() => continue,
                Compared::Followed => return Ok(walker.finish()),
                Compared::New if walker.make_room(&mut seen[pc.0], structure.live[pc.0]) => {
                    seen[pc.0].push(Seen {
                        frames: walker.frames.clone(),
                        at: walker.path.len(),
                        id: next_id,
                    });
                    kept = Some(next_id);
                    next_id += 1;
                }
                Compared::New => {}
            }
        }
        let goes_on = walker.step().map_err(|rule| walker.refusal_at(pc, rule))?;
        walker.path.push(Passed { pc, seen: kept });
        if !goes_on && !walker.resume() {
            return Ok(walker.finish());
        }
    }
    Err(walker.refusal(Rule::TooComplex))
}

/// The comparison of a state with the recorded ones of the same place.
enum Compared {
    New,
    /// A state that covers this one was followed to its end.
    Followed,
    /// This way was here with an equal state.
    Again,
}

struct Walker<'w, 'h> {
    program: &'w Program,
    layout: &'w Layout,
    helpers: &'w Helpers<'h>,
    /// The instruction that comes next.
    pc: Pc,
    /// The instruction that is followed.
    here: Pc,
    frames: Vec<Rc<Frame>>,
    path: Vec<Passed>,
    pending: Vec<Pending>,
    accesses: Accesses,
    copied: usize,
}

type Checked<T> = Result<T, Rule>;

impl Walker<'_, '_> {
    fn finish(self) -> Walked {
        Walked {
            accesses: self.accesses,
            #[cfg(test)]
            copied: self.copied,
        }
    }

    fn refusal(&self, rule: Rule) -> Refusal {
        self.refusal_at(self.pc, rule)
    }

    fn refusal_at(&self, pc: Pc, rule: Rule) -> Refusal {
        let path = self.path.iter().map(|passed| passed.pc).collect();
        Refusal { pc, rule, path }
    }

    fn compare(&self, seen: &[Seen], live: u16) -> Compared {
        for before in seen {
            if covers(&before.frames, &self.frames, live) {
                if !self.is_on_path(before) {
                    return Compared::Followed;
                }
                if covers(&self.frames, &before.frames, live) {
                    return Compared::Again;
                }
            }
        }
        Compared::New
    }

    /// Drops the recorded states of a place that this state makes redundant; returns whether there is space for it.
    fn make_room(&self, seen: &mut Vec<Seen>, live: u16) -> bool {
        seen.retain(|before| {
            self.is_on_path(before) || !covers(&self.frames, &before.frames, live)
        });
        seen.len() < MAX_STATES
    }

    /// Whether the way that is followed came through a state.
    fn is_on_path(&self, state: &Seen) -> bool {
        let passed = self.path.get(state.at);
        passed.is_some_and(|passed| passed.seen == Some(state.id))
    }

    /// Goes on where a branch was left; false if there is none.
    fn resume(&mut self) -> bool {
        let Some(pending) = self.pending.pop() else {
            return false;
        };
        self.pc = pending.pc;
        self.frames = pending.frames;
        self.path.truncate(pending.path_len);
        true
    }

    fn frame(&self) -> &Frame {
        &self.frames[self.frames.len() - 1]
    }

    fn frame_mut(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        self.frame_at(last)
    }

    /// A frame of the state that is followed, apart from the states that are kept.
    fn frame_at(&mut self, index: usize) -> &mut Frame {
        let frame = &mut self.frames[index];
        self.copied += usize::from(Rc::get_mut(frame).is_none());
        Rc::make_mut(frame)
    }

    fn get(&self, reg: Reg) -> Checked<Value> {
        match self.frame().registers[reg.index()] {
            Value::Unset => Err(Rule::UnsetRegister(reg)),
            value => Ok(value),
        }
    }

    fn number(&self, reg: Reg) -> Checked<Range> {
        match self.get(reg)? {
            Value::Number(range) => Ok(range),
            _ => Err(Rule::PointerAsNumber),
        }
    }

    fn source(&self, source: Source) -> Checked<Value> {
        match source {
            Source::Imm(imm) => Ok(Value::Number(Range::exactly(immediate(imm)))),
            Source::Reg(reg) => self.get(reg),
        }
    }

    fn set(&mut self, reg: Reg, value: Value) {
        self.frame_mut().registers[reg.index()] = value;
    }

    fn set_number(&mut self, reg: Reg, range: Range) {
        self.set(reg, Value::Number(range));
    }

    /// Follows one instruction; false if the way ends.
    fn step(&mut self) -> Checked<bool> {
        let pc = self.pc;
        let op = self.program.op(pc).expect("jumps lead to instructions");
        self.here = pc;
        self.pc = Pc(pc.0 + op.places());
        match op {
            Op::Alu(width, alu, dst, source) => self.arithmetic(width, alu, dst, source)?,
            Op::Neg(width, dst) => {
                let all = Range::of_size(width.size());
                let range = self.number(dst)?.map(|value| negate(width, value), all);
                self.set_number(dst, range);
            }
            Op::MoveSigned(width, bits, dst, src) => {
                let range = range::sign_extended(width, bits, self.number(src)?);
                self.set_number(dst, range);
            }
            Op::Swap(swap, bits, dst) => {
                let endian = self.program.endian();
                let swap = |value| swapped(swap, bits, value, endian);
                let range = self.number(dst)?.map(swap, Range::of_bits(bits));
                self.set_number(dst, range);
            }
            Op::Load(size, dst, address) => {
                let value = self.load(size, address)?;
                self.set(dst, value);
            }
            Op::LoadSigned(size, dst, address) => match self.load(size, address)? {
                Value::Number(range) => {
                    let extended = range::sign_extended(Width::W64, size.bits(), range);
                    self.set_number(dst, extended);
                }
                _ => return Err(Rule::PointerAsNumber),
            },
            Op::LoadPacket(size, place) => self.load_packet(size, place)?,
            Op::StoreImm(size, address, imm) => {
                let value = Value::Number(Range::exactly(immediate(imm)));
                self.store(size, address, value)?;
            }
            Op::Store(size, address, src) => self.store(size, address, self.get(src)?)?,
            Op::Atomic(width, atomic, address, src) => self.atomic(width, atomic, address, src)?,
            Op::LoadImm64(dst, value) => self.set_number(dst, Range::exactly(value)),
            Op::Jump(skip) => self.pc = target(pc, i32::from(skip)),
            Op::JumpFar(skip) => self.pc = target(pc, skip),
            Op::Branch(..) => return self.branch(pc, op),
            Op::CallHelper(number) => self.call_helper(number)?,
            Op::CallLocal(skip) => self.call(target(pc, skip))?,
            Op::Exit => return self.exit(),
        }
        Ok(true)
    }

    fn arithmetic(&mut self, width: Width, alu: AluOp, dst: Reg, source: Source) -> Checked<()> {
        if alu == AluOp::Xor && source == Source::Reg(dst) {
            self.set_number(dst, Range::exactly(0));
            return Ok(());
        }
        let operand = self.source(source)?;
        if alu == AluOp::Mov && width == Width::W64 {
            self.set(dst, operand);
            return Ok(());
        }
        let before = match alu {
            AluOp::Mov => Value::ANY,
            _ => self.get(dst)?,
        };
        let value = match (before, operand) {
            (Value::Number(a), Value::Number(b)) => {
                Value::Number(range::of_arithmetic(width, alu, a, b))
            }
            (Value::Pointer(region, low, high), Value::Number(offset)) if width == Width::W64 => {
                let [least, most] = offset_bounds(offset)?;
                match alu {
                    AluOp::Add => moved(region, low + least, high + most)?,
                    AluOp::Sub => moved(region, low - most, high - least)?,
                    _ => return Err(Rule::PointerAsNumber),
                }
            }
            (Value::Number(offset), Value::Pointer(region, low, high))
                if width == Width::W64 && alu == AluOp::Add =>
            {
                let [least, most] = offset_bounds(offset)?;
                moved(region, low + least, high + most)?
            }
            _ => return Err(Rule::PointerAsNumber),
        };
        self.set(dst, value);
        Ok(())
    }

    /// The region of an address and the offsets that it may have.
    fn address(&self, Address { base, offset }: Address) -> Checked<(Region, [i64; 2])> {
        match self.get(base)? {
            Value::Pointer(region, low, high) => {
                let offset = i64::from(offset);
                Ok((region, [low + offset, high + offset]))
            }
            _ => Err(Rule::NumberAsAddress),
        }
    }

    /// Checks an access to the context.
    fn context(&self, [low, high]: [i64; 2], size: Size, is_write: bool) -> Checked<()> {
        match low == high && self.layout.permits(low, size, is_write) {
            true => Ok(()),
            false => Err(Rule::OutsideContext),
        }
    }

    fn load(&mut self, size: Size, address: Address) -> Checked<Value> {
        let (region, offsets) = self.address(address)?;
        self.accesses
            .note(self.here, region, offsets[0], size, false);
        match region {
            Region::Context => {
                self.context(offsets, size, false)?;
                Ok(Value::Number(Range::of_size(size)))
            }
            Region::Frame(frame) => {
                aligned(offsets, size)?;
                self.frames[frame].read(offsets, size).map_err(stack_rule)
            }
        }
    }

    fn store(&mut self, size: Size, address: Address, value: Value) -> Checked<()> {
        let (region, offsets) = self.address(address)?;
        self.accesses
            .note(self.here, region, offsets[0], size, true);
        let is_pointer = matches!(value, Value::Pointer(..));
        match region {
            Region::Context => {
                self.context(offsets, size, true)?;
                if is_pointer {
                    Err(Rule::PointerAsNumber)
                } else {
                    Ok(())
                }
            }
            Region::Frame(frame) => {
                aligned(offsets, size)?;
                if is_pointer && size != Size::D {
                    return Err(Rule::PointerAsNumber);
                }
                let written = self.frame_at(frame).write(offsets, size, value);
                written.map_err(stack_rule)
            }
        }
    }

    fn atomic(&mut self, width: Width, atomic: Atomic, address: Address, src: Reg) -> Checked<()> {
        self.number(src)?;
        if atomic == Atomic::CompareExchange {
            self.number(Reg::R0)?;
        }
        if let (Region::Context, _) = self.address(address)? {
            return Err(Rule::OutsideContext);
        }
        let size = width.size();
        let Value::Number(_) = self.load(size, address)? else {
            return Err(Rule::PointerAsNumber);
        };
        self.store(size, address, Value::Number(Range::of_size(size)))?;
        if atomic.fetches_to_source() {
            self.set_number(src, Range::of_size(size));
        }
        if atomic == Atomic::CompareExchange {
            self.set_number(Reg::R0, Range::of_size(size));
        }
        Ok(())
    }

    fn load_packet(&mut self, size: Size, place: Place) -> Checked<()> {
        let context = Value::Pointer(Region::Context, 0, 0);
        if self.get(Reg::R6)? != context || self.frames.len() > 1 {
            return Err(Rule::PacketNeedsContext);
        }
        if let Place::Indirect(reg, _) = place {
            self.number(reg)?;
        }
        self.lose_arguments();
        self.set_number(Reg::R0, Range::of_size(size));
        Ok(())
    }

    fn lose_arguments(&mut self) {
        self.frame_mut().registers[1..=5].fill(Value::Unset);
    }

    fn branch(&mut self, pc: Pc, op: Op) -> Checked<bool> {
        let Op::Branch(width, cond, dst, source, skip) = op else {
            unreachable!("the caller passes branches");
        };
        let a = self.number(dst)?;
        let Value::Number(b) = self.source(source)? else {
            return Err(Rule::PointerAsNumber);
        };
        let narrowed = |is_true| range::assuming(width, cond, is_true, a, b);
        let jumped = target(pc, i32::from(skip));
        match (narrowed(false), narrowed(true)) {
            (Some(no), Some(yes)) => {
                let other = self.frames.clone();
                self.narrow(dst, source, yes);
                let frames = std::mem::replace(&mut self.frames, other);
                self.pending.push(Pending {
                    pc: jumped,
                    frames,
                    path_len: self.path.len() + 1,
                });
                self.narrow(dst, source, no);
            }
            (Some(no), None) => self.narrow(dst, source, no),
            (None, Some(yes)) => {
                self.narrow(dst, source, yes);
                self.pc = jumped;
            }
            // The known intervals contradict each other: the side is infeasible.
            (None, None) => return Ok(false),
        }
        Ok(true)
    }

    /// Narrows the operands of a branch on one of its sides.
    fn narrow(&mut self, dst: Reg, source: Source, (a, b): (Range, Range)) {
        let (left, right) = (Value::Number(a), Value::Number(b));
        if let Source::Reg(reg) = source
            && self.frame().registers[reg.index()] != right
        {
            self.set(reg, right);
        }
        if self.frame().registers[dst.index()] != left {
            self.set(dst, left);
        }
    }

    fn call_helper(&mut self, number: i32) -> Checked<()> {
        self.accesses.note_helper();
        let signature = self.helpers.signature(number);
        let signature = signature.ok_or(Rule::UnknownHelper(number))?;
        let mut registers = Reg::ALL[1..=5].iter().copied();
        // Memory is written after all arguments are read.
        let mut written = Vec::new();
        for argument in signature {
            let reg = registers.next().expect("arguments have registers");
            let wrong = Rule::HelperArgument(reg);
            let value = self.get(reg)?;
            match (argument, value) {
                (Argument::Anything, _)
                | (Argument::Scalar, Value::Number(_))
                | (Argument::Context, Value::Pointer(Region::Context, 0, 0)) => {}
                (
                    Argument::Readable | Argument::Writable,
                    Value::Pointer(Region::Frame(frame), low, high),
                ) if low == high => {
                    let size = registers.next().expect("arguments have registers");
                    let wrong_size = Rule::HelperArgument(size);
                    let range = self.number(size).map_err(|_| wrong_size)?;
                    let most = i64::try_from(range.max)
                        .ok()
                        .filter(|most| *most <= MAX_OFFSET);
                    let most = most.filter(|_| range.min > 0).ok_or(wrong_size)?;
                    match argument {
                        Argument::Readable => {
                            let read = self.frames[frame].read_bytes(low, low + most);
                            read.map_err(stack_rule)?;
                        }
                        _ => written.push((frame, low, low + range.min as i64, low + most)),
                    }
                }
                _ => return Err(wrong),
            }
        }
        for (frame, start, sure, end) in written {
            let bytes = self.frame_at(frame).write_bytes(start, sure, end);
            bytes.map_err(stack_rule)?;
        }
        self.lose_arguments();
        self.set(Reg::R0, Value::ANY);
        Ok(())
    }

    fn call(&mut self, function: Pc) -> Checked<()> {
        if self.frames.len() == MAX_FRAMES {
            return Err(match self.is_pending(function) {
                true => Rule::Recursion,
                false => Rule::TooManyFrames,
            });
        }
        let mut callee = Frame::new(self.frames.len(), Some(self.pc));
        callee.registers[1..=5].copy_from_slice(&self.frame().registers[1..=5]);
        self.lose_arguments();
        self.set(Reg::R0, Value::Unset);
        self.frames.push(Rc::new(callee));
        self.pc = function;
        Ok(())
    }

    /// Whether a function has begun and not ended.
    fn is_pending(&self, function: Pc) -> bool {
        let is_called = |back: Pc| {
            let call = Pc(back.0 - 1);
            matches!(self.program.op(call), Some(Op::CallLocal(skip)) if target(call, skip) == function)
        };
        let mut returns = self.frames.iter().filter_map(|frame| frame.back);
        function == Pc(0) || returns.any(is_called)
    }

    fn exit(&mut self) -> Checked<bool> {
        let result = self.get(Reg::R0)?;
        let Some(back) = self.frame().back else {
            return match result {
                Value::Number(_) => Ok(false),
                _ => Err(Rule::ReturnsPointer),
            };
        };
        let ended = Region::Frame(self.frames.len() - 1);
        if matches!(result, Value::Pointer(region, ..) if region == ended) {
            return Err(Rule::ReturnsPointer);
        }
        self.frames.pop();
        for index in 0..self.frames.len() {
            if self.frames[index].points_to(ended) {
                self.frame_at(index).forget(ended);
            }
        }
        self.set(Reg::R0, result);
        self.pc = back;
        Ok(true)
    }
}

/// Whether every continuation that is safe with the frames `a` is safe with `b`, if only the registers in `live` of the
/// newest one are read.
fn covers(a: &[Rc<Frame>], b: &[Rc<Frame>], live: u16) -> bool {
    let last = a.len() - 1;
    let mut pairs = a.iter().zip(b).enumerate();
    a.len() == b.len()
        && pairs.all(|(index, (a, b))| {
            // Of a caller everything may be read.
            let live = if index == last { live } else { u16::MAX };
            Rc::ptr_eq(a, b) || a.covers(b, live)
        })
}

/// The least and the greatest distance that a number stands for.
fn offset_bounds(offset: Range) -> Checked<[i64; 2]> {
    let bounds = match offset.value() {
        Some(value) => [value as i64; 2],
        None => [offset.min, offset.max].map(|bound| i64::try_from(bound).unwrap_or(i64::MAX)),
    };
    match bounds
        .iter()
        .all(|bound| (-MAX_OFFSET..=MAX_OFFSET).contains(bound))
    {
        true => Ok(bounds),
        false => Err(Rule::UnboundedOffset),
    }
}

fn moved(region: Region, low: i64, high: i64) -> Checked<Value> {
    match low >= -MAX_OFFSET && high <= MAX_OFFSET {
        true => Ok(Value::Pointer(region, low, high)),
        false => Err(Rule::UnboundedOffset),
    }
}

fn aligned([low, high]: [i64; 2], size: Size) -> Checked<()> {
    let bytes = size.bytes() as i64;
    match bytes == 1 || low == high && low % bytes == 0 {
        true => Ok(()),
        false => Err(Rule::MisalignedStack),
    }
}

const fn stack_rule(error: StackError) -> Rule {
    match error {
        StackError::Outside => Rule::OutsideStack,
        StackError::Unset => Rule::UnsetStack,
        StackError::PartOfPointer => Rule::PartOfPointer,
    }
}

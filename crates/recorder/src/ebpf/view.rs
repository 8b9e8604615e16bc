//! A view of calls in progress, by programs at the kernel's tracepoints: no task is stopped.
//!
//! [The recorder](super::Recorder)'s limits apply. Also, memory that isn't loaded when a call is made, texts beyond 255
//! bytes, lists of arguments, and bytes that calls of 32-bit programs fill are shown by their addresses.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tamis_abi::{SeccompData, restart};
use tamis_bpf::Program;
use tamis_kernel::Ended;
use tamis_kernel::bpf::{Array, Attached, Ring};
use tamis_kernel::tracee::SignalInfo;

use super::programs::{INTERFACES, LOST, ROWS};
use super::tasks::Tasks;
use super::view_programs::{
    CALL, CREATED, DENIED, ENDED, ENTERED, FIXED_SHIFT, FIXED_UNIT, INFO, LEFT, MAX_PIECE_BYTES,
    OUTPUT_SHIFT, PIECE_BYTES, PIECE_COUNT, PIECES, PROCESS, RENUMBERED, RESULT, SIGNALLED,
    THREADS, TIME, TRACEPOINTS, all, assemble,
};
use super::{MissingColumn, Options, Start, Unavailable, call, facts, load, rows};
use crate::view::{CallTracker, Outcome, PieceLength, ReadMemory, Sink};

/// The size of the buffer for unread records.
const RING_BYTES: u32 = 1 << 24;

/// Programs at the kernel's tracepoints that show the calls of chosen tasks. Dropping this removes the programs.
#[derive(Debug)]
pub struct Viewer {
    _attached: Vec<Attached>,
    missing: Vec<MissingColumn>,
    tasks: Tasks,
    ring: Ring,
    _wanted: Array,
    /// Thread-group leaders that have ended before other threads of their process.
    leaders: BTreeSet<i32>,
    lost: u64,
}

impl Viewer {
    /// The maximum number of bytes shown of a text.
    pub const MAX_BYTES: usize = MAX_PIECE_BYTES - 1;

    /// Loads and attaches the programs, which show the calls for which this filter returns `notify`.
    ///
    /// # Errors
    /// See [`Unavailable`].
    pub fn new(filter: &Program) -> Result<Viewer, Unavailable> {
        let (facts, ids) = facts(Options::default(), TRACEPOINTS)?;
        let memory = Unavailable::Memory;
        let tasks = Tasks::new(facts.tasks).map_err(memory)?;
        let ring = Ring::new(RING_BYTES).map_err(memory)?;
        let wanted = wanted(Array::new(ROWS * INTERFACES).map_err(memory)?);
        let maps = [
            ("states", tasks.states.descriptor()),
            ("totals", tasks.totals.descriptor()),
            ("ring", ring.descriptor()),
            ("wanted", wanted.descriptor()),
        ];
        let texts = all(filter).map_err(Unavailable::Bug)?;
        let programs = load::programs(TRACEPOINTS, ids, texts);
        let (attached, missing) = load::attach(programs, |text| assemble(text, &facts, &maps))?;
        Ok(Viewer {
            _attached: attached,
            missing,
            tasks,
            ring,
            _wanted: wanted,
            leaders: BTreeSet::new(),
            lost: 0,
        })
    }

    /// The events that aren't shown, because this kernel rejects their programs.
    pub fn missing(&self) -> &[MissingColumn] {
        &self.missing
    }

    /// Shows the calls of a task and its descendants, like [`Recorder::record`](super::Recorder::record).
    pub fn record(&self, task: i32, start: Start) -> bool {
        self.tasks.record(task, start)
    }

    /// The number of chosen tasks that live.
    pub fn live(&self) -> u64 {
        self.tasks.live()
    }

    /// Reports the events since the last call.
    pub fn tell<S: Sink>(&mut self, following: &mut CallTracker<S>) {
        let leaders = &mut self.leaders;
        self.ring.drain(|record| {
            if let Some(event) = Event::parse(record) {
                event.tell(following, leaders);
            }
        });
        let lost = self.tasks.total(LOST);
        if lost != self.lost {
            self.lost = lost;
            following.sink().lost(lost);
        }
    }
}

/// A record.
struct Event<'r> {
    kind: u32,
    task: i32,
    time: Duration,
    bytes: &'r [u8],
}

impl<'r> Event<'r> {
    fn parse(bytes: &'r [u8]) -> Option<Event<'r>> {
        Some(Event {
            kind: half(bytes, 0)?,
            task: half(bytes, 4)? as i32,
            time: Duration::from_nanos(word(bytes, TIME)?),
            bytes,
        })
    }

    fn tell<S: Sink>(&self, following: &mut CallTracker<S>, leaders: &mut BTreeSet<i32>) {
        let read = |address: u64, buffer: &mut [u8]| self.read(address, buffer);
        let result = word(self.bytes, RESULT).unwrap_or(0) as i64;
        let outcome = match result {
            restart::BLOCK..=restart::SYS => Outcome::Interrupted(result),
            _ => Outcome::Returned(result),
        };
        match self.kind {
            ENTERED => {
                if let Some(call) = self.call() {
                    following.entered_at(self.task, &call, &read, self.time);
                }
            }
            LEFT => following.left_at(self.task, outcome, Some(&read), self.time),
            DENIED => {
                if let Some(call) = self.call() {
                    following.denied(self.task, &call, &read, result);
                }
            }
            CREATED => {
                leaders.remove(&self.task);
                following.created(self.task);
            }
            ENDED => {
                let ended = Ended::of_status(result as i32);
                self.ended(following, leaders, ended.unwrap_or(Ended::Exited(0)));
            }
            SIGNALLED => {
                let info = self.bytes.get(INFO..).and_then(SignalInfo::of_bytes);
                if let Some(info) = info {
                    following.signalled(self.task, &info);
                }
            }
            RENUMBERED => {
                leaders.remove(&self.task);
                following.renumbered(self.task, result as i32);
            }
            _ => {}
        }
    }

    /// Reports the end of a task. A leader that ends before other threads of its process counts as ended with the last
    /// of them, whose status is that of the process, unless one of them executes a program and takes its number.
    fn ended<S: Sink>(
        &self,
        following: &mut CallTracker<S>,
        leaders: &mut BTreeSet<i32>,
        how: Ended,
    ) {
        let process = half(self.bytes, PROCESS).unwrap_or(0) as i32;
        let others = half(self.bytes, THREADS).unwrap_or(0);
        if self.task == process && others > 0 {
            following.left_at(self.task, Outcome::Never, None, self.time);
            leaders.insert(process);
            return;
        }
        following.ended(self.task, how);
        if others == 0 && leaders.remove(&process) && process != self.task {
            following.ended(process, how);
        }
    }

    /// The call in the record.
    fn call(&self) -> Option<SeccompData> {
        let mut args = [0; 6];
        for (place, arg) in args.iter_mut().enumerate() {
            *arg = word(self.bytes, CALL + 16 + 8 * place)?;
        }
        Some(SeccompData {
            nr: half(self.bytes, CALL)?,
            arch: half(self.bytes, CALL + 4)?,
            ip: word(self.bytes, CALL + 8)?,
            args,
        })
    }

    /// Reads the memory of the task that the record contains.
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        for piece in 0..PIECE_COUNT {
            let start = PIECES + piece * PIECE_BYTES;
            let (Some(first), Some(len)) = (word(self.bytes, start), word(self.bytes, start + 8))
            else {
                break;
            };
            // Negative lengths are errors.
            let Ok(mut len) = usize::try_from(len as i64) else {
                continue;
            };
            let bytes = &self.bytes[start + 16..];
            // A truncated text also ends with a zero byte.
            if len == MAX_PIECE_BYTES && bytes.get(len - 1) == Some(&0) {
                len -= 1;
            }
            let bytes = bytes.get(..len).unwrap_or_default();
            let skip = address.checked_sub(first).map(|skip| skip as usize);
            if let Some(bytes) = skip.and_then(|skip| bytes.get(skip..))
                && !bytes.is_empty()
            {
                let count = bytes.len().min(buffer.len());
                buffer[..count].copy_from_slice(&bytes[..count]);
                return count;
            }
        }
        0
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Fills the array with the pieces of memory that programs copy for each call.
fn wanted(array: Array) -> Array {
    for (interface, row) in rows() {
        let (arch, nr) = call(interface, row as u32);
        array[ROWS * interface + row]
            .store(word_of(&crate::view::wanted(arch, nr)), Ordering::Relaxed);
    }
    array
}

/// The array's word for these pieces.
fn word_of(wanted: &ReadMemory) -> u64 {
    let fixed = |len: PieceLength| match len {
        PieceLength::Fixed(bytes) => bytes.div_ceil(FIXED_UNIT) as u64,
        _ => 0,
    };
    let mut word = 0;
    for (piece, (place, len)) in wanted.pieces.iter().take(PIECE_COUNT).enumerate() {
        let register = match len {
            PieceLength::Register(len) => u64::from(len + 1),
            _ => 0,
        };
        word |= (u64::from(place + 1) | register << 8) << (16 * piece);
        word |= fixed(*len) << (FIXED_SHIFT + 8 * piece as u32);
    }
    if let Some((place, len)) = wanted.output {
        word |= u64::from(place + 1) << OUTPUT_SHIFT;
        word |= fixed(len) << (FIXED_SHIFT + 8 * PIECE_COUNT as u32);
    }
    word
}

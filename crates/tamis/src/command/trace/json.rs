//! Events as lines of JSON.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tamis_abi::Arch;
use tamis_kernel::Ended;
use tamis_kernel::tracee::SignalInfo;
use tamis_recorder::view::{self, Argument, DecodedValue, EnteredCall, Outcome, Sink};
use tamis_report::trace::{
    TraceDetails, TraceEvent, TracedArgument, TracedCall, TracedData, TracedValue,
};

/// Writes a line for each event, and for each call when it returns. The first error of writing is kept and ends the
/// output.
pub(super) struct JsonLines<W> {
    out: W,
    error: Option<io::Error>,
}

impl<W: Write> JsonLines<W> {
    pub(super) const fn new(out: W) -> JsonLines<W> {
        JsonLines { out, error: None }
    }

    fn put(&mut self, event: &'static str, time: SystemTime, task: i32, details: TraceDetails) {
        let event = TraceEvent {
            event,
            time_us: micros(time.duration_since(UNIX_EPOCH).unwrap_or_default()),
            task,
            details,
        };
        if self.error.is_none() {
            let line = event.line().map_err(io::Error::from);
            let written = line.and_then(|line| self.out.write_all((line + "\n").as_bytes()));
            self.error = written.err();
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl<W: Write> Sink for JsonLines<W> {
    fn entered(&mut self, _task: i32, _call: &EnteredCall) {}

    fn left(&mut self, task: i32, call: &EnteredCall, outcome: Outcome, took: Duration) {
        let (arch, nr) = (call.data.arch, call.data.nr);
        let errno = outcome.errno();
        let traced = TracedCall {
            arch: Arch::of_call(arch, nr)
                .map_or_else(|| format!("{arch:#x}"), |arch| arch.name().to_owned()),
            nr,
            call: call.name.to_string(),
            args: call.args.iter().map(argument).collect(),
            result: match outcome {
                Outcome::Returned(result) => Some(result),
                Outcome::Interrupted(_) | Outcome::Never => None,
            },
            errno,
            error: errno.and_then(view::error_name),
            is_interrupted: matches!(outcome, Outcome::Interrupted(_)),
            is_denied: call.is_denied,
            note: call.note.as_deref().map(str::to_owned),
            took_us: micros(took),
        };
        self.put("call", call.time, task, TraceDetails::Call(traced));
    }

    fn created(&mut self, _task: i32) {}

    fn signalled(&mut self, task: i32, signal: &SignalInfo) {
        let details = TraceDetails::Signal {
            number: signal.signal(),
            name: view::signal_name(signal.signal()),
            info: view::signal_info(signal),
        };
        self.put("signal", SystemTime::now(), task, details);
    }

    fn ended(&mut self, task: i32, how: Ended) {
        let (event, details) = match how {
            Ended::Exited(code) => ("exited", TraceDetails::Exited { code }),
            Ended::Signalled {
                signal,
                core_dumped,
            } => {
                let details = TraceDetails::Killed {
                    number: signal,
                    name: view::signal_name(signal),
                    core_dumped,
                };
                ("killed", details)
            }
        };
        self.put(event, SystemTime::now(), task, details);
    }

    fn superseded(&mut self, task: i32, by: i32) {
        let details = TraceDetails::Superseded { by };
        self.put("superseded", SystemTime::now(), task, details);
    }

    fn lost(&mut self, count: u64) {
        self.put("lost", SystemTime::now(), 0, TraceDetails::Lost { count });
    }

    fn tick(&mut self) {
        if self.error.is_none() {
            self.error = self.out.flush().err();
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.tick();
        self.error.take().map_or(Ok(()), Err)
    }
}

fn argument(argument: &Argument) -> TracedArgument {
    TracedArgument {
        name: argument.name,
        raw: format!("{:#x}", argument.raw),
        value: value(&argument.shown),
    }
}

fn value(shown: &DecodedValue) -> TracedValue {
    let whole = |kind, value| TracedValue {
        kind,
        value,
        is_cut: false,
    };
    match shown {
        DecodedValue::Signed(number) => whole("number", TracedData::Signed(*number)),
        DecodedValue::Unsigned(number)
        | DecodedValue::Bits(number)
        | DecodedValue::Mode(number) => whole("number", TracedData::Unsigned(*number)),
        DecodedValue::Pointer(0) => whole("pointer", TracedData::Nothing),
        DecodedValue::Pointer(address) | DecodedValue::Environment(address, _) => {
            whole("pointer", TracedData::Text(format!("{address:#x}")))
        }
        DecodedValue::Symbol(text) => whole("symbol", TracedData::Text(text.to_string())),
        DecodedValue::Address(text) => whole("address", TracedData::Text(text.to_string())),
        DecodedValue::Structure(text) => whole("structure", TracedData::Text(text.to_string())),
        DecodedValue::Bytes { bytes, is_cut } => TracedValue::of_bytes(bytes, *is_cut),
        DecodedValue::Strings { strings, is_cut } => TracedValue {
            kind: "list",
            value: TracedData::List(
                strings
                    .iter()
                    .map(|(bytes, is_cut)| TracedValue::of_bytes(bytes, *is_cut))
                    .collect(),
            ),
            is_cut: *is_cut,
        },
        DecodedValue::Later | DecodedValue::LaterLen(_) => whole("pointer", TracedData::Nothing),
    }
}

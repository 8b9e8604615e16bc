//! Denied calls as lines of JSON, each written before the call gets its error.

use std::fs;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tamis_abi::{Action, SeccompData, call};
use tamis_deploy::owner::Owner;
use tamis_kernel::listener::Notification;
use tamis_kernel::run::{Ended, RunResult};
use tamis_report::denial_event::{CallEntry, DenialDetails, DenialEvent, DeniedCall};
use tamis_report::denied::essence;
use tamis_report::explain;
use tamis_report::run::RunReport;
use tamis_session::Policy;

use crate::cli::Failure;

/// A writer of lines. The first error of writing is kept and ends the output, not the command.
pub(super) struct DenialLines(Mutex<State>);

struct State {
    out: Box<dyn Write + Send>,
    error: Option<io::Error>,
}

impl DenialLines {
    pub(super) fn new(out: Box<dyn Write + Send>) -> DenialLines {
        DenialLines(Mutex::new(State { out, error: None }))
    }

    /// Writes a call that is waiting for its error.
    pub(super) fn denied(
        &self,
        notification: &Notification,
        action: Action,
        policy: Option<&Policy>,
        shown: Option<String>,
    ) {
        let (data, thread) = (&notification.call, notification.thread);
        let owner = Owner::from_process(thread);
        let program = fs::read(format!("/proc/{thread}/comm")).ok();
        let program = program.map(|name| String::from_utf8_lossy(&name).trim_end().to_owned());
        let reason = policy.map(|own| explain::reason(&own.name, &own.ruleset, &own.sources, data));
        let text = shown.unwrap_or_else(|| call::describe_briefly(&essence(data)));
        self.call(
            "denied",
            DeniedCall {
                thread,
                program,
                entry: Some(CallEntry::new(data, text)),
                action: Some(action.to_string()),
                reason,
                unit: owner.unit,
                container: owner.container,
                pod: owner.pod,
            },
        );
    }

    /// Writes kills, traps and the end of the command.
    ///
    /// # Errors
    /// If a line could not be written.
    pub(super) fn end(self, document: &RunReport, result: &RunResult) -> Result<(), Failure> {
        for (entry, killed) in document.killed.iter().zip(&result.killed) {
            let data = killed.call.as_ref();
            let (action, reason) = (entry.action.clone(), entry.reason.clone());
            let text = entry.call.clone();
            self.call(
                "killed",
                ended_call(killed.thread, data, text, action, reason),
            );
        }
        for (entry, trapped) in document.trapped.iter().zip(&result.trapped) {
            let (text, reason) = (Some(entry.call.clone()), entry.reason.clone());
            let action = Some(format!("trap({})", trapped.data));
            let data = Some(&trapped.call);
            self.call(
                "trapped",
                ended_call(trapped.thread, data, text, action, reason),
            );
        }
        let (exit_code, signal) = match result.ended {
            Ended::Exited(code) => (Some(code), None),
            Ended::Signalled { signal, .. } => (None, Some(signal)),
        };
        self.put("ended", DenialDetails::Ended { exit_code, signal });
        let mut state = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let flushed = state.out.flush();
        match state.error.or(flushed.err()) {
            Some(error) => Err(Failure::environment(format!(
                "cannot write the denied calls: {error}"
            ))),
            None => Ok(()),
        }
    }

    fn call(&self, event: &'static str, call: DeniedCall) {
        self.put(event, DenialDetails::Call(Box::new(call)));
    }

    fn put(&self, event: &'static str, details: DenialDetails) {
        let time = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let event = DenialEvent {
            event,
            time_us: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
            details,
        };
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.error.is_none() {
            let line = event.line().map_err(io::Error::from);
            let written = line.and_then(|line| state.out.write_all((line + "\n").as_bytes()));
            state.error = written.err();
        }
    }
}

/// A call whose caller has ended or continued.
fn ended_call(
    thread: i32,
    data: Option<&SeccompData>,
    text: Option<String>,
    action: Option<String>,
    reason: Option<String>,
) -> DeniedCall {
    DeniedCall {
        thread,
        program: None,
        entry: data
            .zip(text)
            .map(|(data, text)| CallEntry::new(data, text)),
        action,
        reason,
        unit: None,
        container: None,
        pod: None,
    }
}

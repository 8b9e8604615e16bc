//! Calls that filters answered with an error or a signal, each once: `tamis run --explain-denied` and `tamis explain
//! --audit`.

use std::fmt;

use serde::Serialize;
use tamis_abi::{Action, ActionKind, Arch, Nr, SeccompData, call, syscall};
use tamis_diag::escape::on_one_line;
use tamis_export::tamis as export;
use tamis_profile::interest;

use crate::entry::counted;

/// The action of calls without a recorded one.
const UNKNOWN: &str = "unknown";

/// Calls that were denied with the same action and reason.
#[derive(Clone, Serialize)]
pub struct DeniedEntry {
    /// The first call; arguments that are addresses, descriptors and lengths are omitted unless the data behind them is
    /// known, such as a path.
    pub call: String,
    /// Some of the other calls, as far as they are known to differ.
    pub others: Vec<String>,
    /// Whether there are further calls.
    pub has_more_others: bool,
    pub action: String,
    pub count: u64,
    /// The programs that made the calls, if known.
    pub programs: Vec<String>,
    /// The part of a policy that decided.
    pub reason: Option<String>,
    /// The change that allows the call.
    pub addition: Option<AdditionEntry>,
    /// The reason for the lack of a proposal.
    pub no_addition: Option<String>,
}

/// A change of a policy that allows a call.
#[derive(Clone, Serialize)]
pub struct AdditionEntry {
    /// The change as a unified diff.
    pub diff: String,
    /// The other calls that it allows.
    pub opens: String,
}

/// Denied calls from an audit log.
#[derive(Serialize)]
pub struct AuditReport {
    pub denied: Vec<DeniedEntry>,
    /// Records of calls that were allowed and logged.
    pub logged: u64,
}

/// A call without the arguments that are irrelevant to its denial.
///
/// ```
/// use tamis_abi::{Arch, call};
/// use tamis_report::denied::essence;
/// let data = call::parse("x86_64 openat(3, 0x7f00, O_RDONLY|O_CLOEXEC)", Arch::X86_64).unwrap();
/// assert_eq!(call::describe_briefly(&essence(&data)), "x86_64 openat(flags=O_CLOEXEC)");
/// ```
#[must_use]
pub fn essence(data: &SeccompData) -> SeccompData {
    let mut essence = SeccompData {
        ip: 0,
        args: [0; 6],
        ..*data
    };
    let Some(arch) = Arch::of_call(data.arch, data.nr) else {
        return essence;
    };
    let name = syscall::name(arch, Nr(data.nr)).unwrap_or_default();
    for argument in interest::arguments(arch, name) {
        let index = argument.index.index();
        essence.args[index] = data.args[index] & argument.width.max();
    }
    essence
}

impl DeniedEntry {
    /// The entry of calls that begin with this one and got this action.
    pub fn new(data: &SeccompData, action: Action, count: u64) -> DeniedEntry {
        DeniedEntry {
            call: call::describe_briefly(&essence(data)),
            action: answer(data, action),
            others: Vec::new(),
            has_more_others: false,
            count,
            programs: Vec::new(),
            reason: None,
            addition: None,
            no_addition: None,
        }
    }

    /// The entry with a change, or with the reason for its lack.
    #[must_use]
    pub fn with_addition(self, tried: Result<AdditionEntry, String>) -> DeniedEntry {
        let (addition, no_addition) = match tried {
            Ok(addition) => (Some(addition), None),
            Err(reason) => (None, Some(reason)),
        };
        DeniedEntry {
            addition,
            no_addition,
            ..self
        }
    }

    /// The entry of calls that begin with this one and got an action with unknown data, or an unknown action.
    pub fn without_data(data: &SeccompData, kind: Option<ActionKind>, count: u64) -> DeniedEntry {
        DeniedEntry {
            action: kind.map_or(UNKNOWN, ActionKind::name).to_owned(),
            ..DeniedEntry::new(data, Action::KILL_PROCESS, count)
        }
    }
}

/// An action with the name of its error.
fn answer(data: &SeccompData, action: Action) -> String {
    let arch = Arch::of_call(data.arch, data.nr);
    let named = arch.and_then(|arch| export::answer(action, arch).ok());
    named.unwrap_or_else(|| action.to_string())
}

impl fmt::Display for DeniedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = counted(self.count, "time");
        match self.action.as_str() {
            UNKNOWN => write!(f, "denied or logged {times}: {}", self.call)?,
            action => write!(f, "denied {times}: {} -> {action}", self.call)?,
        }
        let programs = self.programs.iter();
        // Programs choose their names.
        let programs: Vec<_> = programs.map(|name| on_one_line(name)).collect();
        if !programs.is_empty() {
            write!(f, ", called by {}", programs.join(", "))?;
        }
        writeln!(f)?;
        for other in &self.others {
            writeln!(f, "  also {other}")?;
        }
        if self.has_more_others {
            writeln!(f, "  and others")?;
        }
        if let Some(reason) = &self.reason {
            writeln!(f, "  {reason}")?;
        }
        if let Some(addition) = &self.addition {
            writeln!(f, "  to allow it:")?;
            for line in addition.diff.lines() {
                writeln!(f, "    {line}")?;
            }
            writeln!(f, "  which allows {}", addition.opens)?;
        }
        if let Some(reason) = &self.no_addition {
            writeln!(f, "  no line to add: {reason}")?;
        }
        Ok(())
    }
}

impl fmt::Display for AuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, denied) in self.denied.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{denied}")?;
        }
        if self.denied.is_empty() {
            writeln!(f, "no record of a denied call")?;
        }
        if self.logged > 0 {
            writeln!(
                f,
                "{} of calls that were allowed",
                counted(self.logged, "record")
            )?;
        }
        Ok(())
    }
}

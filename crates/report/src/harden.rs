//! The changed filters of a service: `tamis harden`.

use std::fmt;

use serde::Serialize;

use crate::entry::counted;

/// A hardened service.
#[derive(Serialize)]
pub struct HardenReport {
    pub unit: String,
    /// The release of systemd whose rules apply to the unit.
    pub systemd: String,
    /// The files of the unit, in the order in which they apply.
    pub files: Vec<String>,
    /// The settings that are part of the filter.
    pub carried: Vec<String>,
    /// The settings that stay, with their filters.
    pub kept: Vec<String>,
    pub notes: Vec<String>,
    /// The number of filters before and after.
    pub filters_before: usize,
    pub filters_after: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessEntry>,
    /// The filters of the process; absent without a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<StackEntry>,
    pub filter: StackEntry,
    /// `/proc/PID/status` of the commands: all that differ, otherwise one of each kind.
    pub status: Vec<CommandStatus>,
    /// The number of command lines that run under the filter.
    pub commands: usize,
    pub is_written: bool,
    pub filter_path: String,
    pub drop_in_path: String,
    pub drop_in: String,
}

/// The process that the unit was compared with.
#[derive(Serialize)]
pub struct ProcessEntry {
    pub pid: i32,
    /// Whether the filters agree with the unit for every call.
    pub is_equal: bool,
}

/// The status of a command's process by systemd's rules, for the unit alone and with the drop-in.
#[derive(Serialize)]
pub struct CommandStatus {
    /// The directive and the program.
    pub command: String,
    /// The versions of systemd with these rules.
    pub systemd: String,
    pub before: StatusEntry,
    pub after: StatusEntry,
}

/// Fields of `/proc/PID/status`; capabilities are hexadecimal.
#[derive(Serialize, Clone, PartialEq, Eq)]
pub struct StatusEntry {
    pub no_new_privs: u8,
    pub seccomp: u8,
    pub cap_inh: String,
    pub cap_prm: String,
    pub cap_eff: String,
    pub cap_bnd: String,
    pub cap_amb: String,
    /// The bits of `PR_GET_SECUREBITS`.
    pub secure_bits: u32,
}

impl StatusEntry {
    /// The fields with the kernel's names.
    fn fields(&self) -> [(&'static str, String); 7] {
        [
            ("NoNewPrivs", self.no_new_privs.to_string()),
            ("CapInh", self.cap_inh.clone()),
            ("CapPrm", self.cap_prm.clone()),
            ("CapEff", self.cap_eff.clone()),
            ("CapBnd", self.cap_bnd.clone()),
            ("CapAmb", self.cap_amb.clone()),
            ("secure bits", format!("{:#x}", self.secure_bits)),
        ]
    }
}

impl fmt::Display for CommandStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.command)?;
        let pairs = self.before.fields().into_iter().zip(self.after.fields());
        let mut comma = "";
        for ((name, before), (_, after)) in pairs.filter(|(before, after)| before != after) {
            write!(f, "{comma} {name} {before} -> {after}")?;
            comma = ",";
        }
        match comma {
            "" => write!(
                f,
                " NoNewPrivs {} and capabilities as before",
                self.after.no_new_privs
            ),
            _ => write!(f, " with systemd {}", self.systemd),
        }
    }
}

/// The cost of filters.
#[derive(Serialize)]
pub struct StackEntry {
    pub filters: usize,
    pub length_insns: usize,
    pub calls: Vec<CallEntry>,
}

/// The number of executed instructions; 0 if the kernel runs no filter for the call.
#[derive(Serialize)]
pub struct CallEntry {
    pub call: String,
    pub steps: u32,
}

impl fmt::Display for StackEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filters = counted(self.filters, "filter");
        let insns = counted(self.length_insns, "instruction");
        write!(f, "{filters}, {insns}; steps of")?;
        for (index, entry) in self.calls.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma} {} {}", entry.call, entry.steps)?;
        }
        Ok(())
    }
}

impl fmt::Display for HardenReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commands = counted(self.commands, "command");
        let before = counted(self.filters_before, "filter");
        let after = self.filters_after;
        writeln!(
            f,
            "{}: {before} -> {after}, {commands} under the new one",
            self.unit
        )?;
        writeln!(f, "  read as by systemd {}", self.systemd)?;
        match &self.process {
            Some(ProcessEntry {
                pid,
                is_equal: true,
            }) => {
                writeln!(
                    f,
                    "  proved equivalent to the unit and to the filters of process {pid}"
                )?;
            }
            Some(ProcessEntry {
                pid,
                is_equal: false,
            }) => writeln!(
                f,
                "  the filters of process {pid} are not what the unit says: the filter is as strict as both"
            )?,
            None => writeln!(
                f,
                "  proved equivalent to the unit; compared with no process"
            )?,
        }
        if let Some(before) = &self.before {
            writeln!(f, "  before  {before}")?;
        }
        writeln!(f, "  filter  {}", self.filter)?;
        writeln!(f, "  in it   {}", self.carried.join(", "))?;
        if !self.kept.is_empty() {
            writeln!(
                f,
                "  stay, with filters of their own: {}",
                self.kept.join(", ")
            )?;
        }
        for status in &self.status {
            writeln!(f, "  status  {status}")?;
        }
        for note in &self.notes {
            writeln!(f, "  note: {note}")?;
        }
        match self.is_written {
            true => {
                writeln!(f, "  written {}, {}", self.filter_path, self.drop_in_path)?;
                writeln!(
                    f,
                    "  then    systemctl daemon-reload && systemctl restart {}",
                    self.unit
                )
            }
            false => write!(f, "{}:\n{}", self.drop_in_path, self.drop_in),
        }
    }
}

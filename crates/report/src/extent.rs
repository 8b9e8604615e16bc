//! What a command examined: the readings of policies that depend on machine, capabilities and kernel.

use serde::Serialize;

/// The readings that were examined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Extent {
    /// The compared readings.
    pub readings: Readings,
    /// The description of the first reading; absent if there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// Whether the readings differ in their machines.
    #[serde(skip)]
    pub has_arches: bool,
    /// Whether the readings also depend on capabilities and kernels.
    #[serde(skip)]
    pub has_capabilities: bool,
}

/// A set of readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Readings {
    /// The only reading of the inputs.
    Only,
    /// The reading chosen by options.
    Chosen,
    /// All readings that the entries of a profile distinguish.
    All,
    /// Only the default reading, that of this machine.
    Default,
}

impl Extent {
    /// The extent of an input with one reading.
    pub fn only() -> Extent {
        Extent {
            readings: Readings::Only,
            first: None,
            has_arches: false,
            has_capabilities: false,
        }
    }

    /// The qualification of a positive answer.
    pub fn behind_answer(&self) -> String {
        match (self.readings, &self.first) {
            (Readings::All, _) => match (self.has_arches, self.has_capabilities) {
                (true, true) => ", for every architecture, capability and kernel that entries name",
                (false, true) => ", for every capability and kernel that entries name",
                _ => ", for every architecture",
            }
            .to_owned(),
            (_, None) => String::new(),
            (_, Some(first)) => format!(", for {first}"),
        }
    }

    /// A line about readings that were not compared; empty without any.
    pub fn left_out(&self) -> String {
        self.other_readings("compared", "compares")
            .map_or_else(String::new, |line| line + "\n")
    }

    /// The readings that were not examined, as a clause; `done` and `does` are the verb in the past and the present tense.
    pub fn other_readings(&self, done: &str, does: &str) -> Option<String> {
        match (self.readings, &self.first) {
            (Readings::Default, Some(first)) => {
                let all = match self.has_capabilities {
                    true => "--arch all --cap all",
                    false => "--arch all",
                };
                Some(format!("{done} for {first}; `{all}` {does} all others"))
            }
            _ => None,
        }
    }
}

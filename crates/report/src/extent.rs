//! What a command examined: the readings of policies that depend on machine, capabilities and kernel.

use serde::Serialize;

/// The readings that were examined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Extent {
    /// Which of the readings.
    pub readings: Readings,
    /// The first of them, in words; absent if there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// Whether the machines of readings differ.
    #[serde(skip)]
    pub has_arches: bool,
    /// Whether they depend on capabilities and kernels as well.
    #[serde(skip)]
    pub has_capabilities: bool,
}

/// A set of readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Readings {
    /// The only one that the inputs have.
    Only,
    /// The one that the options select.
    Chosen,
    /// All that the entries of a profile distinguish.
    All,
    /// The default one, of this machine, and no other.
    Default,
}

impl Extent {
    /// That of an input with one reading.
    pub fn only() -> Extent {
        Extent {
            readings: Readings::Only,
            first: None,
            has_arches: false,
            has_capabilities: false,
        }
    }

    /// What follows an answer that no call contradicts.
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

    /// A line about readings that were not compared; empty if there are none.
    pub fn left_out(&self) -> String {
        self.other_readings("compared", "compares")
            .map_or_else(String::new, |line| line + "\n")
    }

    /// What the readings are that were not examined: past and present tense of what was done with the others.
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
